"""Workload logs in the Standard Workload Format, version 2.2 (``.swf``, plain or gzip), processors read as GPUs.

Source of the format: the Parallel Workloads Archive, "The Standard Workload Format" (Chapin and others, "Benchmarks
and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999). In it -1 stands for "not known"; here it
stays so, and is never added, multiplied or compared with a value.
"""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.jobs import Jobs
from gpuplan.fairshare.jobs import jobs as make_jobs
from gpuplan.fairshare.model import HOUR, NEVER, BudgetNode
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.swf_lines import FIELDS, Int64, parse, read_bytes

#: What stands for "not known".
UNKNOWN = -1

#: Status of a job that was cancelled, before or after its start.
CANCELLED = 5

#: Status of lines about a part of a job that was interrupted; another line sums the job up.
PARTS = (2, 3, 4)

#: Why a row is no job of the log, by code; 0: it is one.
REASONS = (
    "",
    "a part of an interrupted job (status 2, 3 or 4), which another line sums up",
    "negative, and not the -1 of what is unknown",
    "never started (cancelled, without a run time)",
    "submission unknown",
    "processors unknown",
    "0 processors",
    "more processors than the machine has: a contradiction",
    "run time unknown",
)
_USED, _PART, _NEGATIVE, _NEVER_STARTED, _NO_SUBMISSION, _NO_SIZE, _ZERO_SIZE, _TOO_BIG, _NO_RUN = range(9)

