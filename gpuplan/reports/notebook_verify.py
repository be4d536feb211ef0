"""Compute the figures of a notebook's report again: from the scenarios in it, or by running the notebook in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gpuplan.inputs.errors import InputError, Mistake, shorten
from gpuplan.reports.figures import ReportFigures, block, is_record
from gpuplan.reports.notebook_file import Notebook, from_json
from gpuplan.reports.notebook_page import FORMAT_VERSION, assumptions
from gpuplan.reports.notebook_run import TIME_LIMIT_S
from gpuplan.reports.reading import Shown
from gpuplan.reports.runs import Choices
from gpuplan.reports.verify import Verdict, Verification, differing, recomputed, verdict


@dataclass(frozen=True)
class NotebookVerification(Verification):
    """What became of the report of a notebook.

    Attributes
    ----------
    tables : int
        Tables whose figures were computed anew.
    ran : bool
        Whether the notebook in the page was run again.
    """

    tables: int = 0
    ran: bool = False

    @property
    def holds(self) -> bool:
        """Whether all that was looked at holds; nothing to look at is not enough."""
        return super().holds and (self.tables > 0 or self.page_holds is True)

    @property
    def sentences(self) -> list[str]:
        """The outcome in words."""
        good = sum(one.holds for one in self.figures)
        said = [
            f"{good:,} of {len(self.figures):,} figures hold, in {self.tables:,} table{'s' * (self.tables != 1)}."
        ]
        if not self.tables:
            said = ["No figure is in the page as data: gp.report_figures puts some there."]
        if not self.fingerprint_holds:
            said.append("The notebook or a scenario in the page is not the one whose fingerprint it names.")
        other = ", ".join(
            f"{name} {was or 'none'} (here {now or 'none'})" for name, (was, now) in self.versions.items()
        )
        if self.page_holds is False:
            said.append(
                "Something else in the page is not what running its notebook gives."
                if self.ran
                else "Something else in the page (a table, an assumption) is not what its scenarios give."
            )
        elif self.page_holds:
            said.append("The whole page is, letter for letter, what running its notebook gives.")
        elif other:
            said.append(f"Written with {other}: charts and texts were not compared.")
        if not self.ran:
            said.append(
                "Texts, charts and other tables come from running the notebook: they were not compared "
                "(--run-notebook runs it; do that for people you trust)."
            )
        return said


class _Reader(HTMLParser):
    """Collects the notebook, the record, scenarios by table, and the cells that carry figures."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.generator = ""
        self.parts: dict[str, list[str]] = {}
        self.scenarios: dict[str, list[str]] = {}
        self.cells: list[tuple[dict[str, str], list[str]]] = []
        self._into: list[str] | None = None
        self._until = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "meta" and found.get("name") == "generator":
            self.generator = found.get("content", "")
        if self._into is not None:
            return
        if tag == "script" and found.get("id") in ("notebook-source", "notebook-record"):
            self._into = self.parts.setdefault(found["id"], [])
        elif tag == "pre" and found.get("class") == "scenario-yaml":
            self._into = self.scenarios.setdefault(found.get("data-set", ""), [])
        elif tag == "td" and "data-figure" in found and "data-set" in found:
            self.cells.append((found, []))
            self._into = self.cells[-1][1]
        self._until = tag if self._into is not None else ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self._until:
            self._into, self._until = None, ""

    def handle_data(self, data: str) -> None:
        if self._into is not None:
            self._into.append(data)


