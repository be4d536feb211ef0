"""What ran, when, on how many GPUs: the stretches of a record, from a history or from a file of them.

A file of stretches has the columns that ``gpuplan simulate --jobs`` writes for a policy (``job, team, gpus, submit_s,
start_s, end_s, state``), so that what was and what a policy would have done lie beside each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.job_limits import MOST_JOB_GPUS
from gpuplan.forecast.traffic import zone_of
from gpuplan.inputs.csv_table import Shape, raise_mistakes, read_columns
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.history import STATES, UNKNOWN, History
from gpuplan.traces.names import mapped, safe_names

if TYPE_CHECKING:
    import pandas as pd

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Attempts = Literal["sum", "last", "each"]

#: Columns of a file of stretches, in this order.
COLUMNS = ("job", "team", "gpus", "submit_s", "start_s", "end_s", "state")

_SHAPE = Shape(
    (*COLUMNS, "recorded_state", "allocated", "overhead_s", "kept_s", "node", "nodes"),
    ("job", "gpus", "start_s", "end_s"),
    frozenset({"job", "team", "state", "recorded_state"}),
)

#: Words of runs for what the words of a record say, where a file is written.
_OUTCOMES = {"preempted": "preempted", "running": "running"}

#: A submission that is not known. (Seconds after a start may be negative, so -1 is one of them.)
UNSAID = int(np.iinfo(np.int64).min)

#: Seconds since 1970 beyond which nothing is an instant (the year 2200), also the longest time of a file.
_MOST_S = 7_258_118_400


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """``S`` stretches of running as they were recorded; columns are read-only.

    Attributes
    ----------
    source
        Name of the file.
    job, team, state : object[S]
        Name of the job, its team (``""``: not known), a word of `gpuplan.traces.history.STATES` for how it ended.
    gpus : int64[S]
        GPUs that it held.
    submit_s, start_s, end_s : int64[S]
        Seconds of one clock; a submission that is not known is `UNSAID`. The end of what still ran is the moment of
        the export.
    clock
        How an instant is told: ``None``: seconds after the start; else the name of a zone (``""``: the clock on the
        wall).
    left_out
        Rows of the file that are not here, by reason.
    attempts
        What jobs are named after: whole jobs (``"sum"``, ``"last"``), or single attempts (``"each"``).
    """

    source: str
    job: Strings
    team: Strings
    state: Strings
    gpus: Int64
    submit_s: Int64
    start_s: Int64
    end_s: Int64
    clock: str | None = None
    left_out: tuple[tuple[str, int], ...] = ()
    attempts: Attempts = "sum"

    def __len__(self) -> int:
        return len(self.job)

    @property
    def group(self) -> Strings:
        """Group of the state of each stretch: ``completed``, ``failed``, ``cancelled``, ..., object[S]."""
        return np.array([STATES.get(word, "unknown") for word in self.state.tolist()], object)

    def moment(self, second: int) -> str:
        """An instant in words: ``2026-04-10 09:00:00``, or seconds after the start."""
        if self.clock is None:
            return f"{second:,} s"
        zone = zone_of(self.clock)[0] if self.clock else UTC
        return f"{datetime.fromtimestamp(second, zone or UTC):%Y-%m-%d %H:%M:%S}"

    def after(self, start_s: int) -> "Recorded":
        """The same stretches in seconds after an instant."""
        known = self.submit_s != UNSAID
        return replace(
            self,
            submit_s=np.where(known, self.submit_s - np.where(known, start_s, 0), UNSAID),
            start_s=self.start_s - start_s,
            end_s=self.end_s - start_s,
            clock=None,
        )

    def renamed(self, names: Mapping[str, str]) -> "Recorded":
        """The same stretches with jobs called otherwise, as in an anonymised scenario; others keep their names."""
        job = np.array([names.get(name, name) for name in self.job.tolist()], object)
        return replace(self, job=job)

    def to_frame(self) -> "pd.DataFrame":
        """A row per stretch: `COLUMNS` (``state``: ``finished``, ``preempted`` or ``running``), ``recorded_state``."""
        import pandas as pd

        words = {word: _OUTCOMES.get(STATES.get(word, ""), "finished") for word in set(self.state.tolist())}
        submit = pd.arrays.IntegerArray(self.submit_s.copy(), self.submit_s == UNSAID)
        return pd.DataFrame(
            {
                "job": self.job,
                "team": self.team,
                "gpus": self.gpus,
                "submit_s": submit,
                "start_s": self.start_s,
                "end_s": self.end_s,
                "state": [words[word] for word in self.state.tolist()],
                "recorded_state": self.state,
            }
        )

    def write(self, path: str | Path) -> None:
        """Write a file that `read_recorded` reads: UTF-8, ``.csv`` or ``.csv.gz``, the same bytes every time."""
        frame = self.to_frame()
        for name in ("job", "team", "recorded_state"):  # a spreadsheet must not compute them
            frame[name] = mapped(frame[name].to_numpy(object), safe_names(frame[name].tolist(), empty=""))
        packed = {"method": "gzip", "mtime": 0} if str(path).endswith(".gz") else None
        frame.to_csv(path, index=False, lineterminator="\n", encoding="utf-8", compression=packed)


def recorded(history: History, *, attempts: Attempts = "sum") -> Recorded:
    """The stretches of a history: each attempt that held GPUs, from its start for its recorded run time.

    Parameters
    ----------
    history
        What a reader of traces returned.
    attempts
        As in `History.jobs`, whose names the stretches carry.

    Raises
    ------
    InputError
        If nothing in it has a known place in time.
    """
    from gpuplan.traces.history_jobs import stretches

    table = stretches(history)
    if table.empty:
        raise InputError(history.source, [Mistake("", _nothing(history))])
    job = table["job"].to_numpy(object)
    number = table["attempt"].to_numpy(np.int64)
    if attempts == "each":
        pairs = zip(job.tolist(), number.tolist(), strict=True)
        job = np.array([name if k == 1 else f"{name}/attempt-{k}" for name, k in pairs], object)
    row = table["row"].to_numpy(np.int64)
    submit = np.where(history.submit_s[row] == UNKNOWN, UNSAID, history.submit_s[row])
    if attempts != "each":
        submit = _first(job, submit)
    team = np.array([name or "unknown" for name in history.team[row].tolist()], object)
    state = np.where(table["running"].to_numpy(bool), "running", history.state[row])
    used = history.used
    lacking = (
        ("waits", history.waiting),
        ("never started", history.never_started),
        ("no GPUs, or not known how many", used & (history.gpus <= 0)),
        ("start not known", used & (history.start_s == UNKNOWN)),
        ("run time not known", used),
    )
    left = used.copy()
    left[row] = False
    reasons = [("not used by the reader (see its account)", int((~used).sum()))]
    for reason, holds in lacking:
        reasons.append((reason, int((left & holds).sum())))
        left &= ~holds
    return _frozen(
        Recorded(
            history.source,
            job,
            team,
            state.astype(object),
            table["gpus"].to_numpy(np.int64).copy(),
            submit,
            table["start_s"].to_numpy(np.int64).copy(),
            table["end_s"].to_numpy(np.int64).copy(),
            history.zone or "",
            tuple(reason for reason in reasons if reason[1]),
            attempts,
        )
    )


def _nothing(history: History) -> str:
    """Why a history has no stretch to show, and what it is good for all the same."""
    used = int(history.used.sum())
    if used and history.unknown("start_s") == used and history.unknown("end_s") == used:
        return (
            f"no row says when it started or ended ({used:,} rows are used), so what was cannot be drawn or measured; "
            "submissions, GPUs and run times can be replayed under policies"
        )
    return f"no row held GPUs at a known time ({used:,} rows are used)"


def _first(job: Strings, submit: Int64) -> Int64:
    """The first known submission of the job of each stretch, int64[S]."""
    import pandas as pd

    codes = np.asarray(pd.factorize(job)[0], np.int64)
    far = np.iinfo(np.int64).max
    least = np.full(int(codes.max(initial=-1)) + 1, far)
    known = submit != UNSAID
    np.minimum.at(least, codes[known], submit[known])
    return np.where(least == far, UNSAID, least)[codes]


def read_recorded(path: str | Path) -> Recorded:
    """Read a file of stretches, in seconds after the start of its scenario.

    Parameters
    ----------
    path
        A UTF-8 file with a header row, ``.csv`` or ``.csv.gz``: ``job, gpus, start_s, end_s``; ``team, submit_s``,
        ``state`` and ``recorded_state`` may be absent, other columns of ``gpuplan simulate --jobs`` are not used.

    Raises
    ------
    InputError
        With every mistake: its line, its column, its value.
    """
    columns = read_columns(path, _SHAPE)
    n = len(columns)
    job = _texts(columns.frame, "job", n)
    columns.tell_rows("job", "must be given", job == "")
    gpus = columns.whole("gpus", 1, MOST_JOB_GPUS)
    start, end = columns.whole("start_s", -_MOST_S, _MOST_S), columns.whole("end_s", -_MOST_S, _MOST_S)
    submit = columns.whole("submit_s", -_MOST_S, _MOST_S, _MOST_S)  # the default: not known
    columns.tell("end_s", "must not be before start_s", end < start, end.astype(np.float64))
    raise_mistakes(path, columns)
    said = "recorded_state" if "recorded_state" in columns.frame else "state"
    state = np.array([word.strip().lower() or "unknown" for word in _texts(columns.frame, said, n)], object)
    state[state == "finished"] = "completed"
    submit = np.where(submit == _MOST_S, UNSAID, submit)
    team = _texts(columns.frame, "team", n)
    by = np.argsort(start, kind="stable")
    return _frozen(
        Recorded(Path(path).name, job[by], team[by], state[by], gpus[by], submit[by], start[by], end[by])
    )


def _texts(frame: "pd.DataFrame", name: str, n: int) -> Strings:
    """A column of texts, object[n]; empty ones where there is no such column."""
    if name not in frame:
        return np.full(n, "", object)
    return np.asarray(frame[name].fillna("").astype(str).to_numpy(object))


def _frozen(found: Recorded) -> Recorded:
    for name in ("job", "team", "state", "gpus", "submit_s", "start_s", "end_s"):
        getattr(found, name).flags.writeable = False
    return found
