"""How long jobs waited: distributions by policy, and percentiles by team, size or kind of job."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts import heads
from gpuplan.fairshare.charts.clock import words
from gpuplan.fairshare.charts.colours import palette_of
from gpuplan.fairshare.figures import QUANTILES, size_class
from gpuplan.fairshare.model import Bools, Int64
from gpuplan.gantt import Columns, Spec, field, mark, titles
from gpuplan.percentiles import percentiles

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run
    from gpuplan.gantt.offline import OfflineChart

By = Literal["policy", "team", "size", "debug"]

#: Where a wait of nothing stands on the log axis, left of a second (waits are whole seconds).
ZERO_AT = 0.5

#: Most points of a curve; beyond it, its exact height at places that are even on the axis.
MAX_POINTS = 240

#: A legend for each panel: one for both is lost where a band lies below the lines.
LEGENDS: Spec = {"legend": {"stroke": "independent", "strokeDash": "independent"}}

#: Names of the percentiles.
_NAMES = tuple(f"p{100 * q:.0f}" for q in QUANTILES)

#: Ticks of the axis of waits, seconds.
_TICKS = (ZERO_AT, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400)
_LABELS = (
    "datum.value < 1 ? 'none' : datum.value < 60 ? datum.value + ' s' "
    ": datum.value < 3600 ? datum.value / 60 + ' min' : datum.value < 86400 ? datum.value / 3600 + ' h' "
    ": datum.value / 86400 + ' d'"
)


def wait_chart(
    runs: "Sequence[Run] | Run", by: By = "policy", *, width: int = 980, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Waits from submission to first start under some policies.

    Parameters
    ----------
    runs
        Of one scenario.
    by
        ``"policy"``: the share of jobs that waited at most so long, of all jobs and of debug jobs;
        ``"team"``, ``"size"``, ``"debug"``: p50, p90 and p99 of every group.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    listed = heads.listed(runs)
    names = heads.policy_labels(listed)
    spec: Spec
    if by == "policy":
        sets = {"waits": curve_columns(listed, names, debug=False)}
        sets["debug_waits"] = curve_columns(listed, names, debug=True)
        each = max(160, width // 2 - 70)
        views = [
            curve_panel("waits", names, each, "all jobs"),
            curve_panel("debug_waits", names, each, "debug jobs (few GPUs, a minimum of 15 min or less)"),
        ]
        spec = {"concat": views, "columns": 2 if width >= 640 else 1}
        spec["resolve"] = LEGENDS
        title = "Waits: share of jobs that started within so long"
    else:
        sets = {"groups": group_columns(listed, names, by)}
        spec = group_panel("groups", names, sets["groups"], max(160, width - 260))
        title = f"Waits by {_GROUP_WORDS[by]}: p50 (circle), p90 (diamond), p99 (stroke)"
    spec["title"] = titles.head(title, subtitles(listed, names), width)
    return offline_chart(spec, sets, mode, describe_waits(listed, names))


_GROUP_WORDS = {"team": "team", "size": "size", "debug": "kind of job", "policy": "policy"}


def subtitles(runs: "Sequence[Run]", names: Sequence[str]) -> list[str]:
    """Of what the waits are, and which of them are lower bounds."""
    first = runs[0]
    open_ = [
        f"{name} {int(run.ledger.waits_on.sum()):,}"
        for run, name in zip(runs, names, strict=True)
        if run.ledger.waits_on.any()
    ]
    bounds = (
        f"waits that had not ended count as waited so far (lower bounds, hollow or banded): {', '.join(open_)}"
        if open_
        else ""
    )
    notes = dict.fromkeys(heads.empty_words(run) or heads.aside_words(run) for run in runs)
    return [heads.cluster_words(first.problem), heads.workload_words(first.problem), bounds, *notes]


def curve_columns(
    runs: "Sequence[Run]", names: Sequence[str], *, debug: bool, most: int = MAX_POINTS
) -> Columns:
    """Distribution of waits: ``policy, x`` (seconds), ``high`` and ``low`` (per cent of jobs).

    ``high`` counts a wait that had not ended as waited so far, as the figures do; ``low`` as never ending. What
    is true lies between them.
    """
    columns: Columns = {"policy": [], "x": [], "high": [], "low": [], "says": []}
    right = max([60, *(int(run.ledger.wait_s.max(initial=0)) for run in runs)])
    for run, name in zip(runs, names, strict=True):
        books = run.ledger
        mine = books.counted & run.problem.jobs.debug if debug else books.counted
        waits, ended = np.sort(books.wait_s[mine]), np.sort(books.wait_s[mine & ~books.waits_on])
        if not len(waits):
            continue
        at = places(waits, right, most)
        high = np.searchsorted(waits, at, side="right") / len(waits)
        low = np.searchsorted(ended, at, side="right") / len(waits)
        columns["policy"] += [name] * len(at)
        columns["x"] += np.maximum(at, ZERO_AT).tolist()
        columns["high"] += np.round(100 * high, 2).tolist()
        columns["low"] += np.round(100 * low, 2).tolist()
        columns["says"] += [words(second) if second else "no wait" for second in at.tolist()]
    return columns


def places(waits: Int64, right: int, most: int = MAX_POINTS) -> Int64:
    """Waits at which a curve has a point: 0, every different one (or places even on a log axis), the right end."""
    different = np.unique(waits)
    if len(different) > most:
        different = np.unique(np.geomspace(1, right, most).round().astype(np.int64))
    return np.unique(np.concatenate(([0], different, [right])))


def _x(name: str, title: str | None) -> Spec:
    axis: Spec = {"values": list(_TICKS), "labelExpr": _LABELS, "title": title, "grid": True}
    axis |= {"labelOverlap": "greedy", "labelSeparation": 3, "labelFontSize": 10}
    return field(name, scale={"type": "log", "nice": False, "domainMin": ZERO_AT}, axis=axis)


def policy_scale(names: Sequence[str], look: int) -> Spec:
    """Scale from policy to colour (0) or dashes (1)."""
    looks = [theme.POLICY_LOOKS[at % len(theme.POLICY_LOOKS)][look] for at in range(len(names))]
    return {"domain": list(names), "range": looks}


def curve_panel(data: str, names: Sequence[str], width: int, title: str, height: int = 220) -> Spec:
    """Stepped curves of `curve_columns`, with a band where waits had not ended."""
    x = _x("x", "wait from submission to first start (log)")
    scale = {"domain": [0, 100], "nice": False}
    axis = {"title": "% of jobs", "values": [0, 25, 50, 75, 90, 100]}
    legend = {"title": None, "orient": "bottom", "symbolSize": 400, "symbolType": "stroke", "labelLimit": 220}
    stroke = field("policy", "nominal", scale=policy_scale(names, 0), legend=legend)
    dash = field("policy", "nominal", scale=policy_scale(names, 1), legend=legend)
    fill = field("policy", "nominal", scale=policy_scale(names, 0), legend=None)
    high = field("high", scale=scale, axis=axis)
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "clip": True}
    band = {"type": "area", "interpolate": "step-after", "fillOpacity": 0.18, "clip": True}
    tips = [
        field("policy", "nominal"),
        field("says", "nominal", title="wait at most"),
        field("high", title="% of jobs", format=".1f"),
        field("low", title="% for sure", format=".1f"),
    ]
    dots = {"type": "circle", "size": 50, "opacity": 0}
    return {
        "width": width,
        "height": height,
        "title": titles.panel_title(title, width),
        "layer": [
            mark(data, band, {"x": x, "y": high, "y2": {"field": "low"}, "fill": fill}),
            mark(data, line, {"x": x, "y": high, "stroke": stroke, "strokeDash": dash}),
            mark(data, dots, {"x": x, "y": high, "tooltip": tips}),
        ],
    }


def groups_of(run: "Run", by: By) -> list[tuple[str, Bools]]:
    """Groups of jobs with their names, as masks."""
    jobs = run.problem.jobs
    if by == "team":
        palette = palette_of(run.problem)
        of = palette.group[run.problem.team]
        return [(label, of == g) for g, label in enumerate(palette.labels)]
    if by == "size":
        classes = size_class(jobs.gpus)
        return [
            (f"{size // 2 + 1}–{size} GPUs" if size > 2 else f"{size} GPU{'s' * (size > 1)}", classes == size)
            for size in np.unique(classes).tolist()
        ]
    return [("debug jobs", jobs.debug), ("other jobs", ~jobs.debug)]


def group_columns(runs: "Sequence[Run]", names: Sequence[str], by: By) -> Columns:
    """Percentiles by group and policy: ``group, policy, p50, p90, p99`` (seconds, on the axis), ``says``, ``bound``.

    ``p50_bound`` and so on are 1 where a wait that had not ended is at most the percentile, which then is a lower
    bound.
    """
    columns: Columns = {
        name: []
        for name in ("group", "policy", "jobs", "says", *_NAMES, *(f"{name}_bound" for name in _NAMES))
    }
    for run, name in zip(runs, names, strict=True):
        books = run.ledger
        for label, mask in groups_of(run, by):
            mine = mask & books.counted
            found = percentiles(books.wait_s[mine], QUANTILES)
            if found[1] is None:
                continue
            values = [float(value or 0) for value in found]
            unended = books.wait_s[mine & books.waits_on]
            columns["group"].append(label)
            columns["policy"].append(name)
            said = []
            for key, value in zip(_NAMES, values, strict=True):
                bound = bool((unended <= value).any())
                columns[key].append(max(value, ZERO_AT))
                columns[f"{key}_bound"].append(int(bound))
                said.append(("≥ " if bound else "") + (words(value) if value else "none"))
            columns["jobs"].append(int(mine.sum()))
            columns["says"].append(" / ".join(said))
    return columns


def group_panel(data: str, names: Sequence[str], columns: Columns, width: int) -> Spec:
    """A row per group, in it a line per policy from p50 to p99."""
    rows = max(1, len(set(columns["group"])))
    x = _x("p50", "wait from submission to first start (log)")
    y = field(
        "group",
        "nominal",
        sort=None,
        title=None,
        axis={"labelLimit": 190, "grid": True, "tickBand": "extent"},
    )
    off = {"yOffset": field("policy", "nominal", scale={"domain": list(names), "paddingOuter": 0.3})}
    legend = {"title": None, "orient": "top", "symbolType": "circle", "symbolSize": 110, "labelLimit": 220}
    colour = {"scale": policy_scale(names, 0), "legend": legend}
    tips = [
        field("group", "nominal"),
        field("policy", "nominal"),
        field("jobs", title="jobs", format=","),
        field("says", "nominal", title=" / ".join(f"p{100 * q:.0f}" for q in QUANTILES)),
    ]
    rule = {"type": "rule", "strokeWidth": 2, "clip": True}
    both = {"y": y, **off, "tooltip": tips}
    shapes = (("p50", "circle", 55), ("p90", "diamond", 85))
    stroke = field("policy", "nominal", **colour)
    fill = field("policy", "nominal", **colour)
    tick = {"type": "point", "shape": "stroke", "angle": 90, "size": 110, "strokeWidth": 2.5, "clip": False}
    return {
        "width": width,
        "height": max(60, rows * (16 + 9 * len(names))),
        "layer": [
            mark(data, rule, {"x": x, "x2": {"field": "p99"}, "stroke": stroke, **both}),
            *(
                mark(
                    data,
                    {"type": "point", "shape": shape, "size": size, "strokeWidth": 1.6, "clip": False},
                    {
                        "x": x | {"field": name},
                        "stroke": stroke,
                        "fill": fill,
                        "fillOpacity": _hollow(name),
                        **both,
                    },
                )
                for name, shape, size in shapes
            ),
            mark(data, tick, {"x": x | {"field": "p99"}, "stroke": stroke, **both}),
        ],
    }


def _hollow(name: str) -> Spec:
    return {"condition": {"test": f"datum.{name}_bound == 1", "value": 0}, "value": 1}


def describe_waits(runs: "Sequence[Run]", names: Sequence[str]) -> str:
    """The waits in words."""
    said = [f"Waits on {heads.cluster_words(runs[0].problem)}. {heads.workload_words(runs[0].problem)}."]
    for run, name in zip(runs, names, strict=True):
        found = [run.figures[f"wait_p{100 * q:.0f}_s"] for q in QUANTILES]
        parts = ("none" if value is None else words(value) for value in found)
        debug = run.figures["debug_wait_p90_s"]
        said.append(
            f"{name}: p50 / p90 / p99 {' / '.join(parts)}, debug p90 {'none' if debug is None else words(debug)}, "
            f"{run.figures['waits_are_lower_bounds']:,} waits had not ended."
        )
    return " ".join(said)
