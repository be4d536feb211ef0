"""What still fits: unreserved memory over time, the largest model that it takes, and what is fragmented."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, safe_text, titles
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import Clock, bin_of, clock_of, edges_of, words
from gpuplan.packing.charts.colours import INK, PANE
from gpuplan.packing.model import GIB, SECOND, Floats, Int64
from gpuplan.packing.progress import distinct

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.run import PackRun

#: Changes that are drawn singly, and bins of time beyond them.
EXACT, BINS = 300, 240

#: Pixels of the panels, beside them, and to the right of them for names of models; between two names.
_FREE_PX, _FIT_PX, _BESIDE, _NAMES_PX, _NAME_GAP_PX = 130, 220, 70, 190, 13

USABLE, FRAGMENTED = "#56B4E9", "#D55E00"
_LINE = "dark ? '#56B4E9' : '#0072B2'"
_WORDS = ("fits a model drawn by popularity (plain)", "fragmented: too little for it (lined)")


def fit_chart(run: "PackRun", *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """The largest unreserved memory of a GPU against what each model needs, and how much of it all is fragmented.

    Parameters
    ----------
    run
        What is drawn; beyond 300 changes of reservations, means over bins with the least and the most in each.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    clock = clock_of(run)
    inner = max(160, width - _BESIDE - _NAMES_PX)
    columns, bin_us = free_columns(run, clock)
    how = (
        "every change"
        if bin_us == 0
        else f"means over {words(bin_us / SECOND)}, band: least and most within it"
    )
    spec: Spec = {
        "vconcat": [
            largest_panel("run", clock, inner, _FIT_PX, labels=False, names=True),
            fragment_panel("run", clock, inner, _FREE_PX),
        ],
        "spacing": 12,
        "title": titles.head(
            f"{heads.policy_name(run)}: what still fits without an eviction (GiB, unreserved memory)",
            [
                *heads.about(run.problem),
                f"Line: the largest unreserved memory of one GPU ({how}); rules: what the scheduler reserves for each "
                "model. The highest rule below the line is the largest model that fits.",
                heads.aside_words(run),
            ],
            width - 60,
        ),
        "params": [*fragment_params(), *theme.fill_params()],
        "resolve": {"scale": {"fill": "shared"}},
    }
    sets = fit_sets(run, columns, clock, "run", _FIT_PX)
    return offline_chart(spec, sets, mode, describe_fit(run))


def free_columns(
    run: "PackRun", clock: Clock, exact: int = EXACT, bin_us: int | None = None
) -> tuple[Columns, int]:
    """Columns over time, GiB, and the length of bins (0: every change, where they are at most `exact`).

    ``x, x2``, and the levels of `free_levels`; two rows per stretch, with straight lines between them.
    """
    time_us, levels, bin_us = free_levels(run, exact, bin_us)
    x = clock.of(np.stack([time_us[:-1], time_us[1:]], 1).ravel())
    columns: Columns = {"x": x, "x2": [*x[1:], x[-1]]}
    for name, found in levels.items():
        columns[name] = np.round(np.repeat(found, 2) / GIB, 3).tolist()
    return columns, bin_us


def free_levels(run: "PackRun", exact: int, bin_us: int | None) -> tuple[Int64, dict[str, Floats], int]:
    """Unreserved memory over time: instants (the end of the run last), bytes from each to the next, length of bins.

    ``free`` (the largest of one GPU), ``low, high`` (least and most of it in a bin), ``usable`` and ``all``: of the
    whole node, what fits a model drawn by popularity, and all.
    """
    memory = run.memory
    when, free = memory.free_over_time()
    end_us = max(1, run.raw.end_us)
    each = np.maximum(np.array(free), 0).astype(float)
    largest, total = each.max(axis=0), each.sum(axis=0)
    usable = total - sum(memory.fragments(of_gpu) for of_gpu in free)
    if len(when) <= exact:
        levels = {"free": largest, "low": largest, "high": largest, "usable": usable, "all": total}
        return np.append(when, end_us), levels, 0
    bin_us = bin_of(end_us, BINS) if bin_us is None else bin_us
    edges = edges_of(end_us, bin_us)
    mean, low, high = _binned(when, largest, edges)
    usable, total = (_binned(when, level, edges)[0] for level in (usable, total))
    return edges, {"free": mean, "low": low, "high": high, "usable": usable, "all": total}, bin_us


