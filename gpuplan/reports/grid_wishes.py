"""What somebody wants on the axes of an interactive page: the values where none are given, and every mistake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from gpuplan.gantt import safe_text
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean, shorten
from gpuplan.inputs.fields import broken
from gpuplan.inputs.spans import Span, span_text
from gpuplan.reports.grid_axes import Axis, Space, budgets, plain

#: Axes of each kind by the names that `gpuplan.reports.grid.grid` gives them; the second changes faster.
AXES = {
    "allocation": ("penalties", "gpus"),
    "fairshare": ("shares", "windows"),
    "packing": ("margins", "loads"),
}

#: Values where none are given; what the scenario itself says is always among them.
PENALTIES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
SIZES = (0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 1.75, 2.0)  # of the cluster
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90)  # per cent among siblings
WINDOWS_H = (1, 3, 6, 12, 24, 48, 72, 168, 336, 672)
MARGINS = (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)  # of what is declared
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2)  # times the arrival rate

#: Windows of a page on each side of the scenario's own.
_AROUND = 3

#: Largest penalty and cluster of a scenario file.
MOST_PENALTY, MOST_GPUS = 1_000_000, 16_384

#: Values of an axis at most.
MOST_VALUES = 500


class Wishes:
    """The values that somebody wants on the axes; what is wrong with them is collected.

    Parameters
    ----------
    scenario
    given
        Values by name of an axis; None: those of this module.
    """

    def __init__(self, scenario: Any, given: Mapping[str, Any]) -> None:
        self.scenario = scenario
        self.mistakes: list[Mistake] = []
        known = (*AXES[scenario.kind], *(["team"] if scenario.kind == "fairshare" else []))
        self.given = {name: value for name, value in given.items() if value is not None}
        for name in self.given:
            if name not in known:
                rule = f"is no axis of a scenario of kind {scenario.kind}: those are {', '.join(known)}"
                self.mistakes.append(Mistake(shorten(name), rule))

    def space(self, base: Any) -> Space:
        """The space of these wishes.

        Raises
        ------
        InputError
            With everything that is wrong.
        """
        makers = {"allocation": self._allocation, "fairshare": self._fairshare, "packing": self._packing}
        made = makers[base.kind](base)
        if self.mistakes:
            raise InputError("grid", self.mistakes)
        return made

    def _numbers(self, name: str, default: Iterable[float], least: float, most: float) -> list[float]:
        """Values of an axis that are numbers in a range."""
        return [value for value in self._listed(name, default) if self._is_number(name, value, least, most)]

    def _listed(self, name: str, default: Iterable[Any]) -> list[Any]:
        value = self.given.get(name)
        if value is None:
            return list(default)
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            self.mistakes.append(Mistake(name, "must be a list of values", value))
            return []
        listed: list[Any] = []
        for one in value:  # a list may be without end
            if len(listed) >= MOST_VALUES:
                self.mistakes.append(Mistake(name, f"must have at most {MOST_VALUES} values"))
                break
            listed.append(one.item() if hasattr(one, "item") else one)
        return listed

    def _is_number(self, name: str, value: Any, least: float, most: float) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            self.mistakes.append(Mistake(name, "must be numbers", value))
        elif not least <= value <= most:
            self.mistakes.append(Mistake(name, f"must be from {least:,g} to {most:,g}", value))
        else:
            return True
        return False

    def _allocation(self, base: Any) -> Space:
        penalties = self._numbers("penalties", PENALTIES, 0, MOST_PENALTY)
        sizes = [
            size for size in self._numbers("gpus", _sizes(base), 1, MOST_GPUS) if self._is_whole("gpus", size)
        ]
        own = float(base.objective.shortfall_penalty)
        title = "Penalty of a GPU-hour of unmet demand"
        first = _axis("penalties", title, "penalty", penalties, own, lambda v: f"a penalty of {v:,g}")
        title = "GPUs of the cluster"
        second = _axis("gpus", title, "GPUs", sizes, base.cluster.gpus, lambda v: f"{v:,g} GPUs")
        return Space(base, (first, second))

    def _is_whole(self, name: str, value: float) -> bool:
        if float(value).is_integer():
            return True
        self.mistakes.append(Mistake(name, "must be whole numbers", value))
        return False

    def _fairshare(self, base: Any) -> Space:
        rows = dict(budgets(base.budget))
        team = self._team(rows)
        shares = self._numbers("shares", SHARES, 0, 100)
        windows = [
            hours
            for value in self._listed("windows", _windows(base))
            if (hours := self._window(value)) is not None
        ]
        own = 100.0
        if team is not None:
            above = rows[team][0].rpartition(".")[0]
            weights = [
                Decimal(repr(float(node.weight)))
                for where, node in rows.values()
                if where.rpartition(".")[0] == above
            ]
            mine = Decimal(repr(float(rows[team][1].weight)))
            total = sum(weights, Decimal(0))
            own = float(100 * mine / total) if total else 0.0
            shares = shares if total > mine else []  # nobody to share with
        name = safe_text(team or "", 40)
        first = _axis(
            "shares",
            f"Share of {name} among its siblings",
            f"share of {name} (%)",
            shares,
            own,
            lambda v: f"a share of {_short(v)} % for {name}",
        )
        second = _axis(
            "windows",
            "Window in which use counts",
            "window (hours)",
            windows,
            base.window_s / 3600,
            lambda v: f"a window of {span_text(round(v * 3600))}",
        )
        return Space(base, (first, second), team)

    def _team(self, rows: Mapping[str, tuple[str, Any]]) -> str | None:
        wanted = self.given.get("team")
        if wanted is not None and (not isinstance(wanted, str) or wanted not in rows):
            rule = "must be the path of a budget" + did_you_mean(wanted, rows)
            self.mistakes.append(Mistake("team", rule, wanted))
            return None
        if wanted is not None:
            return wanted
        for path, (where, _) in rows.items():  # the first that has somebody to share with
            above = where.rpartition(".")[0]
            if sum(other.rpartition(".")[0] == above for other, _ in rows.values()) > 1:
                return path
        return next(iter(rows), None)

    def _window(self, value: Any) -> float | None:
        """A window in hours; numbers are hours, texts have a unit. Whether the scenario allows it, its point says."""
        from gpuplan.fairshare.file_models import LONGEST_S

        plain = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        try:
            if not plain and not isinstance(value, str):
                raise broken("must be hours, or text with a unit such as 7d")
            seconds = Span(1, LONGEST_S, "h").read(repr(value) if plain else value)
        except ValueError as error:
            self.mistakes.append(Mistake("windows", str(error), value))
            return None
        return None if seconds is None else seconds / 3600

    def _packing(self, base: Any) -> Space:
        margins = self._numbers("margins", MARGINS, 0, 10)
        loads = self._numbers("loads", LOADS, 0.01, 100)
        own = base.admission.margin / 10_000
        first = _axis(
            "margins",
            "Margin on what models declare",
            "margin (%)",
            [100 * value for value in margins],
            own,
            lambda v: f"a margin of {_short(v)} %",
        )
        rate = None if base.generate is None or base.tasks is not None else base.generate.rate_per_s

        def said(value: float) -> str:
            times = f"arrivals × {_short(value)}"
            return times if rate is None else f"{times} ({rate * value:.4g} per second)"

        title = "Load: how fast tasks arrive"
        second = _axis("loads", title, "arrivals (× the scenario's)", loads, 1, said)
        return Space(base, (first, second))


def _axis(
    name: str, title: str, short: str, values: Iterable[float], own: float, said: Callable[[float], str]
) -> Axis:
    """An axis of ascending values, the scenario's own among them."""
    own = plain(own)
    found = sorted({*map(plain, values), own})
    return Axis(name, title, short, tuple(found), tuple(said(value) for value in found), found.index(own))


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _sizes(scenario: Any) -> list[float]:
    """Sizes around that of the scenario, in whole nodes where it has several."""
    cluster = scenario.cluster
    unit = cluster.node_size if cluster.node_size < cluster.gpus else 1
    found = {max(unit, round(share * cluster.gpus / unit) * unit) for share in SIZES}
    return sorted(found)


def _windows(scenario: Any) -> list[float]:
    """Hours of windows that people name, on both sides of the scenario's own."""
    own = scenario.window_s / 3600
    shorter = [hours for hours in WINDOWS_H if hours < own][-_AROUND:]
    longer = [hours for hours in WINDOWS_H if hours > own][:_AROUND]
    return [*shorter, *longer]
