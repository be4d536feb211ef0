"""Accounting records of Slurm, as ``sacct --parsable`` or ``--parsable2`` writes them, as a history.

Source of the fields: the manual page ``sacct(1)``. A file is read in pieces; what cannot be read is told with line,
column and text, and nothing is dropped in silence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces import slurm_blocks
from gpuplan.traces.history import History, line_list
from gpuplan.traces.plain_text import Progress, free_memory, refusal
from gpuplan.traces.slurm_columns import Gatherer
from gpuplan.traces.slurm_history import history_of
from gpuplan.traces.slurm_layout import TIMES, Layout, layout_of
from gpuplan.traces.slurm_times import Choices

#: Bytes of memory that a record takes, in its columns and in those of the history.
_PER_RECORD = 1000

#: Lines that are looked at to see whether lines end with a separator.
_LOOKED_AT = 1000


def read_sacct(
    path: str | Path,
    *,
    zone: str | None = None,
    separator: str | None = None,
    columns: str | Sequence[str] | None = None,
    as_of: str | datetime | None = None,
    partition_limits: Mapping[str, int | None] | int | None = None,
    strict: bool = True,
    progress: Progress | None = None,
) -> History:
    """Read an export of ``sacct``: every record an attempt of a job, or left out for a reason.

    Needed are an id (JobID, JobIDRaw) and GPUs (AllocTRES, ReqTRES; in old files AllocGRES, ReqGRES). Useful are
    both of each, and State, Submit, Eligible, Start, End, Elapsed, Timelimit, User, Account, Partition, QOS, Cluster.

    Parameters
    ----------
    path
        Text, plain or gzip, with a header line.
    zone
        Zone of the times (``Europe/Berlin``), which sacct does not write. None: not known; times stay those on the
        wall, run times are right all the same.
    separator
        What stands between fields; None: told by the header.
    columns
        Columns of a file without a header, as they were given to ``--format``.
    as_of
        When the export was made, in `zone`. None: a running job tells it (start + run time); else the latest time of
        the file is taken, as a guess.
    partition_limits
        Longest run time by partition, seconds (None: no limit), for jobs whose limit is ``Partition_Limit``; a number
        stands for all partitions.
    strict
        Whether a record that cannot be read is an error; else it is left out and counted.
    progress
        Called with the bytes read so far and those of the file.

    Raises
    ------
    InputError
        If the file cannot be read, is no such export or has no record; if `strict`, with every field that is wrong.
    """
    source = Path(path).name or str(path)
    gathered = _gather(path, source, separator, columns, progress)
    table = gathered.gatherer.table()
    choices = Choices(zone, as_of, partition_limits, strict, gathered.notes)
    return history_of(source, gathered.gatherer.layout, table, gathered.gatherer.mistakes, choices)


@dataclass(slots=True)
class _Gathered:
    gatherer: Gatherer
    notes: tuple[str, ...]


def _gather(
    path: str | Path,
    source: str,
    separator: str | None,
    columns: str | Sequence[str] | None,
    progress: Progress | None,
) -> _Gathered:
    reading = slurm_blocks.Reading()
    gatherer: Gatherer | None = None
    rest, written, line, free = b"", b"|", 1, free_memory()
    for block in slurm_blocks.blocks(path, progress, reading):
        data = block.data
        if gatherer is None:
            layout, data, line = _first(source, data, separator, columns)
            written = layout.separator
            gatherer = Gatherer(_one_sign(layout))
        if len(written) > 1:
            data = slurm_blocks.one_sign(data, written)
        data = rest + data
        rest = data[gatherer.add(data, line + gatherer.lines, block.last) :] if data else b""
        memory = _PER_RECORD * gatherer.rows * block.size // max(block.done, 1)
        if free is not None and memory > free:
            raise slurm_blocks.too_large(source, block.size, memory, free)
    if gatherer is None:
        raise refusal(source, "this is an empty file")
    if not gatherer.rows:
        shown = ", ".join(gatherer.layout.shown)
        raise refusal(source, f"has a header ({shown}) and no record of a job")
    _refuse_style(source, gatherer)
    return _Gathered(gatherer, _notes(reading, gatherer))


def _first(
    source: str, data: bytes, separator: str | None, columns: str | Sequence[str] | None
) -> tuple[Layout, bytes, int]:
    """The layout, the first block behind the header, and the number of its first line."""
    line = 1
    while data.startswith(b"\n"):
        data, line = data[1:], line + 1
    header, _, body = data.partition(b"\n")
    if not header.strip() and not body.strip():
        raise refusal(source, "this is an empty file")
    layout = layout_of(source, header, separator, columns)
    if columns is None:
        line += 1
    else:
        body = data
    return _ending(layout, body), body, line


def _one_sign(layout: Layout) -> Layout:
    """The layout of lines in which one sign stands for a separator of several."""
    if len(layout.separator) == 1:
        return layout
    header = None if layout.header is None else slurm_blocks.one_sign(layout.header, layout.separator)
    return replace(layout, separator=slurm_blocks.STAND_IN, header=header)


def _ending(layout: Layout, body: bytes) -> Layout:
    """The layout with lines that end with a separator, or do not, as the first of them say."""
    end = 0
    for _ in range(_LOOKED_AT):
        following = body.find(b"\n", end)
        if following < 0:
            break
        end = following + 1
    lines = [text for text in body[:end].split(b"\n") if text.strip()]
    ends = [text.endswith(layout.separator) for text in lines]
    full = [text.count(layout.separator) >= len(layout.names) for text in lines]
    if not layout.trailing and lines and all(ends) and all(full):
        return replace(layout, trailing=True)
    if layout.trailing and lines and not any(ends):
        return replace(layout, trailing=False)
    return layout


def _refuse_style(source: str, gatherer: Gatherer) -> None:
    """Refuse columns of times in a style that does not tell the day, by name."""
    rule = "is written in a style that does not tell the moment: export it as 2026-03-04T10:00:00 (SLURM_TIME_FORMAT)"
    mistakes = [
        Mistake(gatherer.layout.shown_as(name), rule, gatherer.strange[name][0])
        for name in TIMES
        if name in gatherer.known and gatherer.n_strange[name] > gatherer.known[name]
    ]
    if mistakes:
        raise InputError(source, mistakes)


def _notes(reading: slurm_blocks.Reading, gatherer: Gatherer) -> tuple[str, ...]:
    """What was done to the text, as sentences."""
    notes = []
    for lines, count, what in (
        (reading.windows, reading.n_windows, "Not UTF-8, so read as Windows-1252"),
        (reading.nulls, reading.n_nulls, "Null bytes were left out"),
    ):
        if count:
            more = f" and {count - len(lines):,} more" if count > len(lines) else ""
            notes.append(f"{what}: {line_list(np.array(lines))}{more}.")
    if reading.returns:
        notes.append(f"Carriage returns inside of lines became blanks: {reading.returns:,}.")
    if gatherer.blank:
        notes.append(f"Blank lines: {gatherer.blank:,}.")
    if gatherer.pieces:
        notes.append(
            f"Records with separators or line breaks in a name, read in the one possible way: {gatherer.pieces:,}."
        )
    return tuple(notes)
