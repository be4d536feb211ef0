"""Panels of the charts of claims: lines with intervals over a setting, and maps with a contour."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, safe_text, titles

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart

#: Colours (Okabe and Ito) and dashes of up to seven lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [10, 4], [1, 2])

Floats = npt.NDArray[np.float64]


def columns_of(table: "pd.DataFrame", line: str, x: str, y: str) -> Columns:
    """Columns ``line, x, mean, low, high, n`` of a table of means; infinite settings and missing means are left out."""
    found: Columns = {name: [] for name in ("line", "x", "mean", "low", "high", "n")}
    for row in table.to_dict("records"):
        mean = float(row[y])
        if not (math.isfinite(mean) and math.isfinite(row[x])):
            continue
        ends = [float(row[end]) if math.isfinite(row[end]) else mean for end in ("low", "high")]
        for name, value in zip(
            found, (safe_text(str(row[line]), 40), float(row[x]), mean, *ends, int(row["seeds"])), strict=True
        ):
            found[name].append(round(value, 4) if isinstance(value, float) else value)
    return found


def line_panel(
    data: str,
    lines: Sequence[str],
    title: str,
    x_title: str,
    width: int,
    *,
    scale_x: Spec | None = None,
    ticks: Sequence[float] = (),
    step: bool = False,
    zero: bool = True,
    extra: Sequence[Spec] = (),
    bounds: Sequence[float] | None = None,
) -> Spec:
    """A line per name over the data set `data`, bars for its intervals; `extra` layers lie above."""
    axis: dict[str, Any] = {"title": x_title, "titleLimit": width, "format": "~r", "labelOverlap": True}
    if ticks:
        axis["values"] = list(ticks)
    x = field("x", scale={"zero": False, "nice": False, "padding": 10, **(scale_x or {})}, axis=axis)
    scale_y: Spec = {"zero": zero, "nice": True}
    if bounds is not None:
        scale_y = {"domain": list(bounds), "nice": False}
    y = field("mean", title=None, scale=scale_y, axis={"tickCount": 5, "format": ",~r"})
    legend = {"title": None, "orient": "bottom", "symbolType": "stroke", "symbolSize": 400}
    n = len(lines)
    colours = {"domain": list(lines), "range": list(COLOURS[:n])}
    stroke = field("line", "nominal", scale=colours, legend=legend)
    dash = field("line", "nominal", scale={"domain": list(lines), "range": list(DASHES[:n])}, legend=legend)
    fill = field("line", "nominal", scale=colours, legend=None)
    tips = [
        field("line", "nominal", title=" "),
        field("x", title=x_title),
        *(field(name, title=name, format=",.4~g") for name in ("mean", "low", "high")),
        field("n", title="seeds"),
    ]
    line: Spec = {"type": "line", "strokeWidth": 2, "clip": True}
    if step:
        line["interpolate"] = "step-after"
    ends = {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "stroke": stroke}
    dots = {"type": "circle", "size": 26, "opacity": 1, "clip": True}
    return {
        "width": width,
        "height": 210,
        "title": titles.panel_title(title, width) | {"frame": "bounds"},
        "layer": [
            mark(data, line, {"x": x, "y": y, "stroke": stroke, "strokeDash": dash}),
            mark(data, {"type": "rule", "strokeWidth": 1.6, "clip": True}, ends),
            mark(data, dots, {"x": x, "y": y, "fill": fill, "tooltip": tips}),
            *extra,  # last: a layer without a legend would take it from those after it
        ],
    }


def rule(data: str, encoding: Spec, **look: Any) -> Spec:
    """A thin dotted line across a panel, at the values of a data set."""
    return mark(
        data,
        {"type": "rule", "style": "gp-bound", "strokeWidth": 1.2, "strokeDash": [3, 3], **look},
        encoding,
    )


def crossings(values: Floats, level: float) -> list[tuple[float, float, float, float]]:
    """Where a map crosses a level, as segments ``x, y, x2, y2`` in rows and columns (marching squares).

    `values` is float64[rows, columns]; y counts rows, x columns; between two neighbours a value changes evenly. Cells
    with a missing corner have no contour; where a level crosses all four sides, the mean of the corners decides.
    """
    found = []
    rows, columns = values.shape
    for r in range(rows - 1):
        for c in range(columns - 1):
            around = [(c, r), (c + 1, r), (c + 1, r + 1), (c, r + 1), (c, r)]
            at = [float(values[y, x]) for x, y in around]
            if not all(map(math.isfinite, at)):
                continue
            cuts = []
            for (one, two), (first, last) in zip(pairwise(around), pairwise(at), strict=True):
                if (first >= level) != (last >= level):
                    part = (level - first) / (last - first)
                    cuts.append((one[0] + part * (two[0] - one[0]), one[1] + part * (two[1] - one[1])))
            if len(cuts) == 4 and (sum(at[:4]) / 4 >= level) == (at[0] >= level):
                cuts = [cuts[0], cuts[1], cuts[2], cuts[3]]
            elif len(cuts) == 4:
                cuts = [cuts[3], cuts[0], cuts[1], cuts[2]]
            found += [(*cuts[k], *cuts[k + 1]) for k in range(0, len(cuts), 2)]
    return found


def map_panel(name: str, title: str, x_labels: Sequence[str], y_labels: Sequence[str], width: int) -> Spec:
    """Cells of data set `name` (``x, y, value, text, says``) as a map in per cent, with segments of ``<name>_line``."""
    x, y = _places("x", x_labels, "load"), _places("y", y_labels, "tasks in the burst")
    scale = {
        "domain": [-100, 0, 100],
        "range": ["#D55E00", "#F7F7F7", "#0072B2"],
        "type": "linear",
        "clamp": True,
    }
    size = {
        "width": {"expr": f"{width} / {len(x_labels)}"},
        "height": {"expr": f"{30 * len(y_labels)} / {len(y_labels)}"},
    }
    cell: Spec = {"type": "rect", "strokeWidth": 0, **size}
    ink = {"condition": {"test": "abs(datum.value) > 62", "value": "#FFFFFF"}, "value": "#111111"}
    tips = [field("says", "nominal", title="saved")]
    line: Spec = {"type": "rule", "stroke": "#111111", "strokeWidth": 3, "strokeCap": "round"}
    return {
        "width": width,
        "height": 30 * len(y_labels),
        "title": titles.panel_title(title, width),
        "layer": [
            mark(
                name,
                cell,
                {"x": x, "y": y, "fill": field("value", scale=scale, legend=None), "tooltip": tips},
            ),
            mark(
                name,
                {"type": "text", "fontSize": 11},
                {"x": x, "y": y, "text": field("text", "nominal"), "color": ink},
            ),
            mark(f"{name}_line", line, {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}}),
        ],
    }


def _places(column: str, labels: Sequence[str], title: str) -> Spec:
    """An axis of places 0, 1, ... that carry labels."""
    words = ", ".join(titles.literal(label) for label in labels)
    axis = {
        "title": title,
        "values": list(range(len(labels))),
        "labelExpr": f"[{words}][datum.value]",
        "grid": False,
        "ticks": False,
        "domain": False,
    }
    scale = {"domain": [-0.5, len(labels) - 0.5], "nice": False, "zero": False}
    return field(column, scale=scale, axis=axis)


def finished(
    panels: list[Spec],
    columns: int,
    title: str,
    notes: list[str],
    width: int,
    sets: dict[str, Columns],
    mode: theme.Mode,
    said: str,
    shared: bool = True,
) -> "OfflineChart":
    """Panels side by side under a title and a caption, with their data sets; `said`: the chart in words."""
    from gpuplan.gantt.offline import PICTURE_SCALE, offline_chart

    spec: Spec = {
        "usermeta": {PICTURE_SCALE: 1.0},  # a notebook holds five of them, in less than 500 kB
        "concat": panels,
        "columns": columns,
        "title": titles.head(title, notes, width),
        "params": theme.fill_params(),
    }
    if shared:
        spec["resolve"] = {"legend": {"stroke": "shared", "strokeDash": "shared", "fill": "shared"}}
    return offline_chart(spec, sets, mode, f"{title} {said}.")