#: Line numbers that a reason names; the rest are counted.
_LINES_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """A workload log: ``R`` rows as read, and what became of each of them.

    Attributes
    ----------
    source
        Name of the file.
    header : dict
        ``; Key: value`` comments as text; values of a key that comes again are on lines of their own.
    line : int64[R]
        Line of the file, from 1.
    number, submit_s, wait_s, run_s, allocated, requested, requested_time_s, status, user, group, queue, partition :
        int64[R]
        Fields of the format; -1: unknown. Submission is in seconds after `start`; `allocated` and `requested` are
        processors.
    reason : int8[R]
        Why the row is not used, a place in `REASONS`; 0: it is.
    account
        Rows read, used and left out by reason, with the first line numbers; what is unknown, by field.
    mistakes
        Lines that cannot be read and were left out, where that was asked for.
    """

    source: str
    header: dict[str, str]
    line: Int64
    number: Int64
    submit_s: Int64
    wait_s: Int64
    run_s: Int64
    allocated: Int64
    requested: Int64
    requested_time_s: Int64
    status: Int64
    user: Int64
    group: Int64
    queue: Int64
    partition: Int64
    reason: npt.NDArray[np.int8]
    account: Account = field(repr=False)
    mistakes: tuple[Mistake, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.number)

    @property
    def max_processors(self) -> int | None:
        """``MaxProcs`` of the header; None where it is not told."""
        return _first_number(self.header.get("MaxProcs", ""))

    @property
    def max_nodes(self) -> int | None:
        """``MaxNodes`` of the header; None where it is not told."""
        return _first_number(self.header.get("MaxNodes", ""))

    @property
    def zone(self) -> tzinfo:
        """Zone of ``TimeZoneString``; UTC where it is not told or not known."""
        try:
            return ZoneInfo(self.header.get("TimeZoneString", "UTC").split("\n")[0].strip().lstrip(":"))
        except (OSError, ValueError, KeyError):  # no such zone, a folder, a path that leads elsewhere
            return UTC

    @property
    def start(self) -> datetime | None:
        """The moment from which times count (``UnixStartTime``), in the log's zone; None where it is not told."""
        seconds = _first_number(self.header.get("UnixStartTime", ""))
        try:
            return None if seconds is None else datetime.fromtimestamp(seconds, UTC).astimezone(self.zone)
        except (OverflowError, OSError, ValueError):
            return None

    def moment(self, seconds: int) -> datetime | None:
        """The moment so many seconds after `start`, in the log's zone; None where `start` is not told."""
        start = self.start
        if start is None:
            return None
        return (start.astimezone(UTC) + timedelta(seconds=int(seconds))).astimezone(self.zone)

    @property
    def processors(self) -> Int64:
        """Processors of each row, int64[R]: those allocated, where unknown those requested; -1: both unknown."""
        return np.where(self.allocated != UNKNOWN, self.allocated, self.requested)

    @property
    def started_s(self) -> Int64:
        """When each row started, int64[R]: submission + wait; -1 where one of them is unknown."""
        known = (self.submit_s != UNKNOWN) & (self.wait_s != UNKNOWN)
        return np.where(known, self.submit_s + self.wait_s, UNKNOWN)

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Rows that are jobs, bool[R]."""
        found: npt.NDArray[np.bool_] = self.reason == _USED
        return found

    @property
    def processor_seconds(self) -> int:
        """Work of the rows used: the sum of processors x run time, exact."""
        return sum((self.processors[self.used] * self.run_s[self.used]).tolist())

    @property
    def mean_wait_s(self) -> float:
        """Mean wait of the rows with a known wait that started and contradict nothing; not-a-number without any."""
        sound = np.isin(self.reason, (_USED, _NO_RUN, _NO_SIZE)) & (self.wait_s != UNKNOWN)
        return float(self.wait_s[sound].mean()) if sound.any() else float("nan")

    def numbers(self, reason: str) -> list[int]:
        """Job numbers of the rows left out for a reason of `REASONS`, in file order."""
        found: list[int] = self.number[self.reason == REASONS.index(reason)].tolist()
        return found

    def jobs(self, minimum_s: int = HOUR, *, resumable: bool = True) -> Jobs:
        """The rows used as jobs of a simulation, a processor standing for a GPU.

        The limit is the requested time (none where that is unknown or 0), and a run beyond it ends at it. The team
        is ``group-<number>/user-<number>``. A number that comes again gets its line: ``7/line-12``.

        Parameters
        ----------
        minimum_s
            Declared minimum run time, seconds, or the limit where that is shorter (the format names none).
        resumable
            Whether jobs go on from a checkpoint after a preemption (the format does not say).
        """
        rows = np.flatnonzero(self.used)
        limit = np.where(self.requested_time_s[rows] > 0, self.requested_time_s[rows], NEVER)
        return make_jobs(
            self._names(rows),
            self.submit_s[rows],  # type: ignore[arg-type]
            self.processors[rows],  # type: ignore[arg-type]
            self.run_s[rows],  # type: ignore[arg-type]
            team=self._teams(rows),
            limit_s=limit,  # type: ignore[arg-type]
            minimum_s=np.minimum(limit, minimum_s),  # type: ignore[arg-type]
            resumable=resumable,
        )

    def budget(self) -> tuple[BudgetNode, ...]:
        """A tree for the jobs: equal weights over the groups, and in each over its users."""
        users: dict[int, set[int]] = {}
        rows = self.used
        for group, user in np.unique(np.stack([self.group[rows], self.user[rows]], 1), axis=0).tolist():
            users.setdefault(group, set()).add(user)
        return tuple(
            BudgetNode(
                _label("group", group), 1.0, tuple(BudgetNode(_label("user", u)) for u in sorted(found))
            )
            for group, found in sorted(users.items())
        )

    def _names(self, rows: Int64) -> list[str]:
        names = [str(number) for number in self.number[rows].tolist()]
        again = np.ones(len(rows), np.bool_)
        again[np.unique(self.number[rows], return_index=True)[1]] = False
        for k in np.flatnonzero(again | (self.number[rows] == UNKNOWN)).tolist():
            shown = "unknown" if self.number[rows[k]] == UNKNOWN else names[k]
            names[k] = f"{shown}/line-{self.line[rows[k]]}"
        return names

    def _teams(self, rows: Int64) -> list[str]:
        pairs, of = np.unique(np.stack([self.group[rows], self.user[rows]], 1), axis=0, return_inverse=True)
        teams = np.array([f"{_label('group', g)}/{_label('user', u)}" for g, u in pairs.tolist()], object)
        return teams[of.ravel()].tolist() if len(rows) else []


def read_swf(path: str | Path, *, strict: bool = True) -> SwfLog:
    """Read a workload log in the Standard Workload Format.

    Lines may come in any order, with tabs or blanks between and before the fields, with comments between them, with
    fewer than 18 fields (those at the end are unknown then) and with fractions of seconds (rounded to the nearest).

    Parameters
    ----------
    path
        The file, plain or gzip.
    strict
        Whether a field that is no number is an error; else its line is left out, and told in `SwfLog.mistakes`.

    Raises
    ------
    InputError
        If the file cannot be read or has no job; with every field that is no number, and its line, where `strict`.
    """
    source = Path(path).name
    lines = parse(read_bytes(path))
    if lines.mistakes and strict:
        raise InputError(source, lines.mistakes)
    unreadable = np.isin(lines.line, [mistake.line or 0 for mistake in lines.mistakes])
    lost = lines.line[unreadable]
    lines.values, lines.line = lines.values[~unreadable], lines.line[~unreadable]
    if not len(lines.line):
        raise InputError(source, [Mistake("", "must have a line about a job; it has none")])
    columns = {name: np.ascontiguousarray(lines.values[:, k]) for k, (name, _, _) in enumerate(FIELDS)}
    most = _first_number(lines.header.get("MaxProcs", ""))
    reason = _reasons(columns, most)
    for column in (*columns.values(), lines.line):
        column.flags.writeable = False
    reason.flags.writeable = False
    account = _account(source, columns, lines.line, reason, (lines.short, lines.rounded), most)
    if len(lost):
        left_out = (*account.excluded, (f"cannot be read ({_line_list(lost)})", len(lost)))
        account = replace(account, read=account.read + len(lost), excluded=left_out)
    mistakes = tuple(lines.mistakes)
    return SwfLog(
        source, lines.header, lines.line, **columns, reason=reason, account=account, mistakes=mistakes
    )


def _reasons(columns: dict[str, Int64], most: int | None) -> npt.NDArray[np.int8]:
    """Why each row is left out; the first of `REASONS` that holds."""
    run, allocated, requested = (columns[name] for name in ("run_s", "allocated", "requested"))
    size = np.where(allocated != UNKNOWN, allocated, requested)
    measured = ("submit_s", "wait_s", "run_s", "allocated", "requested", "requested_time_s")
    idle = (run == UNKNOWN) | ((run == 0) & (allocated <= 0))
    holds = {
        _PART: np.isin(columns["status"], PARTS),
        _NEGATIVE: np.any([columns[name] < UNKNOWN for name in measured], axis=0),
        _NEVER_STARTED: (columns["status"] == CANCELLED) & idle,
        _NO_SUBMISSION: columns["submit_s"] == UNKNOWN,
        _NO_SIZE: size == UNKNOWN,
        _ZERO_SIZE: size == 0,
        _TOO_BIG: size > (most if most is not None else NEVER),
        _NO_RUN: run == UNKNOWN,
    }
    return np.select(list(holds.values()), list(holds), _USED).astype(np.int8)


def _account(
    source: str,
    columns: dict[str, Int64],
    line: Int64,
    reason: npt.NDArray[np.int8],
    noted: tuple[int, int],
    most: int | None,
) -> Account:
    used = reason == _USED
    excluded = [
        (f"{text} ({_line_list(line[reason == code])})", int((reason == code).sum()))
        for code, text in enumerate(REASONS)
        if code and (reason == code).any()
    ]
    run, limit = columns["run_s"][used], columns["requested_time_s"][used]
    changed = (
        ("fewer than 18 fields: those at the end are unknown", noted[0]),
        ("fractions of seconds, rounded to the nearest second", noted[1]),
        ("allocated processors unknown: those requested", int((columns["allocated"][used] == UNKNOWN).sum())),
        ("requested time unknown: no limit", int((limit == UNKNOWN).sum())),
        ("requested time of 0: no limit", int((limit == 0).sum())),
        ("ran beyond its limit: ends at the limit", int(((limit > 0) & (run > limit)).sum())),
        (
            "job number comes again: named by its line",
            int(used.sum()) - len(set(columns["number"][used].tolist())),
        ),
    )
    size = np.where(columns["allocated"] != UNKNOWN, columns["allocated"], columns["requested"])[used]
    unknown = [(name, int((values == UNKNOWN).sum())) for name, values in columns.items()]
    return Account(
        source,
        "jobs",
        len(line),
        int(used.sum()),
        tuple(excluded),
        tuple(row for row in changed if row[1]),
        (
            ("work of the jobs used", sum((size * run).tolist()) / HOUR, "GPU-hours"),
            *((f"unknown {name}, in all rows", count, "values") for name, count in unknown if count),
        ),
        (
            "A processor of the log stands for a GPU: those allocated, where unknown those requested.",
            f"The machine has {most:,} processors, by the header (MaxProcs)."
            if most is not None
            else "The header does not say how many processors the machine has (MaxProcs).",
            "Budgets: equal weights over the groups, and in each over its users.",
            "Minimum run time: 1 h, or the limit where that is shorter, unless another is asked for.",
            "The log does not say which jobs can resume after a preemption.",
        ),
        made="jobs",
    )


def _line_list(lines: Int64) -> str:
    """``line 7``; ``lines 7, 9, 12, 15, 20 and 1,200 more``."""
    named = ", ".join(str(n) for n in lines[:_LINES_NAMED].tolist())
    more = f" and {len(lines) - _LINES_NAMED:,} more" if len(lines) > _LINES_NAMED else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"


def _first_number(text: str) -> int | None:
    """The whole number that a header's value begins with, where it is above 0."""
    match = re.match(r"\s*([0-9]{1,15})(?![0-9.])", text)
    return int(match[1]) if match and int(match[1]) > 0 else None


def _label(kind: str, number: int) -> str:
    return f"{kind}-unknown" if number == UNKNOWN else f"{kind}-{number}"
