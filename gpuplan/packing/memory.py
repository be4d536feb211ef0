"""The memory of each GPU over time, exact: what is reserved, what is there, what is of use.

Recomputed from the copies, the stages and the model of contention. Between two changes (`Profile`) the actual memory
never falls: it grows with the tokens of the running tasks, a staircase. A copy of a model over several GPUs, and the
tasks that it serves, have an equal part on each of them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import NEVER, Bools, Floats, Int64
from gpuplan.packing.progress import Progress, distinct, generated, grouped, steps
from gpuplan.packing.raw import CUT, LOAD, RESTORE, RUN
from gpuplan.packing.spread import copies_on, stages_on

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack

#: Pairs of a task and an instant that are worked on at once.
_PAIRS = 1 << 21


@dataclass(frozen=True, slots=True)
class Values:
    """Bytes of one GPU at instants, after everything that happened at them.

    Attributes
    ----------
    time_us, reserved, actual, useful, asleep, kv : int64[T]
        Reserved by the scheduler; in memory; of it what serves: copies with a running task, and the KV of running
        tasks; leftovers of evicted models; KV of all tasks. The last two are parts of `actual`.
    """

    time_us: Int64
    reserved: Int64
    actual: Int64
    useful: Int64
    asleep: Int64
    kv: Int64


@dataclass(frozen=True, slots=True)
class Profile:
    """One GPU over a run: ``first`` at each instant of change, ``last`` just before the next one (or at the end)."""

    first: Values
    last: Values

    @property
    def peak(self) -> int:
        """The most that was in memory, bytes."""
        return int(self.last.actual.max())


class Memory:
    """The memory of a run's GPUs. Instants are whole microseconds from 0 to the end of the run."""

    def __init__(self, problem: "Problem", raw: "RawPack") -> None:
        self.problem, self.raw = problem, raw
        self.end_us = raw.end_us
        self.capacity = problem.scenario.gpus.memory_bytes
        copies, rows = raw.copies, raw.stages
        # bytes are there from the start of a load on; a load that failed never had any
        failed = (copies.ready_us >= NEVER) & (copies.released_us == copies.load_us)
        self.loaded: Bools = (copies.load_us < NEVER) & ~failed
        # what goes on when the run ends is still there at its last instant
        over = raw.end_us + 1
        self._gone = np.minimum(copies.released_us, over)
        self.kv_from = np.where(rows.kind == RESTORE, rows.frozen_from_us, rows.start_us)
        self._cut = (rows.outcome == CUT) & (self.kv_from < rows.end_us)
        self._stage_end = np.where(self._cut, over, rows.end_us)
        models = problem.scenario.models
        self.kv_per_token = np.array(
            [problem.scenario.part(m.kv_bytes_per_token, m) for m in models], np.int64
        )
        # a row per copy and GPU that it is on
        self._copy, self._on = copies_on(copies)

    @cached_property
    def progress(self) -> Progress:
        """What tasks had done at any instant."""
        return Progress(self.problem, self.raw)

    @cached_property
    def _stages(self) -> list[Int64]:
        """The stages on each GPU."""
        stage, gpu = stages_on(self.raw)
        return [stage[gpu == g] for g in range(self.problem.scenario.gpus.count)]

    def stages_on(self, gpu: int) -> Int64:
        """Stages of the tasks on a GPU, in their order."""
        return self._stages[gpu]

    def copies_on(self, gpu: int) -> Int64:
        """Copies on a GPU, in the order of their claims."""
        found: Int64 = self._copy[self._on == gpu]
        return found

    # ------------------------------------------------------------------ one GPU over time

    def at(self, gpu: int, time_us: Int64) -> Values:
        """Bytes of a GPU at instants of the run (in order)."""
        t = np.asarray(time_us, np.int64)
        fixed = self.fixed(gpu, t)
        kv, serving = self._kv(gpu, t)
        actual = fixed["weights"] + fixed["asleep"] + kv
        return Values(t, fixed["reserved"], actual, fixed["serving"] + serving, fixed["asleep"], kv)

    def fixed(self, gpu: int, time_us: Int64) -> dict[str, Int64]:
        """Bytes of a GPU that change only at `changes`: ``reserved``, ``weights``, ``asleep``, ``serving`` copies."""
        return {
            name: level[np.searchsorted(when, time_us, "right") - 1] for name, (when, level) in self._of(gpu)
        }

    def profile(self, gpu: int) -> Profile:
        """A GPU at every instant at which anything changed on it, and just before the next such instant."""
        first = self.changes(gpu)
        last = np.append(first[1:] - 1, self.end_us)
        return Profile(self.at(gpu, first), self.at(gpu, last))

    def ceiling(self, gpu: int, time_us: Int64) -> Int64:
        """What may be in memory at most at instants and until the next change: every task with its KV at its end."""
        rows, stages = self.raw.stages, self._stages[gpu]
        stages = stages[(rows.kind[stages] != LOAD) & (self._stage_end > self.kv_from)[stages]]
        most = self.kv_of(stages, rows.end_us[stages])
        when, level = steps(np.append(self.kv_from[stages], self._stage_end[stages]), np.append(most, -most))
        found: Int64 = level[np.searchsorted(when, time_us, "right") - 1]
        for name, (times, fixed) in self._of(gpu):
            if name in ("weights", "asleep"):
                found = found + fixed[np.searchsorted(times, time_us, "right") - 1]
        return found

    def changes(self, gpu: int) -> Int64:
        """Instants at which anything began or ended on a GPU; the first is 0."""
        rows, copies = self.raw.stages, self.raw.copies
        mine, there = self._stages[gpu], self.copies_on(gpu)
        columns = [rows.start_us[mine], rows.end_us[mine], rows.frozen_from_us[mine]]
        columns += [copies.claimed_us[there], copies.load_us[there], copies.released_us[there]]
        when = np.concatenate([np.zeros(1, np.int64), *columns])
        return distinct(when[when <= self.end_us])

    def _of(self, gpu: int) -> list[tuple[str, tuple[Int64, Int64]]]:
        return self._fixed[gpu]

    @cached_property
    def _fixed(self) -> list[list[tuple[str, tuple[Int64, Int64]]]]:
        """What changes only at the instants of `changes`, of each GPU."""
        copies, copy = self.raw.copies, self._copy
        need = self.problem.needed[copies.model[copy]]
        spans = {
            "reserved": (self._on, copies.claimed_us[copy], self._gone[copy], need),
            "weights": self._weights,
            "asleep": self.leftovers,
            "serving": self._serving,
        }
        found = []
        for g in range(self.problem.scenario.gpus.count):
            of_gpu = []
            for name, (gpu, start, end, amount) in spans.items():
                mine = gpu == g
                when = np.concatenate([start[mine], end[mine]])
                of_gpu.append((name, steps(when, np.concatenate([amount[mine], -amount[mine]]))))
            found.append(of_gpu)
        return found

    @cached_property
    def _weights(self) -> tuple[Int64, Int64, Int64, Int64]:
        """Spans of copies in memory: gpu, from, to, bytes."""
        copies, there = self.raw.copies, self.loaded[self._copy]
        some = self._copy[there]
        taken = self.problem.taken[copies.model[some]]
        return self._on[there], copies.load_us[some], self._gone[some], taken

    @cached_property
    def leftovers(self) -> tuple[Int64, Int64, Int64, Int64]:
        """Spans of leftovers: from the release of a model to the next load of it on the same GPU."""
        copies, n_models = self.raw.copies, len(self.problem.asleep)
        there = (self.loaded & (self.problem.asleep[copies.model] > 0))[self._copy]
        some, on = self._copy[there], self._on[there]
        key = on * n_models + copies.model[some]
        order = np.lexsort((copies.load_us[some], key))
        some, on, key = some[order], on[order], key[order]
        start, end = _gaps(key, copies.load_us[some], self._gone[some], self.end_us + 1)
        left = end > start
        which = some[left]
        return on[left], start[left], end[left], self.problem.asleep[copies.model[which]]

    @cached_property
    def _serving(self) -> tuple[Int64, Int64, Int64, Int64]:
        """Spans in which at least one task of a model runs on a GPU, with the bytes of its copy."""
        rows, n_models = self.raw.stages, len(self.problem.taken)
        stage, gpu = stages_on(self.raw)
        runs = ((rows.kind == RUN) & (self._stage_end > rows.start_us))[stage]
        some = stage[runs]
        key = gpu[runs] * n_models + self.problem.tasks.model[rows.task[some]]
        order = np.lexsort((rows.start_us[some], key))
        some, key = some[order], key[order]
        start, end = _union(key, rows.start_us[some], self._stage_end[some])
        first = start < NEVER
        gpu, model = np.divmod(key[first], n_models)
        return gpu, start[first], end[first], self.problem.taken[model]

    def _kv(self, gpu: int, t: Int64) -> tuple[Int64, Int64]:
        """KV of all tasks, and of the running ones, at instants in order."""
        rows, tasks = self.raw.stages, self.problem.tasks
        total, running = np.zeros(len(t), np.int64), np.zeros(len(t), np.int64)
        stages = self._stages[gpu]
        has = (rows.kind[stages] != LOAD) & (self._stage_end > self.kv_from)[stages]
        has &= self.kv_per_token[tasks.model[rows.task[stages]]] > 0
        stages = stages[has]
        first = np.searchsorted(t, self.kv_from[stages], "left")
        counts = np.searchsorted(t, self._stage_end[stages], "left") - first
        upto = np.cumsum(counts)
        at = 0
        while at < len(stages):
            to = int(np.searchsorted(upto, (upto[at - 1] if at else 0) + _PAIRS, "right"))
            to = max(to, at + 1)
            many = counts[at:to]
            stage = np.repeat(stages[at:to], many)
            within = np.arange(len(stage)) - np.repeat(np.cumsum(many) - many, many)
            when = np.repeat(first[at:to], many) + within
            kv = self.kv_of(stage, t[when])
            np.add.at(total, when, kv)
            runs = rows.kind[stage] == RUN
            np.add.at(running, when[runs], kv[runs])
            at = to
        return total, running

    def kv_of(self, stage: Int64, t: Int64) -> Int64:
        """KV of the tasks of stages (`RUN`, `SAVE`, `RESTORE`) at instants inside them, bytes on each of their GPUs."""
        tasks, task = self.problem.tasks, self.raw.stages.task[stage]
        # nothing happens any more at a horizon: what is cut there holds what it held just before
        t = np.where(self._cut[stage], np.minimum(t, self.end_us - 1), t)
        made = generated(tasks.tokens_out[task], self.progress.at(stage, t), tasks.service_us[task])
        return self.kv_per_token[tasks.model[task]] * (tasks.tokens_in[task] + made)

    # ------------------------------------------------------------------ what still fits

    def free(self, gpu: int, t: int) -> int:
        """Bytes that the scheduler believes to be free on a GPU at an instant (below 0 where it was too bold)."""
        now = self.at(gpu, np.array([t], np.int64))
        if self.problem.scenario.admission.on == "declared":
            return self.capacity - int(now.reserved[0])
        copies, mine = self.raw.copies, self.copies_on(gpu)
        waits = (copies.claimed_us <= t) & (copies.load_us > t) & (copies.released_us > t)
        pending = self.problem.needed[copies.model[mine[waits[mine]]]]
        return self.capacity - int(now.actual[0]) - int(pending.sum())

    def largest_fit(self, t: int) -> tuple[int, int, int]:
        """Model (row, -1: none), GPU and free bytes of the largest model that fits somewhere without eviction.

        A model over k GPUs fits where k of them have room for its part. The GPU is the one with most free memory.
        """
        free = [self.free(g, t) for g in range(self.problem.scenario.gpus.count)]
        needed, spread = self.problem.needed, self.problem.spread
        room = np.array(sorted(free, reverse=True))[spread - 1]
        fitting = np.where(needed <= room, needed * spread, -1)
        best, gpu = int(np.argmax(fitting)), int(np.argmax(free))
        return (best if fitting[best] >= 0 else -1), gpu, free[gpu]

    def fragments(self, free: Int64) -> Floats:
        """Free bytes that a model drawn by popularity cannot use, expected: float64, as `free`.

        ``F = sum over models of popularity x (free if need > free else 0)``: the measure of Weng and others, "Beware
        of Fragmentation" (USENIX ATC 2023), for memory. Each GPU is looked at alone: of a model over several GPUs the
        need is that of its part.
        """
        needed = self.problem.needed
        weight = np.array([m.popularity for m in self.problem.scenario.models], float)
        order = np.argsort(needed, kind="stable")
        below = np.append(0.0, np.cumsum(weight[order]))
        fits = below[np.searchsorted(needed[order], free, "right")]
        share = 1 - fits / below[-1] if below[-1] > 0 else np.zeros(len(free))
        return np.maximum(free, 0) * np.clip(share, 0.0, 1.0)

    def free_over_time(self) -> tuple[Int64, list[Int64]]:
        """Instants at which any reservation changes (0 first), and unreserved bytes of each GPU from then on."""
        reserved = [dict(self._of(g))["reserved"] for g in range(self.problem.scenario.gpus.count)]
        when = distinct(np.concatenate([times for times, _ in reserved]))
        when = when[when < max(self.end_us, 1)]
        free = [self.capacity - level[np.searchsorted(times, when, "right") - 1] for times, level in reserved]
        return when, free

    # ------------------------------------------------------------------ sums over time

    def byte_us(self) -> dict[str, float]:
        """Bytes x us over the run and all GPUs: ``reserved``, ``actual``, ``useful``.

        KV counts as if it grew without steps: of each running task at most one token more than there is, or what it
        generates in a microsecond of service.
        """
        kv, serving = self._kv_byte_us
        copies = self.raw.copies
        need = self.problem.needed * self.problem.spread
        reserved = self._span_sum(copies.claimed_us, self._gone, need[copies.model])
        fixed = self._span_sum(*self._weights[1:]) + self._span_sum(*self.leftovers[1:])
        useful = self._span_sum(*self._serving[1:])
        return {"reserved": reserved, "actual": fixed + kv, "useful": useful + serving}

    def _span_sum(self, start: Int64, end: Int64, amount: Int64) -> float:
        length = np.minimum(end, self.end_us) - np.minimum(start, self.end_us)
        return float(np.dot(length.astype(float), amount.astype(float)))

    @cached_property
    def _kv_byte_us(self) -> tuple[float, float]:
        """KV over the run: of all tasks, and of those that run."""
        rows, tasks = self.raw.stages, self.problem.tasks
        model = tasks.model[rows.task]
        rate = (self.kv_per_token * self.problem.spread)[model].astype(float)
        some = np.flatnonzero((rows.kind != LOAD) & (rows.end_us > self.kv_from) & (rate > 0))
        if not len(some):
            return 0.0, 0.0
        task, kind = rows.task[some], rows.kind[some]
        length = (rows.end_us[some] - self.kv_from[some]).astype(float)
        done = self.progress.before[some] / float(1 << 20) * length
        runs = np.flatnonzero(kind == RUN)
        for k, which in grouped(self.progress.service[some[runs]]):
            mine = runs[which]
            service = self.progress.services[k]
            done[mine] += service.summed(rows.start_us[some[mine]], rows.end_us[some[mine]])
        per_us = tasks.tokens_out[task] / np.maximum(tasks.service_us[task], 1)
        each = rate[some] * (tasks.tokens_in[task] * length + per_us * done)
        return float(each.sum()), float(each[kind == RUN].sum())


