"""From a scenario to a report, in Python: `gpuplan.report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.files import write_whole
from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.runs import Choices, compared, settled

if TYPE_CHECKING:
    from gpuplan.loading import Source
    from gpuplan.reports.pictures import Picture
    from gpuplan.side_by_side import SideBySide


@dataclass(frozen=True)
class Report:
    """A scenario under some policies, as a page that needs nothing but a browser.

    Attributes
    ----------
    comparison
        The results, as `gpuplan.compare` and its like give them.
    choices : Choices
        Policies, seed, moves of the search.
    """

    comparison: SideBySide[Any]
    choices: Choices

    @property
    def scenario(self) -> Any:
        """The scenario as it was run, without files beside it."""
        return self.comparison.scenario

    @cached_property
    def html(self) -> str:
        """The page as text; the same scenario, choices and versions give the same text."""
        from gpuplan.reports.page import page

        return page(self.comparison, self.choices)

    @cached_property
    def pictures(self) -> list[Picture]:
        """The charts of the page, in its order; a notebook shows each as a picture."""
        from gpuplan.reports.pictures import pictures

        return pictures(self.comparison)

    def save(self, path: str | Path) -> None:
        """Write the page; a name that ends in ``.pdf`` is printed by a browser that is at hand.

        Raises
        ------
        InputError
            Where there is no browser for a PDF, or it fails.
        OSError
            Where the file cannot be written.
        """
        if Path(path).suffix.lower() == ".pdf":
            from gpuplan.reports.pdf import print_pdf

            print_pdf(self.html, Path(path))
        else:
            write_whole(Path(path), self.html.encode())

    def __repr__(self) -> str:
        policies = ", ".join(self.choices.policies)
        return f"<Report of {shorten(self.scenario.name)!r} under {policies}>"


def report(
    scenario: Source,
    policies: Sequence[str] | None = None,
    *,
    seed: int | None = None,
    iterations: int | None = None,
) -> Report:
    """A report of a scenario under some policies: figures, charts, assumptions, versions, the scenario itself.

    Parameters
    ----------
    scenario
        Whatever `gpuplan.load` takes.
    policies
        Their names; by default the two that the command of the scenario's kind compares.
    seed
        Of the policy ``search``, or of a generated workload (in place of the scenario's own).
    iterations
        Moves of ``search``; by default as many as a few milliseconds allow. Never a time, so that it repeats.

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown policy, one that does not repeat (``exact``), or a seed without a use.
    """
    from gpuplan.loading import load

    if isinstance(scenario, (str, Path)) and str(scenario).lower().endswith(".ipynb"):
        raise InputError(
            Path(scenario).name, [Mistake("", "is a notebook: gpuplan.report_notebook takes it")]
        )
    settled_scenario, choices = settled(load(scenario), policies, seed, iterations)
    return Report(compared(settled_scenario, choices), choices)
