"""The rows of a table: records split into cells, with the line on which each begins.

Text without quotes is split at once; with quotes by the standard library's reader, record by record.
"""

import csv
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]

#: Most lines over which a row goes on.
MOST_LINES = 200


class Rows(ABC):
    """Rows of cells, ragged.

    Attributes
    ----------
    count
    widths : int64[count]
        Cells of each row.
    unclosed
        Rows in which a quotation mark is opened and never closed.
    """

    count: int
    widths: Int64
    unclosed: set[int]

    @abstractmethod
    def row(self, number: int) -> list[str]:
        """The cells of one row."""

    @abstractmethod
    def columns(self, rows: Int64, width: int) -> tuple[Strings, ...]:
        """The first `width` cells of some rows, by column."""


class _Lists(Rows):
    """Rows that were split one by one."""

    def __init__(self, rows: list[list[str]], unclosed: set[int]) -> None:
        self.rows = rows
        self.unclosed = unclosed
        self.count = len(rows)
        self.widths = np.fromiter(map(len, rows), np.int64, len(rows))

    def row(self, number: int) -> list[str]:
        return self.rows[number]

    def columns(self, rows: Int64, width: int) -> tuple[Strings, ...]:
        kept = self.rows if len(rows) == len(self.rows) else [self.rows[row] for row in rows.tolist()]
        found = []
        for k in range(width):
            column = np.empty(len(kept), object)
            column[:] = [row[k].strip() for row in kept]
            found.append(column)
        return tuple(found)


class _Lines(Rows):
    """Lines without quotes, which are split at once.

    Parameters
    ----------
    data
        Bytes of the text in UTF-8, in which separators, blanks and line feeds are single bytes.
    starts, ends : int64[L]
        Bytes at which the lines that are not empty begin and end.
    widths : int64[L]
        Cells of each.
    """

    def __init__(self, data: bytes, starts: Int64, ends: Int64, widths: Int64, separator: str) -> None:
        self.data = data
        self.starts, self.ends, self.widths = starts, ends, widths
        self.separator = separator
        self.count = len(starts)
        self.unclosed = set()

    def row(self, number: int) -> list[str]:
        line = self.data[self.starts[number] : self.ends[number]]
        return line.decode("utf-8").split(self.separator)

    def columns(self, rows: Int64, width: int) -> tuple[Strings, ...]:
        text = self._text(rows)
        even = bool((self.widths[rows] == width).all())
        if not len(rows):
            cells: list[str] = []
        elif even:
            cells = text.replace("\n", self.separator).split(self.separator)
        else:
            cells = [cell for line in text.split("\n") for cell in line.split(self.separator)[:width]]
        if self._has_blanks(text):
            cells = [cell.strip() for cell in cells]
        flat = np.empty(len(cells), object)
        flat[:] = cells
        table = flat.reshape(len(rows), width)
        return tuple(np.ascontiguousarray(table[:, k]) for k in range(width))

    def _text(self, rows: Int64) -> str:
        """Some lines, line feeds between them."""
        starts, ends = self.starts[rows], self.ends[rows]
        if not len(rows):
            return ""
        if (starts[1:] == ends[:-1] + 1).all():
            return self.data[starts[0] : ends[-1]].decode("utf-8")
        lines = zip(starts.tolist(), ends.tolist(), strict=True)
        return b"\n".join([self.data[a:b] for a, b in lines]).decode("utf-8")

    def _has_blanks(self, text: str) -> bool:
        """Whether a cell may begin or end with a blank."""
        if "\u00a0" in text or text != text.strip():
            return True
        blanks = [blank for blank in " \t\f" if blank != self.separator and blank in text]
        pairs = [(blank, edge) for blank in blanks for edge in (self.separator, "\n")]
        return any(blank + edge in text or edge + blank in text for blank, edge in pairs)


