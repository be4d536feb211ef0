"""Why a job starts when it does: one sentence from the finished grid."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.allocation.model import AllocationScenario, BatchJob
from gpuplan.allocation.problem import compile_problem
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan

Grid = npt.NDArray[np.int32]

#: Cells of a grid that no job or app holds, and that nobody may hold.
NOBODY, UNAVAILABLE = -1, -2

#: Holders named in a sentence; more are counted.
NAMED = 3


def why(plan: "Plan", j: int) -> str:
    """What batch job ``j`` waits for under the plan.

    For a job that starts as early as it may, where it runs. For a late or unplaced one: what holds
    the place that would cost least to clear at its earliest step, and the largest block that was
    free for its whole duration before it starts (or ever). For a job with a range of sizes the place looked for is
    that of the smallest size that fits the cluster.
    """
    scenario = plan.scenario
    job = scenario.batch[j]
    name = shorten(job.name)
    hours = scenario.horizon.step_hours
    if job.name in plan.set_aside:
        return f"{name} is set aside: {plan.set_aside[job.name]}."
    start = int(plan.start[j])
    where = _gpus(int(plan.first_gpu[j]), int(plan.size[j])) + _of_range(job, int(plan.size[j]))
    problem = compile_problem(scenario)
    size, length = int(problem.size[j]), int(problem.duration[j])
    if job.running_on is not None:
        return f"{name} was running already on {where} and stays there for {_hours(length * hours)} more."
    earliest = scenario.steps_of(job.earliest_hour)
    if start == earliest:
        return f"{name} starts at hour {earliest * hours:g}, as early as it may, on {where}."
    last = scenario.horizon.steps - (length if scenario.rules.must_finish else 1)
    until = start if start >= 0 else last + 1
    # without the job itself: what it holds later would be free for it earlier
    grid = np.where(plan.grid == j, NOBODY, plan.grid)
    block, at = _largest_free(scenario, grid, size, range(earliest, until), length)
    moments = range(earliest, start if start >= 0 else scenario.horizon.steps)
    once, once_at = _largest_free(scenario, grid, size, moments, 1)
    if start >= 0:
        head = (
            f"{name} waits {_hours((start - earliest) * hours)}, from hour {earliest * hours:g} "
            f"to hour {start * hours:g}, then runs on {where}"
        )
        span = "Before that"
    else:
        least = "" if len(job.sizes) == 1 else f" (the smallest of {job.gpus} to {job.max_gpus})"
        head = f"{name} finds no place of {_count(size)}{least} for {_hours(length * hours)} in the horizon"
        span = f"From hour {earliest * hours:g} on"
    if block >= size:
        # the policy passed a free place over: by its order, or for another job's sake
        return (
            f"{head}. A free block of {_count(block)} is left at hour {at * hours:g} in the finished plan, "
            f"which {plan.policy} does not use for it."
        )
    if block:
        free = f"of what stays free for {_hours(length * hours)}, the largest block was {_count(block)}"
        free += f" (hour {at * hours:g})"
    elif once:
        free = f"no GPU was free for {_hours(length * hours)} at a stretch; the largest block free at any"
        free += f" moment was {_count(once)} (hour {once_at * hours:g})"
    else:
        free = "no GPU was ever free"
    return f"{head}. {span}, {free}; {_holders(plan, grid, size, earliest, length)}."


def _largest_free(
    scenario: AllocationScenario, grid: Grid, size: int, starts: range, length: int
) -> tuple[int, int]:
    """Largest block free for ``length`` steps from one of ``starts``, and that step (the first one)."""
    best, at = 0, starts.start
    steps = grid.shape[1]
    free = np.concatenate([np.zeros((grid.shape[0], 1), np.int64), np.cumsum(grid == NOBODY, axis=1)], axis=1)
    for step in starts:
        end = min(steps, step + length)
        whole = (free[:, end] - free[:, step]) == end - step
        edges = np.flatnonzero(np.diff(np.concatenate([[0], _under_node_rule(scenario, whole, size), [0]])))
        run = int((edges[1::2] - edges[::2]).max(initial=0))
        if run > best:
            best, at = run, step
    return best, at


def _under_node_rule(
    scenario: AllocationScenario, free: npt.NDArray[np.bool_], size: int
) -> npt.NDArray[np.int64]:
    """Free GPUs as 0 and 1 with a gap between nodes; for a block beyond one node, of whole nodes only."""
    node = scenario.cluster.node_size
    if not scenario.rules.within_node or node >= free.size:
        return free.astype(np.int64)
    if size > node:
        full = np.zeros_like(free)
        nodes = free[: free.size // node * node].reshape(-1, node).all(axis=1)
        full[: nodes.size * node] = np.repeat(nodes, node)
        return full.astype(np.int64)
    return np.insert(free, np.arange(node, free.size, node), False).astype(np.int64)


def _holders(plan: "Plan", grid: Grid, size: int, step: int, length: int) -> str:
    """Who holds the block of ``size`` GPUs that would be easiest to clear at ``step``."""
    scenario = plan.scenario
    cells = grid[:, step : step + length]
    busy = np.concatenate([[0], np.cumsum((cells != NOBODY).sum(axis=1))])
    blocked = np.concatenate([[0], np.cumsum((cells == UNAVAILABLE).any(axis=1))])
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
        there = (grid[p : p + size, step:] == holder).any(axis=0)
        last = int(np.flatnonzero(there[: block.shape[1]]).max())
        last += step + int(np.argmin(np.append(there[last:], False)))
        name = scenario.batch[holder].name if holder < n_jobs else scenario.realtime[holder - n_jobs].name
        held = "reserved by" if holder >= n_jobs and plan.reservation else "held by"
        names.append(
            f"{_count(gpus)} {held} {shorten(name)} until hour {last * scenario.horizon.step_hours:g}"
        )
    if not names:
        return f"its place at hour {step * scenario.horizon.step_hours:g} was free"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    when = step * scenario.horizon.step_hours
    return (
        f"the place easiest to clear at hour {when:g}, {_gpus(p, size)}, has {', '.join(names[:NAMED])}{more}"
    )


def _gpus(first: int, n: int) -> str:
    return f"GPU {first}" if n == 1 else f"GPUs {first}-{first + n - 1}"


def _of_range(job: BatchJob, size: int) -> str:
    """Which of its sizes that is, where there is a choice."""
    if len(job.sizes) == 1:
        return ""
    return (
        f" ({size} of {job.gpus} to {job.max_gpus} GPUs, {_hours(round(job.hours_on(size), 2))} on so many)"
    )


def _count(n: int) -> str:
    return "1 GPU" if n == 1 else f"{n} GPUs"


def _hours(hours: float) -> str:
    return f"{hours:g} h"
