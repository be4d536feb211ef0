"""The tables of the rolling explorer as HTML in which every name stays text: figures, promises, risk, idle windows."""

import html
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gpuplan.allocation.charts.data import app_rows
from gpuplan.allocation.charts.rolling_live import SIDE
from gpuplan.allocation.charts.rolling_moment import SO_FAR, moment_words, so_far, span_words
from gpuplan.allocation.lookahead import LEAST_GPU_HOURS, MOST_WINDOWS
from gpuplan.allocation.rolling_run import ROLLING_UNITS, RollingRun
from gpuplan.gantt import Columns

if TYPE_CHECKING:
    import pandas as pd

#: Rows of a table of risks or windows; a sentence counts the rest.
MOST_ROWS = 8

#: Bars of the chart that its table lists at most.
MOST_BARS = 200

#: Said of a figure that is not known.
UNKNOWN = "not known"

_WORDS = {
    "utilization": "GPU time that does useful work",
    "held": "GPU time that is occupied, idle reservations included",
    "value": "value of the batch work done",
    "value_undecayed": "value of the batch work done, without decay",
    "penalty": "penalty for unserved traffic",
    "objective": "objective: value less penalty",
    "coverage": "traffic that is served",
    "shortfall_gpu_hours": "unserved traffic",
    "swaps": "swaps over all days",
    "jobs_placed": "batch jobs started",
    "jobs_finished": "batch jobs finished",
    "jobs_unplaced": "batch jobs not started",
    "jobs_set_aside": "batch jobs that fit nowhere, set aside",
    "jobs_late": "batch jobs that miss their deadline",
    "jobs_waiting": "batch jobs that have arrived and wait",
    "wait_p50_hours": "half of the jobs wait at most",
    "wait_p90_hours": "nine of ten jobs wait at most",
    "cost": "cost of all available GPUs",
    "cost_useful": "cost of GPU time that does useful work",
    "cost_idle": "cost of GPU time that does none",
    "plans": "plans made",
    "promise_utilization_error": "batch work that plans promised, off by (mean)",
    "promise_coverage_error": "traffic served that plans promised, off by (mean)",
    "promise_start_shift_p50_hours": "half of the starts first promised are off by at most",
    "promise_start_shift_p90_hours": "nine of ten starts first promised are off by at most",
    "churn": "planned starts that the next plan changes",
}


def figures_html(runs: Mapping[str, RollingRun], step: int) -> str:
    """Figures of what each run committed before a step, beside those of all its days."""
    before = {name: so_far(run, step) for name, run in runs.items()}
    head = ["figure (unit)", *(f"{name}: {when}" for name in runs for when in ("so far", "all days"))]
    rows = [
        [
            _figure(figure),
            *(
                figure_words(figure, value)
                for name, run in runs.items()
                for value in (before[name][figure], run.figures[figure])
            ),
        ]
        for figure in SO_FAR
    ]
    days = next(iter(runs.values())).days
    return _table(f"Figures before {moment_words(days, step)} and of all days", head, rows)


def all_figures_html(runs: Mapping[str, RollingRun]) -> str:
    """All figures of all days, a column per policy."""
    figures = [name for name in ROLLING_UNITS if any(name in run.figures for run in runs.values())]
    rows = [
        [_figure(name), *(figure_words(name, run.figures.get(name)) for run in runs.values())]
        for name in figures
    ]
    return _table("Figures of all days", ["figure (unit)", *runs], rows)


def figure_words(name: str, value: float | int | None) -> str:
    """A figure as people read it; shares in per cent."""
    if value is None:
        return UNKNOWN
    if ROLLING_UNITS[name].startswith(("share", "points")):
        return f"{100 * value:.1f}\N{NO-BREAK SPACE}%"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _figure(name: str) -> str:
    unit = ROLLING_UNITS[name]
    for word, said in (("share of", "per cent of"), ("points of", "per cent of")):
        unit = unit.replace(word, said, 1) if unit.startswith(word) else unit
    words = _WORDS.get(name, name.replace("_", " "))
    return words if unit in ("jobs", "plans") else f"{words} ({unit})"


# ------------------------------------------------------------------ the plan of the moment


def promised_html(run: RollingRun, number: int) -> str:
    """What the plan of the moment promised of the days that came, and what came."""
    row = run.promises_frame().iloc[number]
    promise, days = run.promises[number], run.days
    until = moment_words(days, promise.step + promise.steps)
    rows = []
    for name, words in (("batch", "batch work (GPU-hours)"), ("served", "traffic served (GPU-hours)")):
        said, came = row[f"{name}_promised_gpu_hours"], row[f"{name}_come_gpu_hours"]
        rows.append([words, f"{said:,.2f}", f"{came:,.2f}", signed(came - said)])
    caption = f"What this plan ({run.policy}) promised until {until}, and what came"
    return _table(caption, ["", "promised", "came", "difference"], rows)


def signed(number: float) -> str:
    """A change with its sign; none where it rounds to nothing."""
    text = f"{abs(number):,.2f}"
    return text if float(text.replace(",", "")) == 0 else ("+" if number > 0 else "−") + text


