"""The figures of a plan, of a record: exact times in place of steps, names as in `gpuplan.allocation.figures`."""

import numpy as np
import numpy.typing as npt

from gpuplan.allocation.figures import UNITS, Figures, percentile
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.problem import Problem
from gpuplan.fairshare.ledger import gpu_seconds
from gpuplan.fairshare.model import HOUR, Int64
from gpuplan.traces.as_it_was_day_match import DayStretches


def figures_of_day(problem: Problem, found: DayStretches, held: Int64 | None) -> Figures:
    """The figures of a plan, of a record; see `gpuplan.allocation.figures`."""
    day = problem.scenario
    batch, hours, step_s = day.batch, day.horizon.step_hours, day.horizon.step_s
    seconds = found.end_s - found.start_s
    available = day.cluster.n_available * problem.steps * hours
    worked = gpu_seconds(found.gpus, seconds) / HOUR
    priority = np.array([job.priority for job in batch])[found.job]
    decay = np.interp(
        np.stack((found.start_s, found.end_s)) / step_s,
        np.arange(problem.steps + 1),
        problem.weight_sum / 1e6,
    )
    value = float((priority * found.gpus * (decay[1] - decay[0])).sum()) * hours
    first = _first_starts(found, len(batch))
    done_s = np.bincount(found.job, seconds, len(batch))
    needed = np.array([job.hours * HOUR for job in batch])
    in_time = found.over_s <= problem.steps * step_s
    finished = (first >= 0) & (in_time | (done_s >= needed - 0.5) | _fills_the_rest(problem, first, needed))
    waits = [
        max(0.0, start / HOUR - job.earliest_hour)
        for job, start in zip(batch, first.tolist(), strict=True)
        if start >= 0 and job.running_on is None
    ]
    placed = int((first >= 0).sum())
    figures: Figures = dict.fromkeys(UNITS)
    figures |= {
        "value": value,
        "value_undecayed": float((priority * found.gpus * seconds).sum()) / HOUR,
        "jobs_placed": placed,
        "jobs_finished": int(finished.sum()),
        "jobs_unplaced": len(batch) - placed,
        "jobs_set_aside": len(problem.set_aside),
        "jobs_late": _late(day, found, first),
        "wait_p50_hours": percentile(waits, 0.5),
        "wait_p90_hours": percentile(waits, 0.9),
    }
    if held is not None:
        figures |= _with_services(problem, held, worked, available, value)
    price = day.cluster.price_per_gpu_hour
    if price is None:
        return {name: figure for name, figure in figures.items() if not name.startswith("cost")}
    figures["cost"] = available * price
    useful = figures["utilization"]
    if useful is not None:
        figures |= {"cost_useful": useful * available * price, "cost_idle": (1 - useful) * available * price}
    return figures


def _with_services(problem: Problem, held: Int64, worked: float, available: float, value: float) -> Figures:
    """What cannot be told without knowing the GPUs of the apps."""
    hours = problem.scenario.horizon.step_hours
    served = np.minimum(held, problem.demand)
    unmet = (problem.demand - served).sum(axis=1)
    demand = int(problem.demand.sum())
    costs = sum(cost * int(n) for cost, n in zip(problem.cost_units, unmet.tolist(), strict=True))
    penalty = problem.hours(costs)
    return {
        "utilization": (worked + int(served.sum()) * hours) / available if available else 0.0,
        "held": (worked + int(held.sum()) * hours) / available if available else 0.0,
        "coverage": int(served.sum()) / demand if demand else 1.0,
        "shortfall_gpu_hours": int(unmet.sum()) * hours,
        "penalty": penalty,
        "objective": value - penalty,
    }


def _fills_the_rest(problem: Problem, first: Int64, needed: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Jobs that were cut to what is left of the day, and began within the step from which they are known, bool[J].

    A plan may begin them at the start of that step, before they were submitted, and has them finished at midnight.
    """
    step_s = problem.scenario.horizon.step_s
    earliest = np.array([job.earliest_hour * HOUR for job in problem.scenario.batch])
    cut = np.abs(earliest + needed - problem.steps * step_s) < 1
    return np.asarray(cut & (first < earliest + step_s))


def _first_starts(found: DayStretches, n: int) -> Int64:
    """First start of each job, seconds; -1: it did not start in the horizon."""
    first = np.full(n, -1, np.int64)
    first[found.job[::-1]] = found.start_s[::-1]
    return first


def _late(day: AllocationScenario, found: DayStretches, first: Int64) -> int:
    """Jobs with a deadline that they missed, those that did not start among them."""
    return sum(
        job.deadline_hour is not None and bool(first[j] < 0 or found.over_s[j] / HOUR > job.deadline_hour)
        for j, job in enumerate(day.batch)
    )
