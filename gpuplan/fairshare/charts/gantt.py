"""The Gantt of a run: GPUs or nodes downwards, time to the right, a hue per team."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts import heads
from gpuplan.fairshare.charts.clock import Clock, clock_of
from gpuplan.fairshare.charts.colours import REPAIR, Palette, palette_of
from gpuplan.fairshare.charts.gantt_data import (
    MAX_BARS,
    STATE_WORDS,
    Picture,
    picture,
)
from gpuplan.fairshare.charts.lanes import IN_REPAIR, PAST_MINIMUM, UNALLOCATED, first_rows, interrupts
from gpuplan.gantt import Columns, Spec, field, gantt_height, mark, pixels_wide, titles

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.run import Run
    from gpuplan.gantt.offline import OfflineChart

#: Pixels between two labels of rows, and between two borders.
_LABEL_PX, _BORDER_PX = 13, 10

#: Up to so many GPUs a row is a GPU, beyond that a node.
GPU_ROWS = 64

#: Lines in the tone of the page through bars that may be interrupted, at shares of their height; their width in
#: pixels, and at most in shares; opacity of unallocated work.
_STRIPES = {PAST_MINIMUM: (0.5,), UNALLOCATED: (0.3, 0.7)}
_STRIPE_PX, _STRIPE_SHARE = 2.2, 0.2

#: Opacity of work that may be interrupted.
_PALE = {PAST_MINIMUM: 0.82, UNALLOCATED: 0.5}

#: A bar lower than this (pixels) has no room for lines; cells, which stand close, need more.
_STRIPED_PX, _STRIPED_CELL_PX = 2.5, 12

#: Pixels of a column of the legend, and beside the drawing area.
_LEGEND_PX, BESIDE = 190, 66

INK = "dark ? '#F2F2F2' : '#1A1A1A'"
PANE = "dark ? '#1B1B1B' : '#FFFFFF'"


def gantt_chart(
    run: "Run", *, width: int = 980, height: int = 0, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Gantt of a run: which GPUs (or nodes) worked for which team, and what could be interrupted.

    Parameters
    ----------
    run
        What is drawn. Beyond 2,000 bars it is drawn as exact means over cells of nodes and hours.
    width, height
        Pixels of the whole, and of the drawing area (0: what suits the number of GPUs).
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    palette, clock = palette_of(run.problem), clock_of(run)
    drawn = picture(run, palette, clock, most=MAX_BARS)
    inner, height = max(160, width - BESIDE), height or rows_height(run.problem)
    legend = _states_shown(run, drawn)
    spec = gantt_spec(
        run.problem,
        palette,
        clock,
        "run",
        inner,
        height,
        legend=legend,
        rows=row_words(run.problem, drawn.by_pool),
    )
    name = heads.policy_name(run)
    spec["title"] = titles.head(
        f"{name}: whose work ran where",
        [
            heads.cluster_words(run.problem),
            heads.workload_words(run.problem),
            drawn.note if drawn.bars["x"] else "",
            heads.aside_words(run),
        ],
        width,
    )
    spec["params"] = [*gantt_params(["run_bars"]), *state_params(), *theme.fill_params()]
    sets = gantt_sets(run, drawn, clock, "run", height)
    return offline_chart(spec, sets, mode, _describe(run, drawn))


def _states_shown(run: "Run", drawn: Picture) -> tuple[str, ...]:
    """Entries of the legend beyond the teams: only what the picture holds."""
    states = STATE_WORDS[:IN_REPAIR] if interrupts(run) else ()
    shown = set(drawn.bars["team"])
    return (*states, *(extra for extra in STATE_WORDS[IN_REPAIR:] if extra in shown))


def rows_height(problem: "Problem") -> int:
    """Pixels of the drawing area for the GPUs of a problem."""
    return gantt_height(int(problem.gpus))


def gantt_params(views: list[str]) -> list[Spec]:
    """Selections: the job under the pointer, and a team picked in the legend."""
    pointed = {"type": "point", "fields": ["job"], "on": "pointerover", "clear": "pointerout"}
    return [
        {"name": "hover", "select": pointed, "views": views},
        {
            "name": "picked",
            "select": {"type": "point", "fields": ["team"]},
            "bind": "legend",
            "views": views,
        },
    ]


def gantt_sets(
    run: "Run",
    drawn: Picture,
    clock: Clock,
    side: str,
    height: int,
    title: str = "",
    figures: str = "",
    span: float = 0.0,
    width: int = 0,
) -> dict[str, Columns]:
    """Data sets ``<side>_bars``, ``<side>_frame`` and ``<side>_rows``.

    The axis reaches at least to `span`; words above the drawing area are folded to its `width` (0: they are not).
    """
    gpus = int(run.problem.gpus)
    length = max(span, round(clock.span, 5), *clock.of(np.array([run.raw.end_s])))
    frame: Columns = {
        "x": [0],
        "x2": [length],
        "y": [0],
        "y2": [gpus],
        "empty": [heads.empty_words(run)],
        "title": [title],
        "figures": [titles.folded(figures, width)],
        "note": [titles.folded(drawn.note, width) if title else ""],
    }
    return {
        f"{side}_bars": {**drawn.bars, "span": [length] * len(drawn.bars["x"])},
        f"{side}_frame": frame,
        f"{side}_rows": row_columns(run.problem, height, by_pool=drawn.by_pool),
    }


def row_columns(problem: "Problem", height: int, *, by_pool: bool = False) -> Columns:
    """Labels of rows and borders between nodes and pools: ``y, label, border`` (2: of pools)."""
    gpus = max(1, int(problem.gpus))
    px = height / gpus
    rows, nodes = first_rows(problem.node_gpus), len(problem.node_gpus)
    pool_ends = (np.flatnonzero(np.diff(problem.node_pool)) + 1).tolist()
    if by_pool:
        edges = [0, *rows[pool_ends].tolist(), gpus]
        step = _spaced(px, _LABEL_PX)
        marks = [
            (foot - count, str(count))
            for top, foot in pairwise(edges)
            for count in range(0, foot - top, step)
        ]
    elif gpus <= GPU_ROWS or nodes == 1:
        marks = [(gpu + 0.5, str(gpu)) for gpu in range(0, gpus, _spaced(px, _LABEL_PX))]
    else:
        middle = ((rows[:-1] + rows[1:]) / 2).tolist()
        marks = [(middle[node], str(node)) for node in range(0, nodes, _spaced(px * gpus / nodes, _LABEL_PX))]
    y, label, border = [at for at, _ in marks], [text for _, text in marks], [0] * len(marks)
    every = _spaced(px * gpus / nodes, _BORDER_PX)
    for node in range(1, nodes):
        if node in pool_ends or (node % every == 0 and not by_pool):
            y.append(int(rows[node]))
            label.append("")
            border.append(2 if node in pool_ends else 1)
    return {"y": y, "label": label, "border": border}


def _spaced(px: float, least: float) -> int:
    """Rows of so many pixels from one label to the next, a power of two."""
    step = 1
    while step * px < least:
        step *= 2
    return step


def gantt_spec(
    problem: "Problem",
    palette: Palette,
    clock: Clock,
    side: str,
    width: int,
    height: int,
    *,
    x_scale: Spec | None = None,
    title: bool = True,
    page_width: int = 0,
    legend: Sequence[str] = STATE_WORDS,
    rows: str = "",
) -> Spec:
    """Layers of a Gantt over the data sets of `gantt_sets`; `gantt_params` must stand at the top of the whole."""
    bars, frame, rows_set = f"{side}_bars", f"{side}_frame", f"{side}_rows"
    scale = x_scale or {"nice": False, "zero": False}
    x = field("x", scale=scale, axis=clock.axis(title=title))
    y = _rows_axis(rows or row_words(problem))
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    empty = {"type": "text", "style": "gp-title", "align": "center", "limit": width}
    centre = {"x": {"value": width / 2}, "y": {"value": height / 2}}
    px = f"(datum.y2 - datum.y) * {height / max(1, int(problem.gpus))}"
    wide = pixels_wide(width, zoomed="domain" in scale)
    edge = {"type": "rule", "clip": True, "strokeWidth": 2, "xOffset": -1}
    edge |= {"stroke": {"expr": INK}, "strokeDash": {"expr": "datum.cut == 2 ? [3, 2] : [1, 0]"}}
    name = {
        **{"type": "text", "align": "left", "baseline": "middle", "dx": 4, "fontSize": 10, "clip": True},
        "limit": {"expr": f"max(1, {wide} - 6)"},
        "fill": {"expr": "datum.ink"},
        "text": {"expr": f"{wide} > 6.3 * length(datum.job) + 8 ? datum.job : ''"},
    }
    middle = [{"filter": f"{px} >= 10 && datum.job && datum.state == 0"}]
    middle.append({"calculate": "(datum.y + datum.y2) / 2", "as": "mid"})
    row = {"type": "text", "style": "gp-row", "align": "right", "x": -6, "clip": False}
    return {
        "width": width,
        "height": height,
        "layer": [
            mark(frame, {"type": "rect", "fill": "transparent"}, {"x": x, "y": y, **ends}),
            mark(
                bars,
                _BAR,
                {"x": x, "y": y, **ends, **_bar_look(palette, page_width or width, legend)},
                name=bars,
            ),
            *_stripe_layers(bars, x, y, height / max(1, int(problem.gpus))),
            mark(
                bars,
                edge,
                {"x": x | {"field": "x2"}, "y": y, "y2": {"field": "y2"}, "opacity": _STANDS_OUT},
                transform=[{"filter": "datum.cut > 0"}],
            ),
            *(
                mark(rows_set, {"type": "rule", "style": style}, {"y": y}, transform=[{"filter": test}])
                for style, test in (
                    ("gp-border-casing", "datum.border == 2"),
                    ("gp-border", "datum.border == 2"),
                )
            ),
            mark(
                rows_set,
                {"type": "rule", "stroke": {"expr": INK}, "strokeWidth": 0.5, "opacity": 0.35},
                {"y": y},
                transform=[{"filter": "datum.border == 1"}],
            ),
            mark(rows_set, row, {"y": y, "text": field("label", "nominal")}),
            mark(bars, name, {"x": x, "y": y | {"field": "mid"}}, transform=middle),
            mark(frame, empty, centre | {"text": field("empty", "nominal")}),
            *titles.heading(frame, width, ("title", "figures", "note"), -6),
        ],
    }


_BAR: Spec = {"type": "rect", "clip": True, "stroke": {"expr": PANE}, "strokeWidth": 0.3}
_BAR |= {
    "fillOpacity": {
        "expr": f"datum.state == {UNALLOCATED} ? {_PALE[UNALLOCATED]} "
        f": datum.state == {PAST_MINIMUM} ? {_PALE[PAST_MINIMUM]} : 1"
    }
}
_STANDS_OUT: Spec = {
    "condition": {"test": {"and": [{"param": "hover"}, {"param": "picked"}]}, "value": 1},
    "value": 0.2,
}


def row_words(problem: "Problem", by_pool: bool = False) -> str:
    """What the rows are."""
    if by_pool:
        return "GPUs" if problem.node_pool[-1] == 0 else "GPUs of each pool"
    by_gpu = problem.gpus <= GPU_ROWS or len(problem.node_gpus) == 1
    return "GPU" if by_gpu else "node (its GPUs below each other)"


def _rows_axis(title: str) -> Spec:
    axis = {
        "title": title,
        "labels": False,
        "ticks": False,
        "grid": False,
        "domain": False,
        "titlePadding": 30,
    }
    return field("y", scale={"reverse": True, "nice": False, "zero": False}, axis=axis)


def _bar_look(palette: Palette, page_width: int, legend: Sequence[str]) -> Spec:
    tips = [
        field("team", "nominal", title="team"),
        field("job", "nominal", title="job"),
        field("gpus", title="GPUs"),
        field("says", "nominal", title="stretch"),
    ]
    scale = team_scale(palette, legend)
    return {
        "fill": field("team", "nominal", scale=scale, legend=team_legend(page_width)),
        "opacity": _STANDS_OUT,
        "tooltip": tips,
    }


def team_scale(palette: Palette, extra: Sequence[str] = ()) -> Spec:
    """Scale from the label of a team (and of what else a legend names) to its colour."""
    looks: dict[str, str | Spec] = {
        name: {"expr": f"state_{state}"} for state, name in enumerate(STATE_WORDS)
    }
    return {
        "domain": [*palette.labels, *extra],
        "range": [*palette.colours, *(looks[name] for name in extra)],
    }


def state_params() -> list[Spec]:
    """Top-level parameters that hold what the legend shows of the states, on the grey of no team."""
    params: list[Spec] = []
    for state in range(len(STATE_WORDS)):
        grey = {IN_REPAIR: REPAIR, PAST_MINIMUM: "#7C8793", UNALLOCATED: "#AEB5BB"}.get(state, "#5E6B78")
        stops = [(0.0, grey)]
        for middle in _STRIPES.get(state, ()):
            first, last = round(middle - 0.08, 2), round(middle + 0.08, 2)
            stops += [(first, grey), (first, "#FFFFFF"), (last, "#FFFFFF"), (last, grey)]
        listed = ",".join(f"{{offset:{offset},color:'{tone}'}}" for offset, tone in [*stops, (1.0, grey)])
        gradient = f"{{gradient:'linear',x1:0,y1:0,x2:0,y2:1,stops:[{listed}]}}"
        params.append({"name": f"state_{state}", "expr": gradient})
    return params


def team_legend(page_width: int) -> Spec:
    """Legend of teams above a chart, in as many columns as fit."""
    return {
        "title": None,
        "orient": "top",
        "direction": "horizontal",
        "columns": max(1, min(5, page_width // _LEGEND_PX)),
        "symbolType": "square",
        "symbolSize": 170,
        "symbolOpacity": 1,
        "symbolStrokeWidth": 0,
        "labelLimit": _LEGEND_PX - 26,
        "rowPadding": 3,
        "offset": 8,
    }


def _stripe_layers(bars: str, x: Spec, y: Spec, px_per_gpu: float) -> list[Spec]:
    """Lines through bars, as marks of their own: Vega has no portable pattern."""
    tall = f"(datum.y2 - datum.y) * {px_per_gpu}"
    least = f"(datum.job ? {_STRIPED_PX} : {_STRIPED_CELL_PX})"
    thick = f"min({_STRIPE_PX}, {_STRIPE_SHARE} * {tall})"
    line = {"type": "rule", "clip": True, "stroke": {"expr": PANE}, "strokeWidth": {"expr": thick}}
    layers = []
    for state, places in _STRIPES.items():
        for place in places:
            transform = [
                {"filter": f"datum.state == {state} && {tall} >= {least}"},
                {"calculate": f"datum.y + (datum.y2 - datum.y) * {place}", "as": "line"},
            ]
            encoding = {"x": x, "x2": {"field": "x2"}, "y": y | {"field": "line"}, "opacity": _STANDS_OUT}
            layers.append(mark(bars, line, encoding, transform=transform))
    return layers


def _describe(run: "Run", drawn: Picture) -> str:
    said = [
        f"Gantt of {heads.policy_name(run)}, {heads.cluster_words(run.problem)}.",
        f"{heads.workload_words(run.problem)}.",
    ]
    said.append(f"{heads.empty_words(run) or drawn.note}.")
    if run.figures["occupancy"] is not None:
        said.append(f"Occupancy {float(run.figures['occupancy']):.1%}.".replace("%", " %"))
    aside = heads.aside_words(run)
    return " ".join([*said, f"{aside}."] if aside else said)