def risk_html(run: RollingRun, number: int, risks: "pd.DataFrame", margin: float) -> str:
    """Stretches of the plan of the moment without slack, or with GPUs missing, if traffic comes as expected."""
    hours = run.days.span.horizon.step_hours
    traffic = "as expected" if margin == 0 else f"{100 * margin:.0f} % higher than expected"
    short, tight = (int((risks["risk"] == kind).sum()) * hours for kind in ("short", "no slack"))
    missing, seen = int(risks["missing"].sum()) * hours, len(risks) * hours
    lacking = f"in {short:g} of {seen:g} hours GPUs are missing ({missing:,.4g} GPU-hours)"
    said = (
        f"Coverage risk of this plan ({run.policy}), if traffic comes {traffic}: "
        f"{lacking if short else f'in {seen:g} hours no GPU is missing'}; "
        f"{f'{tight:g} hours are' if tight else 'no hour is'} without slack."
    )
    stretches = _stretches(risks)
    rows = [
        [
            span_words(run.days, first, last),
            "GPUs missing" if missing_gpus else "no slack",
            f"{missing_gpus}",
            f"{wanted}",
            f"{held}",
        ]
        for first, last, missing_gpus, wanted, held in stretches[:MOST_ROWS]
    ]
    table = _table(said, ["when", "risk", "GPUs missing", "GPUs wanted (most)", "GPUs held (least)"], rows)
    return table + _rest(len(stretches) - len(rows), "later stretch is", "later stretches are")


def _stretches(risks: "pd.DataFrame") -> list[tuple[int, int, int, int, int]]:
    """Steps of equal risk in a row: first, one after the last, most missing, most wanted, least held."""
    steps = risks["step"].tolist()
    key = list(zip(risks["risk"].tolist(), risks["missing"].tolist(), strict=True))
    edges = [i for i in range(len(key)) if i == 0 or key[i] != key[i - 1]] + [len(key)]
    found = []
    for a, b in pairwise(edges):
        if key[a][0] != "none":
            part = risks.iloc[a:b]
            most, least = int(part["demand"].max()), int(part["held"].min())
            found.append((steps[a], steps[b - 1] + 1, int(key[a][1]), most, least))
    return found


def idle_html(run: RollingRun, windows: "pd.DataFrame") -> str:
    """The largest windows of the plan of the moment in which a block of GPUs stands idle, by their start."""
    largest = windows.nlargest(MOST_ROWS, "gpu_hours").sort_index()
    names = ["start_step", "end_step", "hours", "gpus", "first_gpu", "gpu_hours"]
    cells = zip(*(largest[name].tolist() for name in names), strict=True)
    rows = [
        [
            span_words(run.days, first, last),
            f"{hours:g}",
            f"{gpus} (from GPU {lowest})",
            f"{amount:,.4g}",
        ]
        for first, last, hours, gpus, lowest, amount in cells
    ]
    count = f"at least {MOST_WINDOWS}" if len(windows) >= MOST_WINDOWS else f"{len(windows)}"
    said = (
        f"Idle windows of this plan ({run.policy}): {count} of at least {LEAST_GPU_HOURS:g} GPU-hours, "
        f"{windows['gpu_hours'].sum():,.4g} GPU-hours together."
    )
    rest = windows.drop(largest.index)
    less = f", {rest['gpu_hours'].sum():,.4g} GPU-hours together"
    return _table(said, ["when", "hours", "GPUs", "GPU-hours"], rows) + _rest(
        len(rest), f"smaller window{less}, is", f"smaller windows{less}, are"
    )


def _rest(count: int, one: str, many: str) -> str:
    if count <= 0:
        return ""
    return f"<p>{count} {html.escape(one if count == 1 else many)} not listed.</p>"


# ------------------------------------------------------------------ the chart


def chart_html(run: RollingRun, drawn: Mapping[str, Columns]) -> str:
    """The data sets of a moment's chart as tables: the bars, then the traffic of each app."""
    bars = drawn[f"{SIDE}_bars"]
    cells = [bars[name] for name in ("time", "gpus", "job", "kind", "detail")]
    rows = list(zip(*cells, strict=True))
    caption = f"GPUs of {run.policy}, a day back and the horizon ahead"
    parts = [_table(caption, ["when", "GPUs", "job", "kind", "priority, state"], rows[:MOST_BARS])]
    parts.append(_rest(len(rows) - MOST_BARS, "more bar is", "more bars are"))
    for number, (name, _) in enumerate(app_rows(run.days.span)):
        for part, words, columns in (
            ("done", "that came", ("came", "expected", "held", "served")),
            ("plan", "that is expected", ("expected", "held", "served")),
        ):
            found = drawn[f"{part}_{number}"]
            # the last row only closes the one before it
            rows = [
                (when, *map(str, values))
                for when, *values in zip(found["time"], *(found[c] for c in columns), strict=True)
            ][:-1]
            parts.append(_table(f"Traffic of {name} {words}, in GPUs", ["when", *columns], rows))
    return "".join(parts)


# ------------------------------------------------------------------ HTML


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML table in which every text stays text; the first cell of a row is its header. Its caption alone if empty."""
    if not rows:
        return f"<p>{html.escape(caption)}</p>"
    top = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in head)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    words = f'<caption style="text-align:start;padding-top:8px">{html.escape(caption)}</caption>'
    return f'<table class="gp-figures">{words}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