def _binned(when: Int64, level: Floats, edges: Int64) -> tuple[Floats, Floats, Floats]:
    """Mean, least and most over bins of a level that holds from instants on (0 first)."""
    t = distinct(np.concatenate([when, edges[:-1]]))
    values = level[np.searchsorted(when, t, "right") - 1]
    at = np.searchsorted(t, edges[:-1])
    length = np.diff(np.append(t, edges[-1]))
    mean = np.add.reduceat(values * length, at) / np.diff(edges)
    return mean, np.minimum.reduceat(values, at), np.maximum.reduceat(values, at)


def need_columns(problem: "Problem", height: int) -> Columns:
    """What the scheduler reserves for each model: ``need`` (GiB), ``label``, ``at`` (GiB: where its name stands).

    Models of equal needs share a rule; names keep clear of each other.
    """
    needs = problem.needed / GIB
    top = problem.scenario.gpus.memory_bytes / GIB
    gap = _NAME_GAP_PX * top / height
    columns: Columns = {"need": [], "label": [], "at": []}
    for need in np.unique(np.round(needs, 4))[::-1].tolist():
        mine = np.flatnonzero(np.round(needs, 4) == need).tolist()
        name = safe_text(problem.scenario.models[mine[0]].name, 40)
        label = name if len(mine) == 1 else f"{name} and {len(mine) - 1:,} more"
        columns["need"].append(need)
        columns["label"].append(f"{label} ({need:.4g})")
        columns["at"].append(need)
    # names are pushed down from above, and those that would leave the panel are not written
    place = top + gap
    for k, need in enumerate(columns["need"]):
        place = min(need, place - gap)
        fits = place >= 0 and need <= top
        columns["at"][k] = round(place, 4) if fits else 0.0
        if not fits:
            columns["label"][k] = ""
    return columns


def fit_sets(
    run: "PackRun", columns: Columns, clock: Clock, side: str, height: int, span: float = 0.0
) -> dict[str, Columns]:
    """Data sets ``<side>_free``, ``<side>_needs`` and ``<side>_fit`` (the frame)."""
    gpus = run.scenario.gpus
    return {
        f"{side}_free": columns,
        f"{side}_needs": need_columns(run.problem, height),
        f"{side}_fit": {
            "x": [0],
            "x2": [max(span, clock.of(np.array([max(1, run.raw.end_us)]))[0])],
            "cap": [round(gpus.memory_bytes / GIB, 4)],
            "node": [round(gpus.count * gpus.memory_bytes / GIB, 4)],
            "empty": [heads.empty_words(run)],
        },
    }


