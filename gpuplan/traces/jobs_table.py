"""Jobs from a table that somebody exported: CSV in any European or American form, or Parquet.

The columns of published tables (Philly, Helios, Acme, openb, PAI) are known; those of others are guessed, and what is
not sure must be confirmed first (`guess`, `JobMapping.changed`). Every cell that cannot be read is told with its line,
column and text.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.history import REPEAT, SUMMARY, UNKNOWN, UNREADABLE, USED, History, history, line_list
from gpuplan.traces.job_cells import PARTS, JobCells
from gpuplan.traces.job_guess import guess as guess_of
from gpuplan.traces.job_mapping import JobMapping
from gpuplan.traces.job_times import JobTimes
from gpuplan.traces.plain_text import Progress, read_text
from gpuplan.traces.published_tables import header_of
from gpuplan.traces.sheet import Bools, Int64, Sheet, Strings, listed, sheet_of

#: Bytes of a file by which its columns are guessed.
_HEAD = 1 << 20

_AS_PARTS = "held, with parts of GPUs as they are"

_TEXTS = ("user", "team", "partition", "qos", "name", "cluster")


def guess(path: str | Path) -> JobMapping:
    """What the columns of a table of jobs are taken for, with reasons, by the start of the file.

    Show it, change it (`JobMapping.changed`), and pass it to `read_jobs`.

    Raises
    ------
    InputError
        If the file cannot be read or is no table.
    """
    return guess_of(_sheet(path, first=_HEAD))


def read_jobs(
    path: str | Path,
    mapping: JobMapping | Mapping[str, Any] | None = None,
    *,
    zone: str | None = None,
    as_of_s: int | None = None,
    strict: bool = True,
    progress: Progress | None = None,
    most_bytes: int | None = None,
) -> History:
    """Read a table of jobs, a row per job or per attempt of one.

    Parameters
    ----------
    path
        A text table of any name (plain or gzip), ``.parquet``, or Philly's log of attempts in JSON.
    mapping
        What the columns mean: from `guess`, changed or as it is (which confirms it); or changes alone, such as
        ``{"gpus": "Cards", "elapsed": ("Used", "min")}``. None: as guessed, if nothing has to be asked.
    zone
        Zone of times that are written without one, such as ``Europe/Berlin``; None: they stay times on the wall.
    as_of_s
        Moment of the export in the seconds of the table, up to which what runs counts; None: not known.
    strict
        Whether a cell that cannot be read is an error; else its row is left out, and told in `History.mistakes`.
    progress
        Called with the bytes read and the bytes of the file.
    most_bytes
        Largest text that is read; by default what the free memory allows.

    Raises
    ------
    InputError
        If the file cannot be read; for what must be confirmed; with every cell that cannot be read, where `strict`.
    """
    if mapping is None and _is_json(path):
        from gpuplan.traces.philly_attempts import read_philly_attempts

        return read_philly_attempts(path, zone=zone, strict=strict, progress=progress, most_bytes=most_bytes)
    sheet = _sheet(path, progress=progress, most_bytes=most_bytes)
    return history_of(sheet, settled(sheet, mapping), zone=zone, as_of_s=as_of_s, strict=strict)


def settled(sheet: Sheet, mapping: JobMapping | Mapping[str, Any] | None) -> JobMapping:
    """The mapping to read a table by; an error says what is missing or must be confirmed."""
    if isinstance(mapping, JobMapping):
        if mapping.columns != sheet.names:
            rule = "must be the mapping of this file: its columns are others"
            raise InputError(sheet.source, [Mistake("mapping", rule)])
        found = mapping.confirm()
    else:
        found = guess_of(sheet)
        if mapping:
            found = found.changed(**mapping)
    if found.missing:
        raise InputError(sheet.source, [Mistake("", sentence) for sentence in found.missing])
    if found.open:
        asked = [Mistake("", f"must be confirmed: {sentence}") for sentence in found.open]
        raise InputError(sheet.source, asked)
    return found


def history_of(
    sheet: Sheet, mapping: JobMapping, *, zone: str | None, as_of_s: int | None, strict: bool
) -> History:
    """The history of a table whose columns are settled; see `read_jobs`."""
    cells = JobCells(sheet, mapping)
    gpus, exact = cells.gpus()
    row = JobTimes(cells, zone, as_of_s)
    columns: dict[str, Any] = {name: cells.texts(name) for name in _TEXTS}
    columns |= {"gpu_type": cells.texts("gpu_type", words=True), "state": row.state}
    columns |= {"limit_s": cells.seconds("limit"), "requested_gpus": cells.requested()}
    columns |= {"priority": cells.priorities()}
    job, parent = _identity(cells)
    identified = cells.has("job") or bool(cells.table and cells.table.identity)
    repeats = _repeats(cells, job) if identified else np.zeros(len(cells), np.bool_)
    reason = np.select([sheet.totals, cells.wrong, repeats], [SUMMARY, UNREADABLE, REPEAT], USED).astype(
        np.int8
    )
    used = reason == USED
    ran = used & (row.elapsed > 0)
    parts = ((_AS_PARTS, float(np.sum((exact * row.elapsed)[ran])) / 3600, "GPU-hours"),)
    return history(
        sheet.source,
        sheet.line,
        reason=reason,
        mistakes=sorted(cells.mistakes, key=lambda mistake: (mistake.line is None, mistake.line or 0)),
        strict=strict,
        excluded=_ragged(sheet),
        changed=tuple(cells.changed.items()),
        amounts=parts if PARTS in cells.changed else (),
        rules=_rules(cells, row),
        rows="rows",
        zone=row.zone,
        as_of_s=row.as_of_s,
        as_of_from=row.as_of_from,
        job=job,
        parent=parent,
        attempt=_attempts(job, used, row, not identified),
        gpus=gpus,
        submit_s=row.submit,
        eligible_s=row.eligible,
        start_s=row.start,
        end_s=row.end,
        elapsed_s=row.elapsed,
        ambiguous=row.ambiguous,
        **columns,
    )


def _is_json(path: str | Path) -> bool:
    """Whether a file begins as JSON does; one that cannot be read does not."""
    try:
        return read_text(path, first=4096).text.lstrip()[:1] in ("[", "{")
    except InputError:
        return False


def _sheet(
    path: str | Path,
    *,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    first: int | None = None,
) -> Sheet:
    """The table of a file; one of accounting or measurements is refused by its columns."""
    if str(path).lower().endswith((".parquet", ".pq")):
        from gpuplan.traces.jobs_parquet import read_parquet

        sheet = read_parquet(
            path, progress=progress, most_bytes=most_bytes, first_rows=None if first is None else 2_000
        )
    else:
        text = read_text(path, progress=progress, most_bytes=most_bytes, first=first)
        sheet = sheet_of(text, header_of(text.source, text.text))
    names = {name.lower() for name in sheet.names}
    if names & {"alloctres", "reqtres"}:
        raise InputError(
            sheet.source, [Mistake("", "has the columns of sacct; read it as such (gpuplan import slurm)")]
        )
    return sheet


def _identity(cells: JobCells) -> tuple[Strings, Strings]:
    """Identity of each row, and of the job of which it is a part."""
    none = np.full(len(cells), "", object)
    if cells.table and cells.table.identity:
        columns = [cells.sheet.column(name) for name in cells.table.identity]
        joined = np.empty(len(cells), object)
        joined[:] = ["/".join(parts) for parts in zip(*columns, strict=True)]
        return joined, columns[0]
    job = cells.texts("job")
    unnamed = job == ""
    if unnamed.any():
        lines = np.array([f"line-{line}" for line in cells.sheet.line.tolist()], object)
        job = np.where(unnamed, lines, job)
        if cells.has("job"):
            cells.note("no identity: named by the line", unnamed)
    return job, none


def _repeats(cells: JobCells, job: Strings) -> Bools:
    """Rows that are, cell by cell, an earlier row of the same job."""
    import pandas as pd

    found = np.zeros(len(cells), np.bool_)
    series = pd.Series(job, dtype=object)
    seen: set[tuple[str, ...]] = set()
    for row in np.flatnonzero(series.duplicated(keep=False).to_numpy()).tolist():
        record = tuple(column[row] for column in cells.sheet.cells)
        found[row] = record in seen
        seen.add(record)
    return found


def _attempts(job: Strings, used: Bools, row: JobTimes, unique: bool) -> Int64:
    """Which attempt of its job each row is, from 1 in order of time."""
    import pandas as pd

    attempt = np.ones(len(job), np.int64)
    if unique:
        return attempt
    codes = pd.factorize(job)[0]
    rows = np.flatnonzero(used)
    if not len(rows) or np.bincount(codes[rows]).max() == 1:
        return attempt
    when = np.where(row.start != UNKNOWN, row.start, row.submit)
    order = rows[np.lexsort((rows, when[rows], codes[rows]))]
    first = np.append([True], codes[order][1:] != codes[order][:-1])
    begins = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    attempt[order] = np.arange(len(order)) - begins + 1
    return attempt


def _ragged(sheet: Sheet) -> tuple[tuple[str, int], ...]:
    if not sheet.ragged:
        return ()
    lines = np.array([mistake.line for mistake in sheet.ragged], np.int64)
    return ((f"another number of cells than the header ({line_list(lines)})", len(lines)),)


def _rules(cells: JobCells, row: JobTimes) -> tuple[str, ...]:
    """What was decided, as sentences."""
    mapping = cells.mapping
    taken = [f"{g.column} is {g.meaning}" for g in mapping.guesses if g.field]
    rules = [f"Columns: {'; '.join(shorten(text, 120) for text in taken)}."]
    unused = [g.column for g in mapping.guesses if not g.field]
    if unused:
        rules.append(f"Columns not used: {listed(unused)}.")
    if not cells.has("job") and not (cells.table and cells.table.identity):
        rules.append(
            "No column is an identity: a job is named by its line, and equal rows are jobs of their own."
        )
    if not cells.has("state"):
        rules.append("No column tells how jobs ended.")
    return (*rules, *row.rules, *cells.notes, *(cells.table.rules if cells.table else ()))
