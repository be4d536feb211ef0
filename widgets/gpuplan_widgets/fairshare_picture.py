"""The fair-share explorer's live picture: which specification a pair of runs needs, and their data."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.fairshare.charts import live_data, live_spec
from gpuplan.fairshare.charts.colours import palette_of
from gpuplan.fairshare.charts.live import live_clock
from gpuplan.fairshare.run import Run
from gpuplan_widgets.live_chart import ROOM, LiveChart
from gpuplan_widgets.picture import SIDE_BY_SIDE

_NARROWEST, _WIDEST, _SPARE = 225, 1500, 32

#: Pixels of a character of a name, of the longest name, of an axis that stands in the same place; the longest of the
#: names that are always there.
_NAME_PX, _LONGEST_PX, _AXIS_PX, _PYRAMID = 5.9, 190, 46, "availability (of installed)"

#: Specifications that are kept; a drag over days comes by the same ones again.
_KEPT = 32


class FairSharePicture:
    """A live chart of two runs whose specification is replaced only when the frame changes.

    Attributes
    ----------
    chart : LiveChart
        The widget to show.
    """

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self._specs: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._key = _key(runs, ROOM)
        self.chart = LiveChart(self._spec(runs, ROOM), _data(runs, ROOM), label="Two runs of a cluster")
        self.chart.adapts = True

    def show(self, runs: Mapping[str, Run], *, old: bool = False) -> None:
        """Draw other runs, or the same ones for another width of the page."""
        room = self.chart.room
        key = _key(runs, room)
        spec = self._spec(runs, room) if key != self._key else None
        self.chart.show(_data(runs, room), spec=spec, old=old)
        self._key = key

    def fits(self, runs: Mapping[str, Run]) -> bool:
        """Whether the specification on screen is that of the runs at the page's present width."""
        return _key(runs, self.chart.room) == self._key

    def _spec(self, runs: Mapping[str, Run], room: int) -> dict[str, Any]:
        key = _key(runs, room)
        if key not in self._specs:
            if len(self._specs) >= _KEPT:
                self._specs.clear()
            self._specs[key] = live_spec(
                runs["left"].problem, **_size(room, palette_of(runs["left"].problem).labels)
            )
        return self._specs[key]


def _data(runs: Mapping[str, Run], room: int) -> dict[str, Any]:
    return dict(
        live_data(runs["left"], runs["right"], **_size(room, palette_of(runs["left"].problem).labels))
    )


def _key(runs: Mapping[str, Run], room: int) -> tuple[Any, ...]:
    """What a specification depends on: the cluster, the teams and their colours, the axis of time, the width."""
    problem = runs["left"].problem
    scenario, palette = problem.scenario, palette_of(problem)
    frame = (scenario.name, scenario.pools, scenario.drains, problem.tree.path, live_clock(problem))
    return *frame, palette.labels, palette.colours, *_size(room, palette.labels).values()


def _size(room: int, labels: Sequence[str]) -> dict[str, Any]:
    """Width and layout of the picture for a page of so many pixels."""
    # Names beside bars reach out to the left of what the charts count as their width.
    names = min(_LONGEST_PX, round(_NAME_PX * max(map(len, (*labels, _PYRAMID)))))
    width = min(max(room - _SPARE - max(0, names - _AXIS_PX), _NARROWEST), _WIDEST)
    return {"width": width, "layout": "side" if room >= SIDE_BY_SIDE else "stacked"}
