"""The page of a report: one HTML file with everything in it, that asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.gantt import safe_text
from gpuplan.reports import tables, words
from gpuplan.reports.pictures import Picture, pictures
from gpuplan.side_by_side import as_text

if TYPE_CHECKING:
    from gpuplan.reports.runs import Choices
    from gpuplan.side_by_side import SideBySide

#: What a page of ours says of itself, and the version of what `gpuplan.reports.reading` reads.
FORMAT, FORMAT_VERSION = "gpuplan-report", 1

#: The same of a page with live controls (`gpuplan.reports.live_page`).
LIVE_FORMAT = "gpuplan-interactive"

#: Nothing may be fetched, whatever a page holds; Vega compiles its expressions.
_POLICY = (
    "default-src 'none'; script-src {scripts} 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)

#: Lines of a scenario that are shown without a click.
_OPEN_LINES = 120

#: Parts of a specification that the page says once for all, or not at all (buttons, the name of the language).
_ONCE = ("datasets", "config", "usermeta", "$schema")

_EXPORT = re.compile(r"export\s*\{\s*([\w$]+) as default\s*\};?\s*$")


def page(comparison: SideBySide[Any], choices: Choices) -> str:
    """The whole page; the same comparison and choices give the same text.

    Parameters
    ----------
    comparison
        Results of a settled scenario (`gpuplan.reports.runs`).
    choices
        What was asked for.
    """
    scenario = comparison.scenario
    name = safe_text(scenario.name)
    told = words.versions()
    parts = [
        head(f"Report: {name}"),
        _front(comparison, choices),
        "<main>",
        _figures(comparison),
        _charts(pictures(comparison)),
        listed("assumptions", "Assumptions", words.assumptions(comparison, choices)),
        listed("notes", "Notes", words.notes(comparison) or ["Nothing was set aside, changed or left out."]),
        _origin(comparison, choices, told),
        scenario_part(scenario.to_yaml()),
        "</main>",
        data("report-record", _record(comparison, choices, told)),
        data("chart-configs", {mode: config(mode) for mode in ("light", "dark")}),
        f'<script type="module">\n{script()}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def head(title: str, generator: str = f"{FORMAT} {FORMAT_VERSION}", only: str | None = None) -> str:
    """Everything up to the body: policy, style, title, and what the page says of itself.

    `only` is the one script that may run, for pages with texts of somebody else.
    """
    scripts = "'unsafe-inline'"
    if only is not None:
        scripts = f"'sha256-{base64.b64encode(hashlib.sha256(only.encode()).digest()).decode('ascii')}'"
    style = (resources.files("gpuplan.reports") / "page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY.format(scripts=scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{generator}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>"
    )


def _front(comparison: SideBySide[Any], choices: Choices) -> str:
    scenario = comparison.scenario
    kinds = {"allocation": "Allocation", "fairshare": "Fair share", "packing": "Packing"}
    policies = ", ".join(tables.text(policy) for policy in choices.policies)
    about = "".join(f"<p>{tables.text(scenario.about, 2000)}</p>" if scenario.about else "")
    links = {
        "figures": "Figures",
        "charts": "Charts",
        "assumptions": "Assumptions",
        "notes": "Notes",
        "origin": "Where it comes from",
        "scenario": "Scenario",
    }
    listed = "".join(f'<li><a href="#{place}">{said}</a></li>' for place, said in links.items())
    return (
        f"<header>\n<h1>{tables.text(scenario.name)}</h1>\n"
        f"<p>{kinds[scenario.kind]}; policies compared: {policies}.</p>\n{about}</header>\n"
        f'<nav aria-label="Parts of the report"><ul>{listed}</ul></nav>'
    )


def _figures(comparison: SideBySide[Any]) -> str:
    """The table that `gpuplan verify` recomputes: every cell says which figure it is, and its exact value."""
    results = comparison.results
    head = "".join(f'<th scope="col">{tables.text(name)}</th>' for name in results)
    explained = bool(comparison.meanings)
    figures = list(next(iter(results.values())).figures)
    rows = []
    for figure in figures:
        unit = comparison.units[figure]
        cells = "".join(
            _cell(number, figure, result.figures[figure], unit)
            for number, result in enumerate(results.values())
        )
        meaning = f'<td class="meaning">{tables.text(comparison.meanings.get(figure, ""), 400)}</td>'
        rows.append(
            f'<tr><th scope="row">{tables.text(figure.replace("_", " "))}</th>{cells}'
            f'<td class="unit">{tables.text(unit)}</td>{meaning if explained else ""}</tr>'
        )
    broken = "".join(
        _cell(number, "violations", result.violations, "rules")
        for number, result in enumerate(results.values())
    )
    rows.append(
        f'<tr><th scope="row">violations</th>{broken}<td class="unit">broken rules</td>'
        + ('<td class="meaning">found by code that shares nothing with the engine</td>' if explained else "")
        + "</tr>"
    )
    last = "".join(
        f'<th scope="col" class="words">{said}</th>' for said in ("unit", "what it is")[: 1 + explained]
    )
    body = "\n".join(rows)
    made = (
        f'<table id="figures-table">\n<caption>Figures of every policy</caption>\n<thead><tr><th scope="col">figure'
        f"</th>{head}{last}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )
    return f'<section id="figures">\n<h2>Figures</h2>\n{tables.scrolled(made, "Figures of every policy")}\n</section>'


def _cell(number: int, figure: str, value: Any, unit: str) -> str:
    return (
        f'<td data-policy="{number}" data-figure="{figure}" data-value="{exact(value)}">'
        f"{as_text(value, unit)}</td>"
    )


def exact(value: Any) -> str:
    """A figure with all its digits: the shortest text that reads back to the same number."""
    return "none" if value is None else repr(value.item() if hasattr(value, "item") else value)


def _charts(made: Sequence[Picture]) -> str:
    figures = "\n".join(_chart(number, picture) for number, picture in enumerate(made))
    return f'<section id="charts">\n<h2>Charts</h2>\n{figures}\n</section>'


def _chart(number: int, picture: Picture) -> str:
    wide, narrow = picture.specs()
    said = str(wide.get("description", picture.title))
    return chart_figure(str(number), picture.title, said, wide, narrow, picture.tables)


def chart_figure(
    place: str,
    title: str | None,
    said: str,
    wide: dict[str, Any],
    narrow: dict[str, Any],
    tabled: Sequence[str],
    own_config: dict[str, Any] | None = None,
) -> str:
    """A chart that the page's script draws, with its words and its tables (HTML of ours) behind a click.

    `own_config` is that of a chart of somebody else, laid over the page's.
    """
    data, other = wide.get("datasets", {}), narrow.get("datasets", {})
    drawn = {
        "wide": _bare(wide),
        "narrow": _bare(narrow),
        "datasets": data,
        # What is the same on both pages is there once.
        "narrowDatasets": {name: rows for name, rows in other.items() if rows != data.get(name)},
    } | ({"config": own_config} if own_config else {})
    label = html.escape(safe_text(said, 2000))
    heading = f'<h3 id="chart-{place}">{tables.text(title)}</h3>\n' if title else ""
    named = f'aria-labelledby="chart-{place}"' if title else f'aria-label="Chart {place}"'
    table = "The chart in words and as a table" if tabled else "The chart in words"
    return (
        f'<figure class="chart" {named}>\n{heading}'
        f'<div class="on-screen" role="img" tabindex="0" aria-label="{label}"></div>\n'
        '<div class="on-paper" aria-hidden="true"></div>\n'
        f"<figcaption><details><summary>{table}</summary>\n"
        f"<p>{tables.text(said, 2000)}</p>\n{''.join(tabled)}\n</details></figcaption>\n"
        f'<script type="application/json" class="chart-data">{in_script(drawn)}</script>\n</figure>'
    )


def _bare(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification without the parts `_ONCE`."""
    return {key: value for key, value in spec.items() if key not in _ONCE}


