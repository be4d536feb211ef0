"""The page of a notebook that was run: texts, figures and charts, without its code unless that is asked for."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from gpuplan.reports import tables, words
from gpuplan.reports.notebook_file import HIDDEN, Notebook
from gpuplan.reports.notebook_outputs import Told, markdown, outputs
from gpuplan.reports.notebook_run import Ran
from gpuplan.reports.page import config, data, head, listed, script
from gpuplan.reports.reading import NOTEBOOK_FORMAT

#: What a page of a notebook says of itself, and the version of what `gpuplan.reports.notebook_verify` reads.
FORMAT, FORMAT_VERSION = NOTEBOOK_FORMAT, 1

#: Scenarios that were run which are named one by one at most.
MOST_SCENARIOS = 40

#: Lines of a scenario that are shown without a click.
_OPEN_LINES = 40


def notebook_page(
    notebook: Notebook, values: Mapping[str, Any], ran: Ran, folder: Path | None, *, code: bool = False
) -> str:
    """The whole page; the same notebook, values and outputs give the same text.

    Parameters
    ----------
    notebook
        As it was run, with its parameters in place.
    values
        Its parameters as they held.
    ran
        What its cells gave.
    folder
        Where pictures beside it are found; None: nowhere.
    code
        Whether the cells' code is shown.
    """
    told = Told()
    body = _body(notebook, ran, folder, told, code)
    made_with = versions(ran.drawn)
    title, drawing = title_of(notebook, ran), f"\n{script()}"
    parts = [
        head(f"Report: {title}", f"{FORMAT} {FORMAT_VERSION}", drawing),
        _front(title, told, has_title=bool(re.search("<h1", body))),
        f'<main>\n<section id="notebook">\n{body}\n</section>',
        assumptions(told.records),
        listed("notes", "Notes", _notes(told, ran)),
        _origin(notebook, values, told, ran, made_with),
        _scenarios(told),
        "</main>",
        data("notebook-source", {**notebook.as_json(), "code": code, "parameters": dict(values)}),
        data("notebook-record", _record(notebook, told, ran, made_with)),
        data("chart-configs", {mode: config(mode) for mode in ("light", "dark")}),
    ]
    last = [f'<script type="module">{drawing}</script>'] if told.charts else []
    return "\n".join([*parts, *last, "</body>\n</html>\n"])


def title_of(notebook: Notebook, ran: Ran) -> str:
    """The first heading that is shown, in a text or in an output, or else the notebook's name."""
    for cell, found in zip(notebook.cells, ran.outputs, strict=True):
        if HIDDEN in cell.tags:
            continue
        texts = [cell.source] if cell.kind == "markdown" else []
        texts += [str(output.get("data", {}).get("text/markdown", "")) for output in found]
        for text in texts:
            heading = re.search(r"^#\s+(.+?)\s*#*\s*$", text, re.MULTILINE)
            if heading:
                return re.sub(r"[*_`]", "", heading[1])
    return notebook.name


def _body(notebook: Notebook, ran: Ran, folder: Path | None, told: Told, code: bool) -> str:
    parts = []
    hidden = sum(HIDDEN in cell.tags for cell in notebook.cells)
    if hidden:
        told.remarks.append(
            f"{hidden} cell{'s' * (hidden != 1)} tagged {HIDDEN} {'are' if hidden != 1 else 'is'} not shown."
        )
    for index, (cell, found) in enumerate(zip(notebook.cells, ran.outputs, strict=True)):
        if HIDDEN in cell.tags:
            continue
        if cell.kind == "markdown":
            parts.append(markdown(cell, folder, told))
        elif cell.kind == "raw":
            parts.append(f'<pre tabindex="0">{html.escape(cell.source)}</pre>' if cell.source.strip() else "")
        else:
            number = notebook.number(index)
            if code and cell.source.strip():
                parts.append(
                    f"<details open><summary>Code cell {number}</summary>\n"
                    f'<pre tabindex="0"><code>{html.escape(cell.source)}</code></pre>\n</details>'
                )
            parts.append(outputs(found, number, told))
    return "\n".join(part for part in parts if part)


def _front(title: str, told: Told, *, has_title: bool) -> str:
    links = {
        "notebook": "Notebook",
        "assumptions": "Assumptions",
        "notes": "Notes",
        "origin": "Where it comes from",
    }
    if told.records:
        links["scenarios"] = "Scenarios"
    listed = "".join(f'<li><a href="#{place}">{said}</a></li>' for place, said in links.items())
    heading = "" if has_title else f"<header>\n<h1>{tables.text(title)}</h1>\n</header>\n"
    return f'{heading}<nav aria-label="Parts of the report"><ul>{listed}</ul></nav>'