def _gaps(key: Int64, start: Int64, end: Int64, over: int) -> tuple[Int64, Int64]:
    """Gaps after spans (sorted by key, then start): from the latest end so far to the next start, or to `over`."""
    reached = _reached(key, end, over)
    following = np.append(start[1:], over)
    following[np.append(key[1:] != key[:-1], True)[: len(key)]] = over
    return reached, np.minimum(following[: len(key)], over)


def _union(key: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Spans (sorted by key, then start) merged: the rows that begin a merged span have it, others start at `NEVER`."""
    if not len(key):
        return start.copy(), end.copy()
    top = int(end.max()) + 1
    reached = _reached(key, end, top)
    new = np.ones(len(key), bool)
    new[1:] = (key[1:] != key[:-1]) | (start[1:] > reached[:-1])
    last = np.append(np.flatnonzero(new)[1:], len(key)) - 1
    merged_start, merged_end = np.full(len(key), NEVER, np.int64), end.copy()
    merged_start[new] = start[new]
    merged_end[new] = reached[last]
    return merged_start, merged_end


def _reached(key: Int64, end: Int64, top: int) -> Int64:
    """The latest end so far within each key (ends are at most `top`)."""
    _, group = np.unique(key, return_inverse=True)
    return np.maximum.accumulate(group * (top + 1) + np.minimum(end, top)) - group * (top + 1)
