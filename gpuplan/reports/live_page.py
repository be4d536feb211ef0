"""One page with live controls over a computed grid: penalty x cluster size x policy, without Python and a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuplan import theme
from gpuplan.gantt import safe_text
from gpuplan.reports import page as parts
from gpuplan.reports import tables, words
from gpuplan.side_by_side import as_text

if TYPE_CHECKING:
    from gpuplan.reports.grid import Grid

#: The figure that is drawn first.
_FIRST_FIGURE = "objective"

#: Pixels of a panel.
_WIDTH, _HEIGHT = 400, 260


def live_page(found: Grid) -> str:
    """The whole page; the same grid gives the same text."""
    scenario, told = found.scenario, words.versions()
    listed = ["The controls change the penalty and the number of GPUs; everything else is the scenario's."]
    listed += words.kind_assumptions(scenario)
    if found.choices.iterations is not None:
        moves = f"{found.choices.iterations:,} moves with seed {found.choices.seed}"
        listed.append(f"search: {moves} at every point; moves, not time, so that it repeats.")
    refused = [f"{size} GPUs are left out: {why}" for size, why in found.refused.items()]
    body = [
        parts.head(f"Explore: {safe_text(scenario.name)}", f"{parts.LIVE_FORMAT} 1"),
        f"<header>\n<h1>{tables.text(scenario.name)}</h1>\n<p>{tables.text(scenario.about, 2000)}</p>\n</header>",
        "<main>",
        _controls(found),
        _picture(),
        _table(found),
        parts.listed("assumptions", "Assumptions", listed),
        parts.listed("notes", "Notes", refused or ["No size of the cluster was refused."]),
        _origin(found, told),
        parts.scenario_part(scenario.to_yaml()),
        "</main>",
        parts.data("grid", _data(found)),
        parts.data("grid-chart", _spec(found)),
        parts.data("chart-configs", {mode: parts.config(mode) for mode in ("light", "dark")}),
        f'<script type="module">\n{parts.script("interactive.js")}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(body)


def _own(found: Grid) -> tuple[int, int]:
    """Where the scenario itself stands in the grid."""
    scenario = found.scenario
    return (
        found.penalties.index(float(scenario.objective.shortfall_penalty)),
        found.gpus.index(scenario.cluster.gpus),
    )


def _controls(found: Grid) -> str:
    at_penalty, at_gpus = _own(found)
    options = "".join(
        f'<option value="{figure}"{" selected" * (figure == _FIRST_FIGURE)}>{figure.replace("_", " ")}'
        f" ({unit})</option>"
        for figure, unit in found.units.items()
    )

    def slider(name: str, label: str, stops: int, at: int) -> str:
        return (
            f'<p><label for="{name}">{label}: <output id="{name}-now" for="{name}"></output></label><br>'
            f'<input type="range" id="{name}" min="0" max="{stops - 1}" step="1" value="{at}"></p>'
        )

    return (
        '<section id="controls">\n<h2>What if</h2>\n<div class="controls">'
        + slider("penalty", "Penalty of a GPU-hour of unmet demand", len(found.penalties), at_penalty)
        + slider("gpus", "GPUs of the cluster", len(found.gpus), at_gpus)
        + f'<p><label for="figure">Figure in the charts</label><br><select id="figure">{options}</select></p></div>\n'
        '<p id="state" aria-live="polite"></p>\n</section>'
    )


def _table(found: Grid) -> str:
    at_penalty, at_gpus = _own(found)
    here = found.values[at_penalty][at_gpus]
    head = "".join(f'<th scope="col">{tables.text(name)}</th>' for name in found.choices.policies)
    rows = []
    for number, (figure, unit) in enumerate(found.units.items()):
        cells = "".join(
            f'<td data-policy="{k}" data-figure="{figure}">{as_text(values[number], unit)}</td>'
            for k, values in enumerate(here)
        )
        name = figure.replace("_", " ")
        rows.append(f'<tr><th scope="row">{name}</th>{cells}<td class="unit">{unit}</td></tr>')
    body = "\n".join(rows)
    return '<section id="figures">\n<h2>Figures</h2>\n' + (
        tables.scrolled(
            "<table>\n<caption>Figures of every policy at this point</caption>\n<thead><tr>"
            f'<th scope="col">figure</th>{head}<th scope="col" class="words">unit</th></tr></thead>\n'
            f"<tbody>\n{body}\n</tbody>\n</table>",
            "Figures of every policy at this point",
        )
        + "\n</section>"
    )


def _picture() -> str:
    said = (
        "Two charts of the chosen figure: over the penalty at the chosen size, and the other way round; "
        "a mark for every computed point, the chosen one larger. The table of figures has its numbers."
    )
    return (
        '<section id="charts">\n<h2>Charts</h2>\n<figure>\n'
        f'<div id="grid-picture" class="on-screen" role="img" tabindex="0" aria-label="{said}"></div>\n'
        "<figcaption>Only computed points are drawn, and nothing between two of them. The large marks are the point "
        "that is chosen.</figcaption>\n</figure>\n</section>"
    )


def _data(found: Grid) -> dict[str, Any]:
    units = list(found.units.values())
    texts = [[[list(map(as_text, values, units)) for values in cell] for cell in row] for row in found.values]
    scenario = found.scenario
    return {
        "penalties": list(found.penalties),
        "gpus": list(found.gpus),
        "policies": [safe_text(name) for name in found.choices.policies],
        "figures": list(found.units),
        "units": found.units,
        "texts": texts,
        "own": {"penalty": scenario.objective.shortfall_penalty, "gpus": scenario.cluster.gpus},
        "values": found.values,
    }


def _spec(found: Grid) -> dict[str, Any]:
    names = [safe_text(name) for name in found.choices.policies]
    looks = [theme.POLICY_LOOKS[k % len(theme.POLICY_LOOKS)][0] for k in range(len(names))]
    shapes = [
        "circle",
        "square",
        "triangle-up",
        "diamond",
        "cross",
        "triangle-down",
        "triangle-left",
        "triangle-right",
    ]
    shape = [shapes[k % len(shapes)] for k in range(len(names))]
    legend = {"orient": "top", "title": None}

    def panel(data: str, title: str) -> dict[str, Any]:
        return {
            "data": {"name": data},
            "width": _WIDTH,
            "height": _HEIGHT,
            "mark": {"type": "point", "filled": True, "opacity": 0.85},
            "encoding": {
                "x": {"field": "x", "type": "quantitative", "title": title, "scale": {"nice": False}},
                "y": {"field": "value", "type": "quantitative", "title": None},
                "color": {
                    "field": "policy", "type": "nominal", "scale": {"domain": names, "range": looks}, "legend": legend,
                },
                "shape": {
                    "field": "policy", "type": "nominal", "scale": {"domain": names, "range": shape}, "legend": legend,
                },
                "size": {"condition": {"test": "datum.here", "value": 220}, "value": 45},
                "tooltip": [
                    {"field": "policy", "type": "nominal"},
                    {"field": "x", "type": "quantitative", "title": title},
                    {"field": "says", "type": "nominal", "title": "figure"},
                ],
            },
        }  # fmt: skip

    return {"hconcat": [panel("over_penalty", "penalty"), panel("over_gpus", "GPUs")]}


def _origin(found: Grid, told: dict[str, str]) -> str:
    seed = "none: nothing is drawn" if found.choices.seed is None else str(found.choices.seed)
    points = len(found.penalties) * len(found.gpus) * len(found.choices.policies)
    rows = [
        ["fingerprint of the input (SHA-256)", found.scenario.fingerprint],
        ["seed", seed],
        ["computed points", f"{points:,}"],
        *([f"version of {name}", said] for name, said in told.items()),
    ]
    return (
        '<section id="origin">\n<h2>Where it comes from</h2>\n'
        + tables.table("Input, seed and versions", ["what", "value"], rows)
        + "\n</section>"
    )
