"""A CSV file that people write, as columns: read strictly, every mistake with its line, column and value."""

import csv
import gzip
import stat
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten, unknown_key

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.inputs.columns import Broken, Columns

SUFFIXES = (".csv", ".csv.gz")

#: Lines that are named where many break one rule.
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Shape:
    """What columns a table has: all that are known, those that must be there, those whose cells are text."""

    known: Sequence[str]
    required: Sequence[str]
    text: frozenset[str]


def read_columns(path: str | Path, shape: Shape) -> "Columns":
    """The columns of a UTF-8 file with a header row, ``.csv`` or ``.csv.gz``, in any order.

    Raises
    ------
    InputError
        Where the file cannot be read, or its header or the length of its rows is wrong.
    """
    names = _header(path, shape)
    frame = _frame(path, names, shape)
    from gpuplan.inputs.columns import Columns

    return Columns(frame)


def raise_mistakes(path: str | Path, columns: "Columns") -> None:
    """Raise an `InputError` with every rule that the columns break, by line; a rule of many rows is told once."""
    if columns.broken:
        raise InputError(str(path), _located(path, columns))


def _open(path: str | Path) -> IO[str]:
    if str(path).endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _header(path: str | Path, shape: Shape) -> list[str]:
    """Names of the columns, each of them known, none missing."""
    source = str(path)
    if not source.endswith(SUFFIXES):
        raise InputError(source, [Mistake("", "must be a CSV file, .csv or .csv.gz")])
    with _sentences(source):
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise InputError(source, [Mistake("", "must be a file, not a folder or a device")])
        with _open(path) as file:
            first = file.readline(100_000)
        names = [name.strip() for name in next(csv.reader([first]), [])]
    if len(names) == 1 and set(first) & set(";\t"):
        raise InputError(
            source, [Mistake("", "must be separated by commas, not by semicolons or tabs", line=1)]
        )
    mistakes = [
        Mistake(f"line 1, {shorten(name)}" if name else "line 1", _unknown_column(name, names, shape), line=1)
        for name in names
        if name not in shape.known
    ]
    mistakes += [
        Mistake(f"line 1, {name}", "is a column that the file must have" + did_you_mean(name, names), line=1)
        for name in shape.required
        if name not in names
    ]
    mistakes += [
        Mistake(f"line 1, {name}", "is a column that must stand once", line=1)
        for name in shape.known
        if names.count(name) > 1
    ]
    if mistakes:
        raise InputError(source, mistakes)
    return names


def _unknown_column(name: str, names: list[str], shape: Shape) -> str:
    if not name:
        return "must have a name for every column, but one is empty"
    return unknown_key(name, [known for known in shape.known if known not in names]).replace(
        "key", "column", 1
    )


def _frame(path: str | Path, names: list[str], shape: Shape) -> "pd.DataFrame":
    """The cells: numbers where a whole column holds nothing else, otherwise text."""
    import pandas as pd

    source = str(path)
    with _sentences(source), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header is a fault
        frame = pd.read_csv(
            path,
            header=0,
            names=names,
            dtype={name: object for name in names if name in shape.text},
            keep_default_na=False,
            na_values={name: [""] for name in names if name not in shape.text},
            index_col=False,
            low_memory=False,
            encoding="utf-8-sig",
            compression="gzip" if source.endswith(".gz") else None,
        )
    _refuse_short_rows(path, len(names), len(frame))
    return frame


def _refuse_short_rows(path: str | Path, cells: int, rows: int) -> None:
    """Raise where a row ends too early: to pandas, absent cells look like empty ones.

    Commas are counted first; only where they do not tell are the rows walked through.
    """
    source = str(path)
    commas = quotes = 0
    with gzip.open(path) if source.endswith(".gz") else open(path, "rb") as file:
        while block := file.read(1 << 22):
            commas += block.count(b",")
            quotes += block.count(b'"')
    if not quotes and commas == (rows + 1) * (cells - 1):
        return
    with _sentences(source), _open(path) as text:
        lines = [line for line, record in _records(text) if len(record) < cells]
    if lines:
        rule = f"must have {cells} cells, as the header has"
        found = [Mistake(f"line {line}", rule, line=line) for line in lines[:_NAMED]]
        more = len(lines) - len(found)
        rest = [Mistake("", f"{more:,} more lines are too short", more=more)] if more else []
        raise InputError(source, [*found, *rest])


class _sentences:  # used as a with-statement reads
    """Turns what goes wrong while a file is read into a sentence."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        rule = ""
        if isinstance(error, InputError):
            return
        if isinstance(error, FileNotFoundError):
            rule = "there is no such file"
        elif isinstance(error, (EOFError, zlib.error)):
            rule = "cannot be read: the gzip data is damaged or cut off"
        elif isinstance(error, OSError):
            rule = f"cannot be read: {error.strerror or shorten(str(error), 120)}"
        elif isinstance(error, UnicodeDecodeError):
            rule = "must be UTF-8 text"
        elif isinstance(error, (ValueError, Warning, csv.Error)):  # pandas' own: ragged rows, unclosed quotes
            rule = f"must be a CSV file with a header row: {shorten(' '.join(str(error).split()), 120)}"
        if rule:
            raise InputError(self.source, [Mistake("", rule)]) from None


def _lines(path: str | Path, rows: list[int]) -> list[int]:
    """Line of the file of each of some rows (from 0, ascending): records may span lines, and empty lines are none."""
    found = []
    wanted = iter(sorted(rows))
    row = next(wanted, None)
    with _sentences(str(path)), _open(path) as file:
        for count, (line, _) in enumerate(islice(_records(file), 1, None)):
            while row == count:
                found.append(line)
                row = next(wanted, None)
            if row is None:
                break
    return found + [0] * (len(rows) - len(found))


def _records(file: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record starts, from 1, and its cells; the header is the first."""
    reader = csv.reader(file)
    before = 0
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            yield before + 1, record
        before = reader.line_num


def _located(path: str | Path, columns: "Columns") -> list[Mistake]:
    """The mistakes of a table with their lines, by line."""
    broken = list(columns.in_order())
    rows = sorted({row for part in broken for row in part.rows})
    line = dict(zip(rows, _lines(path, rows), strict=True))
    return [_mistake(part, [line[row] for row in part.rows]) for part in broken]


def _mistake(part: "Broken", lines: list[int]) -> Mistake:
    where = f"line {lines[0]}, {part.column}"
    rule = part.rule
    if part.count > 1:
        more = part.count - len(lines)
        others = [f"{line}" for line in lines] + ([f"{more:,} more"] if more else [])
        rule += f" (lines {', '.join(others[:-1])} and {others[-1]})"
    return Mistake(where, rule, part.value, lines[0])
