"""Compute the figures of a report again, from the scenario that is in it, and say which hold."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.page import LIVE_FORMAT
from gpuplan.reports.reading import NOTEBOOK_FORMAT, Page, Shown, generator_of, page_text, read_page
from gpuplan.reports.runs import Choices, compared, from_text, settled
from gpuplan.side_by_side import as_text

if TYPE_CHECKING:
    from gpuplan.side_by_side import SideBySide

#: How far a figure may be from the computed one: the last digits differ between processors.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure of a policy: what the report says, what is computed, and whether that is the same.

    Attributes
    ----------
    said, computed : str
        As people read them; empty where there is none.
    reason : str
        Why it does not hold; empty where it does.
    """

    policy: str
    figure: str
    said: str
    computed: str
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Whether the report says what is computed."""
        return not self.reason


@dataclass(frozen=True)
class Verification:
    """What became of a report.

    Attributes
    ----------
    figures : tuple of Verdict
        In the order of the report.
    fingerprint_holds : bool
        Whether the scenario in the page is the one whose fingerprint it names.
    page_holds : bool or None
        Whether the page is, letter for letter, what is written from its scenario; None: it was made by other
        versions, so texts and charts were not compared.
    versions : dict
        Versions that differ: that of the report, and the one here.
    scope : str
        How much of the page was computed anew, as a sentence; empty: all of it.
    """

    source: str
    figures: tuple[Verdict, ...]
    fingerprint_holds: bool
    page_holds: bool | None
    versions: dict[str, tuple[str, str]]
    scope: str = field(default="", kw_only=True)

    @property
    def holds(self) -> bool:
        """Whether all of it holds."""
        return (
            all(verdict.holds for verdict in self.figures)
            and self.fingerprint_holds
            and self.page_holds is not False
        )

    @property
    def sentences(self) -> list[str]:
        """The outcome in words."""
        good = sum(verdict.holds for verdict in self.figures)
        said = [f"{good:,} of {len(self.figures):,} figures hold.", *([self.scope] if self.scope else [])]
        if not self.fingerprint_holds:
            said.append("The scenario in the page is not the one whose fingerprint it names.")
        if self.page_holds is None:
            other = ", ".join(
                f"{name} {was or 'none'} (here {now or 'none'})" for name, (was, now) in self.versions.items()
            )
            said.append(f"Written with {other}: charts and texts were not compared.")
        elif self.page_holds:
            said.append("The rest of the page is, letter for letter, what its scenario gives.")
        else:
            said.append(
                "Something else in the page (a text, a chart, a table) is not what its scenario gives."
            )
        return said

    def __repr__(self) -> str:
        return f"<Verification of {shorten(self.source)!r}: {' '.join(self.sentences)}>"


def verify_report(
    path: str | Path,
    *,
    run_notebook: bool = False,
    folder: Path | None = None,
    time_limit_s: float = 600.0,
    sample: int | None = None,
    progress: bool | Callable[[int, int], None] | None = False,
) -> Verification:
    """Recompute every figure of a report.

    Parameters
    ----------
    path
        A page that `gpuplan.report` or ``gpuplan report`` wrote.
    run_notebook
        Whether the notebook in a page is run again and the whole page compared: a notebook is a program, so only for
        pages of people you trust. Without it, figures are computed from the scenarios in the page.
    folder, time_limit_s
        Where a notebook runs (default: in the working folder), and its seconds in all.
    sample
        Of a page with live controls: recompute so many of its points; None: all of them.
    progress
        Of such a page: a bar, as in `gpuplan.sweep`.

    Raises
    ------
    InputError
        For a file that is no report, is damaged, or whose scenario has mistakes.
    """
    from gpuplan.reports.words import versions

    text = page_text(path)
    if generator_of(text).startswith(f"{NOTEBOOK_FORMAT} "):
        from gpuplan.reports.notebook_verify import verify_notebook

        return verify_notebook(
            Path(path).name, text, run=run_notebook, folder=folder, time_limit_s=time_limit_s
        )
    if generator_of(text).startswith(f"{LIVE_FORMAT} ") and not run_notebook:
        from gpuplan.reports.verify_grid import verify_grid

        return verify_grid(Path(path).name, text, sample, progress)
    if sample is not None:
        rule = "has no points to choose from: a sample is for pages with live controls"
        raise InputError(Path(path).name, [Mistake("sample", rule, sample)])
    found = read_page(path)
    if run_notebook:
        raise InputError(
            found.source, [Mistake("", "is the report of a scenario: there is no notebook to run")]
        )
    comparison = recomputed(found.source, found.kind, found.scenario, found.choices, found.notes)
    differ = differing(found.versions, versions())
    fits = comparison.scenario.fingerprint == found.fingerprint
    same = None if differ else _same_page(found, comparison)
    return Verification(found.source, tuple(_verdicts(found, comparison)), fits, same, differ)


def differing(was: Mapping[str, str], here: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Versions that are not the same there and here."""
    names = sorted({*was, *here})
    return {
        name: (was.get(name, ""), here.get(name, "")) for name in names if was.get(name) != here.get(name)
    }


