"""The live page: one linked spec for a cluster and its teams, and the data of two runs for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts import allocation, bars, gantt, heads, waits
from gpuplan.fairshare.charts.account import Account, account, account_columns, ratio_columns, stack_columns
from gpuplan.fairshare.charts.clock import Clock, words
from gpuplan.fairshare.charts.colours import Palette, palette_of
from gpuplan.fairshare.charts.gantt_data import STATE_WORDS
from gpuplan.fairshare.charts.gantt_data import picture as drawn_of
from gpuplan.fairshare.model import NEVER
from gpuplan.gantt import SCHEMA, Columns, Spec, field, mark, titles

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.run import Run

Layout = Literal["side", "stacked"]
Picture = Literal["auto", "gantt", "areas"]

#: Names of the data sets of the two sides, and of their policies in charts that show both.
SIDES = ("left", "right")

#: Bins of time, points of a curve, bars and cells of a Gantt: a payload stays below 200 KB.
BINS, POINTS, BARS, CELLS = 90, 120, 400, 500

#: Up to so many GPUs the page has a Gantt above its areas.
GANTT_GPUS = 64

#: Pixels of the areas, of a team, of the ratios, of the waits; beside a drawing area.
_AREAS_PX, _RATIO_PX, _WAITS_PX, _BESIDE, _NAMES_PX = 130, 120, 170, 70, 96

INK = "dark ? '#F2F2F2' : '#1A1A1A'"


def live_spec(
    problem: "Problem", *, width: int = 980, layout: Layout = "side", picture: Picture = "auto"
) -> dict[str, Any]:
    """Vega-Lite spec of the live page, without data.

    It depends on the cluster, the names of the teams, the unit of time and on whether budgets change only, so a change
    of shares, window or policy gives an equal dict. Data sets are named; `live_data` makes them.

    Parameters
    ----------
    problem
        Whose teams and cluster are drawn.
    width
        Pixels of the whole page.
    layout
        ``"side"``: the policies beside each other; ``"stacked"``: below each other.
    picture
        ``"gantt"`` adds the Gantt above the areas, ``"areas"`` does without, ``"auto"`` decides by the number of GPUs.
    """
    palette, clock, inner = palette_of(problem), live_clock(problem), _inner(width, layout)
    zoom = {"nice": False, "zero": False, "domain": {"param": "brush", "encoding": "x"}}
    rows: list[list[Spec]] = []
    views = [f"{side}_areas" for side in SIDES]
    params = [{"name": "brush", "select": {"type": "interval", "encodings": ["x"]}, "views": views}]
    # One scale for the Gantts and the areas, and so one legend.
    states = STATE_WORDS if has_gantt(problem, picture) else ()
    if states:
        height = gantt.rows_height(problem)
        rows.append(
            [
                gantt.gantt_spec(
                    problem, palette, clock, side, inner, height, x_scale=zoom, page_width=width, rows="GPUs"
                )
                for side in SIDES
            ]
        )
        params += gantt.gantt_params([f"{side}_bars" for side in SIDES])
    rows.append([_areas_panel(palette, clock, side, inner, width, states) for side in SIDES])
    tall = 44 if len(palette) <= 6 else 28
    changes = len(problem.epochs) > 1
    columns = [
        allocation.team_panels(palette, clock, side, inner, tall, zoom, changes=changes) for side in SIDES
    ]
    rows += [list(row) for row in zip(*columns, strict=True)]
    title = "ratio that sorts the queue under fair-share"
    rows.append(
        [
            allocation.ratio_panel(palette, clock, side, inner, title, _RATIO_PX, zoom, changes=changes)
            for side in SIDES
        ]
    )
    cells = [cell for row in rows for cell in row]
    if layout == "stacked":
        cells = [row[place] for place in range(len(SIDES)) for row in rows]
    grid: Spec = {"concat": cells, "columns": len(SIDES) if layout == "side" else 1}
    grid |= {"spacing": {"row": 6, "column": 22}, "resolve": {"scale": {"fill": "shared"}}}
    curves = [
        waits.curve_panel("waits", SIDES, inner, "% of all jobs that started within", _WAITS_PX),
        waits.curve_panel("debug_waits", SIDES, inner, "% of debug jobs that started within", _WAITS_PX),
    ]
    height = bars.bars_height(len(palette), len(SIDES))
    narrow = max(150, inner - _NAMES_PX)
    ends = [
        bars.share_panel("delivered", SIDES, narrow, height, "delivered / owed over the whole run"),
        bars.pyramid_panel("pyramid", SIDES, narrow),
    ]
    each: Spec = {"columns": grid["columns"], "spacing": {"row": 12, "column": 30}}
    return {
        "$schema": SCHEMA,
        "params": [*params, *gantt.state_params(), *theme.fill_params()],
        "vconcat": [
            grid,
            each | {"concat": curves, "resolve": waits.LEGENDS},
            each | {"concat": ends, "resolve": {"scale": {"fill": "shared"}}},
        ],
        "spacing": 16,
        "resolve": {"scale": dict.fromkeys(("fill", "stroke", "strokeDash", "yOffset"), "independent")},
    }


def live_data(
    left: "Run",
    right: "Run",
    *,
    width: int = 980,
    layout: Layout = "side",
    picture: Picture = "auto",
) -> dict[str, Columns]:
    """Data sets of the live page for two runs with one cluster and equal teams, as dicts of columns.

    `picture` must be that of the spec. Everything over time is an exact mean over at most 90 bins.
    """
    runs = (left, right)
    problem = left.problem
    palette, clock = palette_of(problem), live_clock(problem)
    accounts = [account(run, palette, BINS) for run in runs]
    ratios = [
        ratio_columns(run, palette, found.edges, clock) for run, found in zip(runs, accounts, strict=True)
    ]
    tops = _tops(accounts)
    most = max(
        (value for each in ratios for g in range(len(palette)) for value in each[f"r{g}"] if value), default=0
    )
    names, inner = heads.policy_labels(runs), _inner(width, layout)
    span = max(clock.of(np.array([run.raw.end_s for run in runs])))  # one axis for both sides
    sets: dict[str, Columns] = {}
    for side, run, name, found, ratio in zip(SIDES, runs, names, accounts, ratios, strict=True):
        if has_gantt(problem, picture):
            drawn = drawn_of(run, palette, clock, most=BARS, cells=CELLS)
            height = gantt.rows_height(problem)
            sets |= gantt.gantt_sets(
                run, drawn, clock, side, height, name, headline(run), span=span, width=inner
            )
        sets[f"{side}_areas"] = stack_columns(found, clock)
        sets[f"{side}_head"] = _head_columns(
            run, name, found, clock, with_title=not has_gantt(problem, picture), span=span, width=inner
        )
        sets[f"{side}_account"] = account_columns(found, clock, digits=1)
        sets[f"{side}_teams"] = allocation.team_columns(run, palette, tops, round(most, 3), width=inner)
        sets[f"{side}_ratios"] = ratio
        sets |= allocation.change_sets(run, palette, clock, side)
    sets["waits"] = waits.curve_columns(runs, SIDES, debug=False, most=POINTS)
    sets["debug_waits"] = waits.curve_columns(runs, SIDES, debug=True, most=POINTS)
    sets["delivered"] = bars.delivered_columns(runs, SIDES)
    sets["pyramid"] = bars.pyramid_columns(runs, SIDES)
    return sets


def has_gantt(problem: "Problem", picture: Picture) -> bool:
    """Whether the page has a Gantt."""
    return picture == "gantt" or (picture == "auto" and problem.gpus <= GANTT_GPUS)


def live_clock(problem: "Problem") -> Clock:
    """Unit of the time axes: from the scenario alone, so that both policies and all settings have one."""
    if problem.until_s < NEVER:
        return Clock(max(1, problem.until_s))
    jobs = problem.jobs
    return Clock(max(1, int((jobs.submit_s + jobs.run_s).max(initial=3600))))


def headline(run: "Run") -> str:
    """Main figures of a side, goodput beside occupancy."""
    found = run.figures
    parts = [f"{key} {heads.amount(found[key])}" for key in ("occupancy", "goodput")]
    parts.append(f"delivered {heads.amount(found['delivered_share'])}")
    wait = found["debug_wait_p90_s"]
    if wait is not None:
        parts.append(f"debug p90 {words(wait)}")
    return ", ".join(parts)


def _inner(width: int, layout: Layout) -> int:
    return max(160, (width // 2 if layout == "side" else width) - _BESIDE)


def _tops(accounts: list[Account]) -> list[float]:
    """Most GPUs of each group in a bin under either policy."""
    each = [((found.allocated + found.unallocated) / found.length_s).max(axis=1) for found in accounts]
    top: list[float] = np.round(np.maximum(*each), 1).tolist()
    return top


def _head_columns(
    run: "Run", name: str, found: Account, clock: Clock, *, with_title: bool, span: float, width: int
) -> Columns:
    lengths = found.length_s
    unended = run.figures["waits_are_lower_bounds"] or 0
    note = f"means of {words(int(lengths[0]))}, pale: unallocated"
    if unended:
        note += f"; {unended:,} waits had not ended"
    return {
        "x": [0],
        "x2": [max(span, round(clock.span, 5))],
        "gpus": [int(run.problem.gpus)],
        "title": [name if with_title else ""],
        "figures": [titles.folded(headline(run), width) if with_title else ""],
        "note": [titles.folded(note, width)],
        "empty": [heads.empty_words(run)],
    }


def _areas_panel(
    palette: Palette, clock: Clock, side: str, width: int, page_width: int, states: Sequence[str]
) -> Spec:
    """Occupancy stacked by team, unallocated work on top; a stretch of time dragged here zooms all others."""
    data, head = f"{side}_areas", f"{side}_head"
    x = field("x", scale={"nice": False, "zero": False}, axis=clock.axis(title=False))
    axis = {"title": "GPUs", "tickCount": 4, "minExtent": 38, "maxExtent": 38, "format": ",~r"}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": False}, axis=axis)

    layers: list[Spec] = [
        mark(head, {"type": "rect", "fill": "transparent"}, {"x": x, "x2": {"field": "x2"}})
    ]
    below: Spec = {"datum": 0}
    for letter, opacity in (("c", 1.0), ("u", 0.4)):
        for g, colour in enumerate(palette.colours):
            area = {"type": "area", "interpolate": "step-after", "fill": colour, "fillOpacity": opacity}
            layers.append(mark(data, area, {"x": x, "y": y(f"{letter}{g}"), "y2": below}))
            below = {"field": f"{letter}{g}"}
    rule = {"type": "rule", "stroke": {"expr": INK}, "strokeDash": [5, 3]}
    middle = {"type": "text", "style": "gp-title", "align": "center", "limit": width}
    middle |= {"x": width / 2, "y": _AREAS_PX / 2}
    pane = {"type": "rect", "fill": "transparent", "tooltip": {"expr": _says(palette, clock)}}
    layers += [
        mark(head, rule, {"y": y("gpus")}),
        *titles.heading(head, width, ("title", "figures", "note"), -6),
        mark(head, middle, {"text": field("empty", "nominal")}),
        _legend_layer(palette, page_width, states),
        mark(
            data,
            pane,
            {"x": x, "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": _AREAS_PX}},
            name=data,
        ),
    ]
    return {"width": width, "height": _AREAS_PX, "layer": layers}


def _says(palette: Palette, clock: Clock) -> str:
    """Tooltip of a bin: GPUs of each team, names as literals; rounded (see `gpuplan.fairshare.charts.allocation`)."""
    entries = [f"'from': round(100 * datum.x) / 100 + ' {clock.unit}'"]
    top = "0"
    for g, label in enumerate(palette.labels):
        entries.append(f"{titles.literal(label)}: round(10 * (datum.c{g} - {top})) / 10")
        top = f"datum.c{g}"
    entries.append(f"'unallocated': round(10 * (datum.u{len(palette) - 1} - {top})) / 10")
    return "{" + ", ".join(entries) + "}"


def _legend_layer(palette: Palette, page_width: int, states: Sequence[str]) -> Spec:
    """Marks that nobody sees, for the legend of the teams."""
    fill = field(
        "team", "nominal", scale=gantt.team_scale(palette, states), legend=gantt.team_legend(page_width)
    )
    return {
        "data": {"values": [{"team": label} for label in palette.labels]},
        "mark": {"type": "point", "opacity": 0, "strokeWidth": 0},
        "encoding": {"fill": fill},
    }
