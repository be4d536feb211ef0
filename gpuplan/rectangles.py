"""Blocks of work as rectangles: merging cells of a grid, and drawing fewer where there are too many."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: More rectangles than this in one Gantt are merged: a chart stays below half a megabyte.
MAX_BARS = 1500


@dataclass(frozen=True, slots=True)
class Bars:
    """Rectangles of a Gantt as columns of equal length n.

    Parameters
    ----------
    low, high
        First GPU, and the one after the last; int64[n].
    start, end
        Hours; float64[n].
    job
        Position in the caller's list of names, -1 for none; int64[n].
    kind
        Position in `kinds`; int64[n].
    labelled
        Whether its name may be written into it; bool[n].
    kinds
        Names of the kinds (keys of `gpuplan.theme.KIND_COLOURS`).
    """

    low: Ints
    high: Ints
    start: Floats
    end: Floats
    job: Ints
    kind: Ints
    labelled: NDArray[np.bool_]
    kinds: tuple[str, ...]

    def __len__(self) -> int:
        """Number of rectangles."""
        return len(self.low)

    def take(self, where: NDArray[np.bool_] | Ints) -> "Bars":
        """Bars at some positions."""
        return Bars(
            self.low[where],
            self.high[where],
            self.start[where],
            self.end[where],
            self.job[where],
            self.kind[where],
            self.labelled[where],
            self.kinds,
        )

    def joined(self, other: "Bars") -> "Bars":
        """These bars followed by others of the same kinds."""
        columns = ("low", "high", "start", "end", "job", "kind", "labelled")
        return Bars(*(np.concatenate((getattr(self, name), getattr(other, name))) for name in columns), self.kinds)


def rectangles(grid: NDArray[np.integer]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Cut the cells of a grid that are not negative into rectangles of equal code.

    Cells are joined along time first and runs of equal start, end and code on neighbouring rows second, or the
    other way round, whichever gives fewer rectangles.

    Parameters
    ----------
    grid
        Codes, integer[G, T]; negative cells are left out.

    Returns
    -------
    tuple
        ``low, high`` (rows, high exclusive), ``start, end`` (columns, end exclusive) and ``code``, each int64[n].
    """
    along = _runs_merged(grid)
    across = _runs_merged(np.ascontiguousarray(grid.T))
    if len(across[0]) < len(along[0]):
        start, end, low, high, code = across
        return low, high, start, end, code
    return along


def _runs_merged(grid: NDArray[np.integer]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Runs along a row, then equal runs of neighbouring rows merged: (low, high, start, end, code)."""
    rows, columns = grid.shape
    change = np.ones((rows, columns + 1), dtype=bool)
    change[:, 1:columns] = grid[:, 1:] != grid[:, :-1]
    row, edge = np.nonzero(change)
    inside = np.flatnonzero(row[1:] == row[:-1])
    row, start, end = row[inside], edge[inside], edge[inside + 1]
    code = grid[row, start].astype(np.int64)
    kept = np.flatnonzero(code >= 0)
    row, start, end, code = row[kept], start[kept], end[kept], code[kept]
    order = np.lexsort((row, end, start, code))
    row, start, end, code = row[order], start[order], end[order], code[order]
    first = np.ones(len(row), dtype=bool)
    first[1:] = ~(
        (row[1:] == row[:-1] + 1) & (start[1:] == start[:-1]) & (end[1:] == end[:-1]) & (code[1:] == code[:-1])
    )
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(row)) - 1 if len(row) else heads
    return row[heads], row[tails] + 1, start[heads], end[heads], code[heads]


def thin(bars: Bars, gpus: int, hours: float, limit: int = MAX_BARS) -> tuple[Bars, str]:
    """Fewer bars where there are more than `limit`, and a sentence on how (empty where nothing changed).

    The largest keep their own bar; the rest are drawn as blocks of their kind on a coarse raster. A block is drawn
    wherever at least one GPU is busy, so no peak is lost; nobody's figures are taken from these blocks.
    """
    if len(bars) <= limit:
        return bars, ""
    size = (bars.high - bars.low) * (bars.end - bars.start)
    order = np.argsort(-size, kind="stable")
    own = np.zeros(len(bars), dtype=bool)
    own[order[: limit // 2]] = True
    rest = bars.take(~own)
    rows, columns = min(gpus, 128), 192
    while True:
        blocks = _blocks(rest, gpus, hours, rows, columns)
        if len(blocks) <= limit - limit // 2:
            break
        rows, columns = max(1, rows // 2), max(1, columns // 2)
    note = (
        f"{len(bars):,} bars: the {limit // 2:,} largest drawn one by one, {len(rest):,} smaller ones merged by kind "
        f"into blocks of {gpus / rows:.3g} GPUs × {hours / columns:.2g} h, drawn where any GPU is busy"
    )
    return bars.take(own).joined(blocks), note


def _blocks(bars: Bars, gpus: int, hours: float, rows: int, columns: int) -> Bars:
    """Bars of kinds only, on a raster of rows × columns; where kinds meet in a cell the one with most GPU-hours shows."""
    first_row = np.floor(bars.low * rows / gpus).astype(np.int64)
    last_row = np.ceil(bars.high * rows / gpus).astype(np.int64)
    first_column = np.clip(np.floor(bars.start * columns / hours + 1e-9).astype(np.int64), 0, columns - 1)
    last_column = np.clip(np.ceil(bars.end * columns / hours - 1e-9).astype(np.int64), first_column + 1, columns)
    weight = np.zeros((len(bars.kinds), rows + 1, columns + 1))
    # Corners of every rectangle, then two running sums: the count of bars over each cell, without a loop over bars.
    for row, column, sign in (
        (first_row, first_column, 1.0),
        (last_row, first_column, -1.0),
        (first_row, last_column, -1.0),
        (last_row, last_column, 1.0),
    ):
        np.add.at(weight, (bars.kind, row, column), sign)
    cover = weight.cumsum(axis=1).cumsum(axis=2)[:, :rows, :columns]
    cells = np.where(cover.max(axis=0) > 0.5, cover.argmax(axis=0), -1)
    low, high, start, end, code = rectangles(cells)
    return Bars(
        low=np.floor(low * gpus / rows).astype(np.int64),
        high=np.ceil(high * gpus / rows).astype(np.int64),
        start=start * hours / columns,
        end=end * hours / columns,
        job=np.full(len(low), -1, dtype=np.int64),
        kind=code,
        labelled=np.zeros(len(low), dtype=bool),
        kinds=bars.kinds,
    )
