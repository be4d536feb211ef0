"""How much service tasks had at any instant, recomputed from their stages and the model of contention."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import Bools, Contention, Floats, Int64
from gpuplan.packing.raw import RUN, SAVE

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
    """What one task would get that ran on a GPU all the time: piecewise linear, from the `RUN` stages on it.

    All tasks that run on a GPU go at one speed, so that what a task got is a difference of two values of this. Values
    may wrap around 64 bits; differences do not.

    Attributes
    ----------
    time_us : int64[K]
        Instants at which the number of running tasks changes; the first is 0.
    running, speed : int64[K]
        From then on.
    """

    def __init__(self, contention: Contention, start_us: Int64, end_us: Int64) -> None:
        when = np.concatenate([start_us, end_us])
        change = np.concatenate([np.ones(len(start_us), np.int64), np.full(len(end_us), -1, np.int64)])
        self.time_us, level = steps(when, change)
        self.running = level
        self.speed = speeds(contention, level)
        got = np.diff(self.time_us) * self.speed[:-1]
        self._sum: Int64 = np.concatenate([[0], np.cumsum(got)]).astype(np.int64)

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
    """

    def __init__(self, problem: "Problem", raw: "RawPack") -> None:
        scenario, rows = problem.scenario, raw.stages
        self.rows = rows
        self.service_us = problem.tasks.service_us[rows.task]
        runs = (rows.kind == RUN) & (rows.end_us > rows.start_us)
        self.gpus: list[Service] = []
        self.gained: Int64 = np.zeros(len(rows), np.int64)
        for g in range(scenario.gpus.count):
            mine = np.flatnonzero(runs & (rows.gpu == g))
            gpu = Service(scenario.contention, rows.start_us[mine], rows.end_us[mine])
            self.gained[mine] = gpu.at(rows.end_us[mine]) - gpu.at(rows.start_us[mine])
            self.gpus.append(gpu)
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
        rows = self.rows
        done = self.before[stage].copy()
        running: Bools = rows.kind[stage] == RUN
        for g, gpu in enumerate(self.gpus):
            mine = np.flatnonzero(running & (rows.gpu[stage] == g))
            done[mine] += gpu.at(t[mine]) - gpu.at(rows.start_us[stage[mine]])
        most: Int64 = self.service_us[stage] << _SHIFT
        return np.minimum(done, most)


def whole_us(done: Int64) -> Int64:
    """Whole microseconds of service."""
    return done >> _SHIFT


def generated(tokens_out: Int64, done: Int64, service_us: Int64) -> Int64:
    """Tokens that tasks had generated: ``floor(tokens_out x done / service)``; none of work without length."""
    return tokens_out * whole_us(done) // np.maximum(service_us, 1)
