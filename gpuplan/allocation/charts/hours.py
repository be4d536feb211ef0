"""Where the GPU-hours of a day go under several policies: a bar per policy, all of equal length."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.allocation.charts.figures import labels
from gpuplan.gantt import Columns, Spec, safe_text
from gpuplan.gantt.layers import field, mark

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.allocation.plan import Plan
    from gpuplan.gantt.offline import OfflineChart

#: Column of `gpu_hours`, words of the legend, colour: useful ones first, so that where they end is the utilization.
PARTS = (
    ("batch", "jobs", theme.KIND_COLOURS["training"]),
    ("realtime_useful", "apps, in use", theme.KIND_COLOURS["real-time"]),
    ("realtime_idle", "reserved but idle", theme.KIND_COLOURS["reserved-idle"]),
    ("free", "free", "#FFFFFF"),
)

#: Ink of the numbers in the parts.
_INKS = {"jobs": "#FFFFFF"}

#: Pixels of a row and of its bar; a part narrower than its number has none.
ROW_PX, NUMBER_PX = 30, 24


def gpu_hours(plans: Sequence["Plan"]) -> "pd.DataFrame":
    """A row per plan: GPU-hours of jobs, of apps in use, reserved but idle, free, and all of them.

    The first two are useful: their share of all is the utilization.
    """
    import pandas as pd

    rows = []
    for plan in plans:
        steps = plan.steps_frame()
        hours = plan.scenario.horizon.step_hours
        rows.append([float(steps[name].sum()) * hours for name, _, _ in PARTS])
    index = pd.Index([plan.policy for plan in plans], name="policy")
    table = pd.DataFrame(rows, index=index, columns=[column for column, _, _ in PARTS])
    return table.assign(available=table.sum(axis=1))


def describe_hours(plans: Sequence["Plan"]) -> str:
    """The bars in words."""
    table = gpu_hours(plans)
    said = []
    for plan, (_, row) in zip(plans, table.iterrows(), strict=True):
        parts = ", ".join(f"{words} {row[column]:,g}" for column, words, _ in PARTS)
        said.append(f"{plan.policy}: utilization {100 * (plan.figures['utilization'] or 0):.1f} %: {parts}")
    name = safe_text(plans[0].scenario.name)
    return f"{name}: {table['available'].iloc[0]:,g} GPU-hours. {'; '.join(said)}."


def _columns(plans: Sequence["Plan"], width: int) -> Columns:
    """A row per part of a bar: from where to where, and its number where it fits."""
    table = gpu_hours(plans)
    columns: Columns = {name: [] for name in ("policy", "part", "low", "high", "middle", "says", "ink")}
    for name, (_, row) in zip(labels([plan.policy for plan in plans]), table.iterrows(), strict=True):
        low = 0.0
        for column, words, _ in PARTS:
            size = float(row[column])
            wide = width * size / max(float(row["available"]), 1e-9) >= NUMBER_PX
            values = (name, words, low, low + size, low + size / 2, f"{size:,g}" if wide else "")
            for key, value in zip(columns, (*values, _INKS.get(words, "#111111")), strict=True):
                columns[key].append(value)
            low += size
    return columns


def hours_chart(plans: Sequence["Plan"], *, width: int = 620, mode: theme.Mode = "light") -> "OfflineChart":
    """Where all GPU-hours go: jobs, apps in use, reserved but idle, free; a bar per plan.

    Parameters
    ----------
    plans
        Plans of one scenario.
    width
        Pixels of a bar.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    sets = {"hours": _columns(plans, width)}
    x: Spec = {"nice": False, "zero": True}
    axis = {"title": "GPU-hours, of all that there are", "grid": False, "titleAnchor": "start"}
    y = field(
        "policy", "nominal", sort=None, title=None, axis={"labelLimit": 200, "ticks": False, "domain": False}
    )
    colours = {"domain": [words for _, words, _ in PARTS], "range": [colour for _, _, colour in PARTS]}
    legend = {
        "title": None,
        "orient": "bottom",
        "symbolType": "square",
        "symbolStrokeWidth": 1,
        "symbolStrokeColor": "#767676",
    }
    bar: Spec = {"type": "bar", "height": {"band": 0.72}, "stroke": "#767676", "strokeWidth": 1}
    tips = [field("policy", "nominal"), field("part", "nominal"), field("says", "nominal", title="GPU-hours")]
    layers = [
        mark(
            "hours",
            bar,
            {
                "x": field("low", scale=x, axis=axis),
                "x2": {"field": "high"},
                "y": y,
                "fill": field("part", "nominal", scale=colours, legend=legend),
                "tooltip": tips,
            },
        ),
        mark(
            "hours",
            {"type": "text", "fontSize": 12},
            {
                "x": field("middle", scale=x),
                "y": y,
                "text": field("says", "nominal"),
                "color": field("ink", "nominal", scale=None),
            },
        ),
    ]
    name = safe_text(plans[0].scenario.name)
    spec: Spec = {
        "title": {"text": f"{name}: where the GPU-hours go", "anchor": "start"},
        "width": width,
        "height": ROW_PX * len(plans),
        "layer": layers,
        "view": {"fill": None, "stroke": None},
    }
    return offline_chart(spec, sets, mode, describe_hours(plans))
