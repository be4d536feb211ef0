"""The tables of the packing explorer as HTML: models, the main figures, all figures."""

import html
import math
from collections.abc import Sequence
from typing import Any

from gpuplan.gantt import safe_text
from gpuplan.packing.figures import MEANINGS, UNITS
from gpuplan.packing.run import PackRun, shown
from gpuplan_widgets.packing_words import seconds

#: The figures that always stand below the chart, in words.
MAIN = {
    "latency_mean_s": "a task takes on average",
    "latency_p95_s": "95 in 100 tasks take at most",
    "wait_mean_s": "a task waits on average, to be placed and for its model",
    "wait_p95_s": "95 in 100 tasks wait at most",
    "throughput_per_s": "throughput",
    "out_of_memory": "memory ran out",
    "tasks_failed": "given up",
    "preemptions": "interrupted for a more urgent one",
    "evictions": "models evicted",
    "reloads": "models loaded again",
    "wasted_gpu_seconds": "loading, saving, restoring, failed attempts",
    "busy": "GPUs that run something",
    "reserved_mean": "memory reserved",
    "actual_mean": "memory filled",
    "useful_mean": "memory of models that run something",
    "fragmentation": "free memory that is too little for the next model",
    "largest_free_gib": "largest memory that is free on one GPU",
}

#: Most models of the table; of more those with the most tasks.
MOST_MODELS = 40


def models_html(left: PackRun, right: PackRun) -> str:
    """A row per model: its tasks, latency and wait, loads and evictions, under both policies."""
    pairs = list(zip(_rows(left), _rows(right), strict=True))
    order = sorted(range(len(pairs)), key=lambda k: -int(pairs[k][0]["tasks"]))[:MOST_MODELS]
    rows = "".join(_model(*pairs[k]) for k in sorted(order))
    left_out = len(pairs) - len(order)
    more = f" (the {MOST_MODELS} with the most tasks of {len(pairs)})" if left_out > 0 else ""
    kinds = ("latency mean", "wait p95", "loads", "evictions")
    columns = [f"{what}, {side}" for what in kinds for side in _sides(left, right)]
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in ("model", "tasks", *columns))
    return (
        '<div class="gp-teams-scroll" tabindex="0" role="group" aria-label="Table of models, scrolls where the page '
        f'is narrow"><table class="gp-figures gp-teams"><caption>Models{more}; wait: queue and load</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _rows(run: PackRun) -> list[dict[Any, Any]]:
    found: list[dict[Any, Any]] = run.models.to_dict("records")
    return found


def _sides(left: PackRun, right: PackRun) -> tuple[str, str]:
    same = left.policy == right.policy
    return (f"{left.policy} (left)", f"{right.policy} (right)") if same else (left.policy, right.policy)


def _model(a: dict[Any, Any], b: dict[Any, Any]) -> str:
    cells = [f"{a['tasks']:,}"]
    cells += [_time(row[name]) for name in ("latency_mean_s", "wait_p95_s") for row in (a, b)]
    cells += [f"{row[name]:,}" for name in ("loads", "evictions") for row in (a, b)]
    name = html.escape(safe_text(str(a["model"]), 60))
    return f'<tr><th scope="row">{name}</th>{_cells(cells)}</tr>'


def _time(value: float) -> str:
    return seconds(None if math.isnan(value) else float(value))


def _cells(cells: Sequence[str]) -> str:
    return "".join("<td>" + html.escape(cell).replace(" ", "&nbsp;") + "</td>" for cell in cells)


def main_html(left: PackRun, right: PackRun) -> str:
    """The main figures in words with their units."""
    rows = "".join(_figure(name, text, left, right) for name, text in MAIN.items())
    return _table(rows, left, right)


def all_html(left: PackRun, right: PackRun) -> str:
    """All figures with their units and what they mean."""
    rows = "".join(_figure(name, MEANINGS[name], left, right) for name in UNITS)
    return _table(rows, left, right)


def _table(rows: str, left: PackRun, right: PackRun) -> str:
    sides = (f"left: {left.policy}", f"right: {right.policy}")
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in ("figure (unit)", *sides))
    return f'<table class="gp-figures"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _figure(name: str, text: str, left: PackRun, right: PackRun) -> str:
    unit = UNITS[name]
    said = unit.replace("share of", "per cent of", 1) if unit.startswith("share") else unit
    told = html.escape(text) if unit == "seconds" else f"{html.escape(text)} ({html.escape(said)})"
    mark = ' class="gp-pack-oom-row"' if name == "out_of_memory" and _any(name, left, right) else ""
    return (
        f'<tr{mark}><th scope="row" title="{html.escape(MEANINGS[name])}">{told} <small>{html.escape(name)}</small>'
        f"</th>{_cells([_value(name, run) for run in (left, right)])}</tr>"
    )


def _any(name: str, *runs: PackRun) -> bool:
    return any(run.figures[name] for run in runs)


def _value(name: str, run: PackRun) -> str:
    value = run.figures[name]
    if value is None:
        return "–"
    if UNITS[name] == "seconds":
        # a wait that did not end may still pass a quantile
        bound = name.startswith("wait_") and bool(run.figures["waits_are_lower_bounds"])
        return ("≥ " if bound else "") + seconds(float(value))
    return shown(name, value).replace("%", " %")
