"""From a history to the jobs that fair share can replay, and to what ran as it was."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import NEVER
from gpuplan.inputs.account import Account
from gpuplan.traces.history import NO_LIMIT, UNKNOWN, Bools, History, Int64, line_list

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Jobs of a history as a policy can run them, and the account of every row of it.

    Attributes
    ----------
    jobs
        Submission in seconds after `zero_s`.
    zero_s
        Time 0 of the jobs, in the seconds of the history.
    account
    """

    jobs: Jobs
    zero_s: int
    account: Account


#: Why a used row of a history is in no job, in the order in which it is asked.
_WAITS = "waits: how long it will run is not known"
_NEVER_STARTED = "never started"
_NO_SUBMISSION = "submission unknown"
_NO_GPUS = "GPUs unknown"
_ZERO_GPUS = "0 GPUs"
_NO_RUN = "run time unknown"


def replay(
    history: History,
    *,
    attempts: Literal["sum", "last", "each"] = "sum",
    minimum_s: int = 3600,
    resumable: bool = True,
    zero_s: int | None = None,
) -> Replay:
    """The jobs of a history that a policy can run.

    The team is the history's, ``unknown`` where it is not told. A run beyond its limit is ended at the limit. A job
    that still runs counts with its run time so far.

    Parameters
    ----------
    history
    attempts
        What becomes of a job that ran several times. ``sum``: one job, submitted first, whose run time (and limit) is
        that of all attempts, on the GPUs of the last: the GPU time held stays what it was, to within a second of them.
        ``last``: one job with the run time of the last attempt: what a policy that never preempts, on nodes that never
        fail, would have needed. ``each``: every attempt is a job of its own, submitted when it was put back into the
        queue.
    minimum_s
        Declared minimum run time, seconds, or the limit where that is shorter (no accounting names one).
    resumable
        Whether jobs go on from a checkpoint after a preemption (no accounting says so).
    zero_s
        Time 0 of the jobs; None: the first submission.
    """
    reason = _reasons(history)
    rows = np.flatnonzero((reason == "").astype(np.bool_))
    if zero_s is None:
        zero_s = int(history.submit_s[rows].min()) if len(rows) else 0
    if attempts == "each":
        starts = np.arange(len(rows))
    else:
        rows, starts = in_jobs(history, rows)
    last = np.append(starts[1:], len(rows))[: len(starts)] - 1
    limit = np.where(history.limit_s[rows] > 0, history.limit_s[rows], NO_LIMIT)
    run = history.elapsed_s[rows]
    if attempts == "sum" and len(rows):
        run = together(history, rows, starts, run)
        limits = together(history, rows, starts, np.where(limit == NO_LIMIT, 0, limit))
        limit = np.where(np.maximum.reduceat(limit, starts) == NO_LIMIT, NEVER, limits)
    else:
        run, limit = run[last], limit[last]
    first, of = rows[starts], rows[last]
    made = make_jobs(
        _names(history, of, attempts),
        (history.submit_s[first] - zero_s).tolist(),
        history.gpus[of].tolist(),
        run.tolist(),
        team=[team or "unknown" for team in history.team[of].tolist()],
        limit_s=limit.tolist(),
        minimum_s=np.minimum(limit, minimum_s).tolist(),
        resumable=resumable,
        gpu=["" if ":" in kind else kind for kind in history.gpu_type[of].tolist()],
    )
    return Replay(made, zero_s, _account(history, reason, made, run, limit, attempts))


def _reasons(history: History) -> "np.ndarray[tuple[int], np.dtype[np.object_]]":
    """Why each row is in no job, object[R]; ``""``: it is in one."""
    from gpuplan.traces.history import REASONS

    gone = np.array(REASONS, object)[history.reason]
    conditions: list[tuple[str, Bools]] = [
        (_WAITS, history.waiting),
        (_NEVER_STARTED, history.never_started),
        (_NO_SUBMISSION, history.submit_s == UNKNOWN),
        (_NO_GPUS, history.gpus == UNKNOWN),
        (_ZERO_GPUS, history.gpus == 0),
        (_NO_RUN, history.elapsed_s == UNKNOWN),
    ]
    for text, holds in reversed(conditions):
        gone[history.used & holds] = text
    return gone


def in_jobs(history: History, rows: Int64) -> tuple[Int64, Int64]:
    """Rows in order of job (by its first row) and attempt, and where each job starts among them."""
    import pandas as pd

    codes = np.asarray(pd.factorize(history.job[rows])[0], np.int64)
    order = np.lexsort((history.attempt[rows], codes))
    codes = codes[order]
    starts = (
        np.flatnonzero(np.append([True], codes[1:] != codes[:-1])) if len(rows) else np.empty(0, np.int64)
    )
    return rows[order], starts