def recomputed(source: str, kind: str, text: str, choices: Choices, notes: Sequence[str]) -> SideBySide[Any]:
    """The results of a scenario in a page; whatever the page asks for passes the border that people's wishes pass.

    Raises
    ------
    InputError
        For a scenario with mistakes, and choices that do not fit it.
    """
    try:
        scenario = from_text(text, f"scenario in {source}", notes)
        seed = choices.seed if scenario.kind == "allocation" else None
        _, settled_choices = settled(scenario, choices.policies, seed, choices.iterations)
        if scenario.kind != kind or settled_choices != choices:
            rule = "is damaged: its record and its scenario do not fit each other"
            raise InputError(source, [Mistake("", rule)])
        return compared(scenario, choices)
    except RecursionError as error:
        raise InputError(source, [Mistake("", "is damaged: its scenario is nested too deep")]) from error


def _same_page(found: Page, comparison: SideBySide[Any]) -> bool:
    from gpuplan.reports.page import page

    return page(comparison, found.choices) == found.text


def _verdicts(found: Page, comparison: SideBySide[Any]) -> list[Verdict]:
    """One for every figure that the report has or should have, in the order of computing."""
    shown: dict[tuple[int, str], Shown] = {(one.policy, one.figure): one for one in found.figures}
    often = Counter((one.policy, one.figure) for one in found.figures)
    made = []
    for number, (policy, result) in enumerate(comparison.results.items()):
        values = {**result.figures, "violations": result.violations}
        for figure, value in values.items():
            unit = comparison.units.get(figure, "rules")
            key = (number, figure)
            made.append(verdict(policy, figure, value, unit, shown.pop(key, None), often[key]))
    for one in shown.values():
        made.append(
            Verdict(f"policy {one.policy + 1}", shorten(one.figure), one.text, "", "there is no such figure")
        )
    return made


def verdict(policy: str, figure: str, value: Any, unit: str, said: Shown | None, often: int) -> Verdict:
    """Compare a figure as a page shows it (`often` times) with the computed value."""
    computed = as_text(value, unit)
    if said is None:
        return Verdict(policy, figure, "", computed, "missing in the report")
    reason = ""
    recorded, readable = _number(said.value)
    if often > 1:
        reason = "stands in the report more than once"
    elif not readable or not _close(recorded, value):
        reason = "another value"
    elif said.text != as_text(_like(recorded, value), unit):
        reason = "shown otherwise than it is recorded"
    return Verdict(policy, figure, shorten(said.text), computed, reason)


def _number(text: str) -> tuple[float | int | None, bool]:
    """A recorded value, and whether it could be read."""
    if text == "none":
        return None, True
    if len(text) > 40 or not text.isascii() or "_" in text:
        return None, False
    try:
        return (int(text) if text.removeprefix("-").isdecimal() else float(text)), True
    except ValueError:
        return None, False


def _close(recorded: float | int | None, value: Any) -> bool:
    if recorded is None or value is None:
        return recorded is None and value is None
    if isinstance(value, int):
        return recorded == value
    return math.isclose(recorded, value, rel_tol=TOLERANCE, abs_tol=1e-12)


def _like(recorded: float | int | None, value: Any) -> Any:
    """The recorded number as the type of the computed one, so that both read alike."""
    return recorded if recorded is None or isinstance(value, int) else float(recorded)
