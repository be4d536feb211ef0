"""Throughput against latency: a point per run, a line per policy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.gantt import Columns, Spec, field, mark, safe_text, titles
from gpuplan.packing.charts import heads
from gpuplan.packing.charts.clock import words
from gpuplan.packing.charts.colours import PANE, told_apart
from gpuplan.packing.model import PackingScenario

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.packing.run import PackRun

#: Columns that a table of points must have; the others may be missing.
COLUMNS = ("policy", "throughput_per_s", "latency_mean_s")

#: Shapes of the policies, beside their colours.
_SHAPES = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)

#: Pixels of the drawing area, beside it, and to the right of it for words at the last points.
_HEIGHT, _BESIDE, _RIGHT = 340, 70, 90

#: Size of a letter beside a point, and where its words are tried: right below, right above, left below, left above.
_LETTER_PX, _LINE_PX = 6.2, 12
_PLACES = ((8, 10), (8, -9), (-8, 10), (-8, -9))


def latency_throughput_chart(
    points: "Sequence[PackRun] | PackRun | pd.DataFrame",
    *,
    scenario: PackingScenario | None = None,
    label: str | None = None,
    width: int = 820,
    mode: theme.Mode = "light",
) -> "OfflineChart":
    """Tasks done per second against their mean latency.

    Parameters
    ----------
    points
        Runs (of one or several scenarios: say, a margin or a rate that changes), or a table with a row per point and
        the columns ``policy, throughput_per_s, latency_mean_s``, and where known ``latency_p95_s, out_of_memory``.
        Points of one policy are joined in their order.
    scenario
        Of a table: whose node, workload and contention the chart names.
    label
        Column of a table whose values stand beside the points: what changes along a line.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.

    Raises
    ------
    ValueError
        For no point, a missing column, or a table without its scenario.
    """
    from gpuplan.gantt.offline import offline_chart

    columns, about = _points(points, scenario, label)
    policies = list(dict.fromkeys(columns["policy"]))
    inner = max(220, width - _BESIDE - _RIGHT)
    columns |= label_columns(columns, inner, _HEIGHT)
    spec = throughput_panel("points", policies, inner, _HEIGHT)
    changing = f" Beside a point: {safe_text(label, 60)}." if label else ""
    spec["title"] = titles.head(
        "Throughput against latency (tasks per second, seconds)",
        [*about, f"Mean latency of the tasks done.{changing}"],
        width,
    )
    spec["params"] = theme.fill_params()
    return offline_chart(spec, {"points": columns}, mode, describe_points(columns, about))


def _points(
    points: "Sequence[PackRun] | PackRun | pd.DataFrame", scenario: PackingScenario | None, label: str | None
) -> tuple[Columns, list[str]]:
    """Columns of the points, and the subtitles."""
    import pandas as pd

    if isinstance(points, pd.DataFrame):
        missing = [name for name in (*COLUMNS, *([label] if label else [])) if name not in points.columns]
        if missing:
            raise ValueError(f"a table of points needs the columns {', '.join(missing)}")
        if scenario is None:
            raise ValueError("a table of points needs its scenario, whose contention the chart names")
        rows: list[dict[str, Any]] = points.to_dict("records")  # type: ignore[assignment]
        about = [heads.node_words(scenario), heads.contention_words(scenario)]
        texts = ["" if label is None else _said(row[label]) for row in rows]
    else:
        runs = heads.listed(points)
        rows = [{"policy": run.policy, **run.figures} for run in runs]
        texts = [""] * len(rows)
        about = list(dict.fromkeys(heads.node_words(run.scenario) for run in runs))[:4]
        about += list(dict.fromkeys(heads.contention_words(run.scenario) for run in runs))
    return point_columns(rows, texts), about


def point_columns(rows: Sequence[dict[str, Any]], texts: Sequence[str]) -> Columns:
    """``policy, n`` (their order), ``x`` (latency), ``y`` (throughput), ``says, label``.

    A point without a latency (nothing was done) is left out.
    """
    keys = list(dict.fromkeys(str(row["policy"]) for row in rows))
    names = dict(zip(keys, told_apart([safe_text(key, 60) for key in keys]), strict=True))
    columns: Columns = {key: [] for key in ("policy", "n", "x", "y", "says", "label")}
    for number, (row, text) in enumerate(zip(rows, texts, strict=True)):
        latency, throughput = _number(row["latency_mean_s"]), _number(row["throughput_per_s"])
        if latency is None or throughput is None:
            continue
        p95, failed = _number(row.get("latency_p95_s")), _number(row.get("out_of_memory"))
        says = f"latency {words(latency)}" + (f" (p95 {words(p95)})" if p95 is not None else "")
        says += f", {throughput:.3g} tasks per second"
        says += f", {failed:,.0f} out of memory" if failed is not None else ""
        columns["policy"].append(names[str(row["policy"])])
        columns["n"].append(number)
        columns["x"].append(round(latency, 5))
        columns["y"].append(round(throughput, 6))
        columns["says"].append(f"{text}: {says}" if text else says)
        columns["label"].append(text)
    if not columns["x"]:
        raise ValueError("there is no point to draw: no task was done")
    return columns


def label_columns(columns: Columns, width: int, height: int) -> Columns:
    """Where the words of points stand without covering each other or a point: ``label, dx, dy``; else they go."""
    most_x, most_y = max(columns["x"]) or 1.0, max(columns["y"]) or 1.0
    at = [
        (x / most_x * width, (1 - y / most_y) * height)
        for x, y in zip(columns["x"], columns["y"], strict=True)
    ]
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in at]
    found: Columns = {"label": [], "dx": [], "dy": []}
    for (x, y), text in zip(at, columns["label"], strict=True):
        place = (0, 0)
        wide = _LETTER_PX * len(text)
        for dx, dy in _PLACES if text else ():
            left = x + dx if dx > 0 else x + dx - wide
            box = (left, y + dy - _LINE_PX / 2, left + wide, y + dy + _LINE_PX / 2)
            if left >= 0 and not any(_meet(box, other) for other in taken):
                place = (dx, dy)
                taken.append(box)
                break
        found["label"].append(text if place != (0, 0) else "")
        found["dx"].append(place[0])
        found["dy"].append(place[1])
    return found


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _said(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else safe_text(str(value), 40)


def throughput_panel(data: str, policies: Sequence[str], width: int, height: int) -> Spec:
    """Points and lines over a data set of `point_columns`; both axes begin at 0."""
    looks = [theme.POLICY_LOOKS[at % len(theme.POLICY_LOOKS)] for at in range(len(policies))]
    legend = {
        "title": None,
        "orient": "top",
        "labelLimit": 260,
        "symbolSize": 130,
        "columns": max(1, width // 260),
    }
    domain = list(policies)
    shapes = [_SHAPES[at % len(_SHAPES)] for at in range(len(policies))]
    colour = field(
        "policy", "nominal", scale={"domain": domain, "range": [c for c, _ in looks]}, legend=legend
    )
    shape = field("policy", "nominal", scale={"domain": domain, "range": shapes}, legend=legend)
    dash = field("policy", "nominal", scale={"domain": domain, "range": [d for _, d in looks]}, legend=None)
    axis = {"format": "~r", "tickCount": 7}
    x = field("x", title="latency (seconds)", scale={"zero": True, "nice": True}, axis=axis)
    y = field("y", title="throughput (tasks per second)", scale={"zero": True, "nice": True}, axis=axis)
    order = field("n")
    tips = [field("policy", "nominal"), field("says", "nominal", title="point")]
    line = {"type": "line", "strokeWidth": 1.6, "strokeOpacity": 0.8, "clip": True}
    dot = {
        "type": "point",
        "size": 85,
        "filled": True,
        "opacity": 1,
        "stroke": {"expr": PANE},
        "strokeWidth": 0.8,
    }
    text = {
        "type": "text",
        "style": "gp-note",
        "align": {"expr": "datum.dx < 0 ? 'right' : 'left'"},
        "dx": {"expr": "datum.dx"},
        "dy": {"expr": "datum.dy"},
        "fontSize": 10,
        "clip": False,
    }
    return {
        "width": width,
        "height": height,
        "layer": [
            mark(
                data,
                line,
                {"x": x, "y": y, "stroke": colour, "strokeDash": dash, "order": order},
            ),
            mark(data, dot, {"x": x, "y": y, "fill": colour, "shape": shape, "tooltip": tips}),
            mark(data, text, {"x": x, "y": y, "text": field("label", "nominal")}),
        ],
    }


def describe_points(columns: Columns, about: Sequence[str]) -> str:
    """The points in words, the first twelve."""
    said = [f"{policy}, {says}" for policy, says in zip(columns["policy"], columns["says"], strict=True)]
    more = f"; and {len(said) - 12:,} more" if len(said) > 12 else ""
    return f"Throughput against latency. {'. '.join(about)}. {'; '.join(said[:12])}{more}."
