"""Grids worked out by hand, drawn as text: a row per GPU from GPU 0, a letter per step.

Lower-case letters are batch jobs by the first letter of their name, upper-case letters real-time
apps, `.` nothing, `#` an unavailable GPU.
"""

import pytest

from allocation.reference import Grid, reference_plan
from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.allocation.plan import Plan, plan
from gpuplan.cluster import Cluster


def job(name: str, gpus: int, hours: float, priority: float = 1.0, **more: float | int) -> BatchJob:
    return BatchJob(name, "training", gpus, hours, priority, **more)


def day(
    cluster: Cluster | int,
    steps: int,
    batch: tuple[BatchJob, ...] = (),
    realtime: tuple[RealtimeApp, ...] = (),
    *,
    penalty: float = 8.0,
    half_life: float | None = None,
    step_s: int = 3600,
    must_finish: bool = True,
    within_node: bool = False,
) -> AllocationScenario:
    """A scenario without decay, unless one is asked for."""
    return AllocationScenario(
        name="day",
        cluster=Cluster(cluster) if isinstance(cluster, int) else cluster,
        horizon=Horizon(steps, step_s),
        objective=Objective(penalty, half_life),
        rules=Rules(must_finish, within_node),
        realtime=realtime,
        batch=batch,
    )


def drawn(scenario: AllocationScenario, grid: Grid) -> list[str]:
    letters = {-1: ".", -2: "#"}
    letters |= {j: job.name[0].lower() for j, job in enumerate(scenario.batch)}
    letters |= {len(scenario.batch) + r: app.name[0].upper() for r, app in enumerate(scenario.realtime)}
    return ["".join(letters[code] for code in row) for row in grid]


def planned(scenario: AllocationScenario, policy: str, picture: str) -> Plan:
    """The plan of a FIFO-like policy, after it and the reference were found to look like `picture`."""
    assert drawn(scenario, reference_plan(scenario, policy).grid) == picture.split()
    made = plan(scenario, policy)
    assert drawn(scenario, made.grid.tolist()) == picture.split()
    assert made.check() == []
    return made


def test_fifo_reserves_the_peak_all_day() -> None:
    """Demand 0 1 2 0 reserves two GPUs for four steps; `b` finds only `a`'s two GPUs, all day taken.

    Useful: 2 x 4 of `a` and 3 of the demand = 11 of 16; held 8 + 8 = 16 of 16.
    """
    scenario = day(4, 4, (job("a", 2, 4), job("b", 2, 2)), (RealtimeApp("C", 1.0, (0, 1, 2, 0)),))
    made = planned(scenario, "fifo", "aaaa aaaa CCCC CCCC")
    assert made.figures["utilization"] == 11 / 16
    assert made.figures["held"] == 1.0
    assert made.figures["coverage"] == 1.0
    assert made.figures["swaps"] == 0
    assert (made.figures["jobs_placed"], made.figures["jobs_unplaced"]) == (1, 1)


def test_following_the_curve_frees_what_the_reservation_blocks() -> None:
    """Without a cap the holding is the demand; `b` (2 GPUs, 1 h) goes where the app holds nothing."""
    scenario = day(4, 4, (job("a", 2, 4), job("b", 2, 1)), (RealtimeApp("C", 1.0, (0, 1, 2, 0)),))
    planned(scenario, "fifo", "aaaa aaaa CCCC CCCC")
    made = planned(scenario, "curve-fifo", "aaaa aaaa b.C. bCC.")
    assert made.figures["swaps"] == 2  # one more in step 1, one more in step 2; step 0 is not counted


def test_an_app_that_holds_more_than_its_reservation_keeps_the_highest_of_them() -> None:
    """Held 0, 1, 3 and a peak of 2: GPUs 3 and 1 stay; 0 and 2 are no block of two."""
    app = RealtimeApp("C", 1.0, (2, 1), held=(0, 1, 3))
    planned(day(4, 2, (job("b", 2, 1), job("a", 1, 1)), (app,)), "fifo", "a. CC .. CC")


def test_an_app_that_holds_less_takes_the_highest_gpus_that_nobody_holds() -> None:
    """`A` keeps 2 and needs one more: 3 is held by `B`, so 1."""
    apps = (RealtimeApp("A", 1.0, (2,), held=(2,)), RealtimeApp("B", 1.0, (1,), held=(3,)))
    planned(day(4, 1, (), apps), "fifo", ". A A B")