def together(history: History, rows: Int64, starts: Int64, seconds: Int64) -> Int64:
    """Seconds of the attempts of each job on the GPUs of its last one: the same GPU time, rounded up, int64[J].

    Parameters
    ----------
    history, rows, starts
        See `in_jobs`.
    seconds : int64[R]
        Of each attempt.
    """
    gpus = np.maximum(history.gpus[rows], 1)
    last = gpus[np.append(starts[1:], len(rows)) - 1]
    return np.asarray(-(-np.add.reduceat(gpus * seconds, starts) // last), np.int64)


def _names(history: History, rows: Int64, attempts: str) -> list[str]:
    names: list[str] = history.job[rows].tolist()
    if attempts != "each":
        return names
    numbers = history.attempt[rows].tolist()
    return [name if k == 1 else f"{name}/attempt-{k}" for name, k in zip(names, numbers, strict=True)]


def _account(
    history: History,
    reason: "np.ndarray[tuple[int], np.dtype[np.object_]]",
    made: Jobs,
    run: Int64,
    limit: Int64,
    attempts: str,
) -> Account:
    texts = [text for text in dict.fromkeys(reason.tolist()) if text]
    excluded = tuple(
        (f"{text} ({line_list(history.line[reason == text])})", int((reason == text).sum())) for text in texts
    )
    used = int((reason == "").sum())
    running = int((history.running & (reason == "")).sum())
    changed = (
        ("attempts counted with another of their job", used - len(made)),
        ("no limit is known: none", int((limit == NEVER).sum())),
        ("ran beyond their limit: end at the limit", int((run > limit).sum())),
        ("still running: with the run time so far", running),
    )
    rules = {
        "sum": "A job that ran several times is one job with the run time and the limit of all attempts.",
        "last": "A job that ran several times is one job with the run time of its last attempt.",
        "each": "Every attempt is a job of its own.",
    }
    return Account(
        history.source,
        "rows",
        len(history),
        used,
        excluded,
        tuple(row for row in changed if row[1]),
        (("work of the jobs", sum(made.gpu_seconds.tolist()) / 3600, "GPU-hours"),),
        (
            rules[attempts],
            "Minimum run time: 1 h, or the limit where that is shorter, unless another is asked for.",
            "The file does not say which jobs can resume after a preemption.",
        ),
        made="jobs",
    )


def by_job(history: History) -> "pd.DataFrame":
    """A row per job of the rows used, by first appearance, its attempts taken together.

    Columns ``job, attempts, tasks, state`` (of the last attempt), ``first_wait_s`` (to its first start), ``wait_s`` (of
    all attempts), ``turnaround_s`` (first submission to last end), ``gpu_seconds`` (held by all attempts),
    ``lost_gpu_seconds`` (held by attempts after which there was another one). What is not known is ``<NA>``.
    """
    import pandas as pd

    rows, starts = in_jobs(history, np.flatnonzero(history.used))
    last = rows[np.append(starts[1:], len(rows))[: len(starts)] - 1]
    first = rows[starts]
    wait = history.wait_s[rows]
    held = np.where(
        (history.gpus[rows] >= 0) & (history.elapsed_s[rows] >= 0) & ~history.waiting[rows],
        history.gpus[rows] * history.elapsed_s[rows],
        UNKNOWN,
    )
    lost = held.copy()
    lost[np.isin(rows, last)] = 0
    submit, end = history.submit_s[first], history.end_s[last]
    columns = {
        "first_wait_s": history.wait_s[first],
        "wait_s": _known_sums(wait, starts),
        "turnaround_s": np.where((submit != UNKNOWN) & (end != UNKNOWN), end - submit, UNKNOWN),
        "gpu_seconds": _known_sums(held, starts),
        "lost_gpu_seconds": _known_sums(lost, starts),
    }
    return pd.DataFrame(
        {
            "job": history.job[first],
            "attempts": np.diff(np.append(starts, len(rows))),
            "tasks": history.tasks[first],
            "state": history.state[last],
        }
        | {name: pd.arrays.IntegerArray(values, values == UNKNOWN) for name, values in columns.items()}
    )


def _known_sums(values: Int64, starts: Int64) -> Int64:
    """Sums of the known values of each job; `UNKNOWN` where none is known."""
    if not len(starts):
        return np.empty(0, np.int64)
    known = values != UNKNOWN
    sums = np.add.reduceat(np.where(known, values, 0), starts)
    return np.asarray(np.where(np.logical_or.reduceat(known, starts), sums, UNKNOWN), np.int64)


def stretches(history: History) -> "pd.DataFrame":
    """What ran, as it was, a row per attempt that held GPUs, by start, then line.

    Columns ``row, job, attempt, team, user, gpus, submit_s, start_s, end_s, state, running``; `row` is a place in the
    history. The end is ``start_s + elapsed_s``, for `elapsed_s` is right whatever the clock did; where only the end is
    known, the start is reckoned from it. Rows without a known place in time, or without GPUs, are not here.
    """
    import pandas as pd

    start, elapsed, end = history.start_s, history.elapsed_s, history.end_s
    elapsed = np.where((elapsed == UNKNOWN) & (start != UNKNOWN) & (end >= start), end - start, elapsed)
    start = np.where((start == UNKNOWN) & (end != UNKNOWN) & (elapsed > 0), end - elapsed, start)
    ran = history.used & ~history.waiting & (start != UNKNOWN) & (elapsed != UNKNOWN) & (history.gpus > 0)
    rows = np.flatnonzero(ran)
    rows = rows[np.lexsort((history.line[rows], start[rows]))]
    return pd.DataFrame(
        {
            "row": rows,
            "job": history.job[rows],
            "attempt": history.attempt[rows],
            "team": history.team[rows],
            "user": history.user[rows],
            "gpus": history.gpus[rows],
            "submit_s": history.submit_s[rows],
            "start_s": start[rows],
            "end_s": (start + elapsed)[rows],
            "state": history.state[rows],
            "running": history.running[rows],
        }
    )
