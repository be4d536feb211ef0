"""Rules of copies and links. Part of `gpuplan.packing.check`."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import named, sentences
from gpuplan.packing.model import NEVER, SECOND, Bools, Int64, Pieces
from gpuplan.packing.progress import steps
from gpuplan.packing.raw import CUT, LOAD, RESTORE, SAVE

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack


def violations(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """Broken rules of copies and links, a sentence each."""
    found = _copies(problem, raw)
    if not found:
        found = (
            _one_copy(problem, raw)
            + _use(problem, raw)
            + _claims(problem, pieces, raw)
            + _transfers(problem, raw)
        )
    return found


def copy_named(problem: "Problem", raw: "RawPack", copy: int) -> str:
    """A copy in a sentence."""
    from gpuplan.inputs.errors import shorten

    rows = raw.copies
    name = shorten(problem.scenario.models[rows.model[copy]].name)
    return f"The copy of {name!r} on GPU {rows.gpu[copy]} claimed at {rows.claimed_us[copy]} us"


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
    residents = sorted((m, g) for m, model in enumerate(problem.scenario.models) for g in model.resident)
    there = np.flatnonzero(rows.for_task < 0)
    if sorted(zip(rows.model[there].tolist(), rows.gpu[there].tolist(), strict=True)) != residents:
        found.append("The copies that were there from the start are not the resident models.")
    at_once = (rows.claimed_us == 0) & (rows.load_us == 0) & (rows.ready_us == 0)
    found += sentences(
        there[~at_once[there]],
        lambda c: f"{copy_named(problem, raw, c)} is resident and not ready at the start.",
    )
    if len(rows) and (np.diff(rows.claimed_us) < 0).any():
        found.append("The copies are not in order of their claims.")
    return found


def condemned(problem: "Problem", raw: "RawPack") -> Int64:
    """From when on each copy has to go, int64[C]: its eviction, or the start of the last save that it waits for."""
    rows, stages = raw.copies, raw.stages
    found = rows.evicted_us.copy()
    saves = np.flatnonzero(stages.kind == SAVE)
    if not len(saves):
        return found
    span = problem.scenario.preemption.save_us
    model = problem.tasks.model[stages.task[saves]]
    ends = set(zip(stages.gpu[saves].tolist(), model.tolist(), stages.end_us[saves].tolist(), strict=True))
    for c in np.flatnonzero(rows.evicted_us < NEVER).tolist():
        if (int(rows.gpu[c]), int(rows.model[c]), int(rows.evicted_us[c])) in ends:
            found[c] -= span
    return _cut_saves(problem, raw, found)


def _cut_saves(problem: "Problem", raw: "RawPack", until: Int64) -> Int64:
    """Copies that the end of the run finds with nothing but tasks being saved may have to go when that is over."""
    rows, stages = raw.copies, raw.stages
    on = np.flatnonzero(stages.outcome == CUT)
    if not len(on) or not (stages.kind[on] == SAVE).any():
        return until
    key = stages.gpu * len(problem.needed) + problem.tasks.model[stages.task]
    others = np.unique(key[on[stages.kind[on] != SAVE]])
    last: dict[int, int] = {}
    for s in on[stages.kind[on] == SAVE].tolist():
        last[int(key[s])] = max(last.get(int(key[s]), 0), int(stages.start_us[s]))
    of = rows.gpu * len(problem.needed) + rows.model
    for c in np.flatnonzero((rows.evicted_us >= NEVER) & ~np.isin(of, others)).tolist():
        begun = last.get(int(of[c]), -1)
        if rows.claimed_us[c] <= begun:
            until[c] = begun
    return until


def _one_copy(problem: "Problem", raw: "RawPack") -> list[str]:
    """At most one copy of a model on a GPU that need not go."""
    rows = raw.copies
    key = rows.gpu * len(problem.needed) + rows.model
    until = condemned(problem, raw)
    order = np.lexsort((until, rows.claimed_us, key))
    same = key[order][1:] == key[order][:-1]
    twice = order[1:][same & (rows.claimed_us[order[1:]] < until[order[:-1]])]
    return sentences(twice, lambda c: f"{copy_named(problem, raw, c)} is a second one there.")


def _claims(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """A copy is claimed for a task that is placed there then; a load begins when what it waits for is over."""
    rows, stages = raw.copies, raw.stages
    placed = (stages.kind == LOAD) | (stages.kind == RESTORE)
    starts = set(
        zip(
            stages.task[placed].tolist(),
            stages.gpu[placed].tolist(),
            problem.tasks.model[stages.task[placed]].tolist(),
            stages.start_us[placed].tolist(),
            strict=True,
        )
    )
    mine = zip(
        rows.for_task.tolist(), rows.gpu.tolist(), rows.model.tolist(), rows.claimed_us.tolist(), strict=True
    )
    found = sentences(
        (c for c, key in enumerate(mine) if key[0] >= 0 and key not in starts),
        lambda c: f"{copy_named(problem, raw, c)} is claimed for no task that is placed there then.",
    )
    free = _over(raw)
    waits = (rows.load_us < NEVER) & (rows.load_us != rows.claimed_us)
    found += sentences(
        np.flatnonzero(waits & ~_among(free, rows.gpu, rows.load_us)),
        lambda c: (
            f"{copy_named(problem, raw, c)} begins to load at {rows.load_us[c]} us, when nothing that it waited "
            "for ends."
        ),
    )
    # nobody goes without need: for a claim then, after a save, or when its time is over
    claims = (rows.gpu, rows.claimed_us)
    saves = stages.kind == SAVE
    why = _pairs(*claims) | _pairs(stages.gpu[saves], stages.end_us[saves])
    needless = (rows.evicted_us < NEVER) & ~failed_loads(raw) & ~_among(why, rows.gpu, rows.evicted_us)
    if pieces.eviction != "keep-alive" or pieces.keep_alive_us is None:
        found += sentences(
            np.flatnonzero(needless), lambda c: f"{copy_named(problem, raw, c)} is evicted for nobody."
        )
    return found


def _pairs(gpu: Int64, when: Int64) -> set[tuple[int, int]]:
    return set(zip(gpu.tolist(), when.tolist(), strict=True))


def _over(raw: "RawPack") -> set[tuple[int, int]]:
    """GPUs and instants at which a save or an eviction was over."""
    stages, rows = raw.stages, raw.copies
    saves, gone = stages.kind == SAVE, rows.released_us < NEVER
    return _pairs(stages.gpu[saves], stages.end_us[saves]) | _pairs(rows.gpu[gone], rows.released_us[gone])


def _among(pairs: set[tuple[int, int]], gpu: Int64, when: Int64) -> Bools:
    return np.fromiter(
        (pair in pairs for pair in zip(gpu.tolist(), when.tolist(), strict=True)), bool, len(gpu)
    )


def _use(problem: "Problem", raw: "RawPack") -> list[str]:
    """Every task on a GPU is on a copy of its model, which is ready when it runs and is not evicted under it."""
    rows, copies = raw.stages, raw.copies
    order = np.argsort(rows.task, kind="stable")
    placed = (rows.kind[order] == LOAD) | (rows.kind[order] == RESTORE)
    if not len(order) or not placed[0]:
        return []  # said elsewhere
    visit = np.cumsum(placed) - 1  # stages of one stay on a GPU
    first = order[placed]
    end = np.zeros(len(first), np.int64)
    np.maximum.at(end, visit, rows.end_us[order])
    ready = np.where(rows.kind[first] == RESTORE, rows.frozen_from_us[first], rows.end_us[first])
    got_on = (rows.outcome[first] == 0) | ((rows.kind[first] == RESTORE) & (ready < rows.end_us[first]))
    ready = np.where(got_on, ready, NEVER)
    n = len(problem.needed)
    key = rows.gpu[first] * n + problem.tasks.model[rows.task[first]]
    of = copies.gpu * n + copies.model
    by = np.lexsort((copies.claimed_us, of))
    wide = int(raw.end_us) + 2
    spot = (
        np.searchsorted(of[by] * wide + copies.claimed_us[by], key * wide + rows.start_us[first], "right") - 1
    )
    free = _over(raw)

    def fits(c: Int64, v: Int64) -> Bools:
        """Whether stays are right on copies."""
        begin = rows.start_us[first[v]]
        known = (
            (c >= 0) & (of[c] == key[v]) & (copies.claimed_us[c] <= begin) & (end[v] <= copies.evicted_us[c])
        )
        least = np.maximum(begin, copies.ready_us[c])
        now = ready[v]
        waited = _among(free, rows.gpu[first[v]], now)
        right: Bools = known & ((now >= NEVER) | (now == least) | ((now > least) & waited))
        return right

    if not len(by):
        return sentences(first, lambda s: f"{named(raw, s)} is on no copy of its model.")
    every = np.arange(len(first))
    bad = np.flatnonzero(~fits(np.where(spot >= 0, by[np.maximum(spot, 0)], -1), every) | (spot < 0))
    # at the instant of a claim the older copy may be meant
    wrong = []
    for v in bad.tolist():
        others = np.flatnonzero(of == key[v])
        if not len(others) or not fits(others, np.full(len(others), v)).any():
            wrong.append(int(first[v]))
    return sentences(
        wrong,
        lambda s: (
            f"{named(raw, s)} is on no copy of its model that is ready when it goes on, or it is evicted under it."
        ),
    )


# ----------------------------------------------------------------------------- links


def _transfers(problem: "Problem", raw: "RawPack") -> list[str]:
    """A transfer takes as long as its share of the links says; the first of a model comes from disk."""
    rows, gpus = raw.copies, problem.scenario.gpus
    some = np.flatnonzero((rows.load_us < NEVER) & (rows.for_task >= 0) & ~failed_loads(raw))
    found = _sources(problem, raw)
    start, end = rows.load_us[some], np.minimum(rows.ready_us[some], raw.end_us)
    cut = rows.ready_us[some] >= NEVER
    disk = rows.from_disk[some] == 1
    want = problem.weights[rows.model[some]] * SECOND
    when_disk, n_disk = _running(start[disk], end[disk], cut[disk])
    for g in range(gpus.count):
        mine = np.flatnonzero(rows.gpu[some] == g)
        if not len(mine):
            continue
        when, n_host = _running(start[mine], end[mine], cut[mine])
        times = np.union1d(when, when_disk)
        host = gpus.host_bytes_per_s // np.maximum(n_host[np.searchsorted(when, times, "right") - 1], 1)
        shared = gpus.disk_bytes_per_s // np.maximum(
            n_disk[np.searchsorted(when_disk, times, "right") - 1], 1
        )
        for from_disk in (False, True):
            rate = np.maximum(np.minimum(host, shared) if from_disk else host, 1)
            moved = np.append(0, np.cumsum(np.diff(times) * rate[:-1]))

            def at(t: Int64, times: Int64 = times, rate: Int64 = rate, moved: Int64 = moved) -> Int64:
                k = np.searchsorted(times, t, "right") - 1
                sums: Int64 = moved[k] + (t - times[k]) * rate[k]
                return sums

            these = mine[disk[mine] == from_disk]
            a, b, goal = start[these], end[these], want[these]
            length = b > a
            done = at(b) - at(a)
            almost = np.where(length, at(np.maximum(b - 1, a)) - at(a), -1)
            wrong = np.where(cut[these], length & (almost >= goal), (done < goal) | (almost >= goal))
            found += sentences(
                some[these[wrong]],
                lambda c: (
                    f"{copy_named(problem, raw, c)} loads from {rows.load_us[c]} to {rows.ready_us[c]} us, which is "
                    "not what its share of the links takes."
                ),
            )
    return found


def _running(start: Int64, end: Int64, cut: Bools) -> tuple[Int64, Int64]:
    """Transfers that run, over time; those that the end of the run cuts go on."""
    change = np.append(np.ones(len(start), np.int64), np.full(int((~cut).sum()), -1, np.int64))
    return steps(np.append(start, end[~cut]), change)


def _sources(problem: "Problem", raw: "RawPack") -> list[str]:
    """A model comes from disk until a first transfer of it has ended; always where nothing is kept in host memory."""
    rows = raw.copies
    there = np.full(len(problem.needed), NEVER, np.int64)
    np.minimum.at(there, rows.model, np.where(rows.for_task < 0, -1, rows.ready_us))
    known = (rows.load_us < NEVER) & (rows.for_task >= 0)
    if not problem.scenario.gpus.host_cache:
        wrong = known & (rows.from_disk != 1)
    else:
        cached = there[rows.model]
        wrong = known & (
            ((rows.from_disk == 1) & (rows.load_us > cached))
            | ((rows.from_disk == 0) & (rows.load_us < cached))
        )
    wrong = wrong | (~known & (rows.from_disk != 0))
    return sentences(
        np.flatnonzero(wrong),
        lambda c: (
            f"{copy_named(problem, raw, c)} is said to come from {'disk' if rows.from_disk[c] else 'host memory'}."
        ),
    )
