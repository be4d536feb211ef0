"""What each figure means, in one place: from an assignment to the numbers of a plan.

Definitions: the table of figures in the documentation of allocation. Value and penalty are added
as exact integers and divided once.
"""

import math
from collections.abc import Sequence

import numpy as np

from gpuplan.allocation import kernels
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.problem import Int64, Problem

Figures = dict[str, float | int | None]

#: Unit of each figure, in the order in which figures are listed.
UNITS = {
    "utilization": "share of available GPU-hours",
    "held": "share of available GPU-hours",
    "value": "priority-weighted GPU-hours",
    "value_undecayed": "priority-weighted GPU-hours",
    "penalty": "priority-weighted GPU-hours",
    "objective": "priority-weighted GPU-hours",
    "coverage": "share of real-time demand",
    "shortfall_gpu_hours": "GPU-hours",
    "swaps": "GPUs acquired",
    "jobs_placed": "jobs",
    "jobs_finished": "jobs",
    "jobs_unplaced": "jobs",
    "jobs_set_aside": "jobs",
    "jobs_late": "jobs",
    "wait_p50_hours": "hours",
    "wait_p90_hours": "hours",
    "bound": "priority-weighted GPU-hours",
    "gap": "share of the bound",
    "cost": "price unit",
    "cost_useful": "price unit",
    "cost_idle": "price unit",
}


def percentile(values: list[float], q: float) -> float | None:
    """The sorted value at index ``min(n - 1, floor(q x n))``; None of nothing."""
    if not values:
        return None
    return sorted(values)[min(len(values) - 1, math.floor(q * len(values)))]


def figures(problem: Problem, start: Int64, size: Int64, held: Int64, swaps: int, bound: float) -> Figures:
    """All figures of a plan.

    Parameters
    ----------
    problem
        The scenario as arrays.
    start : int64[J]
        Start step of each job, -1 where it has no place.
    size : int64[J]
        GPUs of each job.
    held : int64[R, T]
        GPUs that each app holds in each step.
    swaps : int
        GPUs acquired by apps wherever the cap counts.
    bound : float
        No plan of the scenario has a larger objective.

    Returns
    -------
    dict
        Keys and units as in `UNITS`; costs only where the scenario gives a price. Percentiles are
        None where no job was placed that was not running already.
    """
    scenario = problem.scenario
    hours = scenario.horizon.step_hours
    steps = problem.steps
    placed = start >= 0
    option = problem.option(size)
    milli = [problem.option_milli[i] for i in option.tolist()]
    duration = problem.options[option, kernels.O_DURATION]
    end = np.minimum(start + duration, steps)
    gpu_steps = np.where(placed, size * (end - start), 0)
    weighted = np.where(placed, size * (problem.weight_sum[end] - problem.weight_sum[start]), 0)
    value = _dot(milli, weighted)
    plain = _dot(milli, gpu_steps) * 10**6
    late = [
        late_hours(scenario, s, d, j)
        for j, (s, d) in enumerate(zip(start.tolist(), duration.tolist(), strict=True))
    ]
    served = np.minimum(held, problem.demand)
    unmet = (problem.demand - served).sum(axis=1)
    penalty = _dot(problem.cost_units, unmet)
    demand = int(problem.demand.sum())
    batch = int(gpu_steps.sum())
    useful = batch + int(served.sum())
    available = scenario.cluster.n_available * steps
    jobs = scenario.batch
    waits = [
        start_step * hours - job.earliest_hour
        for job, start_step in zip(jobs, start.tolist(), strict=True)
        if start_step >= 0 and job.running_on is None
    ]
    n_placed = int(placed.sum())
    objective = problem.hours(value - penalty)
    found: Figures = {
        "utilization": useful / available if available else 0.0,
        "held": (batch + int(held.sum())) / available if available else 0.0,
        "value": problem.hours(value),
        "value_undecayed": problem.hours(plain),
        "penalty": problem.hours(penalty),
        "objective": objective,
        "coverage": int(served.sum()) / demand if demand else 1.0,
        "shortfall_gpu_hours": int(unmet.sum()) * scenario.horizon.step_s / 3600,
        "swaps": swaps,
        "jobs_placed": n_placed,
        "jobs_finished": int((placed & (start + duration <= steps)).sum()),
        "jobs_unplaced": len(jobs) - n_placed,
        "jobs_set_aside": len(problem.set_aside),
        "jobs_late": sum(hours_late not in (None, 0.0) for hours_late in late),
        "wait_p50_hours": percentile(waits, 0.5),
        "wait_p90_hours": percentile(waits, 0.9),
        "bound": bound,
        "gap": (bound - objective) / max(abs(bound), 1e-9),
    }
    price = scenario.cluster.price_per_gpu_hour
    if price is not None:
        found["cost"] = available * hours * price
        found["cost_useful"] = useful * hours * price
        found["cost_idle"] = (available - useful) * hours * price
    return found


def late_hours(scenario: AllocationScenario, start: int, duration: int, j: int) -> float | None:
    """Hours by which job ``j`` ends after its deadline; 0 in time, infinite unplaced, None without one."""
    deadline = scenario.batch[j].deadline_hour
    if deadline is None:
        return None
    if start < 0:
        return math.inf
    return max(0.0, (start + duration) * scenario.horizon.step_s / 3600 - deadline)


def _dot(factors: Sequence[int], amounts: Int64) -> int:
    return sum(factor * amount for factor, amount in zip(factors, amounts.tolist(), strict=True))
