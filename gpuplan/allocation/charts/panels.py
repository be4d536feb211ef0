"""Specs of the panels below the Gantts: demand, GPUs in use, and the comparison of figures."""

import textwrap
from collections.abc import Sequence

from gpuplan import gantt, theme
from gpuplan.allocation.charts.figures import VALUE_UNIT
from gpuplan.gantt import Frame, Links, Spec, field, mark

#: Pixels of the panels, and of one bar of the comparison.
DEMAND_HEIGHT, USAGE_HEIGHT, BAR_HEIGHT = 64, 80, 19

#: Pixels for the names of figures and policies in a comparison.
NAME_WIDTH = 158

#: What a demand panel shows.
DEMAND_WORDS = "demand (line), served, unmet, held idle"

#: What a panel of GPUs in use shows, and what can be done with it (asked for in live pages only).
USAGE_WORDS = "GPUs in use, by kind of work"
USAGE_HINT = " (drag to zoom, double-click to reset)"

#: What the line in the comparison is.
BOUND_WORDS = "no plan of this scenario has a larger objective"

#: Name of the data set behind the legend of areas, and the kinds that each panel shows.
LEGEND = "kinds_of_areas"
DEMAND_KINDS = ("real-time", "reserved-idle", "unmet")
USAGE_KINDS = ("training", "batch-inference", "quantization", "real-time", "reserved-idle")

_ZERO: Spec = {"datum": 0}


def _y(name: str) -> Spec:
    """GPUs upwards from zero, labelled at whole numbers."""
    axis = {"title": "GPUs", "tickCount": 3, "minExtent": 30, "maxExtent": 30}
    axis["labelExpr"] = "datum.value % 1 == 0 ? format(datum.value, ',d') : ''"
    return field(name, scale={"zero": True, "nice": False}, axis=axis)


def _area(data: str, x: Spec, lower: str | None, upper: str, kind: str) -> Spec:
    """Stepped area of a kind between two columns (from zero without a lower one)."""
    fill = theme.area_scale([kind])["range"][0]
    area = {"type": "area", "interpolate": "step-after", "fill": fill, "fillOpacity": 1, "clip": True}
    return mark(data, area, {"x": x, "y": _y(upper), "y2": _ZERO if lower is None else {"field": lower}})


def area_legend(kinds: Sequence[str]) -> Spec:
    """Layer without marks that explains the colours of areas, over a data set of its own (`LEGEND`)."""
    words = {"training": "training", "batch-inference": "batch inference", "quantization": "quantization"}
    words |= {"real-time": "real-time, used", "reserved-idle": "reserved but idle", "unmet": "unmet demand"}
    legend = theme.kind_legend(columns=len(kinds)) | {
        "symbolOpacity": 1,
        "labelExpr": theme.lookup(words, "datum.label"),
    }
    fill = field("kind", "nominal", scale=theme.area_scale(kinds), legend=legend)
    return {
        "data": {"name": LEGEND, "values": [{"kind": kind} for kind in kinds]},
        "mark": {"type": "point", "opacity": 0, "strokeWidth": 0},
        "encoding": {"fill": fill},
    }


def lines(text: str, width: int, px_per_character: float = 6.4) -> list[str]:
    """A title in as many lines as a width (pixels) asks for."""
    return textwrap.wrap(text, max(20, int(width / px_per_character)))


def _title(words: str | Spec, width: int) -> Spec:
    """Title no wider than its panel, which would push the next column aside."""
    return {"text": words, "fontSize": 11, "fontWeight": "normal", "frame": "group", "limit": width}


def demand_panel(
    frame: Frame, linked: Links, side: str, row: int, title: str, *, labels: bool = False
) -> Spec:
    """Demand of an app as a line; what is served, unmet and held idle as areas."""
    data = f"{side}_demand_{row}"
    x = field("x", scale=linked.time_scale(), axis=gantt.time_axis(frame, title=labels, labels=labels))
    line = {"type": "line", "interpolate": "step-after", "clip": True}
    # The casing keeps the line apart from areas of its own tone: white on pale in dark pages.
    lines = [line | {"style": style} for style in ("gp-demand-casing", "gp-demand")]
    says = (
        "{'time': datum.time, 'GPUs wanted': datum.demand, 'held': datum.held, 'served': datum.served, "
        "'unmet': datum.demand - datum.served, 'held idle': datum.held - datum.served}"
    )
    pane = {"type": "rect", "fill": "transparent", "clip": True, "tooltip": {"expr": says}}
    return {
        "width": frame.width,
        "height": DEMAND_HEIGHT,
        "title": _title(title, frame.width),
        "layer": [
            _area(data, x, None, "served", "real-time"),
            _area(data, x, "served", "held", "reserved-idle"),
            _area(data, x, "served", "demand", "unmet"),
            *(mark(data, look, {"x": x, "y": _y("demand")}) for look in lines),
            mark(data, pane, {"x": x, "x2": {"field": "x2"}, "y": _y("top"), "y2": _ZERO}),
        ],
    }


