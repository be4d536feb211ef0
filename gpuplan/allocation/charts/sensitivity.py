"""The curves of a sensitivity: figures over the penalty and over the size of the cluster."""

from typing import TYPE_CHECKING

from gpuplan import theme
from gpuplan.allocation.charts.figures import VALUE_UNIT
from gpuplan.allocation.charts.panels import grid, lines
from gpuplan.allocation.sensitivity import Sensitivity
from gpuplan.gantt import Columns, Spec, safe_text
from gpuplan.gantt.layers import field, mark

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart

#: Figures of the panels: name, words, whether a share.
PANELS: tuple[tuple[str, str, bool], ...] = (
    ("objective", "objective", False),
    ("value", "value", False),
    ("coverage", "coverage (%)", True),
    ("utilization", "utilization (%)", True),
)

#: Lines by place: colours that stay apart for everybody, each with dashes and a name at its end.
LINES = (
    ("#9A9A9A", [1, 0]),
    ("#E69F00", [6, 3]),
    ("#0072B2", [1, 0]),
    ("#CC79A7", [2, 2]),
    ("#009E73", [8, 3, 2, 3]),
)

#: From these widths on (pixels) the panels of a setting stand in one row, in two, else below each other.
WIDE, NARROW = 760, 440

#: Pixels beside the drawing area of a panel.
BESIDE = 68

SETTINGS = (("penalty", "shortfall penalty"), ("gpus", "GPUs of the cluster"))


def curves_data(found: Sensitivity) -> dict[str, Columns]:
    """Data sets ``penalty`` and ``gpus``: a row per setting and policy; shares in per cent."""
    sets: dict[str, Columns] = {}
    for name, frame in (("penalty", found.penalty), ("gpus", found.gpus)):
        sets[name] = {
            "x": frame[name].tolist(),
            "policy": frame["policy"].tolist(),
            **{
                figure: [round(float(value) * (100 if share else 1), 4) for value in frame[figure]]
                for figure, _, share in PANELS
            },
            "bound": [round(float(value), 4) for value in frame["bound"]],
        }
    scenario = found.scenario
    sets["now"] = {"penalty": [scenario.objective.shortfall_penalty], "gpus": [scenario.cluster.gpus]}
    return sets


def curves_spec(found: Sensitivity, width: int = 980) -> Spec:
    """A row of panels per setting, a column per figure, over the data sets of `curves_data`."""
    columns = len(PANELS) if width >= WIDE else 2 if width >= NARROW else 1
    each = width // columns - BESIDE
    policies = list(dict.fromkeys(found.penalty["policy"].tolist() + found.gpus["policy"].tolist()))
    rows = [[_panel(name, title, figure, policies, each) for figure in PANELS] for name, title in SETTINGS]
    spec = grid(rows, beside=True)
    spec["columns"] = columns
    return spec | {
        "title": {
            "text": "How sensitive is it?",
            "subtitle": lines(
                f"upright line: the scenario as it is; dotted: the bound; objective, value and bound in {VALUE_UNIT}",
                width,
            ),
        },
        "resolve": {"legend": {"stroke": "shared", "strokeDash": "shared"}},
    }


def _panel(name: str, title: str, figure: tuple[str, str, bool], policies: list[str], width: int) -> Spec:
    column, words, share = figure
    unit = "per cent" if share else VALUE_UNIT
    x = field(
        "x", title=title, scale={"nice": False, "zero": False}, axis={"tickCount": 4, "titleLimit": width}
    )
    axis = {"title": None, "tickCount": 5, "format": ",~r"}
    scale = {"domain": [0, 100]} if share else {"zero": True}
    y = field(column, scale=scale, axis=axis)
    looks = LINES * (1 + len(policies) // len(LINES))
    colours = {"domain": policies, "range": [looks[i][0] for i in range(len(policies))]}
    dashes = {"domain": policies, "range": [looks[i][1] for i in range(len(policies))]}
    legend = {"title": "policy", "orient": "bottom", "symbolSize": 400, "symbolType": "stroke"}
    stroke = field("policy", "nominal", scale=colours, legend=legend)
    dash = field("policy", "nominal", scale=dashes, legend=legend)
    tips = [
        field("policy", "nominal"),
        field("x", title=title),
        field(column, title=f"{column} ({unit})", format=",.1f"),
    ]
    layers = [
        mark(
            name,
            {"type": "line", "strokeWidth": 2, "point": False},
            {"x": x, "y": y, "stroke": stroke, "strokeDash": dash},
        ),
        mark(name, {"type": "circle", "size": 60, "opacity": 0}, {"x": x, "y": y, "tooltip": tips}),
    ]
    if column == "objective":
        line = {"type": "line", "style": "gp-bound", "strokeWidth": 1.2, "strokeDash": [2, 3]}
        layers.append(
            mark(
                name,
                line | {"tooltip": {"expr": "'bound: no legal plan is above'"}},
                {"x": x, "y": field("bound", scale=scale, axis=axis)},
            )
        )
    layers.append(
        mark(
            "now",
            {"type": "rule", "style": "gp-border"},
            {"x": field(name, scale={"nice": False, "zero": False})},
        )
    )
    return {
        "width": width,
        "height": 150,
        "title": {"text": words, "fontSize": 11, "fontWeight": "normal", "frame": "group", "limit": width},
        "layer": layers,
    }


def describe_curves(found: Sensitivity) -> str:
    """The curves in words: the ends of each, and where blocks stop to outbid traffic."""
    said = [f"{safe_text(found.scenario.name)}. {safe_text(found.sentence)}"]
    for name, frame in (("penalty", found.penalty), ("GPUs", found.gpus)):
        for policy, rows in frame.groupby("policy", sort=False):
            first, last = rows.iloc[0], rows.iloc[-1]
            said.append(
                f"{policy}, {name} {first.iloc[0]:g} to {last.iloc[0]:g}: objective {first['objective']:,.1f} to "
                f"{last['objective']:,.1f}, coverage {100 * first['coverage']:.1f} % to {100 * last['coverage']:.1f} %."
            )
    return " ".join(said)


def sensitivity_chart(found: Sensitivity, *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """Objective (with the bound), value, coverage and utilization over the penalty and the cluster's size.

    Parameters
    ----------
    found
        From `gpuplan.sensitivity`.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    return offline_chart(curves_spec(found, width), curves_data(found), mode, describe_curves(found))
