"""Why a job starts when it does: one sentence from the finished grid."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan

#: Holders named in a sentence; more are counted.
NAMED = 3


def why(plan: "Plan", j: int) -> str:
    """What batch job ``j`` waits for under the plan.

    For a job that starts as early as it may, where it runs. For a late or unplaced one: what holds
    the place that would cost least to clear at its earliest step, and the largest block that was
    free for its whole duration before it starts (or ever).
    """
    scenario = plan.scenario
    job = scenario.batch[j]
    name = shorten(job.name)
    hours = scenario.horizon.step_hours
    if job.name in plan.set_aside:
        return f"{name} is set aside: {plan.set_aside[job.name]}."
    start = int(plan.start[j])
    where = _gpus(int(plan.first_gpu[j]), job.gpus)
    length = scenario.steps_of(job.hours)
    if job.running_on is not None:
        return f"{name} was running already on {where} and stays there for {_hours(length * hours)} more."
    earliest = scenario.steps_of(job.earliest_hour)
    if start == earliest:
        return f"{name} starts at hour {earliest * hours:g}, as early as it may, on {where}."
    last = scenario.horizon.steps - (length if scenario.rules.must_finish else 1)
    until = start if start >= 0 else last + 1
    block, at = _largest_free(plan, j, earliest, until, length)
    if start >= 0:
        head = (
            f"{name} waits {_hours((start - earliest) * hours)}, from hour {earliest * hours:g} "
            f"to hour {start * hours:g}, then runs on {where}"
        )
        span = "Before that"
    else:
        head = f"{name} finds no place of {_count(job.gpus)} for {_hours(length * hours)} in the horizon"
        span = f"From hour {earliest * hours:g} on"
    if block >= job.gpus:
        # the policy passed a free place over: by its order, or for another job's sake
        return (
            f"{head}. A free block of {_count(block)} is left at hour {at * hours:g} in the finished plan, "
            f"which {plan.policy} does not use for it."
        )
    free = "no GPU was" if block == 0 else f"the largest block was {_count(block)} (hour {at * hours:g})"
    if block:
        sentence = f"{span}, of what stays free for {_hours(length * hours)}, {free}"
    else:
        sentence = f"{span}, {free} free for {_hours(length * hours)} at a stretch"
    return f"{head}. {sentence}; {_holders(plan, j, earliest, length)}."


def _largest_free(plan: "Plan", j: int, first: int, until: int, length: int) -> tuple[int, int]:
    """Largest block in which a job of any size could start before ``until``, and the step of it."""
    best, at = 0, first
    free = np.concatenate(
        [np.zeros((plan.grid.shape[0], 1), np.int32), np.cumsum(plan.grid == -1, axis=1)], axis=1
    )
    steps = plan.grid.shape[1]
    for step in range(first, until):
        end = min(steps, step + length)
        whole = (free[:, end] - free[:, step]) == end - step
        edges = np.flatnonzero(np.diff(np.concatenate([[False], _cut(plan, whole), [False]]).astype(np.int8)))
        run = int((edges[1::2] - edges[::2]).max(initial=0))
        if run > best:
            best, at = run, step
    return best, at


def _cut(plan: "Plan", free: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Under the node rule, a gap between nodes so that no run is counted across them."""
    scenario = plan.scenario
    node = scenario.cluster.node_size
    if not scenario.rules.within_node or node >= free.size:
        return free
    return np.insert(free, np.arange(node, free.size, node), False)


def _holders(plan: "Plan", j: int, step: int, length: int) -> str:
    """Who holds the block that would be easiest to clear at ``step``."""
    scenario = plan.scenario
    size = scenario.batch[j].gpus
    cells = plan.grid[:, step : step + length]
    busy = np.concatenate([[0], np.cumsum((cells != -1).sum(axis=1))])
    blocked = np.concatenate([[0], np.cumsum((cells == -2).any(axis=1))])
    first = np.arange(cells.shape[0] - size + 1)
    cost = busy[first + size] - busy[first]
    cost = np.where(blocked[first + size] - blocked[first] > 0, cells.size + 1, cost)
    node = scenario.cluster.node_size
    if scenario.rules.within_node:
        fits = (first % node + size <= node) if size <= node else (first % node == 0)
        cost = np.where(fits, cost, cells.size + 2)
    p = int(cost.argmin())
    block = cells[p : p + size]
    names = []
    n_jobs = len(scenario.batch)
    holders, counts = np.unique(block[block >= 0], return_counts=True)
    for holder in holders[np.argsort(-counts, kind="stable")].tolist():
        gpus = int((block == holder).any(axis=1).sum())
        last = step + int(np.flatnonzero((block == holder).any(axis=0)).max()) + 1
        name = scenario.batch[holder].name if holder < n_jobs else scenario.realtime[holder - n_jobs].name
        held = "reserved by" if holder >= n_jobs and plan.reservation else "held by"
        names.append(f"{_count(gpus)} {held} {shorten(name)} until hour {last * scenario.horizon.step_hours:g}")
    if not names:
        return f"its place at hour {step * scenario.horizon.step_hours:g} was free"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    when = step * scenario.horizon.step_hours
    return (
        f"the place easiest to clear at hour {when:g}, {_gpus(p, size)}, has {', '.join(names[:NAMED])}{more}"
    )


def _gpus(first: int, n: int) -> str:
    return f"GPU {first}" if n == 1 else f"GPUs {first}-{first + n - 1}"


def _count(n: int) -> str:
    return "1 GPU" if n == 1 else f"{n} GPUs"


def _hours(hours: float) -> str:
    return f"{hours:g} h"
