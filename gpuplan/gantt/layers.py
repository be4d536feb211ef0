"""The spec of a Gantt: layers of marks over named data sets, and the links between several views."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuplan import theme
from gpuplan.gantt.columns import Columns
from gpuplan.gantt.frame import Frame, time_axis

Spec = dict[str, Any]

#: Label of the language of the spec; nothing loads it.
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

#: Pixels of a column of the legend.
_LEGEND_PX = 215

#: Least width of a stretch of unmet demand that says how many GPUs it is about.
_UNMET_PX = 62


@dataclass(frozen=True, slots=True)
class Links:
    """Names of the views that share selections.

    Parameters
    ----------
    bars
        Views in which the job under the pointer and the kinds picked in the legend stand out.
    brush
        Views in which a stretch of time can be dragged that every other time axis zooms to.
    """

    bars: tuple[str, ...]
    brush: tuple[str, ...] = ()

    def params(self) -> list[Spec]:
        """Selections for the top of a spec."""
        bars = list(self.bars)
        pointed = {"type": "point", "fields": ["job"], "on": "pointerover", "clear": "pointerout"}
        params: list[Spec] = [
            {"name": "hover", "select": pointed, "views": bars},
            {
                "name": "kinds",
                "select": {"type": "point", "fields": ["kind"]},
                "bind": "legend",
                "views": bars,
            },
        ]
        if self.brush:
            stretch = {"type": "interval", "encodings": ["x"]}
            params.append({"name": "brush", "select": stretch, "views": list(self.brush)})
        return params

    def time_scale(self) -> Spec:
        """Scale of hours that follows the brush; without a stretch picked it spans the data."""
        zoom: Spec = {"domain": {"param": "brush", "encoding": "x"}} if self.brush else {}
        return {"nice": False, "zero": False} | zoom


def field(name: str, kind: str = "quantitative", **options: Any) -> Spec:
    """Encoding of a column."""
    return {"field": name, "type": kind, **options}


def mark(data: str, kind: str | Spec, encoding: Spec, **options: Any) -> Spec:
    """Layer of one mark over a named data set."""
    return {"data": {"name": data}, "mark": kind, "encoding": encoding, **options}


def spec(
    frame: Frame, linked: Links, side: str = "left", *, page_width: int = 980, alone: bool = False
) -> Spec:
    """Spec of a Gantt over the data sets ``<side>_frame``, ``<side>_bars``, ``<side>_marks`` and ``rows``.

    The legend takes as many columns as fit on a page of `page_width` pixels.
    With `alone` the legend keeps clear of the title, as Vega only does by itself for a grid of charts.
    The parameters of `Links.params` and `gpuplan.theme.fill_params` must stand at the top of the whole.
    """
    x = field("x", scale=linked.time_scale(), axis=time_axis(frame))
    y_axis = {
        "title": "GPU",
        "labels": False,
        "ticks": False,
        "grid": False,
        "domain": False,
        "titlePadding": 28,
    }
    y = field("y", scale={"reverse": True, "nice": False, "zero": False}, axis=y_axis)
    area, bars = f"{side}_frame", f"{side}_bars"
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    # A zoomed scale clips every mark unless told otherwise; titles and row labels stand outside the frame.
    title = {"type": "text", "style": "gp-title", "align": "left", "limit": frame.width, "clip": False}
    empty = {"type": "text", "style": "gp-title", "align": "center"}
    centre = {"x": {"value": frame.width / 2}, "y": {"value": frame.height / 2}}
    return {
        "width": frame.width,
        "height": frame.height,
        "layer": [
            mark(area, {"type": "rect", "fill": "transparent"}, {"x": x, "y": y, **ends}),
            mark(bars, _BAR, {"x": x, "y": y, **ends, **_bar_look(page_width, alone)}, name=bars),
            *(
                mark("rows", {"type": "rule", "style": style}, {"y": y, "opacity": field("border", **_AS_IS)})
                for style in ("gp-border-casing", "gp-border")
            ),
            mark(
                "rows",
                {"type": "text", "style": "gp-row", "align": "right", "x": -6, "clip": False},
                {"y": y, "text": field("label", "nominal")},
            ),
            *(
                mark(bars, look, {"x": x, "y": y | {"field": "mid"}, "opacity": _STANDS_OUT})
                for look in _labels(frame, linked)
            ),
            mark(
                f"{side}_marks", _TRIANGLE, {"x": x, "y": y, "tooltip": field("says", "nominal", title="job")}
            ),
            mark(area, title, {"x": {"value": 0}, "y": {"value": -21}, "text": field("title", "nominal")}),
            mark(
                area,
                title | {"style": "gp-note"},
                {"x": {"value": 0}, "y": {"value": -6}, "text": field("note", "nominal")},
            ),
            mark(area, empty, centre | {"text": field("empty", "nominal")}),
        ],
    }


_AS_IS: Spec = {"scale": None, "legend": None}
_BAR: Spec = {"type": "rect", "clip": True, "stroke": "#FFFFFF", "strokeWidth": 0.6}
_STANDS_OUT: Spec = {
    "condition": {"test": {"and": [{"param": "hover"}, {"param": "kinds"}]}, "value": 1},
    "value": 0.2,
}
_TRIANGLE: Spec = {"type": "point", "style": "gp-mark", "filled": True, "clip": True}
_TRIANGLE |= {"opacity": 1, "size": {"expr": "datum.size"}, "shape": {"expr": "datum.shape"}}


def _bar_look(page_width: int, alone: bool) -> Spec:
    tips = ("job", "kind", "gpus", "time", "detail")
    legend = theme.kind_legend(columns=max(1, min(4, page_width // _LEGEND_PX)))
    # In a grid the gap to the charts is Vega's; the titles need little of their own.
    legend["offset"] = 36 if alone else 10
    return {
        "fill": field(
            "kind",
            "nominal",
            scale=theme.kind_scale(),
            legend=legend,
        ),
        "opacity": _STANDS_OUT,
        "tooltip": [field(name, "nominal", title="GPUs" if name == "gpus" else name) for name in tips],
    }


def _labels(frame: Frame, linked: Links) -> tuple[Spec, Spec]:
    """Names in bars: letter and name where both fit, the letter alone in a short bar, or nothing.

    A halo lies below them, as a mark of its own: Vega strokes a letter after it has filled it.
    """
    span, hidden = f"{frame.hours}", "0"
    if linked.brush:
        span = f"(isValid(brush.x) ? abs(brush.x[1] - brush.x[0]) : {frame.hours})"
        # What a zoom leaves out to the left: the name moves to where its bar becomes visible.
        hidden = (
            f"(isValid(brush.x) ? max(0, min(brush.x[0], brush.x[1]) - datum.x) * {frame.width} / {span} : 0)"
        )
    pixels = f"((datum.x2 - datum.x) * {frame.width} / {span} - {hidden})"
    code = theme.lookup(theme.KIND_CODES, "datum.kind")
    # A number alone in the strip of unmet demand could be anything: there is room for its words, or none.
    words = (
        f"datum.tall == 0 || {pixels} < 9 ? '' "
        f": datum.kind == 'unmet' ? ({pixels} < {_UNMET_PX} ? '' : datum.job) "
        f": {pixels} < 34 ? {code} : {code} + ' ' + datum.job"
    )
    look: Spec = {
        "type": "text",
        "clip": True,
        "align": "left",
        "baseline": "middle",
        # Leaves room for the triangle of a job that runs already.
        "dx": {"expr": f"(datum.x == 0 ? 13 : 4) + {hidden}"},
        "fontSize": 10,
        "limit": {"expr": f"max(9, {pixels} - (datum.x == 0 ? 15 : 6))"},
        "fill": {"expr": theme.ink_of("datum.kind")},
        "text": {"expr": words},
    }
    halo = theme.halo_of("datum.kind")
    stroke = {"stroke": {"expr": halo}, "strokeWidth": 5, "strokeJoin": "round"}
    return look | stroke | {"text": {"expr": f"{halo} ? ({words}) : ''"}, "fill": {"expr": halo}}, look


def pixels_wide(width: int, *, zoomed: bool) -> str:
    """Expression of the pixels of a bar from ``x`` to ``x2`` on an axis of ``span``, columns of its row.

    Parameters
    ----------
    width
        Pixels of the axis.
    zoomed
        Whether the axis follows a stretch of time that is dragged, the parameter ``brush``.
    """
    span = "(isValid(brush.x) ? abs(brush.x[1] - brush.x[0]) : datum.span)" if zoomed else "datum.span"
    return f"((datum.x2 - datum.x) * {width} / {span})"


def inline(spec: Spec, data: Mapping[str, Columns], mode: theme.Mode = "light") -> Spec:
    """Whole spec with its data sets inside and the configuration of a mode: usable alone, offline."""
    actions = {"export": True, "source": False, "compiled": False, "editor": False}
    whole = spec | {
        "datasets": {name: records(columns) for name, columns in data.items()},
        "config": theme.config(mode) | {"background": theme.PAPER[mode]},
        "usermeta": {**spec.get("usermeta", {}), "embedOptions": {"actions": actions}},
    }
    if "params" in whole:
        whole["params"] = theme.in_mode(whole["params"], mode)
    safe: Spec = unbroken(whole)
    return safe


#: Name of the top-level parameter that is true in a picture, where nothing can be dragged or clicked.
STILL = "still"


def still_param(value: bool = False) -> Spec:
    """The parameter that titles ask before they tell a person what to do."""
    return {"name": STILL, "value": value}


def still(spec: Mapping[str, Any]) -> Spec:
    """The same spec as a picture: its titles do not ask for gestures."""
    params = [still_param(True) if param["name"] == STILL else param for param in spec.get("params", ())]
    return {**spec, "params": params} if params else dict(spec)


def records(columns: Columns) -> list[dict[str, Any]]:
    """Rows of columns."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def unbroken(value: Any) -> Any:
    """Copy in which no text can end the script element that carries it.

    Altair writes JSON into pages as it is, and a job named ``</script>`` would end the script; an invisible
    word joiner after the ``<`` keeps it text.
    """
    if isinstance(value, str):
        return value.replace("</", "<\u2060/").replace("<!", "<\u2060!") if "<" in value else value
    if isinstance(value, dict):
        return {key: unbroken(entry) for key, entry in value.items()}
    return [unbroken(entry) for entry in value] if isinstance(value, list) else value
