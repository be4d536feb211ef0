"""Every point of a grid of two settings under some policies, for a page with live controls: all states are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.bar import progress_to
from gpuplan.files import write_whole
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.grid_axes import Axis, Space
from gpuplan.reports.grid_pictures import Look, look_of
from gpuplan.reports.grid_points import Point, Task, points_of
from gpuplan.reports.grid_wishes import Wishes
from gpuplan.reports.runs import Choices, compared, settled

if TYPE_CHECKING:
    from gpuplan.loading import Source

#: Policies of a page where nobody names any, of kinds for which there are more than in a report.
POLICIES = {"allocation": ("fifo", "aware", "search")}

#: Results of a grid at most: points x policies.
MOST_RESULTS = 10_000


@dataclass(frozen=True)
class Grid:
    """Results over two axes.

    Attributes
    ----------
    scenario : Any
        As it was given, without files beside it.
    choices : Choices
    space : Space
        The axes, and the scenario of every point.
    units : dict
        Unit of each figure.
    points : tuple of Point
        In the order of places: the second axis changes faster.
    notes : tuple of str
        What was set aside in the scenario itself, and stops that it refuses.
    assumptions : tuple of str
    look : Look
        How a point is drawn.
    asked : Space
        The space before stops were left out that the scenario refuses.
    """

    scenario: Any
    choices: Choices
    space: Space
    units: dict[str, str]
    points: tuple[Point, ...]
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    look: Look
    asked: Space

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The two axes."""
        return self.space.axes

    @property
    def broken(self) -> list[str]:
        """Rules that results break, with the point; none for legal results."""
        return [
            f"{self.space.words(place)}: {rule}"
            for place, point in enumerate(self.points)
            for rule in point.broken
        ]

    @property
    def errors(self) -> dict[int, str]:
        """Places of points that the scenario refuses, with the reason."""
        return {place: point.error for place, point in enumerate(self.points) if point.error}

    @cached_property
    def html(self) -> str:
        """One page with live controls over the grid, as text; the same grid gives the same text.

        Raises
        ------
        InputError
            Where it would be too large.
        """
        from gpuplan.reports.live_page import live_page

        return live_page(self)

    def save(self, path: str | Path) -> None:
        """Write the page.

        Raises
        ------
        InputError
            Where it would be too large.
        OSError
            Where the file cannot be written.
        """
        write_whole(Path(path), self.html.encode())

    def __repr__(self) -> str:
        first, second = (f"{len(axis.values)} {axis.name}" for axis in self.axes)
        return f"<Grid of {shorten(self.scenario.name)!r}: {first} x {second} x {len(self.choices.policies)} policies>"


def grid(
    scenario: Source,
    policies: Sequence[str] | None = None,
    *,
    penalties: Iterable[float] | None = None,
    gpus: Iterable[int] | None = None,
    team: str | None = None,
    shares: Iterable[float] | None = None,
    windows: Iterable[float | str] | None = None,
    margins: Iterable[float] | None = None,
    loads: Iterable[float] | None = None,
    seed: int | None = None,
    iterations: int | None = None,
    workers: int | None = None,
    progress: bool | Callable[[int, int], None] | None = False,
) -> Grid:
    """Compute a scenario at every point of a grid under every policy.

    The axes go by the kind: penalty and cluster size of allocation, share of a budget and window of fair share, margin
    and load of packing. The scenario's own values are always among them. Every point meets the same jobs or tasks
    (common random numbers): generated jobs stay those of the shares as they are, and a load stretches arrivals.

    Parameters
    ----------
    scenario
        Whatever `gpuplan.load` takes.
    policies
        By default `POLICIES`, else those of a report.
    penalties, gpus
        Allocation: prices of unmet demand, sizes (by default half to twice the cluster, in whole nodes).
    team, shares, windows
        Fair share: path of the budget whose share moves (by default the first that has siblings), its shares among
        them in per cent, windows in hours or with a unit.
    margins, loads
        Packing: margins as shares of what is declared (0.2), multiples of the rate at which tasks arrive.
    seed, iterations
        As in `gpuplan.report`.
    workers
        Processes; None: one per core where that is faster, else this one alone. It changes no figure.
    progress
        True: a bar; False: none; None: a bar in a terminal or a notebook. Or a function of points done and of all.

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown policy or team, values that cannot be, a grid that is too large.
    """
    from gpuplan.loading import load

    loaded: Any = load(scenario)
    wanted = POLICIES.get(loaded.kind) if policies is None else policies
    made, choices = settled(loaded, wanted, seed, iterations)
    asked = {"penalties": penalties, "gpus": gpus, "team": team, "shares": shares}
    wishes = Wishes(made, asked | {"windows": windows, "margins": margins, "loads": loads})
    if workers is not None and (isinstance(workers, bool) or not 1 <= workers <= 1024):
        wishes.mistakes.append(Mistake("workers", "must be from 1 to 1,024", workers))
    space = wishes.space(kept_jobs(made))
    refuse_too_many(space, choices)
    return computed(made, choices, space, workers, progress)


