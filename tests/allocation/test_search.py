"""The search: never worse than where it starts, legal, and the same again for a seed and a number of moves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import scenarios

from gpuplan.allocation import engine, search_kernels
from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.allocation.plan import Plan, plan
from gpuplan.allocation.policies.search import iterations_for
from gpuplan.allocation.problem import compile_problem
from gpuplan.benchmarks.allocation import made_up
from gpuplan.cluster import Cluster
from gpuplan.inputs.errors import InputError
from gpuplan.loading import load

SMALL = ("training-rush", "mixed-day", "two-apps")


def objective(made: Plan) -> float:
    return float(made.figures["objective"] or 0.0)


@given(scenarios(), st.integers(0, 3))
def test_a_searched_plan_is_legal_and_never_worse_than_that_of_aware(
    scenario: AllocationScenario, seed: int
) -> None:
    engine.compile_here()
    aware, searched = plan(scenario), plan(scenario, "search", iterations=60, seed=seed)
    assert searched.check() == []
    assert objective(searched) >= objective(aware) - 1e-9 * abs(objective(aware))
    assert objective(searched) <= searched.bound


@given(scenarios())
def test_no_job_of_a_searched_plan_could_start_earlier_or_find_a_place_in_free_cells(
    scenario: AllocationScenario,
) -> None:
    engine.compile_here()
    made = plan(scenario, "search", iterations=20)
    allowed = compile_problem(scenario).allowed
    for j, job in enumerate(scenario.batch):
        if job.running_on is not None or job.name in made.set_aside:
            continue
        start, length, size = int(made.start[j]), int(made.duration[j]), int(made.size[j])
        grid = np.where(made.grid == j, -1, made.grid) == -1
        last = (
            start - 1
            if start >= 0
            else scenario.horizon.steps - (length if scenario.rules.must_finish else 1)
        )
        for step in range(scenario.steps_of(job.earliest_hour), last + 1):
            free = grid[:, step : step + length].all(axis=1)
            for gpu in range(scenario.cluster.gpus - size + 1):
                if int(allowed[size.bit_length() - 1, gpu // 64]) >> (gpu % 64) & 1:
                    assert not free[gpu : gpu + size].all(), (job, step, gpu)


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_and_moves_give_the_same_plan(name: str) -> None:
    scenario = load(name)
    plans = [plan(scenario, "search", iterations=500, seed=5) for _ in range(2)]
    assert plans[0].fingerprint == plans[1].fingerprint
    generated = [plan(scenario, "search", iterations=500, seed=np.random.default_rng(9)) for _ in range(2)]
    assert generated[0].fingerprint == generated[1].fingerprint


def test_more_moves_find_the_optimum_of_a_small_day() -> None:
    """Proven by the exact policy: no legal plan of training-rush earns more than 693.063499."""
    made = plan(load("training-rush"), "search", iterations=30_000)
    assert objective(made) == pytest.approx(693.063499, abs=1e-6)


def test_without_time_the_plan_of_aware_is_returned_tidied() -> None:
    scenario = load("training-rush")
    made = plan(scenario, "search", budget_ms=0)
    assert made.check() == []
    assert objective(made) >= objective(plan(scenario))


@pytest.mark.parametrize(("gpus", "jobs"), [(96, 60), (200, 150)])
def test_large_clusters_are_improved_window_by_window(gpus: int, jobs: int) -> None:
    scenario = made_up(gpus, 24, jobs)
    aware, searched = plan(scenario), plan(scenario, "search", iterations=6_000)
    assert searched.check() == []
    assert objective(searched) > objective(aware)
    assert searched.fingerprint == plan(scenario, "search", iterations=6_000).fingerprint


def test_what_apps_hold_before_the_day_and_must_hold_is_kept_in_windows() -> None:
    scenario = made_up(128, 24, 100)
    first, second = scenario.realtime
    apps = (
        replace(first, held=tuple(range(60, 70)), min_gpus=6, swap_budget=90),
        replace(second, held=tuple(range(30, 33)), max_gpus=18),
    )
    busy = BatchJob("runs-already", "training", 16, 7.0, 5.0, running_on=96)
    scenario = replace(scenario, realtime=apps, batch=(busy, *scenario.batch))
    made = plan(scenario, "search", iterations=6_000)
    assert made.check() == []
    assert objective(made) >= objective(plan(scenario))


def test_the_kernels_are_compiled_once_for_all_shapes() -> None:
    if not hasattr(search_kernels.improve, "signatures"):
        pytest.skip("nothing is compiled without numba")
    engine.compile_here()
    apps = (RealtimeApp("app", 2.0, (1,) * 6, max_swap=1),)
    jobs = tuple(BatchJob(f"job-{i}", "training", 1, 2.0, 1.0) for i in range(3))
    for cluster in (Cluster(4), Cluster(64), Cluster(65), Cluster(130)):
        for chosen in ((), apps):
            day = AllocationScenario("day", cluster, Horizon(6), realtime=chosen, batch=jobs)
            plan(day, "search", iterations=50)
    for kernel in (
        search_kernels.improve,
        search_kernels.schedule,
        search_kernels.exchange,
        search_kernels.place_all,
        search_kernels.tidy,
    ):
        assert len(kernel.signatures) == 1, kernel


def test_about_two_milliseconds_are_worth_fewer_moves_on_larger_days() -> None:
    counts = [iterations_for(compile_problem(load(name))) for name in ("training-rush", "big-day")]
    assert counts[0] > counts[1] >= 50


@pytest.mark.parametrize(
    ("effort", "sentence"),
    [
        ({"iteration": 5}, "iteration: unknown keyword; did you mean iterations?"),
        ({"iterations": -1}, "iterations: must be a whole number of at least 0 (got -1)"),
        ({"iterations": 2.5}, "iterations: must be a whole number of at least 0 (got 2.5)"),
        ({"budget_ms": float("nan")}, "budget_ms: must be a number of at least 0 (got nan)"),
        ({"budget_ms": "2"}, "budget_ms: must be a number of at least 0"),
        ({"seed": True}, "seed: must be a whole number of at least 0 or a numpy.random.Generator"),
        ({"time_limit_s": -3}, "time_limit_s: must be a number of at least 0 (got -3)"),
    ],
)
def test_an_effort_that_cannot_be_is_refused_with_a_sentence(effort: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        plan(load("mixed-day"), "search", **effort)
    assert sentence in str(caught.value)


def test_work_that_is_worth_nothing_is_searched_too() -> None:
    """In the last step, 10.5 hours late, a weight is 0.5 ** 21 = 0.0000005: 0 in six decimals."""
    app = RealtimeApp("dear", 1_000_000.0, (0, 0, 0, 0, 0, 0, 1, 0))
    job = BatchJob("late", "training", 1, 8.0, 1.0, 1.0)
    scenario = AllocationScenario(
        "s", Cluster(1), Horizon(8, 5400), Objective(5.0, 0.5), Rules(must_finish=False), (app,), (job,)
    )
    engine.compile_here()
    for iterations in (20, 1_000):
        assert plan(scenario, "search", iterations=iterations).check() == []
