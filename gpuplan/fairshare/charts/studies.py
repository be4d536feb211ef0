"""Figures over a setting, with intervals over seeds: charts of open questions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts.waits import policy_scale
from gpuplan.gantt import Columns, Spec, field, mark, safe_text, titles
from gpuplan.intervals import interval as mean_interval

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart

Interval = Literal["t", "range"]


def study_chart(
    table: "pd.DataFrame",
    x: str,
    y: str | Sequence[str],
    *,
    by: str | None = "policy",
    title: str = "",
    notes: Sequence[str] = (),
    x_title: str = "",
    y_titles: Sequence[str] = (),
    log_x: bool = False,
    log_y: bool = False,
    interval: Interval = "t",
    width: int = 980,
    mode: theme.Mode = "light",
) -> "OfflineChart":
    """Mean of figures over a setting, with an interval over seeds, a line per policy.

    Parameters
    ----------
    table
        A row per run: `x`, the columns `y`, and `by`; a row per seed.
    x
        Column of the setting: numbers (a line), or words (points side by side).
    y
        Column or columns of figures, a panel each.
    by
        Column that tells lines apart (None: one line).
    title, notes
        What it shows, and sentences below it (of what, on which assumptions).
    x_title, y_titles
        Titles of the axes, with units; the columns' names where they are missing.
    log_x, log_y
        Whether an axis is logarithmic; values of 0 or less are then left out, and counted in a note.
    interval
        ``"t"``: 95 % confidence of the mean (Student's t); ``"range"``: least and most of the seeds.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.

    Raises
    ------
    KeyError
        If a column is missing.
    """
    from gpuplan.gantt.offline import offline_chart

    figures = [y] if isinstance(y, str) else list(y)
    says = [*y_titles, *figures[len(y_titles) :]]
    per_row = min(len(figures), max(1, width // 300))
    each = max(160, width // per_row - 70)
    sets: dict[str, Columns] = {}
    panels, hidden = [], 0
    lines = list(dict.fromkeys(_texts(table[by]))) if by else [""]
    for number, (figure, words) in enumerate(zip(figures, says, strict=True)):
        data = f"study_{number}"
        sets[data] = intervals(table, x, figure, by=by, interval=interval)
        if log_y:
            hidden += _without_zeros(sets[data])
        panels.append(_panel(data, lines, sets[data], x_title or x, words, each, log_x=log_x, log_y=log_y))
    seeds = sorted({count for columns in sets.values() for count in columns["n"]})
    spec: Spec = {
        "concat": panels,
        "columns": per_row,
        "title": titles.head(
            title or f"{', '.join(says)} over {x_title or x}", [*notes, _how(interval, seeds, hidden)], width
        ),
        "params": theme.fill_params(),
        "resolve": {"legend": {"stroke": "shared", "strokeDash": "shared"}},
    }
    return offline_chart(spec, sets, mode, _describe(sets, says, x_title or x))


def intervals(
    table: "pd.DataFrame", x: str, y: str, *, by: str | None = None, interval: Interval = "t"
) -> Columns:
    """Mean and interval of a figure per setting and line: ``line, x, mean, low, high, n``; none from missing values."""
    columns: Columns = {key: [] for key in ("line", "x", "mean", "low", "high", "n")}
    keys = [x] if by is None else [by, x]
    for found, rows in table.groupby(keys, sort=False, dropna=False):
        values = rows[y].dropna().to_numpy(float)
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        low, high = bounds(values, interval)
        if values.min() >= 0:  # waits, losses and shares cannot be negative, whatever their spread
            low = max(low, 0.0)
        setting = found[-1]
        columns["line"].append(safe_text(str(found[0]), 60) if by else "")
        columns["x"].append(safe_text(setting, 60) if isinstance(setting, str) else float(str(setting)))
        columns["mean"].append(round(float(values.mean()), 6))
        columns["low"].append(round(low, 6))
        columns["high"].append(round(high, 6))
        columns["n"].append(len(values))
    return columns


def bounds(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", interval: Interval) -> tuple[float, float]:
    """Ends of an interval; one value alone has none (both ends are the value).

    ``"t"``: mean ± t s / sqrt(n), with s the sample's standard deviation.
    """
    if interval == "range" or len(values) == 1:
        return float(values.min()), float(values.max())
    _, low, high = mean_interval(values)
    return low, high


def _texts(column: "pd.Series") -> list[str]:
    return [safe_text(str(value), 60) for value in column.tolist()]


def _without_zeros(columns: Columns) -> int:
    """Leave out means that a log axis cannot show, and clip intervals there; the number that was left out."""
    kept = [row for row, mean in enumerate(columns["mean"]) if mean > 0]
    gone = len(columns["mean"]) - len(kept)
    for name, values in columns.items():
        columns[name] = [values[row] for row in kept]
    columns["low"] = [
        low if low > 0 else mean / 10 for low, mean in zip(columns["low"], columns["mean"], strict=True)
    ]
    return gone


def _how(interval: Interval, seeds: list[int], hidden: int) -> str:
    of = (
        "no seeds"
        if not seeds
        else f"{seeds[0]} seeds"
        if len(seeds) == 1
        else f"{seeds[0]} to {seeds[-1]} seeds"
    )
    if seeds == [1]:
        of = "one seed, so there is no interval"
    what = "95 % confidence of the mean (Student's t; cut at 0)" if interval == "t" else "least and most"
    said = f"Points: mean of {of}; bars: {what}." if seeds != [1] else f"Points: {of}."
    return said + (f" {hidden} means of 0 or less are not on the log axis." if hidden else "")


def _panel(
    data: str,
    lines: list[str],
    columns: Columns,
    x_title: str,
    y_title: str,
    width: int,
    *,
    log_x: bool,
    log_y: bool,
) -> Spec:
    words = any(isinstance(value, str) for value in columns["x"])
    axis: Spec = {"title": x_title, "titleLimit": width}
    if words:
        x = field("x", "nominal", sort=None, axis=axis | {"labelAngle": 0, "labelOverlap": True})
    else:
        ticks = sorted(set(columns["x"]))
        axis |= {"values": ticks if len(ticks) <= 9 else None, "format": "~g"}
        kind: Spec = {"type": "log"} if log_x else {"zero": False}
        x = field(
            "x",
            scale=kind | {"nice": False, "padding": 14},
            axis={k: v for k, v in axis.items() if v is not None},
        )
    scale: Spec = {"type": "log", "nice": True} if log_y else {"zero": True}
    y = field("mean", title=None, scale=scale, axis={"tickCount": 5, "format": ",~r"})
    legend = (
        None
        if lines == [""]
        else {"title": None, "orient": "bottom", "symbolType": "stroke", "symbolSize": 400}
    )
    stroke = field("line", "nominal", scale=policy_scale(lines, 0), legend=legend)
    dash = field("line", "nominal", scale=policy_scale(lines, 1), legend=legend)
    fill = field("line", "nominal", scale=policy_scale(lines, 0), legend=None)
    tips = [
        *([field("line", "nominal")] if lines != [""] else []),
        field("x", "nominal" if words else "quantitative", title=x_title),
        *(field(name, title=f"{name} ({y_title})", format=",.4~g") for name in ("mean", "low", "high")),
        field("n", title="seeds"),
    ]
    # Lines of one setting would hide each other's intervals: words give each a place of its own.
    off = {"xOffset": field("line", "nominal", scale={"domain": lines})} if words and len(lines) > 1 else {}
    line = {"type": "line", "strokeWidth": 2, "clip": True}
    rule = {"type": "rule", "strokeWidth": 2.2, "clip": True}
    layers = [
        mark(
            data, rule, {"x": x, **off, "y": y | {"field": "low"}, "y2": {"field": "high"}, "stroke": stroke}
        ),
        mark(
            data,
            {"type": "circle", "size": 52, "opacity": 1},
            {"x": x, **off, "y": y, "fill": fill, "tooltip": tips},
        ),
    ]
    if not words:
        layers.insert(0, mark(data, line, {"x": x, "y": y, "stroke": stroke, "strokeDash": dash}))
    return {"width": width, "height": 210, "title": titles.panel_title(y_title, width), "layer": layers}


def _describe(sets: dict[str, Columns], says: Sequence[str], x_title: str) -> str:
    said = []
    for columns, words in zip(sets.values(), says, strict=True):
        for line, x, mean, low, high in zip(
            *(columns[k] for k in ("line", "x", "mean", "low", "high")), strict=True
        ):
            at = x if isinstance(x, str) else f"{x:g}"
            said.append(
                f"{words}, {line + ', ' if line else ''}{x_title} {at}: {mean:.4g} ({low:.4g} to {high:.4g})"
            )
    listed = "; ".join(said[:60])
    return f"{listed}." if said else "Nothing to show."
