"""Allocated share of a cluster's GPUs while pods arrive: a line per policy, beside the published figures."""

import math
import textwrap
from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark
from gpuplan.packing.fragmentation import PUBLISHED
from gpuplan.packing.fragmentation_study import FragmentationStudy

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart

#: Colour (Okabe and Ito) and dashes of each policy.
LOOKS: dict[str, tuple[str, list[int]]] = {
    "fgd": ("#0072B2", [1, 0]),
    "best-fit": ("#009E73", [8, 3]),
    "dot-product": ("#D55E00", [5, 3]),
    "random": ("#CC79A7", [2, 2]),
}

#: Per cent asked for where the picture begins: before, every pod finds room under every policy.
FROM = 70

HEIGHT = 330

#: Pixels that labels at the ends of lines need to the right of the drawing area, and between two of them.
_LABELS_PX, _LABEL_GAP_PX = 150, 15


def fragmentation_chart(
    found: FragmentationStudy, *, width: int = 980, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Allocated over arrived share of the GPUs, mean of the seeds with 95 % confidence, a line per policy.

    Diamonds are the published shares when pods have asked for all GPUs (`gpuplan.packing.fragmentation.PUBLISHED`).

    Parameters
    ----------
    found
        From `gpuplan.packing.fragmentation_study.study`.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    return offline_chart(chart_spec(found, width), chart_data(found), mode, describe(found))


def chart_data(found: FragmentationStudy) -> dict[str, Columns]:
    """Data sets ``shares`` (a row per policy and per cent), ``labels`` (ends of lines), ``published``, ``asked``."""
    curves = found.curves()
    curves = curves[curves["arrived_percent"] >= _first(found)]
    last = curves[curves["arrived_percent"] == curves["arrived_percent"].max()]
    ends = last.sort_values("allocated_percent", ascending=False)
    shares: Columns = {
        "policy": curves["policy"].tolist(),
        "x": [int(value) for value in curves["arrived_percent"]],
        **{
            name: [round(float(value), 3) for value in curves[column].fillna(curves["allocated_percent"])]
            for name, column in (("mean", "allocated_percent"), ("low", "low"), ("high", "high"))
        },
        "n": [int(value) for value in curves["seeds"]],
    }
    means = [float(value) for value in ends["allocated_percent"]]
    labels: Columns = {
        "policy": ends["policy"].tolist(),
        "x": [int(value) for value in ends["arrived_percent"]],
        "y": _apart(means, _LABEL_GAP_PX * _range(found) / HEIGHT),
        "says": [f"{name} {mean:.1f} %" for name, mean in zip(ends["policy"], means, strict=True)],
    }
    marks = [name for name in found.placements if found.ratio >= 1]
    published: Columns = {
        "policy": marks,
        "x": [100] * len(marks),
        "y": [PUBLISHED[name] for name in marks],
        "says": [f"published: {PUBLISHED[name]:.1f} %" for name in marks],
    }
    first = _first(found)
    return {
        "shares": shares,
        "labels": labels,
        "published": published,
        "asked": {"x": [first, min(100, _last(found))], "y": [first, min(100, _last(found))]},
    }


def chart_spec(found: FragmentationStudy, width: int = 980) -> Spec:
    """The spec over the data sets of `chart_data`."""
    policies = list(found.placements)
    colours = {"domain": policies, "range": [LOOKS[name][0] for name in policies]}
    dashes = {"domain": policies, "range": [LOOKS[name][1] for name in policies]}
    first, last = _first(found), _last(found)
    scale_x = {"domain": [first, last], "nice": False, "zero": False}
    scale_y = {"domain": [first, 100], "nice": False, "zero": False}
    x = field("x", title="GPUs asked for so far (% of those there are)", scale=scale_x)
    y = field("mean", title="GPUs allocated (%)", scale=scale_y)
    stroke = field("policy", "nominal", scale=colours, legend=None)
    fill = field("policy", "nominal", scale=colours, legend=None)
    dash = field("policy", "nominal", scale=dashes, legend=None)
    tips = [
        field("policy", "nominal"),
        field("x", title="asked for (%)"),
        *(field(name, title=f"{name} (%)", format=".2f") for name in ("mean", "low", "high")),
        field("n", title="seeds"),
    ]
    at = {"x": x, "y": field("y", scale=scale_y)}
    says = field("says", "nominal")
    text = {"type": "text", "align": "left", "dx": 8, "clip": False, "fontSize": 12, "fontWeight": "bold"}
    diamond = {"type": "point", "shape": "diamond", "filled": True, "size": 90, "opacity": 1, "clip": False}
    edge = {"stroke": "#FFFFFF", "strokeWidth": 1.2}
    layers = [
        mark("asked", {"type": "line", "style": "gp-bound", "strokeWidth": 1.2, "strokeDash": [2, 3]}, at),
        mark(
            "shares",
            {"type": "area", "fillOpacity": 0.22, "clip": True},
            {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "fill": fill},
        ),
        mark(
            "shares",
            {"type": "line", "strokeWidth": 2.2, "clip": True},
            {"x": x, "y": y, "stroke": stroke, "strokeDash": dash},
        ),
        mark("shares", {"type": "circle", "size": 50, "opacity": 0}, {"x": x, "y": y, "tooltip": tips}),
        mark("published", diamond | edge, {**at, "fill": fill, "tooltip": says}),
        mark("labels", text, {**at, "fill": fill, "text": says}),
    ]
    return {
        "width": max(200, width - _LABELS_PX - 60),
        "height": HEIGHT,
        "title": {
            "text": _lines("How much of the GPUs can be given away?", width, 7.6),
            "subtitle": [line for note in (*found.notes, _how(found)) for line in _lines(note, width, 6.3)],
            "anchor": "start",
            "frame": "group",
            "offset": 10,
        },
        "params": theme.fill_params(),
        "layer": layers,
    }


def describe(found: FragmentationStudy) -> str:
    """The chart in words: each policy's share at the end of what was asked for, and the published one."""
    table = found.table()
    said = []
    for row in table.to_dict("records"):
        between = "" if math.isnan(row["low"]) else f" ({row['low']:.1f} to {row['high']:.1f})"
        said.append(
            f"{row['policy']}: {row['allocated_percent']:.1f} %{between}, published {row['published_percent']:.1f} %"
        )
    asked = min(100, _last(found))
    return f"GPUs allocated when {asked} % of them have been asked for: {'; '.join(said)}."


def _how(found: FragmentationStudy) -> str:
    n = len(found.seeds)
    lines = f"Lines: mean of {n} seeds; bands: 95 % confidence of the mean." if n > 1 else "Lines: one seed."
    ends = " Diamonds: published, at 100 %." if found.ratio >= 1 else ""
    return f"{lines}{ends} Dotted: all that is asked for."


def _last(found: FragmentationStudy) -> int:
    return int(100 * found.ratio)


def _first(found: FragmentationStudy) -> int:
    """Where the picture begins: at `FROM`, or half way where the study ends before."""
    return FROM if _last(found) > FROM else _last(found) // 2


def _range(found: FragmentationStudy) -> int:
    return 100 - _first(found)


def _apart(values: list[float], gap: float) -> list[float]:
    """Falling values, pushed down where they lie closer than a gap."""
    placed: list[float] = []
    for value in values:
        placed.append(round(min(value, placed[-1] - gap) if placed else value, 3))
    return placed


def _lines(text: str, width: int, px_per_character: float) -> list[str]:
    return textwrap.wrap(text, max(24, int(width / px_per_character))) or [""]
