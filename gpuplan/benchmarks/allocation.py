"""How long planning takes: the kernel alone, `gpuplan.plan` with its figures, and growth with size."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from typing import Any

from gpuplan.allocation.model import (
    BATCH_KINDS,
    AllocationScenario,
    BatchJob,
    DemandShape,
    Horizon,
    RealtimeApp,
)
from gpuplan.benchmarks.frame import Measure, fastest
from gpuplan.cluster import Cluster

#: GPUs, steps, jobs, target of the kernel alone and of a plan with figures, in seconds.
SIZES = ((64, 24, 30, 50e-6, 2e-3), (1024, 48, 5000, None, 100e-3))

#: The growth table, 48 steps: jobs on 64 GPUs, then GPUs for 200 jobs.
GROWTH = tuple((64, jobs) for jobs in (50, 100, 200, 400, 800)) + tuple(
    (gpus, 200) for gpus in (16, 64, 256, 1024, 4096)
)


def entries() -> tuple[Measure, ...]:
    """All measures of planning, the growth table last."""
    found = _pair("training-rush", _shipped, 20e-6, 1e-3)
    for gpus, steps, jobs, kernel_target, plan_target in SIZES:
        name = f"{gpus} GPUs x {steps} steps, {jobs} jobs"
        found += _pair(name, partial(made_up, gpus, steps, jobs), kernel_target, plan_target)
    for gpus, jobs in GROWTH:
        make = partial(made_up, gpus, 48, jobs)
        found.append(Measure(f"growth: plan, {gpus} GPUs, {jobs} jobs", partial(_of_plan, make)))
    return tuple(found)


def made_up(gpus: int, steps: int, jobs: int) -> AllocationScenario:
    """A day that is one to two and a half times full: two apps on a quarter of the GPUs, random jobs."""
    draw = random.Random(f"{gpus} {steps} {jobs}")
    horizon = Horizon(steps, step_s=24 * 3600 // steps)
    apps = tuple(
        _app(f"app-{i}", DemandShape(gpus // 32, gpus // 6, peak_hour, 10.0), horizon)
        for i, peak_hour in enumerate((10.0, 15.0))
    )
    mean = 1.5 * gpus * 24 / jobs  # GPU-hours of a job
    batch = tuple(_job(i, draw, mean, gpus) for i in range(jobs))
    name = f"made-up-{gpus}-{steps}-{jobs}"
    return AllocationScenario(name, Cluster(gpus, min(gpus, 8)), horizon, realtime=apps, batch=batch)


def _app(name: str, shape: DemandShape, horizon: Horizon) -> RealtimeApp:
    return RealtimeApp(name, 5.0, shape.demand(horizon), shape, max_swap=max(1, int(shape.peak) // 4))


def _job(i: int, draw: random.Random, mean_gpu_hours: float, gpus: int) -> BatchJob:
    hours = draw.choice((1.0, 2.0, 3.0, 4.0, 6.0, 8.0))
    wanted = min(gpus / 2, max(1.0, draw.uniform(0.3, 1.7) * mean_gpu_hours / hours))
    size = 1 << (int(wanted).bit_length() - 1)
    return BatchJob(f"job-{i}", draw.choice(BATCH_KINDS), size, hours, float(draw.randint(1, 9)))


def _shipped() -> AllocationScenario:
    from gpuplan.loading import load_allocation

    return load_allocation("training-rush")


def _pair(
    name: str, make: Callable[[], AllocationScenario], kernel_target: float | None, plan_target: float
) -> list[Measure]:
    return [
        Measure(f"kernel of aware, {name}", partial(_of_kernel, make), kernel_target),
        Measure(f"plan with figures, {name}", partial(_of_plan, make), plan_target),
    ]


def _of_kernel(make: Callable[[], AllocationScenario]) -> float:
    """Seconds of the kernel alone, on the arrays with which `aware` calls it."""
    from gpuplan.allocation import kernels
    from gpuplan.allocation.plan import plan, warm_up

    warm_up()  # what is measured is compiled
    calls: list[tuple[Any, ...]] = []
    kernel = kernels.allocate

    def noted(*arrays: Any) -> Any:
        calls.append(arrays)
        return kernel(*arrays)

    scenario = make()
    kernels.allocate = noted
    try:
        made = plan(scenario, "aware")
    finally:
        kernels.allocate = kernel
    (arrays,) = calls
    seconds = fastest(lambda: kernel(*arrays))
    starts = kernel(*arrays)[0][:, kernels.START]
    assert (starts == made.start).all(), "the kernel answers otherwise when it is called again"
    return seconds


def _of_plan(make: Callable[[], AllocationScenario]) -> float:
    """Seconds of a plan with figures; every call has another penalty, as under a dragged slider."""
    from gpuplan.allocation.plan import compare, plan, warm_up

    warm_up()
    scenario = make()
    both = compare(scenario)
    for name, made in both.plans.items():
        assert made.check() == [], f"the plan of {name} breaks rules"
    aware, fifo = both["aware"].figures, both["fifo"].figures
    assert float(aware["objective"] or 0) >= float(fifo["objective"] or 0), "fifo has the better plan"
    assert both["aware"].fingerprint == plan(scenario, "aware").fingerprint, "not the same plan again"
    penalties = [4 + i / 8 for i in range(40)]  # more than any cache keeps
    moved = cycle(
        [replace(scenario, objective=replace(scenario.objective, shortfall_penalty=p)) for p in penalties]
    )
    return fastest(lambda: plan(next(moved), "aware").figures)
