"""From plans to the columns that charts draw, at every move of a slider: arrays, few loops, no data frames."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuplan import gantt, theme
from gpuplan.allocation.model import BATCH_KINDS, AllocationScenario, BatchJob, RealtimeApp
from gpuplan.gantt import Columns, Frame
from gpuplan.rectangles import Bars, rectangles, thin

if TYPE_CHECKING:
    from gpuplan.allocation.plan import Plan

Ints = NDArray[np.int64]

#: Names of the data sets of the two sides.
SIDES = ("left", "right")

#: Apps with a demand chart of their own; beyond that the last row shows the others together.
MAX_APPS = 3

#: More steps than this are drawn in groups, each by its busiest step.
MAX_STEPS = 504

_KINDS = tuple(theme.KIND_COLOURS)
_REALTIME, _IDLE, _UNAVAILABLE = (
    _KINDS.index(kind) for kind in ("real-time", "reserved-idle", "unavailable")
)


def frame_of(scenario: AllocationScenario, width: int, height: int = 0) -> Frame:
    """What the Gantt of a scenario is drawn in."""
    horizon, cluster = scenario.horizon, scenario.cluster
    return Frame(
        gpus=cluster.gpus,
        hours=horizon.steps * horizon.step_s / 3600,
        node_size=cluster.node_size,
        start=None if horizon.start is None else datetime.fromisoformat(horizon.start).replace(tzinfo=None),
        width=width,
        height=height,
    )


def bars_of(plan: "Plan") -> Bars:
    """Rectangles of a plan: batch blocks, what apps use, what they hold idle, unavailable GPUs."""
    scenario = plan.scenario
    hours = scenario.horizon.step_s / 3600
    n_jobs = len(scenario.batch)
    placed = np.flatnonzero(plan.start >= 0)
    sizes = plan.size
    kinds = np.fromiter((_KINDS.index(job.kind) for job in scenario.batch), dtype=np.int64, count=n_jobs)
    low, high, start, end, code = _realtime_rectangles(plan)
    out_low, out_high = _stretches(scenario.cluster.unavailable)
    nobody = np.full(len(out_low), -1, dtype=np.int64)
    first = plan.first_gpu[placed]
    return Bars(
        low=np.concatenate((first, low, out_low)),
        high=np.concatenate((first + sizes[placed], high, out_high)),
        start=np.concatenate((plan.start[placed], start, np.zeros(len(out_low)))).astype(np.float64) * hours,
        end=np.concatenate((plan.end[placed], end, np.full(len(out_low), float(scenario.horizon.steps))))
        * hours,
        job=np.concatenate((placed, n_jobs + code // 2, nobody)),
        kind=np.concatenate(
            (kinds[placed], np.where(code % 2, _IDLE, _REALTIME), np.full(len(out_low), _UNAVAILABLE))
        ).astype(np.int64),
        labelled=np.concatenate(
            (np.ones(len(placed), bool), _largest(low, high, start, end, code), nobody > 0)
        ),
        kinds=_KINDS,
    )


def _realtime_rectangles(plan: "Plan") -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Cells of apps as rectangles of code ``2 x app`` (serving) or ``2 x app + 1`` (held beyond demand).

    A plan says how many of an app's GPUs are needed, not which: the highest count as serving.
    """
    n_jobs = len(plan.scenario.batch)
    rows = np.flatnonzero((plan.grid >= n_jobs).any(axis=1))
    if not len(rows):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, nothing, nothing, nothing
    base = int(rows[0])
    cells = plan.grid[base : int(rows[-1]) + 1]
    codes = np.full(cells.shape, -1, dtype=np.int32)
    for app in range(len(plan.scenario.realtime)):
        mine = cells == n_jobs + app
        needed = mine[::-1].cumsum(axis=0)[::-1] <= plan.demand[app]
        codes[mine] = 2 * app + 1
        codes[mine & needed] = 2 * app
    low, high, start, end, code = rectangles(codes)
    return low + base, high + base, start, end, code


def _largest(low: Ints, high: Ints, start: Ints, end: Ints, code: Ints) -> NDArray[np.bool_]:
    """Mark the largest rectangle of each code, the one that carries the name."""
    chosen = np.zeros(len(code), dtype=bool)
    order = np.argsort((high - low) * (end - start), kind="stable")
    # Later entries overwrite earlier ones, so the largest of each code stays.
    chosen[list(dict(zip(code[order].tolist(), order.tolist(), strict=True)).values())] = True
    return chosen


