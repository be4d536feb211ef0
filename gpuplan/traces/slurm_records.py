"""Records of a `sacct` export whose lines are not plain: separators and line breaks in names, lines cut short.

A record is taken only where it can be read in one way. Otherwise it is left out, with its line and what is wrong.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import shorten
from gpuplan.traces.slurm_layout import FREE, GPUS, IDS, SPANS, TIMES, Layout
from gpuplan.traces.slurm_words import is_state

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_ID = re.compile(r"[0-9]{1,18}(_([0-9]+|\[[^\]]*\]))?(\+[0-9]+)?(\.[A-Za-z0-9_+-]+)?", re.A)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,6}|unknown|none|n/a|0|)", re.A | re.I)
_SPAN = re.compile(r"((\d+-)?\d+(:\d+){0,2}(\.\d+)?|invalid|unknown|)", re.A | re.I)
_TRES = re.compile(r"([A-Za-z0-9][\w/:.-]*=[^,=|]*(,[A-Za-z0-9][\w/:.-]*=[^,=|]*)*|)", re.A)
_WORD = re.compile(r"[^\s|]*")
_PATH = re.compile(r"(/.*|)", re.S)

#: Separators too many on a line with several columns of free text, above which no way to read it is looked for.
_MOST_EXTRA = 60

#: Lines that a name may be long.
MOST_LINES = 200


@dataclass(slots=True)
class Piece:
    """A record made of one or more lines that are not plain.

    Attributes
    ----------
    first, last
        Its lines, counted from 0 in their block.
    start, end
        Its bytes in the block.
    bounds
        Start and end of each field in the block; empty where it cannot be read.
    rule
        What is wrong with it; ``""``: nothing.
    text
        What was found, for the message.
    """

    first: int
    last: int
    start: int
    end: int
    bounds: list[tuple[int, int]]
    rule: str = ""
    text: str = ""


@dataclass(slots=True)
class Assembled:
    """What the lines of a block that are not plain amount to."""

    pieces: list[Piece] = field(default_factory=list)
    blank: int = 0
    headers: list[int] = field(default_factory=list)


class Splitter:
    """Splits records into fields, where names may hold separators."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.separator = layout.separator
        self.free = [i for i, name in enumerate(layout.names) if name in FREE]
        self.id_at = layout.id_column
        self.last_is_free = bool(self.free) and self.free[-1] == len(layout.names) - 1 and not layout.trailing
        self._checks = [_check_of(name) for name in layout.names]

    def starts(self, line: bytes) -> bool:
        """Whether a record may begin with this line."""
        if self.free and self.free[0] < self.id_at:
            return not self.split(line)[1]
        fields = line.split(self.separator, self.id_at + 1)
        return len(fields) > self.id_at and bool(_ID.fullmatch(_decoded(fields[self.id_at])))

    def split(self, record: bytes) -> tuple[list[tuple[int, int]], str]:
        """Start and end of each field, and what is wrong (``""``: nothing)."""
        tokens = record.split(self.separator)
        columns = len(self.layout.names)
        if self.layout.trailing:
            if tokens[-1].strip():
                return [], "must end with a separator, as the header does"
            tokens.pop()
        extra = len(tokens) - columns
        if extra < 0:
            return [], f"must have {columns} fields, as the header has; it has {len(tokens)}"
        if extra and not self.free:
            return [], f"must have {columns} fields, as the header has; it has {len(tokens)}"
        if extra and len(self.free) > 1:
            widths, rule = self._widths(tokens)
        else:
            widths, rule = [1] * columns, ""
            if extra:
                widths[self.free[0]] += extra
        return ([], rule) if rule else (self._bounds(tokens, widths), "")

    def fits(self, record: bytes) -> bool:
        """Whether a record can be read, and every field is what its column holds."""
        bounds, rule = self.split(record)
        return not rule and all(
            check is None or check(_decoded(record[a:b]))
            for check, (a, b) in zip(self._checks, bounds, strict=True)
        )

    def _bounds(self, tokens: list[bytes], widths: list[int]) -> list[tuple[int, int]]:
        gap = len(self.separator)
        bounds, at, token = [], 0, 0
        for width in widths:
            length = sum(map(len, tokens[token : token + width])) + gap * (width - 1)
            bounds.append((at, at + length))
            at += length + gap
            token += width
        return bounds

    def _widths(self, tokens: list[bytes]) -> tuple[list[int], str]:
        """Tokens of each column where several may take more than one; only if there is one way."""
        columns = len(self._checks)
        extra = len(tokens) - columns
        if extra > _MOST_EXTRA:
            return [], "has so many separators in its names that it can be read in many ways"
        texts = [_decoded(token) for token in tokens]
        sign = _decoded(self.separator)
        # ways[j]: in how many ways columns up to here may end with j tokens too many, and the last width of one
        ways = [1] + [0] * extra
        widths_of: list[list[int]] = []
        for i, check in enumerate(self._checks):
            nxt, width_at = [0] * (extra + 1), [0] * (extra + 1)
            for before in np.flatnonzero(ways).tolist():
                for more in range(extra - before + 1) if i in self.free else (0,):
                    first = i + before
                    text = sign.join(texts[first : first + 1 + more])
                    if check is None or check(text):
                        nxt[before + more] = min(2, nxt[before + more] + ways[before])
                        width_at[before + more] = 1 + more
            ways = nxt
            widths_of.append(width_at)
        if ways[extra] != 1:
            several = "can be read in several ways" if ways[extra] else "cannot be read in any way"
            return [], f"has separators in its names and {several}"
        widths, left = [0] * columns, extra
        for i in reversed(range(columns)):
            widths[i] = widths_of[i][left]
            left -= widths[i] - 1
        return widths, ""


