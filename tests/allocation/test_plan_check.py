"""The checker: silent on legal grids, a sentence for every broken rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import scenarios

from allocation.reference import MORE, broken_rules, reference_plan
from gpuplan.allocation.check import violations, whole_steps
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, RealtimeApp, Rules
from gpuplan.cluster import Cluster


def small() -> AllocationScenario:
    """6 GPUs in nodes of 2 (GPU 5 away), 4 steps; `run` on GPU 0 for two steps, `tune`, `chat`."""
    return AllocationScenario(
        name="small",
        cluster=Cluster(6, gpus_per_node=2, unavailable=(5,)),
        horizon=Horizon(4),
        rules=Rules(must_finish=True, within_node=True),
        realtime=(
            RealtimeApp(
                "chat", 1.0, (1, 1, 2, 1), max_swap=1, min_gpus=1, max_gpus=2, held=(4,), swap_budget=1
            ),
        ),
        batch=(
            BatchJob("run", "training", 1, 2.0, 1.0, running_on=0),
            BatchJob("tune", "training", 2, 2.0, 1.0, earliest_hour=1.0),
            BatchJob("odd", "quantization", 1, 1.0, 1.0),
        ),
    )


def legal() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """A legal plan of `small`: `run` 0, `tune` 1 on GPUs 2-3, `odd` 2 left out, `chat` is 3."""
    grid = np.array(
        [
            [0, 0, -1, -1],
            [-1, -1, -1, -1],
            [-1, 1, 1, -1],
            [-1, 1, 1, 3],
            [3, 3, 3, 3],
            [-2, -2, -2, -2],
        ],
        dtype=np.int32,
    )
    return np.array([0, 1, -1]), np.array([0, 2, -1]), grid


def test_a_legal_plan_has_no_violations() -> None:
    assert violations(small(), *legal(), reservation=False) == []


def test_a_reservation_may_not_change_but_the_same_grid_may_follow_demand() -> None:
    found = violations(small(), *legal(), reservation=True)
    assert found == ["App 'chat' takes GPU 3 at step 3, but a reservation stays all day."]


Cells = list[tuple[int, int, int]]

BROKEN: list[tuple[str, Cells, list[str]]] = [
    ("cell lost", [(2, 1, -1)], ["'tune'", "GPU 2", "step 1", "nothing"]),
    ("cell taken by an app", [(2, 1, 3)], ["'tune'", "GPU 2", "step 1", "app 'chat'"]),
    ("cell taken by a job", [(3, 2, 0)], ["'tune'", "GPU 3", "step 2", "job 'run'"]),
    ("cell too many", [(1, 3, 1)], ["'tune'", "GPU 1", "step 3", "outside of its block"]),
    ("unplaced job on the grid", [(1, 2, 2)], ["'odd'", "not placed", "GPU 1", "step 2"]),
    ("unavailable GPU used", [(5, 2, 3)], ["GPU 5", "unavailable", "step 2", "app 'chat'"]),
    ("mark of an unavailable GPU lost", [(5, 0, -1)], ["GPU 5", "unavailable", "step 0", "nothing"]),
    ("available GPU marked", [(1, 3, -2)], ["GPU 1", "available", "step 3"]),
    ("below the minimum", [(4, 1, -1)], ["'chat'", "0 GPUs", "step 1", "minimum of 1"]),
    ("above the maximum", [(1, 3, 3), (0, 3, 3)], ["'chat'", "4 GPUs", "step 3", "maximum of 2"]),
    ("acquires too many", [(1, 3, 3)], ["'chat'", "acquires 2", "step 3", "more than 1"]),
    ("releases too many", [(1, 2, 3), (4, 3, -1)], ["'chat'", "releases 2", "step 3", "more than 1"]),
    (
        "acquires at step 0 although held is known",
        [(4, 0, -1), (3, 0, 3), (2, 0, 3)],
        ["'chat'", "acquires 2", "step 0"],
    ),
    ("moving one GPU is one swap", [(4, 3, -1)], []),
    (
        "over the budget",
        [(1, 0, 3), (1, 1, 3), (1, 2, 3)],
        ["'chat'", "acquires 2 GPUs over the horizon", "budget of 1", "step 3"],
    ),
    ("a code of nobody", [(1, 1, 4)], ["GPU 1", "step 1", "4", "no job and no app"]),
    ("a code below all", [(1, 1, -3)], ["GPU 1", "step 1", "-3", "no job and no app"]),
]


@pytest.mark.parametrize(("cells", "words"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_a_broken_cell_is_a_sentence_with_names_gpu_and_step(cells: Cells, words: list[str]) -> None:
    start, first, grid = legal()
    for gpu, step, code in cells:
        grid[gpu, step] = code
    found = violations(small(), start, first, grid, reservation=False)
    assert any(all(word in sentence for word in words) for sentence in found) == bool(words)
    assert all(sentence.endswith(".") for sentence in found)


def moved(j: int, start: int, gpu: int) -> list[str]:
    """Violations of `small` after job `j` moved to a start and GPU on a grid drawn accordingly."""
    starts, firsts, grid = legal()
    scenario = small()
    grid[grid == j] = -1
    size = scenario.batch[j].gpus
    grid[gpu : gpu + size, start : start + whole_steps(scenario.batch[j].hours, 3600)] = j
    starts[j], firsts[j] = start, gpu
    return violations(scenario, starts, firsts, grid, reservation=False)


def test_a_job_before_its_earliest_step_is_named() -> None:
    assert moved(1, 0, 2) == ["Job 'tune' starts at step 0, before its earliest step 1."]


def test_a_job_that_must_finish_may_not_run_over_the_end() -> None:
    scenario, (start, first, grid) = small(), legal()
    grid[2:4] = -1
    grid[2:4, 3] = 1
    start[1] = 3
    found = violations(scenario, start, first, grid, reservation=False)
    assert found == [
        "Job 'tune' starts at step 3 for 2 steps and must finish, but the horizon ends after step 3."
    ]
    over = AllocationScenario(
        "s", scenario.cluster, scenario.horizon, rules=Rules(False, True), batch=scenario.batch
    )
    grid[grid == 3] = -1
    assert violations(over, start, first, grid, reservation=False) == []


def test_a_block_across_nodes_is_named_and_inherited_work_is_exempt() -> None:
    """Nodes of 2: GPUs 1-2 straddle nodes 0 and 1."""
    assert moved(1, 2, 1) == ["Job 'tune' straddles nodes 0 and 1 (GPUs 1 to 2, from step 2)."]
    scenario = AllocationScenario(
        "s", Cluster(4, 2), Horizon(2), rules=Rules(True, True), batch=(
            BatchJob("run", "training", 2, 1.0, 1.0, running_on=1),
        ),
    )  # fmt: skip
    grid = np.array([[-1, -1], [0, -1], [0, -1], [-1, -1]], dtype=np.int32)
    assert violations(scenario, np.array([0]), np.array([1]), grid, reservation=False) == []


def test_a_block_larger_than_a_node_takes_whole_nodes() -> None:
    """Nodes of 2: a block of 4 may stand on GPUs 2-5, not on 1-4."""
    job = BatchJob("big", "training", 4, 1.0, 1.0)
    scenario = AllocationScenario("s", Cluster(6, 2), Horizon(1), rules=Rules(True, True), batch=(job,))
    good = np.array([[-1], [-1], [0], [0], [0], [0]], dtype=np.int32)
    bad = np.array([[-1], [0], [0], [0], [0], [-1]], dtype=np.int32)
    assert violations(scenario, np.array([0]), np.array([2]), good, reservation=False) == []
    (sentence,) = violations(scenario, np.array([0]), np.array([1]), bad, reservation=False)
    assert "'big'" in sentence
    assert "whole nodes" in sentence


def test_inherited_work_may_not_move_wait_or_vanish() -> None:
    assert moved(0, 1, 0) == ["Job 'run' runs already on GPU 0 at step 0, but stands on GPU 0 at step 1."]
    assert moved(0, 0, 1) == ["Job 'run' runs already on GPU 0 at step 0, but stands on GPU 1 at step 0."]
    start, first, grid = legal()
    grid[grid == 0] = -1
    start[0] = first[0] = -1
    found = violations(small(), start, first, grid, reservation=False)
    assert found == ["Job 'run' runs already on GPU 0 but is not in the plan."]


def test_inherited_work_may_run_over_the_end_although_others_must_finish() -> None:
    job = BatchJob("run", "training", 1, 9.0, 1.0, running_on=0)
    scenario = AllocationScenario("s", Cluster(1), Horizon(2), batch=(job,))
    grid = np.array([[0, 0]], dtype=np.int32)
    assert violations(scenario, np.array([0]), np.array([0]), grid, reservation=False) == []


def test_a_placement_outside_of_the_grid_or_half_a_placement_is_named() -> None:
    for start, gpu in ((4, 0), (0, 5), (-1, 2), (1, -1), (-3, -3)):
        starts, firsts, grid = legal()
        grid[grid == 1] = -1
        starts[1], firsts[1] = start, gpu
        (sentence,) = violations(small(), starts, firsts, grid, reservation=False)
        assert sentence.startswith("Job 'tune' stands outside of the grid")


def test_a_block_that_is_no_power_of_two_is_named() -> None:
    job = BatchJob("three", "training", 3, 1.0, 1.0)
    scenario = AllocationScenario("s", Cluster(3), Horizon(1), batch=(job,))
    grid = np.zeros((3, 1), dtype=np.int32)
    (sentence,) = violations(scenario, np.array([0]), np.array([0]), grid, reservation=False)
    assert "not a power of two" in sentence


def test_arrays_of_another_shape_are_named() -> None:
    start, first, grid = legal()
    assert violations(small(), start[:2], first, grid, reservation=False) == [
        "start has shape (2,) where there are 3 batch jobs."
    ]
    assert violations(small(), start, first, grid.T, reservation=False) == [
        "The grid is (4, 6) GPUs by steps where the scenario has (6, 4)."
    ]


def test_a_reservation_below_the_minimum_is_legal_only_where_nothing_is_left() -> None:
    """3 GPUs, one runs inherited work in step 0 alone: two are left for an app that needs two."""
    job = BatchJob("run", "training", 1, 1.0, 1.0, running_on=0)
    app = RealtimeApp("chat", 1.0, (2, 2), min_gpus=2)
    other = RealtimeApp("other", 1.0, (1, 1))
    scenario = AllocationScenario("s", Cluster(3), Horizon(2), realtime=(app, other), batch=(job,))
    full = np.array([[0, -1], [2, 2], [1, 1]], dtype=np.int32)
    start = first = np.array([0])
    assert violations(scenario, start, first, full, reservation=True) == []
    idle = np.array([[0, -1], [-1, -1], [1, 1]], dtype=np.int32)
    assert violations(scenario, start, first, idle, reservation=True) == [
        "App 'chat' reserves 1 GPUs at step 0, fewer than its minimum of 2, "
        "although GPU 1 was left to reserve."
    ]
    assert len(violations(scenario, start, first, full, reservation=False)) == 1


def test_a_hostile_name_stays_one_line_of_text() -> None:
    job = BatchJob("a\u2028b\u202e<b>", "training", 1, 1.0, 1.0, running_on=0)
    scenario = AllocationScenario("s", Cluster(1), Horizon(1), batch=(job,))
    (sentence,) = violations(
        scenario, np.array([-1]), np.array([-1]), np.array([[-1]], dtype=np.int32), reservation=False
    )
    assert len(sentence.splitlines()) == 1
    assert "\u202e" not in sentence


@pytest.mark.parametrize(
    ("hours", "step_s", "steps"),
    [
        (1.0, 3600, 1),
        (1.2, 1800, 3),  # 2.4 half hours
        (0.1 + 0.2, 360, 3),  # 0.30000000000000004 h is three steps of 0.1 h
        (3 + 1e-10, 3600, 3),  # noise below a billionth
        (3.00001, 3600, 4),
        (0.0, 3600, 0),
        (1000 * (1 + 1e-10), 3600, 1000),
    ],
)
def test_hours_are_rounded_up_to_whole_steps(hours: float, step_s: int, steps: int) -> None:
    assert whole_steps(hours, step_s) == steps


@settings(max_examples=100 * MORE)
@given(
    scenarios(max_gpus=12, max_steps=8, max_jobs=6, ranges=False), st.data()
)  # a damaged grid has no sizes
def test_the_checker_agrees_with_a_second_look_on_damaged_plans(
    scenario: AllocationScenario, data: st.DataObject
) -> None:
    """A reservation plan of the reference, then up to three wrong cells or a moved job."""
    start, first, grid = reference_plan(scenario, "fifo")
    gpus, steps = scenario.cluster.gpus, scenario.horizon.steps
    codes = st.integers(-2, len(scenario.batch) + len(scenario.realtime) - 1)
    for _ in range(data.draw(st.integers(0, 3))):
        gpu, step = data.draw(st.integers(0, gpus - 1)), data.draw(st.integers(0, steps - 1))
        grid[gpu][step] = data.draw(codes)
    if scenario.batch and data.draw(st.booleans()):
        j = data.draw(st.integers(0, len(scenario.batch) - 1))
        start[j] = data.draw(st.integers(-1, steps - 1))
        first[j] = data.draw(st.integers(-1, gpus - 1))
    for policy, reservation in (("fifo", True), ("aware", False)):
        found = violations(scenario, np.array(start, int), np.array(first, int), np.array(grid), reservation)
        assert bool(found) == bool(broken_rules(scenario, policy, start, first, grid)), found


@settings(max_examples=60 * MORE)
@given(scenarios(max_gpus=24, max_steps=12))
def test_reservation_plans_of_the_reference_are_legal(scenario: AllocationScenario) -> None:
    for policy in ("fifo", "fifo-strict", "peak-priority"):
        start, first, grid = reference_plan(scenario, policy)
        cells = np.array(grid)
        sizes = [
            int((cells[:, s] == j).sum()) if s >= 0 else job.gpus
            for j, (job, s) in enumerate(zip(scenario.batch, start, strict=True))
        ]
        starts, firsts = np.array(start, int), np.array(first, int)
        assert violations(scenario, starts, firsts, cells, True, np.array(sizes, int)) == []
