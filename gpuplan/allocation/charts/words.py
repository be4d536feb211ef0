"""Charts in words: descriptions that state the numbers, and tables for screen readers (all names escaped)."""

import html
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.allocation.charts import data, figures
from gpuplan.allocation.charts.figures import SHOWN, VALUE_UNIT, amount, below_bound, change
from gpuplan.allocation.charts.panels import BOUND_WORDS
from gpuplan.gantt import safe_text

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan

#: Rows of a table of jobs; a sentence says how many are left out.
MAX_ROWS = 500

#: Figures of the table below those of the chart: name, words, decimals.
_COUNTS = (
    ("jobs_placed", "batch jobs placed", 0),
    ("jobs_finished", "batch jobs finished", 0),
    ("jobs_unplaced", "batch jobs without a place", 0),
    ("shortfall_gpu_hours", "unmet demand (GPU-hours)", 1),
    ("wait_p50_hours", "median wait (hours)", 1),
    ("wait_p90_hours", "90th percentile of waits (hours)", 1),
)


def describe(*plans: "Plan") -> str:
    """Say in sentences what a chart of these plans shows, with the numbers; changes are against the first."""
    scenario = plans[0].scenario
    horizon = scenario.horizon
    hours = horizon.steps * horizon.step_s / 3600
    sentences = [f"{safe_text(scenario.name)}: {scenario.cluster.gpus} GPUs over {hours:g} hours."]
    first = plans[0].figures
    for number, (name, plan) in enumerate(
        zip(figures.labels([plan.policy for plan in plans]), plans, strict=True)
    ):
        parts = []
        for shown in SHOWN:
            text = f"{shown.words} {amount(plan.figures[shown.name], shown.share)}"
            if number:
                text += f" ({change(plan.figures[shown.name], first[shown.name], shown.share)})"
            parts.append(text)
        placed = f"{plan.figures['jobs_placed']} of {len(scenario.batch)} batch jobs placed"
        sentences.append(f"{name}: {', '.join(parts)}, {placed}; objective {below_bound(plan.figures)}.")
    bound = f"Bound of this scenario as set: {amount(first['bound'], False)}; {BOUND_WORDS}."
    return " ".join([*sentences, bound, f"Value, penalty, objective and bound in {VALUE_UNIT}."])


def table(*plans: "Plan") -> str:
    """All charts of these plans as HTML tables: figures, jobs, GPUs in use per step, demand per app and step."""
    tables = [figures_table(*plans), jobs_table(*plans), usage_table(*plans)]
    return "\n".join(
        [*tables, *(demand_table(app, *plans) for app in range(len(plans[0].scenario.realtime)))]
    )


def figures_table(*plans: "Plan") -> str:
    """Figures of plans side by side, with the change against the first."""
    names = figures.labels([plan.policy for plan in plans])
    rows = []
    for shown in SHOWN:
        unit = "" if shown.share else f" ({VALUE_UNIT})"
        cells = []
        for number, plan in enumerate(plans):
            text = amount(plan.figures[shown.name], shown.share)
            if number:
                text += f" ({change(plan.figures[shown.name], plans[0].figures[shown.name], shown.share)})"
            cells.append(text)
        rows.append([shown.words + unit, *cells])
    for figure, words, decimals in _COUNTS:
        values = [plan.figures.get(figure) for plan in plans]
        rows.append([words, *("–" if value is None else f"{value:,.{decimals}f}" for value in values)])
    bounds = [plan.figures.get("bound") for plan in plans]
    rows.append([f"bound of the objective ({VALUE_UNIT})", *(amount(bound, False) for bound in bounds)])
    return _table("Figures; changes are against the first policy", ["figure", *names], rows)