def last_cut(data: bytes, bounds: Int64, count: Int64, odd: Bools, splitter: Splitter, back: int) -> int:
    """The last line of a block with which a record surely begins; 0 where there is none among the last `back` lines.

    It does not belong to a name that began before it: within `MOST_LINES` before it no line ends too early with
    another record behind it.
    """
    n = len(odd)
    first = max(0, n - back - MOST_LINES)
    starts = ~odd[first:]
    for row in np.flatnonzero(odd[first:]).tolist():
        starts[row] = splitter.starts(data[bounds[0, first + row] : bounds[1, first + row]])
    early = odd[first:] & starts & (count[first:] < splitter.layout.separators)
    early[:-1] &= starts[1:]
    open_ = np.flatnonzero(early)
    rows = np.flatnonzero(starts)
    before = np.searchsorted(open_, rows) - 1
    sure = (before < 0) | (rows - open_[np.maximum(before, 0)] > MOST_LINES if len(open_) else True)
    cuts = rows[sure & (first + rows > max(0, n - back))]
    return int(first + cuts[-1]) if len(cuts) else 0


def _check_of(name: str) -> Callable[[str], object] | None:
    """What a field of a column must look like where a record can be read in several ways; None: anything."""
    if name in IDS:
        return _ID.fullmatch
    if name in TIMES:
        return _TIME.fullmatch
    if name in SPANS:
        return _SPAN.fullmatch
    if name == "state":
        return is_state
    if name in GPUS[:2]:
        return _TRES.fullmatch
    if name == "workdir":
        return _PATH.fullmatch
    return _WORD.fullmatch if name in ("user", "account", "partition", "qos", "cluster") else None


def assemble(
    data: bytes,
    bounds: Int64,
    count: Int64,
    odd: Bools,
    splitter: Splitter,
) -> Assembled:
    """Records from the lines of a block that are not plain.

    Parameters
    ----------
    data
        The block.
    bounds : int64[2, R]
        Start and end of its lines.
    count : int64[R]
        Separators on each.
    odd : bool[R]
        Lines that are not plain. Overwritten: lines that became a part of a record are added.
    splitter
    """
    return _Assembly(data, bounds, count, odd, splitter).run()


