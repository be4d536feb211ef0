"""A day as it was above its plans: Gantts of one scale, the GPUs in use below each, and the figures side by side."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan import gantt as drawing
from gpuplan import theme
from gpuplan.allocation.charts import data, figures, panels
from gpuplan.allocation.charts.live import headline
from gpuplan.allocation.charts.words import describe as describe_plans
from gpuplan.allocation.model import BATCH_KINDS
from gpuplan.fairshare.charts.clock import words
from gpuplan.fairshare.model import HOUR
from gpuplan.gantt import Columns, Frame, Links, Spec, titles
from gpuplan.rectangles import Bars, thin
from gpuplan.traces.as_it_was import AS_IT_WAS

if TYPE_CHECKING:
    from gpuplan.gantt.offline import OfflineChart
    from gpuplan.traces.as_it_was_day import DayAsItWas, DayCompared

_KINDS = tuple(theme.KIND_COLOURS)

#: Pixels that axes take from the width, and of a panel of GPUs in use.
_MARGIN, _USAGE_PX = 66, 60

#: Most plans below the record; all are measured.
MOST_PLANS = 3


def day_chart(compared: "DayCompared", *, width: int = 980, mode: theme.Mode = "light") -> "OfflineChart":
    """The record of a day and its plans below each other, with their figures.

    Parameters
    ----------
    compared
        The record and at least one plan.
    width
        Pixels of the whole.
    mode
        Colours for a ``"light"`` or a ``"dark"`` page.
    """
    from gpuplan.gantt.offline import offline_chart

    record = compared.record
    frame = data.frame_of(record.scenario, max(160, width - _MARGIN))
    plans = list(compared.plans.items())[:MOST_PLANS]
    sides = [f"side_{k}" for k in range(len(plans) + 1)]
    linked = Links(tuple(f"{side}_bars" for side in sides), tuple(f"{side}_usage" for side in sides))
    sets: dict[str, Columns] = {"rows": drawing.row_columns(frame)}
    sets |= _gantt_sets(record, frame, sides[0]) | _usage_set(record, frame, sides[0])
    for side, (name, plan) in zip(sides[1:], plans, strict=True):
        sets |= data.gantt_data(plan, frame, side, headline(name, plan)) | data.usage_data(plan, frame, side)
    sets |= _figure_sets(compared)
    cells: list[Spec] = []
    for side in sides:
        cells.append(drawing.spec(frame, linked, side, page_width=width))
        cells.append(panels.usage_panel(frame, side, "GPUs in use, by kind of work", height=_USAGE_PX))
    under = [
        panels.comparison_panel(max(280, width // 2 - 24), name, len(compared.results))
        for name in ("shares", "amounts")
    ]
    spec: Spec = {
        "vconcat": [
            panels.grid([[cell] for cell in cells], beside=True),
            {"hconcat": under, "spacing": 22},
        ],
        "spacing": 16,
        "title": titles.head(
            "What was done, and what each policy would have planned", _said(compared), width
        ),
        "params": [*linked.params(), *theme.fill_params(), drawing.still_param()],
    }
    return offline_chart(spec, sets, mode, describe(compared))


def _figure_sets(compared: "DayCompared") -> dict[str, Columns]:
    """Figures of the record and the plans; the bound is that of the plans."""
    names = list(compared.results)
    found = [dict(result.figures) for result in compared.results.values()]
    return figures.comparison_data(names, found)


def bars_of(record: "DayAsItWas") -> Bars:
    """Rectangles of a record: a bar per stretch and run of GPUs, unavailable GPUs."""
    scenario = record.scenario
    s = record.row_stretch
    kinds = np.array([_KINDS.index(scenario.batch[j].kind) for j in record.job.tolist()], np.int64)
    away = np.array(scenario.cluster.unavailable, np.int64)
    n = len(away)
    return Bars(
        low=np.concatenate((record.row_low, away)),
        high=np.concatenate((record.row_high, away + 1)),
        start=np.concatenate((record.start_s[s], np.zeros(n, np.int64))) / HOUR,
        end=np.concatenate(
            (record.end_s[s] / HOUR, np.full(n, scenario.horizon.steps * scenario.horizon.step_hours))
        ),
        job=np.concatenate((record.job[s], np.full(n, -1))),
        kind=np.concatenate((kinds[s], np.full(n, _KINDS.index("unavailable")))),
        labelled=np.concatenate((np.ones(len(s), np.bool_), np.zeros(n, np.bool_))),
        kinds=_KINDS,
    )


def _gantt_sets(record: "DayAsItWas", frame: Frame, side: str) -> dict[str, Columns]:
    """Data sets of the record's Gantt."""
    scenario = record.scenario
    bars, note = thin(bars_of(record), frame.gpus, frame.hours)
    columns = drawing.bar_columns(bars, frame, [job.name for job in scenario.batch])
    priority = [f"priority {job.priority:g}" for job in scenario.batch]
    columns["detail"] = [priority[job] if job >= 0 else "" for job in bars.job.tolist()]
    alone = "batch work alone: what the apps held is not drawn; " if scenario.realtime else ""
    note = note or f"{alone}starts and ends as recorded, rows are the lowest that were free"
    empty = "" if len(record.job) else "nothing ran"
    return {
        f"{side}_frame": drawing.frame_columns(frame, f"{AS_IT_WAS}: {told(record)}", note, empty),
        f"{side}_bars": columns,
        f"{side}_marks": drawing.mark_columns(frame, []),
    }


