"""The packing explorer's live picture: which specification a pair of runs needs, and their data."""

from collections.abc import Mapping
from typing import Any

from gpuplan.packing.charts.colours import palette_of
from gpuplan.packing.charts.heads import has_wide
from gpuplan.packing.charts.live import MODELS, Picture, has_gantt, live_clock, live_data, live_spec
from gpuplan.packing.charts.split import groups_of_problem
from gpuplan.packing.run import PackRun
from gpuplan_widgets.live_chart import ROOM, LiveChart
from gpuplan_widgets.picture import SIDE_BY_SIDE

_NARROWEST, _WIDEST, _SPARE = 225, 1500, 32

#: Specifications that are kept; a walk through the situations comes by the same ones again.
_KEPT = 32


class PackingPicture:
    """A live chart of two runs whose specification is replaced only when the frame changes.

    Attributes
    ----------
    chart : LiveChart
        The widget to show.
    kind : str
        ``"auto"``: with a Gantt where tasks are few; ``"gantt"``: always with one; ``"areas"``: never.
    """

    def __init__(self, runs: Mapping[str, PackRun]) -> None:
        self.kind: Picture = "auto"
        self._specs: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._key = self._key_of(runs, ROOM)
        self.chart = LiveChart(self._spec(runs, ROOM), self._data(runs, ROOM), label="Two runs of a node")
        self.chart.adapts = True

    def show(self, runs: Mapping[str, PackRun], *, old: bool = False) -> None:
        """Draw other runs, or the same ones for another width of the page."""
        room = self.chart.room
        key = self._key_of(runs, room)
        spec = self._spec(runs, room) if key != self._key else None
        self.chart.show(self._data(runs, room), spec=spec, old=old)
        self._key = key

    def fits(self, runs: Mapping[str, PackRun]) -> bool:
        """Whether the specification on screen is that of the runs at the page's present width."""
        return self._key_of(runs, self.chart.room) == self._key

    def _spec(self, runs: Mapping[str, PackRun], room: int) -> dict[str, Any]:
        key = self._key_of(runs, room)
        if key not in self._specs:
            if len(self._specs) >= _KEPT:
                self._specs.clear()
            self._specs[key] = live_spec(runs["left"].problem, picture=self.kind, **_size(room))
        return self._specs[key]

    def _data(self, runs: Mapping[str, PackRun], room: int) -> dict[str, Any]:
        return dict(live_data(runs["left"], runs["right"], picture=self.kind, **_size(room)))

    def _key_of(self, runs: Mapping[str, PackRun], room: int) -> tuple[Any, ...]:
        """What a specification depends on: GPUs, models, their colours and spread, time, Gantt, priorities, width."""
        problem = runs["left"].problem
        palette = palette_of(problem, MODELS)
        wide = has_wide(problem.scenario)
        frame = (problem.scenario.gpus.count, palette.labels, palette.colours, wide, live_clock(problem).unit)
        bars = has_gantt(problem, self.kind)
        return *frame, bars, tuple(groups_of_problem(problem)), *_size(room).values()


def _size(room: int) -> dict[str, Any]:
    """Width and layout of the picture for a page of so many pixels."""
    width = min(max(room - _SPARE, _NARROWEST), _WIDEST)
    return {"width": width, "layout": "side" if room >= SIDE_BY_SIDE else "stacked"}
