"""The rows of a table: records split into cells, with the line on which each begins.

Text without quotes is split at once; with quotes by the standard library's reader, record by record.
"""

import csv
import io

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]


class Rows:
    """Rows of cells, ragged; `count` of them, the cells of row `r` in number `widths[r]`."""

    count: int
    widths: Int64

    def row(self, number: int) -> list[str]:
        """The cells of one row."""
        raise NotImplementedError

    def columns(self, rows: Int64, width: int) -> tuple[Strings, ...]:
        """The first `width` cells of some rows, by column."""
        raise NotImplementedError


class _Lists(Rows):
    """Rows that were split one by one."""

    def __init__(self, rows: list[list[str]]) -> None:
        self.rows = rows
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
        signs = np.frombuffer(text.encode("utf-8"), np.uint8)
        blank = (signs == 32) | (signs == 12)
        if self.separator != "\t":
            blank |= signs == 9
        if not blank.any():
            return False
        edge = (signs == ord(self.separator)) | (signs == 10)
        return bool((blank[1:] & edge[:-1]).any() or (blank[:-1] & edge[1:]).any())


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


def quoted(body: str, separator: str, start: int, source: str, notes: list[str]) -> tuple[Int64, Rows, Int64]:
    """As `unquoted`, of records with quotes, which may go on over line ends; adds to `notes` what is worth one."""
    reader = csv.reader(io.StringIO(body), delimiter=separator)
    numbers, rows, blank, before, several = [], [], [], 0, 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                numbers.append(before + start)
                rows.append(row)
                several += reader.line_num - before > 1
            else:
                blank.append(before + start)
            before = reader.line_num
    except csv.Error:  # a cell of more than 131,072 characters
        raise _never_closed(source, before + start) from None
    if body.count('"') % 2 and numbers and _ends_in_quotes(body, separator):
        raise _never_closed(source, numbers[-1])
    if several:
        notes.append(f"Rows with a line break within quotes: {several:,}.")
    return np.array(numbers, np.int64), _Lists(rows), np.array(blank, np.int64)


def _never_closed(source: str, line: int) -> InputError:
    rule = "must be a row of cells: a quotation mark is opened in it and never closed"
    return InputError(source, [Mistake(f"line {line}", rule, line=line)])


def _ends_in_quotes(body: str, separator: str) -> bool:
    """Whether the text ends within a quoted cell."""
    try:
        for _ in csv.reader(io.StringIO(body + "\n"), delimiter=separator, strict=True):
            pass
    except csv.Error as error:
        return "end of data" in str(error)
    return False