def _stretches(numbers: Sequence[int]) -> tuple[Ints, Ints]:
    """Ascending numbers as stretches (first, one after the last)."""
    values = np.asarray(numbers, dtype=np.int64)
    if not len(values):
        return values, values
    breaks = np.flatnonzero(np.diff(values) != 1)
    return values[np.r_[0, breaks + 1]], values[np.r_[breaks, len(values) - 1]] + 1


def gantt_data(plan: "Plan", frame: Frame, side: str, title: str) -> dict[str, Columns]:
    """Data sets of one Gantt: ``<side>_frame``, ``<side>_bars``, ``<side>_marks``."""
    scenario = plan.scenario
    bars, note = thin(bars_of(plan), frame.gpus, frame.hours)
    everyone: tuple[BatchJob | RealtimeApp, ...] = (*scenario.batch, *scenario.realtime)
    names = [work.name for work in everyone]
    columns = gantt.bar_columns(bars, frame, names)
    priority = [f"priority {work.priority:g}" for work in everyone]
    for j, job in enumerate(scenario.batch):
        if job.max_gpus is not None:
            priority[j] += f", on {plan.size[j]} of {sizes_words(job)} GPUs"
    columns["detail"] = [priority[job] if job >= 0 else "" for job in bars.job.tolist()]
    unmet = (plan.demand - plan.served).sum(axis=0)
    before = len(columns["job"])
    gantt.add_unmet(columns, frame, _unmet_runs(unmet, scenario.horizon.step_s / 3600))
    columns["detail"] += [""] * (len(columns["job"]) - before)
    marks = _marks(plan)
    if marks and not note:
        note = "triangles: running already (left), running past the end (right)"
    empty = "" if len(bars) else "no job has a place"
    if not (scenario.batch or scenario.realtime):
        empty = "no jobs"
    return {
        f"{side}_frame": gantt.frame_columns(frame, title, note, empty),
        f"{side}_bars": columns,
        f"{side}_marks": gantt.mark_columns(frame, marks),
    }


def sizes_words(job: BatchJob) -> str:
    """GPUs that a job may have: ``4``, or ``2–8`` where that is for the policy to choose."""
    return f"{job.gpus}" if job.max_gpus is None else f"{job.gpus}–{job.max_gpus}"


def _unmet_runs(unmet: Ints, hours: float) -> list[tuple[float, float, int]]:
    """Stretches of equal unmet demand: (from hour, to hour, GPUs)."""
    edges = np.flatnonzero(np.diff(unmet, prepend=-1, append=-1))
    runs = zip(edges[:-1].tolist(), edges[1:].tolist(), unmet[edges[:-1]].tolist(), strict=True)
    return [(first * hours, last * hours, count) for first, last, count in runs if count > 0]


def _marks(plan: "Plan") -> list[tuple[bool, int, int, str]]:
    """Jobs that ran before step 0, and jobs cut by the end of the horizon."""
    scenario = plan.scenario
    marks: list[tuple[bool, int, int, str]] = []
    places = (plan.start.tolist(), plan.first_gpu.tolist(), plan.size.tolist(), plan.duration.tolist())
    for job, start, first, size, duration in zip(scenario.batch, *places, strict=True):
        if start < 0:
            continue
        if job.running_on is not None:
            marks.append((True, first, size, f"{gantt.safe_text(job.name)}: running at the start"))
        if start + duration > scenario.horizon.steps:
            marks.append((False, first, size, f"{gantt.safe_text(job.name)}: runs past the end"))
    return marks


def app_rows(scenario: AllocationScenario) -> list[tuple[str, tuple[int, ...]]]:
    """Rows of the demand chart: (title, apps it adds up), one app each as far as `MAX_APPS` goes."""
    apps = scenario.realtime
    if len(apps) <= MAX_APPS:
        return [(gantt.safe_text(app.name, 60), (number,)) for number, app in enumerate(apps)]
    by_peak = sorted(range(len(apps)), key=lambda number: (-max(apps[number].demand), number))
    own = sorted(by_peak[: MAX_APPS - 1])
    others = tuple(number for number in range(len(apps)) if number not in own)
    rows = [(gantt.safe_text(apps[number].name, 60), (number,)) for number in own]
    return [*rows, (f"{len(others)} other apps together", others)]


