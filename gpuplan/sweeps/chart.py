"""The chart of a sweep: a figure over an axis, a line per policy, a band for the interval over seeds."""

import math
from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, safe_text, titles
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.sweeps.grid import SEED

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.sweeps.result import Sweep

#: What is drawn where nobody says it, by kind.
FIGURES = {"allocation": "objective", "fairshare": "mean_wait_s", "packing": "latency_mean_s"}

#: Panels of a chart at most, and the least width of one (pixels).
PANELS, NARROW = 24, 280


def sweep_chart(
    found: "Sweep", figure: str | None, x: str | None, width: int, mode: theme.Mode
) -> "OfflineChart":
    """The chart; see `Sweep.chart`."""
    from gpuplan.gantt.offline import offline_chart

    figure = figure or FIGURES[found.scenario.kind]
    table = found.means(figure)
    settings = [axis for axis in found.axes if axis != SEED]
    x = _axis(found, settings, x)
    others = [axis for axis in settings if axis != x]
    panels = [("", table)] if not others else _panels(table, others)
    if len(panels) > PANELS:
        rule = (
            f"must leave at most {PANELS} panels, one per setting of the other axes: take part of the table"
        )
        raise InputError("sweep", [Mistake("axes", rule, len(panels))])
    per_row = max(1, min(len(panels), width // NARROW))
    each = width // per_row - 75
    share = found.units[figure].startswith("share")
    unit = found.units[figure].replace("share of", "per cent of") if share else found.units[figure]
    sets: dict[str, Columns] = {}
    drawn = []
    for number, (words, part) in enumerate(panels):
        sets[f"sweep_{number}"] = _columns(part, x, 100.0 if share else 1.0)
        drawn.append(_panel(f"sweep_{number}", words, found, x, [figure, f"({unit})"], each))
    spec: Spec = {
        "concat": drawn,
        "columns": per_row,
        "title": titles.head(f"{figure} over {safe_text(x, 60)}", _notes(found, table), width),
        "params": theme.fill_params(),
        # one scale for all panels: that is what they are beside each other for
        "resolve": {
            "scale": {"y": "shared"},
            "legend": {"stroke": "shared", "strokeDash": "shared", "fill": "independent"},
        },
    }
    return offline_chart(spec, sets, mode, _describe(found, sets, figure, unit, x))


def _axis(found: "Sweep", settings: list[str], x: str | None) -> str:
    if x is not None:
        if x not in settings:
            rule = f"must be an axis of the sweep{did_you_mean(x, settings)}"
            raise InputError("sweep", [Mistake("x", rule, x)])
        return x
    if not settings:
        rule = "must have an axis beside the seed to be drawn; `means` has the intervals"
        raise InputError("sweep", [Mistake("axes", rule)])
    numbers = [axis for axis in settings if not _words(found, axis)] or settings
    return max(numbers, key=lambda axis: len(found.axes[axis]))


def _words(found: "Sweep", axis: str) -> bool:
    return found.table[axis].dtype.kind not in "if"


def _panels(table: "pd.DataFrame", others: list[str]) -> list[tuple[str, "pd.DataFrame"]]:
    panels = []
    for setting, part in table.groupby(others, sort=False):
        said = (f"{axis} {_text(value)}" for axis, value in zip(others, setting, strict=True))
        panels.append((safe_text(", ".join(said), 100), part))
    return panels


def _columns(part: "pd.DataFrame", x: str, scale: float) -> Columns:
    """Settings that have a mean; where there is one seed the band has no height."""
    columns: Columns = {key: [] for key in ("x", "policy", "mean", "low", "high", "n")}
    for row in part.to_dict("records"):
        if math.isnan(row["mean"]):
            continue
        value = row[x]
        columns["x"].append(safe_text(value, 60) if isinstance(value, str) else value)
        columns["policy"].append(safe_text(row["policy"], 60))
        for name in ("mean", "low", "high"):
            known = row["mean"] if math.isnan(row[name]) else row[name]
            columns[name].append(round(known * scale, 6))
        columns["n"].append(row["n"])
    return columns


def _panel(data: str, words: str, found: "Sweep", x: str, y_title: list[str], width: int) -> Spec:
    nominal = _words(found, x)
    policies = [safe_text(name, 60) for name in found.policies]
    axis: Spec = {"title": safe_text(x, 60), "titleLimit": width}
    across: Any = (
        field("x", "nominal", sort=None, axis=axis | {"labelAngle": 0, "labelOverlap": True})
        if nominal
        else field("x", scale={"zero": False, "nice": False, "padding": 10}, axis=axis | {"format": "~g"})
    )
    up: Spec = {"title": y_title, "tickCount": 5, "format": ",~r", "titleLimit": 230}
    y = field("mean", scale={"zero": False}, axis=up)
    legend = {"title": "policy", "orient": "bottom", "symbolType": "stroke", "symbolSize": 400}
    stroke = field("policy", "nominal", scale=_looks(policies, 0), legend=legend)
    dash = field("policy", "nominal", scale=_looks(policies, 1), legend=legend)
    fill = field("policy", "nominal", scale=_looks(policies, 0), legend=None)
    tips = [
        field("policy", "nominal"),
        field("x", "nominal" if nominal else "quantitative", title=safe_text(x, 60)),
        *(field(name, title=name, format=",.5~g") for name in ("mean", "low", "high")),
        field("n", title="values"),
    ]
    low, high = y | {"field": "low"}, {"field": "high"}
    off = {"xOffset": field("policy", "nominal", scale={"domain": policies})} if nominal else {}
    band = (
        mark(
            data,
            {"type": "rule", "strokeWidth": 2.2},
            {"x": across, **off, "y": low, "y2": high, "stroke": stroke, "strokeDash": dash},
        )
        if nominal
        else mark(data, {"type": "area", "opacity": 0.22}, {"x": across, "y": low, "y2": high, "fill": fill})
    )
    points = mark(
        data,
        {"type": "circle", "size": 40, "opacity": 1},
        {"x": across, **off, "y": y, "fill": fill, "tooltip": tips},
    )
    line = mark(
        data, {"type": "line", "strokeWidth": 2}, {"x": across, "y": y, "stroke": stroke, "strokeDash": dash}
    )
    head: Spec = {"title": titles.panel_title(words, width)} if words else {}
    layers = [band, points] if nominal else [band, line, points]
    return {"width": width, "height": 230, **head, "layer": layers}


def _looks(policies: list[str], part: int) -> Spec:
    looks = theme.POLICY_LOOKS
    chosen = [looks[number % len(looks)][part] for number in range(len(policies))]
    return {"domain": policies, "range": chosen}


def _notes(found: "Sweep", table: "pd.DataFrame") -> list[str]:
    counts = sorted({int(n) for n in table["n"]} - {0})
    said = [f"Scenario {safe_text(found.scenario.name, 60)}."]
    if counts and counts[-1] > 1:
        of = f"{counts[0]} to {counts[-1]}" if counts[0] != counts[-1] else f"{counts[0]}"
        said.append(f"Lines: mean of {of} seeds; bands: 95 % confidence of the mean (Student's t).")
    else:
        said.append("One run per point, so there is no interval.")
    missing = int(table["missing"].sum())
    if missing:
        said.append(f"{missing:,} runs have no such figure, or an error, and are left out.")
    return said


def _describe(found: "Sweep", sets: dict[str, Columns], figure: str, unit: str, x: str) -> str:
    said = [
        f"{policy}, {x} {_text(at)}: {mean:.4g} ({low:.4g} to {high:.4g})"
        for columns in sets.values()
        for policy, at, mean, low, high in zip(
            *(columns[name] for name in ("policy", "x", "mean", "low", "high")), strict=True
        )
    ]
    listed = "; ".join(said[:60])
    return safe_text(f"{found.scenario.name}: {figure} ({unit}) over {x}. {listed}.", 6000)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:g}"
