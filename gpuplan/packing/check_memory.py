"""Rules of slots and memory. Part of `gpuplan.packing.check`."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import named, sentences
from gpuplan.packing.check_node import condemned, copy_named, failed_loads, pairs
from gpuplan.packing.memory import Memory
from gpuplan.packing.model import NEVER, Int64
from gpuplan.packing.progress import steps
from gpuplan.packing.raw import LOAD, OUT_OF_MEMORY, RESTORE, RUN, SAVE
from gpuplan.packing.spread import copies_on, gpus_of, stages_on

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
    rows, most = raw.stages, problem.scenario.gpus.max_tasks
    counts = (rows.kind != SAVE) & (rows.end_us > rows.start_us)
    found: list[str] = []
    if most is not None:
        stage, gpu = stages_on(raw)
        stage, gpu = stage[counts[stage]], gpu[counts[stage]]
        high, when = _peaks(gpu, rows.start_us[stage], rows.end_us[stage], problem.scenario.gpus.count)
        found += sentences(
            np.flatnonzero(high > most),
            lambda g: f"GPU {g} has {high[g]} tasks at {when[g]} us; it takes {most}.",
        )
    takes = np.array([m.max_tasks or NEVER for m in problem.scenario.models], np.int64)[raw.copies.model]
    some = np.flatnonzero(counts & (takes < NEVER)[rows.copy])
    top, at = _peaks(rows.copy[some], rows.start_us[some], rows.end_us[some], len(raw.copies))
    return found + sentences(
        np.flatnonzero(top > takes),
        lambda c: f"{copy_named(problem, raw, c)} has {top[c]} tasks at {at[c]} us; it takes {takes[c]}.",
    )


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
    copy, on = copies_on(rows)
    found: list[str] = []
    for g in range(problem.scenario.gpus.count):
        mine = copy[on == g]
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
    rows, events = raw.stages, raw.breaches
    if len(events) and (np.diff(events.time_us) < 0).any():
        return ["The events of memory that ran out are not in their order."]
    found = _failed_loads(raw)
    failed = rows.outcome == OUT_OF_MEMORY
    getting_ready = (rows.kind == LOAD) | ((rows.kind == RESTORE) & (rows.frozen_from_us >= rows.end_us))
    by_load = (
        failed & getting_ready & failed_loads(raw)[rows.copy] & (raw.copies.load_us[rows.copy] == rows.end_us)
    )
    found += sentences(
        np.flatnonzero(failed & (rows.kind == LOAD) & ~by_load),
        lambda s: f"{named(raw, s)} fails, and no load of its model does then.",
    )
    # the events of a task are its failures, in their order
    own = np.flatnonzero(failed & ~by_load)
    own = own[np.argsort(rows.task[own], kind="stable")]
    listed = np.flatnonzero(events.task >= 0)
    listed = listed[np.argsort(events.task[listed], kind="stable")]
    task = rows.task[own]
    if (
        len(own) != len(listed)
        or (task != events.task[listed]).any()
        or (rows.end_us[own] != events.time_us[listed]).any()
        or (problem.tasks.model[task] != events.model[listed]).any()
        or any(g not in gpus_of(raw.copies, c) for g, c in pairs(events.gpu[listed], rows.copy[own]))
    ):
        found.append("The tasks that failed for memory are not those of the events: one event each.")
    if len(events) and not found:
        found += _was_too_little(problem, raw, memory) + _last_to_begin(raw, memory, own, events.gpu[listed])
    return found


def _failed_loads(raw: "RawPack") -> list[str]:
    """Loads that failed: an event each, of their instant and model, on one of their GPUs."""
    copies, events = raw.copies, raw.breaches
    loads, is_load = np.flatnonzero(failed_loads(raw)), events.task < 0
    open_to = Counter[tuple[int, int, int]]()
    for c in loads.tolist():
        open_to.update((int(copies.load_us[c]), int(copies.model[c]), g) for g in gpus_of(copies, c))
    told = list(zip(*(a[is_load].tolist() for a in (events.time_us, events.model, events.gpu)), strict=True))
    same = sorted(pairs(copies.load_us[loads], copies.model[loads])) == sorted(row[:2] for row in told)
    return [] if same and Counter(told) <= open_to else ["The loads that failed are not those of the events."]


def _was_too_little(problem: "Problem", raw: "RawPack", memory: Memory) -> list[str]:
    """With all that was there at some time of that instant, memory was really too little."""
    rows, copies, events = raw.stages, raw.copies, raw.breaches
    found: list[str] = []
    for g in np.unique(events.gpu).tolist():
        when = np.unique(events.time_us[events.gpu == g])
        total = memory.at(g, when).actual
        there = memory.copies_on(g)
        gone = there[(copies.load_us[there] < NEVER) & (copies.released_us[there] < NEVER)]
        _add(total, when, copies.released_us[gone], problem.taken[copies.model[gone]])
        gpu, _, until, amount = memory.leftovers
        _add(total, when, until[gpu == g], amount[gpu == g])
        ended = memory.stages_on(g)
        had = (rows.kind[ended] != LOAD) & (memory.kv_from[ended] <= rows.end_us[ended])
        ended = ended[had & np.isin(rows.end_us[ended], when)]
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


def _last_to_begin(raw: "RawPack", memory: Memory, failed: Int64, gpus: Int64) -> list[str]:
    """The task that fails is the one of that GPU that began to run or to be restored last (or: the larger row)."""
    rows = raw.stages
    began = memory.kv_from
    found: list[str] = []
    for g in np.unique(gpus).tolist():
        mine = memory.stages_on(g)
        mine = mine[(rows.kind[mine] == RUN) | (rows.kind[mine] == RESTORE)]
        mine = mine[np.lexsort((rows.task[mine], began[mine]))]
        rank = began[mine]
        here = failed[gpus == g]
        for s in here[began[here] < rows.end_us[here]].tolist():
            t = int(rows.end_us[s])
            lo, hi = np.searchsorted(rank, [began[s], t], "left")
            rivals = mine[lo:hi]
            later = (began[rivals] > began[s]) | (rows.task[rivals] > rows.task[s])
            if (later & (rows.end_us[rivals] > t)).any():
                found.append(f"{named(raw, s)} fails, and another task began after it.")
    return sentences(range(len(found)), lambda k: found[k])
