"""Plans over a grid of penalties and cluster sizes, for a page with live controls: every state in it is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.files import write_whole
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.runs import settled

if TYPE_CHECKING:
    from gpuplan.loading import Source
    from gpuplan.reports.runs import Choices

PENALTY, GPUS = "objective.shortfall_penalty", "cluster.gpus"

#: Penalties of a grid, and sizes as shares of the cluster; those of the scenario itself are always among them.
PENALTIES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 35, 40)
SHARES = (0.5, 0.625, 0.75, 0.875, 1.0, 1.125, 1.25, 1.5, 1.75, 2.0)

#: Policies of a grid where nobody names any.
POLICIES = ("fifo", "aware", "search")

#: Points of a grid at most: penalties x sizes x policies.
MOST_POINTS = 20_000


@dataclass(frozen=True)
class Grid:
    """Figures of plans over penalties, sizes and policies.

    Attributes
    ----------
    scenario : AllocationScenario
    choices : Choices
    penalties : tuple of float
    gpus : tuple of int
    units : dict
        Unit of each figure.
    values : list
        Figures by penalty, size, policy, in the order of `units`.
    refused : dict
        Sizes that the scenario does not allow, with the reason.
    """

    scenario: Any
    choices: Choices
    penalties: tuple[float, ...]
    gpus: tuple[int, ...]
    units: dict[str, str]
    values: list[list[list[list[float | int | None]]]]
    refused: dict[int, str]

    @cached_property
    def html(self) -> str:
        """One page with live controls over the grid, as text; the same grid gives the same text."""
        from gpuplan.reports.live_page import live_page

        return live_page(self)

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises
        ------
        OSError
            Where the file cannot be written.
        """
        write_whole(Path(path), self.html.encode())

    def __repr__(self) -> str:
        shape = f"{len(self.penalties)} penalties x {len(self.gpus)} sizes x {len(self.choices.policies)} policies"
        return f"<Grid of {shorten(self.scenario.name)!r}: {shape}>"


def grid(
    scenario: Source,
    policies: Sequence[str] | None = None,
    *,
    penalties: Iterable[float] | None = None,
    gpus: Iterable[int] | None = None,
    seed: int | None = None,
    iterations: int | None = None,
) -> Grid:
    """Plan a scenario at every penalty and size of a grid under every policy.

    Parameters
    ----------
    scenario
        Of kind allocation; whatever `gpuplan.load` takes.
    policies
        By default `POLICIES`.
    penalties, gpus
        By default `PENALTIES`, and half to twice the cluster in whole nodes; the scenario's own is always among them.
    seed, iterations
        As in `gpuplan.report`.

    Raises
    ------
    InputError
        For a scenario of another kind or with mistakes, an unknown policy, a penalty that cannot be, a grid that is
        too large.
    """
    from gpuplan.allocation.figures import UNITS
    from gpuplan.allocation.plan import compare
    from gpuplan.loading import load_allocation

    base: Any = load_allocation(scenario)
    _, choices = settled(base, POLICIES if policies is None else policies, seed, iterations)
    own = base.objective.shortfall_penalty
    stops = sorted({float(one) for one in (PENALTIES if penalties is None else penalties)} | {float(own)})
    sizes, refused = _allowed(base, sorted({*(_sizes(base) if gpus is None else gpus), base.cluster.gpus}))
    points = len(stops) * len(sizes) * len(choices.policies)
    if points > MOST_POINTS:
        raise InputError("report", [Mistake("grid", f"must have at most {MOST_POINTS:,} points", points)])
    effort = {"seed": choices.seed, "iterations": choices.iterations}
    effort = {name: value for name, value in effort.items() if value is not None}
    values, names = [], list[str]()
    for penalty in stops:
        row = []
        for size in sizes:
            found = compare(base.replace({PENALTY: penalty, GPUS: size}), choices.policies, **effort)
            names = names or list(next(iter(found.results.values())).figures)
            row.append([[result.figures[name] for name in names] for result in found.results.values()])
        values.append(row)
    units = {name: UNITS[name] for name in names}
    return Grid(base, choices, tuple(stops), tuple(sizes), units, values, refused)


def _sizes(scenario: Any) -> set[int]:
    """Sizes around that of the scenario, in whole nodes where it has several."""
    cluster = scenario.cluster
    unit = cluster.node_size if cluster.node_size < cluster.gpus else 1
    return {max(unit, round(share * cluster.gpus / unit) * unit) for share in SHARES}


def _allowed(scenario: Any, sizes: Iterable[int]) -> tuple[list[int], dict[int, str]]:
    """The sizes that the scenario allows, and the others with the reason."""
    good, refused = [], {}
    for size in sizes:
        try:
            scenario.replace({GPUS: int(size)})
            good.append(int(size))
        except InputError as error:
            refused[int(size)] = "; ".join(f"{m.path} {m.rule}" for m in error.mistakes)
    return good, refused