def verify_notebook(
    source: str,
    text: str,
    *,
    run: bool = False,
    folder: Path | None = None,
    time_limit_s: float = TIME_LIMIT_S,
) -> NotebookVerification:
    """Recompute the figures that a page of a notebook carries as data.

    Parameters
    ----------
    source, text
        Name and text of the page.
    run
        Whether the notebook in it is run again, and the whole page compared: it is a program, of whoever sent the page.
    folder
        Where it runs; None: in the working folder.
    time_limit_s
        Seconds of the run in all.

    Raises
    ------
    InputError
        For a damaged page, a scenario with mistakes, and a notebook that fails.
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    number = reader.generator.partition(" ")[2]
    if number != str(FORMAT_VERSION):
        raise _damaged(
            source, f"is a report in form {number[:20]}, and this gpuplan reads form {FORMAT_VERSION}"
        )
    record, stored = _parts(reader, source)
    notebook = from_json(stored, source)
    records, verdicts, fits = [], [], notebook.fingerprint == record["fingerprint"]
    for place, entry in enumerate(record["tables"]):
        scenario = "".join(reader.scenarios.get(str(place), [])).removeprefix("\n")
        found = _computed(entry, scenario, source)
        records.append(found.record)
        fits = fits and found.record["fingerprint"] == entry.get("fingerprint")
        cells = [cell for cell in reader.cells if cell[0]["data-set"] == str(place)]
        verdicts += _verdicts(place, found, cells, several=len(record["tables"]) > 1)
    verdicts += _strays(reader, len(records))
    differ = differing(record["versions"], _versions(record["versions"]))
    holds = None
    if not differ:
        whole = (
            all(block(place, one) in text for place, one in enumerate(records))
            and assumptions(records) in text
        )
        holds = None if whole else False
    if run:
        again = _run(notebook, stored, source, folder or Path.cwd(), time_limit_s)
        holds = None if differ else again == text and holds is None
    return NotebookVerification(source, tuple(verdicts), fits, holds, differ, len(records), run)


def _damaged(source: str, rule: str) -> InputError:
    return InputError(source, [Mistake("", rule)])


def _parts(reader: _Reader, source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    made = []
    for name in ("notebook-record", "notebook-source"):
        try:
            found = json.loads("".join(reader.parts.get(name, [])))
        except (ValueError, RecursionError) as error:
            raise _damaged(
                source, f"is damaged: its {name.replace('-', ' ')} is missing or no JSON"
            ) from error
        made.append(found)
    record, stored = made
    tables = record.get("tables") if isinstance(record, dict) else None
    versions = record.get("versions") if isinstance(record, dict) else None
    good = (
        isinstance(tables, list)
        and all(isinstance(entry, dict) for entry in tables)
        and isinstance(versions, dict)
        and all(isinstance(entry, str) for entry in versions.values())
        and isinstance(record.get("fingerprint"), str)
        and isinstance(stored, dict)
        and isinstance(stored.get("parameters"), dict)
    )
    if not good:
        raise _damaged(source, "is damaged: its record cannot be read")
    return record, stored


def _computed(entry: dict[str, Any], text: str, source: str) -> ReportFigures:
    """The figures of a table, from its scenario."""
    blank: dict[str, Any] = {
        "figures": {},
        "shown": {},
        "units": {},
        "meanings": {},
        "assumptions": [],
        "notes": [],
        "scenario": "",
    }
    if not is_record({**entry, **blank}):
        raise _damaged(source, "is damaged: the record of a table cannot be read")
    choices = Choices(tuple(entry["policies"]), entry["seed"], entry["iterations"])
    made = recomputed(source, entry["kind"], text, choices, entry["read"])
    return ReportFigures(made, choices, made.scenario)


def _verdicts(
    place: int, found: ReportFigures, cells: list[tuple[dict[str, str], list[str]]], *, several: bool
) -> list[Verdict]:
    """One for every figure that a table has or should have."""
    shown, often = {}, Counter[tuple[str, str]]()
    for cell, said in cells:
        key = (cell.get("data-policy", ""), cell["data-figure"])
        often[key] += 1
        shown[key] = Shown(0, cell["data-figure"], cell.get("data-value", ""), "".join(said))
    made = []
    for number, (policy, result) in enumerate(found.comparison.results.items()):
        name = f"{place + 1}: {policy}" if several else policy
        for figure, value in {**result.figures, "violations": result.violations}.items():
            unit = found.comparison.units.get(figure, "rules")
            key = (str(number), figure)
            made.append(verdict(name, figure, value, unit, shown.pop(key, None), often[key]))
    for (policy, figure), one in shown.items():
        name = f"table {place + 1}, policy {shorten(policy)}"
        made.append(Verdict(name, shorten(figure), shorten(one.text), "", "there is no such figure"))
    return made


def _strays(reader: _Reader, n_tables: int) -> list[Verdict]:
    """Cells that say they are figures of a table that there is not."""
    known = {str(place) for place in range(n_tables)}
    return [
        Verdict(f"table {shorten(cell['data-set'])}", shorten(cell["data-figure"]), shorten("".join(said)), "",
                "there is no such table")
        for cell, said in reader.cells
        if cell["data-set"] not in known
    ]  # fmt: skip


def _versions(recorded: Mapping[str, str]) -> dict[str, str]:
    """Versions here of what the page names."""
    from gpuplan.reports.notebook_page import versions

    return versions(recorded)


def _run(notebook: Notebook, stored: dict[str, Any], source: str, folder: Path, time_limit_s: float) -> str:
    from gpuplan.reports.notebook import of_notebook
    from gpuplan.reports.notebook_parameters import defaults

    values = {name: one.value for name, one in defaults(notebook, source).items()}
    if json.loads(json.dumps(values)) != stored["parameters"]:
        raise _damaged(source, "is damaged: its parameters are not those of its notebook")
    made = of_notebook(
        notebook, values, folder, f"notebook in {source}", stored.get("code") is True, time_limit_s
    )
    return made.html
