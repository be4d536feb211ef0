"""The work of a span of a history: what was submitted in it, and the rest of what ran or waited at its start."""

from dataclasses import dataclass

import numpy as np

from gpuplan.fairshare.job_limits import MOST_JOB_GPUS, MOST_S
from gpuplan.traces.history import NO_LIMIT, REASONS, UNKNOWN, Bools, History, Int64, Strings, line_list
from gpuplan.traces.history_jobs import in_jobs, together

#: Why a row of a history is no work of a span, in the order in which it is asked.
WAITS = "waits: how long it will run is not known"
NEVER_STARTED = "never started"
NO_SUBMISSION = "neither submission nor start is known"
NO_GPUS = "GPUs unknown"
ZERO_GPUS = "no GPUs"
TOO_MANY_GPUS = f"more than {MOST_JOB_GPUS:,} GPUs"
NO_RUN = "run time unknown"
TOO_LONG = f"ran for more than {MOST_S // 86_400:,} days"
BEFORE = "ended before the span"
BEFORE_UNPLACED = "submitted before the span, and nothing tells when it ran"
CARRIED = "submitted before the span (such work is left out)"
AFTER = "submitted after the span"
SAMPLED = "not in the sample"
NO_TIME = "ran for less than a second"


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """``J`` jobs of a span, in order of submission, then of their first line.

    Attributes
    ----------
    history
        Where they are from.
    first_s, last_s
        The span, in seconds of the history; `last_s` is not in it.
    row : int64[J]
        Row of the last attempt of each job, which says its GPUs, team and so on.
    submit_s : int64[J]
        Seconds after the start of the span; 0 for what was submitted before.
    recorded_s : int64[J]
        Start of the first attempt that is not over at the start of the span, seconds after it (negative: it ran then
        already); `NOT_RECORDED` where nobody says.
    run_s, limit_s : int64[J]
        Run time in the span and after it, over all attempts, and what is left of the limit; `NO_LIMIT`: none is known.
    gpus : int64[J]
    attempts : int64[J]
        Rows that became one job.
    carried : bool[J]
        Submitted before the span.
    open : bool[J]
        Still ran when the file was written: the run time is that so far.
    why : object[R]
        Why each row of the history is not used; ``""``: it is.
    """

    history: History
    first_s: int
    last_s: int
    row: Int64
    submit_s: Int64
    recorded_s: Int64
    run_s: Int64
    limit_s: Int64
    gpus: Int64
    attempts: Int64
    carried: Bools
    open: Bools
    why: Strings

    def __len__(self) -> int:
        return len(self.row)

    @property
    def gpu_seconds(self) -> int:
        """Work of the jobs, exact."""
        return sum((self.gpus * self.run_s).tolist())

    @property
    def excluded(self) -> tuple[tuple[str, int], ...]:
        """Rows that are not used by reason, with their first lines, in order of the reasons."""
        counts = []
        for reason in dict.fromkeys(self.why.tolist()):
            if reason:
                lines = self.history.line[self.why == reason]
                counts.append((f"{reason} ({line_list(lines)})", len(lines)))
        return tuple(counts)

    def some(self, keep: Bools, reason: str) -> "Work":
        """The jobs of a mask bool[J]; the rows of the others are left out for a reason."""
        why = self.why.copy()
        gone = np.isin(self.history.job, self.history.job[self.row[~keep]]) & (why == "")
        why[gone] = reason
        columns = ("row", "submit_s", "recorded_s", "run_s", "limit_s", "gpus", "attempts", "carried", "open")
        return Work(
            self.history,
            self.first_s,
            self.last_s,
            **{name: getattr(self, name)[keep] for name in columns},
            why=why,
        )


#: Stands where the start of a job is not recorded.
NOT_RECORDED = NO_LIMIT


def work_of(history: History, first_s: int, last_s: int, *, before: bool = True) -> Work:
    """The jobs of a span.

    Attempts of a job are one job, submitted with the first of them; its run time is theirs together, so that the GPU
    time held stays what it was. A job that was submitted before the span and is not over when it starts is submitted
    at the start, with the rest of its time.

    Parameters
    ----------
    history
    first_s, last_s
        The span, in seconds of the history; `last_s` is not in it.
    before
        Whether work that ran or waited at the start is in it.
    """
    submit = np.where(history.submit_s != UNKNOWN, history.submit_s, history.start_s)
    why, ends, gone = _row_reasons(history, submit, first_s)
    rows = np.flatnonzero((why == "").astype(np.bool_))
    rows, starts = in_jobs(history, rows)
    if not len(rows):
        none, flags = np.empty(0, np.int64), np.empty(0, np.bool_)
        return Work(history, first_s, last_s, none, none, none, none, none, none, none, flags, flags, why)
    first_submit = np.minimum.reduceat(submit[rows], starts)
    of_row = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    placed = history.start_s[rows] != UNKNOWN
    # A job is judged by its first submission; an attempt of it that was over before the span has no time left in it.
    outside = [
        (AFTER, first_submit >= last_s),
        (CARRIED, (first_submit < first_s) & (not before)),
        (BEFORE_UNPLACED, (first_submit < first_s) & ~np.logical_or.reduceat(placed, starts)),
        (BEFORE, (first_submit < first_s) & (np.maximum.reduceat(ends[rows], starts) <= first_s)),
    ]
    keep = np.ones(len(starts), np.bool_)
    for reason, holds in outside:
        why[rows[(keep & holds)[of_row]]] = reason
        keep &= ~holds
    return _made(history, (first_s, last_s), rows, starts, first_submit, keep, gone, why)


