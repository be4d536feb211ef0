"""Rules of copies. Part of `gpuplan.packing.check`."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import named, sentences
from gpuplan.packing.model import NEVER, Bools, Int64, Pieces
from gpuplan.packing.progress import distinct
from gpuplan.packing.raw import CUT, LOAD, RESTORE, SAVE, WENT_ON
from gpuplan.packing.spread import copies_on, gpus_of, stages_on
from gpuplan.packing.words import on_gpus

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack


def violations(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """Broken rules of copies, a sentence each."""
    from gpuplan.packing import check_links

    found = _copies(problem, raw)
    if not found:
        found = _one_copy(problem, raw) + _use(problem, raw) + _claims(problem, pieces, raw)
        found += check_links.violations(problem, raw)
    return found


def copy_named(problem: "Problem", raw: "RawPack", copy: int) -> str:
    """A copy in a sentence."""
    from gpuplan.inputs.errors import shorten

    rows = raw.copies
    name = shorten(problem.scenario.models[rows.model[copy]].name)
    return f"The copy of {name!r} on {on_gpus(gpus_of(rows, copy))} claimed at {rows.claimed_us[copy]} us"


def failed_loads(raw: "RawPack") -> Bools:
    """Copies whose load failed for memory."""
    rows = raw.copies
    failed: Bools = (rows.load_us < NEVER) & (rows.ready_us >= NEVER) & (rows.released_us == rows.load_us)
    return failed


# ----------------------------------------------------------------------------- copies


def _copies(problem: "Problem", raw: "RawPack") -> list[str]:
    """The life of a copy: claimed, loading, ready, evicted, released so much later; residents are ready at once."""
    rows, end = raw.copies, raw.end_us
    times = np.stack([rows.claimed_us, rows.load_us, rows.ready_us, rows.evicted_us, rows.released_us])
    failed = failed_loads(raw)
    in_order = (np.diff(times, axis=0) >= 0).all(0) if len(rows) else np.zeros(0, bool)
    right = in_order & ((times <= end) | (times == NEVER)).all(0) & (rows.claimed_us >= 0)
    fell = failed & (rows.claimed_us <= rows.load_us) & (rows.load_us <= end)
    right |= fell & (rows.evicted_us == rows.load_us) & (rows.ready_us == NEVER)
    found = sentences(
        np.flatnonzero(~right), lambda c: f"{copy_named(problem, raw, c)} has times that are not in order."
    )
    late = rows.evicted_us + problem.scenario.gpus.release_us
    due = np.where((rows.evicted_us < NEVER) & ((late < end) | (rows.released_us < NEVER)), late, NEVER)
    due = np.where((late == end) & (problem.until_us >= NEVER) & (rows.evicted_us < NEVER), late, due)
    wrong = ~failed & (rows.released_us != due)
    if problem.until_us >= NEVER:
        wrong |= (rows.evicted_us < NEVER) & (rows.released_us >= NEVER)
        wrong |= (rows.load_us < NEVER) & (rows.ready_us >= NEVER) & ~failed
    found += sentences(
        np.flatnonzero(wrong),
        lambda c: (
            f"{copy_named(problem, raw, c)} is evicted at {rows.evicted_us[c]} us; its memory comes back "
            f"{problem.scenario.gpus.release_us} us later, not at {rows.released_us[c]} us."
        ),
    )
    pinned = np.array([model.pinned for model in problem.scenario.models], bool)[rows.model]
    found += sentences(
        np.flatnonzero(pinned & (rows.evicted_us < NEVER) & ~failed),
        lambda c: f"{copy_named(problem, raw, c)} is pinned and evicted.",
    )
    there = np.flatnonzero(rows.for_task < 0)
    if sorted((int(rows.model[c]), gpus_of(rows, c)) for c in there.tolist()) != _residents(problem):
        found.append("The copies that were there from the start are not the resident models.")
    at_once = (rows.claimed_us == 0) & (rows.load_us == 0) & (rows.ready_us == 0)
    found += sentences(
        there[~at_once[there]],
        lambda c: f"{copy_named(problem, raw, c)} is resident and not ready at the start.",
    )
    if len(rows) and (np.diff(rows.claimed_us) < 0).any():
        found.append("The copies are not in order of their claims.")
    return found


def _residents(problem: "Problem") -> list[tuple[int, list[int]]]:
    """Model and GPUs of every copy that is there from the start: those of a model in order, so many at a time."""
    found = []
    for m, model in enumerate(problem.scenario.models):
        gpus = sorted(model.resident)
        found += [(m, gpus[k : k + model.gpus]) for k in range(0, len(gpus), model.gpus)]
    return found


def condemned(problem: "Problem", raw: "RawPack") -> Int64:
    """From when on each copy has to go, int64[C]: its eviction, or the start of the last save that it waits for."""
    rows, stages = raw.copies, raw.stages
    found = rows.evicted_us.copy()
    saves = np.flatnonzero((stages.kind == SAVE) & (stages.outcome == WENT_ON))
    last = stages.copy[saves[stages.end_us[saves] == rows.evicted_us[stages.copy[saves]]]]
    found[np.unique(last)] -= problem.scenario.preemption.save_us
    return _cut_saves(raw, found)


def _cut_saves(raw: "RawPack", until: Int64) -> Int64:
    """Copies that the end of the run finds with nothing but tasks being saved may have to go when that is over."""
    rows, stages = raw.copies, raw.stages
    on = np.flatnonzero((stages.outcome == CUT) & (rows.evicted_us[stages.copy] >= NEVER))
    saved, others = on[stages.kind[on] == SAVE], on[stages.kind[on] != SAVE]
    last = np.full(len(rows), -1, np.int64)
    np.maximum.at(last, stages.copy[saved], stages.start_us[saved])
    last[stages.copy[others]] = -1
    return np.where(last >= 0, last, until)


def _one_copy(problem: "Problem", raw: "RawPack") -> list[str]:
    """At most one copy of a model on a GPU that need not go."""
    rows = raw.copies
    copy, gpu = copies_on(rows)
    key = gpu * len(problem.needed) + rows.model[copy]
    begin, until = rows.claimed_us[copy], condemned(problem, raw)[copy]
    order = np.lexsort((until, begin, key))
    same = key[order][1:] == key[order][:-1]
    twice = order[1:][same & (begin[order[1:]] < until[order[:-1]])]
    return sentences(
        np.unique(copy[twice]), lambda c: f"{copy_named(problem, raw, c)} is a second one there."
    )


def _claims(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """A copy is claimed for a task that is placed on it then; a load begins when what it waits for is over."""
    rows, stages = raw.copies, raw.stages
    copy, gpu = copies_on(rows)
    placed = (stages.kind == LOAD) | (stages.kind == RESTORE)
    first = (
        placed
        & (stages.start_us == rows.claimed_us[stages.copy])
        & (stages.task == rows.for_task[stages.copy])
    )
    for_nobody = rows.for_task >= 0
    for_nobody[stages.copy[first]] = False
    found = sentences(
        np.flatnonzero(for_nobody),
        lambda c: f"{copy_named(problem, raw, c)} is claimed for no task that is placed there then.",
    )
    waits = (rows.load_us < NEVER) & (rows.load_us != rows.claimed_us)
    waits[copy[_among(_over(raw), gpu, rows.load_us[copy])]] = False
    found += sentences(
        np.flatnonzero(waits),
        lambda c: (
            f"{copy_named(problem, raw, c)} begins to load at {rows.load_us[c]} us, when nothing that it waited "
            "for ends."
        ),
    )
    return found + _evictions(problem, pieces, raw)


def _evictions(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """Nobody goes without need: for a claim on one of its GPUs, at once or after its last task is saved, or expired."""
    rows = raw.copies
    copy, gpu = copies_on(rows)
    claims = set(pairs(gpu, rows.claimed_us[copy]))
    needless = (rows.evicted_us < NEVER) & ~failed_loads(raw)
    for when in (rows.evicted_us, condemned(problem, raw)):
        needless[copy[_among(claims, gpu, when[copy])]] = False
    found = []
    if pieces.eviction == "keep-alive" and pieces.keep_alive_us is not None:
        expiry, stays = _expiries(problem, raw, pieces.keep_alive_us)
        needless &= rows.evicted_us != expiry
        found = sentences(
            np.flatnonzero(stays),
            lambda c: f"{copy_named(problem, raw, c)} stays longer than it is kept for nobody.",
        )
    return found + sentences(
        np.flatnonzero(needless), lambda c: f"{copy_named(problem, raw, c)} is evicted for nobody."
    )


def _expiries(problem: "Problem", raw: "RawPack", keep_us: int) -> tuple[Int64, Bools]:
    """When the time of each copy is over after its last use, int64[C]; whether it stays idle for longer, bool[C]."""
    rows, stages = raw.copies, raw.stages
    order = np.lexsort((stages.start_us, stages.copy))
    copy, start = stages.copy[order], stages.start_us[order]
    end = np.where(stages.outcome[order] == CUT, NEVER, stages.end_us[order])
    used = np.zeros(len(rows), np.int64)  # those that were there and were never used: from the start
    stays = np.zeros(len(rows), bool)
    # spans of one copy are kept apart by their rank
    times = distinct(np.concatenate([[0], start, end]))
    here = np.searchsorted(times, end) + copy * len(times)
    until = np.maximum.accumulate(np.append(0, here))[:-1]
    before = times[until % len(times)]
    first = np.append(True, copy[1:] != copy[:-1])[: len(copy)]
    before[first] = np.where(rows.for_task[copy[first]] < 0, 0, start[first])
    gap = start - before
    stays[copy[(gap > keep_us) | ((gap == keep_us) & (gap > 0))]] = True
    np.maximum.at(used, copy, end)
    expiry = np.minimum(used + keep_us, NEVER)
    pinned = np.array([model.pinned for model in problem.scenario.models], bool)[rows.model]
    stays |= (rows.evicted_us > expiry) & (expiry < problem.until_us)
    return expiry, stays & ~pinned & ~failed_loads(raw)


def pairs(gpu: Int64, when: Int64) -> list[tuple[int, int]]:
    """Rows of two columns."""
    return list(zip(gpu.tolist(), when.tolist(), strict=True))


def _over(raw: "RawPack") -> set[tuple[int, int]]:
    """GPUs and instants at which a save or an eviction was over."""
    (stage, on), (copy, gpu) = stages_on(raw), copies_on(raw.copies)
    saves = raw.stages.kind[stage] == SAVE
    gone = raw.copies.released_us[copy] < NEVER
    saved = pairs(on[saves], raw.stages.end_us[stage[saves]])
    return {*saved, *pairs(gpu[gone], raw.copies.released_us[copy[gone]])}


def _among(known: set[tuple[int, int]], gpu: Int64, when: Int64) -> Bools:
    return np.fromiter((pair in known for pair in pairs(gpu, when)), bool, len(gpu))


def _use(problem: "Problem", raw: "RawPack") -> list[str]:
    """Every task on a GPU is on a copy of its model, which is ready when it runs and is not evicted under it."""
    rows, copies = raw.stages, raw.copies
    order = np.argsort(rows.task, kind="stable")
    placed = (rows.kind[order] == LOAD) | (rows.kind[order] == RESTORE)
    if not len(order) or not placed[0]:
        return []  # said elsewhere
    visit = np.cumsum(placed) - 1  # stages of one are on one copy
    first = order[placed]
    end = np.zeros(len(first), np.int64)
    np.maximum.at(end, visit, rows.end_us[order])
    copy, begin = rows.copy[first], rows.start_us[first]
    right = copies.model[copy] == problem.tasks.model[rows.task[first]]
    right &= (copies.claimed_us[copy] <= begin) & (end <= copies.evicted_us[copy])
    now = np.where(rows.kind[first] == RESTORE, rows.frozen_from_us[first], rows.end_us[first])
    got_on = (rows.outcome[first] == WENT_ON) | ((rows.kind[first] == RESTORE) & (now < rows.end_us[first]))
    least = np.maximum(begin, copies.ready_us[copy])
    # one that waited longer than for its copy waited for a save or an eviction on a GPU
    late = np.flatnonzero(got_on & (now > least))
    on, gpu = stages_on(raw)
    waits = np.isin(on, first[late])
    starts = np.zeros(len(rows), np.int64)
    starts[first] = now
    waited = np.zeros(len(rows), bool)
    waited[on[waits][_among(_over(raw), gpu[waits], starts[on[waits]])]] = True
    right &= ~got_on | (now == least) | ((now > least) & waited[first])
    return sentences(
        first[~right],
        lambda s: (
            f"{named(raw, s)} is on no copy of its model that is ready when it goes on, or it is evicted under it."
        ),
    )
