"""The waterfall of a gain taken apart, and the curves of a sensitivity: specs and charts that stand alone."""

from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.allocation.charts.figures import BOUND_ROW, amount
from gpuplan.allocation.charts.panels import grid, lines
from gpuplan.allocation.figures import UNITS
from gpuplan.allocation.gain import HORIZON, ORDER, PATHS, RESERVATION, SEARCH, GainApart, scale_of, signed
from gpuplan.gantt import Columns, Spec, safe_text
from gpuplan.gantt.layers import field, mark

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart

#: Colours of totals, gains and losses: apart for everybody, and each bar carries its signed number.
COLOURS = {"total": "#9A9A9A", "gain": "#0072B2", "loss": "#D55E00"}

#: Steps as they stand beside their bars.
SHORT = {
    RESERVATION: "no reservation",
    ORDER: "order by worth",
    HORIZON: "whole horizon",
    SEARCH: "search",
}

#: Pixels of a row, at most for its name, and for the number at the end of its bar.
ROW_PX, NAME_PX, NUMBER_PX = 26, 136, 68


def waterfall_data(apart: GainApart, figure: str = "value") -> dict[str, Columns]:
    """Data sets ``path_0`` and ``path_1``: a bar per row from the figure before to the figure after."""
    scale, _ = scale_of(figure)
    bound = float(next(iter(apart.plans.values())).bound) if figure == "objective" else None
    tops = [scale * apart.figure(policy, figure) for policy in apart.plans] + [0.0]
    tops += [] if bound is None else [bound]
    top = max(tops) if max(tops) > min(tops) else 1.0
    sets: dict[str, Columns] = {}
    for number, path in enumerate(PATHS):
        rows: list[tuple[str, float, float, str, str]] = []
        first = scale * apart.figure("fifo", figure)
        rows.append(("fifo", 0.0, first, "total", f"{first:,.1f}"))
        for step in apart.steps(path, figure):
            kind = "gain" if step.change >= 0 else "loss"
            rows.append(
                (
                    f"+ {SHORT[step.words]}",
                    scale * step.before,
                    scale * step.after,
                    kind,
                    signed(scale * step.change),
                )
            )
        last = scale * apart.figure("search", figure)
        rows.append(("search, in all", 0.0, last, "total", f"{last:,.1f}"))
        if bound is not None:
            rows.append((BOUND_ROW, bound, bound, "total", f"{bound:,.1f}"))
        sets[f"path_{number}"] = {
            "row": [row[0] for row in rows],
            "low": [round(min(row[1], row[2]), 4) for row in rows],
            "high": [round(max(row[1], row[2]), 4) for row in rows],
            "kind": [row[3] for row in rows],
            "says": [row[4] for row in rows],
            "top": [round(top, 4)] * len(rows),
            "bound": [bound] * len(rows),
        }
    return sets


def waterfall_panel(number: int, path: str, figure: str, width: int, rows: int) -> Spec:
    """Bars of one path, from zero; each starts where the one before ended."""
    data = f"path_{number}"
    scale, unit = scale_of(figure)
    title = "per cent of available GPU-hours" if scale == 100 else unit
    inset = min(NAME_PX, round(0.42 * width))
    right = width - NUMBER_PX  # numbers stand inside the panel, or they would push the next one aside
    axis: Spec = {"title": title, "grid": True, "titleAnchor": "start", "titleX": inset, "format": ",~r"}
    axis |= {"tickCount": max(2, min(5, (right - inset) // 45)), "titleLimit": width - inset}
    names = {"labelLimit": inset - 6, "ticks": False, "domain": False, "offset": -inset, "labelPadding": 5}
    y = field("row", "nominal", sort=None, title=None, axis=names)
    ends = {"zero": True, "nice": False, "range": [inset, right]}
    x = {name: field(name, scale=ends, axis=axis) for name in ("low", "high", "top", "bound")}
    fill = field(
        "kind",
        "nominal",
        scale={"domain": list(COLOURS), "range": list(COLOURS.values())},
        legend=None,
    )
    tips = [field("row", "nominal", title="step"), field("says", "nominal", title=title)]
    layers = [
        mark(data, {"type": "rect", "fill": "transparent"}, {"x": x["top"], "x2": {"datum": 0}, "y": y}),
        mark(
            data,
            {"type": "bar", "height": {"band": 0.66}},
            {"x": x["low"], "x2": {"field": "high"}, "y": y, "fill": fill, "tooltip": tips},
        ),
        mark(
            data,
            {"type": "text", "style": "gp-note", "align": "left", "dx": 6},
            {"x": x["high"], "y": y, "text": field("says", "nominal")},
        ),
    ]
    if figure == "objective":
        rule = {
            "type": "tick",
            "style": "gp-bound",
            "orient": "vertical",
            "thickness": 1.5,
            "height": {"band": 1.0},
        }
        layers.append(mark(data, rule, {"x": x["bound"], "y": y}))
    return {
        "width": width,
        "height": ROW_PX * rows,
        "title": {"text": path, "fontSize": 12, "fontWeight": "bold", "frame": "group", "limit": width},
        "layer": layers,
        "view": {"fill": None, "stroke": None},
    }


def waterfall_spec(apart: GainApart, figure: str = "value", width: int = 980, *, beside: bool = True) -> Spec:
    """Both paths beside each other (or one below the other), over the data sets of `waterfall_data`."""
    each = width // 2 - 20 if beside else width - 20
    rows = 7 if figure == "objective" else 6
    panels = [waterfall_panel(n, path, figure, each, rows) for n, path in enumerate(PATHS)]
    scale, unit = scale_of(figure)
    between, total = (signed(scale * change) for change in (apart.interaction(figure), apart.total(figure)))
    spec = grid([panels], beside=beside)
    return spec | {
        "title": {
            "text": lines(f"{figure}: {total} {_short(unit)} from fifo to search, step by step", width, 7.2),
            "subtitle": lines(
                f"the first two steps together give {between} {_short(unit)} beyond the sum of each alone",
                width,
            ),
        }
    }


def _short(unit: str) -> str:
    return "points" if unit == "points" else UNITS["value"]


def describe_gain(apart: GainApart, figure: str = "value") -> str:
    """The waterfall in words."""
    scenario = next(iter(apart.plans.values())).scenario
    said = f"{safe_text(scenario.name)}. {apart.sentence(figure)}"
    if figure == "objective":
        bound = next(iter(apart.plans.values())).bound
        said += f" Bound of this scenario as set: {amount(bound, False)}."
    return said


def waterfall_chart(
    apart: GainApart,
    figure: str = "value",
    *,
    width: int = 980,
    beside: bool = True,
    mode: theme.Mode = "light",
) -> "OfflineChart":
    """Waterfall of a gain taken apart, both orders of its first two steps side by side.

    Parameters
    ----------
    apart
        From `gpuplan.take_apart`.
    figure
        ``"utilization"`` (points), ``"value"`` or ``"objective"`` (priority-weighted GPU-hours, with the bound).
    width
        Pixels of the whole.
    beside
        Whether the two orders stand side by side; else one below the other.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    spec = waterfall_spec(apart, figure, width, beside=beside)
    return offline_chart(spec, waterfall_data(apart, figure), mode, describe_gain(apart, figure))
