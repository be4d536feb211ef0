"""The picture of an interactive page of fair share: what teams got of what they were owed, in all and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan import theme
from gpuplan.fairshare.charts.account import account
from gpuplan.fairshare.charts.bars import bars_height, delivered_columns, hours_panel, share_panel
from gpuplan.fairshare.charts.clock import Clock, clock_of
from gpuplan.fairshare.charts.colours import palette_of
from gpuplan.gantt import field, mark, safe_text, titles
from gpuplan.reports.grid_pictures import LAYOUTS, STANDS_OUT, Sets, Tabled, Words, hover, whole

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run
    from gpuplan.gantt import Columns, Spec
    from gpuplan.reports.grid_axes import Space

#: Bins of time at most.
_BINS = 30

#: Pixels of the panel over time, for names of teams, and beside a drawing area.
_HEIGHT, _NAMES, _BESIDE = 180, {"wide": 190, "medium": 170, "narrow": 104}, 46


@dataclass(frozen=True)
class FairshareLook:
    """Teams and the unit of time are those of the scenario itself.

    Attributes
    ----------
    policies, teams : tuple of str
    span_s : int
        What the axis of time has to show.
    team : str
        The one that is drawn over time at first.
    """

    policies: tuple[str, ...]
    teams: tuple[str, ...]
    span_s: int
    team: str

    @classmethod
    def of(cls, comparison: Any, space: Space) -> FairshareLook:
        """The look of a page over a space."""
        runs = list(comparison.results.values())
        palette = palette_of(runs[0].problem)
        mine = space.team or ""
        within = [
            palette.labels[palette.group[row]]
            for row, path in enumerate(runs[0].problem.tree.teams)
            if path == mine or path.startswith(f"{mine}/")
        ]
        names = tuple(safe_text(name) for name in comparison.results)
        return cls(names, palette.labels, clock_of(*runs).span_s, within[0] if within else palette.labels[0])

    def sets(self, results: Mapping[str, Run]) -> tuple[Sets, list[Sets]]:
        """Delivered and owed by team, over the whole run and over time."""
        clock = Clock(self.span_s)
        return {}, [
            {"delivered": delivered_columns([run], [name]), "over_time": _over_time(run, name, clock)}
            for name, run in zip(self.policies, results.values(), strict=True)
        ]

    def finish(self, sets: Sequence[Sets]) -> None:
        """Nothing: scales follow what is drawn."""

    def specs(self) -> dict[str, Spec]:
        """Bars of both shares beside each other, or below each other on a narrow page; below them a team over time."""
        return {layout: self._spec(layout) for layout in LAYOUTS}

    def _spec(self, layout: str) -> Spec:
        width, names = LAYOUTS[layout], _NAMES[layout]
        height = bars_height(len(self.teams), len(self.policies))
        inner = width - names - _BESIDE
        if layout == "narrow":
            bars = [share_panel("delivered", self.policies, inner, height)]
            both: Spec = bars[0]
        else:
            bars = [
                share_panel("delivered", self.policies, inner * 11 // 20, height),
                hours_panel("delivered", self.policies, inner * 9 // 20 - 16, height),
            ]
            both = {"hconcat": bars, "spacing": 16}
        for place, panel in enumerate(bars):
            bar = panel["layer"][0]
            bar["name"] = f"bars_{place}"
            bar["encoding"]["opacity"] = STANDS_OUT
            for layer in panel["layer"]:
                axis = layer["encoding"].get("y", {}).get("axis")
                if axis:
                    axis["labelLimit"] = names - 10
        views = [panel["layer"][0]["name"] for panel in bars]
        over_time = _time_panel(self.policies, width - 90, Clock(self.span_s))
        params = [{"name": "chosen", "value": self.team}, hover("team", views)]
        return whole({"vconcat": [both, over_time], "spacing": 24}, params)

    def words(self) -> Words:
        """What the picture is."""
        about = (
            "Above: work with a minimum run time over the whole run; owed in an hour is the lower of the entitlement "
            "and what runs or waits, and a team that takes what others leave is above 1. Below: one team over time, "
            "in means over bins. A team under the pointer stands out; a click on it draws it over time."
        )
        tables = (
            Tabled(
                "delivered",
                "Teams",
                {"team": "team", "policy": "policy", "owed": "owed (GPU-hours)",
                 "delivered": "delivered (GPU-hours)", "says": "delivered / owed"},
            ),
        )  # fmt: skip
        title = "What teams got of what they were owed"
        return Words(title, about, False, tables, self.teams, self.team)


def _over_time(run: Run, policy: str, clock: Clock) -> Columns:
    """A row per team and bin: ``policy, team, x, x2``, GPUs on average that it ``got`` and was ``owed``."""
    palette = palette_of(run.problem)
    found = account(run, palette, _BINS)
    edges = clock.of(found.edges)
    bins, teams = len(found.length_s), len(palette.labels)
    got, owed = (
        np.round(np.maximum(amounts, 0) / np.maximum(found.length_s, 1), 2).ravel().tolist()
        for amounts in (found.allocated, found.owed)
    )
    return {
        "policy": [policy] * (bins * teams),
        "team": [label for label in palette.labels for _ in range(bins)],
        "x": edges[:-1] * teams,
        "x2": edges[1:] * teams,
        "got": got,
        "owed": owed,
    }


def _time_panel(policies: Sequence[str], width: int, clock: Clock) -> Spec:
    """Strokes of what the chosen team got (thick) and was owed (dashed), a stroke per bin."""
    # No scale: its legend would meet that of the bars.
    tests = [
        {
            "test": f"datum.policy === {titles.literal(name)}",
            "value": theme.POLICY_LOOKS[k % len(theme.POLICY_LOOKS)][0],
        }
        for k, name in enumerate(policies)
    ]
    stroke = {"condition": tests}
    x = field("x", scale={"nice": False, "zero": True}, axis=clock.axis())
    x2 = {"field": "x2"}

    def y(name: str) -> Spec:
        axis = {"title": "GPUs on average", "tickCount": 5}
        return field(name, scale={"zero": True, "nice": True}, axis=axis)

    tips = [
        field("policy", "nominal"),
        field("x", title=f"from ({clock.unit})", format=".6~g"),
        field("x2", title=f"to ({clock.unit})", format=".6~g"),
        field("got", title="GPUs, got", format=",.2f"),
        field("owed", title="GPUs, owed", format=",.2f"),
    ]
    mine = [{"filter": "datum.team === chosen"}]
    got = {"type": "rule", "strokeWidth": 3.5, "strokeCap": "butt"}
    owed = {"type": "rule", "strokeWidth": 1.6, "strokeDash": [3, 2], "opacity": 0.9}
    return {
        "width": width,
        "height": _HEIGHT,
        "title": {
            "text": {"expr": "chosen + ': got (thick), owed (dashed)'"},
            "fontSize": 11,
            "fontWeight": "normal",
            "frame": "bounds",
            "anchor": "start",
            "limit": width + _BESIDE,
        },
        "layer": [
            mark("over_time", owed, {"x": x, "x2": x2, "y": y("owed"), "stroke": stroke}, transform=mine),
            mark(
                "over_time",
                got,
                {"x": x, "x2": x2, "y": y("got"), "stroke": stroke, "tooltip": tips},
                transform=mine,
            ),
        ],
    }
