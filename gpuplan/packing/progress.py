"""How much service tasks had at any instant, recomputed from their stages and the model of contention."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import Contention, Floats, Int64
from gpuplan.packing.raw import RUN, SAVE
from gpuplan.packing.spread import sets_of, spans, stages_on

if TYPE_CHECKING:
    from gpuplan.packing.problem import Problem
    from gpuplan.packing.raw import RawPack

#: Service is counted in 1 / SCALE microseconds of time alone on a GPU.
SCALE = 1 << 20

_SHIFT = 20


def speeds(contention: Contention, running: Int64) -> Int64:
    """Service in 1 / `SCALE` us per us that each of so many running tasks of a GPU gets, at least 1."""
    n = np.maximum(running, 1)
    if contention.model == "sharing":
        shared: Int64 = np.maximum(SCALE // n, 1)
        return shared
    if contention.model == "slowdown":
        found = np.floor(SCALE / (1.0 + contention.beta * (n - 1)))
        return np.maximum(found.astype(np.int64), 1)
    return np.full(n.shape, SCALE, np.int64)


class Service:
    """What one task would get that ran on a GPU (or a set of them) all the time: piecewise linear.

    All tasks that run on a GPU go at one speed, so that what a task got is a difference of two values of this. Values
    may wrap around 64 bits; differences do not.

    Attributes
    ----------
    time_us : int64[K]
        Instants at which the number of running tasks changes; the first is 0.
    running, speed : int64[K]
        From then on.
    """

    def __init__(self, time_us: Int64, running: Int64, speed: Int64) -> None:
        self.time_us, self.running, self.speed = time_us, running, speed
        got = np.diff(time_us) * speed[:-1]
        self._sum: Int64 = np.concatenate([[0], np.cumsum(got)]).astype(np.int64)

    @classmethod
    def of_runs(cls, contention: Contention, start_us: Int64, end_us: Int64) -> "Service":
        """Service on a GPU with these runs, from starts to ends."""
        when = np.concatenate([start_us, end_us])
        change = np.concatenate([np.ones(len(start_us), np.int64), np.full(len(end_us), -1, np.int64)])
        time_us, running = steps(when, change)
        return cls(time_us, running, speeds(contention, running))

    @classmethod
    def least_of(cls, gpus: "Sequence[Service]", start_us: Int64, end_us: Int64) -> "Service":
        """Service at the least speed of some GPUs, right inside runs from starts to ends (what is between is not)."""
        start, end = merged(start_us, end_us)
        kept = [np.zeros(1, np.int64), start, end]
        for gpu in gpus:
            first = np.searchsorted(gpu.time_us, start, "right")
            row, within = spans(np.searchsorted(gpu.time_us, end, "left") - first)
            kept.append(gpu.time_us[first[row] + within])
        time_us = distinct(np.concatenate(kept))
        at = [np.searchsorted(gpu.time_us, time_us, "right") - 1 for gpu in gpus]
        running, speed = (
            np.min([getattr(gpu, name)[k] for gpu, k in zip(gpus, at, strict=True)], axis=0)
            for name in ("running", "speed")
        )
        return cls(time_us, running, speed)

    def at(self, t: Int64) -> Int64:
        """Service from 0 to instants, in 1 / `SCALE` us."""
        k = np.searchsorted(self.time_us, t, "right") - 1
        return self._sum[k] + (t - self.time_us[k]) * self.speed[k]

    def summed(self, start_us: Int64, end_us: Int64) -> Floats:
        """What each of some stages of running had got since its start, summed over its instants: us x us."""
        busy = self.running > 0
        k = np.arange(len(busy))
        # counted from the start of each busy period, so that differences keep their digits
        first = np.maximum.accumulate(np.where(busy & ~np.append(False, busy[:-1]), k, 0))
        begun = np.where(busy, self._sum - self._sum[first], 0) / SCALE
        speed = np.where(busy, self.speed, 0) / SCALE
        length = np.append(np.diff(self.time_us), 0).astype(float)
        whole = np.cumsum(length * begun + speed * length * (length - 1) / 2)
        whole = np.append(0.0, whole[:-1])

        def until(t: Int64, j: Int64) -> Floats:
            past = (t - self.time_us[j]).astype(float)
            found: Floats = whole[j] + past * begun[j] + speed[j] * past * (past - 1) / 2
            return found

        at_start = np.searchsorted(self.time_us, start_us, "right") - 1
        at_end = np.searchsorted(self.time_us, end_us - 1, "right") - 1
        had = begun[at_start] + speed[at_start] * (start_us - self.time_us[at_start])
        return until(end_us, at_end) - until(start_us, at_start) - had * (end_us - start_us)


def steps(when: Int64, change: Int64) -> tuple[Int64, Int64]:
    """A sum of changes over time: distinct instants (0 first), and the level from each of them on."""
    times, at = np.unique(np.append(0, when), return_inverse=True)
    sums = np.zeros(len(times), np.int64)
    np.add.at(sums, at, np.append(0, change))
    return times.astype(np.int64), np.cumsum(sums)


def merged(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Spans as those that neither overlap nor touch, in order."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    new = np.append(True, start[1:] > end[:-1])[: len(start)]
    return start[new], end[np.append(new[1:], True)[: len(end)]]


def grouped(keys: Int64) -> Iterator[tuple[int, Int64]]:
    """Each key that there is, with its rows in order."""
    order = np.argsort(keys, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        if len(rows):
            yield int(keys[rows[0]]), rows


def distinct(values: Int64) -> Int64:
    """Distinct values in order (``numpy.unique`` hashes, which takes longer for instants)."""
    ordered = np.sort(values)
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    found: Int64 = ordered[new]
    return found


class Progress:
    """What tasks had done at any instant of a run.

    Attributes
    ----------
    before : int64[S]
        Service that the task of a stage had in this attempt when the stage began, 1 / `SCALE` us.
    gained : int64[S]
        Service in the stage.
    gpus : list of Service
    services : list of Service
        Those of the GPUs, then those of each set of several GPUs over which a copy was spread: a task goes at the least
        speed of its GPUs.
    service : int64[S]
        Which of them a stage has.
    """

    def __init__(self, problem: "Problem", raw: "RawPack") -> None:
        scenario, rows = problem.scenario, raw.stages
        self.rows = rows
        self.service_us = problem.tasks.service_us[rows.task]
        runs = (rows.kind == RUN) & (rows.end_us > rows.start_us)
        on, gpu = stages_on(raw)
        lasting = runs[on]
        on, gpu = on[lasting], gpu[lasting]
        self.gpus: list[Service] = []
        for g in range(scenario.gpus.count):
            mine = on[gpu == g]
            self.gpus.append(Service.of_runs(scenario.contention, rows.start_us[mine], rows.end_us[mine]))
        self.services = list(self.gpus)
        self.service: Int64 = rows.gpu.copy()
        of_copy, sets = sets_of(raw.copies)
        for k, mine in grouped(of_copy[rows.copy]) if sets else ():
            if k >= 0:
                self.service[mine] = len(self.services)
                mine = mine[runs[mine]]
                spread = [self.gpus[g] for g in sets[k]]
                self.services.append(Service.least_of(spread, rows.start_us[mine], rows.end_us[mine]))
        self.gained: Int64 = np.zeros(len(rows), np.int64)
        some = np.flatnonzero(runs)
        self.gained[some] = self.service_of(some, rows.end_us[some])
        self.before = self._before()

    def _before(self) -> Int64:
        """Sums of what earlier stages of the same attempt gained; only tasks that were ever saved have any."""
        rows = self.rows
        found = np.zeros(len(rows), np.int64)
        if not len(rows):
            return found
        saved = np.zeros(int(rows.task.max()) + 1, bool)
        saved[rows.task[rows.kind == SAVE]] = True
        some = np.flatnonzero(saved[rows.task])
        order = some[np.lexsort((some, rows.attempt[some], rows.task[some]))]
        gained = self.gained[order]
        so_far = np.cumsum(gained) - gained
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(rows.task[order]) != 0) | (np.diff(rows.attempt[order]) != 0)
        first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        found[order] = so_far - so_far[first] if len(order) else so_far
        return found

    def at(self, stage: Int64, t: Int64) -> Int64:
        """Service in 1 / `SCALE` us that the tasks of stages had at instants inside them, at most all of it."""
        done: Int64 = self.before[stage] + self.service_of(stage, t)
        most: Int64 = self.service_us[stage] << _SHIFT
        return np.minimum(done, most)

    def service_of(self, stage: Int64, t: Int64) -> Int64:
        """Service in 1 / `SCALE` us from the start of stages to instants; not cut off at all of it, 0 but for `RUN`."""
        rows = self.rows
        found = np.zeros(len(stage), np.int64)
        runs = np.flatnonzero(rows.kind[stage] == RUN)
        for k, which in grouped(self.service[stage[runs]]):
            mine = runs[which]
            service = self.services[k]
            found[mine] = service.at(t[mine]) - service.at(rows.start_us[stage[mine]])
        return found


def whole_us(done: Int64) -> Int64:
    """Whole microseconds of service."""
    return done >> _SHIFT


def generated(tokens_out: Int64, done: Int64, service_us: Int64) -> Int64:
    """Tokens that tasks had generated: ``floor(tokens_out x done / service)``; none of work without length."""
    return tokens_out * whole_us(done) // np.maximum(service_us, 1)