def test_reservations_go_in_file_order_and_the_last_takes_what_is_left() -> None:
    """Four GPUs, two peaks of three: `A` 3-1, `B` the remaining one; one unit is short per step at 3."""
    apps = (RealtimeApp("A", 1.0, (3, 3)), RealtimeApp("B", 2.0, (3, 1)))
    made = planned(day(4, 2, (), apps, penalty=8), "fifo", "BB AA AA AA")
    assert made.figures["shortfall_gpu_hours"] == 2.0
    assert made.figures["penalty"] == 2 * 8 * 2.0
    assert made.figures["coverage"] == (3 + 3 + 1 + 1) / 10


def test_a_reservation_lies_between_minimum_and_maximum() -> None:
    """`A` peaks at 1 but holds at least 2; `B` peaks at 3 but holds at most 1."""
    apps = (RealtimeApp("A", 1.0, (1, 0), min_gpus=2), RealtimeApp("B", 1.0, (0, 3), max_gpus=1))
    made = planned(day(4, 2, (), apps), "fifo", ".. BB AA AA")
    assert made.figures["utilization"] == (1 + 1) / 8  # reserved but idle is not useful


def test_a_reservation_never_takes_a_gpu_that_runs_inherited_work_for_a_while() -> None:
    """GPU 3 runs `r` in step 0 alone, and still the app takes 2 and 1."""
    app = RealtimeApp("C", 1.0, (2, 2, 2))
    planned(day(4, 3, (job("r", 1, 1, running_on=3),), (app,)), "fifo", "... CCC CCC r..")


def test_fifo_lets_small_jobs_overtake_and_strict_does_not() -> None:
    """`b` needs both GPUs and waits for `a`; `c` fits beside `a`, but in strict order starts after `b`."""
    scenario = day(2, 8, (job("a", 1, 3), job("b", 2, 2), job("c", 1, 2)))
    planned(scenario, "fifo", "aaabb... cc.bb...")
    planned(scenario, "fifo-strict", "aaabbcc. ...bb...")


def test_strict_order_allows_equal_starts() -> None:
    scenario = day(3, 3, (job("a", 1, 1), job("b", 1, 1), job("c", 1, 2)))
    planned(scenario, "fifo-strict", "a.. b.. cc.")


def test_an_earliest_hour_holds_back_those_behind_in_strict_order() -> None:
    """`a` may start from hour 2 on; `b` has no such wish and waits all the same."""
    scenario = day(2, 4, (job("a", 1, 1, earliest_hour=2.0), job("b", 1, 1)))
    planned(scenario, "fifo", "b.a. ....")
    planned(scenario, "fifo-strict", "..a. ..b.")


def test_a_job_that_fits_no_empty_cluster_blocks_nobody() -> None:
    """`x` needs 8 of 4 GPUs, `y` runs 9 of 4 hours, both are set aside; `b` starts at once."""
    scenario = day(4, 4, (job("x", 8, 1), job("y", 1, 9), job("b", 2, 1)))
    for policy in ("fifo", "fifo-strict"):
        made = planned(scenario, policy, "b... b... .... ....")
        assert set(made.set_aside) == {"x", "y"}
        assert made.figures["jobs_set_aside"] == 2
        assert made.figures["jobs_unplaced"] == 2


def test_a_job_without_a_place_blocks_all_later_ones_in_strict_order_only() -> None:
    """`a` takes both GPUs for 3 of 4 hours, `b` needs two hours: no place; `c` would fit at hour 3."""
    scenario = day(2, 4, (job("a", 2, 3), job("b", 2, 2), job("c", 1, 1)))
    planned(scenario, "fifo", "aaac aaa.")
    planned(scenario, "fifo-strict", "aaa. aaa.")


def test_strict_order_is_blocked_by_a_job_that_only_the_reservation_keeps_out() -> None:
    """`b` fits the empty cluster but not beside the reservation, so `c` is blocked."""
    scenario = day(2, 2, (job("b", 2, 1), job("c", 1, 1)), (RealtimeApp("A", 1.0, (0, 1)),))
    planned(scenario, "fifo", "c. AA")
    planned(scenario, "fifo-strict", ".. AA")


def test_a_block_up_to_a_node_does_not_straddle_nodes() -> None:
    """Nodes 0-1 and 2-3; `a` on GPU 0. Two GPUs are free at 1-2, but they lie in two nodes."""
    batch = (job("a", 1, 2), job("b", 2, 2))
    planned(day(Cluster(4, 2), 2, batch), "fifo", "aa bb bb ..")
    planned(day(Cluster(4, 2), 2, batch, within_node=True), "fifo", "aa .. bb bb")


