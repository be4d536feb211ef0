"""One page with live controls over a computed grid, for all kinds of scenario, without Python and a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuplan.gantt import safe_text
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.reports import page as parts
from gpuplan.reports import tables, words
from gpuplan.reports.grid_axes import plain
from gpuplan.reports.grid_charts import figure_charts
from gpuplan.reports.grid_pack import packed
from gpuplan.side_by_side import as_text

if TYPE_CHECKING:
    from gpuplan.reports.grid import Grid
    from gpuplan.reports.grid_axes import Space

#: What `gpuplan.reports.verify_grid` reads.
LIVE_VERSION = 2

#: Bytes of a page at most: it goes by mail, and onto a memory stick.
MOST_BYTES = 5_000_000

#: The figure that is drawn first, by kind.
_FIRST = {"allocation": "objective", "fairshare": "delivered_share", "packing": "latency_mean_s"}

#: Reasons of points without results that are spelled out.
_NAMED = 30


def live_page(found: Grid) -> str:
    """The whole page; the same grid gives the same text.

    Where the pictures of all points do not fit, those of every second, third ... stop go with it, and the page says so.

    Raises
    ------
    InputError
        Where it is too large without any picture but that of the scenario itself.
    """
    most = max(len(axis.values) for axis in found.axes)
    for every in range(1, most + 2):
        text = page_with(found, every)
        if len(text.encode()) <= MOST_BYTES:
            return text
    rule = f"makes a page above {MOST_BYTES // 1_000_000} MB: name fewer values, or fewer policies"
    raise InputError("grid", [Mistake("", rule, len(found.points) * len(found.choices.policies))])


def page_with(found: Grid, every: int) -> str:
    """The page with the pictures of every so many stops of each axis, counted from the scenario's own."""
    scenario, told = found.scenario, words.versions()
    drawn = [_stands(found, place, every) for place in range(len(found.points))]
    body = [
        parts.head(f"Explore: {safe_text(scenario.name)}", f"{parts.LIVE_FORMAT} {LIVE_VERSION}"),
        f"<header>\n<h1>{tables.text(scenario.name)}</h1>\n<p>{tables.text(scenario.about, 2000)}</p>\n</header>",
        "<main>",
        "<noscript><p>The controls need JavaScript. The table below holds the figures of the scenario as it is.</p>"
        "</noscript>",
        _controls(found),
        _picture(found, drawn),
        _table(found),
        _charts(),
        parts.listed("assumptions", "Assumptions", _assumptions(found)),
        parts.listed("notes", "Notes", _notes(found) or ["Nothing was set aside, left out or refused."]),
        _origin(found, told),
        parts.scenario_part(scenario.to_yaml()),
        "</main>",
        parts.data("grid-record", _record(found, told, every)),
        parts.data("grid", _data(found)),
        parts.data("grid-pictures", _pictures(found, drawn)),
        parts.data("grid-charts", figure_charts(found)),
        parts.data("picture-charts", found.look.specs()),
        parts.data("chart-configs", {mode: parts.config(mode) for mode in ("light", "dark")}),
        f'<script type="module">\n{parts.script("interactive.js")}</script>',
        "</body>\n</html>\n",
    ]
    return "\n".join(body)


def _stands(found: Grid, place: int, every: int) -> bool:
    """Whether the picture of a point goes with a page."""
    if found.points[place].error:
        return False
    stops = zip(found.axes, found.space.stops(place), strict=True)
    return all((stop - axis.own) % every == 0 for axis, stop in stops)


def _controls(found: Grid) -> str:
    sliders = "".join(
        f'<p><label for="{axis.name}">{tables.text(axis.title)}: <output id="{axis.name}-now" for="{axis.name}">'
        f"{tables.text(axis.said[axis.own])}</output></label><br>"
        f'<input type="range" id="{axis.name}" data-axis="{number}" min="0" max="{len(axis.values) - 1}" step="1" '
        f'value="{axis.own}" aria-valuetext="{tables.text(axis.said[axis.own])}"></p>'
        for number, axis in enumerate(found.axes)
    )
    return (
        '<section id="controls" aria-label="What if">\n<h2>What if</h2>\n'
        f'<div class="controls">{sliders}</div>\n'
        '<p class="controls"><strong id="state"></strong> '
        '<button type="button" id="back">Back to the scenario as it is</button></p>\n'
        '<p id="announced" class="unseen" role="status"></p>\n</section>'
    )


