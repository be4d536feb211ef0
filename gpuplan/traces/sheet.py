"""A table as spreadsheets and programs export it: separators, quotes, totals lines and ragged rows, cells as text.

The separator is the comma, semicolon, tab or bar that splits the header and the lines below it most evenly. Cells stay
the text that was written; `gpuplan.traces.sheet_numbers` and `gpuplan.traces.sheet_times` read them.
"""

import contextlib
import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.traces.plain_text import PlainText, Progress, free_memory, read_text, refusal
from gpuplan.traces.sheet_rows import Rows, quoted, unquoted

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

#: First words of a line that adds up the lines above it.
TOTALS = frozenset(
    (
        *("total", "totals", "sum", "average", "mean"),
        *("summe", "gesamt", "gesamtsumme", "insgesamt", "mittelwert", "durchschnitt"),
        *("totale", "somme", "moyenne", "suma", "soma", "totaal", "summa"),
    )
)

#: Bytes of memory that a cell needs while a table is read (measured: 90 with twelve columns, 170 with four).
MEMORY_PER_CELL = 180

#: Most columns of a table.
MOST_COLUMNS = 2_000

#: Lines at the start by which the separator is told, and among which the header is looked for.
_HEAD, _TITLES = 50, 20

_UNCLOSED = "must be a row of cells: a quotation mark is opened in it and never closed"

#: Characters of a row that a mistake shows.
_SHOWN = 60


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """``R`` rows of cells as text, and how they were found.

    Attributes
    ----------
    source
        Name of the file, without its folder.
    names
        Names of the columns, as the header has them.
    line : int64[R]
        Line of the file on which each row begins, from 1.
    cells
        The columns, object[R] each, blanks at the ends of cells taken away.
    separator
        What stands between cells.
    totals : bool[R]
        Rows at the end that add up the rows above.
    blank : int64[B]
        Lines below the header without anything in a cell.
    notes
        How the file was read, as sentences.
    ragged
        Rows whose number of cells is not that of the header; they are not among the rows.
    """

    source: str
    names: tuple[str, ...]
    line: Int64
    cells: tuple[Strings, ...]
    separator: str
    totals: Bools
    blank: Int64
    notes: tuple[str, ...] = ()
    ragged: tuple[Mistake, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.line)

    def column(self, name: str) -> Strings:
        """The cells of a column, object[R].

        Raises
        ------
        InputError
            If there is no such column; it says which there are.
        """
        if name not in self.names:
            rule = f"is a column that the file must have; found: {listed(self.names)}"
            raise InputError(self.source, [Mistake(shorten(name), rule)])
        return self.cells[self.names.index(name)]


def read_sheet(
    path: str | Path,
    *,
    progress: Progress | None = None,
    most_bytes: int | None = None,
    first: int | None = None,
    names: Sequence[str] | None = None,
) -> Sheet:
    """Read a table; see `gpuplan.traces.plain_text.read_text` for the arguments.

    Parameters
    ----------
    path, progress, most_bytes, first
    names
        Names of the columns, where the file has no header.

    Raises
    ------
    InputError
        If the file cannot be read, is no text table, or has no row below its header.
    """
    return sheet_of(read_text(path, progress=progress, most_bytes=most_bytes, first=first), names)