def config(mode: theme.Mode) -> dict[str, Any]:
    """Colours of all charts of a page in a mode."""
    return theme.config(mode) | {"background": theme.PAPER[mode]}


def listed(place: str, title: str, sentences: Sequence[str]) -> str:
    """A section of sentences."""
    items = "\n".join(f"<li>{tables.text(sentence, 1000)}</li>" for sentence in sentences)
    return f'<section id="{place}">\n<h2>{title}</h2>\n<ul>\n{items}\n</ul>\n</section>'


def _origin(comparison: SideBySide[Any], choices: Choices, told: dict[str, str]) -> str:
    scenario = comparison.scenario
    seed = "none: nothing is drawn" if choices.seed is None else str(choices.seed)
    rows = [["fingerprint of the input (SHA-256)", scenario.fingerprint], ["seed", seed]]
    if choices.iterations is not None:
        rows.append(["moves of search", f"{choices.iterations:,}"])
    rows += [
        [f"fingerprint of {name} (SHA-256)", result.fingerprint]
        for name, result in comparison.results.items()
    ]
    rows += [[f"version of {name}", said] for name, said in told.items()]
    return (
        '<section id="origin">\n<h2>Where it comes from</h2>\n'
        + tables.table("Input, seed and versions", ["what", "value"], rows)
        + "\n<p>The figures can be computed anew from this page: <code>gpuplan verify FILE</code>.</p>\n</section>"
    )


def scenario_part(text: str) -> str:
    """The section with the scenario file."""
    is_open = " open" if text.count("\n") <= _OPEN_LINES else ""
    return (
        '<section id="scenario">\n<h2>Scenario</h2>\n'
        f"<details{is_open}><summary>The scenario file</summary>\n"
        f'<pre id="scenario-yaml" tabindex="0">\n{html.escape(text)}</pre>\n</details>\n</section>'
    )


def _record(comparison: SideBySide[Any], choices: Choices, told: dict[str, str]) -> dict[str, Any]:
    scenario = comparison.scenario
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "kind": scenario.kind,
        "fingerprint": scenario.fingerprint,
        "policies": list(choices.policies),
        "seed": choices.seed,
        "iterations": choices.iterations,
        "notes": list(getattr(scenario, "notes", ())),
        "versions": told,
    }


def data(place: str, value: Any) -> str:
    """A value that the page's own script reads."""
    return f'<script type="application/json" id="{place}">{in_script(value)}</script>'


def in_script(value: Any) -> str:
    """JSON that ends no script and opens no comment, whatever names are in it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def script(drawing: str = "page.js") -> str:
    """Vega, once, and the file that draws with it."""
    bundle = (words.static_folder() / "vega_runtime.js").read_text(encoding="utf-8")
    started, found = _EXPORT.subn(lambda match: f"{match[1]}.initialize();\n", bundle)
    if not found or "</script" in started or "<!--" in started:
        raise RuntimeError("the bundle of Vega cannot be put into a page: build it anew")
    own = (resources.files("gpuplan.reports") / drawing).read_text(encoding="utf-8")
    return f"{started}{{\n{own}}}\n"  # a block of its own: Vega's short names are many
