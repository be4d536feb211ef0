"""Sizes as decisions: worked by hand under each rule, and what tables, charts and sentences say of them."""

from typing import Any

import pytest

from gpuplan import load
from gpuplan.allocation.charts import data, words
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies import POLICIES
from gpuplan.cluster import Cluster

LISTS = ("fifo", "fifo-strict", "curve-fifo", "peak-priority", "curve-priority")


def ranged(
    name: str, least: int, most: int, gpu_hours: float, priority: float = 1.0, **more: Any
) -> BatchJob:
    return BatchJob(name, "training", least, gpu_hours / least, priority, max_gpus=most, **more)


def line(
    *jobs: BatchJob, gpus: int = 4, steps: int = 8, half_life: float | None = None
) -> AllocationScenario:
    return AllocationScenario("line", Cluster(gpus), Horizon(steps), Objective(8.0, half_life), batch=jobs)


@pytest.mark.parametrize("policy", LISTS)
def test_list_scheduling_takes_the_largest_size_that_fits_at_the_earliest_start(policy: str) -> None:
    """`a` holds one GPU for 8 h; `b` may have 1 to 4 of the other three from the start: 2, for 4 h."""
    made = plan(line(BatchJob("a", "training", 1, 8.0, 1.0), ranged("b", 1, 4, 8)), policy)
    assert (made.start.tolist(), made.size.tolist(), made.duration.tolist()) == ([0, 0], [1, 2], [8, 4])


@pytest.mark.parametrize("policy", LISTS)
def test_an_early_start_on_few_gpus_comes_before_a_later_one_on_many(policy: str) -> None:
    """Three of four GPUs are busy for an hour: `b` starts on the fourth at once, for 6 h, not on four at hour 1."""
    jobs = [BatchJob(f"a{i}", "training", 1, 1.0, 1.0) for i in range(3)]
    made = plan(line(*jobs, ranged("b", 1, 4, 6)), policy)
    assert (int(made.start[3]), int(made.size[3]), int(made.duration[3])) == (0, 1, 6)


def test_aware_takes_the_size_beside_which_the_others_fit() -> None:
    """4 GPUs, 4 h: `a` (8 GPU-hours, priority 2) beside `b` and `c` (1 GPU, 4 h): only on two. 16 + 4 + 4."""
    jobs = (
        ranged("a", 1, 4, 8, 2.0),
        BatchJob("b", "training", 1, 4.0, 1.0),
        BatchJob("c", "training", 1, 4.0, 1.0),
    )
    made = plan(line(*jobs, steps=4), "aware")
    assert made.size[0] == 2
    assert made.figures["value"] == 2 * 8 + 4 + 4
    assert made.figures["gap"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_earns_for_its_work_whatever_its_size(policy: str) -> None:
    """8 GPU-hours x priority 3 = 24, on any size, although scaling 0.5 makes 4 GPUs take 4 h (16 GPU-hours)."""
    for most in (1, 2, 4):
        made = plan(line(ranged("a", most, most, 8, 3.0), gpus=4), policy, iterations=20)
        assert (made.figures["value"], made.duration.tolist()) == (24.0, [8 // most])
    made = plan(line(ranged("a", 1, 4, 8, 3.0, scaling=0.5), gpus=4), policy, iterations=20)
    assert made.figures["value"] == pytest.approx(
        24.0, abs=0.01
    )  # 1.41 times as fast on two: rounded to milli


@pytest.mark.parametrize("policy", POLICIES)
def test_sizes_that_never_fit_are_passed_over_and_a_job_without_any_is_set_aside(policy: str) -> None:
    """On 4 GPUs a job of 2 to 16 has 2 or 4; one of 8 to 16 has none; 40 GPU-hours in 8 h fit no size below 8."""
    made = plan(
        line(ranged("a", 2, 16, 8), ranged("b", 8, 16, 8), ranged("c", 1, 4, 40)), policy, iterations=20
    )
    assert made.start[0] >= 0
    assert made.size[0] in (2, 4)
    assert list(made.set_aside) == ["b", "c"]
    assert made.check() == []


def test_a_block_on_its_best_size_outbids_traffic() -> None:
    """Demand of 2 on 2 GPUs all day at penalty 1, priority 1: the job of priority 9 takes both where it may."""
    app = RealtimeApp("chat", 1.0, (2,) * 4)
    scenario = AllocationScenario(
        "s", Cluster(2), Horizon(4), Objective(1.0, None), realtime=(app,), batch=(ranged("a", 1, 2, 8, 9.0),)
    )
    made = plan(scenario, "aware")
    assert (made.size.tolist(), made.figures["value"]) == ([2], 72.0)


def test_tables_charts_and_sentences_show_the_size_chosen_and_the_range() -> None:
    scenario = line(BatchJob("a", "training", 1, 8.0, 1.0), ranged("b", 1, 4, 8), ranged("c", 4, 4, 4))
    made = plan(scenario, "fifo")
    frame = made.jobs_frame()
    assert frame.gpus.tolist() == [1, 2, 4]
    assert frame.hours.tolist() == [8.0, 4.0, 1.0]
    assert frame.finished.tolist() == [True, True, False]
    assert (
        made.why("b")
        == "b starts at hour 0, as early as it may, on GPUs 1-2 (2 of 1 to 4 GPUs, 4 h on so many)."
    )
    table = words.jobs_table(made)
    assert "<td>1–4</td><td>2–8</td>" in table
    assert "GPUs 1–2" in table
    bars = data.gantt_data(made, data.frame_of(scenario, 640), "left", "t")["left_bars"]
    assert "priority 1, on 2 of 1–4 GPUs" in bars["detail"]
    assert data.usage(made)[0].tolist() == [3] * 4 + [1] * 4


def test_an_unplaced_range_is_explained_by_its_smallest_size() -> None:
    scenario = line(BatchJob("a", "training", 4, 8.0, 1.0), ranged("b", 1, 4, 8))
    assert (
        plan(scenario, "fifo")
        .why("b")
        .startswith("b finds no place of 1 GPU (the smallest of 1 to 4) for 8 h in the horizon.")
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_the_shipped_scenario_uses_its_ranges_and_says_that_it_is_invented(policy: str) -> None:
    scenario = load("elastic-training")
    assert "Invented" in scenario.about
    assert sum(job.max_gpus is not None for job in scenario.batch) == 7
    assert any(job.scaling < 1 for job in scenario.batch)
    made = plan(scenario, policy, iterations=200, time_limit_s=1.0)
    assert made.check() == []
    wide = [j for j, job in enumerate(scenario.batch) if made.size[j] > job.gpus and made.start[j] >= 0]
    assert wide
