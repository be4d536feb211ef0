"""What a cluster did, a row per job or per attempt of one: the one table that every reader of jobs returns.

Unknown is a value of its own: `UNKNOWN` in columns of numbers, an empty text in columns of texts. It is never added,
multiplied or compared with a value. A limit that is known to be none is `NO_LIMIT`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.history_account import account_of, exact_sum, line_list, mapped, types_of
from gpuplan.traces.history_words import (
    CONTRADICTION,
    GROUPS,
    LONE_STEP,
    NO_LIMIT,
    NO_SUBMISSION,
    NUMBERS,
    REASONS,
    REPEAT,
    STATES,
    STEP,
    SUMMARY,
    SUPERSEDED,
    TEXTS,
    UNKNOWN,
    UNREADABLE,
    USED,
)

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.fairshare.jobs import Jobs

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]

__all__ = [
    "CONTRADICTION",
    "GROUPS",
    "LONE_STEP",
    "NO_LIMIT",
    "NO_SUBMISSION",
    "REASONS",
    "REPEAT",
    "STATES",
    "STEP",
    "SUMMARY",
    "SUPERSEDED",
    "UNKNOWN",
    "UNREADABLE",
    "USED",
    "Bools",
    "History",
    "Int64",
    "Strings",
    "exact_sum",
    "history",
    "line_list",
    "types_of",
]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class History:
    """``R`` rows of a file as read-only columns, in file order, and what became of each of them.

    Make one with `history`. Times are seconds of the Unix epoch (UTC) where `zone` is known, else what the clock on
    the wall showed, counted as if it stood in UTC.

    Attributes
    ----------
    source
        Name of the file, without its folder.
    line : int64[R]
        Line of the file, from 1.
    job : object[R]
        Identity of the job; all attempts of a job have the same.
    attempt : int64[R]
        Which attempt of its job the row is, from 1 in order of time.
    tasks : int64[R]
        Jobs that the row stands for: 1, or the waiting tasks of an array (at least so many where `cut_off`).
    parent : object[R]
        Array or heterogeneous job that the row is a part of; ``""``: none.
    user, team, partition, qos, name, cluster : object[R]
        As the file writes them; `team` is Slurm's account, Philly's and Helios' virtual cluster.
    submit_s, eligible_s, start_s, end_s : int64[R]
        A running job has no end, whatever a forecast says.
    elapsed_s : int64[R]
        Run time as the scheduler measured it; it wins over ``end_s - start_s``. Of a running job: so far.
    limit_s : int64[R]
        Limit of the run time; `NO_LIMIT` where there is none, `UNKNOWN` where nobody says.
    gpus : int64[R]
        GPUs held of each task; those requested while it waits.
    requested_gpus : int64[R]
    priority : int64[R]
        As recorded; larger goes first.
    together : int64[R]
        Most tasks of the array that may run at once; `UNKNOWN`: as many as fit.
    gpu_type : object[R]
        ``a100``: all of them; ``a100:2,h100:1``: so many of each, and of the rest it is not known; ``""``: not known.
    gpu_share : float64[R]
        Mean share of the held GPUs that worked, 0 to 1; not-a-number where it was not measured.
    state : object[R]
        A word of `STATES`, or as written where it is none of them (in lower case).
    ambiguous : bool[R]
        The clock showed its times twice and nothing tells which was meant: they may be off by the change.
    cut_off : bool[R]
        The list of its tasks was cut off: `tasks` is the least there can be.
    reason : int8[R]
        Why the row is not used, a place in `REASONS`; 0: it is.
    account
        Rows read, used and left out by reason, with the first line numbers; what is unknown, by field.
    mistakes
        What could not be read, with line, column and text; rows that have one are left out.
    zone
        Name of the zone of the times; None: not known, they are times on the wall.
    as_of_s
        The moment the file tells about (its export): waits and runs that have not ended are counted up to it.
        None: not known.
    as_of_from
        How `as_of_s` is known, as a sentence.
    """

    source: str
    line: Int64
    job: Strings
    attempt: Int64
    tasks: Int64
    parent: Strings
    user: Strings
    team: Strings
    partition: Strings
    qos: Strings
    name: Strings
    cluster: Strings
    submit_s: Int64
    eligible_s: Int64
    start_s: Int64
    end_s: Int64
    elapsed_s: Int64
    limit_s: Int64
    gpus: Int64
    requested_gpus: Int64
    priority: Int64
    together: Int64
    gpu_type: Strings
    gpu_share: npt.NDArray[np.float64]
    state: Strings
    ambiguous: Bools
    cut_off: Bools
    reason: npt.NDArray[np.int8]
    account: Account
    mistakes: tuple[Mistake, ...] = ()
    zone: str | None = None
    as_of_s: int | None = None
    as_of_from: str = ""

    def __len__(self) -> int:
        return len(self.line)

    def __repr__(self) -> str:
        left_out = self.account.read - self.account.used
        return (
            f"History of {shorten(self.source, 80)}: {self.n_jobs:,} jobs in {self.account.used:,} rows used, "
            f"{left_out:,} left out, {self.gpu_seconds / 3600:,.1f} GPU-hours held"
        )

    @property
    def used(self) -> Bools:
        """Rows that are attempts of jobs, bool[R]."""
        found: Bools = self.reason == USED
        return found

    @property
    def group(self) -> Strings:
        """Group of the state of each row (`GROUPS`), object[R]."""
        return mapped(self.state, lambda state: STATES.get(state, "unknown"))

    @property
    def running(self) -> Bools:
        """Rows used that hold GPUs at the moment the file tells about, bool[R]."""
        found: Bools = self.used & (self.end_s == UNKNOWN) & np.asarray(self.group == "running", np.bool_)
        return found

    @property
    def waiting(self) -> Bools:
        """Rows used that wait, bool[R]."""
        found: Bools = self.used & np.asarray(self.group == "pending", np.bool_)
        return found

    @property
    def started(self) -> Bools:
        """Rows used that are known to have started, bool[R]."""
        found: Bools = self.used & (self.start_s != UNKNOWN) & ~self.waiting
        return found

    @property
    def never_started(self) -> Bools:
        """Rows used that are over and never started, bool[R]."""
        nothing = (self.elapsed_s == 0) | ((self.elapsed_s == UNKNOWN) & (self.group == "cancelled"))
        found: Bools = self.used & (self.start_s == UNKNOWN) & nothing & ~self.waiting & ~self.running
        return found

    @property
    def n_jobs(self) -> int:
        """Jobs among the rows used: attempts of one job are one, waiting tasks of an array are as many as they are."""
        rows = np.flatnonzero(self.used)
        once = rows[np.unique(_codes(self.job[rows]), return_index=True)[1]]
        return int(self.tasks[once].sum())

    @property
    def gpu_seconds(self) -> int:
        """GPU time held by the rows used with known GPUs and run time, exact."""
        return exact_sum(self._held())

    def gpu_seconds_by(self, column: str) -> dict[str, int]:
        """GPU time held by each value of a column of texts (``user``, ``team``, ``group``), exact, in order of name."""
        keys: Strings = getattr(self, column)
        totals: dict[str, int] = {}
        for key, held in zip(keys[self._holds].tolist(), self._held().tolist(), strict=True):
            totals[key] = totals.get(key, 0) + held
        return dict(sorted(totals.items()))

    def gpus_by_type(self) -> dict[str, int]:
        """GPUs of the rows used by type, in order of name; those of no stated type are ``unknown``."""
        totals: dict[str, int] = {}
        for row in np.flatnonzero(self.used & (self.gpus > 0)).tolist():
            for kind, count in types_of(self.gpu_type[row], int(self.gpus[row])).items():
                totals[kind] = totals.get(kind, 0) + count
        return dict(sorted(totals.items()))

    @property
    def requested_gpu_seconds(self) -> int:
        """GPU time asked for: requested GPUs x limit of the rows used in which both are known, exact."""
        known = (
            self.used & (self.requested_gpus != UNKNOWN) & (self.limit_s >= 0) & (self.limit_s != NO_LIMIT)
        )
        asked = (self.requested_gpus * self.limit_s)[known].tolist()
        return sum(gpus * tasks for gpus, tasks in zip(asked, self.tasks[known].tolist(), strict=True))

    @property
    def worked_gpu_seconds(self) -> float:
        """GPU time in which the GPUs held did work, over the rows used in which it was measured."""
        known = self._holds & ~np.isnan(self.gpu_share)
        return float((self.gpu_share[known] * (self.gpus * self.elapsed_s)[known]).sum())

    @property
    def wait_s(self) -> Int64:
        """Wait of each row from its own submission, int64[R]: to its start, or to `as_of_s` while it waits.

        `UNKNOWN` where one of the two is unknown, or the row never started, or would have started before it came.
        """
        until = np.where(self.started, self.start_s, UNKNOWN)
        if self.as_of_s is not None:
            until = np.where(self.waiting, self.as_of_s, until)
        known = (self.submit_s != UNKNOWN) & (until >= self.submit_s)
        return np.asarray(np.where(known, until - self.submit_s, UNKNOWN), np.int64)

    @property
    def mean_wait_s(self) -> float:
        """Mean of the known waits of the rows that started; not-a-number without any."""
        waits = self.wait_s[self.started]
        waits = waits[waits != UNKNOWN]
        return float(waits.mean()) if len(waits) else float("nan")

    @property
    def span_s(self) -> tuple[int, int] | None:
        """The earliest time of the rows used, and `as_of_s` or else the latest; None where no time is known."""
        times = np.concatenate(
            [getattr(self, name)[self.used] for name in ("submit_s", "eligible_s", "start_s", "end_s")]
        )
        times = times[times != UNKNOWN]
        if not len(times):
            return None
        return int(times.min()), int(times.max()) if self.as_of_s is None else self.as_of_s

    def unknown(self, name: str) -> int:
        """Rows used whose value of a column is unknown."""
        values = getattr(self, name)[self.used]
        if values.dtype == object:
            return int((values == "").sum())
        return int(np.isnan(values).sum() if values.dtype.kind == "f" else (values == UNKNOWN).sum())

    def lines(self, reason: int) -> list[int]:
        """Lines of the rows left out for a reason (`STEP`, `REPEAT`, ...), in file order."""
        found: list[int] = self.line[self.reason == reason].tolist()
        return found

    def to_frame(self, *, every: bool = False) -> "pd.DataFrame":
        """The rows used as a table; numbers that are not known, and limits that are none, are ``<NA>``.

        Parameters
        ----------
        every
            Also rows left out, with the reason in a column of its own.
        """
        import pandas as pd

        rows = slice(None) if every else self.used
        columns: dict[str, Any] = {"line": self.line[rows], "job": self.job[rows]}
        columns |= {"attempt": self.attempt[rows], "tasks": self.tasks[rows]}
        columns |= {name: getattr(self, name)[rows] for name in TEXTS if name != "job"}
        for name in NUMBERS:
            values = getattr(self, name)[rows]
            columns[name] = pd.arrays.IntegerArray(
                values.copy(), (values == UNKNOWN) | ((name == "limit_s") & (values == NO_LIMIT))
            )
        columns["no_limit"] = self.limit_s[rows] == NO_LIMIT
        columns |= {name: getattr(self, name)[rows] for name in ("gpu_share", "ambiguous", "cut_off")}
        if every:
            columns["left_out"] = np.array(REASONS, object)[self.reason]
        return pd.DataFrame(columns)

    def jobs(
        self,
        *,
        attempts: Literal["sum", "last", "each"] = "sum",
        minimum_s: int = 3600,
        resumable: bool = True,
    ) -> "Jobs":
        """The jobs that fair share can replay; `gpuplan.traces.history_jobs.replay` also accounts for them."""
        from gpuplan.traces.history_jobs import replay

        return replay(self, attempts=attempts, minimum_s=minimum_s, resumable=resumable).jobs

    def by_job(self) -> "pd.DataFrame":
        """A row per job, its attempts taken together; see `gpuplan.traces.history_jobs.by_job`."""
        from gpuplan.traces.history_jobs import by_job

        return by_job(self)

    def stretches(self) -> "pd.DataFrame":
        """What ran, as it was: ``job, attempt, team, user, gpus, submit_s, start_s, end_s, state``, by start.

        See `gpuplan.traces.history_jobs.stretches`: ends are ``start_s + elapsed_s``.
        """
        from gpuplan.traces.history_jobs import stretches

        return stretches(self)

    @property
    def _holds(self) -> Bools:
        """Rows used whose GPU time is known, bool[R]; what waits holds nothing."""
        found: Bools = self.used & ~self.waiting & (self.gpus != UNKNOWN) & (self.elapsed_s != UNKNOWN)
        return found

    def _held(self) -> Int64:
        return np.asarray((self.gpus * self.elapsed_s)[self._holds], np.int64)


def history(
    source: str,
    line: Int64,
    *,
    reason: npt.NDArray[np.int8] | None = None,
    mistakes: Iterable[Mistake] = (),
    strict: bool = True,
    by_line: bool = True,
    excluded: Iterable[tuple[str, int]] = (),
    changed: Iterable[tuple[str, int]] = (),
    amounts: Iterable[tuple[str, float, str]] = (),
    rules: Iterable[str] = (),
    rows: str = "rows",
    zone: str | None = None,
    as_of_s: int | None = None,
    as_of_from: str = "",
    **columns: Any,
) -> History:
    """A history from the columns that a reader has; the others are unknown. Rows with a mistake are left out.

    Parameters
    ----------
    source, line, reason, mistakes, zone, as_of_s, as_of_from, **columns
        As the attributes of `History`. A reader marks rows with a mistake as `UNREADABLE`; lines of `mistakes` that
        it did not mark are marked here.
    strict
        Whether mistakes are an error.
    by_line
        Whether rows are marked by the lines of mistakes too; not where many rows may stand on one line.
    excluded
        Records that are in no row (counted as read), by reason.
    changed, amounts, rules
        For the account, before what is found here.
    rows
        What a row is, as a plural.

    Raises
    ------
    InputError
        With every mistake, where there is one and `strict`.
    """
    found = tuple(mistakes)
    if found and strict:
        raise InputError(source, found)
    n = len(line)
    codes = np.zeros(n, np.int8) if reason is None else np.asarray(reason, np.int8).copy()
    if found and by_line:
        bad = np.isin(line, [mistake.line for mistake in found if mistake.line is not None])
        codes[bad] = UNREADABLE
    table: dict[str, Any] = {name: _texts(columns.pop(name, ""), n) for name in TEXTS}
    table |= {name: _numbers(columns.pop(name, UNKNOWN), n) for name in NUMBERS}
    table |= {name: _numbers(columns.pop(name, 1), n) for name in ("attempt", "tasks")}
    share = np.full(n, np.nan)
    share[:] = columns.pop("gpu_share", np.nan)
    table["gpu_share"] = share
    for name in ("ambiguous", "cut_off"):
        flags = np.zeros(n, np.bool_)
        flags[:] = columns.pop(name, False)
        table[name] = flags
    if columns:
        raise TypeError(f"no such columns of a history: {', '.join(sorted(columns))}")
    table |= {"line": _numbers(line, n), "reason": codes}
    for column in table.values():
        column.flags.writeable = False
    outside = tuple(excluded)
    account = account_of(
        source, rows, table, outside, tuple(changed), tuple(amounts), tuple(rules), as_of_from
    )
    return History(
        source,
        **table,
        account=account,
        mistakes=found,
        zone=zone,
        as_of_s=as_of_s,
        as_of_from=as_of_from,
    )


def _texts(values: Any, n: int) -> Strings:
    column = np.empty(n, object)
    column[:] = values
    return column


def _numbers(values: Any, n: int) -> Int64:
    column = np.empty(n, np.int64)
    column[:] = values
    return column


def _codes(texts: Strings) -> Int64:
    import pandas as pd

    return np.asarray(pd.factorize(texts)[0], np.int64)
