"""The data of a Gantt: dicts of columns that a live page patches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuplan.gantt.frame import Frame, safe_text
from gpuplan.rectangles import Bars

Columns = dict[str, list[Any]]

#: Least distance of two borders between nodes, in pixels.
_BORDER_PX = 14

#: A row lower than this (pixels) gets no text.
_TEXT_PX = 9


def bar_columns(bars: Bars, frame: Frame, names: Sequence[str]) -> Columns:
    """Columns of the bars, ready for the data set of a Gantt.

    Parameters
    ----------
    bars
        At most what `gpuplan.rectangles.thin` leaves.
    names
        Text that `bars.job` points into.

    Returns
    -------
    dict
        ``job, kind, x, x2`` (hours), ``y, y2, mid`` (rows), ``tall`` (1: room for text), and ``gpus, time``
        (text for tooltips).
    """
    high, low = bars.high.tolist(), bars.low.tolist()
    start, end = np.round(bars.start, 4).tolist(), np.round(bars.end, 4).tolist()
    clock = {hour: frame.clock(hour) for hour in {*start, *end}}
    safe = [safe_text(name) for name in names]
    tall = bars.labelled & ((bars.high - bars.low) * frame.px_per_gpu >= _TEXT_PX)
    kinds = bars.kinds
    middle = np.round((bars.low + bars.high) / 2 - 0.5, 4).tolist()
    return {
        "job": [safe[job] if job >= 0 else "" for job in bars.job.tolist()],
        "kind": [kinds[kind] for kind in bars.kind.tolist()],
        "x": start,
        "x2": end,
        "y": [first - 0.5 for first in low],
        "y2": [last - 0.5 for last in high],
        "mid": middle,
        "tall": tall.astype(np.int64).tolist(),
        "gpus": [
            f"{first}–{last - 1} ({last - first})" if last - first > 1 else f"{first} (1)"
            for first, last in zip(low, high, strict=True)
        ],
        "time": [f"{clock[first]}–{clock[last]}" for first, last in zip(start, end, strict=True)],
    }


def add_unmet(columns: Columns, frame: Frame, runs: Sequence[tuple[float, float, int]]) -> None:
    """Append the strip of unmet demand: runs of (from hour, to hour, GPUs unmet)."""
    top = round(-0.5 - frame.strip, 4)
    for first, last, unmet in runs:
        columns["job"].append(f"{unmet} unmet")
        columns["kind"].append("unmet")
        columns["x"].append(round(first, 4))
        columns["x2"].append(round(last, 4))
        columns["y"].append(top)
        columns["y2"].append(round(top + 0.85 * frame.strip, 4))
        columns["mid"].append(round(top + 0.42 * frame.strip, 4))
        columns["tall"].append(1)
        columns["gpus"].append(f"{unmet} wanted and not served")
        columns["time"].append(f"{frame.clock(first)}–{frame.clock(last)}")


def frame_columns(frame: Frame, title: str, note: str = "", empty: str = "") -> Columns:
    """One row that spans the frame, with its title, a note under it, and words for an empty picture."""
    return {
        "x": [0],
        "x2": [round(frame.hours, 4)],
        "y": [round(-0.5 - frame.strip, 4)],
        "y2": [frame.gpus - 0.5],
        "title": [title],
        "note": [note],
        "empty": [empty],
    }


def row_columns(frame: Frame) -> Columns:
    """Labels of GPU rows and borders of nodes, as many as are readable: ``y, label, border`` (-1: none)."""
    every = _row_step(frame)
    labelled = range(0, frame.gpus, every)
    nodes = frame.node_size
    # Close borders would be a grey mass: only every second (fourth, ...) node is drawn then.
    while nodes * frame.px_per_gpu < _BORDER_PX:
        nodes *= 2
    borders = range(nodes, frame.gpus, nodes)
    return {
        "y": [*labelled, *(border - 0.5 for border in borders)],
        "label": [*(str(gpu) for gpu in labelled), *("" for _ in borders)],
        "border": [*(0 for _ in labelled), *(1 for _ in borders)],
    }


def _row_step(frame: Frame) -> int:
    """GPUs between two labels: whole nodes where possible, at least 13 pixels apart."""
    least = 13 / frame.px_per_gpu
    if least <= 1:
        return 1
    node = frame.node_size if frame.node_size < frame.gpus else 1
    step = node
    while step < least:
        step *= 2
    halves = step
    while step == node and halves % 2 == 0 and halves // 2 >= least:
        halves //= 2
    return halves


def mark_columns(frame: Frame, rows: Sequence[tuple[bool, int, int, str]]) -> Columns:
    """Triangles of jobs that cross an edge of the frame: (whether the start, first GPU, GPUs, what it says)."""
    inset = 6 * frame.hours / frame.width
    # One triangle without size keeps the data set from being empty: Vega warns of scales without any data.
    return {
        "x": [0.0, *(round(inset if at_start else frame.hours - inset, 4) for at_start, *_ in rows)],
        "y": [0.0, *(first + (gpus - 1) / 2 for _, first, gpus, _ in rows)],
        "size": [0, *(round(min(60, max(6, (gpus * frame.px_per_gpu) ** 2))) for _, _, gpus, _ in rows)],
        "shape": ["circle", *("triangle-left" if at_start else "triangle-right" for at_start, *_ in rows)],
        "says": ["", *(says for *_, says in rows)],
    }