def told(record: "DayAsItWas") -> str:
    """Its two main figures, as those of a plan are told; waits."""
    found = record.figures
    parts = [
        f"utilization {figures.amount(found['utilization'], True)}",
        f"value {figures.amount(found['value'], False)}",
    ]
    wait = found["wait_p90_hours"]
    if wait is not None:
        parts.append(f"p90 of waits {words(round(wait * HOUR))}")
    return ", ".join(parts)


def usage(record: "DayAsItWas") -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Mean GPUs of each kind of batch work and step, then used and idle GPUs of apps; edges of the steps in hours.

    Returns
    -------
    tuple
        float64[5, T], float64[T + 1].
    """
    horizon = record.scenario.horizon
    edges = np.arange(horizon.steps + 1, dtype=np.int64) * horizon.step_s
    kinds = np.array([BATCH_KINDS.index(job.kind) for job in record.scenario.batch], np.int64)[record.job]
    found = np.zeros((5, horizon.steps))
    for kind in range(len(BATCH_KINDS)):
        mine = kinds == kind
        start, end, gpus = record.start_s[mine, None], record.end_s[mine, None], record.gpus[mine, None]
        # GPU-seconds up to each edge; a difference of two is what lies between them
        up_to = (gpus * (np.minimum(end, edges) - np.minimum(start, edges))).sum(axis=0)
        found[kind] = np.diff(up_to) / horizon.step_s
    if record.held is not None and len(record.held):
        demand = np.array([app.demand for app in record.scenario.realtime])
        served = np.minimum(record.held, demand).sum(axis=0)
        found[3], found[4] = served, record.held.sum(axis=0) - served
    return found, edges / HOUR


def _usage_set(record: "DayAsItWas", frame: Frame, side: str) -> dict[str, Columns]:
    """Data set ``<side>_usage``, as `gpuplan.allocation.charts.data.usage_data` makes it of a plan: means of steps."""
    stacked, edges = usage(record)
    stacked = np.round(stacked.cumsum(axis=0), 2)
    x = np.round(edges, 4).tolist()
    clock = [frame.clock(hour) for hour in x]
    ends = [*range(1, len(x)), len(x) - 1]
    columns: Columns = {"x": x, "x2": [x[end] for end in ends]}
    columns["time"] = [f"{clock[start]}–{clock[end]}" for start, end in enumerate(ends)]
    for name, row in zip(data.USAGE_COLUMNS, stacked.tolist(), strict=True):
        columns[name] = [*row, row[-1]]
    columns["top"] = [record.scenario.cluster.n_available] * len(x)
    return {f"{side}_usage": columns}


def _said(compared: "DayCompared") -> list[str]:
    """Subtitles: the day, and what cannot be concluded."""
    scenario = compared.record.scenario
    day = f"{drawing.safe_text(scenario.name, 80)}: {scenario.cluster.gpus:,} GPUs, {len(scenario.batch):,} batch jobs"
    more = len(compared.plans) - MOST_PLANS
    rest = [f"{more} more plans are measured below and not drawn."] if more > 0 else []
    return [day, *compared.record.notes, *rest]


def describe(compared: "DayCompared") -> str:
    """The chart in words, with its numbers."""
    record = compared.record
    said = f"{AS_IT_WAS}: {told(record)}, {record.figures['jobs_finished']:,} jobs finished."
    return " ".join([said, describe_plans(*compared.plans.values()), *record.notes])
