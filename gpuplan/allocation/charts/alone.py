"""Charts that stand alone: Altair charts with their data inside, for notebooks, pages and files."""

from typing import TYPE_CHECKING

import altair as alt

from gpuplan import gantt as drawing
from gpuplan import theme
from gpuplan.allocation.charts import data, figures, panels, words
from gpuplan.allocation.charts.data import SIDES
from gpuplan.allocation.charts.live import (
    Layout,
    column_width,
    dashboard_data,
    dashboard_spec,
)
from gpuplan.allocation.charts.live import headline as _headline
from gpuplan.gantt import Columns, Links, Spec
from gpuplan.gantt.offline import OfflineChart, offline_chart

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Comparison, Plan


def gantt(plan: "Plan", *, width: int = 720, mode: theme.Mode = "light") -> OfflineChart:
    """Gantt of a plan: GPUs downwards, time to the right.

    Parameters
    ----------
    plan
        What is drawn.
    width
        Pixels of the drawing area.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    frame = data.frame_of(plan.scenario, width)
    linked = Links(("left_bars",))
    sets = data.gantt_data(plan, frame, "left", _headline(plan.policy, plan))
    sets["rows"] = drawing.row_columns(frame)
    spec = drawing.spec(frame, linked, "left", alone=True, page_width=width) | {
        "params": [*linked.params(), *theme.fill_params()]
    }
    return offline_chart(spec, sets, mode, words.describe(plan))


def gantt_pair(
    left: "Plan", right: "Plan", *, width: int = 980, layout: Layout = "side", mode: theme.Mode = "light"
) -> OfflineChart:
    """Two Gantts of equal scale, and below each the GPUs in use, where a stretch of time can be dragged out.

    A job under the pointer stands out on both sides, and a click on the legend leaves one kind.
    """
    frame = data.frame_of(left.scenario, column_width(width, layout))
    linked = Links(tuple(f"{side}_bars" for side in SIDES), tuple(f"{side}_usage" for side in SIDES))
    sets: dict[str, Columns] = {"rows": drawing.row_columns(frame)}
    names = figures.labels([left.policy, right.policy])
    for side, plan, name in zip(SIDES, (left, right), names, strict=True):
        sets |= data.gantt_data(plan, frame, side, _headline(name, plan))
        sets |= data.usage_data(plan, frame, side)
    rows = [
        [drawing.spec(frame, linked, side, page_width=width) for side in SIDES],
        [panels.usage_panel(frame, side, height=50) for side in SIDES],
    ]
    params = [*linked.params(), *theme.fill_params(), drawing.still_param()]
    spec = panels.grid(rows, beside=layout == "side") | {"params": params}
    return offline_chart(spec, sets, mode, words.describe(left, right))


def demand_chart(*plans: "Plan", width: int = 980, mode: theme.Mode = "light") -> OfflineChart:
    """Demand of each app with what was held and served: a row per app, a column per plan, equal scales."""
    return _columns_of_panels(plans, width, mode, demand=True)


def utilization_chart(*plans: "Plan", width: int = 980, mode: theme.Mode = "light") -> OfflineChart:
    """GPUs in use per step by kind, reserved but idle, and free: a column per plan, equal scales."""
    return _columns_of_panels(plans, width, mode, demand=False)


def _columns_of_panels(
    plans: tuple["Plan", ...], width: int, mode: theme.Mode, *, demand: bool
) -> OfflineChart:
    frame = data.frame_of(plans[0].scenario, max(160, width // len(plans) - 62))
    unlinked = Links(())
    tops = data.demand_tops(plans)
    names = figures.labels([plan.policy for plan in plans])
    sets: dict[str, Columns] = {}
    columns: list[list[Spec]] = []
    for number, (plan, name) in enumerate(zip(plans, names, strict=True)):
        side = f"plan_{number}"
        if not demand:
            sets |= data.usage_data(plan, frame, side)
            title = f"{name}: GPUs in use, from the bottom T, B, Q, R, idle"
            columns.append([panels.usage_panel(frame, side, title, height=130)])
            continue
        sets |= data.demand_data(plan, frame, side, tops)
        apps = data.app_rows(plan.scenario)
        columns.append(
            [
                panels.demand_panel(
                    frame, unlinked, side, row, f"{name}, {app}: {panels.DEMAND_WORDS}", labels=True
                )
                for row, (app, _) in enumerate(apps)
            ]
        )
    rows = [list(row) for row in zip(*columns, strict=True)]
    for row in rows:
        for panel in row:
            panel["layer"].append(panels.area_legend(panels.DEMAND_KINDS if demand else panels.USAGE_KINDS))
    spec = panels.grid(rows, beside=True) | {"params": theme.fill_params()}
    return offline_chart(spec, sets, mode, words.describe(*plans))


def comparison_chart(
    comparison: "Comparison", *, width: int = 980, mode: theme.Mode = "light"
) -> OfflineChart:
    """Utilization, served demand, value, penalty and objective, with the change against the first policy.

    A thin line with its value marks the bound: no legal plan has a larger objective.
    """
    plans = list(comparison.plans.values())
    names = list(comparison.plans)
    sets = figures.comparison_data(names, [plan.figures for plan in plans])
    each = width // 2 - 20
    row = [panels.comparison_panel(each, name, len(plans)) for name in ("shares", "amounts")]
    spec = panels.grid([row], beside=True)
    return offline_chart(spec, sets, mode, words.describe(*plans))


def dashboard(
    left: "Plan", right: "Plan", *, width: int = 980, layout: Layout = "side", mode: theme.Mode = "light"
) -> OfflineChart:
    """Everything about two plans in one linked chart, as the live page shows it."""
    spec = dashboard_spec(left.scenario, width=width, layout=layout)
    sets = dashboard_data(left, right, width=width, layout=layout)
    return offline_chart(spec, sets, mode, words.describe(left, right))


def to_html(chart: alt.TopLevelMixin, *tables: str) -> str:
    """A page that draws a chart without a network, followed by tables (see `table`)."""
    page: str = chart.to_html(inline=True)
    return page.replace("</body>", "\n".join([_TABLE_STYLE, *tables, "</body>"])) if tables else page


_TABLE_STYLE = (
    "<style>body{font-family:" + theme.FONT + ";font-size:13px}table{border-collapse:collapse;margin:1.5em 0}"
    "caption{font-weight:bold;text-align:left}th,td{border:1px solid #999;padding:2px 6px;text-align:left}</style>"
)
