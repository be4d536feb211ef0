"""Memory of each GPU over time: what is there, stacked by model, and what the scheduler has reserved."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, titles
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import Clock, bin_of, clock_of
from gpuplan.packing.charts.colours import (
    ASLEEP_WORDS,
    FAILED,
    INK,
    KV_WORDS,
    OUT_WORDS,
    PANE,
    RESERVED_WORDS,
    Palette,
    legend_layer,
    look_params,
    palette_of,
)
from gpuplan.packing.charts.memory_data import MemoryPicture, event_columns, memory_picture, panel_columns
from gpuplan.packing.model import GIB
from gpuplan.packing.words import gib

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.packing.run import PackRun

#: GPUs with a panel of their own, changes that are drawn singly, bins of time.
PANELS, EXACT, BINS = 8, 150, 150

#: Pixels of a panel by number of panels, and beside the drawing area.
_HEIGHTS = ((1, 240), (2, 170), (4, 120))
BESIDE = 70

#: Entries of the legend beyond the models.
MEMORY_WORDS = (KV_WORDS, ASLEEP_WORDS, RESERVED_WORDS, OUT_WORDS)


def memory_chart(run: "PackRun", *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Memory of each GPU over time: weights and contexts stacked by model, KV caches on top, reservations as a line.

    Parameters
    ----------
    run
        What is drawn. Beyond 150 changes on a GPU means over bins are drawn, with the most within each; beyond
        8 GPUs neighbours share a panel.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    palette, clock = palette_of(run.problem), clock_of(run)
    drawn = memory_picture(run, palette, panels=PANELS, exact=EXACT, bin_us=bin_of(run.raw.end_us, BINS))
    inner = max(160, width - BESIDE)
    sets = memory_sets(run, drawn, palette, clock, "run")
    n = len(drawn.panels)
    panels = [
        memory_panel(
            palette, clock, "run", number, inner, panel_height(n),
            words=_shown(run, drawn), page_width=width, labels=number == n - 1,
        )
        for number in range(n)
    ]  # fmt: skip
    what = "Filled: weights, contexts and workspaces by model, KV caches on top; dashed: memory of the GPU"
    spec: Spec = {
        "vconcat": panels,
        "spacing": 8,
        "title": titles.head(
            f"{heads.policy_name(run)}: memory of each GPU, reserved and in use (GiB)",
            [*heads.about(run.problem), f"{what}; {drawn.note}.", heads.aside_words(run)],
            width,
        ),
        "params": [*look_params(), *theme.fill_params()],
        "resolve": {"scale": {"fill": "shared"}},
    }
    return offline_chart(spec, sets, mode, describe(run, drawn))


def panel_height(panels: int) -> int:
    """Pixels of a panel where so many stand below each other."""
    return next((height for most, height in _HEIGHTS if panels <= most), 84)


def _shown(run: "PackRun", drawn: MemoryPicture) -> tuple[str, ...]:
    """Entries of the legend: only what the picture holds."""
    there = {
        KV_WORDS: any(panel.kv.any() for panel in drawn.panels),
        ASLEEP_WORDS: any(panel.asleep.any() for panel in drawn.panels),
        RESERVED_WORDS: True,
        OUT_WORDS: len(run.raw.breaches) > 0,
    }
    return tuple(word for word in MEMORY_WORDS if there[word])


def memory_sets(
    run: "PackRun",
    drawn: MemoryPicture,
    palette: Palette,
    clock: Clock,
    side: str,
    span: float = 0.0,
    top: float = 0.0,
) -> dict[str, Columns]:
    """Data sets ``<side>_gpu<k>``, ``<side>_out<k>`` and ``<side>_node<k>`` of each panel.

    `span` (in the unit of the axis) and `top` (GiB) are the least lengths of the axes.
    """
    sets: dict[str, Columns] = {}
    capacity = run.scenario.gpus.memory_bytes / GIB
    for k, panel in enumerate(drawn.panels):
        sets[f"{side}_gpu{k}"] = panel_columns(panel, clock)
        sets[f"{side}_out{k}"] = event_columns(run, panel.first, panel.last, clock)
        sets[f"{side}_node{k}"] = {
            "x": [0],
            "x2": [max(span, clock.of(np.array([run.raw.end_us]))[0])],
            "cap": [round(capacity, 4)],
            "top": [max(top, top_of(drawn))],
            "says": [f"{panel.name}: {gib(run.scenario.gpus.memory_bytes)}"],
            "empty": [heads.empty_words(run) if k == 0 else ""],
        }
    return sets


def top_of(drawn: MemoryPicture) -> float:
    """The most that is reserved or in memory in any panel, GiB: all panels have one scale."""
    most = (max(panel.reserved.max(initial=0), panel.peak.max(initial=0)) for panel in drawn.panels)
    return round(float(max(most)), 2)


def memory_panel(
    palette: Palette,
    clock: Clock,
    side: str,
    number: int,
    width: int,
    height: int,
    *,
    words: tuple[str, ...] = MEMORY_WORDS,
    page_width: int = 0,
    x_scale: Spec | None = None,
    labels: bool = True,
) -> Spec:
    """One panel over the data sets of `memory_sets`; `look_params` must stand at the top of the whole."""
    data, node = f"{side}_gpu{number}", f"{side}_node{number}"
    x = field(
        "x", scale=x_scale or {"nice": False, "zero": False}, axis=clock.axis(title=labels, labels=labels)
    )
    axis = {"title": "GiB", "tickCount": 4, "minExtent": 34, "maxExtent": 34, "format": "~r"}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": False}, axis=axis)

    layers: list[Spec] = [
        mark(node, {"type": "rect", "fill": "transparent"}, {"x": x, "x2": {"field": "x2"}, "y": y("top")})
    ]
    below: Spec = {"datum": 0}
    fills: list[tuple[str, str | Spec]] = [(f"c{g}", colour) for g, colour in enumerate(palette.colours)]
    for name, fill in [*fills, ("a", {"expr": "look_asleep"}), ("k", {"expr": "look_kv_area"})]:
        look = {"type": "area", "fill": fill, "line": False, "clip": True}
        layers.append(mark(data, look, {"x": x, "y": y(name), "y2": below}))
        below = {"field": name}
    rule = {"type": "rule", "stroke": {"expr": INK}, "strokeDash": [5, 3], "strokeWidth": 1.2}
    line = {"type": "line", "strokeWidth": 1.8, "stroke": {"expr": INK}, "clip": True}
    casing = line | {"strokeWidth": 3.6, "stroke": {"expr": PANE}, "strokeOpacity": 0.6}
    most = {"type": "line", "strokeWidth": 1, "strokeDash": [1, 2], "stroke": {"expr": INK}, "clip": True}
    text = {
        "type": "text",
        "style": "gp-note",
        "align": "left",
        "x": 0,
        "y": -7,
        "clip": False,
        "limit": width,
    }
    middle = {"type": "text", "style": "gp-title", "align": "center", "limit": width, "x": width / 2}
    pane = {"type": "rect", "fill": "transparent", "tooltip": {"expr": _says(palette, clock)}}
    layers += [
        mark(node, rule, {"y": y("cap")}),
        mark(data, most, {"x": x, "y": y("p")}),
        mark(data, casing, {"x": x, "y": y("r")}),
        mark(data, line, {"x": x, "y": y("r")}),
        mark(node, text, {"text": field("says", "nominal")}),
        mark(node, middle | {"y": height / 2}, {"text": field("empty", "nominal")}),
        mark(
            data, pane, {"x": x, "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}}, name=data
        ),
        *_events(side, number, x),
    ]
    if page_width:
        layers.append(legend_layer(palette, page_width, words))
    return {"width": width, "height": height, "layer": layers}


def _events(side: str, number: int, x: Spec) -> list[Spec]:
    """Triangles that point at out-of-memory events, on the upper edge of a panel."""
    look = {
        "type": "point",
        "shape": "triangle-down",
        "filled": True,
        "size": 90,
        "opacity": 1,
        "clip": False,
    }
    look |= {"fill": FAILED, "stroke": {"expr": PANE}, "strokeWidth": 0.8, "y": 4}
    return [mark(f"{side}_out{number}", look, {"x": x, "tooltip": field("says", "nominal", title="event")})]


def _says(palette: Palette, clock: Clock) -> str:
    """Tooltip of a stretch: GiB of each model, names as literals."""
    entries = [f"'from': format(datum.x, ',.3~f') + ' {clock.unit}'"]
    top = "0"
    for name, label in [
        *((f"c{g}", label) for g, label in enumerate(palette.labels)),
        ("a", "left asleep"),
        ("k", "KV caches"),
    ]:
        entries.append(f"{titles.literal(label)}: format(datum.{name} - {top}, '.2f') + ' GiB'")
        top = f"datum.{name}"
    entries.append("'reserved': format(datum.r, '.2f') + ' GiB'")
    entries.append("'most in memory': format(datum.p, '.2f') + ' GiB'")
    return "{" + ", ".join(entries) + "}"


def describe(run: "PackRun", drawn: MemoryPicture) -> str:
    """The memory of a run in words."""
    found = run.figures
    shares = ", ".join(
        f"{word} {found[f'{word}_mean']:.1%}" for word in ("reserved", "actual", "useful")
        if found[f"{word}_mean"] is not None
    )  # fmt: skip
    peak = max(float(panel.peak.max(initial=0)) for panel in drawn.panels)
    return (
        f"Memory of {heads.node_words(run.scenario)} under {heads.policy_name(run)}; "
        f"{heads.contention_words(run.scenario)}. On average {shares or 'nothing'} of it; at most {peak:.2f} GiB of a "
        f"GPU in use; {found['out_of_memory']:,} times out of memory. {heads.empty_words(run)}"
    ).strip()
