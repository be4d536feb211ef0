"""Objective and bound of a proof over time, as a chart."""

from collections.abc import Sequence

from gpuplan.allocation.charts.figures import VALUE_UNIT
from gpuplan.allocation.policies import Progress
from gpuplan.gantt import Columns, Spec
from gpuplan.gantt.layers import field, mark

#: The two lines, told apart by colour and dashes.
LINES = {"best plan": ("#0072B2", [1, 0]), "bound": ("#D55E00", [5, 3])}


def progress_data(history: Sequence[Progress]) -> dict[str, Columns]:
    """Data set ``progress``: a row per line and moment at which something is known."""
    rows = [(p.seconds, "best plan", p.objective) for p in history]
    rows += [(p.seconds, "bound", p.bound) for p in history if p.bound is not None]
    # a bound that is many times the plan would flatten all that follows
    best = max((p.objective for p in history), default=0.0)
    kept = [row for row in rows if row[1] == "best plan" or row[2] <= best + 0.25 * max(1.0, abs(best))]
    return {
        "progress": {
            "seconds": [round(row[0], 3) for row in kept],
            "line": [row[1] for row in kept],
            "value": [round(row[2], 4) for row in kept],
        }
    }


def progress_spec(width: int = 640) -> Spec:
    """Steps of both lines over seconds; the vertical axis does not start at zero, and says so."""
    domain = list(LINES)
    scales = [{"domain": domain, "range": [LINES[name][i] for name in domain]} for i in range(2)]
    legend = {"title": None, "orient": "top", "symbolSize": 400, "symbolType": "stroke"}
    y = field(
        "value",
        scale={"zero": False, "nice": True},
        axis={"title": "objective (axis does not start at 0)", "tickCount": 5, "format": ",~r"},
    )
    x = field("seconds", title="seconds", axis={"tickCount": max(2, width // 90), "format": ",~r"})
    stroke = field("line", "nominal", scale=scales[0], legend=legend)
    dash = field("line", "nominal", scale=scales[1], legend=legend)
    line = {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "point": {"size": 25}}
    tips = [
        field("line", "nominal"),
        field("seconds", format=".2f"),
        field("value", title=VALUE_UNIT, format=",.2f"),
    ]
    return {
        "width": width,
        "height": 180,
        "title": {"text": "best plan and bound over time", "subtitle": VALUE_UNIT},
        "layer": [
            mark("progress", line, {"x": x, "y": y, "stroke": stroke, "strokeDash": dash, "tooltip": tips}),
        ],
    }
