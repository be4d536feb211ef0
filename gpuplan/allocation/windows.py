"""What `search` improves at a time: up to 64 GPUs of a plan, as the arrays of its kernels."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from gpuplan.allocation import kernels, search_kernels
from gpuplan.allocation.engine import kernels_for
from gpuplan.allocation.kernels import CAP, COST, LEFT, MAXIMUM, MINIMUM, N_HELD, START
from gpuplan.allocation.policies.base import Assignment
from gpuplan.allocation.problem import Int64, Problem, Words

#: A window is made of two runs of so many GPUs, which need not lie side by side.
HALF = 32

#: The two runs of a cluster of up to 64 GPUs.
WHOLE = (0, 1)


@dataclass(frozen=True, slots=True)
class Ground:
    """What stays the same while plans of a problem are searched.

    Attributes
    ----------
    rank : int64[3, J]
        Orders of all jobs: by what they are worth for their shape, the largest first, the most important first.
    targets : int64[3, R, T]
        GPUs that each app wants (its curve), must keep of those held before step 0, needs at least.
    order : int64[R]
        Apps, the dearest first, of equals the one that can move least.
    alone : tuple
        What `lay` takes of apps that hold nothing outside of the window: GPUs wanted, held at least and at most,
        demanded, acquired and let go at most, int64[R, T] each, and the swap budgets, int64[R].
    """

    rank: Int64
    targets: Int64
    order: Int64
    alone: tuple[Int64, Int64, Int64, Int64, Int64, Int64, Int64]


@lru_cache(maxsize=16)
def ground(problem: Problem) -> Ground:
    """Prepare a problem for the search."""
    from gpuplan.allocation.policies.aware import ORDER, by_worth

    n_jobs = len(problem.jobs)
    jobs = problem.movable
    area = problem.size[jobs] * problem.duration[jobs]
    by_size = np.lexsort(
        (jobs, -problem.duration[jobs], -problem.jobs[jobs, kernels.PRIORITY], -problem.size[jobs])
    )
    by_priority = np.lexsort((jobs, -area, -problem.jobs[jobs, kernels.PRIORITY]))
    rank = np.zeros((3, n_jobs), np.int64)
    rank[0, by_worth(problem, *ORDER)] = np.arange(jobs.size)
    rank[1, jobs[by_size]] = np.arange(jobs.size)
    rank[2, jobs[by_priority]] = np.arange(jobs.size)
    n_apps, steps = problem.demand.shape
    targets = np.zeros((3, n_apps, steps), np.int64)
    after = np.arange(1, steps + 1)
    for r, app in enumerate(problem.apps):
        kernels_for(problem.work).demand_curve(problem.demand[r], app, targets[search_kernels.CURVE, r])
        held = max(int(app[N_HELD]), 0)
        targets[search_kernels.HELD, r] = np.maximum(min(int(app[MINIMUM]), held), held - app[CAP] * after)
        targets[search_kernels.LEAST, r] = app[MINIMUM]
    order = np.lexsort((problem.apps[:, LEFT], problem.apps[:, CAP], -problem.apps[:, COST]))
    caps, most = (np.repeat(problem.apps[:, column, None], steps, axis=1) for column in (CAP, MAXIMUM))
    floor = np.maximum(targets[search_kernels.HELD], targets[search_kernels.LEAST])
    budget = problem.apps[:, LEFT].copy()
    alone = (targets[search_kernels.CURVE], floor, np.maximum(0, most), problem.demand, caps, caps, budget)
    return Ground(rank, targets, order.astype(np.int64), alone)


class Window:
    """A part of a plan that can be improved with everything else as it stands.

    Parameters
    ----------
    problem
    plan
        What is to be improved.
    halves
        The two runs of `HALF` GPUs, by number; for a cluster of up to 64 GPUs 0 and 1: the whole of it.
    unplaced : int64[U]
        Jobs without a place that may get one in the window.
    """

    def __init__(self, problem: Problem, plan: Assignment, halves: tuple[int, int], unplaced: Int64) -> None:
        self.problem = problem
        prepared = ground(problem)
        steps = problem.steps
        hold = _window(plan.hold, halves)
        self.inside = self._jobs_inside(plan, halves, unplaced)
        inside = self.inside
        option = problem.option(plan.size)[inside]
        jobs = problem.jobs[inside].copy()
        sizes = problem.options[option]
        jobs[:, kernels.SIZE] = sizes[:, kernels.O_SIZE]
        jobs[:, kernels.DURATION] = sizes[:, kernels.O_DURATION]
        jobs[:, kernels.PRIORITY] = sizes[:, kernels.O_PRIORITY]
        jobs[:, kernels.LATEST] = sizes[:, kernels.O_LATEST]
        jobs[:, START] = plan.start[inside]
        jobs[:, kernels.FIRST] = _into_window(plan.first_gpu[inside], halves)
        self.halves = halves
        self.jobs = jobs
        self.best_jobs = jobs.copy()
        # one memory layout: the kernels are compiled once
        self.rank = np.ascontiguousarray(prepared.rank[:, inside])
        if problem.gpus > 64:
            self.rank = self.rank.argsort(axis=1).argsort(axis=1)
        self.fits = _fits(problem, halves)
        self.base = self._base(plan, halves)
        self.order = prepared.order.copy()
        self.hold = np.zeros((len(problem.apps), steps + 1), np.uint64)
        self.hold[:, 0] = _window(problem.held, halves)
        self.hold[:, 1:] = hold
        self.best_hold = self.hold.copy()
        self.targets = prepared.targets
        self._apps(plan, hold)
        here = np.bitwise_count(hold).astype(np.int64)
        unmet = np.maximum(0, self.need - here).sum(axis=1)
        ends = np.minimum(jobs[:, START] + jobs[:, kernels.DURATION], steps)
        weighted = jobs[:, kernels.SIZE] * (problem.weight_sum[ends] - problem.weight_sum[jobs[:, START]])
        placed = jobs[:, START] >= 0
        worths = (jobs[:, kernels.PRIORITY] * weighted)[placed]
        total = int(worths.sum()) - int((unmet * problem.apps[:, COST]).sum())
        self.start_worth = total
        self.state = np.array([total, total, 0, 0], np.int64)
        #: Temperatures are counted in what a job of the plan earns on average.
        self.unit = (float(worths.mean()) if worths.size else 0.0) or 1.0  # late work may be worth nothing

    @property
    def gain(self) -> int:
        """By how much the best plan of the window is better than the one it started from."""
        return int(self.state[search_kernels.BEST]) - self.start_worth

    @property
    def behind(self) -> float:
        """By how much the current plan is worse than the best one, in jobs of average worth."""
        return float(self.state[search_kernels.BEST] - self.state[search_kernels.WORTH]) / self.unit

    def _jobs_inside(self, plan: Assignment, halves: tuple[int, int], unplaced: Int64) -> Int64:
        problem = self.problem
        if problem.gpus <= 64:
            return problem.movable
        jobs = problem.movable
        jobs = jobs[plan.start[jobs] >= 0]
        first, last = plan.first_gpu[jobs], plan.first_gpu[jobs] + plan.size[jobs] - 1
        near, far = _place(first, halves), _place(last, halves)
        whole = (near >= 0) & (far >= 0) & (far - near == last - first)
        inside: Int64 = np.concatenate([jobs[whole], unplaced])
        return np.sort(inside)

    def _base(self, plan: Assignment, halves: tuple[int, int]) -> Words:
        """GPUs of the window without those of jobs that do not move."""
        problem = self.problem
        base = _window(problem.base, halves)
        if problem.gpus <= 64:
            return base
        moves = np.zeros(len(problem.jobs), np.bool_)
        moves[self.inside] = True
        others = problem.movable[~moves[problem.movable]]
        others = others[plan.start[others] >= 0]
        for half, shift in zip(halves, (0, HALF), strict=True):
            low = half * HALF
            first, after = plan.first_gpu[others], plan.first_gpu[others] + plan.size[others]
            crossing = others[(first < low + HALF) & (after > low)]
            for j in crossing.tolist():
                a = max(int(plan.first_gpu[j]), low) - low
                b = min(int(plan.first_gpu[j] + plan.size[j]), low + HALF) - low
                cells = np.uint64(((1 << (b - a)) - 1) << (a + shift))
                length = problem.options[problem.option(plan.size)[j], kernels.O_DURATION]
                base[plan.start[j] : plan.start[j] + length] &= ~cells
        return base

    def _apps(self, plan: Assignment, hold: Words) -> None:
        """What apps want, need and may change in the window, given what they hold outside."""
        problem, targets = self.problem, self.targets
        if problem.gpus <= 64:
            self.want, self.floor, self.most, self.need, self.takes, self.lets, self.budget = ground(
                problem
            ).alone
            return
        apps = problem.apps
        steps = problem.steps
        caps = np.repeat(apps[:, CAP : CAP + 1], steps, axis=1)
        outside, taken, let = self._outside(plan, hold)
        floor = np.maximum(targets[search_kernels.HELD], targets[search_kernels.LEAST])
        self.want = np.maximum(0, targets[search_kernels.CURVE] - outside)
        self.floor = np.maximum(0, floor - outside)
        self.most = np.maximum(0, apps[:, MAXIMUM, None] - outside)
        self.need = np.maximum(0, problem.demand - outside)
        self.takes, self.lets = caps - taken, caps - let
        self.budget = apps[:, LEFT] - taken.sum(axis=1)

    def _outside(self, plan: Assignment, hold: Words) -> tuple[Int64, Int64, Int64]:
        """GPUs that each app holds, acquires and lets go outside of the window, int64[R, T] each."""
        problem = self.problem
        whole = np.concatenate([problem.held[:, None, :], plan.hold], axis=1)
        acquired = np.bitwise_count(whole[:, 1:] & ~whole[:, :-1]).sum(axis=2, dtype=np.int64)
        released = np.bitwise_count(whole[:, :-1] & ~whole[:, 1:]).sum(axis=2, dtype=np.int64)
        here = np.concatenate([self.hold[:, :1], hold], axis=1)
        acquired -= np.bitwise_count(here[:, 1:] & ~here[:, :-1]).astype(np.int64)
        released -= np.bitwise_count(here[:, :-1] & ~here[:, 1:]).astype(np.int64)
        unknown = problem.apps[:, kernels.KNOWN] == 0
        acquired[unknown, 0] = released[unknown, 0] = 0
        held = np.bitwise_count(plan.hold).sum(axis=2, dtype=np.int64) - np.bitwise_count(hold)
        return held, acquired, released

    def improve(
        self, moves: int, heat: float, cooling: float, tuning: Int64, logs: Any, chance: Words
    ) -> None:
        """Make moves from the current plan (see `gpuplan.allocation.search_kernels.improve`)."""
        problem = self.problem
        kernels_for(problem.work, search_kernels).improve(
            moves,
            heat * self.unit,
            cooling,
            tuning,
            logs,
            chance,
            self.state,
            self.jobs,
            problem.options,
            self.rank,
            self.fits,
            self.base,
            problem.weight_sum,
            self.order,
            self.want,
            self.floor,
            self.most,
            self.need,
            self.takes,
            self.lets,
            self.budget,
            problem.apps,
            self.hold,
            self.best_jobs,
            self.best_hold,
        )

    def restart(self) -> None:
        """Go on from the best plan."""
        self.jobs[:] = self.best_jobs
        self.state[search_kernels.WORTH] = self.state[search_kernels.BEST]

    def tidy(self) -> None:
        """Start jobs of the best plan earlier where cells are free, and put in what still fits."""
        problem = self.problem
        gain = kernels_for(problem.work, search_kernels).tidy(
            self.best_jobs, problem.options, self.fits, self.base, problem.weight_sum, self.best_hold
        )
        self.state[search_kernels.BEST] += gain

    def written_to(self, plan: Assignment) -> Assignment:
        """The plan with the best plan of the window in it."""
        inside, best = self.inside, self.best_jobs
        start, first, size, hold = (
            plan.start.copy(),
            plan.first_gpu.copy(),
            plan.size.copy(),
            plan.hold.copy(),
        )
        start[inside] = best[:, START]
        first[inside] = np.where(best[:, START] >= 0, _out_of_window(best[:, kernels.FIRST], self.halves), -1)
        size[inside] = best[:, kernels.SIZE]
        _write(hold, self.best_hold[:, 1:], self.halves)
        return Assignment(start, first, size, hold, plan.worth + self.gain)


def _chunks(words: Words) -> Any:
    """The same bits as runs of `HALF` GPUs: the last axis twice as long."""
    return np.ascontiguousarray(words).astype("<u8", copy=False).view("<u4")


def _window(words: Words, halves: tuple[int, int]) -> Words:
    """The bits of the window, without the last axis."""
    if words.shape[-1] == 1 and halves == WHOLE:
        return words[..., 0].copy()
    chunks = _chunks(words)
    low = chunks[..., halves[0]].astype(np.uint64)
    high = chunks[..., halves[1]].astype(np.uint64)
    joined: Words = low | (high << np.uint64(HALF))
    return joined


def _write(words: Words, window: Words, halves: tuple[int, int]) -> None:
    """Put the bits of a window back (``words`` is overwritten)."""
    if words.shape[-1] == 1 and halves == WHOLE:
        words[..., 0] = window
        return
    for half, shift in zip(halves, (0, HALF), strict=True):
        w, place = half // 2, np.uint64(half % 2 * HALF)
        part = (window >> np.uint64(shift)) & np.uint64(0xFFFFFFFF)
        words[..., w] = (words[..., w] & ~(np.uint64(0xFFFFFFFF) << place)) | (part << place)


def _place(gpu: Int64, halves: tuple[int, int]) -> Int64:
    """Places of GPUs in the window, -1 outside."""
    half, within = gpu // HALF, gpu % HALF
    place = np.where(half == halves[0], within, np.where(half == halves[1], HALF + within, -1))
    return np.where(gpu < 0, -1, place)


def _into_window(gpu: Int64, halves: tuple[int, int]) -> Int64:
    return gpu if halves == WHOLE else _place(gpu, halves)


def _out_of_window(place: Int64, halves: tuple[int, int]) -> Int64:
    if halves == WHOLE:
        return place
    return np.where(place < HALF, halves[0] * HALF + place, halves[1] * HALF + place - HALF)


def _fits(problem: Problem, halves: tuple[int, int]) -> Words:
    """First places of blocks of ``2**c`` in the window; none across the seam of halves that lie apart."""
    fits = _window(problem.allowed, halves)
    if halves == WHOLE and problem.gpus <= 64:
        return fits
    for c in range(fits.size):
        n = 1 << c
        cells = (1 << 64) - 1
        if halves[1] != halves[0] + 1:
            inside = (1 << max(0, HALF - n + 1)) - 1
            cells = inside | inside << HALF
        else:
            cells = (1 << max(0, 2 * HALF - n + 1)) - 1
        fits[c] &= np.uint64(cells)
    return fits
