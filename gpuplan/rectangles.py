"""Blocks of work as rectangles: merging cells of a grid, and drawing fewer where there are too many."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: More rectangles than this in one Gantt are merged: a chart stays below half a megabyte.
MAX_BARS = 1000


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
        return Bars(
            np.concatenate((self.low, other.low)),
            np.concatenate((self.high, other.high)),
            np.concatenate((self.start, other.start)),
            np.concatenate((self.end, other.end)),
            np.concatenate((self.job, other.job)),
            np.concatenate((self.kind, other.kind)),
            np.concatenate((self.labelled, other.labelled)),
            self.kinds,
        )


def rectangles(grid: NDArray[np.integer]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Cut the cells of a grid that are not negative into rectangles of equal code.

    Cells are joined along time first and runs of equal start, end and code on neighbouring rows second, or
    the other way round, whichever gives fewer rectangles.

    Parameters
    ----------
    grid
        Codes, integer[G, T]; negative cells are left out.

    Returns
    -------
    tuple
        ``low, high`` (rows, high exclusive), ``start, end`` (columns, end exclusive), ``code``: int64[n].
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
        (row[1:] == row[:-1] + 1)
        & (start[1:] == start[:-1])
        & (end[1:] == end[:-1])
        & (code[1:] == code[:-1])
    )
    heads = np.flatnonzero(first)
    tails = np.append(heads[1:], len(row)) - 1 if len(row) else heads
    return row[heads], row[tails] + 1, start[heads], end[heads], code[heads]


def thin(bars: Bars, gpus: int, hours: float, limit: int = MAX_BARS) -> tuple[Bars, str]:
    """Fewer bars where there are more than `limit`, and a sentence on how (empty where nothing changed).

    The largest keep a bar of their own; the rest are drawn as blocks of their kind on a coarse raster. A block
    is drawn wherever at least one GPU is busy, so no peak is lost, and no figure is taken from blocks.

    Parameters
    ----------
    bars
        Rectangles within `gpus` rows and `hours` hours.
    gpus, hours
        Size of the frame.
    limit
        Most rectangles that may be returned.
    """
    if len(bars) <= limit:
        return bars, ""
    size = (bars.high - bars.low) * (bars.end - bars.start)
    own = np.zeros(len(bars), dtype=bool)
    own[np.argsort(-size, kind="stable")[: limit // 2]] = True
    rest = bars.take(~own)
    rows_each, columns = -(-gpus // 128), 192
    blocks = _blocks(rest, gpus, hours, rows_each, columns)
    while len(blocks) > limit - limit // 2:
        rows_each, columns = 2 * rows_each, max(1, columns // 2)
        blocks = _blocks(rest, gpus, hours, rows_each, columns)
    note = (
        f"{len(bars):,} bars: the {limit // 2:,} largest drawn singly, {len(rest):,} smaller ones merged by kind "
        f"in blocks of {rows_each} GPUs × {hours / columns:.2g} h wherever one is busy"
    )
    return blocks.joined(bars.take(own)), note


def _blocks(bars: Bars, gpus: int, hours: float, rows_each: int, columns: int) -> Bars:
    """Bars of kinds only, on a raster; where kinds meet in a cell, the one with most bars shows."""
    rows = -(-gpus // rows_each)
    first_row, last_row = bars.low // rows_each, -(-bars.high // rows_each)
    first_column = np.floor(bars.start * columns / hours + 1e-9).astype(np.int64).clip(0, columns - 1)
    last_column = np.ceil(bars.end * columns / hours - 1e-9).astype(np.int64).clip(first_column + 1, columns)
    cover = np.zeros((len(bars.kinds), rows + 1, columns + 1), dtype=np.int64)
    # The corners of every rectangle, then two running sums: bars over each cell, without a loop over bars.
    for row, column, sign in (
        (first_row, first_column, 1),
        (last_row, first_column, -1),
        (first_row, last_column, -1),
        (last_row, last_column, 1),
    ):
        np.add.at(cover, (bars.kind, row, column), sign)
    cover = cover.cumsum(axis=1).cumsum(axis=2)[:, :rows, :columns]
    low, high, start, end, code = rectangles(np.where(cover.max(axis=0) > 0, cover.argmax(axis=0), -1))
    return Bars(
        low=low * rows_each,
        high=np.minimum(high * rows_each, gpus),
        start=start.astype(np.float64) * (hours / columns),
        end=end.astype(np.float64) * (hours / columns),
        job=np.full(len(low), -1, dtype=np.int64),
        kind=code,
        labelled=np.zeros(len(low), dtype=bool),
        kinds=bars.kinds,
    )
