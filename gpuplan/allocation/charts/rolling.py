"""Charts of rolling runs: what a short sight loses, what errors cost, and what a plan shows before it comes."""

from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.allocation.charts.figures import VALUE_UNIT
from gpuplan.allocation.charts.panels import grid, lines
from gpuplan.allocation.charts.sensitivity import LINES
from gpuplan.allocation.lookahead import coverage_risk, idle_windows
from gpuplan.gantt import Columns, Spec, field, mark, safe_text

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.allocation.plan import Plan
    from gpuplan.allocation.rolling_run import RollingRun
    from gpuplan.allocation.rolling_studies import EndOfWorld, ErrorMap
    from gpuplan.gantt.offline import OfflineChart

#: Colours of the heat map from loss to gain: they stay apart for everybody, and every cell says its number.
LOSS, NOTHING, GAIN = "#E66101", "#F7F7F7", "#5E3C99"

#: Panels of `horizon_chart`: figure, words, factor.
HORIZON_PANELS = (
    ("objective", f"objective ({VALUE_UNIT})", 1.0),
    ("coverage", "coverage (% of demand)", 100.0),
    ("wait_p50_hours", "median wait (hours)", 1.0),
)


def horizon_chart(found: "EndOfWorld", *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Objective, coverage and median wait over the horizon of plans, a line per policy."""
    from gpuplan.gantt.offline import offline_chart

    table = found.table
    policies = list(dict.fromkeys(table["policy"]))
    each = max(160, width // len(HORIZON_PANELS) - 70)
    sets: dict[str, Columns] = {}
    panels: list[Spec] = []
    for name, words, factor in HORIZON_PANELS:
        rows = table[(table["figure"] == name) & table["value"].notna()]
        sets[name] = {
            "hours": rows["horizon_hours"].tolist(),
            "value": [round(factor * value, 4) for value in rows["value"].tolist()],
            "policy": rows["policy"].tolist(),
        }
        panels.append(_horizon_panel(name, words, policies, sorted(set(table["horizon_hours"])), each))
    spec = grid([panels], beside=True) | {
        "title": {
            "text": "The end of the world: how far plans see",
            "subtitle": lines(
                f"{safe_text(found.name)}, {found.days} days; planned anew every step, only the next step is committed",
                width,
            ),
        },
        "resolve": {"legend": {"stroke": "shared", "strokeDash": "shared"}},
    }
    return offline_chart(spec, sets, mode, " ".join([f"{safe_text(found.name)}.", *found.sentences]))


def _horizon_panel(data: str, words: str, policies: list[str], hours: list[float], width: int) -> Spec:
    axis = {"values": hours, "labelExpr": "datum.value", "grid": True}
    x = field(
        "hours", title="horizon of plans (hours, doubling)", scale={"type": "log", "base": 2}, axis=axis
    )
    y = field("value", title=None, scale={"zero": True}, axis={"tickCount": 5, "format": ",~r"})
    colours = {"domain": policies, "range": [LINES[i % len(LINES)][0] for i in range(len(policies))]}
    dashes = {"domain": policies, "range": [LINES[i % len(LINES)][1] for i in range(len(policies))]}
    legend = {"title": "policy", "orient": "bottom", "symbolSize": 400, "symbolType": "stroke"}
    stroke = field("policy", "nominal", scale=colours, legend=legend)
    dash = field("policy", "nominal", scale=dashes, legend=legend)
    tips = [
        field("policy", "nominal"),
        field("hours", title="horizon (hours)"),
        field("value", title=words, format=",.2f"),
    ]
    line = {"type": "line", "strokeWidth": 2, "point": {"size": 30, "fill": "#FFFFFF"}}
    return {
        "width": width,
        "height": 180,
        "title": {"text": words, "fontSize": 11, "fontWeight": "normal", "frame": "group", "limit": width},
        "layer": [mark(data, line, {"x": x, "y": y, "stroke": stroke, "strokeDash": dash, "tooltip": tips})],
    }


def error_map_chart(found: "ErrorMap", *, width: int = 620, mode: theme.Mode = "light") -> "OfflineChart":
    """Mean gain over FIFO for every pair of errors; losses in another colour, with a minus and a frame."""
    from gpuplan.gantt.offline import offline_chart

    mean = found.mean
    known = mean[mean["gain"].notna()]
    most = max(1e-9, float(known["gain"].abs().max())) if len(known) else 1.0
    says = [f"{gain:+.0%}" if gain == gain else "none" for gain in mean["gain"].tolist()]
    sets: dict[str, Columns] = {
        "cells": {
            "traffic": [f"{value:g}" for value in mean["traffic_noise"].tolist()],
            "durations": [f"{value:g}" for value in mean["duration_noise"].tolist()],
            "gain": [round(100 * gain, 2) if gain == gain else None for gain in mean["gain"].tolist()],
            "least": [round(100 * gain, 1) if gain == gain else None for gain in mean["least"].tolist()],
            "kept": [round(100 * kept, 1) for kept in mean["kept"].tolist()],
            "negative": [bool(value) for value in mean["negative"].tolist()],
            "says": says,
            "dark": [gain == gain and abs(gain) > 0.55 * most for gain in mean["gain"].tolist()],
        }
    }
    scale = {"domain": [-100 * most, 0, 100 * most], "range": [LOSS, NOTHING, GAIN], "type": "linear"}
    x = field(
        "traffic",
        "ordinal",
        sort=None,
        title="error of the traffic forecast (sd of the log)",
        axis={"labelAngle": 0},
    )
    y = field(
        "durations", "ordinal", sort="descending", title=["error of announced", "durations (sd of the log)"]
    )
    legend = {"title": ["gain, % of FIFO's", "value if all is known"], "format": "+d", "gradientLength": 150}
    tips = [
        field("traffic", "nominal", title="traffic noise"),
        field("durations", "nominal", title="duration noise"),
        field("gain", title="mean gain (%)", format="+.1f"),
        field("least", title="least of the draws (%)", format="+.1f"),
        field("kept", title=f"{found.policy} keeps of its own objective (%)", format=".1f"),
    ]
    ink = {"condition": {"test": "datum.dark", "value": "#FFFFFF"}, "value": "#111111"}
    frame = {"condition": {"test": "datum.negative", "value": 2.5}, "value": 0}
    layers = [
        mark(
            "cells",
            {"type": "rect", "stroke": "#111111"},
            {
                "x": x,
                "y": y,
                "fill": field("gain", scale=scale, legend=legend),
                "strokeWidth": frame,
                "tooltip": tips,
            },
        ),
        mark(
            "cells",
            {"type": "text", "fontSize": 12},
            {"x": x, "y": y, "text": field("says", "nominal"), "fill": ink},
        ),
    ]
    seeds = int(mean["seeds"].max()) if len(mean) else 0
    spec: Spec = {
        "width": width - 190,
        "height": max(170, 44 * mean["duration_noise"].nunique()),
        "layer": layers,
        "title": {
            "text": lines(
                f"What is left of the gain of {found.policy} over fifo where forecasts are wrong", width, 7.2
            ),
            "subtitle": lines(
                f"{safe_text(found.name)}, {found.days} days, mean of {seeds} draws; framed: {found.policy} is worse",
                width,
            ),
        },
    }
    return offline_chart(spec, sets, mode, f"{safe_text(found.name)}. {found.sentence}")


def lookahead_chart(
    plan: "Plan", *, margin: float = 0.0, width: int = 980, mode: theme.Mode = "light"
) -> "OfflineChart":
    """Slack of the real-time apps per step, with missing GPUs below zero, and the idle windows as blocks.

    Parameters
    ----------
    plan
    margin
        How much higher than expected traffic may come (see `gpuplan.coverage_risk`).
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    hours = plan.scenario.horizon.step_hours
    risk, windows = coverage_risk(plan, margin), idle_windows(plan)
    sets: dict[str, Columns] = {
        "risk": {
            "start": risk["hour"].tolist(),
            "end": (risk["hour"] + hours).tolist(),
            "gpus": (risk["slack"] - risk["missing"]).tolist(),
            "kind": risk["risk"].map({"none": "slack", "no slack": "no slack", "short": "missing"}).tolist(),
        },
        "windows": {
            "start": windows["start_hour"].tolist(),
            "end": (windows["start_hour"] + windows["hours"]).tolist(),
            "low": windows["first_gpu"].tolist(),
            "high": (windows["first_gpu"] + windows["gpus"]).tolist(),
            "says": [
                f"{gpus} x {length:g} h"
                for gpus, length in zip(windows["gpus"], windows["hours"], strict=True)
            ],
        },
    }
    each = width // 2 - 70
    title = "GPUs to spare (above 0), missing (below)"
    if margin:
        title += f", traffic {margin:.0%} above its forecast"
    spec = grid([[_risk_panel(plan, title, each), _windows_panel(plan, each)]], beside=True)
    spec |= {"title": {"text": lines(f"What the plan of {plan.policy} shows before it comes", width, 7.2)}}
    return offline_chart(spec, sets, mode, _describe_outlook(plan, risk, windows))


def _hour_axis(plan: "Plan") -> Spec:
    total = plan.scenario.horizon.steps * plan.scenario.horizon.step_hours
    scale = {"domain": [0, total], "nice": False}
    return field("start", title="hour", scale=scale, axis={"tickCount": 8, "format": ",~r"})


def _risk_panel(plan: "Plan", title: str, width: int) -> Spec:
    looks = {"slack": "#56B4E9", "no slack": "#E69F00", "missing": "#D55E00"}
    fill = field(
        "kind",
        "nominal",
        scale={"domain": list(looks), "range": list(looks.values())},
        legend={"title": None, "orient": "bottom"},
    )
    x = _hour_axis(plan)
    y = field("gpus", title="GPUs", scale={"zero": True}, axis={"tickMinStep": 1, "format": "d"})
    tips = [field("start", title="hour"), field("gpus", title="GPUs"), field("kind", "nominal")]
    bar = {"type": "rect", "strokeWidth": 0}
    none = {"type": "point", "shape": "diamond", "filled": True, "size": 45}
    return {
        "width": width,
        "height": 200,
        "title": {"text": title, "fontSize": 11, "fontWeight": "normal", "frame": "group", "limit": width},
        "layer": [
            mark(
                "risk",
                bar,
                {"x": x, "x2": {"field": "end"}, "y": y, "y2": {"datum": 0}, "fill": fill, "tooltip": tips},
            ),
            mark(
                "risk",
                none,
                {"x": x, "y": y, "fill": fill, "tooltip": tips},
                transform=[{"filter": "datum.gpus == 0"}],
            ),
        ],
    }


def _gpu_ticks(gpus: int) -> list[int]:
    step = max(1, 1 << max(0, (gpus // 6).bit_length() - 1))
    return list(range(0, gpus, step))


def _windows_panel(plan: "Plan", width: int) -> Spec:
    gpus = plan.scenario.cluster.gpus
    total = plan.scenario.horizon.steps * plan.scenario.horizon.step_hours
    x = _hour_axis(plan)
    y = field(
        "low",
        title="GPU",
        scale={"domain": [gpus, 0], "nice": False},
        axis={"values": _gpu_ticks(gpus), "format": "d"},
    )
    tips = [
        field("says", "nominal", title="window"),
        field("start", title="from hour"),
        field("low", title="first GPU"),
    ]
    block = {"type": "rect", "fill": "#009E73", "fillOpacity": 0.35, "stroke": "#00684D"}
    words = {
        "type": "text",
        "align": "left",
        "baseline": "top",
        "dx": 3,
        "dy": 2,
        "fontSize": 10,
        "limit": 90,
        "clip": True,
    }
    return {
        "width": width,
        "height": 200,
        "title": {
            "text": "idle windows: GPUs x hours",
            "fontSize": 11,
            "fontWeight": "normal",
            "frame": "group",
            "limit": width,
        },
        "layer": [
            mark(
                "windows",
                block,
                {"x": x, "x2": {"field": "end"}, "y": y, "y2": {"field": "high"}, "tooltip": tips},
            ),
            mark(
                "windows",
                words,
                {"x": x, "y": y, "text": field("says", "nominal")},
                transform=[{"filter": f"datum.end - datum.start > {0.12 * total}"}],
            ),
        ],
    }


def _describe_outlook(plan: "Plan", risk: "pd.DataFrame", windows: "pd.DataFrame") -> str:
    short, tight = int((risk["risk"] == "short").sum()), int((risk["risk"] == "no slack").sum())
    hours = plan.scenario.horizon.step_hours
    said = (
        f"{safe_text(plan.scenario.name)}, plan of {plan.policy}: GPUs are missing in {short * hours:g} hours"
    )
    if short:
        said += f" (at most {int(risk['missing'].max())})"
    said += f", none is to spare in {tight * hours:g} more. {len(windows)} idle windows"
    if len(windows):
        best = windows.sort_values("gpu_hours", ascending=False).iloc[0]
        said += (
            f", the largest {int(best['gpus'])} GPUs for {best['hours']:g} h from hour {best['start_hour']:g}"
        )
    return said + "."


def promise_chart(run: "RollingRun", *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Batch GPU-hours and served demand that every plan promised for its horizon, beside what came."""
    from gpuplan.gantt.offline import offline_chart

    table = run.promises_frame()
    sets: dict[str, Columns] = {}
    panels: list[Spec] = []
    each = width // 2 - 70
    for name, words in (("batch", "batch work"), ("served", "served demand")):
        share = [
            table[f"{name}_{what}_gpu_hours"] / (table["horizon_hours"]).clip(lower=1e-9)
            for what in ("promised", "come")
        ]
        sets[name] = {
            "hour": [*table["hour"], *table["hour"]],
            "gpus": [round(float(value), 4) for column in share for value in column],
            "line": ["promised"] * len(table) + ["came"] * len(table),
        }
        panels.append(_promise_panel(name, f"{words}, GPUs on average over the horizon", each))
    spec = grid([panels], beside=True) | {
        "title": {
            "text": lines(f"What the plans of {run.policy} promised, and what came", width, 7.2),
            "subtitle": lines(safe_text(run.name), width),
        },
        "resolve": {"legend": {"stroke": "shared", "strokeDash": "shared"}},
    }
    off = run.figures["promise_utilization_error"]
    said = f"{safe_text(run.name)}: plans of {run.policy} are off by {float(off or 0):.1%} of the cluster on average."
    return offline_chart(spec, sets, mode, said)


def _promise_panel(data: str, words: str, width: int) -> Spec:
    names = ["promised", "came"]
    legend = {"title": None, "orient": "bottom", "symbolSize": 400, "symbolType": "stroke"}
    stroke = field("line", "nominal", scale={"domain": names, "range": ["#E69F00", "#0072B2"]}, legend=legend)
    dash = field("line", "nominal", scale={"domain": names, "range": [[6, 3], [1, 0]]}, legend=legend)
    x = field("hour", title="hour of the plan", scale={"nice": False}, axis={"tickCount": 8, "format": ",~r"})
    y = field("gpus", title="GPUs", scale={"zero": True}, axis={"tickCount": 5})
    return {
        "width": width,
        "height": 160,
        "title": {"text": words, "fontSize": 11, "fontWeight": "normal", "frame": "group", "limit": width},
        "layer": [
            mark(
                data,
                {"type": "line", "strokeWidth": 1.6},
                {"x": x, "y": y, "stroke": stroke, "strokeDash": dash},
            )
        ],
    }
