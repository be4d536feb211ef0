"""Allocation against what is owed, over time, with the number that sorts the queue: what settles arguments."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts import heads
from gpuplan.fairshare.charts.account import (
    account,
    account_columns,
    change_columns,
    changes_of,
    entitled_columns,
    ratio_columns,
)
from gpuplan.fairshare.charts.clock import Clock, clock_of, words
from gpuplan.fairshare.charts.colours import Palette, palette_of
from gpuplan.gantt import Columns, Spec, field, mark, titles

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run
    from gpuplan.gantt.offline import OfflineChart

#: Bins of time in a chart that stands alone.
BINS = 240

INK = "dark ? '#F2F2F2' : '#1A1A1A'"

#: Pixels beside the drawing area, and of the panel of ratios.
BESIDE, RATIO_HEIGHT = 70, 170

#: Entitlements of one team that are spelled out where budgets change.
_STEPS = 5

#: What a panel of a team shows.
PANEL_WORDS = "filled: allocated; pale: unallocated; line: owed; dashed: entitlement"


def allocation_chart(run: "Run", *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Allocated GPUs of each team against owed and entitlement, and beneath the number that sorts the queue.

    Parameters
    ----------
    run
        What is drawn; a row per team (the busiest ones, and the others together, beyond 20).
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    palette, clock = palette_of(run.problem), clock_of(run)
    found, changes = account(run, palette, BINS), len(run.problem.epochs) > 1
    inner = max(160, width - BESIDE)
    sets = {
        "run_account": account_columns(found, clock),
        "run_teams": team_columns(run, palette),
        "run_ratios": ratio_columns(run, palette, found.edges, clock),
        **change_sets(run, palette, clock, "run"),
    }
    bins = words(int(found.edges[1] - found.edges[0]))
    panels = team_panels(palette, clock, "run", inner, changes=changes)
    subtitles = [
        heads.cluster_words(run.problem),
        f"{heads.workload_words(run.problem)}; {heads.budget_words(run.problem)}",
        f"GPUs on average over {bins}. {PANEL_WORDS[0].upper()}{PANEL_WORDS[1:]}. Owed in an hour: the lower of the "
        "entitlement and what runs or waits with a minimum run time."
        + (" Upright rules: budgets change." if changes else ""),
        heads.empty_words(run) or heads.aside_words(run),
    ]
    spec: Spec = {
        "vconcat": [
            *panels,
            ratio_panel(palette, clock, "run", inner, ratio_words(run), changes=changes),
        ],
        "spacing": 5,
        "title": titles.head(f"{run.policy}: what each team had, and what it was owed", subtitles, width),
        "params": theme.fill_params(),
    }
    return offline_chart(spec, sets, mode, describe_allocation(run))


def change_sets(run: "Run", palette: Palette, clock: Clock, side: str) -> dict[str, Columns]:
    """Data sets ``<side>_entitled`` and ``<side>_changes`` where the scenario's budgets change; none elsewhere."""
    if len(run.problem.epochs) == 1:
        return {}
    return {
        f"{side}_entitled": entitled_columns(run, palette, clock),
        f"{side}_changes": change_columns(run, clock),
    }


def change_marks(side: str, x: Spec, height: int, *, labels: bool = False) -> list[Spec]:
    """Rules where budgets change, over the data set ``<side>_changes``, with their labels or without."""
    data, ends = f"{side}_changes", {"y": {"value": 0}, "y2": {"value": height}}
    rule = {"type": "rule", "stroke": {"expr": INK}, "strokeWidth": 1, "strokeOpacity": 0.7, "clip": True}
    layers = [mark(data, rule | {"tooltip": {"expr": "datum.says"}}, {"x": x, **ends})]
    if labels:
        text = {"type": "text", "style": "gp-note", "align": "left", "baseline": "top", "dx": 4, "clip": True}
        layers.append(mark(data, text | {"y": 2}, {"x": x, "text": field("label", "nominal")}))
    return layers


