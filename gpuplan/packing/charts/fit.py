"""What still fits: unreserved memory over time, the largest model that it takes, and what is fragmented."""

from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.gantt import Spec, field, mark, titles
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import Clock, clock_of, words
from gpuplan.packing.charts.colours import INK, PANE
from gpuplan.packing.charts.fit_data import fit_sets, free_columns
from gpuplan.packing.model import SECOND

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.packing.run import PackRun

#: Pixels of the panels, beside them, and to the right of them for names of models.
_FREE_PX, _FIT_PX, _BESIDE, _NAMES_PX = 130, 220, 70, 190

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
    wide = heads.has_wide(run.scenario)
    how += "; dashed: of several GPUs each, for models over as many" if wide else ""
    spec: Spec = {
        "vconcat": [
            largest_panel("run", clock, inner, _FIT_PX, labels=False, names=True, wide=wide),
            fragment_panel("run", clock, inner, _FREE_PX),
        ],
        "spacing": 12,
        "title": titles.head(
            f"{heads.policy_name(run)}: what still fits without an eviction (GiB, unreserved memory)",
            [
                *heads.about(run.problem),
                f"Line: the largest unreserved memory of one GPU ({how}); rules: what the scheduler reserves for "
                f"each model. The highest rule below {'its' if wide else 'the'} line is the largest model that fits.",
                heads.aside_words(run),
            ],
            width - 60,
        ),
        "params": [*fragment_params(), *theme.fill_params()],
        "resolve": {"scale": {"fill": "shared"}},
    }
    sets = fit_sets(run, columns, clock, "run", _FIT_PX)
    return offline_chart(spec, sets, mode, describe_fit(run))


def largest_panel(
    side: str, clock: Clock, width: int, height: int, *, labels: bool = True, names: bool = False,
    x_scale: Spec | None = None, title: str = "GiB", wide: bool = False,
) -> Spec:  # fmt: skip
    """The largest unreserved memory of a GPU, with rules at the needs of models.

    `wide`: with lines for what several GPUs have each, as models are spread over them.
    """
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
        mark(needs, rule, {"y": y("need"), **({"strokeDash": _DASHED} if wide else {})}),
        mark(
            data,
            {"type": "area", "fill": {"expr": _LINE}, "fillOpacity": 0.22, "clip": True},
            {"x": x, "y": y("low"), "y2": {"field": "high"}},
        ),
        mark(data, casing, {"x": x, "y": y("free")}),
        mark(data, line, {"x": x, "y": y("free")}),
        *(_wide_lines(f"{side}_wide", line, text, {"x": x, "y": y("free")}) if wide else ()),
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
    if wide:
        said = "largest unreserved memory of a GPU; dashed: of several, each"
    return {"width": width, "height": height, "title": titles.panel_title(said, width), "layer": layers}


#: Rules at the needs of models over several GPUs are dashed like the line that they are compared with.
_DASHED: Spec = {"condition": {"test": "datum.over > 1", "value": [7, 4]}, "value": [2, 3]}


def _wide_lines(data: str, line: Spec, text: Spec, at: Spec) -> list[Spec]:
    """A dashed line for each number of GPUs, with its name at its end."""
    each = {"detail": field("over", "nominal")}
    name = text | {"align": "right", "baseline": "bottom", "dx": -4, "dy": -2}
    del name["x"]
    return [
        mark(data, line | {"strokeWidth": 4, "stroke": {"expr": PANE}, "strokeOpacity": 0.7}, at | each),
        mark(data, line | {"strokeDash": [7, 4]}, at | each),
        mark(data, name, at | {"text": field("label", "nominal")}),
    ]


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
