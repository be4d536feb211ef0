"""The original log of Microsoft's Philly clusters (2017): jobs in JSON, each with a list of attempts on machines.

``cluster_job_log`` of `msr-fiddle/philly-traces` (CC BY 4.0; Jeon and others, USENIX ATC 2019): ``status`` (Pass,
Killed, Failed), ``vc``, ``jobid``, ``user``, ``submitted_time``, ``attempts``: ``start_time``, ``end_time``, ``detail``
(``ip``, ``gpus``). A job may have no attempt, an attempt no start or end; without the end of its last attempt a job
still ran when the snapshot was taken. GPUs of an attempt are those of all its machines together.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.history import UNKNOWN, UNREADABLE, History, Strings, history
from gpuplan.traces.instants import settle, zone_of
from gpuplan.traces.json_objects import json_objects
from gpuplan.traces.plain_text import Progress, read_text, refusal
from gpuplan.traces.sheet import Bools, Int64, read_sheet
from gpuplan.traces.sheet_numbers import NOTHING
from gpuplan.traces.sheet_times import NO_TIME, moments_of

STATES = {"pass": "completed", "killed": "cancelled", "failed": "failed"}

_TIMES = ("submit_s", "start_s", "end_s")

#: Most GPUs of an attempt on one machine that are believed.
_MOST_GPUS = 10_000

_RULES = (
    "A row is an attempt; a job without any is a row that never started. GPUs are those of all machines of an attempt.",
    "How attempts before the last one ended is not told; a job whose last attempt has no end ran at the snapshot.",
    "The team is the virtual cluster. Limits and requested GPUs are not told.",
    "Data: Microsoft Philly trace (Jeon and others, USENIX ATC 2019), CC BY 4.0.",
)


@dataclass(slots=True)
class _Rows:
    """Attempts as columns, and what is wrong with them."""

    line: list[int] = field(default_factory=list)
    job: list[str] = field(default_factory=list)
    user: list[str] = field(default_factory=list)
    team: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    attempt: list[int] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    last: list[bool] = field(default_factory=list)
    times: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in _TIMES})
    on: list[tuple[tuple[str, int], ...]] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    unreadable: int = 0


def read_philly_attempts(
    path: str | Path,
    *,
    snapshot: str | None = None,
    zone: str | None = None,
    machines: str | Path | None = None,
    strict: bool = True,
    progress: Progress | None = None,
    most_bytes: int | None = None,
) -> History:
    """Read the log of jobs with their attempts.

    Parameters
    ----------
    path
        JSON, plain or gzip: a list of jobs.
    snapshot
        When the snapshot was taken, as the log writes times (``2017-11-20 00:00:00``): what runs counts up to it.
    zone
        Zone of times without a zone word; None: they stay times on the wall. The trace is Pacific time
        (``America/Los_Angeles``).
    machines
        ``cluster_machine_list``: attempts with more GPUs of a machine than it has are counted, and kept.
    strict, progress, most_bytes
        As in `gpuplan.traces.jobs_table.read_jobs`.

    Raises
    ------
    InputError
        If the file cannot be read; with every job that is none, where `strict`.
    """
    text = read_text(path, progress=progress, most_bytes=most_bytes)
    rows = _Rows()
    for line, job in json_objects(text):
        _add(rows, line, job)
    if not rows.line and not rows.mistakes:
        raise refusal(text.source, "must be a list of jobs; it has none")
    return _history(text.source, rows, snapshot, zone, machines, strict)


def _add(rows: _Rows, line: int, job: Any) -> None:
    """A row for each attempt of a job, or one that never started."""
    if not isinstance(job, dict):
        rows.unreadable += 1
        rows.mistakes.append(
            Mistake(f"line {line}", "must be a job: a mapping with jobid and attempts", job, line)
        )
        return
    attempts = job.get("attempts")
    name = _text(job.get("jobid"))
    wrong = [] if name else [Mistake(f"line {line}, jobid", "must be given", line=line)]
    if not isinstance(attempts, list) or not all(isinstance(one, dict) for one in attempts):
        wrong.append(Mistake(f"line {line}, attempts", "must be a list of attempts", attempts, line))
        attempts = []
    found: list[tuple[str, str, int, tuple[tuple[str, int], ...]]] = []
    for one in attempts:
        on, rule = _machines_of(one.get("detail"))
        if rule:
            wrong.append(Mistake(f"line {line}, detail", rule, one.get("detail"), line))
        found.append((_text(one.get("start_time")), _text(one.get("end_time")), sum(n for _, n in on), on))
    rows.mistakes += wrong
    if wrong:
        rows.unreadable += 1
        return
    status = _text(job.get("status")).lower()
    for k, (start, end, gpus, on) in enumerate(found or [("", "", UNKNOWN, ())]):
        rows.line.append(line)
        rows.job.append(name)
        rows.user.append(_text(job.get("user")))
        rows.team.append(_text(job.get("vc")))
        rows.attempt.append(k + 1)
        rows.last.append(bool(found) and k == len(found) - 1)
        rows.state.append(STATES.get(status, status or "unknown") if k >= len(found) - 1 else "unknown")
        rows.gpus.append(gpus)
        rows.on.append(on)
        for field_, value in zip(_TIMES, (_text(job.get("submitted_time")), start, end), strict=True):
            rows.times[field_].append(value)


def _text(value: Any) -> str:
    """A text of the log; nothing for null, ``None`` and the like."""
    text = value.strip() if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    return "" if text.lower() in NOTHING else text


def _machines_of(detail: Any) -> tuple[tuple[tuple[str, int], ...], str]:
    """Machines of an attempt with the number of GPUs on each, and the rule that the list breaks."""
    if detail is None:
        return (), ""
    if not isinstance(detail, list):
        return (), "must be a list of machines"
    found = []
    for one in detail:
        gpus = one.get("gpus") if isinstance(one, dict) else None
        if not isinstance(gpus, list) or len(gpus) > _MOST_GPUS:
            return (), "must be a list of machines, each with its list of gpus"
        found.append((_text(one.get("ip")), len(gpus)))
    return tuple(found), ""


def _history(
    source: str,
    rows: _Rows,
    snapshot: str | None,
    zone: str | None,
    machines: str | Path | None,
    strict: bool,
) -> History:
    line = np.array(rows.line, np.int64)
    times, aware, mistakes, bad = _times(rows, line)
    as_of = None if snapshot is None else _snapshot(source, snapshot, aware)
    n = len(line)
    ambiguous = np.zeros(n, np.bool_)
    if not aware and zone is not None:
        if as_of is not None:
            as_of = int(
                settle(zone_of(zone), {"end_s": np.array([as_of])}, np.array([UNKNOWN])).times["end_s"][0]
            )
        settled = settle(zone_of(zone), times, np.full(n, UNKNOWN, np.int64))
        times, ambiguous = settled.times, settled.ambiguous
    start, end = times["start_s"], times["end_s"]
    before = (start != UNKNOWN) & (end != UNKNOWN) & (end < start)
    bad = bad | before
    mistakes += [
        Mistake(
            f"line {line[row]}, end_time",
            "must not be before the start",
            rows.times["end_s"][row],
            int(line[row]),
        )
        for row in np.flatnonzero(before).tolist()
    ]
    ran = np.array(rows.gpus, np.int64) != UNKNOWN
    running = np.array(rows.last, np.bool_) & (end == UNKNOWN) & (start != UNKNOWN)
    elapsed = np.where((start != UNKNOWN) & (end != UNKNOWN), end - start, UNKNOWN)
    elapsed = np.where(~ran, 0, elapsed)
    if as_of is not None:
        elapsed = np.where(running & (start <= as_of), as_of - start, elapsed)
    state: Strings = np.where(running, "running", np.array(rows.state, object))
    changed = {
        "attempts without a start or an end: run time unknown": ran & (elapsed == UNKNOWN) & ~running,
        "attempts without a recorded GPU": np.array(rows.gpus, np.int64) == 0,
        "jobs without an attempt": ~ran,
        "attempts that ran at the snapshot": running,
        "a time that the clock showed twice, taken for the first": ambiguous,
    }
    if machines is not None:
        changed["attempts with more GPUs of a machine than it has, kept"] = _beyond(rows, machines)
    return history(
        source,
        line,
        mistakes=sorted((*rows.mistakes, *mistakes), key=lambda mistake: mistake.line or 0),
        strict=strict,
        by_line=False,  # a log may be one line
        reason=np.where(bad, UNREADABLE, 0).astype(np.int8),
        excluded=(("jobs that cannot be read", rows.unreadable),),
        changed=[(what, int(which.sum())) for what, which in changed.items()],
        rules=(*_RULES, *_zone_rule(aware, zone)),
        zone="UTC" if aware else zone,
        as_of_s=as_of,
        as_of_from="" if as_of is None else f"The snapshot was taken at {shorten(str(snapshot))}, as stated.",
        job=rows.job,
        attempt=np.array(rows.attempt, np.int64),
        user=rows.user,
        team=rows.team,
        state=state,
        gpus=np.array(rows.gpus, np.int64),
        elapsed_s=elapsed,
        ambiguous=ambiguous,
        submit_s=times["submit_s"],
        start_s=start,
        end_s=end,
    )


def _times(rows: _Rows, line: Int64) -> tuple[dict[str, Int64], bool, list[Mistake], Bools]:
    """Seconds of all times, whether they name their zones, those that cannot be read, and their rows."""
    found, mistakes = {}, []
    bad = np.zeros(len(line), np.bool_)
    named = {"submit_s": "submitted_time", "start_s": "start_time", "end_s": "end_time"}
    columns = {}
    for name, texts in rows.times.items():
        cells = np.empty(len(texts), object)
        cells[:] = texts
        columns[name] = moments_of(cells)
    known = sum(int((~(column.empty | column.wrong)).sum()) for column in columns.values())
    aware = 2 * sum(int((column.aware & ~column.empty).sum()) for column in columns.values()) > known
    for name, column in columns.items():
        seconds, impossible = column.seconds("")
        mixed = ~column.empty & ~column.wrong & (column.aware != aware)
        open_ = column.mark != ""
        for wrong, rule in (
            (column.wrong | impossible | open_, "must be a time such as 2017-11-19 00:10:00, or null"),
            (
                mixed & ~impossible & ~open_,
                f"must have {'a' if aware else 'no'} zone word, as most times of the file",
            ),
        ):
            bad |= wrong
            mistakes += [
                Mistake(f"line {line[row]}, {named[name]}", rule, rows.times[name][row], int(line[row]))
                for row in np.flatnonzero(wrong).tolist()
            ]
        found[name] = np.where((seconds == NO_TIME) | open_, UNKNOWN, seconds)
    unique = {(mistake.line, mistake.path, str(mistake.value)): mistake for mistake in mistakes}
    return found, aware, list(unique.values()), bad


def _snapshot(source: str, text: str, aware: bool) -> int:
    cells = np.empty(1, object)
    cells[:] = [text]
    found = moments_of(cells)
    seconds = int(found.seconds("")[0][0])
    if seconds == NO_TIME or found.mark[0] or bool(found.aware[0]) != aware:
        rule = f"must be a time such as 2017-11-20 00:00:00, with{'' if aware else 'out'} a zone, as those of the file"
        raise InputError(source, [Mistake("snapshot", rule, text)])
    return seconds


def _zone_rule(aware: bool, zone: str | None) -> tuple[str, ...]:
    if aware:
        return ("Times name their zones.",)
    if zone is not None:
        return (f"Times are those of {zone}, as stated.",)
    return (
        "Times are those of a clock on a wall; other files of the trace say that it is that of Los Angeles.",
    )


def _beyond(rows: _Rows, machines: str | Path) -> Bools:
    """Attempts that hold more GPUs of a machine than the list of machines says that it has."""
    sheet = read_sheet(machines)
    has: dict[str, int] = {}
    for cells in zip(
        sheet.column("machineId").tolist(), sheet.column("number of GPUs").tolist(), strict=True
    ):
        if cells[1].isascii() and cells[1].isdigit():
            has[cells[0]] = int(cells[1][:6])
    return np.array([any(n > has.get(name, n) for name, n in on) for on in rows.on], np.bool_)