def unquoted(body: str, separator: str, start: int) -> tuple[Int64, Rows, Int64]:
    """Line numbers and lines that have a cell with something in it, and the numbers of those that have none."""
    data = body.encode("utf-8", "replace")
    signs = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(signs == 10)
    if not len(ends) or ends[-1] != len(signs) - 1:
        ends = np.append(ends, len(signs))
    starts = np.append(0, ends[:-1] + 1)
    cuts = np.flatnonzero(signs == ord(separator))
    widths = np.searchsorted(cuts, ends) - np.searchsorted(cuts, starts) + 1
    suspects = np.flatnonzero(ends - starts <= 2 * widths)  # hardly more than separators
    told = np.ones(len(starts), np.bool_)
    blank = (separator + " \t").encode()
    told[suspects] = [bool(data[starts[k] : ends[k]].strip(blank)) for k in suspects.tolist()]
    long = np.flatnonzero(told & (signs[np.minimum(starts, len(signs) - 1)] == 32))  # a line of many blanks
    told[long] = [bool(data[starts[k] : ends[k]].strip(blank)) for k in long.tolist()]
    kept = np.flatnonzero(told)
    lines = _Lines(data, starts[kept], ends[kept], widths[kept], separator)
    return kept + start, lines, np.flatnonzero(~told) + start


def quoted(body: str, separator: str, start: int, width: int, notes: list[str]) -> tuple[Int64, Rows, Int64]:
    """As `unquoted`, of text with quotes, in which a row may go on over line ends.

    A quotation mark that is not closed must not swallow the rows below it: a row over several lines that has not
    `width` cells, looks like several rows, or goes on over more than `MOST_LINES`, is taken line by line. Adds to
    `notes` what is worth one.
    """
    lines = body.split("\n")
    numbers, blank, several = [], [], 0
    rows: list[list[str]] = []
    unclosed: set[int] = set()
    at = 0
    last = len(lines) - (not lines[-1])
    whole = _line_by_line(lines[:last], separator)
    if whole is not None:
        told = np.array([any(map(str.strip, row)) for row in whole], np.bool_)
        kept = np.flatnonzero(told)
        found = _Lists([whole[k] for k in kept.tolist()], unclosed)
        return kept + start, found, np.flatnonzero(~told) + start
    while at < last:
        line = lines[at]
        if '"' not in line:
            row, took, closed = line.split(separator), 1, True
        else:
            row, took, closed = _record(lines, at, separator, width)
            several += took > 1
        if any(cell.strip() for cell in row):
            if not closed:
                unclosed.add(len(rows))
            numbers.append(at + start)
            rows.append(row)
        else:
            blank.append(at + start)
        at += took
    if several:
        notes.append(f"Rows with a line break within quotes: {several:,}.")
    return np.array(numbers, np.int64), _Lists(rows, unclosed), np.array(blank, np.int64)


def _line_by_line(lines: list[str], separator: str) -> list[list[str]] | None:
    """The cells of each line, where quotes are closed on every line; None where they are not."""
    if any(line.count('"') % 2 for line in lines):
        return None
    try:
        rows = list(csv.reader([line + "\n" for line in lines], delimiter=separator))
    except csv.Error:
        return None
    return rows if len(rows) == len(lines) else None


def _record(lines: list[str], at: int, separator: str, width: int) -> tuple[list[str], int, bool]:
    """The record that begins on a line, how many lines it takes, and whether its quotes are closed."""
    reader = csv.reader(
        (lines[k] + "\n" for k in range(at, min(at + MOST_LINES, len(lines)))),
        delimiter=separator,
        strict=True,
    )
    try:
        row = next(reader)
        took = reader.line_num
        if took == 1 or (len(row) == width and not _two_rows(lines[at : at + took], separator, width)):
            return row, took, True
    except (csv.Error, StopIteration):
        pass
    closed = True
    try:
        for _ in csv.reader([lines[at] + "\n"], delimiter=separator, strict=True):
            pass
    except csv.Error as error:
        closed = "end of data" not in str(error)  # what stands behind a closing quote is read as it is
    row = next(csv.reader([lines[at]], delimiter=separator), [])
    return row, 1, closed


def _two_rows(lines: list[str], separator: str, width: int) -> bool:
    """Whether lines of one record look like rows of their own, between two quotation marks that went astray."""
    cuts = width - 1
    if cuts < 2 or lines[0].count('"') != 1 or lines[0].count(separator) < cuts - 1:
        return False
    return any(line.count(separator) == cuts for line in lines[1:])