def listed(names: Iterable[str], most: int = 30) -> str:
    """Names of columns for a message: ``id, submit_s, run_s``."""
    shown = [shorten(name) or "(no name)" for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def sheet_of(text: PlainText, names: Sequence[str] | None = None) -> Sheet:
    """The table of a text; see `read_sheet`."""
    body, start = text.text, 1
    notes = list(text.notes)
    told = ""
    if body[:4].lower() == "sep=" and "\n" in body[:8]:  # what spreadsheets write for each other
        told, body, start = body[4:5], body[body.index("\n") + 1 :], 2
    separator, usual = _separator(body, text.source, told)
    _refuse_large(body, separator, text.source)
    line, rows, blank = (
        quoted(body, separator, start, usual, notes) if '"' in body else unquoted(body, separator, start)
    )
    if not rows.count:
        raise refusal(text.source, "has no header and no row: all its lines are empty")
    head = 0 if names is not None else _header_row(rows)
    if head:
        notes.append(f"Lines above the header were not read: {head} (from line {line[0]} on).")
    found = tuple(names) if names is not None else _names(rows.row(head), text.source, int(line[head]))
    below = head + (names is None)
    width = len(found)
    fine = _fitting(rows, width, below)
    ragged = _ragged(rows, line, fine, below, width)
    if separator != ",":
        notes.insert(0, f"Cells are separated by {SEPARATORS[separator]}.")
    cells = rows.columns(fine, width)
    below_header = blank[blank > line[head]] if names is None else blank
    line = line[fine]
    if not len(line) and not ragged:
        raise refusal(text.source, f"must have a row below its header ({listed(found)})")
    for column in (*cells, line, below_header):
        column.flags.writeable = False
    return Sheet(
        text.source, found, line, cells, separator, _totals(cells), below_header, tuple(notes), ragged
    )


def _separator(body: str, source: str, told: str) -> tuple[str, int]:
    """The sign that splits the first lines most evenly, best one that splits the header so, and into how many cells."""
    lines = [line for line in body[: 1 << 16].split("\n")[:_HEAD] if line.strip()]
    best, score, width = "", (False, 0.0, 0), 1
    for sign in (told,) if told in SEPARATORS and told else SEPARATORS:
        counts = [len(row) for row in _csv_rows("\n".join(lines), sign)]
        usual, times = Counter(counts).most_common(1)[0] if counts else (1, 0)
        found = (bool(counts) and counts[0] == usual, times / max(len(counts), 1), usual)
        if (usual > 1 and found > score) or sign == told:
            best, score, width = sign, found, usual
    if best:
        return best, width
    head = shorten(lines[0], _SHOWN) if lines else ""
    rule = "this is not a text table: no comma, semicolon, tab or bar separates cells in its first lines"
    raise InputError(
        source, [Mistake("", rule, head, 1)] if head else [Mistake("", "all its lines are empty")]
    )


def _refuse_large(body: str, separator: str, source: str) -> None:
    """Raise where the cells would not fit into memory (short cells take much more than their text)."""
    cells = body.count(separator) + body.count("\n")
    free = free_memory()
    if free is not None and cells * MEMORY_PER_CELL > free:
        allowed = f"{cells:,} cells, where memory allows {free // MEMORY_PER_CELL:,}"
        raise refusal(source, f"is too large: {allowed}; cut it by date, or leave out columns")


def _csv_rows(text: str, sign: str) -> list[list[str]]:
    """Rows of a little text, as far as they can be split."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # what is wrong is told when the whole is read
        rows += (row for row in csv.reader(io.StringIO(text), delimiter=sign) if row)
    return rows


def _header_row(rows: Rows) -> int:
    """The row with the names: the first that has as many cells as most rows have, where titles stand above it."""
    widths = rows.widths[: max(_HEAD, 1)]
    usual = Counter(widths.tolist()).most_common(1)[0][0]
    first = rows.row(0)
    titles = [cell for cell in first if cell.strip()]
    if len(first) == usual and (len(titles) > 1 or usual == 1):
        return 0
    for number in range(min(_TITLES, rows.count)):
        cells = rows.row(number)
        if len(titles) > 1 or len([cell for cell in cells if cell.strip()]) > 1:
            return number if len(cells) == usual and len(titles) <= 1 else 0
    return 0


def _names(cells: list[str], source: str, line: int) -> tuple[str, ...]:
    """Names of the columns; empty ones at the end are those of a trailing separator."""
    names = [cell.strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    mistakes = [
        Mistake(f"line {line}, {shorten(name)}", "is a column that must stand once", line=line)
        for name, times in Counter(names).items()
        if name and times > 1
    ]
    if len(names) > MOST_COLUMNS:
        mistakes.append(Mistake(f"line {line}", f"must have at most {MOST_COLUMNS:,} columns", line=line))
    if mistakes:
        raise InputError(source, mistakes)
    return tuple(names)


def _fitting(rows: Rows, width: int, below: int) -> Int64:
    """Rows with as many cells as the header; what stands beyond may be empty (a trailing separator)."""
    fits = rows.widths == width
    for number in np.flatnonzero(rows.widths > width).tolist():
        fits[number] = not any(cell.strip() for cell in rows.row(number)[width:])
    fits[:below] = False
    fits[sorted(rows.unclosed)] = False
    return np.flatnonzero(fits)


def _ragged(rows: Rows, line: Int64, fine: Int64, below: int, width: int) -> tuple[Mistake, ...]:
    wrong = np.ones(rows.count, np.bool_)
    wrong[fine] = False
    wrong[:below] = False
    return tuple(
        Mistake(
            f"line {line[row]}",
            _UNCLOSED
            if row in rows.unclosed
            else f"must have {width} cells, as the header has; it has {rows.widths[row]}",
            shorten(" | ".join(rows.row(row)), _SHOWN),
            int(line[row]),
        )
        for row in np.flatnonzero(wrong).tolist()
    )


def _totals(cells: tuple[Strings, ...]) -> Bools:
    """Rows at the end whose first word says that they add up those above."""
    rows = len(cells[0]) if cells else 0
    found = np.zeros(rows, np.bool_)
    for row in range(rows - 1, max(rows - 4, -1), -1):
        first = next((column[row] for column in cells if column[row]), "")
        words = first.lower().rstrip(":").split()
        if not words or words[0] not in TOTALS or not any(not column[row] for column in cells):
            break
        found[row] = True
    found.flags.writeable = False
    return found
