"""The data of a Gantt of a run: a bar per stretch where they can be told apart, else exact means per cell."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.fairshare.charts.clock import Clock, edges_of, length_of, words
from gpuplan.fairshare.charts.colours import Palette
from gpuplan.fairshare.charts.lanes import (
    IN_REPAIR,
    PAST_MINIMUM,
    PROTECTED,
    UNALLOCATED,
    first_rows,
    interrupts,
    lanes,
    protected_ends,
    repairs,
)
from gpuplan.fairshare.hours import integrals
from gpuplan.fairshare.model import Int64
from gpuplan.fairshare.raw import OUTCOMES, PREEMPTED, SHUT_DOWN
from gpuplan.gantt import Columns, safe_text

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run

#: More bars than this are drawn as means per cell.
MAX_BARS = 2000

#: Words of the states, also the entries of the legend.
STATE_WORDS = (
    "full colour: protected",
    "a line: past its minimum",
    "pale, two lines: unallocated",
    "node in repair",
)

#: Rows of nodes (0: a row per pool) and bins of cells, from fine to coarse; the first with at most `MAX_CELLS`
#: rectangles is drawn.
_RASTERS = ((64, 90), (32, 90), (16, 90), (16, 62), (0, 168), (0, 90), (0, 45), (0, 14))
MAX_CELLS = 6000


@dataclass(frozen=True, slots=True)
class Picture:
    """What a Gantt draws.

    Attributes
    ----------
    bars
        ``team, state, x, x2, y, y2, mid, job, gpus, time, says, cut`` (1: interrupted at its end, 2: by hand).
    note
        How stretches became bars: said below the title.
    single
        Whether every bar is a stretch of one job.
    by_pool
        Whether the rows are pools, their GPUs counted from below.
    """

    bars: Columns
    note: str
    single: bool
    by_pool: bool = False


def picture(
    run: "Run", palette: Palette, clock: Clock, *, most: int = MAX_BARS, cells: int = MAX_CELLS
) -> Picture:
    """Bars of a run, or at most `cells` cells (if that can be) where more than `most` bars would be needed."""
    stretches = run.raw.stretches
    preempted, by_hand = (int((stretches.outcome == kind).sum()) for kind in (PREEMPTED, SHUT_DOWN))
    n_jobs = len(np.unique(stretches.job))
    said = f"{n_jobs:,} jobs in {len(stretches):,} stretches"
    if preempted:
        said += f", {preempted:,} preempted"
    if by_hand:
        said += f", {by_hand:,} shut down by hand"
    if len(stretches.place_stretch) <= most:
        bars = _bars(run, palette, clock)
        if len(bars["x"]) <= most:
            if preempted or by_hand:
                said += " (an edge at their end" + ("; dashed: by hand)" if by_hand else ")")
            return Picture(bars, said + "; on the lowest free GPUs of a node", True)
    bars, rows, length = _cells(run, palette, clock, cells)
    nodes = len(run.problem.node_gpus)
    over = words(length)
    if rows == 0:
        pool = "the cluster" if run.problem.node_pool[-1] == 0 else "a pool"
        how = f"exact means of {pool} over {over}: protected work below, unallocated work on top"
    else:
        each = -(-nodes // rows)
        how = f"exact means of {'a node' if each == 1 else f'{each} nodes'} over {over}"
    return Picture(bars, f"{said}: too many to draw singly, so areas are {how}", False, by_pool=rows == 0)


def _bars(run: "Run", palette: Palette, clock: Clock) -> Columns:
    """A bar per stretch and run of rows, cut in two where the minimum run time ends; repairs after them."""
    problem, stretches = run.problem, run.raw.stretches
    stretch, low, high = lanes(run)
    turn = protected_ends(run) if interrupts(run) else stretches.end_s
    start, end = stretches.start_s[stretch], stretches.end_s[stretch]
    split = turn[stretch]
    first, second = start < split, split < end
    state = np.concatenate(
        (
            np.full(int(first.sum()), PROTECTED),
            np.where(stretches.allocated[stretch[second]], PAST_MINIMUM, UNALLOCATED),
        )
    )
    row = np.concatenate((np.flatnonzero(first), np.flatnonzero(second)))
    begins = np.concatenate((start[first], split[second]))
    ends = np.concatenate((split[first], end[second]))
    order = np.lexsort((low[row], begins, stretch[row]))
    row, state, begins, ends = row[order], state[order], begins[order], ends[order]
    of = stretch[row]
    outcome = stretches.outcome[of]
    cut = np.where(
        ends < stretches.end_s[of], 0, np.where(outcome == PREEMPTED, 1, np.where(outcome == SHUT_DOWN, 2, 0))
    )
    job = stretches.job[of]
    group = palette.group[problem.team[job]]
    names = [safe_text(str(name), 80) for name in problem.jobs.name[job].tolist()]
    columns: Columns = {
        "team": [palette.labels[g] for g in group.tolist()],
        "state": state.tolist(),
        "x": clock.of(begins),
        "x2": clock.of(ends),
        "y": low[row].tolist(),
        "y2": high[row].tolist(),
        "job": names,
        "gpus": problem.jobs.gpus[job].tolist(),
        "says": [
            f"{words(a)} to {words(b)}; {OUTCOMES[o]}"
            for a, b, o in zip(
                stretches.start_s[of].tolist(), stretches.end_s[of].tolist(), outcome.tolist(), strict=True
            )
        ],
        "cut": cut.tolist(),
        "ink": [palette.inks[g] for g in group.tolist()],
    }
    _add_repairs(columns, run, clock)
    return columns


def _add_repairs(columns: Columns, run: "Run", clock: Clock) -> None:
    rows = first_rows(run.problem.node_gpus).tolist()
    for node, start, end in repairs(run).tolist():
        entry: dict[str, Any] = {
            "team": STATE_WORDS[IN_REPAIR],
            "state": IN_REPAIR,
            "x": round(start / clock.unit_s, 5),
            "x2": round(end / clock.unit_s, 5),
            "y": rows[node],
            "y2": rows[node + 1],
            "job": "repair",
            "gpus": rows[node + 1] - rows[node],
            "says": f"node {node}, {words(start)} to {words(end)}",
            "cut": 0,
            "ink": "#111111",
        }
        for name, values in columns.items():
            values.append(entry[name])


def _cells(run: "Run", palette: Palette, clock: Clock, cells: int) -> tuple[Columns, int, int]:
    """Cells of a raster: (columns, rows of nodes or 0 for pools, seconds of a bin)."""
    for rows, most in _RASTERS:
        if rows and (len(run.problem.node_gpus) == 1 or rows > 2 * len(run.problem.node_gpus)):
            continue
        edges = edges_of(run.raw.end_s, most)
        row_of = rows_of_nodes(run, rows)
        amounts, heights = cell_seconds(run, palette, edges, row_of)
        group, state, first, last, low, high = _stacked(amounts, heights, edges, len(palette))
        if len(group) <= cells:
            break
    labels = [
        STATE_WORDS[s] if s == IN_REPAIR else palette.labels[g]
        for g, s in zip(group.tolist(), state.tolist(), strict=True)
    ]
    columns: Columns = {
        "team": labels,
        "state": state.tolist(),
        "x": clock.of(edges[first]),
        "x2": clock.of(edges[last]),
        "y": np.round(low, 3).tolist(),
        "y2": np.round(high, 3).tolist(),
        "gpus": np.round(high - low, 3).tolist(),
    }
    return columns, len(heights) if rows else 0, length_of(edges)


def rows_of_nodes(run: "Run", rows: int) -> Int64:
    """Row that each node is drawn in: neighbours together in at most so many rows, or (0) all of a pool."""
    if rows == 0:
        return run.problem.node_pool
    nodes = len(run.problem.node_gpus)
    return np.arange(nodes, dtype=np.int64) // -(-nodes // min(rows, nodes))


def cell_seconds(run: "Run", palette: Palette, edges: Int64, row_of: Int64) -> tuple[Int64, Int64]:
    """GPU-seconds of every cell, exact, and the GPUs of each row of cells.

    Parameters
    ----------
    run, palette
    edges
        Of bins, from 0 to the end of the run.
    row_of : int64[N]
        Row of each node.

    Returns
    -------
    tuple
        ``amounts`` int64[rows, 3 x groups + 1, B] (groups protected, groups past their minimum, groups
        unallocated, repairs), and ``heights`` int64[rows].
    """
    problem, stretches = run.problem, run.raw.stretches
    rows, groups = int(row_of[-1]) + 1, len(palette)
    slices = 3 * groups + 1
    of = stretches.place_stretch
    code = row_of[stretches.place_node] * slices + palette.group[problem.team[stretches.job[of]]]
    turn = protected_ends(run) if interrupts(run) else stretches.end_s
    later = np.where(stretches.allocated[of], PAST_MINIMUM, UNALLOCATED) * groups
    gone = repairs(run)
    parts = [
        (stretches.start_s[of], turn[of], stretches.place_gpus, code),
        (turn[of], stretches.end_s[of], stretches.place_gpus, code + later),
        (gone[:, 1], gone[:, 2], problem.node_gpus[gone[:, 0]], (row_of[gone[:, 0]] + 1) * slices - 1),
    ]
    start, end, gpus, group = (np.concatenate(column) for column in zip(*parts, strict=True))
    lasting = end > start
    start, end, gpus, group = start[lasting], end[lasting], gpus[lasting], group[lasting]
    found = integrals(start, end, gpus, group, rows * slices, int(edges[-1]), length_of(edges))
    heights = np.bincount(row_of, weights=problem.node_gpus, minlength=rows)
    return found.reshape(rows, slices, -1), heights.astype(np.int64)


def _stacked(amounts: Int64, heights: Int64, edges: Int64, groups: int) -> tuple[Any, ...]:
    """Slices of cells stacked from the bottom of their row, equal neighbours in time joined.

    Returns
    -------
    tuple
        ``group, state, first, last`` (bins, last exclusive), ``low, high`` (GPUs from the top).
    """
    rows, slices, _ = amounts.shape
    mean = amounts / np.diff(edges)
    above = np.concatenate((np.zeros_like(mean[:, :1]), mean.cumsum(axis=1)), axis=1)
    foot = np.cumsum(heights)[:, None, None]
    low, high = foot - above[:, 1:], foot - above[:, :-1]
    shown = amounts > 0
    same = np.zeros_like(shown)
    same[:, :, 1:] = shown[:, :, 1:] & shown[:, :, :-1]
    same[:, :, 1:] &= (low[:, :, 1:] == low[:, :, :-1]) & (high[:, :, 1:] == high[:, :, :-1])
    row, piece, first = np.nonzero(shown & ~same)
    ends = np.concatenate((same[:, :, 1:], np.zeros((rows, slices, 1), bool)), axis=2)
    last = np.nonzero(shown & ~ends)[2]
    at = (row, piece, first)
    return piece % groups, piece // groups, first, last + 1, low[at], high[at]