def ratio_words(run: "Run") -> str:
    """What the panel of ratios shows under the policy of a run."""
    what = (
        "Ratio that sorts the queue" if run.policy == "fair-share" else "Ratio by which fair-share would sort"
    )
    return f"{what}: used and protected over share of {words(run.scenario.window_s)}"


def team_columns(
    run: "Run", palette: Palette, tops: Sequence[float] = (), ratio: float = 0.0, *, width: int = 0
) -> Columns:
    """A row per group: its number, entitlement in GPUs (at the start), and what its panel says above it.

    With `tops` (GPUs of each group) and `ratio` axes reach at least so far, for panels that compare. What is said is
    shorter where the `width` of a panel asks for it (0: it does not).
    """
    tree, owed, epochs = run.problem.tree, run.owed, run.problem.epochs
    steps = len(changes_of(run)) + 1
    entitled = [run.problem.gpus * then.share[tree.leaves] for then in epochs.trees[:steps]]
    says, gpus = [], []
    for g, label in enumerate(palette.labels):
        teams = np.flatnonzero(palette.group == g).tolist()
        each = [float(sum(then[team] for team in teams)) for then in entitled]
        mine = " → ".join(_stepped([f"{value:.4g}" for value in each]))
        due, got = sum(owed.owed[team] for team in teams), sum(owed.delivered[team] for team in teams)
        share = f"delivered / owed {heads.amount(float(got / due))}" if due else "nothing owed"
        says.append(
            titles.fitting(
                (f"{label}: entitled to {mine} GPUs, {share}", f"{label}: {mine} GPUs, {share}"), width
            )
        )
        gpus.append(round(each[0], 3))
    n = len(palette)
    return {
        "t": list(range(n)),
        "entitled": gpus,
        "says": says,
        "top": list(tops) or [0.0] * n,
        "ratio": [ratio] * n,
    }


def _stepped(values: list[str]) -> list[str]:
    """Values without repetitions of the one before; of many the first two and the last two."""
    found = [value for k, value in enumerate(values) if k == 0 or value != values[k - 1]]
    return found if len(found) <= _STEPS else [*found[:2], "…", *found[-2:]]


def panel_height(teams: int) -> int:
    """Pixels of the panel of a team."""
    return 74 if teams <= 5 else 48 if teams <= 10 else 34


def team_panels(
    palette: Palette,
    clock: Clock,
    side: str,
    width: int,
    height: int = 0,
    x_scale: Spec | None = None,
    *,
    changes: bool = False,
) -> list[Spec]:
    """A panel per group of teams over the data sets ``<side>_account`` and ``<side>_teams``.

    With `changes` entitlements are steps (see `change_sets`).
    """
    tall = height or panel_height(len(palette))
    return [_team_panel(g, palette, clock, side, width, tall, x_scale, changes) for g in range(len(palette))]


