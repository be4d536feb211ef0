"""The columns of a moment of a rolling run (`rolling_live` draws them): arrays, no data frames, few loops."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuplan import gantt, theme
from gpuplan.allocation.charts import data
from gpuplan.allocation.charts.rolling_live import SIDE, moment_frame
from gpuplan.allocation.charts.rolling_moment import moment_words, start_of
from gpuplan.allocation.model import BatchJob, RealtimeApp
from gpuplan.gantt import Columns, Frame
from gpuplan.rectangles import Bars, rectangles, thin

if TYPE_CHECKING:
    from gpuplan.allocation.days import Days
    from gpuplan.allocation.rolling_run import RollingRun

Ints = NDArray[np.int64]

#: Pixels of a label of the time axis.
_LABEL_PX = 46

_KINDS = tuple(theme.KIND_COLOURS)
_REALTIME, _IDLE, _UNAVAILABLE = (
    _KINDS.index(kind) for kind in ("real-time", "reserved-idle", "unavailable")
)


def demand_tops(runs: Sequence["RollingRun"]) -> list[float]:
    """Top of each demand panel over all days and runs, so that the scale stands still while a person steps."""
    found = []
    for _, apps in data.app_rows(runs[0].days.span):
        chosen = list(apps)
        peaks = [
            int(array[chosen].sum(axis=0).max(initial=1))
            for run in runs
            for array in (run.plan.demand, run.plan.held, run.days.forecast)
        ]
        promised = [
            int(np.bitwise_count(promise.hold[chosen]).sum(axis=(0, 2)).max(initial=0))
            for run in runs
            for promise in run.promises
        ]
        found.append(round(1.1 * max(1, *peaks, *promised), 4))
    return found


def moment_data(
    run: "RollingRun", number: int, tops: Sequence[float], *, width: int = 980
) -> dict[str, Columns]:
    """Data sets of the page at a plan of a run, as dicts of columns.

    Parameters
    ----------
    run
    number
        Which plan, from 0; its step is the moment.
    tops
        What `demand_tops` says.
    width
        That of the spec.
    """
    days, promise = run.days, run.promises[number]
    frame = _dated(moment_frame(days, width), days, promise.step)
    sets: dict[str, Columns] = {"rows": gantt.row_columns(frame)}
    bars, note = thin(_bars(run, number), frame.gpus, frame.hours)
    title = (
        f"{run.policy}: plan {number + 1:,} of {len(run.promises):,}, at {moment_words(days, promise.step)}"
    )
    empty = "" if len(bars) else "nothing was committed and nothing is planned"
    sets[f"{SIDE}_bars"] = _bar_columns(run, number, frame, bars)
    sets[f"{SIDE}_frame"] = gantt.frame_columns(frame, title, "", empty)
    sets[f"{SIDE}_marks"] = gantt.mark_columns(frame, [])
    hours = days.span.horizon.step_hours
    sets["now"] = {
        "now": [days.steps_per_day * hours],
        "next": [round((days.steps_per_day + run.replan_steps) * hours, 4)],
        "before": ["◀ committed" + (" (small bars merged)" if note else "")],
        "after": ["planned (pale, dashed) ▶"],
    }
    sets["outside"] = _outside_columns(days, promise.step, frame)
    sets["ticks"] = _tick_columns(days, promise.step, frame)
    for row, (_, apps) in enumerate(data.app_rows(days.span)):
        sets |= _demand_columns(run, number, list(apps), row, tops[row], frame)
    return sets


def _dated(frame: Frame, days: "Days", step: int) -> Frame:
    """The frame with the clock time of its left edge."""
    start = start_of(days)
    if start is None:
        return frame
    begin = (step - days.steps_per_day) * days.span.horizon.step_hours
    at = start + timedelta(hours=begin)
    return Frame(frame.gpus, frame.hours, frame.node_size, at, frame.width, frame.height)


def _clock(frame: Frame, days: "Days", step: int, hour: float) -> str:
    """Clock time of an hour of the window, or hours since the first day began."""
    if frame.start is not None:
        return frame.clock(hour)
    return f"hour {round(hour + (step - days.steps_per_day) * days.span.horizon.step_hours, 2):g}"


def _bars(run: "RollingRun", number: int) -> Bars:
    """Rectangles of the committed day before a plan, then those of the plan."""
    days, promise = run.days, run.promises[number]
    first = max(0, promise.step - days.steps_per_day)
    hours = days.span.horizon.step_hours
    before = promise.step - days.steps_per_day
    past = slice(first, promise.step)
    expected = days.forecast[:, promise.step : promise.step + days.horizon]
    done = _rectangles(run, run.plan.grid[:, past], run.plan.demand[:, past], (first - before) * hours)
    ahead = _rectangles(run, run.grid_of(promise), expected, days.steps_per_day * hours)
    return done.joined(ahead)


def _rectangles(run: "RollingRun", grid: NDArray[np.integer[Any]], wanted: Ints, begin: float) -> Bars:
    """Cells of a grid as bars; of an app's GPUs the highest count as serving, as many as are wanted."""
    span = run.days.span
    n_jobs, n_apps = len(span.batch), len(span.realtime)
    codes = np.where(grid >= 0, grid, -1).astype(np.int64)
    for app in range(n_apps):
        mine = grid == n_jobs + app
        serving = mine & (mine[::-1].cumsum(axis=0)[::-1] <= wanted[app])
        codes[mine] = n_jobs + 2 * app + 1
        codes[serving] = n_jobs + 2 * app
    codes[grid == -2] = n_jobs + 2 * n_apps
    low, high, start, end, code = rectangles(codes)
    kinds = [_KINDS.index(job.kind) for job in span.batch] + [_REALTIME, _IDLE] * n_apps + [_UNAVAILABLE]
    largest = np.zeros(code.size, bool)
    order = np.argsort((high - low) * (end - start), kind="stable")
    # Later entries overwrite earlier ones, so the largest of each code carries the name.
    largest[list(dict(zip(code[order].tolist(), order.tolist(), strict=True)).values())] = True
    owner = np.where(code < n_jobs, code, n_jobs + (code - n_jobs) // 2)
    hours = span.horizon.step_hours
    return Bars(
        low=low,
        high=high,
        start=start.astype(np.float64) * hours + begin,
        end=end.astype(np.float64) * hours + begin,
        job=np.where(code == n_jobs + 2 * n_apps, -1, owner),
        kind=np.array(kinds, np.int64)[code],
        labelled=largest & (code < n_jobs + 2 * n_apps),
        kinds=_KINDS,
    )


def _bar_columns(run: "RollingRun", number: int, frame: Frame, bars: Bars) -> Columns:
    """Columns of the Gantt's bars, with the strip of unmet demand; ``planned`` is 1 right of now."""
    days, promise = run.days, run.promises[number]
    span, hours = days.span, days.span.horizon.step_hours
    now = days.steps_per_day * hours
    everyone: tuple[BatchJob | RealtimeApp, ...] = (*span.batch, *span.realtime)
    columns = gantt.bar_columns(bars, frame, [work.name for work in everyone])
    columns["detail"] = [
        f"priority {everyone[job].priority:g}" if job >= 0 else "" for job in bars.job.tolist()
    ]
    first = max(0, promise.step - days.steps_per_day)
    came = (run.plan.demand - run.plan.served)[:, first : promise.step].sum(axis=0)
    held = np.bitwise_count(promise.hold).sum(axis=2, dtype=np.int64)
    expected = days.forecast[:, promise.step : promise.step + days.horizon]
    missing = np.maximum(0, expected - held).sum(axis=0)
    runs = [
        *_unmet(came, now - came.size * hours, hours),
        *_unmet(missing, now, hours),
    ]
    gantt.add_unmet(columns, frame, runs)
    columns["detail"] += [""] * len(runs)
    columns["planned"] = [int(x >= now - 1e-6) for x in columns["x"]]
    columns["detail"] = [
        f"{what}{', ' if what else ''}{'planned' if planned else 'committed'}"
        for what, planned in zip(columns["detail"], columns["planned"], strict=True)
    ]
    if frame.start is None:
        ends = zip(columns["x"], columns["x2"], strict=True)
        columns["time"] = [
            f"{_clock(frame, days, promise.step, a)} to {_clock(frame, days, promise.step, b)}"
            for a, b in ends
        ]
    return columns


def _unmet(missing: Ints, begin: float, hours: float) -> list[tuple[float, float, int]]:
    """Stretches of equal unmet demand: (from hour, to hour, GPUs)."""
    edges = np.flatnonzero(np.diff(missing, prepend=-1, append=-1)) if missing.size else np.zeros(0, np.int64)
    runs = zip(edges[:-1].tolist(), edges[1:].tolist(), missing[edges[:-1]].tolist(), strict=True)
    return [(begin + a * hours, begin + b * hours, count) for a, b, count in runs if count > 0]


def _outside_columns(days: "Days", step: int, frame: Frame) -> Columns:
    """Hours of the window before the first and after the last day; without any, a stretch of no width."""
    hours = days.span.horizon.step_hours
    before = max(0.0, (days.steps_per_day - step) * hours)
    after = min(frame.hours, (days.steps - step + days.steps_per_day) * hours)
    return {"x": [0.0, round(after, 4)], "x2": [round(before, 4), round(frame.hours, 4)]}


def _tick_columns(days: "Days", step: int, frame: Frame) -> Columns:
    """Round hours within the window: ``x, hour, day`` (the day's name where one begins, else empty)."""
    begin = (step - days.steps_per_day) * days.span.horizon.step_hours
    room = max(1.0, frame.width / _LABEL_PX)
    every = next((n for n in (1, 2, 3, 4, 6, 8, 12, 24) if frame.hours / n <= room), 48)
    start, last = start_of(days), days.steps * days.span.horizon.step_hours
    columns: Columns = {"x": [], "hour": [], "day": []}
    at = -(-int(np.ceil(begin)) // every) * every
    while at <= begin + frame.hours:
        columns["x"].append(round(at - begin, 4))
        moment = None if start is None else start + timedelta(hours=at)
        columns["hour"].append(str(at) if moment is None else f"{moment:%H:%M}")
        day = "" if at % 24 or at < 0 else f"day {at // 24 + 1}" + (f", {moment:%a}" if moment else "")
        columns["day"].append("end of the run" if at == last else day if at < last else "")
        at += every
    return columns


def _demand_columns(
    run: "RollingRun", number: int, apps: list[int], row: int, top: float, frame: Frame
) -> dict[str, Columns]:
    """Data sets ``done_<row>`` and ``plan_<row>``: stretches in which nothing changes."""
    days, promise = run.days, run.promises[number]
    hours, past = days.span.horizon.step_hours, days.steps_per_day
    first, step = max(0, promise.step - past), promise.step
    plan = run.plan
    behind = [days.forecast[:, :step], plan.demand[:, :step], plan.held[:, :step], plan.served[:, :step]]
    expected = days.forecast[:, step : step + days.horizon]
    held = np.bitwise_count(promise.hold).sum(axis=2, dtype=np.int64)
    ahead = [expected, held, np.minimum(held, expected)]
    done = np.stack([array[apps, first:].sum(axis=0) for array in behind])
    planned = np.stack([array[apps].sum(axis=0) for array in ahead])
    found = {}
    for name, values, begin, columns in (
        (f"done_{row}", done, (past - (step - first)) * hours, ("expected", "came", "held", "served")),
        (f"plan_{row}", planned, past * hours, ("expected", "held", "served")),
    ):
        edges, kept = _stretches(values)
        x = [round(begin + edge * hours, 4) for edge in edges]
        x2 = [*x[1:], *x[-1:]]
        clock = [_clock(frame, days, step, hour) for hour in x]
        found[name] = {
            "x": x,
            "x2": x2,
            "time": [f"{a} to {b}" for a, b in zip(clock, [*clock[1:], *clock[-1:]], strict=True)],
            **dict(zip(columns, kept.tolist(), strict=True)),
            "top": [top] * len(x),
        }
    return found


def _stretches(values: Ints) -> tuple[list[int], Ints]:
    """First steps of runs of equal columns, closed by the last column again; nothing of nothing."""
    steps = values.shape[1]
    if steps == 0:
        return [], values
    changed = np.ones(steps, bool)
    changed[1:] = (values[:, 1:] != values[:, :-1]).any(axis=0)
    kept = np.flatnonzero(changed)
    return [*kept.tolist(), steps], values[:, [*kept.tolist(), steps - 1]]