def _chooser(place: str, label: str, options: list[str], chosen: int) -> str:
    made = "".join(
        f'<option value="{number}"{" selected" * (number == chosen)}>{tables.text(option)}</option>'
        for number, option in enumerate(options)
    )
    return f'<p><label for="{place}">{label}</label> <select id="{place}">{made}</select></p>'


def _picture(found: Grid, drawn: list[bool]) -> str:
    said = found.look.words()
    names = list(found.choices.policies)
    chosen = ""
    if said.sided and len(names) > 1:
        chosen = _chooser("left", "Left", names, 0) + _chooser("right", "Right", names, 1)
    if said.choices:
        at = said.choices.index(said.chosen)
        chosen += _chooser("chosen", "Over time", list(said.choices), at)
    missing = drawn.count(False) - len(found.errors)
    left_out = ""
    if missing:
        left_out = (
            f'<p id="left-out">Pictures stand at {drawn.count(True):,} of {len(drawn):,} points, those of the '
            f"others are left out: the file would be larger than {MOST_BYTES // 1_000_000} MB. "
            "Figures stand at all of them.</p>"
        )
    return (
        f'<section id="picture-part">\n<h2>{said.title}</h2>\n<div class="controls">{chosen}</div>\n{left_out}'
        '<p id="no-picture" hidden></p>\n<figure>\n'
        f'<div id="picture" class="on-screen" role="img" tabindex="0" aria-label="{said.title}: '
        'the table below the picture has its numbers."></div>\n'
        '<div id="picture-paper" class="on-paper" aria-hidden="true"></div>\n'
        f"<figcaption>{tables.text(said.about, 2000)}\n"
        '<details id="picture-details"><summary>The picture as a table</summary>'
        '<div id="picture-tables"></div></details></figcaption>\n</figure>\n</section>'
    )


def _table(found: Grid) -> str:
    here = found.points[found.space.own]
    head = "".join(f'<th scope="col">{tables.text(name)}</th>' for name in found.choices.policies)
    rows = []
    for number, (figure, unit) in enumerate([*found.units.items(), ("violations", "broken rules")]):
        cells = []
        for k, values in enumerate(here.figures):
            value = values[number] if number < len(values) else here.violations[k]
            text = as_text(value, unit)
            cells.append(f'<td data-policy="{k}" data-figure="{number}">{text}</td>')
        name = figure.replace("_", " ")
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}<td class="unit">{unit}</td></tr>')
    body = "\n".join(rows)
    caption = "Figures of every policy at this point"
    return '<section id="figures">\n<h2>Figures</h2>\n' + (
        tables.scrolled(
            f'<table>\n<caption>{caption}: <span id="caption-now">{tables.text(found.space.words(found.space.own))}'
            '</span></caption>\n<thead><tr>'
            f'<th scope="col">figure</th>{head}<th scope="col" class="words">unit</th></tr></thead>\n'
            f"<tbody>\n{body}\n</tbody>\n</table>",
            caption,
        )
        + "\n</section>"
    )  # fmt: skip


def _charts() -> str:
    return (
        '<section id="charts">\n<h2>One figure over both controls</h2>\n'
        '<p><label for="figure">Figure</label> <select id="figure"></select></p>\n<p id="meaning"></p>\n<figure>\n'
        '<div id="grid-picture" class="on-screen" role="img" tabindex="0" aria-label="The chosen figure over each '
        'control; the table below the charts has its numbers."></div>\n'
        '<div id="grid-paper" class="on-paper" aria-hidden="true"></div>\n'
        "<figcaption>A mark for every computed point, and nothing between two of them. The large marks are the point "
        "that is chosen; a click on a mark chooses it.\n"
        '<details id="grid-details"><summary>The charts as a table</summary><div id="grid-tables"></div></details>'
        "</figcaption>\n</figure>\n</section>"
    )  # fmt: skip


def _assumptions(found: Grid) -> list[str]:
    first, second = (_inside(axis.title) for axis in found.axes)
    said = [f"The controls change two things: {first}; {second}. Everything else is the scenario's."]
    same = {
        "fairshare": "All points meet the same jobs: a share that moves changes who may run, not who asks.",
        "packing": "All points meet the same tasks: a load makes them come faster or slower, nothing else.",
    }
    said += [same[found.scenario.kind]] if found.scenario.kind in same else []
    if found.scenario.kind == "fairshare" and found.scenario.budget_changes:
        said.append("Budgets change in this scenario: the control moves the weights before the first change.")
    if found.scenario.kind == "fairshare" and _has_habits(found.scenario):
        said.append("Which jobs have the habits of the old world is drawn anew for these jobs.")
    return [*said, "Of the scenario as it is:", *found.assumptions]