def jobs_table(*plans: "Plan") -> str:
    """Batch jobs with their place under each plan."""
    scenario = plans[0].scenario
    frame = data.frame_of(scenario, 640)
    names = figures.labels([plan.policy for plan in plans])
    hours = scenario.horizon.step_s / 3600
    spans = [
        list(
            zip(*(array.tolist() for array in (plan.start, plan.end, plan.first_gpu, plan.size)), strict=True)
        )
        for plan in plans
    ]
    rows = []
    for number, job in enumerate(scenario.batch[:MAX_ROWS]):
        places = []
        for plan, span in zip(plans, spans, strict=True):
            start, end, first, size = span[number]
            if start >= 0:
                where = f"GPU {first}" if size == 1 else f"GPUs {first}–{first + size - 1}"
                places.append(f"{frame.clock(start * hours)}–{frame.clock(end * hours)}, {where}")
            else:
                places.append("set aside" if job.name in plan.set_aside else "no place")
        hours_words = f"{job.hours:g}"
        if job.max_gpus not in (None, job.gpus):
            hours_words = f"{job.hours_on(job.sizes[-1]):.3g}–{job.hours:g}"
        wanted = [data.sizes_words(job), hours_words, f"{job.priority:g}"]
        rows.append([safe_text(job.name), job.kind, *wanted, *places])
    caption = "Batch jobs and where each policy puts them"
    if len(scenario.batch) > MAX_ROWS:
        caption += f" (the first {MAX_ROWS} of {len(scenario.batch):,})"
    return _table(caption, ["job", "kind", "GPUs", "hours", "priority", *names], rows)


def usage_table(*plans: "Plan") -> str:
    """GPUs in use by kind, a row per stretch of steps in which nothing changes under any plan."""
    kinds = ("training", "batch inference", "quantization", "real-time used", "reserved idle", "free")
    stacks = []
    for plan in plans:
        used = data.usage(plan)
        stacks.append(np.vstack((used, plan.scenario.cluster.n_available - used.sum(axis=0))))
    names = figures.labels([plan.policy for plan in plans])
    header = [f"{name}: {kind}" for name in names for kind in kinds]
    return _per_stretch("GPUs in use", header, np.vstack(stacks), plans[0])


def demand_table(app: int, *plans: "Plan") -> str:
    """Demand of an app with what each plan holds and serves, a row per stretch without a change."""
    names = figures.labels([plan.policy for plan in plans])
    values = np.vstack(
        [plans[0].demand[app], *(row for plan in plans for row in (plan.held[app], plan.served[app]))]
    )
    header = ["GPUs wanted", *(f"{name}: {what}" for name in names for what in ("held", "served"))]
    return _per_stretch(
        f"Demand of {safe_text(plans[0].scenario.realtime[app].name)}", header, values, plans[0]
    )


def _per_stretch(caption: str, header: Sequence[str], values: data.Ints, plan: "Plan") -> str:
    frame = data.frame_of(plan.scenario, 640)
    hours = plan.scenario.horizon.step_s / 3600
    steps = values.shape[1]
    changed = np.flatnonzero((values[:, 1:] != values[:, :-1]).any(axis=0)) + 1
    edges = [0, *changed.tolist(), steps]
    rows = [
        [f"{frame.clock(first * hours)}–{frame.clock(last * hours)}", *map(str, values[:, first].tolist())]
        for first, last in pairwise(edges)
    ]
    unit = "hours of the horizon" if frame.start is None else "time"
    return _table(f"{caption}, in GPUs", [unit, *header], rows)


def _table(caption: str, header: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """HTML table with a caption; the first cell of each row is its header. Every text is escaped here."""
    head = "".join(f'<th scope="col">{_cell(name)}</th>' for name in header)
    body = "\n".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<table class="gpuplan-table">\n<caption>{_cell(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
    )


def _cell(text: str) -> str:
    """Escaped text, isolated so that a right-to-left name does not turn its neighbours round."""
    escaped = html.escape(text)
    if text.isascii() or not any(unicodedata.bidirectional(sign) in ("R", "AL") for sign in text):
        return escaped
    return f"<bdi>{escaped}</bdi>"
