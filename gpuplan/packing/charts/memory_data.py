"""The memory of GPUs over time as columns: exact at every change where they are few, else exact means over bins."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.gantt import Columns, safe_text
from gpuplan.packing.charts.clock import Clock, bin_of, edges_of, words
from gpuplan.packing.charts.colours import Palette
from gpuplan.packing.model import GIB, SECOND, Floats, Int64
from gpuplan.packing.progress import SCALE, Service, distinct, grouped, steps
from gpuplan.packing.raw import LOAD, RUN
from gpuplan.packing.spread import copies_on
from gpuplan.packing.words import seconds

if TYPE_CHECKING:
    from gpuplan.packing.memory import Memory
    from gpuplan.packing.run import PackRun

#: Marks of out-of-memory events in one panel; more are drawn as one mark per stretch of time.
_MARKS = 120


@dataclass(frozen=True, slots=True)
class Panel:
    """GiB per GPU of neighbouring GPUs, a row per instant; between rows straight lines.

    Attributes
    ----------
    first, last
        GPUs, `last` inclusive.
    time_us : int64[N]
        Each instant of a step stands twice.
    weights : float64[G, N]
        By group of models: weights, context and workspace of loaded copies.
    asleep, kv, reserved : float64[N]
    peak : float64[N]
        Most that was in memory of any of the GPUs.
    """

    first: int
    last: int
    time_us: Int64
    weights: Floats
    asleep: Floats
    kv: Floats
    reserved: Floats
    peak: Floats

    @property
    def name(self) -> str:
        """``"GPU 0"``, ``"GPUs 0–7, mean"``."""
        return (
            f"GPU {self.first}" if self.first == self.last else f"GPUs {self.first}–{self.last}, mean of each"
        )

    @property
    def actual(self) -> Floats:
        """What is in memory."""
        total: Floats = self.weights.sum(axis=0) + self.asleep + self.kv
        return total


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """Panels of a run, and the length of their bins (0: every change is drawn)."""

    panels: tuple[Panel, ...]
    bin_us: int

    @property
    def note(self) -> str:
        """How instants became points."""
        if self.bin_us == 0:
            return "every change is drawn"
        return f"means over {words(self.bin_us / SECOND)}; dotted: the most within it"


def panels_of(count: int, most: int) -> list[tuple[int, int]]:
    """Neighbouring GPUs in at most `most` panels: first and last of each."""
    each = -(-count // max(1, most))
    return [(low, min(low + each, count) - 1) for low in range(0, count, each)]


def memory_picture(
    run: "PackRun", palette: Palette, *, panels: int, exact: int, bin_us: int
) -> MemoryPicture:
    """The memory of a run's GPUs.

    Parameters
    ----------
    run, palette
    panels
        At most so many; with more GPUs neighbours share one.
    exact
        Up to so many changes on every GPU, each is drawn.
    bin_us
        Length of a bin else.
    """
    shown = panels_of(run.scenario.gpus.count, panels)
    memory = run.memory
    single = all(low == high for low, high in shown)
    if single and max(len(memory.changes(g)) for g, _ in shown) <= exact:
        return MemoryPicture(tuple(_exact(run, palette, g) for g, _ in shown), 0)
    edges = edges_of(run.raw.end_us, bin_us)
    found = tuple(_binned(run, palette, low, high, edges) for low, high in shown)
    return MemoryPicture(found, bin_us)


def _spans(run: "PackRun", palette: Palette, low: int, high: int) -> tuple[Int64, Int64, Floats, Int64]:
    """Loaded copies on some GPUs: from, to, GiB, group of the model."""
    copies = run.raw.copies
    copy, on = copies_on(copies)
    some = copy[run.memory.loaded[copy] & (on >= low) & (on <= high)]
    model = copies.model[some]
    gone = np.minimum(copies.released_us[some], run.raw.end_us + 1)
    return copies.load_us[some], gone, run.problem.taken[model] / GIB, palette.group[model]


def _exact(run: "PackRun", palette: Palette, gpu: int) -> Panel:
    """Two rows per stretch between changes: at its start and at its end."""
    profile = run.memory.profile(gpu)
    first = profile.first.time_us
    start, end, _, group = _spans(run, palette, gpu, gpu)
    taken = _taken(run, gpu)
    weights = np.zeros((len(palette), len(first)))
    for g in range(len(palette)):
        mine = group == g
        when, level = steps(np.append(start[mine], end[mine]), np.append(taken[mine], -taken[mine]))
        weights[g] = level[np.searchsorted(when, first, "right") - 1] / GIB
    time_us = np.stack([first, np.append(first[1:], run.raw.end_us)], 1).ravel()

    def both(name: str) -> Floats:
        pair = [getattr(profile.first, name), getattr(profile.last, name)]
        found: Floats = np.stack(pair, 1).ravel() / GIB
        return found

    twice = np.repeat(weights, 2, axis=1)
    return Panel(gpu, gpu, time_us, twice, both("asleep"), both("kv"), both("reserved"), both("actual"))


def _taken(run: "PackRun", gpu: int) -> Int64:
    """Bytes of the loaded copies of a GPU."""
    mine = run.memory.copies_on(gpu)
    found: Int64 = run.problem.taken[run.raw.copies.model[mine[run.memory.loaded[mine]]]]
    return found


def _binned(run: "PackRun", palette: Palette, low: int, high: int, edges: Int64) -> Panel:
    """Two rows per bin, with equal values: means of each GPU, and the most of any."""
    start, end, amount, group = _spans(run, palette, low, high)
    weights = binned_spans(start, end, amount, group, len(palette), edges)
    asleep, kv, reserved = (np.zeros(len(edges) - 1) for _ in range(3))
    peak = np.zeros(len(edges) - 1)
    for gpu in range(low, high + 1):
        of_gpu = _means(run.memory, gpu, edges)
        asleep, kv, reserved = asleep + of_gpu[0], kv + of_gpu[1], reserved + of_gpu[2]
        peak = np.maximum(peak, of_gpu[3])
    n = high - low + 1
    time_us = np.stack([edges[:-1], edges[1:]], 1).ravel()
    weights, asleep, kv, reserved = (
        np.repeat(part / n, 2, axis=-1) for part in (weights, asleep, kv, reserved)
    )
    return Panel(low, high, time_us, weights, asleep, kv, reserved, np.repeat(peak, 2))


def _means(memory: "Memory", gpu: int, edges: Int64) -> tuple[Floats, Floats, Floats, Floats]:
    """Means of leftovers, KV and reservations in GiB over bins, and the most that was in memory.

    Between changes KV counts as if it grew without steps, like in the figures of a run.
    """
    end_us = int(edges[-1])
    t = distinct(np.concatenate([memory.changes(gpu), edges[:-1]]))
    t = t[t < end_us]
    until = np.append(t[1:], end_us)
    fixed = memory.fixed(gpu, t)
    first, last = kv_levels(memory, gpu, t, until)
    length = (until - t).astype(float)
    at = np.searchsorted(t, edges[:-1])
    wide = np.diff(edges) * float(GIB)

    def mean(values: Floats | Int64) -> Floats:
        found: Floats = np.add.reduceat(values * length, at) / wide
        return found

    peak = np.maximum.reduceat(fixed["weights"] + fixed["asleep"] + last, at) / GIB
    return mean(fixed["asleep"]), mean((first + last) / 2), mean(fixed["reserved"]), peak


def kv_levels(memory: "Memory", gpu: int, time_us: Int64, until_us: Int64) -> tuple[Floats, Floats]:
    """KV of a GPU at instants and just before later ones, bytes, as if it grew without steps.

    All tasks that run on a GPU go at one speed (those over several GPUs at that of their set), so that their KV is a
    level plus a slope times what one of them would have got so far; both change with the tasks only. No pair of a task
    and an instant is looked at.

    Parameters
    ----------
    memory, gpu
    time_us, until_us : int64[T]
        No task comes or goes between an instant and its later one.
    """
    rows, mine = memory.raw.stages, memory.stages_on(gpu)
    start = memory.kv_from[mine]
    some = mine[(rows.kind[mine] != LOAD) & (rows.end_us[mine] > start)]
    first, last = np.zeros(len(time_us)), np.zeros(len(time_us))
    for k, which in grouped(memory.progress.service[some]):
        found = _kv_at_one_speed(memory, some[which], memory.progress.services[k], time_us, until_us)
        first, last = first + found[0], last + found[1]
    return np.maximum(first, 0.0), np.maximum(last, 0.0)


def _kv_at_one_speed(
    memory: "Memory", some: Int64, service: Service, time_us: Int64, until_us: Int64
) -> tuple[Floats, Floats]:
    """The same of stages that get one service while they run."""
    tasks, rows, progress = memory.problem.tasks, memory.raw.stages, memory.progress
    task, begin, end = rows.task[some], memory.kv_from[some], rows.end_us[some]
    got = np.append(0.0, np.cumsum(np.diff(service.time_us) * (service.speed[:-1] / SCALE)))

    def served(t: Int64) -> Floats:
        k = np.searchsorted(service.time_us, t, "right") - 1
        found: Floats = got[k] + (t - service.time_us[k]) * (service.speed[k] / SCALE)
        return found

    per_token = memory.kv_per_token[tasks.model[task]].astype(float)
    slope = per_token * tasks.tokens_out[task] / np.maximum(tasks.service_us[task], 1)
    level = per_token * tasks.tokens_in[task] + slope * (progress.before[some] / SCALE)
    runs = rows.kind[some] == RUN
    slope = np.where(runs, slope, 0.0)
    level = level - slope * np.where(runs, served(begin), 0.0)

    order = np.argsort(np.append(begin, end), kind="stable")
    when = np.append(begin, end)[order]
    base, rise = (np.append(0.0, np.cumsum(np.append(v, -v)[order])) for v in (level, slope))
    k = np.searchsorted(when, time_us, "right")
    first, last = (base[k] + rise[k] * served(t) for t in (time_us, until_us))
    return first, last


def binned_spans(start: Int64, end: Int64, amount: Floats, group: Int64, groups: int, edges: Int64) -> Floats:
    """Mean over bins of amounts that are there from starts to ends, by group: float64[groups, B]."""
    n = len(edges) - 1
    top = int(edges[-1])
    begin, stop = np.minimum(start, top), np.minimum(end, top)
    lasting = stop > begin
    begin, stop, amount, group = begin[lasting], stop[lasting], amount[lasting], group[lasting]
    # the amount from its bin on, less what of that bin lies before it; and back at the end
    changes = np.zeros((groups, n + 1))
    partly = np.zeros((groups, n + 1))
    for at, sign in ((begin, 1.0), (stop, -1.0)):
        k = np.searchsorted(edges, at, "right") - 1
        np.add.at(changes, (group, k), sign * amount)
        np.add.at(partly, (group, k), sign * amount * (at - edges[k]))
    level = np.cumsum(changes, axis=1)[:, :n]
    found: Floats = level - partly[:, :n] / np.diff(edges)
    return np.maximum(found, 0.0)


def panel_columns(panel: Panel, clock: Clock, digits: int = 2) -> Columns:
    """Wide columns of a panel, GiB: tops of stacked layers, and two lines.

    ``x, x2``; ``c`` and a number: a group of models; ``a``: what is left asleep; ``k``: KV, the top of all that is in
    memory; ``r``: reserved; ``p``: the most in memory.
    """
    x = clock.of(panel.time_us)
    columns: Columns = {"x": x, "x2": [*x[1:], x[-1]]}
    tops = np.cumsum(np.concatenate((panel.weights, panel.asleep[None], panel.kv[None])), axis=0)
    names = [*(f"c{g}" for g in range(len(panel.weights))), "a", "k"]
    for name, row in zip(names, np.round(tops, digits).tolist(), strict=True):
        columns[name] = row
    columns["r"] = np.round(panel.reserved, digits).tolist()
    columns["p"] = np.round(panel.peak, digits).tolist()
    return columns


def event_columns(run: "PackRun", low: int, high: int, clock: Clock) -> Columns:
    """Out-of-memory events of some GPUs: ``x, says``; a row per stretch of time where there are many."""
    rows, names = run.raw.breaches, run.model_names
    mine = np.flatnonzero((rows.gpu >= low) & (rows.gpu <= high))
    if len(mine) > _MARKS:
        length = bin_of(run.raw.end_us, _MARKS)
        edges = edges_of(run.raw.end_us, length)
        which, counts = np.unique(np.searchsorted(edges, rows.time_us[mine], "right") - 1, return_counts=True)
        which = np.minimum(which, len(edges) - 2)
        span = words(length / SECOND)
        says = [f"{n:,} times out of memory within {span}" for n in counts.tolist()]
        return {"x": clock.of((edges[which] + edges[which + 1]) // 2), "says": says}
    said = []
    for k in mine.tolist():
        name, t = safe_text(str(names[rows.model[k]]), 60), seconds(int(rows.time_us[k]))
        task = int(rows.task[k])
        what = f"the load of {name} failed" if task < 0 else f"task {task} of {name} failed"
        said.append(f"GPU {rows.gpu[k]} out of memory after {t}: {what}")
    return {"x": clock.of(rows.time_us[mine]), "says": said}
