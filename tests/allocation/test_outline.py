"""Starts before places: jobs that change places in time, deliberate shortfall, and blocks for given starts."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.allocation import engine, policies, search_kernels
from gpuplan.allocation.kernels import PRIORITY, SIZE, START
from gpuplan.allocation.model import AllocationScenario, BatchJob, Horizon, Objective, RealtimeApp
from gpuplan.allocation.outline import Outline
from gpuplan.allocation.plan import plan
from gpuplan.allocation.policies.base import Effort
from gpuplan.allocation.policies.search import LOGS, PLACES, SCHEDULE
from gpuplan.allocation.problem import compile_problem
from gpuplan.allocation.windows import Window
from gpuplan.cluster import Cluster
from gpuplan.loading import load


def outline_of(scenario: AllocationScenario) -> Outline:
    engine.compile_here()
    problem = compile_problem(scenario)
    window = Window(problem, policies.aware.run(problem, Effort()), (0, 1), problem.movable)
    return Outline(window)


def job(name: str, gpus: int, hours: float, priority: float) -> BatchJob:
    return BatchJob(name, "training", gpus, hours, priority)


def test_jobs_that_stand_in_the_wrong_order_change_places() -> None:
    """One GPU for 9 hours, three jobs of 3 hours: the most important one first, whatever order they stand in."""
    batch = (job("least", 1, 3.0, 1.0), job("middle", 1, 3.0, 4.0), job("most", 1, 3.0, 9.0))
    outline = outline_of(AllocationScenario("day", Cluster(1), Horizon(9), batch=batch))
    outline.best_jobs[:, START] = (0, 3, 6)
    before = int(outline.state[search_kernels.BEST])
    outline.exchange(1_000, np.array([7], np.uint64))
    assert outline.best_jobs[:, START].tolist() == [6, 3, 0]
    # what it gained is known: a worse plan found later must not take its place
    problem = outline.window.problem
    worth = problem.jobs[:, PRIORITY]
    sums = problem.weight_sum
    moved = sum(
        int(worth[j]) * int((sums[now + 3] - sums[now]) - (sums[old + 3] - sums[old]))
        for j, (old, now) in enumerate(((0, 6), (3, 3), (6, 0)))
    )
    assert moved > 0
    assert int(outline.state[search_kernels.BEST]) - before == moved


def test_a_job_without_a_place_takes_that_of_a_lesser_one() -> None:
    batch = (job("little", 2, 4.0, 1.0), job("much", 2, 4.0, 5.0))
    outline = outline_of(AllocationScenario("day", Cluster(2), Horizon(4), batch=batch))
    outline.best_jobs[:, START] = (0, -1)
    outline.exchange(100, np.array([7], np.uint64))
    assert outline.best_jobs[:, START].tolist() == [-1, 0]


def test_no_exchange_is_tried_without_trials() -> None:
    batch = (job("little", 1, 1.0, 1.0), job("much", 1, 1.0, 5.0))
    outline = outline_of(AllocationScenario("day", Cluster(1), Horizon(2), batch=batch))
    outline.best_jobs[:, START] = (0, 1)
    outline.exchange(0, np.array([7], np.uint64))
    assert outline.best_jobs[:, START].tolist() == [0, 1]


def test_two_blocks_in_a_row_are_worth_an_hour_of_shortfall() -> None:
    """Two runs of four hours on all four GPUs fill eight hours only where the app waits for its GPU all the while.

    An hour of its demand costs 4, the two runs earn 4 x 4 x 4 each, less what waiting costs: with one of
    them alone and the app served the day is worth less.
    """
    app = RealtimeApp("app", 1.0, (1, 0, 0, 0, 0, 0, 0, 0), max_swap=4)
    batch = (job("first", 4, 4.0, 4.0), job("second", 4, 4.0, 4.0), job("small", 1, 3.0, 1.0))
    day = AllocationScenario(
        "day", Cluster(4), Horizon(8), Objective(4.0, None), realtime=(app,), batch=batch
    )
    found = plan(day, "search", iterations=300)
    assert found.figures["objective"] == pytest.approx(2 * 4 * 4 * 4 - 4)
    assert found.check() == []


@pytest.mark.parametrize(
    ("name", "least"), [("benchmark-many-quantizations", 0.98), ("benchmark-inference-peak", 0.95)]
)
def test_apps_find_gpus_that_they_need_not_change_when_blocks_are_given(name: str, least: float) -> None:
    """With a swap cap of one or two GPUs, blocks given without a thought of the apps cost 5 to 20 % of the worth."""
    scenario = load(name)
    shares = []
    for seed in (1, 2, 3, 4):
        outline = outline_of(scenario)
        window = outline.window
        chance = np.array([seed], np.uint64)
        outline.forget()
        outline.improve(400, 0.1, 0.995, SCHEDULE, LOGS, chance)
        outline.place(PLACES, LOGS, chance)
        shares.append(int(window.state[search_kernels.WORTH]) / int(outline.state[search_kernels.BEST]))
        placed = window.jobs[:, START] >= 0
        assert (window.jobs[placed, SIZE] > 0).all()
    assert min(shares) > least


def test_the_best_of_the_blocks_tried_is_gone_on_from() -> None:
    outline = outline_of(load("two-apps"))
    window = outline.window
    chance = np.array([3], np.uint64)
    outline.forget()
    outline.improve(200, 0.1, 0.99, SCHEDULE, LOGS, chance)
    outline.place(PLACES, LOGS, chance)
    worth = int(window.state[search_kernels.WORTH])
    window.improve(0, 0.0, 1.0, PLACES, LOGS, chance)
    assert int(window.state[search_kernels.WORTH]) == worth


def test_moved_demand_does_not_change_what_starts_are_worth_without_apps() -> None:
    """Boldness concerns apps only: without them nothing may be overdrawn."""
    scenario = replace(load("training-rush"), realtime=())
    outline = outline_of(scenario)
    outline.forget()
    outline.improve(2_000, 0.3, 0.999, SCHEDULE, LOGS, np.array([5], np.uint64))
    used = np.zeros(scenario.horizon.steps, np.int64)
    for row in outline.best_jobs[outline.best_jobs[:, START] >= 0].tolist():
        used[row[START] : row[START] + row[1]] += row[SIZE]
    assert (used <= scenario.cluster.gpus).all()