def assumptions(records: Sequence[Mapping[str, Any]]) -> str:
    """The section of what the figures of tables rest on."""
    said: dict[str, None] = {}
    several = len({record["name"] for record in records}) > 1
    for record in records:
        for sentence in record["assumptions"]:
            said[f"{record['name']}: {sentence}" if several else sentence] = None
    return listed(
        "assumptions",
        "Assumptions",
        list(said) or ["The notebook states its own; no figures of it are there as data."],
    )


def versions(drawn: Iterable[str]) -> dict[str, str]:
    """Versions of what computes, draws and cleans a page; of `drawn` too, which the notebook has loaded."""
    made = words.versions()
    for name in ("nbconvert", "nh3", *drawn):
        if name not in made:
            try:
                made[name] = version(name)
            except PackageNotFoundError:
                made[name] = ""
    return made


def _notes(told: Told, ran: Ran) -> list[str]:
    said: dict[str, None] = {}
    for record in told.records:
        for sentence in record["notes"]:
            said[f"{record['name']}: {sentence}"] = None
    if ran.more:
        said[
            f"After {len(ran.scenarios):,} scenarios it ran others {ran.more:,} times, which are not named."
        ] = None
    return [*said, *told.remarks, *told.notes] or ["Nothing was set aside, changed or left out."]


def _origin(
    notebook: Notebook, values: Mapping[str, Any], told: Told, ran: Ran, made_with: Mapping[str, str]
) -> str:
    rows = [
        ["notebook", notebook.name],
        ["fingerprint of the notebook as run (SHA-256)", notebook.fingerprint],
    ]
    rows += [[f"parameter {name}", repr(value)] for name, value in values.items()]
    for number, record in enumerate(told.records, 1):
        seed = "none: nothing is drawn" if record["seed"] is None else str(record["seed"])
        rows.append([f"seed of table {number} ({record['name']})", seed])
        if record["iterations"] is not None:
            rows.append([f"moves of search of table {number}", f"{record['iterations']:,}"])
    rows += [
        [f"fingerprint of {kind} scenario {name} (SHA-256)", mark]
        for kind, name, mark in ran.scenarios[:MOST_SCENARIOS]
    ]
    more = len(ran.scenarios) - MOST_SCENARIOS
    if more > 0:
        rows.append(
            ["further scenarios that it ran", f"{more:,}; their fingerprints are in the page's record"]
        )
    rows += [[f"version of {name}", said] for name, said in made_with.items()]
    how = (
        "The figures in tables of ours can be computed anew from this page: <code>gpuplan verify FILE</code>. Texts, "
        "charts and other tables come from running the notebook; it is in this page, and <code>gpuplan verify "
        "--run-notebook FILE</code> runs it again: a notebook is a program, so run those of people you trust."
    )
    return (
        '<section id="origin">\n<h2>Where it comes from</h2>\n'
        + tables.table("Notebook, parameters, scenarios and versions", ["what", "value"], rows)
        + f"\n<p>{how}</p>\n</section>"
    )


def _scenarios(told: Told) -> str:
    if not told.records:
        return ""
    parts = []
    for number, record in enumerate(told.records):
        is_open = " open" if record["scenario"].count("\n") <= _OPEN_LINES else ""
        parts.append(
            f"<details{is_open}><summary>The scenario of table {number + 1}: {tables.text(record['name'])}</summary>\n"
            f'<pre class="scenario-yaml" data-set="{number}" tabindex="0">\n{html.escape(record["scenario"])}</pre>\n'
            "</details>"
        )
    return '<section id="scenarios">\n<h2>Scenarios</h2>\n' + "\n".join(parts) + "\n</section>"


def _record(notebook: Notebook, told: Told, ran: Ran, made_with: Mapping[str, str]) -> dict[str, Any]:
    """What `gpuplan verify` reads; figures and scenarios stand in the page as people read them."""
    apart = ("figures", "shown", "units", "meanings", "scenario", "assumptions", "notes")
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "fingerprint": notebook.fingerprint,
        "scenarios": [list(entry) for entry in ran.scenarios],
        "versions": dict(made_with),
        "tables": [
            {name: value for name, value in record.items() if name not in apart} for record in told.records
        ],
    }
