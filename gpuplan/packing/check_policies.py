"""Rules of whose turn it is: strict order, and who may be interrupted for whom. Part of `gpuplan.packing.check`."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.check import named, sentences
from gpuplan.packing.check_node import condemned, copy_named, pairs
from gpuplan.packing.model import NEVER, Int64, Pieces
from gpuplan.packing.progress import Progress, distinct, whole_us
from gpuplan.packing.raw import (
    LOAD,
    OUT_OF_MEMORY,
    PREEMPTED,
    REJECTED,
    RESTORE,
    SAVE,
    TIMED_OUT,
    WAITING,
    WENT_ON,
)
from gpuplan.packing.spread import copies_on, gpus_of, stages_on
from gpuplan.packing.words import on_gpus

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack


def violations(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """Broken rules of a policy, a sentence each."""
    found = _preemptions(problem, raw)
    if pieces.placement == "round-robin":
        found += _own_gpus(problem, raw) + _own_copy(problem, raw)
    if pieces.order == "fifo":
        count = problem.scenario.gpus.count if pieces.placement == "round-robin" else 1
        for line in range(count):
            found += _first_come(problem, raw, np.arange(len(problem.tasks)) % count == line)
    return found


# ----------------------------------------------------------------------------- preemption


def _preemptions(problem: "Problem", raw: "RawPack") -> list[str]:
    """Who is interrupted makes room on that GPU for a task of strictly higher priority, by the threshold rule."""
    rows, rule = raw.stages, problem.scenario.preemption
    priority = problem.tasks.priority
    cut = np.flatnonzero(rows.outcome == PREEMPTED)
    if not len(cut):
        return []
    if rule.when == "never":
        return sentences(cut, lambda s: f"{named(raw, s)} is interrupted; nobody may be.")
    stage, gpu = stages_on(raw)
    placed = (rows.kind[stage] == LOAD) | (rows.kind[stage] == RESTORE)
    best: dict[tuple[int, int], int] = {}
    for key, p in zip(
        pairs(gpu[placed], rows.start_us[stage[placed]]),
        priority[rows.task[stage[placed]]].tolist(),
        strict=True,
    ):
        best[key] = max(p, best.get(key, p))
    # of its GPUs one is enough
    gone = rows.outcome[stage] == PREEMPTED
    stage = stage[gone]
    highest = np.full(len(rows), -NEVER, np.int64)
    there = [best.get(key, -NEVER) for key in pairs(gpu[gone], rows.end_us[stage])]
    np.maximum.at(highest, stage, np.array(there, np.int64))
    lost = cut[highest[cut] <= priority[rows.task[cut]]]
    found = sentences(
        lost,
        lambda s: f"{named(raw, s)} is interrupted, and no task of higher priority is placed there then.",
    )
    if rule.when == "threshold":
        done = whole_us(Progress(problem, raw).at(cut, rows.end_us[cut]))
        left = np.maximum(problem.tasks.predicted_us[rows.task[cut]] - done, 0)
        found += sentences(
            cut[left < rule.threshold_us],
            lambda s: (
                f"{named(raw, s)} is interrupted with less than the threshold of {rule.threshold_us} us left."
            ),
        )
    return found


# ----------------------------------------------------------------------------- order


def _ahead(problem: "Problem", raw: "RawPack") -> Int64:
    """How far each stage's copy is from the GPU of the task's line, round the circle, int64[S]."""
    rows, count = raw.stages, problem.scenario.gpus.count
    stage, gpu = stages_on(raw)
    found = np.full(len(rows), NEVER, np.int64)
    np.minimum.at(found, stage, (gpu - rows.task[stage]) % count)
    return found


def _own_gpus(problem: "Problem", raw: "RawPack") -> list[str]:
    """Blind round-robin: task i is on GPU i mod count; one over several on a copy that lies there or on the next."""
    rows, copies, count = raw.stages, raw.copies, problem.scenario.gpus.count

    def own(task: int) -> list[int]:
        return sorted((task + k) % count for k in range(int(problem.spread[problem.tasks.model[task]])))

    found = sentences(
        np.flatnonzero(_ahead(problem, raw) >= problem.spread[problem.tasks.model[rows.task]]),
        lambda s: f"{named(raw, s)} belongs to {on_gpus(own(rows.task[s]))}.",
    )
    claims = np.flatnonzero((copies.for_task >= 0) & (problem.spread[copies.model] > 1)).tolist()
    return found + sentences(
        (c for c in claims if gpus_of(copies, c) != own(int(copies.for_task[c]))),
        lambda c: f"{copy_named(problem, raw, c)} belongs to {on_gpus(own(int(copies.for_task[c])))}.",
    )


def _own_copy(problem: "Problem", raw: "RawPack") -> list[str]:
    """Blind round-robin: a task over several GPUs goes to the first copy of its model on them, if there is one."""
    rows, copies, count = raw.stages, raw.copies, problem.scenario.gpus.count
    some = np.flatnonzero(
        ((rows.kind == LOAD) | (rows.kind == RESTORE))
        & (copies.starts[1:] - copies.starts[:-1] > 1)[rows.copy]
    )
    if not len(some):
        return []
    copy, gpu = copies_on(copies)
    key = copies.model[copy] * count + gpu
    model, when = problem.tasks.model[rows.task[some]], rows.start_us[some]
    times = distinct(np.append(copies.claimed_us, when))  # by rank, so that keys stay small
    of = key * len(times) + np.searchsorted(times, copies.claimed_us[copy])
    order = np.argsort(of, kind="stable")
    of, copy, key = of[order], copy[order], key[order]
    until = condemned(problem, raw)[copy]
    first = np.full(len(some), NEVER, np.int64)
    for k in range(count):
        here = model * count + (rows.task[some] + k) % count
        # the newest that was claimed before
        row = np.searchsorted(of, here * len(times) + np.searchsorted(times, when), "left") - 1
        there = (row >= 0) & (key[row] == here) & (until[row] > when)
        first[there] = np.minimum(first[there], k)
    passed = (first < problem.spread[model]) & (first < _ahead(problem, raw)[some])
    return sentences(
        some[passed],
        lambda s: f"{named(raw, s)} passes a copy of its model on GPUs that come before.",
    )


def _first_come(problem: "Problem", raw: "RawPack", line: "np.typing.NDArray[np.bool_]") -> list[str]:
    """Strict order of a queue: nobody is placed while somebody of higher priority, or who came earlier, waits in it.

    Within an instant, a task that comes back to the queue may come back after a placement: only who waited before the
    instant counts as passed, and arrivals.
    """
    rows, tasks = raw.stages, problem.tasks
    placed = np.flatnonzero(((rows.kind == LOAD) | (rows.kind == RESTORE)) & line[rows.task])
    at, who = rows.start_us[placed], rows.task[placed]
    task, since, until = _waits(problem, raw, line)
    found: list[str] = []
    values = np.unique(tasks.priority[line])
    for value in values.tolist():
        mine = tasks.priority[who] == value
        passers, when, which = who[mine], at[mine], placed[mine]
        above = tasks.priority[task] > value
        # of higher priority: how many came before each placement and had not gone by then
        came = np.searchsorted(np.sort(since[above]), when, "right")
        gone = np.searchsorted(np.sort(until[above]), when, "right")
        passed = which[came > gone]
        found += sentences(
            passed, lambda s: f"{named(raw, s)} is placed while a task of higher priority waits."
        )
        same = tasks.priority[task] == value
        found += _passed(raw, task[same], since[same], until[same], passers, when, which)
    return found


def _waits(
    problem: "Problem", raw: "RawPack", line: "np.typing.NDArray[np.bool_]"
) -> tuple[Int64, Int64, Int64]:
    """Stretches in the queue: task, from, to (`NEVER`: it has not ended). First those from arrivals, by row.

    Stretches that begin with a return to the queue begin a microsecond later here (see `_first_come`).
    """
    rows, tasks = raw.stages, problem.tasks
    n = len(tasks)
    order = np.argsort(rows.task, kind="stable")
    job, kind = rows.task[order], rows.kind[order]
    first = np.full(n, NEVER, np.int64)
    loads = order[kind == LOAD][::-1]
    first[rows.task[loads]] = rows.start_us[loads]
    waits = line & (raw.state != REJECTED) & ~((raw.state == WAITING) & (tasks.arrival_us > raw.end_us))
    never = first >= NEVER
    first[never] = np.where(raw.state[never] == TIMED_OUT, raw.left_us[never], NEVER)
    new = np.flatnonzero(waits)
    # what follows a save, or a failure after its pause
    back = np.flatnonzero(
        line[job]
        & (((kind == SAVE) & (rows.outcome[order] == WENT_ON)) | (rows.outcome[order] == OUT_OF_MEMORY))
    )
    following = np.append(order[1:], -1)[back]
    more = (following >= 0) & (np.append(job[1:], -1)[back] == job[back])
    fails = rows.outcome[order[back]] == OUT_OF_MEMORY
    since = rows.end_us[order[back]] + np.where(fails, problem.scenario.retry.after_us, 0) + 1
    gone = np.minimum(raw.left_us[job[back]], NEVER)
    until = np.where(more, rows.start_us[following], gone)
    some = until >= since
    return (
        np.concatenate([new, job[back][some]]),
        np.concatenate([tasks.arrival_us[new], since[some]]),
        np.concatenate([first[new], until[some]]),
    )


def _passed(
    raw: "RawPack", task: Int64, since: Int64, until: Int64, who: Int64, when: Int64, which: Int64
) -> list[str]:
    """Placements (``who, when``; stages ``which``) at which an earlier task of the same priority waited."""
    if not len(who) or not len(task):
        return []

    def say(pair: tuple[int, int]) -> str:
        return f"{named(raw, pair[0])} is placed while task {pair[1]}, which came before it, waits."

    # who came first waits since its arrival: by row, the latest end so far of such a wait
    _, one = np.unique(task, return_index=True)  # the first stretch of each task, by row
    early, ends = task[one], until[one]
    longest = np.maximum.accumulate(ends)
    ahead = np.searchsorted(early, who, "left")
    passed = (ahead > 0) & (longest[np.maximum(ahead - 1, 0)] > when)
    pairs = [
        (int(which[k]), int(early[np.argmax(ends[: ahead[k]] > when[k])]))
        for k in np.flatnonzero(passed).tolist()[:1000]
    ]
    # who came back: any placement of a later row while it waits
    order = np.argsort(when, kind="stable")
    later = np.ones(len(task), bool)
    later[one] = False
    for k in np.flatnonzero(later).tolist():
        lo, hi = np.searchsorted(when[order], [since[k], until[k]], "left")
        if hi > lo:
            worst = order[lo:hi][int(np.argmax(who[order[lo:hi]]))]
            if who[worst] > task[k]:
                pairs.append((int(which[worst]), int(task[k])))
    found = sentences(range(len(pairs)), lambda k: say(pairs[k]))
    return found
