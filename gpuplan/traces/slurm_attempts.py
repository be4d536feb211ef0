"""Which records of a `sacct` export are about the same job: attempts, repeats, steps, tasks of waiting arrays.

A job is known by its cluster, its raw id and its first submission: when it is put back into the queue it keeps the id
and gets a new submission, and after years ids begin again.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpuplan.traces import slurm_kernels as kernels
from gpuplan.traces.history import LONE_STEP, REPEAT, STEP, SUPERSEDED, UNKNOWN, UNREADABLE, USED
from gpuplan.traces.slurm_words import Tasks

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: A job that is put back into the queue is submitted again when its attempt ends; after a longer gap the id was given
#: to another job.
GAP_S = 86_400

#: What a record tells about an attempt, the more the better.
_WAITS, _RUNS, _OVER = 0, 1, 2


@dataclass(slots=True)
class Records:
    """What tells records apart, a row per record.

    Attributes
    ----------
    line, hash, number, array, task, part, kind, cluster, user : int64[R]
        `number` is the raw id where the file has one, else that of the id; `array` is the number in front of a task.
    user_known, bad, waits, runs : bool[R]
    submit_s, start_s, end_s, elapsed_s : int64[R]
    same : list
        Columns that are equal in an exact repeat.
    raw
        Whether the file has raw ids.
    """

    line: Int64
    hash: Int64
    number: Int64
    array: Int64
    task: Int64
    part: Int64
    kind: Int64
    cluster: Int64
    user: Int64
    user_known: Bools
    bad: Bools
    waits: Bools
    runs: Bools
    submit_s: Int64
    start_s: Int64
    end_s: Int64
    elapsed_s: Int64
    same: list[Int64]
    raw: bool


@dataclass(slots=True)
class Identity:
    """What became of the records.

    Attributes
    ----------
    key : int64[R]
        Number of the job's id.
    first : int64[key]
        First record with it.
    reason : int8[R]
    attempt : int64[R]
    life : int64[R]
        Which of the jobs that had the same id, from 0.
    life_submit : dict
        By key and life: the submission by which a later job is known.
    """

    key: Int64
    first: Int64
    reason: npt.NDArray[np.int8]
    attempt: Int64
    life: Int64
    life_submit: dict[tuple[int, int], int] = field(default_factory=dict)


def identify(records: Records) -> Identity:
    """Number the jobs, and tell attempts, repeats and steps apart."""
    key, first = _keys(records)
    n = len(key)
    found = Identity(key, first, np.zeros(n, np.int8), np.ones(n, np.int64), np.zeros(n, np.int64))
    reason = found.reason
    reason[records.bad] = UNREADABLE
    reason[(reason == USED) & _repeated(records, key)] = REPEAT
    is_step = records.kind == kernels.A_STEP
    is_job = (reason == USED) & ~is_step
    jobs = np.bincount(key[is_job], minlength=len(first))
    steps = (reason == USED) & is_step
    reason[steps] = np.where(jobs[key[steps]] > 0, STEP, LONE_STEP)
    several = np.flatnonzero(is_job & (jobs[key] > 1))
    order = several[np.lexsort((records.line[several], key[several]))]
    at = 0
    while at < len(order):
        end = at + int(jobs[key[order[at]]])
        _one_job(records, order[at:end].tolist(), found)
        at = end
    return found


def _keys(records: Records) -> tuple[Int64, Int64]:
    """The number of each record's job id, in order of appearance, and the first record of each."""
    import pandas as pd

    tasks = records.kind == kernels.TASKS
    # a waiting array has the raw id that its last task will have
    part = np.where(tasks, -2, -1 if records.raw else records.part)
    key = records.number
    columns = [records.cluster, part] if records.raw else [records.cluster, part, records.task]
    for column in columns:
        low = int(column.min(initial=0))
        if int(column.max(initial=0)) == low:
            continue
        width = int(column.max()) - low + 1
        codes = np.asarray(pd.factorize(key)[0], np.int64)
        if len(codes) * width < 1 << 62:
            key = codes * width + (column - low)
        else:  # numbers of tasks that nobody gives
            key = codes * (len(codes) + 1) + np.asarray(pd.factorize(column)[0], np.int64)
    codes = np.asarray(pd.factorize(key)[0], np.int64)
    return codes, _firsts(codes)


def _firsts(codes: Int64) -> Int64:
    """The first row of each code."""
    first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def _repeated(records: Records, key: Int64) -> Bools:
    """Records that are equal to an earlier one in every field."""
    import pandas as pd

    codes = np.asarray(pd.factorize(records.hash)[0], np.int64)
    first = _firsts(codes)[codes]
    again = np.flatnonzero(first != np.arange(len(codes)))
    equal = (key[again] == key[first[again]]) & ~records.bad[first[again]]
    for column in records.same:
        equal &= column[again] == column[first[again]]
    found = np.zeros(len(codes), np.bool_)
    found[again[equal]] = True
    return found


