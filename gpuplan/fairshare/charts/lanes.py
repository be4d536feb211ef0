"""Where work is drawn: a lane for every GPU, taken from the lowest free one of its node."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.model import NEVER, Int64
from gpuplan.fairshare.raw import PREEMPTED

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run

#: States of occupancy, as a Gantt draws them.
PROTECTED, PAST_MINIMUM, UNALLOCATED, IN_REPAIR = range(4)


def first_rows(node_gpus: Int64) -> Int64:
    """First row (GPU) of each node where nodes stand below each other, int64[N + 1]."""
    return np.concatenate(([0], np.cumsum(node_gpus))).astype(np.int64)


def lanes(run: "Run") -> tuple[Int64, Int64, Int64]:
    """Rows of GPUs that each stretch is drawn on.

    A run knows how many GPUs of a node a stretch has, not which: it is drawn on the lowest that are free when it
    starts.

    Returns
    -------
    tuple
        ``stretch, low, high`` (rows over all nodes, high exclusive): int64[n], neighbouring rows joined.
    """
    stretches = run.raw.stretches
    starts = first_rows(run.problem.node_gpus).tolist()
    # One whole number per node: a bit for every free GPU.
    free = [(1 << gpus) - 1 for gpus in run.problem.node_gpus.tolist()]
    taken: dict[int, int] = {}
    stretch_of, nodes = stretches.place_stretch, stretches.place_node.tolist()
    counts = stretches.place_gpus.tolist()
    found: list[tuple[int, int, int]] = []
    for place, comes in _events(stretches.start_s[stretch_of], stretches.end_s[stretch_of]):
        node = nodes[place]
        if not comes:
            free[node] |= taken.pop(place, 0)
            continue
        mine, rest = 0, free[node]
        for _ in range(counts[place]):
            lowest = rest & -rest
            mine |= lowest
            rest ^= lowest
        free[node], taken[place] = rest, mine
        found += [(int(stretch_of[place]), starts[node] + a, starts[node] + b) for a, b in _runs(mine)]
    return _joined(np.array(found, np.int64).reshape(-1, 3))


def _events(start_s: Int64, end_s: Int64) -> list[tuple[int, bool]]:
    """Places in order of time, ends before starts of one instant; places of no length are left out."""
    lasting = np.flatnonzero(end_s > start_s)
    place = np.concatenate((lasting, lasting))
    at = np.concatenate((end_s[lasting], start_s[lasting]))
    comes = np.repeat((False, True), len(lasting))
    order = np.lexsort((place, comes, at))
    return list(zip(place[order].tolist(), comes[order].tolist(), strict=True))


def _runs(bits: int) -> list[tuple[int, int]]:
    """Runs of neighbouring ones in a number: (first, one after the last)."""
    runs, at = [], 0
    while bits:
        skip = (bits & -bits).bit_length() - 1
        bits >>= skip
        length = (~bits & (bits + 1)).bit_length() - 1
        runs.append((at + skip, at + skip + length))
        bits >>= length
        at += skip + length
    return runs


def _joined(rows: Int64) -> tuple[Int64, Int64, Int64]:
    """Rows of one stretch that lie next to each other (whole nodes) become one."""
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:, 0] != rows[:-1, 0]) | (rows[1:, 1] != rows[:-1, 2])
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(rows)) - 1 if len(rows) else heads
    return rows[heads, 0], rows[heads, 1], rows[tails, 2]


def protected_ends(run: "Run") -> Int64:
    """Instant from which each stretch may be interrupted, within its start and its end; int64[S].

    The start for unallocated work; the end where it is protected throughout. A policy without
    protection leaves `protected_until_s` at the start.
    """
    stretches = run.raw.stretches
    until = np.where(stretches.allocated, stretches.protected_until_s, stretches.start_s)
    found: Int64 = np.clip(until, stretches.start_s, stretches.end_s)
    return found


def interrupts(run: "Run") -> bool:
    """Whether stretches of this run were ever protected, unallocated or interrupted: else none can be told apart."""
    stretches = run.raw.stretches
    past = (
        (stretches.protected_until_s > stretches.start_s)
        | ~stretches.allocated
        | (stretches.outcome == PREEMPTED)
    )
    return bool(past.any())


def repairs(run: "Run") -> Int64:
    """Repairs as rows of node, start and end (at most the end of the run); int64[n, 3]."""
    raw = run.raw
    nodes = np.array([drain.node for drain in run.scenario.drains], np.int64)
    begun = raw.repair_start_s < min(NEVER, raw.end_s)
    return np.column_stack(
        (nodes[begun], raw.repair_start_s[begun], np.minimum(raw.repair_end_s, raw.end_s)[begun])
    )
