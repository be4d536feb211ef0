"""Rules that a run must keep, whatever policy made it: violations as sentences.

It shares no code with the kernels: everything is recomputed from the tasks, the stages and the copies. This file
looks at tasks; `gpuplan.packing.check_shapes` at the tables, `gpuplan.packing.check_node` at copies,
`gpuplan.packing.check_links` at loads, `gpuplan.packing.check_memory` at slots and memory,
`gpuplan.packing.check_policies` at whose turn it is.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.ledger import PARTS, ledger
from gpuplan.packing.model import NEVER, Bools, Int64, Pieces
from gpuplan.packing.progress import SCALE, Progress
from gpuplan.packing.raw import (
    CUT,
    DONE,
    FAILED,
    LOAD,
    ON_GPU,
    OUT_OF_MEMORY,
    PREEMPTED,
    REJECTED,
    RESTORE,
    RUN,
    SAVE,
    TIMED_OUT,
    WAITING,
    WENT_ON,
)
from gpuplan.packing.spread import gpus_of
from gpuplan.packing.words import on_gpus

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack

#: Violations of one rule that are spelled out; the rest are counted.
SHOWN = 5

#: Words for stages and for what became of a task, by their codes.
KINDS = ("load", "run", "save", "restore")
STATES = ("done", "rejected", "failed", "timed out", "waiting", "on a GPU")


def check(problem: "Problem", pieces: Pieces, raw: "RawPack") -> list[str]:
    """Violations of the rules of a run, a sentence each; none for a legal one.

    Parameters
    ----------
    problem, raw
        The scenario as arrays, and what the policy did.
    pieces
        The policy.
    """
    from gpuplan.packing import check_memory, check_node, check_policies, check_shapes

    if shapes := check_shapes.violations(problem, raw):
        return shapes  # nothing else can be looked at
    found: list[str] = []
    for rule in (_times, _turns, _ends, _fates, _deadlines, _retries, _lengths, _splits):
        found += rule(problem, raw)
    found += check_node.violations(problem, pieces, raw)
    found += check_memory.violations(problem, raw)
    return found + check_policies.violations(problem, pieces, raw)


def sentences(rows: Iterable[int], say: Callable[[int], str]) -> list[str]:
    """The first violations of a rule as sentences, the others counted."""
    listed = list(rows)
    found = [say(row) for row in listed[:SHOWN]]
    if len(listed) > SHOWN:
        found.append(f"... and {len(listed) - SHOWN:,} more like the last one.")
    return found


def named(raw: "RawPack", stage: int) -> str:
    """A stage in a sentence: ``Task 3 (run on GPU 0, 4 to 10 us)``."""
    rows = raw.stages
    where = f"{KINDS[rows.kind[stage]]} on {on_gpus(gpus_of(raw.copies, int(rows.copy[stage])))}"
    return f"Task {rows.task[stage]} ({where}, {rows.start_us[stage]} to {rows.end_us[stage]} us)"


def by_task(raw: "RawPack") -> Int64:
    """Stages by task, then in their order, int64[S]."""
    return np.argsort(raw.stages.task, kind="stable")


def _times(problem: "Problem", raw: "RawPack") -> list[str]:
    """Nothing before its arrival, after the end, or backwards; rows by start."""
    rows = raw.stages
    arrival = problem.tasks.arrival_us[rows.task]
    found = sentences(
        np.flatnonzero(rows.start_us < arrival),
        lambda s: f"{named(raw, s)} starts before its arrival at {arrival[s]} us.",
    )
    found += sentences(
        np.flatnonzero(rows.end_us < rows.start_us), lambda s: f"{named(raw, s)} ends before it starts."
    )
    found += sentences(
        np.flatnonzero(rows.end_us > raw.end_us),
        lambda s: f"{named(raw, s)} ends after the run, which ends at {raw.end_us} us.",
    )
    inside = np.where(
        rows.kind == RESTORE,
        (rows.frozen_from_us >= rows.start_us) & (rows.frozen_from_us <= rows.end_us),
        rows.frozen_from_us == rows.start_us,
    )
    found += sentences(
        np.flatnonzero(~inside), lambda s: f"{named(raw, s)} is frozen from {rows.frozen_from_us[s]} us."
    )
    if len(rows) and (np.diff(rows.start_us) < 0).any():
        found.append("The stages are not in order of their start.")
    if raw.end_us > problem.until_us:
        found.append(f"The run ends at {raw.end_us} us, after its horizon of {problem.until_us} us.")
    return found


def _turns(problem: "Problem", raw: "RawPack") -> list[str]:
    """Load, run; where it is interrupted, save, restore and run; after a failure load again; on one copy in between."""
    rows, order = raw.stages, by_task(raw)
    first = np.ones(len(order), bool)
    first[1:] = np.diff(rows.task[order]) != 0
    found = sentences(
        order[first & (rows.kind[order] != LOAD)],
        lambda s: f"{named(raw, s)} is the first of its stages and no load.",
    )
    before, after = order[:-1][~first[1:]], order[1:][~first[1:]]
    kind, then, how = rows.kind[before], rows.kind[after], rows.outcome[before]
    goes_on = (how == WENT_ON) & (
        (np.isin(kind, (LOAD, RESTORE)) & (then == RUN)) | ((kind == SAVE) & (then == RESTORE))
    )
    goes_on |= (how == PREEMPTED) & (kind == RUN) & (then == SAVE)
    again = (how == OUT_OF_MEMORY) & (then == LOAD)
    found += sentences(
        after[~(goes_on | again)],
        lambda s: f"{named(raw, s)} does not follow from the stage of the task before it.",
    )
    gap = rows.start_us[after] - rows.end_us[before]
    apart = (kind == SAVE) | again
    found += sentences(
        after[(gap < 0) | (~apart & (gap != 0))],
        lambda s: f"{named(raw, s)} does not begin where the stage before it ends.",
    )
    found += sentences(
        after[~apart & (rows.copy[after] != rows.copy[before])],
        lambda s: f"{named(raw, s)} is on another copy than the stage before it.",
    )
    odd = ((rows.outcome == PREEMPTED) & (rows.kind != RUN)) | (
        (rows.outcome == OUT_OF_MEMORY) & (rows.kind == SAVE)
    )
    found += sentences(np.flatnonzero(odd), lambda s: f"{named(raw, s)} cannot end like this.")
    # how often a task had failed when the stage began
    failed = (rows.outcome[order] == OUT_OF_MEMORY).astype(np.int64)
    so_far = np.cumsum(failed) - failed
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0)) if len(order) else order
    wrong = rows.attempt[order] != so_far - so_far[start]
    return found + sentences(
        order[wrong], lambda s: f"{named(raw, s)} is counted as attempt {rows.attempt[s]}, which it is not."
    )


def _ends(problem: "Problem", raw: "RawPack") -> list[str]:
    """What the end of the run cuts goes to the end; without a horizon nothing is cut."""
    rows = raw.stages
    cut = rows.outcome == CUT
    found = sentences(
        np.flatnonzero(cut & (rows.end_us != raw.end_us)),
        lambda s: f"{named(raw, s)} is cut by the end of the run, which is at {raw.end_us} us.",
    )
    if problem.until_us >= NEVER:
        found += sentences(
            np.flatnonzero(cut), lambda s: f"{named(raw, s)} is cut, and the run has no horizon."
        )
    elif cut.any() and raw.end_us != problem.until_us:
        found.append(f"Stages are cut at {raw.end_us} us, before the horizon of {problem.until_us} us.")
    return found


def _last_stage(problem: "Problem", raw: "RawPack") -> Int64:
    """The last stage of each task, int64[J]; -1 where it has none."""
    last = np.full(len(problem.tasks), -1, np.int64)
    order = by_task(raw)
    last[raw.stages.task[order]] = order  # of several rows of one task the last one that is written stays
    return last


def _fates(problem: "Problem", raw: "RawPack") -> list[str]:
    """What became of a task follows from its stages: every task that arrived is in exactly one state."""
    tasks, rows, state, left = problem.tasks, raw.stages, raw.state, raw.left_us
    last = _last_stage(problem, raw)
    kind = np.where(last >= 0, rows.kind[last], -1) if len(rows) else last
    how = np.where(last >= 0, rows.outcome[last], -1) if len(rows) else last
    end = np.where(last >= 0, rows.end_us[last], -1) if len(rows) else last
    never = np.zeros(len(tasks), bool)
    never[list(problem.rejected)] = True
    most = problem.scenario.retry.most
    failed = how == OUT_OF_MEMORY
    open_to = (kind < 0) | failed | ((kind == SAVE) & (how == WENT_ON))
    right = np.select(
        [state == code for code in (DONE, REJECTED, FAILED, TIMED_OUT, WAITING, ON_GPU)],
        [
            (kind == RUN) & (how == WENT_ON) & (left == end),
            never & (last < 0) & (left == tasks.arrival_us),
            failed & (raw.failures == most + 1) & (left == end),
            ((kind < 0) | failed)
            & (raw.failures <= most)
            & (left >= tasks.arrival_us)
            & (left <= raw.end_us),
            open_to & (raw.failures <= most) & (left == NEVER),
            (how == CUT) & (left == NEVER),
        ],
        False,
    )
    late = (state == WAITING) & (tasks.arrival_us >= raw.end_us)
    right &= (never == (state == REJECTED)) | (never & late)
    found = sentences(
        np.flatnonzero(~right),
        lambda j: f"Task {j} is said to be {STATES[state[j]]}, which does not follow from its stages.",
    )
    if problem.until_us >= NEVER:
        late = state == ON_GPU
        found += sentences(
            np.flatnonzero(late), lambda j: f"Task {j} is on a GPU when the run ends, for ever."
        )
    failures = np.bincount(rows.task[rows.outcome == OUT_OF_MEMORY], minlength=len(tasks))
    return found + sentences(
        np.flatnonzero(failures != raw.failures),
        lambda j: (
            f"Task {j} is said to have failed {raw.failures[j]} times; {failures[j]} of its stages did."
        ),
    )


def _returns(problem: "Problem", raw: "RawPack") -> Int64:
    """When each task was last back in the queue without having run on: its arrival, or its return from a failure."""
    rows, back = raw.stages, problem.tasks.arrival_us.copy()
    failed = rows.outcome == OUT_OF_MEMORY
    np.maximum.at(back, rows.task[failed], rows.end_us[failed] + problem.scenario.retry.after_us)
    return back


def _deadlines(problem: "Problem", raw: "RawPack") -> list[str]:
    """A task that was never served leaves at its deadline, and no other does."""
    tasks, rows = problem.tasks, raw.stages
    deadline = tasks.deadline_us
    ran = np.full(len(tasks), NEVER, np.int64)
    first = rows.kind == RUN
    np.minimum.at(ran, rows.task[first], rows.start_us[first])
    back = _returns(problem, raw)
    out = raw.state == TIMED_OUT
    found = sentences(
        np.flatnonzero(out & ((ran < NEVER) | (raw.left_us != np.maximum(deadline, back)))),
        lambda j: f"Task {j} timed out at {raw.left_us[j]} us; its deadline is {deadline[j]} us.",
    )
    stays = (raw.state == WAITING) & (ran >= NEVER) & (np.maximum(deadline, back) < raw.end_us)
    found += sentences(
        np.flatnonzero(stays), lambda j: f"Task {j} still waits after its deadline at {deadline[j]} us."
    )
    # the attempt in which it first ran; it may be placed late in later ones
    served = np.full(len(tasks), NEVER, np.int64)
    np.minimum.at(served, rows.task[first], rows.attempt[first])
    late = (rows.kind == LOAD) & (rows.start_us >= deadline[rows.task])
    late &= rows.attempt <= served[rows.task]
    return found + sentences(
        np.flatnonzero(late),
        lambda s: f"{named(raw, s)} is placed at its deadline of {deadline[rows.task[s]]} us or later.",
    )


def _retries(problem: "Problem", raw: "RawPack") -> list[str]:
    """A task that failed comes back as much later as is said, and at most as often."""
    rows, retry = raw.stages, problem.scenario.retry
    order = by_task(raw)
    before, after = order[:-1], order[1:]
    again = (rows.task[before] == rows.task[after]) & (rows.outcome[before] == OUT_OF_MEMORY)
    early = again & (rows.start_us[after] < rows.end_us[before] + retry.after_us)
    found = sentences(
        after[early],
        lambda s: f"{named(raw, s)} comes back less than {retry.after_us} us after its failure.",
    )
    return found + sentences(
        np.flatnonzero(rows.attempt > retry.most),
        lambda s: (
            f"{named(raw, s)} is attempt {rows.attempt[s]}; a task comes back {retry.most} times at most."
        ),
    )


def _lengths(problem: "Problem", raw: "RawPack") -> list[str]:
    """Runs, saves and restores take as long as they take: not a microsecond more or less."""
    rows, cost = raw.stages, problem.scenario.preemption
    length = rows.end_us - rows.start_us
    went, cut = rows.outcome == WENT_ON, rows.outcome == CUT
    found: list[str] = []
    for kind, held, right in (
        (SAVE, length, cost.save_us),
        (RESTORE, rows.end_us - rows.frozen_from_us, cost.restore_us),
    ):
        mine = rows.kind == kind
        wrong = mine & ((went & (held != right)) | (cut & (held > right)))
        found += sentences(
            np.flatnonzero(wrong),
            lambda s, held=held, right=right: f"{named(raw, s)} takes {held[s]} us; it takes {right} us.",  # type: ignore[misc]
        )
    return found + _runs(problem, raw)


def _runs(problem: "Problem", raw: "RawPack") -> list[str]:
    """A run ends at the first whole microsecond at which all its service is done, and only then."""
    rows = raw.stages
    progress = Progress(problem, raw)
    all_of_it = progress.service_us * SCALE
    done = progress.before + progress.gained
    length = rows.end_us - rows.start_us
    runs = rows.kind == RUN
    some = np.flatnonzero(runs & (length > 0))
    almost = progress.before.copy()
    almost[some] += progress.service_of(some, rows.end_us[some] - 1)
    finished = runs & (rows.outcome == WENT_ON)
    found = sentences(
        np.flatnonzero(finished & (done < all_of_it)),
        lambda s: (
            f"{named(raw, s)} ends with {done[s] / SCALE:,.3f} us of {all_of_it[s] // SCALE:,} us done."
        ),
    )
    found += sentences(
        np.flatnonzero(runs & (length > 0) & (almost >= all_of_it)),
        lambda s: f"{named(raw, s)} goes on after all of its {all_of_it[s] // SCALE:,} us are done.",
    )
    # what is done is done before anything else happens at that instant
    over: Bools = runs & (rows.outcome == PREEMPTED) & (done >= all_of_it) & (length > 0)
    return found + sentences(
        np.flatnonzero(over), lambda s: f"{named(raw, s)} is interrupted when all of it is done."
    )


def _splits(problem: "Problem", raw: "RawPack") -> list[str]:
    """The parts of a latency are whole times and add up to it."""
    books = ledger(problem, raw)
    parts = np.stack(books.parts)
    total = parts.sum(0)
    found = sentences(
        np.flatnonzero(total != books.latency),
        lambda j: f"The parts of task {j} add up to {total[j]} us; its latency is {books.latency[j]} us.",
    )
    least = parts.min(0) if len(total) else total
    return found + sentences(
        np.flatnonzero(least < 0),
        lambda j: f"Task {j} has a {PARTS[int(parts[:, j].argmin())]} part of {least[j]} us.",
    )
