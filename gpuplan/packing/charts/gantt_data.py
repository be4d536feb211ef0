"""The data of a Gantt of tasks: a bar per stage where they can be told apart, else exact means per cell."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.gantt import Columns
from gpuplan.packing.charts.clock import Clock, bin_of, edges_of, words
from gpuplan.packing.charts.colours import Palette
from gpuplan.packing.charts.memory_data import binned_spans, panels_of
from gpuplan.packing.model import SECOND, Floats, Int64
from gpuplan.packing.raw import LOAD, OUT_OF_MEMORY, PREEMPTED, RESTORE
from gpuplan.packing.spread import gpus_of_stage, stages_on
from gpuplan.packing.words import on_gpus, seconds

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun

#: More bars or lanes than this are drawn as means per cell.
MAX_BARS, MAX_LANES = 2500, 120

#: Rows of cells at most, bins of time from fine to coarse; the first with at most `MAX_CELLS` rectangles is drawn.
_ROWS, _BINS = 16, (120, 80, 50, 30, 14, 7)
MAX_CELLS = 5000

#: Marks of failures at most.
_MARKS = 300

#: Stages by their code, in words, and how they ended.
_STAGES = ("load", "run", "save", "restore")
_ENDED = ("", ", preempted", ", failed: out of memory", ", cut by the end of the run")

#: Stages from the bottom of a cell upwards: run, load, save, restore.
_STACK = np.array([1, 0, 2, 3])


@dataclass(frozen=True, slots=True)
class Picture:
    """What a Gantt draws.

    Attributes
    ----------
    bars
        ``model, stage, x, x2, y, y2``, and of single bars ``task, says`` (where tasks are on several GPUs also
        ``joined``: 1 for the bars at which they are joined); of cells ``tasks`` (their mean number).
    failures
        ``x, y, says``.
    joins
        Stays on several GPUs: ``x, y, y2, model, task``, a row per GPU, from the middle of its bar to that of the next.
    rows
        First and last GPU of each row.
    lanes
        Height of a row: tasks at once; 1 where rows are cells.
    note
        How stages became bars: said below the title.
    single
        Whether every bar is a stage of one task.
    """

    bars: Columns
    failures: Columns
    joins: Columns
    rows: tuple[tuple[int, int], ...]
    lanes: int
    note: str
    single: bool


def picture(
    run: "PackRun", palette: Palette, clock: Clock, *, most: int = MAX_BARS, cells: int = MAX_CELLS
) -> Picture:
    """Bars of a run, or at most `cells` cells (if that can be) where more than `most` bars would be needed."""
    rows = run.raw.stages
    lasting = rows.end_us > rows.start_us
    said = f"{len(np.unique(rows.task)):,} tasks in {int(lasting.sum()):,} stages"
    failed, preempted = (int((rows.outcome == kind).sum()) for kind in (OUT_OF_MEMORY, PREEMPTED))
    if preempted:
        said += f", {preempted:,} preemptions"
    if failed:
        said += f", {failed:,} failures for memory"
    count = run.scenario.gpus.count
    if int(lasting.sum()) <= most:
        first, last = visits(run)
        lane, lanes = lanes_of(run, first, last)
        if lanes * count <= MAX_LANES:
            shown = tuple((g, g) for g in range(count))
            bars = _bars(run, palette, clock, first, lane, lanes)
            joins = _joins(run, palette, clock, first, lane, lanes)
            note = f"{said}; the lowest free lane of a GPU"
            if joins["x"]:
                note += "; joined: one task on several GPUs"
            return Picture(bars, _failures(run, clock, first, lane, lanes), joins, shown, lanes, note, True)
    return _cells(run, palette, clock, cells, said)


def visits(run: "PackRun") -> tuple[Int64, Int64]:
    """The stay on a GPU that each stage belongs to, as the row of its first stage, and when that stay ends.

    A stay begins with a load or a restore and goes on until the task leaves the GPU: int64[S] each.
    """
    rows = run.raw.stages
    n = len(rows)
    order = np.lexsort((np.arange(n), rows.task))
    begins = np.isin(rows.kind[order], (LOAD, RESTORE))
    stay = np.cumsum(begins) - 1
    heads = order[begins]
    end = np.zeros(len(heads), np.int64)
    np.maximum.at(end, stay, rows.end_us[order])
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    first[order] = heads[stay]
    last[order] = end[stay]
    return first, last


def lanes_of(run: "PackRun", first: Int64, last: Int64) -> tuple[Int64, int]:
    """Lane of each stay (by the row of its first stage) and the most lanes; where they are too many, only that.

    It is the lowest one that is free on all of its GPUs, so that a task over several is as high on each of them.
    """
    rows = run.raw.stages
    lane = np.zeros(len(rows), np.int64)
    stays = np.flatnonzero((first == np.arange(len(rows))) & (last > rows.start_us))
    until: list[list[int]] = [[] for _ in range(run.scenario.gpus.count)]
    for k in stays[np.argsort(rows.start_us[stays], kind="stable")].tolist():
        gpus, start, mine = gpus_of_stage(run.raw, k), int(rows.start_us[k]), 0
        while any(mine < len(until[g]) and until[g][mine] > start for g in gpus):
            mine += 1
        if mine >= MAX_LANES:
            return lane, mine + 1
        for g in gpus:
            until[g] += [0] * (mine + 1 - len(until[g]))
            until[g][mine] = int(last[k])
        lane[k] = mine
    return lane, max(1, *map(len, until))


def _joins(run: "PackRun", palette: Palette, clock: Clock, first: Int64, lane: Int64, lanes: int) -> Columns:
    """A row per stay on several GPUs and GPU: where its bar begins, its middle, and that of its bar on the next GPU."""
    rows = run.raw.stages
    stage, gpu = stages_on(run.raw)
    begins = (first[stage] == stage) & (np.bincount(stage, minlength=len(rows))[stage] > 1)
    stage, gpu = stage[begins], gpu[begins]
    y = gpu * lanes + lane[stage] + 0.5
    last = np.append(stage[1:] != stage[:-1], True)[: len(stage)]
    y2 = np.where(last, y, np.append(y[1:], 0.0)[: len(y)])
    group = palette.group[run.problem.tasks.model[rows.task[stage]]]
    return {
        "model": [palette.labels[g] for g in group.tolist()],
        "task": rows.task[stage].tolist(),
        "x": clock.of(rows.start_us[stage]),
        "y": y.tolist(),
        "y2": y2.tolist(),
    }


def _bars(run: "PackRun", palette: Palette, clock: Clock, first: Int64, lane: Int64, lanes: int) -> Columns:
    """A bar per stage that takes time."""
    rows, names = run.raw.stages, run.model_names
    some, gpu = stages_on(run.raw)
    lasting = (rows.end_us > rows.start_us)[some]
    some, gpu = some[lasting], gpu[lasting]
    y = gpu * lanes + lane[first[some]]
    where = {
        int(s): f" on {on_gpus(gpus_of_stage(run.raw, int(s)))}" for s in some[1:][some[1:] == some[:-1]]
    }
    task, kind, outcome = rows.task[some], rows.kind[some], rows.outcome[some]
    group = palette.group[run.problem.tasks.model[task]]
    priority = run.problem.tasks.priority[task]
    shared = np.bincount(palette.group, minlength=len(palette)) > 1
    says = []
    for s, k, g, j, a, b, o, p in zip(
        some.tolist(), kind.tolist(), group.tolist(), task.tolist(), rows.start_us[some].tolist(),
        rows.end_us[some].tolist(), outcome.tolist(), priority.tolist(), strict=True,
    ):  # fmt: skip
        of = f" of {names[run.problem.tasks.model[j]]!s:.60}" if shared[g] else ""
        says.append(
            f"{_STAGES[k]}{of}{where.get(s, '')}, {seconds(a)} to {seconds(b)}{_ENDED[o]}; priority {p}"
        )
    return {
        "model": [palette.labels[g] for g in group.tolist()],
        "stage": kind.tolist(),
        "x": clock.of(rows.start_us[some]),
        "x2": clock.of(rows.end_us[some]),
        "y": y.tolist(),
        "y2": (y + 1).tolist(),
        "task": task.tolist(),
        "says": says,
        "ink": [palette.inks[g] for g in group.tolist()],
        **({"joined": [int(s in where and first[s] == s) for s in some.tolist()]} if where else {}),
    }


def _failures(run: "PackRun", clock: Clock, first: Int64, lane: Int64, lanes: int) -> Columns:
    """A cross where a stage ended for memory, on the GPU whose memory it was."""
    rows = run.raw.stages
    some = np.flatnonzero(rows.outcome == OUT_OF_MEMORY)[:_MARKS]
    gpu = np.array([_short_of(run, int(s)) for s in some], np.int64)
    y = gpu * lanes + lane[first[some]] + 0.5
    says = [
        f"task {j} failed after {seconds(t)}: out of memory during {_STAGES[k]}"
        for j, t, k in zip(
            rows.task[some].tolist(), rows.end_us[some].tolist(), rows.kind[some].tolist(), strict=True
        )
    ]
    return {"x": clock.of(rows.end_us[some]), "y": y.tolist(), "says": says}


def _short_of(run: "PackRun", stage: int) -> int:
    """The GPU whose memory ran out for a stage: that of the event of its task, or of the load of its model."""
    rows, events = run.raw.stages, run.raw.breaches
    gpus = gpus_of_stage(run.raw, stage)
    if len(gpus) == 1:
        return gpus[0]
    task = int(rows.task[stage])
    mine = (events.time_us == rows.end_us[stage]) & np.isin(events.gpu, gpus)
    mine &= (events.task == task) | ((events.task < 0) & (events.model == run.problem.tasks.model[task]))
    found = events.gpu[mine]
    return int(found[0]) if len(found) else gpus[0]


def _cells(run: "PackRun", palette: Palette, clock: Clock, most: int, said: str) -> Picture:
    """Mean numbers of tasks per row of GPUs, bin, model and stage."""
    shown = panels_of(run.scenario.gpus.count, _ROWS)
    bars: Columns = {}
    bin_us, height = 0, 1.0
    for bins in _BINS:
        bin_us = bin_of(run.raw.end_us, bins)
        edges = edges_of(run.raw.end_us, bin_us)
        amounts = cell_means(run, palette, edges, shown)
        height = max(1.0, float(amounts.sum(axis=1).max(initial=0)))
        bars = _stacked(amounts, edges, clock, palette, height)
        if len(bars["x"]) <= most:
            break
    gpus = "a GPU" if shown[0][0] == shown[0][1] else f"{shown[0][1] + 1} GPUs"
    note = (
        f"{said}: too many to draw singly, so areas are mean numbers of tasks on {gpus} over {words(bin_us / SECOND)} "
        f"(running below, then loading, saving, restoring; a row is {height:.3g} tasks high)"
    )
    joins: Columns = {"model": [], "task": [], "x": [], "y": [], "y2": []}
    return Picture(bars, _failure_cells(run, edges, clock, shown), joins, tuple(shown), 1, note, False)


def cell_means(run: "PackRun", palette: Palette, edges: Int64, shown: list[tuple[int, int]]) -> Floats:
    """Mean number of tasks over bins: float64[rows, 4 x groups, B]; slices go by stage (see `_STACK`), then model.

    A task over several GPUs counts on each of them.
    """
    rows, n_rows, groups = run.raw.stages, len(shown), len(palette)
    row_of = np.zeros(run.scenario.gpus.count, np.int64)
    for number, (low, high) in enumerate(shown):
        row_of[low : high + 1] = number
    place = np.empty(4, np.int64)
    place[_STACK] = np.arange(4)
    stage, gpu = stages_on(run.raw)
    group = palette.group[run.problem.tasks.model[rows.task[stage]]]
    code = (row_of[gpu] * 4 + place[rows.kind[stage]]) * groups + group
    one = np.ones(len(stage))
    found = binned_spans(rows.start_us[stage], rows.end_us[stage], one, code, n_rows * 4 * groups, edges)
    return found.reshape(n_rows, 4 * groups, -1)


def _stacked(amounts: Floats, edges: Int64, clock: Clock, palette: Palette, height: float) -> Columns:
    """Cells stacked from the bottom of their row, each row 1 high, in units of its height."""
    groups = len(palette)
    above = np.concatenate((np.zeros_like(amounts[:, :1]), amounts.cumsum(axis=1)), axis=1) / height
    row, piece, column = np.nonzero(amounts > 1e-9)
    group = piece % groups
    low, high = row + 1 - above[row, piece + 1, column], row + 1 - above[row, piece, column]
    columns: dict[str, Any] = {
        "model": [palette.labels[g] for g in group.tolist()],
        "stage": _STACK[piece // groups].tolist(),
        "x": clock.of(edges[column]),
        "x2": clock.of(edges[column + 1]),
        "y": np.round(low, 4).tolist(),
        "y2": np.round(high, 4).tolist(),
        "tasks": np.round(amounts[row, piece, column], 3).tolist(),
    }
    return columns


def _failure_cells(run: "PackRun", edges: Int64, clock: Clock, shown: list[tuple[int, int]]) -> Columns:
    """A cross per row of GPUs and bin in which something failed."""
    events = run.raw.breaches
    columns: Columns = {"x": [], "y": [], "says": []}
    for number, (low, high) in enumerate(shown):
        mine = (events.gpu >= low) & (events.gpu <= high)
        at = np.minimum(np.searchsorted(edges, events.time_us[mine], "right") - 1, len(edges) - 2)
        which, counts = np.unique(at, return_counts=True)
        columns["x"] += clock.of((edges[which] + edges[which + 1]) // 2)
        columns["y"] += [number + 0.08] * len(which)
        columns["says"] += [f"{n:,} times out of memory" for n in counts.tolist()]
    return columns
