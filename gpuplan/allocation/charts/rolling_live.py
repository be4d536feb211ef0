"""A moment of a rolling run as a live page: what was committed before it, and what its plan says of the hours to come.

The spec (`moment_spec`) depends on the days alone; `rolling_columns.moment_data` gives the columns of a moment, so
that stepping through a run only sends data. Time counts from the left edge of the window, a day before the moment,
which therefore stands still on the page.
"""

from typing import TYPE_CHECKING

from gpuplan import gantt, theme
from gpuplan.allocation.charts import data, panels
from gpuplan.allocation.charts.rolling_moment import start_of
from gpuplan.gantt import SCHEMA, Frame, Links, Spec, field, mark

if TYPE_CHECKING:
    from gpuplan.allocation.days import Days

#: Name of the Gantt's data sets.
SIDE = "moment"

#: Opacity of what is only planned.
PALE = 0.35

#: Pixels that axes take beside the drawing area.
_MARGIN = 62

_ZERO: Spec = {"datum": 0}
_INK = "dark ? '#F2F2F2' : '#1A1A1A'"


def moment_frame(days: "Days", width: int = 980) -> Frame:
    """What a moment is drawn in: a day back and the horizon ahead, on a page of so many pixels."""
    cluster = days.span.cluster
    hours = (days.steps_per_day + days.horizon) * days.span.horizon.step_hours
    return Frame(cluster.gpus, hours, cluster.node_size, width=max(200, width - _MARGIN))


def moment_spec(days: "Days", *, width: int = 980) -> Spec:
    """Vega-Lite spec of the page of a moment, without data; equal for equal cluster, window, apps and width."""
    frame = moment_frame(days, width)
    past = days.steps_per_day * days.span.horizon.step_hours
    rows = data.app_rows(days.span)
    title = "hours since the first day began" if start_of(days) is None else "time of day, and day of the run"
    views = [_gantt(frame, past, title if not rows else "")]
    for row, (name, _) in enumerate(rows):
        views.append(_demand(frame, past, row, name, title if row == len(rows) - 1 else ""))
    linked = Links((f"{SIDE}_bars",))
    head = {"$schema": SCHEMA, "params": [*linked.params(), *theme.fill_params(), gantt.still_param()]}
    return head | panels.grid([[view] for view in views], beside=False)


def _x(frame: Frame, title: str = "") -> Spec:
    """Hours from the left edge; the labels are data, as the window moves along the days."""
    axis = {"labels": False, "ticks": False, "grid": False, "title": title or None, "titlePadding": 32}
    return field("x", scale={"domain": [0, frame.hours], "nice": False, "zero": False}, axis=axis)


def _gantt(frame: Frame, past: float, title: str) -> Spec:
    """The Gantt that all pages draw, with what is planned made pale, and the line between past and plan."""
    spec = gantt.spec(frame, Links((f"{SIDE}_bars",)), SIDE, page_width=frame.width)
    first, *others = spec["layer"]
    x = _x(frame, title)
    layers = [
        first,
        _outside(x, {"y": {"value": 0}, "y2": {"value": frame.height}}),
        *_ticks(x, frame, frame.height, labels=True),
        *(_pale(layer) if layer["data"]["name"] == f"{SIDE}_bars" else layer for layer in others),
        *_now(x, frame, past),
    ]
    for layer in layers:
        if "field" in layer["encoding"].get("x", {}):
            layer["encoding"] = layer["encoding"] | {"x": x | {"field": layer["encoding"]["x"]["field"]}}
    return {**spec, "layer": layers}


def _pale(layer: Spec) -> Spec:
    """A layer of bars in which what is planned is pale and dashed, its names in the ink of the page."""
    look = dict(layer["mark"])
    if look["type"] == "rect":
        look |= {
            "fillOpacity": {"expr": f"datum.planned == 1 ? {PALE} : 1"},
            "stroke": {"expr": "datum.planned == 1 ? (dark ? '#C8C8C8' : '#4A4A4A') : '#FFFFFF'"},
            "strokeDash": {"expr": "datum.planned == 1 ? [3, 2] : [1, 0]"},
        }
    elif "stroke" in look:  # the halo of names on strong colours
        look["text"] = {"expr": f"datum.planned == 1 ? '' : ({look['text']['expr']})"}
    else:
        look["fill"] = {"expr": f"datum.planned == 1 ? ({_INK}) : ({look['fill']['expr']})"}
    return layer | {"mark": look}


def _outside(x: Spec, ends: Spec) -> Spec:
    """Hours before the first and after the last day, in grey."""
    grey = {"type": "rect", "clip": True, "fill": {"expr": "dark ? '#2C2C2C' : '#ECECEC'"}}
    return mark("outside", grey, {"x": x, "x2": {"field": "x2"}, **ends})