def largest_panel(
    side: str, clock: Clock, width: int, height: int, *, labels: bool = True, names: bool = False,
    x_scale: Spec | None = None, title: str = "GiB",
) -> Spec:  # fmt: skip
    """The largest unreserved memory of a GPU, with rules at the needs of models."""
    data, needs, frame = f"{side}_free", f"{side}_needs", f"{side}_fit"
    x = field(
        "x", scale=x_scale or {"nice": False, "zero": False}, axis=clock.axis(title=labels, labels=labels)
    )
    axis = {"title": title, "tickCount": 4, "minExtent": 34, "maxExtent": 34, "format": "~r"}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": False}, axis=axis)

    rule = {
        "type": "rule",
        "strokeWidth": 1,
        "strokeDash": [2, 3],
        "stroke": {"expr": INK},
        "strokeOpacity": 0.55,
    }
    line = {"type": "line", "strokeWidth": 2, "stroke": {"expr": _LINE}, "clip": True}
    casing = line | {"strokeWidth": 4, "stroke": {"expr": PANE}, "strokeOpacity": 0.7}
    text = {
        "type": "text",
        "style": "gp-note",
        "align": "left",
        "fontSize": 10,
        "clip": False,
        "x": width + 6,
    }
    middle = {"type": "text", "style": "gp-title", "align": "center", "limit": width}
    tips = [
        field("x", title=f"from ({clock.unit})", format=",.3~f"),
        *(
            field(name, title=f"{said} (GiB)", format=".2f")
            for name, said in (("free", "largest unreserved"), ("low", "least"), ("high", "most"))
        ),
    ]
    layers = [
        mark(frame, {"type": "rect", "fill": "transparent"}, {"x": x, "x2": {"field": "x2"}, "y": y("cap")}),
        mark(needs, rule, {"y": y("need")}),
        mark(
            data,
            {"type": "area", "fill": {"expr": _LINE}, "fillOpacity": 0.22, "clip": True},
            {"x": x, "y": y("low"), "y2": {"field": "high"}},
        ),
        mark(data, casing, {"x": x, "y": y("free")}),
        mark(data, line, {"x": x, "y": y("free")}),
        mark(frame, middle | {"x": width / 2, "y": height / 2}, {"text": field("empty", "nominal")}),
        mark(
            data,
            {"type": "rect", "fill": "transparent"},
            {"x": x, "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}, "tooltip": tips},
        ),
    ]
    if names:
        layers.append(
            mark(needs, text | {"limit": _NAMES_PX - 8}, {"y": y("at"), "text": field("label", "nominal")})
        )
    said = "largest unreserved memory of one GPU; dotted: what each model needs"
    return {"width": width, "height": height, "title": titles.panel_title(said, width), "layer": layers}


def fragment_panel(side: str, clock: Clock, width: int, height: int, x_scale: Spec | None = None) -> Spec:
    """Unreserved memory of the whole node: what a model drawn by popularity can use, and what it cannot."""
    data, frame = f"{side}_free", f"{side}_fit"
    x = field("x", scale=x_scale or {"nice": False, "zero": False}, axis=clock.axis())
    axis = {"title": "GiB", "tickCount": 4, "minExtent": 34, "maxExtent": 34, "format": "~r"}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": False}, axis=axis)

    legend = {
        "title": None,
        "orient": "top",
        "symbolType": "square",
        "symbolSize": 170,
        "symbolStrokeWidth": 0,
    }
    legend |= {"labelLimit": 360, "symbolOpacity": 1}
    scale = {"domain": list(_WORDS), "range": [USABLE, {"expr": "fragmented"}]}
    fill = field("what", "nominal", scale=scale, legend=legend)
    tips = [
        field("x", title=f"from ({clock.unit})", format=",.3~f"),
        field("usable", title="usable (GiB)", format=".2f"),
        field("all", title="unreserved (GiB)", format=".2f"),
    ]
    lined = {"type": "area", "fill": {"expr": "fragmented_area"}, "clip": True}
    said = "unreserved memory of all GPUs together, as high as all their memory"
    return {
        "width": width,
        "height": height,
        "title": titles.panel_title(said, width),
        "layer": [
            mark(
                frame,
                {"type": "rect", "fill": "transparent"},
                {"x": x, "x2": {"field": "x2"}, "y": y("node")},
            ),
            mark(
                data,
                {"type": "area", "fill": USABLE, "clip": True},
                {"x": x, "y": y("usable"), "y2": {"datum": 0}},
            ),
            mark(data, lined, {"x": x, "y": y("all"), "y2": {"field": "usable"}}),
            mark(
                data,
                {"type": "rect", "fill": "transparent"},
                {"x": x, "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}, "tooltip": tips},
            ),
            {
                "data": {"values": [{"what": word} for word in _WORDS]},
                "mark": {"type": "point", "opacity": 0, "strokeWidth": 0},
                "encoding": {"fill": fill},
            },
        ],
    }


def fragment_params() -> list[Spec]:
    """Top-level parameters with the pattern of what is fragmented."""
    params = []
    for name, count in (("fragmented", 3), ("fragmented_area", 16)):
        stops = [(0.0, FRAGMENTED)]
        for k in range(count):
            a, b = round((k + 0.35) / count, 3), round((k + 0.65) / count, 3)
            stops += [(a, FRAGMENTED), (a, "#F6C9AE"), (b, "#F6C9AE"), (b, FRAGMENTED)]
        told = ",".join(f"{{offset:{at},color:'{tone}'}}" for at, tone in [*stops, (1.0, FRAGMENTED)])
        params.append({"name": name, "expr": f"{{gradient:'linear',x1:0,y1:0,x2:0,y2:1,stops:[{told}]}}"})
    return params


def describe_fit(run: "PackRun") -> str:
    """What still fits in words."""
    found = run.figures
    largest, share = found["largest_free_gib"], found["fragmentation"]
    if largest is None or share is None:
        return f"What still fits on {heads.node_words(run.scenario)}: the run has no length."
    return (
        f"What still fits on {heads.node_words(run.scenario)} under {heads.policy_name(run)}; "
        f"{heads.contention_words(run.scenario)}. On average the largest unreserved memory of a GPU is {largest:.2f} "
        f"GiB; {share:.1%} of all memory is unreserved but too little for a model drawn by popularity."
    )
