"""The Gantt of a run: GPUs downwards with a lane per task at once, time to the right, a hue per model."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, pixels_wide, titles
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import Clock, clock_of
from gpuplan.packing.charts.colours import (
    FAILED,
    FAILED_WORDS,
    INK,
    PANE,
    STAGE_LETTERS,
    STAGE_WORDS,
    Palette,
    legend,
    look_params,
    model_scale,
    palette_of,
)
from gpuplan.packing.charts.gantt_data import Picture, picture
from gpuplan.packing.raw import RUN

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.packing.run import PackRun

#: Pixels of a lane at least and at most, of the whole at most, of a row of cells, and beside the drawing area.
_LANE_PX, _MOST_PX, _CELL_PX, BESIDE = (5, 17), 560, (34, 110), 76

#: A bar lower than this (pixels) gets no letter.
_TEXT_PX = 9

#: Entries of the legend beyond the models.
GANTT_WORDS = (*STAGE_WORDS, FAILED_WORDS)


def gantt_chart(
    run: "PackRun", *, width: int = 980, height: int = 0, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Gantt of a run: which task was on which GPU, and whether it loaded, ran, was saved or restored.

    Parameters
    ----------
    run
        What is drawn. Beyond 2,500 stages it is drawn as exact mean numbers of tasks per GPU and bin of time.
    width, height
        Pixels of the whole, and of the drawing area (0: what suits the lanes).
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    palette, clock = palette_of(run.problem), clock_of(run)
    drawn = picture(run, palette, clock)
    inner, height = max(160, width - BESIDE), height or rows_height(drawn)
    spec = gantt_spec(
        palette, clock, "run", inner, height, words=_shown(run, drawn), page_width=width,
        joins=heads.has_wide(run.scenario),
    )  # fmt: skip
    spec["title"] = titles.head(
        f"{heads.policy_name(run)}: which task was on which GPU",
        [*heads.about(run.problem), drawn.note if drawn.bars["x"] else "", heads.aside_words(run)],
        width,
    )
    spec["params"] = [*gantt_params(["run_bars"]), *look_params(), *theme.fill_params()]
    return offline_chart(spec, gantt_sets(run, drawn, clock, "run", height), mode, describe(run, drawn))


def rows_height(drawn: Picture) -> int:
    """Pixels of the drawing area."""
    n = len(drawn.rows)
    least, most = _LANE_PX if drawn.single else _CELL_PX
    lanes = n * drawn.lanes
    return max(40, lanes * max(least, min(most, _MOST_PX // lanes)))


def _shown(run: "PackRun", drawn: Picture) -> tuple[str, ...]:
    """Entries of the legend: only what the picture holds."""
    stages = set(drawn.bars["stage"])
    words = tuple(word for code, word in enumerate(STAGE_WORDS) if code in stages)
    return (*words, FAILED_WORDS) if len(run.raw.breaches) else words


def gantt_params(views: list[str]) -> list[Spec]:
    """Selections: the task under the pointer, and a model picked in the legend."""
    pointed = {"type": "point", "fields": ["task"], "on": "pointerover", "clear": "pointerout"}
    picked = {"type": "point", "fields": ["model"]}
    return [
        {"name": "hover", "select": pointed, "views": views},
        {"name": "picked", "select": picked, "bind": "legend", "views": views},
    ]


def gantt_sets(
    run: "PackRun", drawn: Picture, clock: Clock, side: str, height: int, span: float = 0.0
) -> dict[str, Columns]:
    """Data sets ``<side>_bars``, ``<side>_failures``, ``<side>_frame`` and ``<side>_rows``.

    Where models are spread over several GPUs also ``<side>_joins``.
    """
    top = len(drawn.rows) * drawn.lanes
    px = height / top
    bars = drawn.bars
    tall = [
        int((b - a) * px >= _TEXT_PX and drawn.single) for a, b in zip(bars["y"], bars["y2"], strict=True)
    ]
    bars = {**bars, "tall": tall}
    bars.setdefault("task", [""] * len(tall))
    bars.setdefault("says", [f"{n:g} tasks on average" for n in bars.get("tasks", ())])
    bars.setdefault("ink", [""] * len(tall))
    bars.pop("tasks", None)
    length = max(span, clock.of(np.array([max(1, run.raw.end_us)]))[0])
    bars["span"] = [length] * len(tall)
    every = max(1, int(np.ceil(13 / (px * drawn.lanes))))
    rows: Columns = {"y": [], "label": [], "border": []}
    for number, (low, high) in enumerate(drawn.rows):
        rows["y"].append((number + 0.5) * drawn.lanes)
        name = str(low) if low == high else f"{low}–{high}"
        rows["label"].append(name if number % every == 0 else "")
        rows["border"].append(0)
        if number:
            rows["y"].append(number * drawn.lanes)
            rows["label"].append("")
            rows["border"].append(1)
    frame: Columns = {
        "x": [0],
        "x2": [length],
        "y": [0],
        "y2": [top],
        "empty": [heads.empty_words(run)],
    }
    joins = {f"{side}_joins": drawn.joins} if heads.has_wide(run.scenario) else {}
    return {
        f"{side}_bars": bars,
        f"{side}_failures": drawn.failures,
        f"{side}_frame": frame,
        f"{side}_rows": rows,
        **joins,
    }


def gantt_spec(
    palette: Palette,
    clock: Clock,
    side: str,
    width: int,
    height: int,
    *,
    words: tuple[str, ...] = GANTT_WORDS,
    page_width: int = 0,
    x_scale: Spec | None = None,
    title: bool = True,
    joins: bool = False,
) -> Spec:
    """Layers of a Gantt over the data sets of `gantt_sets`.

    `gantt_params` and `look_params` must stand at the top of the whole. `joins`: bars of one task on several GPUs are
    joined by a line.
    """
    bars, frame, rows = f"{side}_bars", f"{side}_frame", f"{side}_rows"
    scale = x_scale or {"nice": False, "zero": False}
    x = field("x", scale=scale, axis=clock.axis(title=title))
    wide = pixels_wide(width, zoomed="domain" in scale)
    axis = {
        "title": "GPU",
        "labels": False,
        "ticks": False,
        "grid": False,
        "domain": False,
        "titlePadding": 34,
    }
    y = field("y", scale={"reverse": True, "nice": False, "zero": True}, axis=axis)
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    key = legend(page_width or width) if page_width else None
    tips = [
        field("model", "nominal"),
        field("task", "nominal"),
        field("says", "nominal", title="stage"),
    ]
    fill = field("model", "nominal", scale=model_scale(palette, words), legend=key)
    row = {"type": "text", "style": "gp-row", "align": "right", "x": -6, "clip": False}
    empty = {"type": "text", "style": "gp-title", "align": "center", "limit": width}
    border = {"type": "rule", "stroke": {"expr": INK}, "strokeWidth": 1}
    cross = {"type": "point", "shape": "cross", "angle": 45, "filled": True, "size": 80, "opacity": 1}
    cross |= {"fill": FAILED, "stroke": {"expr": PANE}, "strokeWidth": 0.8, "clip": False}
    return {
        "width": width,
        "height": height,
        "layer": [
            mark(frame, {"type": "rect", "fill": "transparent"}, {"x": x, "y": y, **ends}),
            mark(
                bars,
                _BAR,
                {"x": x, "y": y, **ends, "fill": fill, "opacity": _STANDS_OUT, "tooltip": tips},
                name=bars,
            ),
            *_veils(bars, x, y, ends, wide),
            mark(rows, border, {"y": y}, transform=[{"filter": "datum.border == 1"}]),
            mark(rows, row, {"y": y, "text": field("label", "nominal")}),
            *_letters(bars, x, y, wide),
            *(_joined(f"{side}_joins", x, y) if joins else ()),
            mark(
                f"{side}_failures",
                cross,
                {"x": x, "y": y, "tooltip": field("says", "nominal", title="failure")},
            ),
            mark(
                frame,
                empty,
                {"x": {"value": width / 2}, "y": {"value": height / 2}, "text": field("empty", "nominal")},
            ),
        ],
    }


_BAR: Spec = {"type": "rect", "clip": True, "stroke": {"expr": PANE}, "strokeWidth": 0.4}
_STANDS_OUT: Spec = {
    "condition": {"test": {"and": [{"param": "hover"}, {"param": "picked"}]}, "value": 1},
    "value": 0.2,
}


def _joined(data: str, x: Spec, y: Spec) -> list[Spec]:
    """A line with a dot on each bar of a task that is on several GPUs, where they begin."""
    line: Spec = {"type": "rule", "xOffset": 3, "clip": True, "tooltip": None}
    dot: Spec = {
        "type": "point",
        "shape": "circle",
        "xOffset": 3,
        "filled": True,
        "clip": True,
        "tooltip": None,
    }
    at = {"x": x, "y": y, "opacity": _STANDS_OUT}
    between = at | {"y2": {"field": "y2"}}
    ink, pane = {"expr": INK}, {"expr": PANE}
    return [
        mark(data, line | {"stroke": pane, "strokeWidth": 4.5}, between),
        mark(data, dot | {"fill": pane, "size": 60}, at),
        mark(data, line | {"stroke": ink, "strokeWidth": 1.6}, between),
        mark(data, dot | {"fill": ink, "size": 22}, at),
    ]


def _veils(bars: str, x: Spec, y: Spec, ends: Spec, wide: str) -> list[Spec]:
    """The pattern of each stage but running, laid over its bars."""
    found = []
    for code, name in ((0, "load"), (2, "save"), (3, "restore")):
        veil = f"veil_{name}"
        if name == "load":
            veil = f"{wide} > 100 ? veil_load_long : veil_load"
        look = {"type": "rect", "clip": True, "fill": {"expr": veil}, "tooltip": None}
        layer = mark(bars, look, {"x": x, "y": y, **ends}, transform=[{"filter": f"datum.stage == {code}"}])
        found.append(layer)
    return found


def _letters(bars: str, x: Spec, y: Spec, wide: str) -> list[Spec]:
    """The letter of a stage where it fits, and the number of the task where there is room for it."""
    letters = "[" + ",".join(f"'{letter}'" for letter in STAGE_LETTERS) + "][datum.stage]"
    aside = "(datum.joined == 1 ? 11 : 3)"  # to the right of where it is joined
    least = f"(datum.stage == 3 ? 13 : 8) + {aside}"
    both = f"{letters} + ' ' + datum.task"
    text = f"{wide} < {least} ? '' : {wide} < 6 * length({both}) + {aside} ? {letters} : {both}"
    look = {
        **{"type": "text", "align": "left", "baseline": "middle", "fontSize": 9, "clip": True},
        "dx": {"expr": aside},
        "limit": {"expr": f"max(1, {wide} - {aside} - 1)"},
        # On a veil the ink is that of the page.
        "fill": {"expr": f"datum.stage == {RUN} ? datum.ink : ({INK})"},
        "text": {"expr": text},
    }
    middle = [
        {"filter": "datum.tall == 1"},
        {"calculate": "(datum.y + datum.y2) / 2", "as": "mid"},
    ]
    at = {"x": x, "y": y | {"field": "mid"}}
    # A halo as a mark of its own: Vega strokes a letter after it has filled it.
    halo = look | {"stroke": {"expr": PANE}, "strokeWidth": 4, "strokeJoin": "round", "fill": {"expr": PANE}}
    veiled = [{"filter": f"datum.stage != {RUN}"}, *middle]
    return [mark(bars, halo, at, transform=veiled), mark(bars, look, at, transform=middle)]


def describe(run: "PackRun", drawn: Picture) -> str:
    """The Gantt in words."""
    said = [
        f"Gantt of {heads.policy_name(run)}, {heads.node_words(run.scenario)}.",
        f"{heads.workload_words(run.problem)}.",
        f"{heads.contention_words(run.scenario)}.",
        f"{heads.empty_words(run) or drawn.note}.",
    ]
    if run.figures["latency_mean_s"] is not None:
        latency, queue = run.figures["latency_mean_s"], run.figures["queue_mean_s"]
        said.append(f"Of the tasks done, mean latency {latency:.1f} s, of which queue {queue:.1f} s.")
    aside = heads.aside_words(run)
    return " ".join([*said, f"{aside}."] if aside else said)