def _ticks(x: Spec, frame: Frame, height: int, *, labels: bool) -> list[Spec]:
    """Lines at round hours, stronger where a day of the run begins, with the hour and the day below."""
    strong = "datum.day == '' ? (dark ? '#3A3A3A' : '#E2E2E2') : (dark ? '#8F8F8F' : '#8A8A8A')"
    layers = [mark("ticks", {"type": "rule", "stroke": {"expr": strong}}, {"x": x})]
    if not labels:
        return layers
    pixels = f"datum.x * {frame.width} / {frame.hours}"
    text = {"type": "text", "style": "gp-note", "baseline": "top", "align": "center", "clip": False}
    for name, y, half, weight in (("hour", 4, 16, "normal"), ("day", 17, 40, "bold")):
        # What stood half outside the page would be cut off while a person steps: it moves inwards.
        inwards = f"max(0, {half} - {pixels}) + min(0, {frame.width - half} - {pixels})"
        look = text | {"y": height + y, "fontWeight": weight, "dx": {"expr": inwards}}
        layers.append(mark("ticks", look, {"x": x, "text": field(name, "nominal")}))
    return layers


def _now(x: Spec, frame: Frame, past: float) -> list[Spec]:
    """The line between what happened and what is planned, the words on its sides, and where the next plan is made."""
    at, ink = x | {"field": "now"}, {"type": "rule", "stroke": {"expr": _INK}}
    dashed = ink | {"strokeDash": [2, 3], "strokeWidth": 1.2}
    words = {"type": "text", "style": "gp-note", "y": -6, "clip": False, "fontWeight": "bold"}
    pixels = frame.width * past / frame.hours
    sides = (
        ("before", {"align": "right", "dx": -6, "limit": max(20, round(pixels) - 8)}),
        ("after", {"align": "left", "dx": 6, "limit": max(20, round(frame.width - pixels) - 8)}),
    )
    return [
        mark("now", ink | {"strokeWidth": 2.5}, {"x": at}),
        mark("now", dashed, {"x": x | {"field": "next"}}),
        *(mark("now", words | look, {"x": at, "text": field(name, "nominal")}) for name, look in sides),
    ]


def _demand(frame: Frame, past: float, row: int, name: str, title: str) -> Spec:
    """Demand of an app: what came (a line, to the left of now), what is expected (dashed), and how it is served."""
    x = _x(frame, title)
    height = panels.DEMAND_HEIGHT + 8
    sets = (f"done_{row}", f"plan_{row}")
    ends = {"y": {"value": 0}, "y2": {"value": height}}
    layers = [_outside(x, ends), *_ticks(x, frame, height, labels=bool(title))]
    for name_of_set, wanted, opacity in zip(sets, ("came", "expected"), (1.0, PALE), strict=True):
        for lower, upper, kind in (
            (None, "served", "real-time"),
            ("served", "held", "reserved-idle"),
            ("served", wanted, "unmet"),
        ):
            layers.append(_area(name_of_set, x, lower, upper, kind, opacity))
    line = {"type": "line", "interpolate": "step-after", "clip": True}
    for style in ("gp-demand-casing", "gp-demand"):
        layers.append(mark(sets[0], line | {"style": style}, {"x": x, "y": _gpus("came")}))
    dashed = line | {"style": "gp-demand", "strokeDash": [5, 3]}
    layers += [mark(one, dashed, {"x": x, "y": _gpus("expected")}) for one in sets]
    for one, says in zip(sets, _SAYS, strict=True):
        pane = {"type": "rect", "fill": "transparent", "clip": True, "tooltip": {"expr": says}}
        layers.append(mark(one, pane, {"x": x, "x2": {"field": "x2"}, "y": _gpus("top"), "y2": _ZERO}))
    layers += _now(x, frame, past)[:2]
    words = f"{name}: traffic that came (line), expected (dashed); served, held idle, unmet (pale: planned)"
    head = {"text": panels.lines(words, frame.width), "fontSize": 11, "fontWeight": "normal"}
    return {
        "width": frame.width,
        "height": height,
        "title": head | {"frame": "group", "limit": frame.width},
        "layer": layers,
    }


_SAYS = (
    "{'time': datum.time, 'GPUs that came': datum.came, 'GPUs expected': datum.expected, 'held': datum.held, "
    "'served': datum.served, 'unmet': datum.came - datum.served}",
    "{'time': datum.time, 'GPUs expected': datum.expected, 'held (planned)': datum.held, "
    "'served (if so)': datum.served, 'unmet (if so)': datum.expected - datum.served}",
)


def _gpus(name: str) -> Spec:
    axis = {"title": "GPUs", "tickCount": 3, "minExtent": 30, "maxExtent": 30, "grid": False}
    axis["labelExpr"] = "datum.value % 1 == 0 ? format(datum.value, ',d') : ''"
    return field(name, scale={"zero": True, "nice": False}, axis=axis)


def _area(name: str, x: Spec, lower: str | None, upper: str, kind: str, opacity: float) -> Spec:
    fill = theme.area_scale([kind])["range"][0]
    area = {"type": "area", "interpolate": "step-after", "fill": fill, "fillOpacity": opacity, "clip": True}
    return mark(name, area, {"x": x, "y": _gpus(upper), "y2": _ZERO if lower is None else {"field": lower}})
