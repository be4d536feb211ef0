"""Specs of the panels below the Gantts: demand, GPUs in use, and the comparison of figures."""

from gpuplan import gantt, theme
from gpuplan.allocation.charts.figures import VALUE_UNIT
from gpuplan.gantt import Frame, Links, Spec, field, mark

#: Pixels of the panels, and of one bar of the comparison.
DEMAND_HEIGHT, USAGE_HEIGHT, BAR_HEIGHT = 64, 80, 19

#: Pixels for the names of figures and policies in a comparison.
NAME_WIDTH = 150

#: What a demand panel shows.
DEMAND_WORDS = "demand (line), served, unmet, held idle"

_ZERO: Spec = {"datum": 0}


def _y(name: str) -> Spec:
    """GPUs upwards from zero."""
    axis = {
        "title": "GPUs",
        "tickMinStep": 1,
        "tickCount": 3,
        "format": "d",
        "minExtent": 30,
        "maxExtent": 30,
    }
    return field(name, scale={"zero": True, "nice": False}, axis=axis)


def _area(data: str, x: Spec, lower: str | None, upper: str, kind: str) -> Spec:
    """Stepped area of a kind between two columns (from zero without a lower one)."""
    # A pattern stretched over a whole area would read as gaps; only the hatching of idle GPUs stays one.
    fill = theme.fill_of(kind) if kind == "reserved-idle" else theme.KIND_COLOURS[kind]
    area = {"type": "area", "interpolate": "step-after", "fill": fill, "fillOpacity": 1, "clip": True}
    return mark(data, area, {"x": x, "y": _y(upper), "y2": _ZERO if lower is None else {"field": lower}})


def _title(words: str) -> Spec:
    return {"text": words, "fontSize": 11, "fontWeight": "normal", "frame": "group"}


def demand_panel(
    frame: Frame, linked: Links, side: str, row: int, title: str, *, labels: bool = False
) -> Spec:
    """Demand of an app as a line; what is served, unmet and held idle as areas."""
    data = f"{side}_demand_{row}"
    x = field("x", scale=linked.time_scale(), axis=gantt.time_axis(frame, title=labels, labels=labels))
    line = {"type": "line", "style": "gp-demand", "interpolate": "step-after", "clip": True}
    says = (
        "{'time': datum.time, 'GPUs wanted': datum.demand, 'held': datum.held, 'served': datum.served, "
        "'unmet': datum.demand - datum.served, 'held idle': datum.held - datum.served}"
    )
    pane = {"type": "rect", "fill": "transparent", "clip": True, "tooltip": {"expr": says}}
    return {
        "width": frame.width,
        "height": DEMAND_HEIGHT,
        "title": _title(title),
        "layer": [
            _area(data, x, None, "served", "real-time"),
            _area(data, x, "served", "held", "reserved-idle"),
            _area(data, x, "served", "demand", "unmet"),
            mark(data, line, {"x": x, "y": _y("demand")}),
            mark(data, pane, {"x": x, "x2": {"field": "x2"}, "y": _y("top"), "y2": _ZERO}),
        ],
    }


def usage_panel(frame: Frame, side: str, title: str, height: int = USAGE_HEIGHT) -> Spec:
    """GPUs in use per step, stacked by kind; a stretch of time dragged here zooms the charts above.

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
        "title": _title(title),
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
    title = "per cent" if shares else VALUE_UNIT
    ticks: Spec = {"values": [0, 25, 50, 75, 100]} if shares else {"tickCount": 4, "format": ",~r"}
    inset = NAME_WIDTH
    scale = {"zero": True, "nice": False, "range": [inset, width]}
    axis = {"title": title, "grid": False, "titleAnchor": "start", "titleX": inset, **ticks}
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
        bound = field("bound", title="bound of the objective", format=",.1f")
        tick = {"type": "tick", "style": "gp-bound", "orient": "vertical", "thickness": 1.5}
        layers.append(mark(name, tick, {"x": x["bound"], "y": y, "tooltip": bound}))
    height = BAR_HEIGHT * (2 if shares else 3) * n_policies
    return {"width": width, "height": height, "layer": layers, "view": {"fill": None, "stroke": None}}
