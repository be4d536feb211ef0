"""The tables of a plan as data frames."""

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from gpuplan.allocation.model import REALTIME_KIND

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan


def stretches(plan: "Plan") -> pd.DataFrame:
    """A row per GPU and unbroken stretch of one job or app: ``job, kind, gpu, start_step, end_step``.

    Batch jobs in file order, then apps in file order; within each by start, then GPU. ``end_step``
    is exclusive and at most the number of steps.
    """
    grid = plan.grid
    changes = np.ones_like(grid, dtype=bool)
    changes[:, 1:] = grid[:, 1:] != grid[:, :-1]
    gpu, start = np.nonzero(changes)
    holder = grid[gpu, start]
    # the next change in row-major order lies in the same GPU, or the row ends
    follows = np.append(gpu[1:] == gpu[:-1], False)
    end = np.where(follows, np.append(start[1:], 0), grid.shape[1])
    used = holder >= 0
    holder, gpu, start, end = holder[used], gpu[used], start[used], end[used]
    order = np.lexsort((gpu, start, holder))
    scenario = plan.scenario
    names = np.array([job.name for job in scenario.batch] + [app.name for app in scenario.realtime], object)
    kinds = np.array([job.kind for job in scenario.batch] + [REALTIME_KIND] * len(scenario.realtime), object)
    return pd.DataFrame(
        {
            "job": names[holder[order]],
            "kind": kinds[holder[order]],
            "gpu": gpu[order].astype(np.int64),
            "start_step": start[order].astype(np.int64),
            "end_step": end[order].astype(np.int64),
        }
    )


def jobs(plan: "Plan") -> pd.DataFrame:
    """A row per batch job in file order; steps and hours are missing where it has no place.

    ``gpus`` and ``hours`` are those of the size that the plan chose (without a place: the smallest that fits).
    """
    scenario = plan.scenario
    hours = scenario.horizon.step_hours
    rows = []
    for j, job in enumerate(scenario.batch):
        start, end = int(plan.start[j]), int(plan.end[j])
        placed = start >= 0
        running = job.running_on is not None
        state = "set aside" if job.name in plan.set_aside else "unplaced"
        if placed:
            state = "running" if running else "placed"
        late = plan.late_hours(j)
        rows.append(
            {
                "job": job.name,
                "kind": job.kind,
                "gpus": int(plan.size[j]),
                "hours": job.hours_on(int(plan.size[j])),
                "priority": job.priority,
                "state": state,
                "first_gpu": int(plan.first_gpu[j]) if placed else None,
                "start_step": start if placed else None,
                "end_step": end if placed else None,
                "start_hour": start * hours if placed else math.nan,
                "end_hour": end * hours if placed else math.nan,
                "earliest_hour": job.earliest_hour,
                "wait_hours": start * hours - job.earliest_hour if placed and not running else math.nan,
                "finished": placed and start + int(plan.duration[j]) <= scenario.horizon.steps,
                "late_hours": math.nan if late is None else late,
            }
        )
    frame = pd.DataFrame(rows, columns=_JOB_COLUMNS)
    return frame.astype({name: "Int64" for name in ("first_gpu", "start_step", "end_step")})


_JOB_COLUMNS = [
    "job",
    "kind",
    "gpus",
    "hours",
    "priority",
    "state",
    "first_gpu",
    "start_step",
    "end_step",
    "start_hour",
    "end_hour",
    "earliest_hour",
    "wait_hours",
    "finished",
    "late_hours",
]


def steps(plan: "Plan") -> pd.DataFrame:
    """A row per step; ``available = batch + realtime_useful + realtime_idle + free`` GPUs."""
    scenario = plan.scenario
    grid, n_jobs = plan.grid, len(scenario.batch)
    batch = ((grid >= 0) & (grid < n_jobs)).sum(axis=0)
    useful, held = plan.served.sum(axis=0), plan.held.sum(axis=0)
    available = scenario.cluster.n_available
    number = np.arange(scenario.horizon.steps)
    return pd.DataFrame(
        {
            "step": number,
            "hour": number * scenario.horizon.step_hours,
            "available": available,
            "batch": batch,
            "realtime_useful": useful,
            "realtime_idle": held - useful,
            "free": available - batch - held,
        }
    )


def apps(plan: "Plan") -> pd.DataFrame:
    """A row per app and step: GPUs in demand, held, served (useful) and unmet."""
    scenario = plan.scenario
    n_steps, names = scenario.horizon.steps, [app.name for app in scenario.realtime]
    number = np.tile(np.arange(n_steps), len(names))
    return pd.DataFrame(
        {
            "app": np.repeat(np.array(names, object), n_steps),
            "step": number,
            "hour": number * scenario.horizon.step_hours,
            "demand": plan.demand.ravel(),
            "held": plan.held.ravel(),
            "served": plan.served.ravel(),
            "unmet": (plan.demand - plan.served).ravel(),
        }
    )
