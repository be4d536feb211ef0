"""What `aware` must find on days small enough to solve by hand."""

import pytest

from allocation.test_policies_by_hand import day, job
from gpuplan.allocation.model import RealtimeApp
from gpuplan.allocation.plan import plan


def test_apps_that_peak_at_different_hours_share_the_same_gpus() -> None:
    """8 GPUs: 4 for one app early, 4 for the other late; the same four, so a block of 4 runs all day."""
    apps = (RealtimeApp("early", 1.0, (4, 4, 4, 0, 0, 0)), RealtimeApp("late", 1.0, (0, 0, 0, 4, 4, 4)))
    made = plan(day(8, 6, (job("block", 4, 6),), apps), "aware")
    assert made.figures["coverage"] == 1.0
    assert made.figures["utilization"] == 1.0  # (4 + 4) x 6 of 8 x 6
    assert made.check() == []


def test_a_short_holding_does_not_strand_a_hole_beside_a_long_one() -> None:
    """5 GPUs, four steps: ``brief`` holds 1 for two steps, ``all-day`` 1 for four.

    In file order from the high end ``brief`` gets GPU 4 and ``all-day`` GPU 3; later GPU 4 is a
    hole of one, and of the four free GPUs only one block of 2 lies side by side. The other way
    round both blocks fit: 4 + 2 + 2 x 4 + 2 x 2 = 18 of 20 GPU-steps.
    """
    apps = (RealtimeApp("brief", 1.0, (1, 1, 0, 0)), RealtimeApp("all-day", 1.0, (1, 1, 1, 1)))
    jobs = (job("long", 2, 4), job("short", 2, 2, earliest_hour=2.0))
    scenario = day(5, 4, jobs, apps)
    assert plan(scenario, "curve-fifo").figures["jobs_placed"] == 1
    made = plan(scenario, "aware")
    assert made.figures["jobs_placed"] == 2
    assert made.figures["utilization"] == 18 / 20
    assert made.check() == []


def test_the_whole_queue_is_seen_at_once() -> None:
    """4 GPUs, four steps: the small job first (priority 2) keeps the block of 4 (priority 1.9) out.

    Order by priority earns 2 x 1 x 2 + nothing = 4; the block alone earns 1.9 x 4 x 3 = 22.8.
    """
    jobs = (job("small", 1, 2, 2.0), job("block", 4, 3, 1.9))
    scenario = day(4, 4, jobs)
    assert plan(scenario, "curve-priority").figures["value"] == 4.0
    assert plan(scenario, "aware").figures["value"] == pytest.approx(22.8)


@pytest.mark.parametrize(
    ("penalty", "coverage", "value"), [(0, 0.0, 16.0), (1.9, 0.0, 16.0), (2.1, 1.0, 0.0)]
)
def test_the_penalty_is_weighed_against_the_whole_block(
    penalty: float, coverage: float, value: float
) -> None:
    """4 GPUs, four steps: a block of 4 earns 16; an app wants 2 GPUs in all steps, 8 GPU-steps.

    The block wins below a penalty of 16 / 8 = 2, the app above it.
    """
    apps = (RealtimeApp("app", 1.0, (2, 2, 2, 2)),)
    made = plan(day(4, 4, (job("block", 4, 4),), apps, penalty=penalty), "aware")
    assert (made.figures["coverage"], made.figures["value"]) == (coverage, value)


def test_the_ramp_before_a_peak_goes_around_work_that_runs_already() -> None:
    """4 GPUs, cap 1: a peak of 3 in step 3 needs 1, 2, 3 GPUs from step 1 on; GPUs 0-1 run until step 2.

    Two GPUs are free at once, the third from step 2 on: 0, 1, 2, 3 can be held and is.
    """
    apps = (RealtimeApp("app", 1.0, (0, 0, 0, 3), max_swap=1),)
    made = plan(day(4, 4, (job("run", 2, 2, running_on=0),), apps, penalty=1000), "aware")
    assert made.held.tolist() == [[0, 1, 2, 3]]
    assert made.figures["coverage"] == 1.0
    assert made.check() == []


def test_apps_that_compete_are_weighed_against_each_other() -> None:
    """2 GPUs, cap 0 for ``stiff``: it may hold 2 all day for 2 GPU-steps of demand, or leave 6 to ``agile``."""
    apps = (RealtimeApp("stiff", 1.0, (0, 0, 0, 2), max_swap=0), RealtimeApp("agile", 1.0, (2, 2, 2, 0)))
    made = plan(day(2, 4, (), apps), "aware")
    assert made.served.sum(axis=1).tolist() == [0, 6]
