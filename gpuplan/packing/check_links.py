"""Rules of loads: how long they take, and where they come from. Part of `gpuplan.packing.check`."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import sentences
from gpuplan.packing.check_node import copy_named, failed_loads
from gpuplan.packing.model import NEVER, SECOND, Int64
from gpuplan.packing.spread import gpus_of

if TYPE_CHECKING:
    from gpuplan.packing.model import Gpus
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack


def violations(problem: "Problem", raw: "RawPack") -> list[str]:
    """Broken rules of loads, a sentence each."""
    return _sources(problem, raw) + _transfers(problem, raw)


def _sources(problem: "Problem", raw: "RawPack") -> list[str]:
    """A model comes from disk until a first copy of it was ready; always where nothing is kept in host memory."""
    rows = raw.copies
    # transfers that were under way are over before others begin at an instant; one that takes no time may come later
    ready = np.where(rows.for_task < 0, -2, 2 * rows.ready_us + (rows.load_us == rows.ready_us))
    order = np.lexsort((ready, rows.model))
    first = np.append(True, np.diff(rows.model[order]) != 0)[: len(order)]
    there = np.full(len(problem.needed), 2 * NEVER, np.int64)
    there[rows.model[order[first]]] = ready[order[first]]
    # for the first of a model itself, the next one
    others = there[rows.model]
    others[order[first]] = np.append(np.where(first, 2 * NEVER, ready[order]), 2 * NEVER)[1:][first]
    known = (rows.load_us < NEVER) & (rows.for_task >= 0)
    if not problem.scenario.gpus.host_cache:
        wrong = known & (rows.from_disk != 1)
    else:
        from_disk = rows.from_disk == 1
        wrong = known & np.where(from_disk, 2 * rows.load_us >= others, rows.load_us < others // 2)
    wrong = wrong | (~known & (rows.from_disk != 0))
    return sentences(
        np.flatnonzero(wrong),
        lambda c: (
            f"{copy_named(problem, raw, c)} is said to come from {'disk' if rows.from_disk[c] else 'host memory'}."
        ),
    )


def _transfers(problem: "Problem", raw: "RawPack") -> list[str]:
    """A load takes as long as the shares of the links say, until the part of each of its GPUs has come."""
    rows = raw.copies
    loads = (rows.load_us < NEVER) & (rows.for_task >= 0) & ~failed_loads(raw)
    due = _ends(problem, raw, np.flatnonzero(loads))
    due[due >= problem.until_us] = NEVER
    return sentences(
        np.flatnonzero(loads & (rows.ready_us != due)),
        lambda c: (
            f"{copy_named(problem, raw, c)} loads from {rows.load_us[c]} to {rows.ready_us[c]} us, which is "
            "not what its share of the links takes."
        ),
    )


def _ends(problem: "Problem", raw: "RawPack", loads: Int64) -> Int64:
    """When the last part of each of these copies has come, if the loads start when they do, int64[C].

    The transfers that run share the link of their GPU equally, and those from disk the disk; each ends with the first
    whole microsecond at which nothing of it is left, and frees its links then.
    """
    rows = raw.copies
    found: dict[int, int] = {}
    order = loads[np.argsort(rows.load_us[loads], kind="stable")]
    columns = (order, rows.load_us[order], problem.weights[rows.model[order]], rows.from_disk[order])
    coming = list(zip(*(column.tolist() for column in columns), strict=True))[::-1]
    running: list[tuple[int, int, int, int]] = []  # copy, GPU, from disk, bytes / 1,000,000 that are left
    now = 0
    while coming or running:
        rates = _rates(problem.scenario.gpus, running)
        then = coming[-1][1] if coming else NEVER * NEVER
        for row, rate in zip(running, rates, strict=True):
            then = min(then, now - -row[3] // rate)
        past, now = then - now, then
        left = []
        for (copy, gpu, disk, before), rate in zip(running, rates, strict=True):
            if before > rate * past:
                left.append((copy, gpu, disk, before - rate * past))
            else:
                found[copy] = now  # of several parts the last one stays
        running = left
        while coming and coming[-1][1] == now:
            copy, _, size, disk = coming.pop()
            running += [(copy, gpu, disk, size * SECOND) for gpu in gpus_of(rows, copy)]
    ends = np.full(len(rows), NEVER, np.int64)
    ends[list(found)] = np.minimum(list(found.values()), NEVER).astype(np.int64)
    return ends


def _rates(gpus: "Gpus", running: list[tuple[int, int, int, int]]) -> list[int]:
    """Bytes per second of each of the transfers that run."""
    if len(running) == 1:
        both = (gpus.host_bytes_per_s, gpus.disk_bytes_per_s)
        return [max(1, min(both) if running[0][2] else both[0])]
    here = Counter(row[1] for row in running)
    from_disk = sum(row[2] for row in running)
    rates = []
    for _, gpu, disk, _ in running:
        rate = gpus.host_bytes_per_s // here[gpu]
        rates.append(max(1, min(rate, gpus.disk_bytes_per_s // from_disk) if disk else rate))
    return rates
