"""Rules of slots and memory. Part of `gpuplan.packing.check`."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import named, sentences
from gpuplan.packing.check_node import condemned, copy_named, failed_loads
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import NEVER, Int64
from gpuplan.packing.progress import steps
from gpuplan.packing.raw import LOAD, OUT_OF_MEMORY, RESTORE, RUN, SAVE

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack


def violations(problem: "Problem", raw: "RawPack") -> list[str]:
    """Broken rules of slots and memory, a sentence each."""
    memory = Memory(problem, raw)
    found = _slots(problem, raw) + _reserved(problem, raw) + _breaches(problem, raw, memory)
    return found + _capacity(memory)


def _slots(problem: "Problem", raw: "RawPack") -> list[str]:
    """No more tasks on a GPU, or on a copy, than they take; those that are being saved make room."""
    rows, gpus = raw.stages, problem.scenario.gpus
    some = np.flatnonzero((rows.kind != SAVE) & (rows.end_us > rows.start_us))
    model = problem.tasks.model[rows.task[some]]
    most = np.array([m.max_tasks or NEVER for m in problem.scenario.models], np.int64)
    n = len(most)
    found: list[str] = []
    if gpus.max_tasks is not None:
        high, when = _peaks(rows.gpu[some], rows.start_us[some], rows.end_us[some], gpus.count)
        found += sentences(
            np.flatnonzero(high > gpus.max_tasks),
            lambda g: f"GPU {g} has {high[g]} tasks at {when[g]} us; it takes {gpus.max_tasks}.",
        )
    if (most < NEVER).any():
        key = rows.gpu[some] * n + model
        top, at = _peaks(key, rows.start_us[some], rows.end_us[some], gpus.count * n)
        found += sentences(
            np.flatnonzero(top > np.tile(most, gpus.count)),
            lambda k: (
                f"Model {k % n} on GPU {k // n} has {top[k]} tasks at {at[k]} us; it takes {most[k % n]}."
            ),
        )
    return found


def _peaks(at: Int64, start: Int64, end: Int64, n: int) -> tuple[Int64, Int64]:
    """Most spans at a time in each group, and when (ends before starts at one instant)."""
    group, when = np.append(at, at), np.append(start, end)
    change = np.append(np.ones(len(at), np.int64), np.full(len(at), -1, np.int64))
    order = np.lexsort((change, when, group))
    level = np.cumsum(change[order])  # every group sums to zero
    group, when = group[order], when[order]
    high, instant = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.maximum.at(high, group, level)
    top = np.flatnonzero(level == high[group])[::-1]
    instant[group[top]] = when[top]
    return high, instant


def _reserved(problem: "Problem", raw: "RawPack") -> list[str]:
    """At every claim the reservations fit, without the copies that go for claims of that instant."""
    if problem.scenario.admission.on != "declared":
        return []
    rows = raw.copies
    until = condemned(problem, raw)
    need = problem.needed[rows.model]
    found: list[str] = []
    for g in range(problem.scenario.gpus.count):
        mine = np.flatnonzero(rows.gpu == g)
        claims = mine[rows.for_task[mine] >= 0]
        when, level = steps(
            np.append(rows.claimed_us[mine], rows.released_us[mine]), np.append(need[mine], -need[mine])
        )
        total = level[np.searchsorted(when, rows.claimed_us[claims], "right") - 1]
        # those that had not been released then, and go for a claim of that instant; one that was evicted when a save
        # ended may have had to go since the save began, or was idle then
        goes = mine[(until[mine] < NEVER) & (rows.released_us[mine] > until[mine])]
        idle = mine[(until[mine] < rows.evicted_us[mine]) & (rows.released_us[mine] > rows.evicted_us[mine])]
        away, less = steps(np.append(until[goes], rows.evicted_us[idle]), np.append(need[goes], need[idle]))
        less = np.diff(np.append(0, less))
        k = np.minimum(np.searchsorted(away, rows.claimed_us[claims]), len(away) - 1)
        total = total - np.where(away[k] == rows.claimed_us[claims], less[k], 0)
        most = problem.scenario.gpus.memory_bytes
        over = total > most
        amount = dict(zip(claims[over].tolist(), total[over].tolist(), strict=True))
        found += sentences(
            claims[over],
            lambda c, amount=amount, most=most: (  # type: ignore[misc]
                f"{copy_named(problem, raw, c)} makes reservations of {amount[c]:,} bytes; the GPU has {most:,}."
            ),
        )
    return found


def _capacity(memory: Memory) -> list[str]:
    """What is in memory fits, at every microsecond."""
    found: list[str] = []
    for g in range(memory.problem.scenario.gpus.count):
        first = memory.changes(g)
        last = np.append(first[1:] - 1, memory.end_us)
        # nothing falls between two changes, so the last microsecond tells; most stretches are out of the question
        tight = last[memory.ceiling(g, first) > memory.capacity]
        held = memory.at(g, tight).actual
        found += sentences(
            np.flatnonzero(held > memory.capacity),
            lambda k, held=held, tight=tight, g=g: (  # type: ignore[misc]
                f"GPU {g} holds {held[k]:,} bytes at {tight[k]} us; it has {memory.capacity:,}."
            ),
        )
    return found


def _breaches(problem: "Problem", raw: "RawPack", memory: Memory) -> list[str]:
    """Every event is of one task or load that failed then, and the other way round; memory was too little."""
    rows, copies, events = raw.stages, raw.copies, raw.breaches
    if len(events) and (np.diff(events.time_us) < 0).any():
        return ["The events of memory that ran out are not in their order."]
    loads = np.flatnonzero(failed_loads(raw))
    of_load = sorted(
        zip(*(a[loads].tolist() for a in (copies.load_us, copies.gpu, copies.model)), strict=True)
    )
    is_load = events.task < 0
    told = sorted(
        zip(*(a[is_load].tolist() for a in (events.time_us, events.gpu, events.model)), strict=True)
    )
    found = [] if of_load == told else ["The loads that failed are not those of the events."]
    failed = np.flatnonzero(rows.outcome == OUT_OF_MEMORY)
    model = problem.tasks.model
    lost = {key: 0 for key in of_load}
    own = []
    for s in failed.tolist():
        key = (int(rows.end_us[s]), int(rows.gpu[s]), int(model[rows.task[s]]))
        before = rows.kind[s] == RESTORE and rows.frozen_from_us[s] >= rows.end_us[s] and key in lost
        if rows.kind[s] == LOAD or before:
            if key not in lost:
                found.append(f"{named(raw, s)} fails, and no load of its model does then.")
        else:
            own.append((*key[:2], int(rows.task[s]), key[2]))
    listed = zip(
        *(a[~is_load].tolist() for a in (events.time_us, events.gpu, events.task, events.model)), strict=True
    )
    if sorted(own) != sorted(listed):
        found.append("The tasks that failed for memory are not those of the events: one event each.")
    if len(events) and not found:
        found += _was_too_little(problem, raw, memory) + _last_to_begin(raw, memory)
    return found


def _was_too_little(problem: "Problem", raw: "RawPack", memory: Memory) -> list[str]:
    """With all that was there at some time of that instant, memory was really too little."""
    rows, copies, events = raw.stages, raw.copies, raw.breaches
    found: list[str] = []
    for g in np.unique(events.gpu).tolist():
        when = np.unique(events.time_us[events.gpu == g])
        total = memory.at(g, when).actual
        gone = np.flatnonzero((copies.gpu == g) & (copies.load_us < NEVER) & (copies.released_us < NEVER))
        _add(total, when, copies.released_us[gone], problem.taken[copies.model[gone]])
        gpu, _, until, amount = memory.leftovers
        _add(total, when, until[gpu == g], amount[gpu == g])
        had = (rows.gpu == g) & (rows.kind != LOAD) & (memory.kv_from <= rows.end_us)
        ended = np.flatnonzero(had & np.isin(rows.end_us, when))
        _add(total, when, rows.end_us[ended], memory.kv_of(ended, rows.end_us[ended]))
        enough = when[total <= memory.capacity]
        found += sentences(
            range(len(enough)),
            lambda k, g=g, enough=enough: (  # type: ignore[misc]
                f"Memory is said to run out on GPU {g} at {enough[k]} us; there was enough."
            ),
        )
    return found


def _add(total: Int64, when: Int64, at: Int64, amount: Int64) -> None:
    k = np.minimum(np.searchsorted(when, at), len(when) - 1)
    hit = when[k] == at
    np.add.at(total, k[hit], amount[hit])


def _last_to_begin(raw: "RawPack", memory: Memory) -> list[str]:
    """The task that fails is the one that began to run or to be restored last (of several: the larger row)."""
    rows, events = raw.stages, raw.breaches
    began = memory.kv_from
    found: list[str] = []
    open_to_it = (rows.kind == RUN) | (rows.kind == RESTORE)
    failed = (rows.outcome == OUT_OF_MEMORY) & open_to_it
    for g in np.unique(events.gpu[events.task >= 0]).tolist():
        mine = np.flatnonzero((rows.gpu == g) & open_to_it)
        mine = mine[np.lexsort((rows.task[mine], began[mine]))]
        rank = began[mine]
        for s in np.flatnonzero(failed & (rows.gpu == g) & (began < rows.end_us)).tolist():
            t = int(rows.end_us[s])
            lo, hi = np.searchsorted(rank, [began[s], t], "left")
            rivals = mine[lo:hi]
            later = (began[rivals] > began[s]) | (rows.task[rivals] > rows.task[s])
            if (later & (rows.end_us[rivals] > t)).any():
                found.append(f"{named(raw, s)} fails, and another task began after it.")
    return sentences(range(len(found)), lambda k: found[k])
