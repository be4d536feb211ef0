"""The one Gantt chart that all slices draw: GPUs downwards, time to the right, blocks of work as bars.

The *spec* (`spec`) depends on a `Frame` alone and names its data sets; the *data* (`bar_columns` and friends)
are dicts of columns. A live page embeds the spec once and patches data; `inline` puts the data in for good.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from gpuplan import theme
from gpuplan.rectangles import Bars

Columns = dict[str, list[Any]]
Spec = dict[str, Any]

#: Pixels of the strip above the first GPU that marks unmet demand.
STRIP_PX = 12

#: Invisible signs that belong to words and emoji.
_JOINERS = "\u200c\u200d"

#: Least distance of two borders between nodes, in pixels.
_BORDER_PX = 14

#: Pixels of a column of the legend.
_LEGEND_PX = 215

#: A row lower than this (pixels) gets no text.
_TEXT_PX = 9

#: Height of the drawing by number of GPUs, in few steps: a change of cluster size rarely changes the spec.
_HEIGHTS = ((4, 110), (8, 170), (16, 220), (32, 280), (64, 350))


@dataclass(frozen=True, slots=True)
class Frame:
    """What a Gantt is drawn in: so many GPUs for so many hours on so many pixels.

    Parameters
    ----------
    gpus, node_size
        Number of GPUs, and GPUs of a node.
    hours
        Length of the horizon in hours.
    start
        Clock time of hour 0; ``None`` labels the axis with hours of the horizon.
    width, height
        Pixels of the drawing area; no height takes the one that suits the number of GPUs.
    """

    gpus: int
    hours: float
    node_size: int
    start: datetime | None = None
    width: int = 640
    height: int = 0

    def __post_init__(self) -> None:
        if self.height == 0:
            object.__setattr__(self, "height", gantt_height(self.gpus))

    @property
    def px_per_gpu(self) -> float:
        """Pixels of a GPU's row."""
        return (self.height - STRIP_PX) / self.gpus

    @property
    def strip(self) -> float:
        """Height of the strip of unmet demand, in rows."""
        return STRIP_PX / self.px_per_gpu

    def clock(self, hour: float) -> str:
        """Hour of the horizon as text: ``"14:30"``, ``"Tue 14:30"`` beyond a day, or ``"3.5"``."""
        if self.start is None:
            return f"{round(hour, 2):g}"
        moment = self.start + timedelta(seconds=round(hour * 3600))
        return moment.strftime("%H:%M" if self.hours <= 24 else "%a %H:%M")


def gantt_height(gpus: int) -> int:
    """Pixels of a Gantt for a number of GPUs."""
    return next((height for most, height in _HEIGHTS if gpus <= most), 420)


def safe_text(name: str, limit: int = 200) -> str:
    """Name as one line of visible text: what moves a cursor or turns the line round becomes a blank."""
    if not name.isprintable():
        name = "".join(sign if sign.isprintable() or sign in _JOINERS else " " for sign in name)
    return name if len(name) <= limit else name[: limit - 1] + "…"


def time_axis(frame: Frame, *, title: bool = True, labels: bool = True) -> dict[str, Any]:
    """Axis of hours with round ticks, clock times where the frame has a start; a zoom thins its labels."""
    every = next(
        (step for step in (1, 2, 3, 6, 12, 24) if frame.hours / step <= 50),
        24 * math.ceil(frame.hours / 1200),
    )
    axis: dict[str, Any] = {
        "values": [every * number for number in range(math.floor(frame.hours / every) + 1)],
        "title": None,
        "labels": labels,
        "ticks": labels,
        "labelOverlap": "parity",
        "labelSeparation": 4,
        "format": "~g",
    }
    if title:
        axis["title"] = (
            "hour of the horizon" if frame.start is None else f"time (from {frame.start:%Y-%m-%d %H:%M})"
        )
    if frame.start is not None:
        moment = frame.start
        origin = f"utc({moment.year},{moment.month - 1},{moment.day},{moment.hour},{moment.minute})"
        pattern = "%H:%M" if frame.hours <= 24 else "%a %H:%M"
        axis["labelExpr"] = f"utcFormat({origin}+datum.value*3600000,'{pattern}')"
    return axis


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
            mark(
                "rows", {"type": "rule", "style": "gp-border"}, {"y": y, "opacity": field("border", **_AS_IS)}
            ),
            mark(
                "rows",
                {"type": "text", "style": "gp-row", "align": "right", "x": -6, "clip": False},
                {"y": y, "text": field("label", "nominal")},
            ),
            mark(bars, _label(frame, linked), {"x": x, "y": y | {"field": "mid"}, "opacity": _STANDS_OUT}),
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
    if alone:
        legend["offset"] = 36
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


def _triangle_look() -> Spec:
    return {"tooltip": field("says", "nominal", title="job")}


def _label(frame: Frame, linked: Links) -> Spec:
    """Names in bars: letter and name where both fit, the letter alone in a short bar, or nothing."""
    span, hidden = f"{frame.hours}", "0"
    if linked.brush:
        span = f"(isValid(brush.x) ? abs(brush.x[1] - brush.x[0]) : {frame.hours})"
        # What a zoom leaves out to the left: the name moves to where its bar becomes visible.
        hidden = (
            f"(isValid(brush.x) ? max(0, min(brush.x[0], brush.x[1]) - datum.x) * {frame.width} / {span} : 0)"
        )
    pixels = f"((datum.x2 - datum.x) * {frame.width} / {span} - {hidden})"
    code = theme.lookup(theme.KIND_CODES, "datum.kind")
    code = f"(datum.kind == 'unmet' ? split(datum.job, ' ')[0] : {code})"
    words = (
        f"datum.tall == 0 || {pixels} < 9 ? '' : {pixels} < 34 ? {code} "
        f": datum.kind == 'unmet' ? datum.job : {code} + ' ' + datum.job"
    )
    return {
        "type": "text",
        "clip": True,
        "align": "left",
        "baseline": "middle",
        # Leaves room for the triangle of a job that runs already.
        "dx": {"expr": f"(datum.x == 0 ? 13 : 4) + {hidden}"},
        "fontSize": 10,
        "limit": {"expr": f"max(9, {pixels} - (datum.x == 0 ? 15 : 6))"},
        "fill": {"expr": "datum.kind == 'training' ? '#FFFFFF' : '#111111'"},
        "text": {"expr": words},
    }


def inline(spec: Spec, data: Mapping[str, Columns], mode: theme.Mode = "light") -> Spec:
    """Whole spec with its data sets inside and the configuration of a mode: usable alone, offline."""
    actions = {"export": True, "source": False, "compiled": False, "editor": False}
    whole = spec | {
        "datasets": {name: records(columns) for name, columns in data.items()},
        "config": theme.config(mode) | {"background": theme.PAPER[mode]},
        "usermeta": {"embedOptions": {"actions": actions}},
    }
    unbroken: Spec = _unbroken(whole)
    return unbroken


def records(columns: Columns) -> list[dict[str, Any]]:
    """Rows of columns."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _unbroken(value: Any) -> Any:
    """Copy in which no text can end the script element that carries it.

    Altair writes JSON into pages as it is, and a job named ``</script>`` would end the script; an invisible
    word joiner after the ``<`` keeps it text.
    """
    if isinstance(value, str):
        return value.replace("</", "<\u2060/").replace("<!", "<\u2060!") if "<" in value else value
    if isinstance(value, dict):
        return {key: _unbroken(entry) for key, entry in value.items()}
    return [_unbroken(entry) for entry in value] if isinstance(value, list) else value