def _one_job(records: Records, rows: list[int], found: Identity) -> None:
    """Tell the records of one id apart: of each attempt the one that tells most stays."""
    submit, start = records.submit_s, records.start_s
    attempts: dict[tuple[int, int], int] = {}
    waiting: dict[int, list[int]] = {}
    alone = []
    for row in rows:
        begun = int(start[row])
        if begun != UNKNOWN:
            slot = (int(submit[row]), begun)
            attempts[slot] = _better(records, found, attempts.get(slot), row)
        elif submit[row] != UNKNOWN:
            waiting.setdefault(int(submit[row]), []).append(row)
        else:
            alone.append(row)
    begun_then = {moment for moment, _ in attempts}
    for moment, those in waiting.items():
        if moment in begun_then:
            found.reason[those] = SUPERSEDED
            continue
        stays: int | None = None
        for row in those:
            stays = _better(records, found, stays, row)
        alone += [] if stays is None else [stays]
    _number(records, [*attempts.values(), *alone], found)


def _better(records: Records, found: Identity, one: int | None, other: int) -> int:
    """Of two records of an attempt the one that tells more, else the later one; the other is marked."""
    if one is None:
        return other
    stays, goes = (one, other) if _rank(records, one) > _rank(records, other) else (other, one)
    found.reason[goes] = SUPERSEDED
    return stays


def _rank(records: Records, row: int) -> tuple[int, int]:
    state = _WAITS if records.waits[row] else _RUNS if records.runs[row] else _OVER
    return state, int(records.elapsed_s[row])


def _number(records: Records, rows: list[int], found: Identity) -> None:
    """Number the attempts in order of time; after a gap, or with another user, the id is another job's."""
    moment = np.where(records.submit_s[rows] != UNKNOWN, records.submit_s[rows], records.start_s[rows])
    order = np.lexsort((records.line[rows], records.start_s[rows], moment))
    attempt, life, end, user = 0, 0, UNKNOWN, UNKNOWN
    for row, submitted in ((rows[k], int(moment[k])) for k in order.tolist()):
        name = int(records.user[row]) if records.user_known[row] else UNKNOWN
        other = user != UNKNOWN and name not in (user, UNKNOWN)
        late = end != UNKNOWN and submitted != UNKNOWN and submitted > end + GAP_S
        if attempt and (other or late):
            life, attempt = life + 1, 0
            found.life_submit[int(found.key[row]), life] = submitted
        attempt += 1
        found.attempt[row], found.life[row] = attempt, life
        user = name if name != UNKNOWN else user
        end = _end_of(records, row)


def _end_of(records: Records, row: int) -> int:
    """When an attempt ended; `UNKNOWN` while it has not, or where nobody knows."""
    if records.waits[row] or records.runs[row]:
        return UNKNOWN
    if records.end_s[row] != UNKNOWN:
        return int(records.end_s[row])
    if records.start_s[row] != UNKNOWN and records.elapsed_s[row] != UNKNOWN:
        return int(records.start_s[row] + records.elapsed_s[row])
    return UNKNOWN


def waiting_tasks(records: Records, found: Identity, lists: dict[int, Tasks]) -> tuple[Int64, int]:
    """Tasks that each record stands for, int64[R], and how many of a waiting array have a record of their own."""
    tasks = np.ones(len(records.line), np.int64)
    if not lists:
        return tasks, 0
    own: dict[tuple[int, int], list[int]] = {}
    single = np.flatnonzero((found.reason == USED) & (records.kind == kernels.JOB) & (records.task >= 0))
    for cluster, array, task in zip(
        *(column[single].tolist() for column in (records.cluster, records.array, records.task)), strict=True
    ):
        own.setdefault((cluster, array), []).append(task)
    arrays = {key: np.unique(np.array(values, np.int64)) for key, values in own.items()}
    taken = 0
    for row, listed in lists.items():
        if found.reason[row] != USED:
            continue
        there = arrays.get((int(records.cluster[row]), int(records.array[row])), np.empty(0, np.int64))
        known = sum(_in_range(there, *part) for part in listed.ranges) if len(there) else 0
        tasks[row] = listed.count - known
        taken += known
        if tasks[row] == 0 and not listed.cut_off:
            found.reason[row] = SUPERSEDED
    return tasks, taken


def _in_range(tasks: Int64, first: int, last: int, step: int) -> int:
    """How many of some sorted tasks a part of a list names."""
    inside = tasks[np.searchsorted(tasks, first) : np.searchsorted(tasks, last, side="right")]
    return int(((inside - first) % step == 0).sum())
