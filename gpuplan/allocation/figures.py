"""What each figure means, in one place: from an assignment to the numbers of a plan.

Value and penalty are added as exact integers and divided once.
"""

import math
from collections.abc import Sequence

import numpy as np

from gpuplan.allocation import kernels
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.problem import Int64, Problem

Figures = dict[str, float | int | None]

#: Unit and definition of each figure, in the order in which figures are listed.
_DEFINED = {
    "utilization": (
        "share of available GPU-hours",
        "Useful GPU-hours / available GPU-hours. A GPU reserved for traffic is useful only up to the demand of that "
        "step: reserved but idle is not useful. Unavailable GPUs do not count.",
    ),
    "held": ("share of available GPU-hours", "GPU-hours held by anyone / available GPU-hours."),
    "value": (
        "priority-weighted GPU-hours",
        "Sum of GPU-hours of batch work x priority x decay; the decay of a step is 0.5 ^ (its start in hours / "
        "half_life_hours), to six decimals: work done early is worth more.",
    ),
    "value_undecayed": ("priority-weighted GPU-hours", "The same without decay."),
    "penalty": (
        "priority-weighted GPU-hours",
        "Sum of GPU-hours of unmet traffic x priority x shortfall_penalty.",
    ),
    "objective": ("priority-weighted GPU-hours", "Value - penalty: what aware, search and exact make large."),
    "coverage": (
        "share of real-time demand",
        "Traffic served / traffic wanted, in GPU-hours; 1 without traffic.",
    ),
    "shortfall_gpu_hours": ("GPU-hours", "Traffic that was not served."),
    "swaps": (
        "GPUs acquired",
        "GPUs acquired by real-time apps where the swap cap counts; a reservation has none.",
    ),
    "jobs_placed": ("jobs", "Batch jobs with a place."),
    "jobs_finished": ("jobs", "Batch jobs whose last step is inside the horizon."),
    "jobs_unplaced": ("jobs", "Batch jobs without a place, those set aside included."),
    "jobs_set_aside": ("jobs", "Batch jobs that could never have a place, each with its reason."),
    "jobs_late": ("jobs", "Jobs with a deadline that miss it or have no place."),
    "wait_p50_hours": (
        "hours",
        "Start - earliest_hour of placed jobs that were not running already: the sorted value at index "
        "min(n - 1, floor(0.5 x n)).",
    ),
    "wait_p90_hours": ("hours", "The same at index min(n - 1, floor(0.9 x n))."),
    "bound": ("priority-weighted GPU-hours", "No legal plan has a larger objective."),
    "gap": ("share of the bound", "(bound - objective) / max(abs(bound), 1e-9)."),
    "cost": ("price unit", "Price x available GPU-hours, where a price is given."),
    "cost_useful": ("price unit", "The part of the cost of useful GPU-hours."),
    "cost_idle": ("price unit", "The rest of the cost."),
}

#: Unit of each figure.
UNITS = {name: unit for name, (unit, _) in _DEFINED.items()}

#: What each figure is, as a sentence.
MEANINGS = {name: meaning for name, (_, meaning) in _DEFINED.items()}


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