def usage_panel(frame: Frame, side: str, title: str = "", height: int = USAGE_HEIGHT) -> Spec:
    """GPUs in use per step, stacked by kind; a stretch of time dragged here zooms the charts above.

    Without a title of its own it says what can be done with it (see `gpuplan.gantt.still_param`).

    The panes that carry tooltips and the brush (view ``<side>_usage``) lie on top of the areas.
    """
    data = f"{side}_usage"
    x = field("x", scale={"nice": False, "zero": False}, axis=gantt.time_axis(frame))
    says = (
        "{'time': datum.time, 'training': datum.training, 'batch inference': datum.batch - datum.training, "
        "'quantization': datum.quantization - datum.batch, "
        "'real-time, used': datum.served - datum.quantization, "
        "'reserved but idle': datum.held - datum.served, 'free': datum.top - datum.held}"
    )
    pane = {"type": "rect", "fill": "transparent", "tooltip": {"expr": says}}
    return {
        "width": frame.width,
        "height": height,
        "title": _title(title or {"expr": f"'{USAGE_WORDS}' + (still ? '' : '{USAGE_HINT}')"}, frame.width),
        "layer": [
            _area(data, x, None, "training", "training"),
            _area(data, x, "training", "batch", "batch-inference"),
            _area(data, x, "batch", "quantization", "quantization"),
            _area(data, x, "quantization", "served", "real-time"),
            _area(data, x, "served", "held", "reserved-idle"),
            mark(data, pane, {"x": x, "x2": {"field": "x2"}, "y": _y("top"), "y2": _ZERO}, name=data),
        ],
    }


def comparison_panel(width: int, name: str, n_policies: int) -> Spec:
    """Bars of `shares` or `amounts` from zero, each with its figure and the change against the first policy.

    Names stand inside the drawing area, so that the panel lines up with the charts above it.
    """
    shares = name == "shares"
    title = "per cent (coverage: of the demand)" if shares else VALUE_UNIT
    ticks: Spec = {"values": [0, 25, 50, 75, 100]} if shares else {"tickCount": 4, "format": ",~r"}
    inset = min(NAME_WIDTH, round(0.4 * width))
    scale = {"zero": True, "nice": False, "range": [inset, width]}
    axis = {"title": title, "grid": False, "titleAnchor": "start", "titleX": inset, **ticks}
    axis["titleLimit"] = width - inset
    names = {"labelLimit": inset - 4, "ticks": False, "domain": False, "offset": -inset, "labelPadding": 5}
    y = field("row", "nominal", sort=None, title=None, axis=names)
    x = {name: field(name, scale=scale, axis=axis) for name in ("top", "value", "at", "bound")}
    first = {"test": "datum.first == 1", "value": theme.FIRST_COLOUR}
    tips = [field("row", "nominal", title="figure"), field("says", "nominal", title=title)]
    fill = {"condition": first, "value": theme.OTHER_COLOUR}
    bar = {"type": "bar", "height": {"band": 0.74}}
    words = {"type": "text", "style": "gp-note", "align": "left", "dx": 6}
    layers = [
        mark(name, {"type": "rect", "fill": "transparent"}, {"x": x["top"], "x2": _ZERO, "y": y}),
        mark(name, bar, {"x": x["value"], "y": y, "fill": fill, "tooltip": tips}),
        mark(name, words, {"x": x["at"], "y": y, "text": field("says", "nominal")}),
    ]
    if not shares:
        says = {"expr": f"{{'bound': format(datum.bound, ',.1f'), 'meaning': '{BOUND_WORDS}'}}"}
        tick = {"type": "tick", "style": "gp-bound", "orient": "vertical", "thickness": 1.5, "tooltip": says}
        layers.append(mark(name, tick | {"height": {"band": 1.0}}, {"x": x["bound"], "y": y}))
    # The bound has a row of its own below the objectives, for its words.
    height = BAR_HEIGHT * (2 * n_policies if shares else 3 * n_policies + 1)
    return {"width": width, "height": height, "layer": layers, "view": {"fill": None, "stroke": None}}


def grid(rows: Sequence[Sequence[Spec]], *, beside: bool, under: Sequence[Spec] = ()) -> Spec:
    """Views of plans as a grid with a column per plan, or plan by plan below each other, and `under` them more."""
    cells = [cell for row in rows for cell in row]
    if not beside:
        cells = [row[place] for place in range(len(rows[0])) for row in rows]
    return {
        "concat": [*cells, *under],
        "columns": len(rows[0]) if beside else 1,
        "spacing": {"row": 12, "column": 22},
        "resolve": {"scale": {"fill": "shared"}},
    }
