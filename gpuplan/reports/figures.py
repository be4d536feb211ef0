"""Figures of a notebook's report as data: what `gpuplan verify` needs to compute them anew without the notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports import tables, words
from gpuplan.reports.notebook_kernel import FIGURES
from gpuplan.reports.page import exact
from gpuplan.reports.runs import Choices, compared, settled
from gpuplan.side_by_side import SideBySide, as_text

#: Where results of a kind are put side by side.
_HOMES = {
    "allocation": "gpuplan.allocation.plan",
    "fairshare": "gpuplan.fairshare.run",
    "packing": "gpuplan.packing.run",
}

#: Name of the last row: rules that a result breaks.
VIOLATIONS = "violations"


@dataclass(frozen=True)
class ReportFigures:
    """Figures of a scenario under some policies, with all that is needed to compute them anew.

    A notebook shows them as a table; ``gpuplan report NOTEBOOK`` puts them into its page as data.

    Attributes
    ----------
    comparison
        The results, as `gpuplan.compare` and its like give them.
    choices : Choices
        Policies, seed, moves of the search.
    scenario
        As it is run, without files beside it.
    """

    comparison: SideBySide[Any]
    choices: Choices
    scenario: Any

    @cached_property
    def record(self) -> dict[str, Any]:
        """All of it as JSON; the same results give the same record."""
        results, scenario = self.comparison.results, self.scenario
        first = next(iter(results.values()))
        figures = {
            name: [exact(result.figures[name]) for result in results.values()] for name in first.figures
        }
        shown = {
            name: [as_text(result.figures[name], self.comparison.units[name]) for result in results.values()]
            for name in first.figures
        }
        broken = [result.violations for result in results.values()]
        return {
            "kind": scenario.kind,
            "name": scenario.name,
            "fingerprint": scenario.fingerprint,
            "policies": list(self.choices.policies),
            "seed": self.choices.seed,
            "iterations": self.choices.iterations,
            "read": list(getattr(scenario, "notes", ())),
            "scenario": scenario.to_yaml(),
            "figures": figures | {VIOLATIONS: [exact(count) for count in broken]},
            "shown": shown | {VIOLATIONS: [as_text(count, "rules") for count in broken]},
            "units": {name: self.comparison.units[name] for name in figures} | {VIOLATIONS: "broken rules"},
            "meanings": {name: self.comparison.meanings.get(name, "") for name in figures}
            | {VIOLATIONS: "found by code that shares nothing with the engine"},
            "assumptions": words.assumptions(self.comparison, self.choices),
            "notes": words.notes(self.comparison),
        }

    def _repr_mimebundle_(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {
            FIGURES: self.record,
            "text/html": self.comparison._repr_html_(),
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return repr(self.comparison)


def report_figures(
    results: Any,
    policies: Sequence[str] | None = None,
    *,
    seed: int | None = None,
    iterations: int | None = None,
) -> ReportFigures:
    """Figures for the report of a notebook, from where ``gpuplan verify`` computes them anew.

    Parameters
    ----------
    results
        What `gpuplan.report`, `gpuplan.compare` and its like or `gpuplan.plan` and its like gave; or whatever
        `gpuplan.load` takes, which is run.
    policies, seed, iterations
        As in `gpuplan.report`. Results of ``search`` need the seed and the iterations that they were made with.

    Raises
    ------
    InputError
        For a scenario with mistakes, an unknown policy, one that does not repeat, a seed without a use, and results
        that do not come out again.
    """
    from gpuplan.loading import load

    choices = getattr(results, "choices", None)
    given = _side_by_side(results)
    if given is None:
        scenario, choices = settled(load(results), policies, seed, iterations)
        return ReportFigures(compared(scenario, choices), choices, scenario)
    if policies is not None:
        rule = "is for a scenario; results have the policies that they have"
        raise InputError("report", [Mistake("policies", rule, list(policies))])
    if isinstance(choices, Choices) and seed is None and iterations is None:
        return ReportFigures(given, choices, given.scenario)
    if seed is None and iterations is None:
        return of_results(given)
    again = report_figures(given.scenario, list(given.results), seed=seed, iterations=iterations)
    _same(given, again.comparison)
    return again


def of_results(given: SideBySide[Any]) -> ReportFigures:
    """Figures of results that follow from their scenario and the names of their policies alone.

    Raises
    ------
    InputError
        For policies that need more than that (``search``, ``exact``), and those that nothing computes.
    """
    names = list(given.results)
    if "search" in names and given.scenario.kind == "allocation":
        rule = "needs its seed and its iterations: report_figures(results, seed=0, iterations=1000)"
        raise InputError("report", [Mistake("policies", rule, "search")])
    for name in names:
        _refuse_unknown(name, given.scenario)
    scenario, choices = settled(given.scenario, names, None, None)
    return ReportFigures(given, choices, scenario)


def _refuse_unknown(name: str, scenario: Any) -> None:
    """Refuse a policy that is none, such as a record of what was done."""
    if scenario.kind == "packing":
        from gpuplan.packing.policies import pieces_named

        pieces_named(name, scenario.policy)
    else:
        import_module(_HOMES[scenario.kind]).policy_named(name)


def _side_by_side(results: Any) -> SideBySide[Any] | None:
    """Results side by side, also of one; None for what is no result."""
    made = getattr(results, "comparison", results)
    kind = getattr(getattr(made, "scenario", None), "kind", None)
    if isinstance(made, SideBySide) or kind not in _HOMES:
        return made if isinstance(made, SideBySide) else None
    comparison: Any = import_module(_HOMES[kind]).Comparison
    return comparison({made.policy: made}) if hasattr(made, "policy") else None


def _same(given: SideBySide[Any], again: SideBySide[Any]) -> None:
    """Refuse results that do not come out again: of another seed, of a time budget, of rolled days."""
    for name, result in again.results.items():
        was = given.results.get(name)
        if was is not None and dict(was.figures) != dict(result.figures):
            rule = "do not come out again from their scenario; give the seed and the iterations they were made with"
            raise InputError("report", [Mistake(f"figures of {shorten(name)}", rule)])


def is_record(found: Any) -> bool:
    """Whether something from a notebook or a page has the form of `ReportFigures.record`."""
    if not isinstance(found, dict):
        return False
    texts = all(isinstance(found.get(name), str) for name in ("kind", "name", "fingerprint", "scenario"))
    lists = all(_are_texts(found.get(name)) for name in ("policies", "read", "assumptions", "notes"))
    counts = all(found.get(name, "") is None or _is_count(found.get(name)) for name in ("seed", "iterations"))
    if not (texts and lists and counts and found["policies"]):
        return False
    n_policies = len(found["policies"])
    cells = all(
        isinstance(found.get(name), dict)
        and all(_are_texts(row) and len(row) == n_policies for row in found[name].values())
        for name in ("figures", "shown")
    )
    said = all(
        isinstance(found.get(name), dict) and _are_texts(list(found[name].values()))
        for name in ("units", "meanings")
    )
    names = ("figures", "shown", "units", "meanings")
    return cells and said and len({tuple(found[name]) for name in names}) == 1


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(entry, str) for entry in found)


def _is_count(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool) and found >= 0


def block(number: int, record: Mapping[str, Any]) -> str:
    """The table of a record as it stands in a page; every cell says which figure it is, and its exact value."""
    header = "".join(f'<th scope="col">{tables.text(name)}</th>' for name in record["policies"])
    rows = []
    for name, values in record["figures"].items():
        shown = record["shown"][name]
        cells = "".join(
            f'<td data-set="{number}" data-policy="{policy}" data-figure="{html.escape(name)}" '
            f'data-value="{html.escape(value)}">{html.escape(shown[policy])}</td>'
            for policy, value in enumerate(values)
        )
        unit, meaning = tables.text(record["units"][name]), tables.text(record["meanings"][name], 400)
        rows.append(
            f'<tr><th scope="row">{tables.text(name.replace("_", " "))}</th>{cells}<td class="unit">{unit}</td>'
            f'<td class="meaning">{meaning}</td></tr>'
        )
    caption = f"{record['name']}: figures of every policy"
    inner = (
        f'<table>\n<caption>{tables.text(caption)}</caption>\n<thead><tr><th scope="col">figure</th>{header}'
        '<th scope="col" class="words">unit</th><th scope="col" class="words">what it is</th></tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )
    return f'<div class="figures">{tables.scrolled(inner, caption)}</div>'
