"""How long sweeps take: ten thousand plans on all cores, what a point costs beside its plan, the same from a folder."""

import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

from gpuplan.benchmarks.frame import Finding, Measure

#: Points: penalties x sizes of the cluster (whole nodes) of a shipped day, under one policy.
SCENARIO, PENALTIES, SIZES = "two-apps", 1_000, 10


def entries() -> tuple[Measure, ...]:
    """All measures of sweeps."""
    return (
        Measure(f"sweep: {PENALTIES * SIZES:,} points of {SCENARIO}, aware", _seconds, 20.0),
        Measure("sweep: efficiency, time in points of all workers' time", _efficiency, 0.85, "share"),
        Measure("sweep: overhead per point, nothing to compute", _overhead),
        Measure(f"sweep: {PENALTIES * SIZES:,} points found again in their folder", _again),
        Measure("sweep: overhead per point on Dask, two workers", _on_dask),
    )


def axes(penalties: int = PENALTIES) -> dict[str, list[Any]]:
    """The axes of the measures."""
    return {
        "objective.shortfall_penalty": [k / 64 for k in range(penalties)],
        "cluster.gpus": [8 * (k + 1) for k in range(SIZES)],
    }


class _Idle(ThreadPoolExecutor):
    """Answers at once, with figures of nothing: what is left is the sweep's own work."""

    def submit(self, call: Any, /, *given: Any, **_: Any) -> Future[Any]:
        from gpuplan.sweeps.work import Outcome

        answer: Future[Any] = Future()
        tasks = given[2]
        outcomes = [Outcome(task.place, policy, {}, None) for task in tasks for policy in task.policies]
        answer.set_result((outcomes, 2e-3 * len(tasks)))
        return answer


@cache
def _measured() -> tuple[float, float, float]:
    """Seconds of the sweep into a folder, of its workers in points, and of finding it all again."""
    from gpuplan.allocation.plan import plan, warm_up
    from gpuplan.loading import load_allocation
    from gpuplan.sweeps import run

    warm_up()
    scenario = load_allocation(SCENARIO)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found = run.sweep(scenario, axes(), "aware", to=folder, progress=False)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        again = run.sweep(scenario, axes(), "aware", to=folder, progress=False)
        reread = time.perf_counter() - began
    assert (found.computed, again.computed) == (PENALTIES * SIZES, 0), "points were computed twice"
    assert found.table.equals(again.table), "not the same table again"
    assert not len(found.errors), "points have errors"
    rows = found.table.iloc[:: len(found.table) // 20]
    for penalty, gpus, objective in rows[[*axes(), "objective"]].itertuples(index=False):
        changed = scenario.replace({"objective.shortfall_penalty": penalty, "cluster.gpus": gpus})
        assert plan(changed, "aware").figures["objective"] == objective, "a point has another plan"
    return seconds, found.busy_s, reread


def _seconds() -> Finding:
    seconds, _, _ = _measured()
    return Finding(
        seconds, f"{PENALTIES * SIZES / seconds:,.0f} points a second, start of the processes included"
    )


def _efficiency() -> Finding:
    import os

    seconds, busy, _ = _measured()
    workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding(busy / (workers * seconds), f"{workers} workers")


def _overhead() -> float:
    from gpuplan.loading import load_allocation
    from gpuplan.sweeps import run

    scenario = load_allocation(SCENARIO)
    began = time.perf_counter()
    with _Idle(2) as idle:
        found = run.sweep(scenario, axes(), "aware", executor=idle, progress=False)
    seconds = time.perf_counter() - began
    assert found.computed == PENALTIES * SIZES, "points are missing"
    return seconds / found.computed


def _again() -> float:
    return _measured()[2]


def _on_dask() -> Finding:
    """Seconds of a worker that pass outside of points, per point, the first contact included."""
    from gpuplan.loading import load_allocation
    from gpuplan.sweeps import run

    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return Finding(None, "needs Dask: pip install 'gpuplan[scale]'")
    scenario = load_allocation(SCENARIO)
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=folder
        ) as cluster,
        Client(cluster) as client,  # type: ignore[no-untyped-call]
    ):
        executor = client.get_executor()
        run.sweep(scenario, axes(2), "aware", executor=executor, progress=False)  # imports and kernels
        began = time.perf_counter()
        found = run.sweep(scenario, axes(200), "aware", executor=executor, progress=False)
        seconds = time.perf_counter() - began
    assert not len(found.errors), "points have errors"
    return Finding((2 * seconds - found.busy_s) / found.computed, f"{found.computed:,} points")
