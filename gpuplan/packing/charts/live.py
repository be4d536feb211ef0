"""The live page: one linked spec for a node and its models, and the data of two runs for it."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpuplan import theme
from gpuplan.gantt import SCHEMA, Columns, Spec, titles
from gpuplan.packing.charts import fit, gantt, heads, memory, split
from gpuplan.packing.charts.clock import Clock, bin_of
from gpuplan.packing.charts.clock import words as told
from gpuplan.packing.charts.colours import look_params, palette_of
from gpuplan.packing.charts.fit_data import fit_sets, free_columns
from gpuplan.packing.charts.gantt_data import picture as drawn_of
from gpuplan.packing.charts.memory_data import memory_picture, panels_of
from gpuplan.packing.model import NEVER, SECOND

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.run import PackRun

Layout = Literal["side", "stacked"]
Picture = Literal["auto", "gantt", "areas"]

#: Names of the data sets of the two sides, and of their policies in charts that show both.
SIDES = ("left", "right")

#: Panels of GPUs, changes drawn singly, bins of time and models with a colour of their own: a payload stays small.
PANELS, EXACT, BINS, MODELS = 4, 60, 60, 10

#: Bars and cells of a Gantt, and the number of tasks up to which a page has one.
BARS, CELLS, GANTT_TASKS = 400, 700, 200

#: Pixels of what still fits, of a row of a Gantt at most, of all its rows; beside a drawing area.
_FIT_PX, _ROW_PX, _GANTT_PX, _BESIDE = 90, 60, 220, 70


def live_spec(
    problem: "Problem", *, width: int = 980, layout: Layout = "side", picture: Picture = "auto"
) -> dict[str, Any]:
    """Vega-Lite spec of the live page, without data.

    It depends on the number of GPUs, the names and the order of the models, whether one is spread over several GPUs,
    the unit of time and the priorities only, so a change of margin, policy, threshold or cost gives an equal dict. Data
    sets are named; `live_data` makes them.

    Parameters
    ----------
    problem
        Whose node and models are drawn.
    width
        Pixels of the whole page.
    layout
        ``"side"``: the policies beside each other; ``"stacked"``: below each other.
    picture
        ``"gantt"`` adds a Gantt of the tasks, ``"areas"`` does without, ``"auto"`` decides by their number.
    """
    palette, clock, inner = palette_of(problem, MODELS), live_clock(problem), _inner(width, layout)
    zoom = {"nice": False, "zero": False, "domain": {"param": "brush", "encoding": "x"}}
    panels = len(panels_of(problem.scenario.gpus.count, PANELS))
    # One scale for memory and Gantt, and so one legend.
    tasks_too = has_gantt(problem, picture)
    words = (*memory.MEMORY_WORDS, *gantt.GANTT_WORDS) if tasks_too else memory.MEMORY_WORDS
    wide = heads.has_wide(problem.scenario)
    rows: list[list[Spec]] = []
    for number in range(panels):
        first = number == 0
        cells = []
        for side in SIDES:
            panel = memory.memory_panel(
                palette, clock, side, number, inner, _height(panels),
                page_width=width if first else 0, x_scale=None if first else zoom, labels=first,
                words=words,
            )  # fmt: skip
            if first:
                panel["layer"] += titles.heading(
                    f"{side}_head", inner, ("title", "figures", "note", "how"), -23
                )
            cells.append(panel)
        rows.append(cells)
    params: list[Spec] = []
    if tasks_too:
        height = _gantt_height(problem)
        rows.append(
            [
                gantt.gantt_spec(palette, clock, side, inner, height, words=words, x_scale=zoom, joins=wide)
                for side in SIDES
            ]
        )
        params = gantt.gantt_params([f"{side}_bars" for side in SIDES])
    rows.append([fit.largest_panel(side, clock, inner, _FIT_PX, x_scale=zoom, wide=wide) for side in SIDES])
    cells = [cell for row in rows for cell in row]
    if layout == "stacked":
        cells = [row[place] for place in range(len(SIDES)) for row in rows]
    grid: Spec = {"concat": cells, "columns": len(SIDES) if layout == "side" else 1}
    grid |= {"spacing": {"row": 14, "column": 22}, "resolve": {"scale": {"fill": "shared"}}}
    groups = split.groups_of_problem(problem)
    bars = split.split_panel("split", SIDES, max(220, width - 130), groups, width)
    bars["title"] = titles.panel_title("mean latency of the tasks done, by part (seconds)", width - 130)
    brush = {"type": "interval", "encodings": ["x"]}
    views = [f"{side}_gpu0" for side in SIDES]
    return {
        "$schema": SCHEMA,
        "params": [
            {"name": "brush", "select": brush, "views": views},
            *params,
            *look_params(),
            *split.part_params(),
            *theme.fill_params(),
        ],
        "vconcat": [grid, bars],
        "spacing": 20,
        "resolve": {"scale": dict.fromkeys(("fill", "yOffset"), "independent")},
    }


def live_data(
    left: "PackRun",
    right: "PackRun",
    *,
    width: int = 980,
    layout: Layout = "side",
    picture: Picture = "auto",
) -> dict[str, Columns]:
    """Data sets of the live page for two runs on one node with equal models, as dicts of columns.

    Everything over time is exact, or an exact mean over at most 60 bins. `width`, `layout` and
    `picture` are those of the spec.
    """
    runs = (left, right)
    problem = left.problem
    palette, clock = palette_of(problem, MODELS), live_clock(problem)
    span = max(clock.of(np.array([run.raw.end_us]))[0] for run in runs)
    names, inner = heads.policy_labels(runs), _inner(width, layout)
    # One length of bins for both, so that they can be compared.
    bin_us = bin_of(max(run.raw.end_us for run in runs), BINS)
    pictures = [memory_picture(run, palette, panels=PANELS, exact=EXACT, bin_us=bin_us) for run in runs]
    top = max(map(memory.top_of, pictures))
    sets: dict[str, Columns] = {}
    for side, run, name, drawn in zip(SIDES, runs, names, pictures, strict=True):
        sets |= memory.memory_sets(run, drawn, palette, clock, side, span, top)
        free, _ = free_columns(run, clock, EXACT, bin_us)
        sets |= fit_sets(run, free, clock, side, _FIT_PX, span)
        if has_gantt(problem, picture):
            bars = drawn_of(run, palette, clock, most=BARS, cells=CELLS)
            sets |= gantt.gantt_sets(run, bars, clock, side, _gantt_height(problem), span)
        sets[f"{side}_head"] = {
            "title": [name],
            "figures": [titles.folded(headline(run), inner)],
            "note": [titles.folded(heads.short_contention(run.scenario), inner)],
            "how": [titles.folded(f"memory: {drawn.note}", inner)],
        }
    return sets | split.split_columns(runs, SIDES, names)


def has_gantt(problem: "Problem", picture: Picture) -> bool:
    """Whether the page has a Gantt."""
    return picture == "gantt" or (picture == "auto" and len(problem.tasks) <= GANTT_TASKS)


def _gantt_height(problem: "Problem") -> int:
    """Pixels of a Gantt, by the number of GPUs: that of lanes changes with the policy."""
    return max(40, min(_GANTT_PX, _ROW_PX * problem.scenario.gpus.count))


def live_clock(problem: "Problem") -> Clock:
    """Unit of the time axes: from the scenario alone, so that both policies and all settings have one."""
    if problem.until_us < NEVER:
        return Clock(max(1, problem.until_us))
    return Clock(max(SECOND, int(problem.tasks.arrival_us.max(initial=0))))


def headline(run: "PackRun") -> str:
    """Main figures of a side."""
    found = run.figures
    latency, wait = found["latency_mean_s"], found["wait_p95_s"]
    parts = [f"{found['tasks_done']:,} of {found['tasks_arrived']:,} tasks done"]
    parts.append(f"latency {'–' if latency is None else told(latency)}")
    parts.append(f"wait p95 {'–' if wait is None else told(wait)}")
    parts.append(f"{found['out_of_memory']:,} OOM")
    return ", ".join(parts)


def _inner(width: int, layout: Layout) -> int:
    return max(160, (width // 2 if layout == "side" else width) - _BESIDE)


def _height(panels: int) -> int:
    return {1: 170, 2: 110}.get(panels, 76)