def test_a_block_larger_than_a_node_takes_whole_nodes() -> None:
    """Nodes of 2: with GPU 0 taken, four GPUs start at 2 and not at 1."""
    batch = (job("a", 1, 1), job("b", 4, 1))
    planned(day(Cluster(6, 2), 1, batch), "fifo", "a b b b b .")
    planned(day(Cluster(6, 2), 1, batch, within_node=True), "fifo", "a . b b b b")


def test_a_block_larger_than_a_node_and_no_multiple_of_it_is_set_aside() -> None:
    """Nodes of 3: a block of 4 would take one node and a third; under the rule it never fits."""
    scenario = day(Cluster(6, 3), 1, (job("b", 4, 1), job("c", 2, 1)), within_node=True)
    made = planned(scenario, "fifo-strict", "c c . . . .")
    assert list(made.set_aside) == ["b"]
    assert len(made.set_aside["b"]) > 10


def test_a_smaller_last_node_is_a_node() -> None:
    """Nodes 0-2 and 3-4: two blocks of two stand in one node each."""
    scenario = day(Cluster(5, 3), 1, (job("a", 2, 1), job("b", 2, 1)), within_node=True)
    planned(scenario, "fifo", "a a . b b")


def test_an_unavailable_gpu_is_never_used_and_does_not_count() -> None:
    """GPU 1 away: `a` needs two neighbours, 2-3; 2 x 1 of 3 x 2 available GPU-steps."""
    scenario = day(Cluster(4, unavailable=(1,)), 2, (job("a", 2, 1), job("b", 4, 1)))
    made = planned(scenario, "fifo", ".. ## a. a.")
    assert made.figures["utilization"] == 2 / 6
    assert list(made.set_aside) == ["b"]


def test_running_work_stays_where_it_is_until_it_ends() -> None:
    """`r` runs on GPUs 1-2 (two nodes, which it may) for two more hours, last in the file."""
    scenario = day(Cluster(4, 2), 4, (job("a", 2, 2), job("r", 2, 2, running_on=1)), within_node=True)
    for policy in ("fifo", "fifo-strict"):
        made = planned(scenario, policy, "..aa rraa rr.. ....")
        assert made.figures["wait_p50_hours"] == 2.0  # `a` alone: `r` was running already
        assert made.figures["jobs_placed"] == 2


def test_running_work_may_run_over_the_end_and_is_then_not_finished() -> None:
    made = planned(day(1, 3, (job("r", 1, 5, running_on=0),)), "fifo", "rrr")
    assert (made.figures["jobs_placed"], made.figures["jobs_finished"]) == (1, 0)
    assert made.figures["value"] == 3.0
    assert made.end.tolist() == [3]


def test_a_job_that_need_not_finish_runs_over_the_end() -> None:
    """One GPU, three hours: `a` 2 h, `b` 5 h; `b` may start only where it need not finish."""
    batch = (job("a", 1, 2), job("b", 1, 5))
    planned(day(1, 3, batch), "fifo", "aa.")
    made = planned(day(1, 3, batch, must_finish=False), "fifo", "aab")
    assert (made.figures["jobs_placed"], made.figures["jobs_finished"]) == (2, 1)
    assert made.figures["value"] == 3.0


def test_higher_priorities_go_first_and_ties_in_file_order() -> None:
    batch = (job("a", 1, 1, 1.0), job("b", 1, 1, 2.0), job("c", 1, 1, 2.0), job("d", 1, 1, 9.5))
    planned(day(1, 4, batch), "fifo", "abcd")
    planned(day(1, 4, batch), "peak-priority", "dbca")
    planned(day(1, 4, batch), "curve-priority", "dbca")


def test_the_swap_cap_ramps_up_before_a_peak_and_down_after_it() -> None:
    """Demand 0 0 0 4 0 0, two swaps a step: 0 0 2 4 2 0. Acquired: 2 + 2."""
    scenario = day(4, 6, (job("a", 4, 2),), (RealtimeApp("C", 1.0, (0, 0, 0, 4, 0, 0), max_swap=2),))
    made = planned(scenario, "curve-fifo", "aa.C.. aa.C.. aaCCC. aaCCC.")
    assert made.held.tolist() == [[0, 0, 2, 4, 2, 0]]
    assert made.figures["swaps"] == 4
    assert made.figures["utilization"] == (8 + 4) / 24


