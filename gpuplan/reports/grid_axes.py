"""The two axes of an interactive page: their stops, and the scenario at every pair of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Axis:
    """The computed stops of one control.

    Attributes
    ----------
    name : str
        What `gpuplan.reports.grid.grid` calls it: ``"penalties"``.
    title : str
        What the control says.
    short : str
        Title of a chart's axis, with its unit.
    values : tuple of float
        Places on a chart's axis, ascending.
    said : tuple of str
        Each stop in words: ``"a penalty of 8"``.
    own : int
        The stop at which the scenario itself is.
    """

    name: str
    title: str
    short: str
    values: tuple[float, ...]
    said: tuple[str, ...]
    own: int

    def without(self, stops: Iterable[int]) -> Axis:
        """The axis without some stops (never the scenario's own)."""
        kept = sorted({*range(len(self.values))} - set(stops) | {self.own})
        values, said = tuple(self.values[k] for k in kept), tuple(self.said[k] for k in kept)
        return Axis(self.name, self.title, self.short, values, said, kept.index(self.own))


@dataclass(frozen=True)
class Space:
    """A scenario and two axes: every pair of stops is a scenario.

    Attributes
    ----------
    base : Any
        What the points change: the scenario, its generated jobs as jobs of its own where they must stay.
    axes : tuple of Axis
    team : str or None
        Fair share: path of the budget whose share moves.
    """

    base: Any
    axes: tuple[Axis, Axis]
    team: str | None = None

    @property
    def size(self) -> int:
        """How many points there are."""
        return len(self.axes[0].values) * len(self.axes[1].values)

    @property
    def own(self) -> int:
        """The place of the scenario itself among the points (the second axis changes faster)."""
        return self.axes[0].own * len(self.axes[1].values) + self.axes[1].own

    def stops(self, place: int) -> tuple[int, int]:
        """The stops of a point."""
        return divmod(place, len(self.axes[1].values))

    def at(self, place: int) -> Any:
        """The scenario of a point; at its own stops it is left alone.

        Raises
        ------
        InputError
            Where that is no scenario.
        """
        changes: dict[str, Any] = {}
        factor = 1.0
        for axis, stop in zip(self.axes, self.stops(place), strict=True):
            if stop == axis.own:
                continue
            if axis.name == "loads":
                factor = axis.values[stop]
            else:
                changes |= _changes(self, axis, axis.values[stop])
        made = self.base.replace(changes) if changes else self.base
        if factor != 1:
            from gpuplan.packing.arrivals import at_rate

            made = at_rate(made, factor)
        return made

    def words(self, place: int) -> str:
        """A point in words: ``"16 GPUs and a penalty of 8"``."""
        first, second = (axis.said[stop] for axis, stop in zip(self.axes, self.stops(place), strict=True))
        return f"{second} and {first}"

    def without(self, first: Iterable[int], second: Iterable[int]) -> Space:
        """The space without some stops of its axes."""
        return Space(self.base, (self.axes[0].without(first), self.axes[1].without(second)), self.team)


def _changes(space: Space, axis: Axis, value: float) -> dict[str, Any]:
    """What a stop changes, by dotted path."""
    if axis.name == "penalties":
        return {"objective.shortfall_penalty": value}
    if axis.name == "gpus":
        return {"cluster.gpus": int(value)}
    if axis.name == "windows":
        return {"window": f"{round(value * 3600)}s"}
    if axis.name == "margins":
        return {"admission.margin": plain(value / 100)}
    return _weights(space, value)


def _weights(space: Space, percent: float) -> dict[str, Any]:
    """Weights with which a budget has so much of what it shares with its siblings; they keep their proportions."""
    rows = dict(budgets(space.base.budget))
    place, mine = rows[str(space.team)]
    above = place.rpartition(".")[0]
    others = [
        (where, node) for where, node in rows.values() if where.rpartition(".")[0] == above and node != mine
    ]
    part = Decimal(repr(percent))
    total = sum((Decimal(repr(float(node.weight))) for _, node in others), Decimal(0))
    # A hundred times the weights is exact where they are; weights have a limit that sums of large ones would pass.
    scale = Decimal(1) if total < 1_000_000 else Decimal(1) / (total / 1000)
    made = {f"{place}.weight": float(part * total * scale)}
    for where, node in others:
        made[f"{where}.weight"] = float((100 - part) * Decimal(repr(float(node.weight))) * scale)
    return made


def budgets(siblings: Sequence[Any], above: str = "", place: str = "budget") -> Iterable[tuple[str, Any]]:
    """Path of every budget, with its dotted place in a scenario and itself; parents first."""
    rows = [
        (f"{above}/{node.name}" if above else node.name, (f"{place}.{number}", node))
        for number, node in enumerate(siblings)
    ]
    yield from rows
    for path, (where, node) in rows:
        yield from budgets(node.children, path, f"{where}.children")


def plain(value: float) -> float:
    """A number without the noise of its last digits, whole ones as whole numbers."""
    rounded = float(f"{float(value):.12g}")
    return int(rounded) if rounded.is_integer() else rounded
