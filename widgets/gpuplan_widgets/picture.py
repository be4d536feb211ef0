"""The explorer's live picture: which specification a pair of plans needs, and their data."""

from collections.abc import Mapping
from typing import Any

from gpuplan.allocation.charts import dashboard_data, dashboard_spec
from gpuplan.allocation.model import AllocationScenario
from gpuplan.allocation.plan import Plan
from gpuplan_widgets.live_chart import ROOM, LiveChart

#: The two sides, as explorers name them.
SIDES = ("left", "right")

#: Below this width (pixels) the two sides stand below each other.
SIDE_BY_SIDE = 700

_NARROWEST, _ROOMY, _WIDEST = 320, 960, 1500

#: Specifications that are kept; a drag over cluster sizes comes by the same ones again.
_KEPT = 64


class Picture:
    """A live chart of two plans whose specification is replaced only when the frame changes.

    Parameters
    ----------
    plans
        The plans under ``"left"`` and ``"right"``.

    Attributes
    ----------
    chart : LiveChart
        The widget to show.
    """

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self._specs: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._key = _key(plans["left"].scenario, ROOM)
        self.chart = LiveChart(
            self._spec(plans["left"].scenario, ROOM),
            _data(plans, ROOM),
            label="Two allocation plans",
        )
        self.chart.adapts = True

    def show(self, plans: Mapping[str, Plan], *, old: bool = False) -> None:
        """Draw other plans, or the same ones for another width of the page."""
        scenario, room = plans["left"].scenario, self.chart.room
        key = _key(scenario, room)
        spec = self._spec(scenario, room) if key != self._key else None
        self.chart.show(_data(plans, room), spec=spec, old=old)
        self._key = key

    def fits(self, plans: Mapping[str, Plan]) -> bool:
        """Whether the specification on screen is that of the plans at the page's present width."""
        return _key(plans["left"].scenario, self.chart.room) == self._key

    def _spec(self, scenario: AllocationScenario, room: int) -> dict[str, Any]:
        key = _key(scenario, room)
        if key not in self._specs:
            if len(self._specs) >= _KEPT:
                self._specs.clear()
            self._specs[key] = dashboard_spec(scenario, **_size(room))
        return self._specs[key]


def _data(plans: Mapping[str, Plan], room: int) -> dict[str, Any]:
    left, right = (plans[side] for side in SIDES)
    return dashboard_data(left, right, **_size(room))


def _key(scenario: AllocationScenario, room: int) -> tuple[Any, ...]:
    """What a specification depends on: GPUs, nodes, horizon, the apps with a row, the width."""
    # With many apps, those with the highest peaks have a row of their own.
    apps = tuple((app.name, max(app.demand, default=0)) for app in scenario.realtime)
    if len(apps) <= 3:
        apps = tuple((name, 0) for name, _ in apps)
    cluster = scenario.cluster
    return cluster.gpus, cluster.node_size, scenario.horizon, apps, *_size(room).values()


def _size(room: int) -> dict[str, Any]:
    """Width and layout of the picture for a page of so many pixels."""
    # Figures beside the bars of the comparison reach out of narrow columns.
    spare = 20 if room >= _ROOMY else 80
    width = min(max(room - spare, _NARROWEST), _WIDEST)
    return {"width": width, "layout": "side" if width >= SIDE_BY_SIDE else "stacked"}
