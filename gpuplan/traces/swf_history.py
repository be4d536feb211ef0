"""A workload log in the Standard Workload Format as a history, a processor standing for a GPU."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gpuplan.traces import swf
from gpuplan.traces.history import NO_LIMIT, UNKNOWN, History, Int64, Strings, history

#: States of the format's status; 2, 3 and 4 are parts of jobs.
_STATES = {0: "failed", 1: "completed", 5: "cancelled"}


def read_swf_history(
    path: str | Path, *, strict: bool = True, progress: Callable[[int, int], None] | None = None
) -> tuple[History, int | None]:
    """Read a workload log, and the processors that its header tells (None: it does not).

    Where the header tells no moment from which times count, they count from 1970-01-01 and `History.zone` is None.

    Parameters
    ----------
    path
        ``.swf``, plain or gzip.
    strict
        Whether a field that is no number is an error; else its line is left out, and told in `History.mistakes`.
    progress
        Told of bytes done and bytes in all, at the end.

    Raises
    ------
    InputError
        As `gpuplan.traces.swf.read_swf`.
    """
    log = swf.read_swf(path, strict=strict)
    if progress is not None:
        size = Path(path).stat().st_size
        progress(size, size)
    return history_of(log), log.max_processors


def history_of(log: swf.SwfLog) -> History:
    """The rows of a log that are jobs; those that are none are counted in the account by the log's reasons."""
    rows = np.flatnonzero(log.used)
    begin = log.start
    zero = 0 if begin is None else int(begin.timestamp())
    limit = log.requested_time_s[rows]
    wait = log.wait_s[rows]
    told = log.account
    return history(
        log.source,
        log.line[rows],
        mistakes=log.mistakes,
        strict=False,
        excluded=told.excluded,
        changed=told.changed,
        rules=(
            told.rules[0],
            told.rules[1],
            f"Times count from {begin.isoformat()}, by the header (UnixStartTime)."
            if begin is not None
            else "The header does not say when times begin (UnixStartTime): they are shown from 1970-01-01 on.",
        ),
        rows="jobs",
        zone=None if begin is None else str(log.zone),
        job=_names(log, rows),
        user=_labels("user", log.user[rows]),
        team=_labels("group", log.group[rows]),
        partition=_labels("partition", log.partition[rows]),
        qos=_labels("queue", log.queue[rows]),
        submit_s=log.submit_s[rows] + zero,
        start_s=np.where(wait == UNKNOWN, UNKNOWN, log.submit_s[rows] + wait + zero),
        end_s=np.where(wait == UNKNOWN, UNKNOWN, log.submit_s[rows] + wait + log.run_s[rows] + zero),
        elapsed_s=log.run_s[rows],
        limit_s=np.where(limit == 0, NO_LIMIT, limit),
        gpus=log.processors[rows],
        requested_gpus=log.requested[rows],
        state=_mapped(log.status[rows], lambda status: _STATES.get(status, "unknown")),
    )


def _names(log: swf.SwfLog, rows: Int64) -> Strings:
    """Job numbers; one that comes again, or is unknown, is named by its line."""
    names = np.array([str(number) for number in log.number[rows].tolist()], object)
    again = np.ones(len(rows), np.bool_)
    again[np.unique(log.number[rows], return_index=True)[1]] = False
    for k in np.flatnonzero(again | (log.number[rows] == UNKNOWN)).tolist():
        shown = "unknown" if log.number[rows[k]] == UNKNOWN else names[k]
        names[k] = f"{shown}/line-{log.line[rows[k]]}"
    return names


def _labels(kind: str, numbers: Int64) -> Strings:
    return _mapped(numbers, lambda number: "" if number == UNKNOWN else f"{kind}-{number}")


def _mapped(numbers: Int64, text: Callable[[int], str]) -> Strings:
    values, of = np.unique(numbers, return_inverse=True)
    found: Strings = np.array([text(value) for value in values.tolist()], object)[of.ravel()]
    return found
