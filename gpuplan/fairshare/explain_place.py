"""Where a waiting job would fit: free GPUs and blocks against its need, and when declared limits make room."""

import numpy as np

from gpuplan.fairshare.blocks import fits, largest_block
from gpuplan.fairshare.instant import Instant
from gpuplan.fairshare.model import NEVER, Int64
from gpuplan.fairshare.words import gpus_text, span

#: Policies under which a later job starts only if it does not delay an earlier one.
BACKFILL = ("easy", "conservative", "fair-tree")


def where(now: Instant, j: int) -> str:
    """Free GPUs and blocks of the pools that it accepts, against its need."""
    problem = now.run.problem
    pools, gpus = problem.scenario.pools, int(problem.jobs.gpus[j])
    one_node = bool(problem.jobs.one_node[j])
    mine = [p for p in range(len(pools)) if int(problem.mask[j]) >> p & 1]
    nodes = np.isin(problem.node_pool, mine)
    free, draining = now.free[nodes], int(now.closed[nodes].sum())
    total = int(free.sum())
    kinds = " or ".join(sorted({pools[p].gpu for p in mine} - {""}))
    said = f"{gpus_text(total, kinds)} {'is' if total == 1 else 'are'} free"
    somewhere = any(
        fits(now.free[problem.node_pool == p], pools[p].gpus_per_node, gpus, one_node) for p in mine
    )
    if all(pools[p].nodes == 1 for p in mine):
        said += f", it wants {gpus}"
    else:
        said += f", the largest free block on one node is {largest_block(free)}, "
        said += _need(now, mine, gpus, one_node)
    if draining:
        said += f"; {draining} {'node takes' if draining == 1 else 'nodes take'} no work (drain or repair)"
    if not somewhere:
        return f"{said}. {_when(now, j, mine)}"
    if now.run.policy in BACKFILL:
        return f"{said}. It would fit; it might delay what waits before it."
    return f"{said}. It would fit; it is not its turn."


def _need(now: Instant, mine: list[int], gpus: int, one_node: bool) -> str:
    """What it wants, in nodes."""
    problem = now.run.problem
    sizes = sorted({problem.scenario.pools[p].gpus_per_node for p in mine})
    if one_node or gpus <= sizes[-1]:
        return f"it wants {gpus} on one node"
    size = sizes[-1]
    empty = int((now.free[np.isin(problem.node_pool, mine)] == size).sum())
    whole, rest = divmod(gpus, size)
    more = f" and {rest} on one more" if rest else ""
    return f"it wants {whole} whole nodes of {size}{more}, {empty} {'is' if empty == 1 else 'are'} empty"


def _when(now: Instant, j: int, mine: list[int]) -> str:
    """When it would fit by the declared limits of what runs, if nobody else started."""
    problem = now.run.problem
    ends = _declared_ends(now)
    soonest = min((_free_in(now, ends, p, int(problem.jobs.gpus[j])) for p in mine), default=NEVER)
    if soonest >= NEVER:
        return "Declared limits do not tell when it will fit."
    return f"By declared limits it fits in {span(soonest - now.t)} at the latest, if nobody else starts."


def _declared_ends(now: Instant) -> Int64:
    """When each place of what runs is given back at the latest, int64[P]; `NEVER` where no limit tells."""
    rows, jobs, t = now.run.stretches, now.run.problem.jobs, now.t
    ends = np.full(len(rows), NEVER, np.int64)
    for s in now.running.tolist():
        j = rows.job[s]
        limit = int(jobs.limit_s[j])
        if limit < NEVER:
            # a job that goes on has part of its limit behind it
            done = int(rows.kept_s[:s][rows.job[:s] == j].sum())
            ends[s] = max(t, int(rows.start_s[s] + rows.overhead_s[s]) + limit - done)
    return ends[rows.place_stretch]


def _free_in(now: Instant, ends: Int64, pool: int, gpus: int) -> int:
    """When ``gpus`` GPUs of a pool are free by these ends: on one node, or on whole nodes and one more."""
    problem, rows = now.run.problem, now.run.stretches
    size = problem.scenario.pools[pool].gpus_per_node
    whole, rest = (0, gpus) if gpus <= size else divmod(gpus, size)
    running = np.zeros(len(rows), bool)
    running[now.running] = True
    held = np.flatnonzero(running[rows.place_stretch] & (problem.node_pool[rows.place_node] == pool))
    held = held[np.lexsort((ends[held], rows.place_node[held]))]
    empty, enough = {}, {}
    for node in np.flatnonzero((problem.node_pool == pool) & ~now.closed).tolist():
        here = held[rows.place_node[held] == node]
        empty[node] = int(ends[here].max(initial=now.t))
        free = now.free[node] + np.cumsum(rows.place_gpus[here])
        k = int(np.searchsorted(free, rest))
        short = rest > now.free[node]
        enough[node] = now.t if not short else int(ends[here[k]]) if k < len(here) else NEVER
    first = sorted(empty, key=lambda node: (empty[node], node))[:whole]
    if len(first) < whole:
        return NEVER
    others = [enough[node] for node in enough if node not in first] if rest else [now.t]
    return max([empty[node] for node in first] + [min(others, default=NEVER)])