def _team_panel(
    g: int,
    palette: Palette,
    clock: Clock,
    side: str,
    width: int,
    height: int,
    x_scale: Spec | None,
    changes: bool,
) -> Spec:
    data, teams = f"{side}_account", f"{side}_teams"
    scale = x_scale or {"nice": False, "zero": False}
    x = field("x", scale=scale, axis=clock.axis(title=False, labels=False))
    mine = [{"filter": f"datum.t == {g}"}]
    tall = {"title": "GPUs", "tickCount": 2, "minExtent": 38, "maxExtent": 38, "grid": False, "format": ",~r"}
    tall |= {"titleFontSize": 10} if height > 40 else {"title": None}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": False}, axis=tall)

    area = {"type": "area", "interpolate": "step-after", "clip": True, "fill": palette.colours[g]}
    line = {"type": "line", "interpolate": "step-after", "clip": True}
    rule = {"type": "rule", "stroke": {"expr": INK}, "strokeDash": [5, 3], "strokeWidth": 1}
    entitled = [mark(teams, rule, {"y": y("entitled")}, transform=mine)]
    if changes:
        steps = rule | {"type": "line", "interpolate": "step-after", "clip": True}
        entitled = [mark(f"{side}_entitled", steps, {"x": x, "y": y(f"e{g}")})]
        entitled += change_marks(side, x, height)
    says = (  # rounded, not formatted: Vega writes all tooltips anew when the data change, and formats take long
        f"{{'allocated (GPUs)': datum.a{g}, 'unallocated (GPUs)': round(100 * (datum.b{g} - datum.a{g})) / 100, "
        f"'owed (GPUs)': datum.o{g}, 'from': round(100 * datum.x) / 100 + ' {clock.unit}'}}"
    )
    pane = {"type": "rect", "fill": "transparent", "clip": True, "tooltip": {"expr": says}}
    title = {"type": "text", "style": "gp-note", "align": "left", "baseline": "bottom", "clip": False}
    title |= {"limit": width, "x": 0, "y": -3}
    return {
        "width": width,
        "height": height,
        "layer": [
            mark(teams, _REACH, {"y": y("top")}, transform=mine),
            mark(data, area | {"fillOpacity": 1}, {"x": x, "y": y(f"a{g}"), "y2": {"datum": 0}}),
            mark(data, area | {"fillOpacity": 0.35}, {"x": x, "y": y(f"b{g}"), "y2": {"field": f"a{g}"}}),
            *entitled,
            mark(data, line | {"style": "gp-demand-casing", "strokeWidth": 2.6}, {"x": x, "y": y(f"o{g}")}),
            mark(data, line | {"style": "gp-demand", "strokeWidth": 1.2}, {"x": x, "y": y(f"o{g}")}),
            mark(teams, title, {"text": field("says", "nominal")}, transform=mine),
            mark(data, pane, {"x": x, "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}}),
        ],
    }


#: A mark that nobody sees and that an axis reaches to.
_REACH: Spec = {"type": "point", "opacity": 0, "tooltip": None}


def ratio_panel(
    palette: Palette,
    clock: Clock,
    side: str,
    width: int,
    title: str,
    height: int = RATIO_HEIGHT,
    x_scale: Spec | None = None,
    *,
    changes: bool = False,
) -> Spec:
    """Lines of the number that sorts the queue, a line per team, over the data set ``<side>_ratios``."""
    data = f"{side}_ratios"
    x = field("x", scale=x_scale or {"nice": False, "zero": False}, axis=clock.axis())
    axis = {"title": "ratio", "tickCount": 5, "minExtent": 38, "maxExtent": 38, "format": ".2~f"}

    def y(name: str) -> Spec:
        return field(name, scale={"zero": True, "nice": True}, axis=axis)

    one = {"type": "rule", "stroke": {"expr": INK}, "strokeDash": [5, 3], "strokeWidth": 1}
    alone = [g for g, members in enumerate(palette.members) if members == 1]
    lines = [
        mark(
            data,
            {"type": "line", "stroke": palette.colours[g], "strokeWidth": 1.8, "clip": True},
            {"x": x, "y": y(f"r{g}")},
        )
        for g in alone
    ]
    lines += change_marks(side, x, height, labels=True) if changes else []
    listed = ", ".join(f"{titles.literal(palette.labels[g])}: datum.r{g}" for g in alone)
    pane = {"type": "rect", "fill": "transparent", "clip": True, "tooltip": {"expr": f"{{{listed}}}"}}
    lines.append(
        mark(data, pane, {"x": x, "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}})
    )
    return {
        "width": width,
        "height": height,
        "title": titles.panel_title(f"{title} (dashed: its share)", width),
        "layer": [
            mark(f"{side}_teams", _REACH, {"y": y("ratio")}),
            *lines,
            {"data": {"values": [{}]}, "mark": one, "encoding": {"y": {"datum": 1}}},
        ],
    }


def describe_allocation(run: "Run") -> str:
    """The chart in words: delivered against owed of each team."""
    palette = palette_of(run.problem)
    said = team_columns(run, palette)["says"]
    return f"{run.policy}, {heads.cluster_words(run.problem)}. {heads.workload_words(run.problem)}. {'; '.join(said)}."