def demand_data(plan: "Plan", frame: Frame, side: str, tops: Sequence[float]) -> dict[str, Columns]:
    """Data sets ``<side>_demand_<row>``: runs of steps in which demand, held and served do not change."""
    data = {}
    for row, (_, apps) in enumerate(app_rows(plan.scenario)):
        chosen = list(apps)
        values = np.stack([array[chosen].sum(axis=0) for array in (plan.demand, plan.held, plan.served)])
        x, values = _runs(values, values[0] + values[1], frame)
        data[f"{side}_demand_{row}"] = {
            **_times(x, frame),
            "demand": values[0].tolist(),
            "held": values[1].tolist(),
            "served": values[2].tolist(),
            "top": [tops[row]] * len(x),
        }
    return data


#: Share of a demand panel that stays free above its highest value, so that a peak does not touch the frame.
_HEADROOM = 0.1


def demand_tops(plans: Sequence["Plan"]) -> list[float]:
    """Top of each row's scale, the same for all plans: above the most GPUs wanted or held, which is at least 1."""
    peaks = (
        max(
            1,
            *(
                int(array[list(apps)].sum(axis=0).max())
                for plan in plans
                for array in (plan.demand, plan.held)
            ),
        )
        for _, apps in app_rows(plans[0].scenario)
    )
    return [round(peak * (1 + _HEADROOM), 4) for peak in peaks]


def usage(plan: "Plan") -> Ints:
    """GPUs by step of training, batch inference, quantization, real-time used, reserved idle; int64[5, T]."""
    scenario = plan.scenario
    placed = np.flatnonzero(plan.start >= 0)
    kinds = np.fromiter(
        (BATCH_KINDS.index(job.kind) for job in scenario.batch), np.int64, len(scenario.batch)
    )
    sizes = plan.size
    change = np.zeros((3, scenario.horizon.steps + 1), dtype=np.int64)
    np.add.at(change, (kinds[placed], plan.start[placed]), sizes[placed])
    np.add.at(change, (kinds[placed], plan.end[placed]), -sizes[placed])
    batch = change.cumsum(axis=1)[:, :-1]
    served, held = plan.served.sum(axis=0), plan.held.sum(axis=0)
    return np.vstack((batch, served, held - served))


#: Names of the columns of a usage data set, running sums from the bottom of the stack.
USAGE_COLUMNS = ("training", "batch", "quantization", "served", "held")


def usage_data(plan: "Plan", frame: Frame, side: str) -> dict[str, Columns]:
    """Data set ``<side>_usage``: running sums over the kinds, for runs of steps in which nothing changes."""
    stacked = usage(plan).cumsum(axis=0)
    x, stacked = _runs(stacked, stacked[3], frame)
    columns: Columns = _times(x, frame)
    columns.update({name: values.tolist() for name, values in zip(USAGE_COLUMNS, stacked, strict=True)})
    columns["top"] = [plan.scenario.cluster.n_available] * len(x)
    return {f"{side}_usage": columns}


def _runs(values: Ints, busy: Ints, frame: Frame) -> tuple[Ints, Ints]:
    """First steps of runs of equal columns, closed by the last column again at the end of the horizon.

    Above `MAX_STEPS` steps every group of steps is drawn by the one in which `busy` is highest.
    """
    steps = values.shape[1]
    group = -(-steps // MAX_STEPS)
    starts = np.arange(0, steps, group)
    if group > 1:
        padded = np.pad(busy, (0, len(starts) * group - steps), constant_values=-1).reshape(
            len(starts), group
        )
        values = values[:, starts + padded.argmax(axis=1)]
    changed = np.ones(len(starts), dtype=bool)
    changed[1:] = (values[:, 1:] != values[:, :-1]).any(axis=0)
    kept = np.flatnonzero(changed)
    return np.append(starts[kept], steps) * (frame.hours / steps), values[:, np.append(kept, len(starts) - 1)]


def _times(x: Any, frame: Frame) -> Columns:
    """Columns ``x, x2, time`` of runs that start at `x`; the closing row has no width."""
    edges = [round(hour, 4) for hour in x.tolist()]
    clock = [frame.clock(hour) for hour in edges]
    ends = [*range(1, len(edges)), len(edges) - 1]
    return {
        "x": edges,
        "x2": [edges[end] for end in ends],
        "time": [f"{clock[start]}–{clock[end]}" for start, end in enumerate(ends)],
    }