def _row_reasons(history: History, submit: Int64, first_s: int) -> tuple[Strings, Int64, Int64]:
    """Why each row is left out, its end (or `UNKNOWN`), and its run time before the span; all [R]."""
    placed = (history.start_s != UNKNOWN) & (history.elapsed_s != UNKNOWN)
    ends = np.where(placed, history.start_s + history.elapsed_s, UNKNOWN)
    gone = np.where(placed, np.clip(first_s - history.start_s, 0, history.elapsed_s), 0)
    why: Strings = np.array(REASONS, object)[history.reason]
    checks = [
        (WAITS, history.waiting),
        (NEVER_STARTED, history.never_started),
        (NO_SUBMISSION, submit == UNKNOWN),
        (NO_GPUS, history.gpus == UNKNOWN),
        (ZERO_GPUS, history.gpus == 0),
        (TOO_MANY_GPUS, history.gpus > MOST_JOB_GPUS),
        (NO_RUN, history.elapsed_s == UNKNOWN),
        (TOO_LONG, history.elapsed_s > MOST_S),
    ]
    for reason, holds in reversed(checks):
        why[history.used & holds] = reason
    return why, ends, gone


def _made(
    history: History,
    span: tuple[int, int],
    rows: Int64,
    starts: Int64,
    first_submit: Int64,
    keep: Bools,
    gone: Int64,
    why: Strings,
) -> Work:
    """The jobs that `keep` chooses, bool[J], from rows that are in order of job."""
    first_s, last_s = span
    rest = history.elapsed_s[rows] - gone[rows]
    limits = np.where(history.limit_s[rows] > 0, history.limit_s[rows], NO_LIMIT)
    over = (rest == 0) & (gone[rows] > 0)  # an attempt that was over before the span has nothing left in it
    left = np.where((limits == NO_LIMIT) | over, 0, np.maximum(limits - gone[rows], np.minimum(rest, 1)))
    without = np.logical_or.reduceat((limits == NO_LIMIT) & ~over, starts)
    start = history.start_s[rows]
    ahead = np.where((start == UNKNOWN) | (rest <= 0), NOT_RECORDED, start - first_s)
    last = np.append(starts[1:], len(rows)) - 1
    columns = {
        "row": rows[last],
        "submit_s": np.maximum(first_submit - first_s, 0),
        "recorded_s": np.minimum.reduceat(ahead, starts),
        "run_s": together(history, rows, starts, rest),
        "limit_s": np.where(without, NO_LIMIT, together(history, rows, starts, left)),
        "gpus": history.gpus[rows[last]],
        "attempts": np.diff(np.append(starts, len(rows))),
        "carried": first_submit < first_s,
        "open": history.running[rows[last]],
    }
    order = np.lexsort((history.line[rows[starts]], columns["submit_s"]))
    order = order[keep[order]]
    return Work(
        history, first_s, last_s, **{name: column[order] for name, column in columns.items()}, why=why
    )


def sampled(work: Work, every: int) -> Work:
    """Every `every`-th job, the first included."""
    if every == 1:
        return work
    return work.some(np.arange(len(work)) % every == 0, SAMPLED)


def at_once(history: History, chosen: Bools | None = None) -> int:
    """The most GPUs that rows with a known start, run time and number of GPUs held at the same instant.

    Parameters
    ----------
    history
    chosen : bool[R]
        Of these rows only; None: of all.
    """
    held = history.used & (history.start_s != UNKNOWN) & (history.elapsed_s > 0) & (history.gpus > 0)
    rows = np.flatnonzero(held if chosen is None else held & chosen)
    if not len(rows):
        return 0
    gpus = np.minimum(history.gpus[rows], MOST_JOB_GPUS)
    times = np.concatenate([history.start_s[rows], history.start_s[rows] + history.elapsed_s[rows]])
    changes = np.concatenate([gpus, -gpus])
    order = np.lexsort((changes, times))  # what ends at an instant goes before what starts then
    return int(np.cumsum(changes[order]).max())