def test_a_known_holding_counts_the_cap_from_step_0() -> None:
    """Demand 3 0 0 0 with a cap of one: unknown 3 2 1 0; from two held 3 2 1 0; from none 1 1 1 0.

    From none (`held` is an empty list) only one GPU can be there in step 0.
    """
    batch = ()
    unknown = RealtimeApp("C", 1.0, (3, 0, 0, 0), max_swap=1)
    assert plan(day(4, 4, batch, (unknown,)), "curve-fifo").held.tolist() == [[3, 2, 1, 0]]
    two = RealtimeApp("C", 1.0, (3, 0, 0, 0), max_swap=1, held=(2, 3))
    made = plan(day(4, 4, batch, (two,)), "curve-fifo")
    assert made.held.tolist() == [[3, 2, 1, 0]]
    assert made.figures["swaps"] == 1  # counted in step 0, because the cap counts there
    none = RealtimeApp("C", 1.0, (3, 0, 0, 0), max_swap=1, held=())
    made = plan(day(4, 4, batch, (none,)), "curve-fifo")
    assert made.held[0, 0] == 1
    assert made.check() == []


def test_a_minimum_is_held_without_demand_and_is_not_useful() -> None:
    scenario = day(2, 2, (), (RealtimeApp("C", 1.0, (0, 0), min_gpus=1),))
    made = planned(scenario, "curve-fifo", ".. CC")
    assert made.figures["utilization"] == 0.0
    assert made.figures["held"] == 0.5
    assert made.figures["coverage"] == 1.0  # no demand


@pytest.mark.parametrize(
    ("penalty", "batch_wins"), [(0.0, True), (1.0, True), (1.9, True), (2.1, False), (1000.0, False)]
)
def test_the_penalty_decides_between_a_block_and_traffic(penalty: float, batch_wins: bool) -> None:
    """Two GPUs, two hours, demand 1 1; a block of two GPUs for two hours earns 4.

    Placing it leaves two units unserved: 4 - 2 x penalty, against 0 for serving.
    """
    scenario = day(2, 2, (job("a", 2, 2),), (RealtimeApp("C", 1.0, (1, 1)),), penalty=penalty)
    made = plan(scenario, "aware")
    assert (made.start[0] == 0) == batch_wins
    assert made.figures["coverage"] == (0.0 if batch_wins else 1.0)
    assert made.figures["objective"] == pytest.approx(4 - 2 * penalty if batch_wins else 0.0)


def test_decay_makes_early_work_worth_more() -> None:
    """One GPU, two hours, half-life one hour: `b` (priority 3) first, 3 x 1 + 1 x 0.5 = 3.5."""
    scenario = day(1, 2, (job("a", 1, 1, 1.0), job("b", 1, 1, 3.0)), half_life=1.0)
    assert planned(scenario, "fifo", "ab").figures["value"] == 1 + 3 * 0.5
    made = plan(scenario, "aware")
    assert drawn(scenario, made.grid.tolist()) == ["ba"]
    assert made.figures["value"] == 3.5


def test_half_hour_steps_round_up() -> None:
    """Steps of 30 min: 1.2 h are three steps, earliest 0.7 h is step 2; it waits 1 h - 0.7 h."""
    scenario = day(1, 6, (job("a", 1, 1.2, earliest_hour=0.7),), step_s=1800)
    made = planned(scenario, "fifo", "..aaa.")
    assert made.figures["wait_p50_hours"] == pytest.approx(0.3)
    assert made.figures["value"] == 1.5  # GPU-hours of the steps it holds


def test_noise_below_a_billionth_is_not_a_step() -> None:
    """0.1 + 0.2 hours are 3.0000000000000004 steps of six minutes, which means three."""
    planned(day(1, 6, (job("a", 1, 0.1 + 0.2),), step_s=360), "fifo", "aaa...")


def test_a_swap_budget_caps_the_whole_horizon() -> None:
    """Demand 0 2 0 2 0 2 would swap six times; a budget of three is kept by every curve policy."""
    app = RealtimeApp("C", 1.0, (0, 2, 0, 2, 0, 2), swap_budget=3)
    scenario = day(4, 6, (job("a", 2, 6),), (app,))
    for policy in ("curve-fifo", "curve-priority", "aware"):
        made = plan(scenario, policy)
        assert made.check() == []
        assert int(made.figures["swaps"]) <= 3


def test_an_idle_cluster_and_an_empty_scenario_are_plans_too() -> None:
    made = planned(day(2, 2), "fifo", ".. ..")
    figures = made.figures
    assert (figures["utilization"], figures["value"], figures["coverage"]) == (0.0, 0.0, 1.0)
    assert figures["wait_p50_hours"] is None
    assert plan(day(2, 2), "aware").grid.tolist() == made.grid.tolist()
