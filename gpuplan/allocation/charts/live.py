"""The live page: one linked spec per frame, and the data of two plans for it."""

from typing import TYPE_CHECKING, Any, Literal

from gpuplan import gantt, theme
from gpuplan.allocation.charts import data, figures, panels
from gpuplan.allocation.charts.data import SIDES
from gpuplan.allocation.model import AllocationScenario
from gpuplan.gantt import SCHEMA, Columns, Links

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan

Layout = Literal["side", "stacked"]

#: Pixels that axes and gaps take from a column.
_MARGIN = 62


def column_width(width: int, layout: Layout) -> int:
    """Pixels of a drawing area where the whole page has `width`."""
    return max(160, (width // 2 if layout == "side" else width) - _MARGIN)


def dashboard_spec(
    scenario: AllocationScenario, *, width: int = 980, layout: Layout = "side"
) -> dict[str, Any]:
    """Vega-Lite spec of the live page, without data.

    It depends on the frame only (GPUs by height class, hours, clock, apps, width), so equal frames give
    equal dicts. Data sets are named; `dashboard_data` makes them.

    Parameters
    ----------
    scenario
        Whose frame is drawn.
    width
        Pixels of the whole page.
    layout
        ``"side"``: the policies beside each other; ``"stacked"``: below each other.
    """
    frame = data.frame_of(scenario, column_width(width, layout))
    linked = Links(tuple(f"{side}_bars" for side in SIDES), tuple(f"{side}_usage" for side in SIDES))
    rows = [[gantt.spec(frame, linked, side, page_width=width) for side in SIDES]]
    for row, (name, _) in enumerate(data.app_rows(scenario)):
        title = f"{name}: {panels.DEMAND_WORDS}"
        rows.append([panels.demand_panel(frame, linked, side, row, title) for side in SIDES])
    rows.append([panels.usage_panel(frame, side) for side in SIDES])
    under = [panels.comparison_panel(frame.width, name, 2) for name in ("shares", "amounts")]
    head = {"$schema": SCHEMA, "params": [*linked.params(), *theme.fill_params(), gantt.still_param()]}
    return head | panels.grid(rows, beside=layout == "side", under=under)


def dashboard_data(
    left: "Plan", right: "Plan", *, width: int = 980, layout: Layout = "side"
) -> dict[str, Columns]:
    """Data sets of the live page for two plans of one frame, as dicts of columns.

    `width` and `layout` must be those of the spec: they decide which names fit.
    """
    frame = data.frame_of(left.scenario, column_width(width, layout))
    both = (left, right)
    names = figures.labels([plan.policy for plan in both])
    tops = data.demand_tops(both)
    sets: dict[str, Columns] = {"rows": gantt.row_columns(frame)}
    for side, plan, name in zip(SIDES, both, names, strict=True):
        sets |= data.gantt_data(plan, frame, side, headline(name, plan))
        sets |= data.demand_data(plan, frame, side, tops)
        sets |= data.usage_data(plan, frame, side)
    return sets | figures.comparison_data(names, [plan.figures for plan in both])


def headline(name: str, plan: "Plan") -> str:
    """Title of a Gantt: the policy and its two main figures."""
    utilization = figures.amount(plan.figures["utilization"], True)
    return f"{name}: utilization {utilization}, value {figures.amount(plan.figures['value'], False)}"
