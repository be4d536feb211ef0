"""What each figure means: worked by hand, and counted a second time over the whole schema."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scenarios

from allocation.reference import MORE, RESERVING, count_figures
from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.allocation.plan import Plan, plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.cluster import Cluster

ORDER = [
    *("utilization", "held", "value", "value_undecayed", "penalty", "objective", "coverage"),
    *("shortfall_gpu_hours", "swaps", "jobs_placed", "jobs_finished", "jobs_unplaced"),
    *("jobs_set_aside", "jobs_late", "wait_p50_hours", "wait_p90_hours", "bound", "gap"),
]


def line(*jobs: BatchJob, gpus: int = 1, steps: int = 12, **more: object) -> AllocationScenario:
    """Jobs on a line of GPUs, without decay and without traffic unless given."""
    scenario = AllocationScenario(
        "line", Cluster(gpus), Horizon(steps), Objective(8.0, None), Rules(), (), jobs
    )
    return replace(scenario, **more)


def job(name: str, gpus: int = 1, hours: float = 1.0, priority: float = 1.0, **more: float) -> BatchJob:
    return BatchJob(name, "training", gpus, hours, priority, **more)


def test_figures_come_in_the_order_of_the_design_and_cost_only_with_a_price() -> None:
    scenario = line(job("a"))
    assert list(plan(scenario, "fifo").figures) == ORDER
    priced = replace(scenario, cluster=Cluster(1, price_per_gpu_hour=2.5))
    figures = plan(priced, "fifo").figures
    assert list(figures) == [*ORDER, "cost", "cost_useful", "cost_idle"]
    # 12 GPU-hours at 2.50, of which one does something
    assert (figures["cost"], figures["cost_useful"], figures["cost_idle"]) == (30.0, 2.5, 27.5)


def test_cost_counts_available_gpus_and_half_hours() -> None:
    """Three of four GPUs available for 2 x 30 min at 4 per hour: 12; one of six GPU-steps useful: 2."""
    scenario = replace(
        line(job("a", hours=0.5)),
        cluster=Cluster(4, unavailable=(0,), price_per_gpu_hour=4.0),
        horizon=Horizon(2, 1800),
    )
    figures = plan(scenario, "fifo").figures
    assert (figures["cost"], figures["cost_useful"], figures["cost_idle"]) == (12.0, 2.0, 10.0)


def test_value_decays_and_the_undecayed_value_stands_beside() -> None:
    """w at hours 0-3 with a half-life of two hours: 1, 0.707107, 0.5, 0.353553; priority 2, 2 GPUs.

    2 x 2 x 2.560660 = 10.24264, and 2 x 2 x 4 = 16 without decay.
    """
    scenario = line(job("a", 2, 4.0, 2.0), gpus=2, steps=4, objective=Objective(8.0, 2.0))
    figures = plan(scenario, "fifo").figures
    assert figures["value"] == pytest.approx(10.24264, abs=1e-12)
    assert figures["value_undecayed"] == 16.0


def test_value_and_penalty_are_in_gpu_hours_whatever_the_step() -> None:
    """Half-hour steps: 2 GPU-steps at priority 3 are 3 units; two unmet units at 8 x 0.5 x 0.5 h are 4.

    The app's maximum of one leaves one unit unmet in each step.
    """
    app = RealtimeApp("C", 0.5, (2, 2), max_gpus=1)
    scenario = line(job("a", 1, 1.0, 3.0), gpus=3, horizon=Horizon(2, 1800), realtime=(app,))
    figures = plan(scenario, "fifo").figures
    assert (figures["value"], figures["penalty"], figures["objective"]) == (3.0, 4.0, -1.0)
    assert figures["shortfall_gpu_hours"] == 1.0
    assert figures["coverage"] == 0.5


def test_waits_are_counted_from_the_earliest_hour_by_the_index_rule() -> None:
    """Four jobs of one hour on one GPU wait 0, 1, 2, 3: p50 at index 2, p90 at index 3.

    Ten jobs wait 0 to 9: indices 5 and 9. Two jobs: indices 1 and 1.
    """
    for n, p50, p90 in ((1, 0, 0), (2, 1, 1), (4, 2, 3), (10, 5, 9), (11, 5, 9)):
        figures = plan(line(*(job(f"j{i}") for i in range(n))), "fifo").figures
        assert (figures["wait_p50_hours"], figures["wait_p90_hours"]) == (p50, p90)
    late = plan(line(job("a", earliest_hour=2.0), job("b", earliest_hour=2.0)), "fifo").figures
    assert (late["wait_p50_hours"], late["wait_p90_hours"]) == (1.0, 1.0)


def test_unplaced_and_running_jobs_do_not_count_as_waits() -> None:
    """`r` runs for 3 of 4 hours; `a` waits three hours and starts at the last; `b` finds no place."""
    scenario = line(job("a"), job("b", hours=2.0), job("r", hours=3.0, running_on=0), steps=4)
    figures = plan(scenario, "fifo").figures
    assert (figures["wait_p50_hours"], figures["wait_p90_hours"]) == (3.0, 3.0)
    assert (figures["jobs_placed"], figures["jobs_unplaced"], figures["jobs_finished"]) == (2, 1, 2)
    nothing = plan(line(job("a", gpus=2)), "fifo").figures
    assert nothing["wait_p50_hours"] is None
    assert nothing["wait_p90_hours"] is None


def test_a_job_is_late_by_the_hours_between_its_deadline_and_its_end() -> None:
    """One GPU: `a` ends at 2, on time to the hour; `b` ends at 4, half an hour late; `c` finds no place."""
    scenario = line(
        job("a", hours=2.0, deadline_hour=2.0),
        job("b", hours=2.0, deadline_hour=3.5),
        job("c", hours=2.0, deadline_hour=99.0),
        job("d", hours=1.0),
        steps=5,
    )
    made = plan(scenario, "fifo")
    assert made.figures["jobs_late"] == 2
    late = made.jobs_frame().set_index("job")["late_hours"]
    assert (late["a"], late["b"]) == (0.0, 0.5)
    value = plan(
        replace(scenario, batch=tuple(replace(j, deadline_hour=None) for j in scenario.batch)), "fifo"
    )
    assert made.figures["value"] == value.figures["value"]


def test_holding_more_than_demand_is_held_but_not_useful() -> None:
    """Peak 2 of demand 2 1 0 0 on 4 GPUs: held 8 of 16, useful 3 of 16."""
    scenario = line(gpus=4, steps=4, realtime=(RealtimeApp("C", 1.0, (2, 1, 0, 0)),))
    figures = plan(scenario, "fifo").figures
    assert (figures["held"], figures["utilization"]) == (0.5, 3 / 16)
    figures = plan(scenario, "curve-fifo").figures
    assert (figures["held"], figures["utilization"]) == (3 / 16, 3 / 16)


def test_the_gap_is_relative_to_the_bound() -> None:
    """One GPU for 12 hours and a job for all of them: 12, and no plan earns more."""
    made = plan(line(job("a", hours=12.0)), "aware")
    assert made.figures["objective"] == 12.0
    assert made.bound == made.figures["bound"]
    assert made.gap == made.figures["gap"]
    assert made.bound >= 12.0
    assert made.gap == pytest.approx((made.bound - 12.0) / made.bound)


def assert_counted(made: Plan) -> None:
    """Every figure equals the independent count of the plan's own grid."""
    exact = count_figures(made.scenario, made.policy, made.start.tolist(), made.grid.tolist())
    whole = Fraction(exact["value"] or 0) + Fraction(exact["penalty"] or 0)
    for name, count in exact.items():
        figure = made.figures[name]
        if count is None or isinstance(count, int):
            assert figure == count, name
            assert type(figure) is type(count), name
        else:
            size = float(whole) if name == "objective" else abs(float(count))
            assert figure == pytest.approx(float(count), rel=0, abs=1e-13 * max(1e-3, size)), name
    bound, gap = made.figures["bound"], made.figures["gap"]
    assert list(made.figures) == ORDER + [name for name in exact if name.startswith("cost")]
    assert bound is not None
    assert gap == pytest.approx((bound - made.figures["objective"]) / max(abs(bound), 1e-9), abs=1e-9)


@settings(max_examples=60 * MORE)
@given(scenarios(max_gpus=70, max_steps=24), st.sampled_from(POLICIES))
def test_every_figure_equals_an_independent_count(scenario: AllocationScenario, policy: str) -> None:
    assert_counted(plan(scenario, policy, iterations=50, time_limit_s=0.3))


@settings(max_examples=40 * MORE)
@given(scenarios(max_gpus=10, max_steps=10))
def test_held_demand_served_and_ends_agree_with_the_grid(scenario: AllocationScenario) -> None:
    for policy in POLICIES:
        made = plan(scenario, policy, iterations=50, time_limit_s=0.3)
        n_jobs = len(scenario.batch)
        for r, app in enumerate(scenario.realtime):
            held = (made.grid == n_jobs + r).sum(axis=0)
            assert made.held[r].tolist() == held.tolist()
            assert made.demand[r].tolist() == list(app.demand)
            assert made.served[r].tolist() == [min(h, d) for h, d in zip(held, app.demand, strict=True)]
        for j in range(n_jobs):
            steps = (made.grid == j).any(axis=0).nonzero()[0]
            assert made.end[j] == (steps[-1] + 1 if len(steps) else -1)
        if policy in RESERVING:
            assert made.figures["swaps"] == 0