class _Assembly:
    def __init__(self, data: bytes, bounds: Int64, count: Int64, odd: Bools, splitter: Splitter) -> None:
        self.data, self.bounds, self.count, self.odd, self.splitter = data, bounds, count, odd, splitter
        self.found = Assembled()
        self.rows = np.flatnonzero(odd)
        self.known_starts: dict[int, bool] = {}

    def run(self) -> Assembled:
        done = -1
        for row in self.rows.tolist():
            if row > done:
                done = self._next(row)
        return self.found

    def _line(self, first: int, last: int | None = None) -> bytes:
        return self.data[self.bounds[0, first] : self.bounds[1, first if last is None else last]]

    def _starts(self, row: int) -> bool:
        if not self.odd[row]:
            return True
        if row not in self.known_starts:
            line = self._line(row)
            self.known_starts[row] = line == self.splitter.layout.header or self.splitter.starts(line)
        return self.known_starts[row]

    def _next(self, row: int) -> int:
        """Read the record that begins with a line; its last line."""
        line = self._line(row)
        if not line.strip():
            self.found.blank += 1
            return row
        if line == self.splitter.layout.header:
            self.found.headers.append(row)
            return row
        if not self._starts(row):
            return self._stray(row)
        after = self._after(row)
        enough = int(self.count[row]) >= self.splitter.layout.separators
        if after == row and enough:
            return self._take(row, row)
        if after > row:
            return self._continued(row, after, enough)
        return self._cut_short(row)

    def _after(self, row: int) -> int:
        """The last of the lines behind a line with which no record begins."""
        last = row
        while last + 1 < len(self.odd) and last - row < MOST_LINES and not self._starts(last + 1):
            last += 1
        while last > row and not self._line(last).strip():
            last -= 1
        return last

    def _continued(self, row: int, after: int, enough: bool) -> int:
        """A record behind which lines stand with which none begins: up to which of them it goes."""
        ends = [end for end in range(row, after + 1) if self.splitter.fits(self._line(row, end))]
        if not ends:
            return self._take(row, row if enough else after)
        if len(ends) == 1 or self.splitter.last_is_free:
            return self._take(row, ends[-1])
        return self._refuse(row, after, "has line breaks in its names and can be read in several ways")

    def _cut_short(self, row: int) -> int:
        """A line that ends too early, with a line behind it with which a record may begin."""
        later = self.rows[np.searchsorted(self.rows, row + 1) :]
        if len(later) and not self._starts(int(later[0])):
            after = self._after(int(later[0]))
            if after - row < MOST_LINES and self.splitter.fits(self._line(row, after)):
                return self._take(
                    row, after
                )  # whole lines in a name: what ends the record stands behind them
        if row + 1 < len(self.odd) and self.splitter.fits(self._line(row, row + 1)):
            if self.odd[row + 1] and self.splitter.split(self._line(row + 1))[1]:
                return self._take(row, row + 1)  # a name with a line that begins like a record, and is none
            rule = (
                "ends too early, and with the next line it would be one record with a line break in its name"
            )
            return self._refuse(row, row + 1, rule)
        return self._take(row, row)

    def _stray(self, row: int) -> int:
        """A line with which no record begins, behind a complete one."""
        if self.splitter.last_is_free and row and (not self.odd[row - 1] or self._ends_at(row - 1)):
            before = self.found.pieces.pop().first if self.odd[row - 1] else row - 1
            return self._take(before, self._after(row))
        return self._refuse(row, row, "must begin with a job id")

    def _ends_at(self, row: int) -> bool:
        return bool(self.found.pieces) and self.found.pieces[-1].last == row

    def _take(self, first: int, last: int) -> int:
        record = self._line(first, last)
        bounds, rule = self.splitter.split(record)
        return self._add(first, last, bounds, rule, record)

    def _refuse(self, first: int, last: int, rule: str) -> int:
        return self._add(first, last, [], rule, self._line(first, last))

    def _add(self, first: int, last: int, bounds: list[tuple[int, int]], rule: str, record: bytes) -> int:
        start = int(self.bounds[0, first])
        end = int(self.bounds[1, last])
        self.odd[first : last + 1] = True
        placed = [(start + a, start + b) for a, b in bounds]
        text = shorten(_decoded(record[:200])) if rule else ""
        self.found.pieces.append(Piece(first, last, start, end, placed, rule, text))
        return last


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
