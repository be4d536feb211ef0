"""Figures side by side: owed and delivered per team, and the pyramid of availability, occupancy, goodput, impact."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts import heads
from gpuplan.fairshare.charts.colours import palette_of
from gpuplan.fairshare.charts.waits import policy_scale
from gpuplan.fairshare.figures import MEANINGS
from gpuplan.fairshare.model import HOUR
from gpuplan.gantt import Columns, Spec, field, mark, titles

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run
    from gpuplan.gantt.offline import OfflineChart

#: Figures of the pyramid with what each is a share of.
PYRAMID = (
    ("availability", "of installed"),
    ("occupancy", "of available"),
    ("goodput", "of available"),
    ("impact", "of assigned"),
)

#: Pixels of a bar, between groups, and for the names beside them.
_BAR_PX, _GAP_PX, _NAMES_PX = 11, 7, 200

#: Pixels of the number behind a bar.
_NUMBER_PX = 32

INK = "dark ? '#F2F2F2' : '#1A1A1A'"


def delivered_chart(
    runs: "Sequence[Run] | Run", *, width: int = 980, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Delivered / owed of every team over the whole run, with the GPU-hours behind it, policies side by side."""
    from gpuplan.gantt.offline import offline_chart

    listed = heads.listed(runs)
    names = heads.policy_labels(listed)
    sets = {"delivered": delivered_columns(listed, names)}
    inner = max(280, width - _NAMES_PX - 60)
    height = bars_height(len(palette_of(listed[0].problem)), len(names))
    spec: Spec = {
        "hconcat": [
            share_panel("delivered", names, inner * 11 // 20, height),
            hours_panel("delivered", names, inner * 9 // 20, height),
        ],
        "spacing": 16,
        "title": titles.head(
            "What each team was owed and what it was given",
            [
                heads.cluster_words(listed[0].problem),
                heads.workload_words(listed[0].problem),
                "Work with a minimum run time, over the whole run. Owed in an hour: the lower of the entitlement and "
                "what runs or waits; a team that takes what others leave is above 1.",
                *dict.fromkeys(heads.empty_words(run) or heads.aside_words(run) for run in listed),
            ],
            width - 150,
        ),
        "params": theme.fill_params(),
    }
    return offline_chart(spec, sets, mode, describe_delivered(listed, names))


def bars_height(groups: int, policies: int) -> int:
    """Pixels of a panel of grouped bars."""
    return max(40, groups * (_GAP_PX + _BAR_PX * policies))


def delivered_columns(runs: "Sequence[Run]", names: Sequence[str]) -> Columns:
    """A row per policy and group of teams: ``policy, team, owed, delivered`` (GPU-hours), ``share``, ``says``."""
    columns: Columns = {key: [] for key in ("policy", "team", "owed", "delivered", "share", "says")}
    for run, name in zip(runs, names, strict=True):
        palette = palette_of(run.problem)
        for g, label in enumerate(palette.labels):
            teams = np.flatnonzero(palette.group == g).tolist()
            owed = float(sum(run.owed.owed[team] for team in teams)) / HOUR
            got = sum(run.owed.delivered[team] for team in teams) / HOUR
            share = got / owed if owed else None
            columns["policy"].append(name)
            columns["team"].append(label)
            columns["owed"].append(round(owed, 2))
            columns["delivered"].append(round(got, 2))
            columns["share"].append(None if share is None else round(share, 4))
            columns["says"].append("nothing owed" if share is None else f"{share:.2f}")
    return columns


def _rows(name: str, names: Sequence[str], *, labels: bool) -> Spec:
    axis: Spec = {"labelLimit": _NAMES_PX - 16, "ticks": False, "domain": False, "labels": labels}
    return {
        "y": field(name, "nominal", sort=None, title=None, axis=axis, scale={"paddingInner": 0.18}),
        "yOffset": field("policy", "nominal", sort=None, scale={"domain": list(names)}),
    }


def _policies(names: Sequence[str]) -> Spec:
    legend = {"title": None, "orient": "top", "symbolType": "square", "labelLimit": 220, "symbolSize": 140}
    return field("policy", "nominal", scale=policy_scale(names, 0), legend=legend)


def share_panel(
    data: str, names: Sequence[str], width: int, height: int, title: str = "delivered / owed"
) -> Spec:
    """Bars of delivered / owed per team and policy, from zero, with a line at 1."""
    rows = _rows("team", names, labels=True)
    axis = {
        "format": "~g",
        "tickCount": max(2, min(6, width // 45)),
        "labelOverlap": "parity",
        "labelSeparation": 5,
    }
    x = field("share", title=title, scale={"zero": True, "nice": True}, axis=axis)
    tips = [
        *(field(name, "nominal") for name in ("team", "policy")),
        field("owed", title="owed (GPU-hours)", format=",.1f"),
        field("delivered", title="delivered (GPU-hours)", format=",.1f"),
        field("says", "nominal", title="delivered / owed"),
    ]
    text = {"type": "text", "style": "gp-note", "align": "left", "dx": 3, "fontSize": 9.5}
    one = {"type": "rule", "stroke": {"expr": INK}, "strokeDash": [5, 3], "strokeWidth": 1.2}
    at = {"calculate": "isValid(datum.share) ? datum.share : 0", "as": "at"}
    # The axis reaches as far as the number behind the longest bar.
    reach = {"calculate": f"datum.at * {1 + _NUMBER_PX / width:.4g}", "as": "reach"}
    unseen = {"type": "point", "opacity": 0, "tooltip": None}
    return {
        "width": width,
        "height": height,
        "layer": [
            mark(data, {"type": "bar"}, {"x": x, **rows, "fill": _policies(names), "tooltip": tips}),
            mark(data, unseen, {"x": x | {"field": "reach"}}, transform=[at, reach]),
            mark(
                data,
                text,
                {"x": x | {"field": "at"}, **rows, "text": field("says", "nominal")},
                transform=[at],
            ),
            {"data": {"values": [{}]}, "mark": one, "encoding": {"x": {"datum": 1}}},
        ],
    }


def hours_panel(data: str, names: Sequence[str], width: int, height: int) -> Spec:
    """Bars of delivered GPU-hours, with a stroke at what was owed."""
    rows = _rows("team", names, labels=False)
    axis = {
        "format": ",~s",
        "tickCount": max(2, min(5, width // 55)),
        "labelOverlap": "parity",
        "labelSeparation": 5,
    }
    x = field("delivered", title="GPU-hours: delivered (bar), owed (stroke)", scale={"zero": True}, axis=axis)
    tick = {"type": "tick", "fill": {"expr": INK}, "strokeWidth": 0, "thickness": 2, "orient": "vertical"}
    return {
        "width": width,
        "height": height,
        "layer": [
            mark(data, {"type": "bar", "fillOpacity": 0.75}, {"x": x, **rows, "fill": _policies(names)}),
            mark(data, tick, {"x": x | {"field": "owed"}, **rows}),
        ],
    }


def pyramid_chart(
    runs: "Sequence[Run] | Run", *, width: int = 720, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Availability, occupancy, goodput and impact of some policies side by side."""
    from gpuplan.gantt.offline import offline_chart

    listed = heads.listed(runs)
    names = heads.policy_labels(listed)
    sets = {"pyramid": pyramid_columns(listed, names)}
    spec = pyramid_panel("pyramid", names, max(200, width - _NAMES_PX - 70))
    spec["title"] = titles.head(
        "Of the GPU-time there is, how much works for whom it should",
        [
            heads.cluster_words(listed[0].problem),
            heads.workload_words(listed[0].problem),
            "Goodput: occupied minus lost to interruptions, restarts and no-op jobs. Impact: what stayed "
            "within what teams were owed, hour by hour. What the work makes of its GPUs is not simulated.",
            *dict.fromkeys(heads.empty_words(run) or heads.aside_words(run) for run in listed),
        ],
        width - 150,
    )
    spec["params"] = theme.fill_params()
    return offline_chart(spec, sets, mode, describe_pyramid(listed, names))


def pyramid_columns(runs: "Sequence[Run]", names: Sequence[str]) -> Columns:
    """A row per figure and policy: ``figure, policy, value`` (per cent), ``says, meaning``."""
    columns: Columns = {key: [] for key in ("figure", "policy", "value", "says", "meaning")}
    for figure, of in PYRAMID:
        for run, name in zip(runs, names, strict=True):
            value = run.figures[figure]
            columns["figure"].append(f"{figure} ({of})")
            columns["policy"].append(name)
            columns["value"].append(None if value is None else round(100 * value, 2))
            columns["says"].append(heads.amount(value))
            columns["meaning"].append(MEANINGS[figure])
    return columns


def pyramid_panel(data: str, names: Sequence[str], width: int) -> Spec:
    """Grouped bars of `pyramid_columns`, from 0 to 100 %."""
    rows = _rows("figure", names, labels=True)
    axis = {"values": [0, 25, 50, 75, 100]}
    x = field("value", title="per cent of GPU-time", scale={"domain": [0, 100], "nice": False}, axis=axis)
    tips = [field(name, "nominal") for name in ("figure", "policy", "says", "meaning")]
    text = {"type": "text", "style": "gp-note", "align": "left", "dx": 4, "fontSize": 10, "clip": False}
    at = {"calculate": "isValid(datum.value) ? datum.value : 0", "as": "at"}
    return {
        "width": width,
        "height": bars_height(len(PYRAMID), len(names)) + 20,
        "layer": [
            mark(data, {"type": "bar"}, {"x": x, **rows, "fill": _policies(names), "tooltip": tips}),
            mark(
                data,
                text,
                {"x": x | {"field": "at"}, **rows, "text": field("says", "nominal")},
                transform=[at],
            ),
        ],
    }


def describe_delivered(runs: "Sequence[Run]", names: Sequence[str]) -> str:
    """Delivered against owed in words."""
    said = [f"{heads.cluster_words(runs[0].problem)}. {heads.workload_words(runs[0].problem)}."]
    for run, name in zip(runs, names, strict=True):
        found = run.figures
        said.append(
            f"{name}: delivered / owed {heads.amount(found['delivered_share'])}, worst team "
            f"{heads.amount(found['delivered_worst_team'])}, {found['teams_served']:,} teams served."
        )
    return " ".join(said)


def describe_pyramid(runs: "Sequence[Run]", names: Sequence[str]) -> str:
    """The pyramid in words."""
    said = [f"{heads.cluster_words(runs[0].problem)}. {heads.workload_words(runs[0].problem)}."]
    for run, name in zip(runs, names, strict=True):
        listed = ", ".join(f"{figure} {heads.amount(run.figures[figure])}" for figure, _ in PYRAMID)
        said.append(f"{name}: {listed}.")
    return " ".join(said)