def _inside(title: str) -> str:
    """A title within a sentence: a capital of a word becomes small, that of GPUs stays."""
    return title[0].lower() + title[1:] if title[1:2].islower() else title


def _has_habits(scenario: Any) -> bool:
    habits = scenario.behaviour
    return bool(scenario.generate and (habits.inflation or habits.squatting or habits.opt_out))


def _notes(found: Grid) -> list[str]:
    if len(found.broken) + len(found.notes) <= _NAMED:
        return [*(f"Broken rule (a fault of gpuplan): {rule}" for rule in found.broken), *found.notes]
    both = [*(f"Broken rule (a fault of gpuplan): {rule}" for rule in found.broken), *found.notes]
    return [*both[:_NAMED], f"{len(both) - _NAMED:,} more notes of this kind"]


def _record(found: Grid, told: dict[str, str], every: int) -> dict[str, Any]:
    scenario = found.scenario
    return {
        "kind": scenario.kind,
        "fingerprint": scenario.fingerprint,
        "policies": list(found.choices.policies),
        "seed": found.choices.seed,
        "iterations": found.choices.iterations,
        "team": found.space.team,
        "axes": wished(found.space),
        "asked": wished(found.asked),
        "pictures_every": every,
        "input_notes": list(getattr(scenario, "notes", ())),
        "notes": list(found.notes),
        "versions": told,
    }


def wished(space: Space) -> dict[str, list[float]]:
    """Values of the axes as `gpuplan.reports.grid.grid` takes them."""
    return {
        axis.name: [plain(v / 100) if axis.name == "margins" else v for v in axis.values]
        for axis in space.axes
    }


def _data(found: Grid) -> dict[str, Any]:
    """Figures as numbers and as people read them; equal rows are there once, and so are texts."""
    units = [*found.units.values(), "rules"]
    texts: dict[str, int] = {}
    rows: dict[str, int] = {}
    listed: list[Any] = []
    at: list[Any] = []
    for point in found.points:
        numbers = []
        for values, broken in zip(point.figures, point.violations, strict=True):
            whole = [*values, broken]
            said = [texts.setdefault(as_text(v, u), len(texts)) for v, u in zip(whole, units, strict=True)]
            key = repr(whole)
            if key not in rows:
                rows[key] = len(listed)
                listed.append([whole, said])
            numbers.append(rows[key])
        at.append(point.error or numbers)
    figures = [*found.units, "violations"]
    meanings = _meanings(found.scenario.kind)
    return {
        "axes": [
            {"name": a.name, "short": a.short, "values": list(a.values), "said": list(a.said), "own": a.own}
            for a in found.axes
        ],
        "policies": [safe_text(name) for name in found.choices.policies],
        "figures": [
            {"name": name.replace("_", " "), "unit": unit, "means": meanings.get(name, "")}
            for name, unit in zip(figures, [*found.units.values(), "broken rules"], strict=True)
        ],
        "first": figures.index(_FIRST[found.scenario.kind]),
        "texts": list(texts),
        "rows": listed,
        "at": at,
    }


def _meanings(kind: str) -> dict[str, str]:
    """What each figure is, where the kind says it."""
    if kind == "allocation":
        return {}
    if kind == "fairshare":
        from gpuplan.fairshare.figures import MEANINGS as of_fairshare

        return of_fairshare
    from gpuplan.packing.figures import MEANINGS as of_packing

    return of_packing


def _pictures(found: Grid, drawn: list[bool]) -> dict[str, Any]:
    said = found.look.words()
    kept = [(p.shared, p.drawn) if stands else None for p, stands in zip(found.points, drawn, strict=True)]
    listed = [{"data": one.data, "caption": one.caption, "columns": dict(one.columns)} for one in said.tables]
    return {"sided": said.sided, "choices": list(said.choices), "tables_of": listed, **packed(kept)}


def _origin(found: Grid, told: dict[str, str]) -> str:
    seed = "none: nothing is drawn" if found.choices.seed is None else str(found.choices.seed)
    results = len(found.points) * len(found.choices.policies)
    rows = [
        ["fingerprint of the input (SHA-256)", found.scenario.fingerprint],
        ["seed", seed],
        ["computed points", f"{len(found.points) - len(found.errors):,}"],
        ["results (points x policies)", f"{results:,}"],
        *([f"version of {name}", said] for name, said in told.items()),
    ]
    return (
        '<section id="origin">\n<h2>Where it comes from</h2>\n'
        + tables.table("Input, seed and versions", ["what", "value"], rows)
        + "\n<p>The figures can be computed anew from this page: <code>gpuplan verify FILE</code>.</p>\n</section>"
    )
