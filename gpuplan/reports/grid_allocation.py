"""The picture of an interactive page of allocation: two Gantts, and below each the demand of the apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuplan import gantt
from gpuplan.allocation.charts import data, figures, panels
from gpuplan.allocation.charts.live import column_width
from gpuplan.gantt import Frame, Links, gantt_height
from gpuplan.reports.grid_pictures import LAYOUTS, Sets, Tabled, Words, whole

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan
    from gpuplan.gantt import Spec
    from gpuplan.reports.grid_axes import Space

_SIDES = ("left", "right")


@dataclass(frozen=True)
class AllocationLook:
    """One height for every cluster size, so that all points share a specification."""

    scenario: Any
    height: int

    @classmethod
    def of(cls, comparison: Any, space: Space) -> AllocationLook:
        """The look of a page over a space."""
        sizes = next(axis.values for axis in space.axes if axis.name == "gpus")
        return cls(comparison.scenario, gantt_height(int(max(sizes))))

    def _frame(self, scenario: Any, layout: str) -> Frame:
        width = column_width(LAYOUTS[layout], "side" if layout == "wide" else "stacked")
        return data.frame_of(scenario, width, self.height)

    def sets(self, results: Mapping[str, Plan]) -> tuple[Sets, list[Sets]]:
        """Bars, marks and demand of each plan; labels of the GPUs."""
        frame = self._frame(next(iter(results.values())).scenario, "wide")
        return {"rows": gantt.row_columns(frame)}, [
            _of_plan(name, plan, frame) for name, plan in results.items()
        ]

    def finish(self, sets: Sequence[Sets]) -> None:
        """One scale per app at all points: the most that is wanted or held anywhere."""
        names = [name for name in (sets[0] if sets else ()) if name.startswith("demand_")]
        for name in names:
            top = max(max(of_plan[name]["top"]) for of_plan in sets)
            for of_plan in sets:
                of_plan[name]["top"] = [top] * len(of_plan[name]["top"])

    def specs(self) -> dict[str, Spec]:
        """Two columns on a wide page, below each other on others."""
        return {layout: self._spec(layout) for layout in LAYOUTS}

    def _spec(self, layout: str) -> Spec:
        frame = self._frame(self.scenario, layout)
        linked = Links(tuple(f"{side}_bars" for side in _SIDES))
        rows = [[gantt.spec(frame, linked, side, page_width=LAYOUTS[layout]) for side in _SIDES]]
        for row, (name, _) in enumerate(data.app_rows(self.scenario)):
            title = name if layout == "narrow" else f"{name}: {panels.DEMAND_WORDS}"
            rows.append([panels.demand_panel(frame, linked, side, row, title) for side in _SIDES])
        return whole(panels.grid(rows, beside=layout == "wide"), linked.params())

    def words(self) -> Words:
        """What the picture is."""
        tables = tuple(
            Tabled(
                f"{side}_bars",
                f"Bars on the {side}",
                {"job": "job", "kind": "kind", "gpus": "GPUs", "time": "time", "detail": "detail"},
            )
            for side in _SIDES
        )
        about = (
            "Each bar is a block of GPUs held for a time; below, the demand of the apps (line) with what is served, "
            "unmet and held idle. A job under the pointer stands out on both sides; a click on an entry of the legend "
            "leaves one kind."
        )
        return Words("The plans of two policies", about, True, tables)


def _of_plan(name: str, plan: Plan, frame: Frame) -> Sets:
    share = figures.amount(plan.figures["utilization"], True)
    made = data.gantt_data(plan, frame, "of", f"{name}: utilization {share}")
    made |= data.demand_data(plan, frame, "of", data.demand_tops([plan]))
    return {key.removeprefix("of_"): columns for key, columns in made.items()}