def refuse_too_many(space: Space, choices: Choices) -> None:
    """Raise an `InputError` where a grid is too large."""
    results = space.size * len(choices.policies)
    if results > MOST_RESULTS:
        rule = f"must have at most {MOST_RESULTS:,} results (points x policies)"
        raise InputError("grid", [Mistake("", rule, results)])


def computed(
    scenario: Any,
    choices: Choices,
    space: Space,
    workers: int | None = None,
    progress: bool | Callable[[int, int], None] | None = False,
) -> Grid:
    """The grid of a settled scenario over a space; stops at which nothing can be computed are left out, and noted."""
    grid_of = begun(scenario, choices, space)
    task = Task(space, choices, grid_of.look)
    points = points_of(task, range(space.size), workers, progress_to(progress))
    if points[space.own].error:
        raise InputError(scenario.name, [Mistake("", points[space.own].error)])
    grid_of.look.finish([sets for point in points for sets in point.drawn])
    empty, notes = _refused(space, points)
    small = space.without(*empty)
    kept = [
        point
        for place, point in enumerate(points)
        if not any(stop in of_axis for stop, of_axis in zip(space.stops(place), empty, strict=True))
    ]
    notes += [f"Not computed: {small.words(k)}: {point.error}" for k, point in enumerate(kept) if point.error]
    return replace(grid_of, space=small, points=tuple(kept), notes=(*grid_of.notes, *notes))


def begun(scenario: Any, choices: Choices, space: Space) -> Grid:
    """The grid without its points: what the results of the scenario itself say of the page."""
    from gpuplan.reports import words

    own = compared(space.at(space.own), choices)
    figures = next(iter(own.results.values())).figures
    units = {name: str(own.units[name]) for name in figures}
    notes, assumptions = words.notes(own), words.assumptions(own, choices)
    return Grid(
        scenario, choices, space, units, (), tuple(notes), tuple(assumptions), look_of(own, space), space
    )


def kept_jobs(scenario: Any) -> Any:
    """The scenario that points change: generated jobs of fair share stay while shares move."""
    if scenario.kind != "fairshare":
        return scenario
    from gpuplan.fairshare.keep_jobs import keep_jobs

    return keep_jobs(scenario)


def _refused(space: Space, points: Sequence[Point]) -> tuple[tuple[set[int], set[int]], list[str]]:
    """Stops of each axis at which no point could be computed, and sentences about them."""
    empty: tuple[set[int], set[int]] = (set(), set())
    notes = []
    for number, axis in enumerate(space.axes):
        for stop, said in enumerate(axis.said):
            here = [point for place, point in enumerate(points) if space.stops(place)[number] == stop]
            if all(point.error for point in here):
                empty[number].add(stop)
                notes.append(f"Left out: {said}: {here[0].error}")
    return empty, notes
