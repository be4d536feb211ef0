"""Anytime search: ruin and recreate from the plan of `aware`, for a budget of time or of moves."""

import math
import time
from collections.abc import Callable, Mapping

import numpy as np

from gpuplan.allocation import search_kernels
from gpuplan.allocation.kernels import COST, PRIORITY
from gpuplan.allocation.outline import Outline
from gpuplan.allocation.policies import aware
from gpuplan.allocation.policies.base import Assignment, Effort, Policy
from gpuplan.allocation.problem import Int64, Problem, Words
from gpuplan.allocation.windows import HALF, WHOLE, Window


def _tuning(entries: Mapping[int, int]) -> Int64:
    tuning = np.zeros(search_kernels.ENTRIES, np.int64)
    for entry, value in entries.items():
        tuning[entry] = value
    return tuning


#: What the kernel `schedule` does how often (see `gpuplan.allocation.search_kernels`): found by random search and by
#: comparison over generated days, none of them shipped.
SCHEDULE = _tuning(
    {
        search_kernels.FORCE: 133,
        search_kernels.SPAN: 226,
        search_kernels.BAND: 960,
        search_kernels.SHARE: 200,
        search_kernels.SPAN_LENGTH: 900,
        search_kernels.BAND_LEAST: 1023,
        search_kernels.LITTLE_DISORDER: 190,
        search_kernels.MUCH_DISORDER: 535,
        search_kernels.BY_SIZE: 69,
        search_kernels.LITTLE_SLACK: 60,
        search_kernels.MUCH_SLACK: 80,
        search_kernels.OUTBID: 31,
        search_kernels.OVERDRAW: 43,
        search_kernels.BLINK: 20,
        search_kernels.BY_PRIORITY: 200,
        search_kernels.BOLD: 120,
        search_kernels.BOLD_MOST: 1,
    }
)

#: The same for the kernel `improve`.
PLACES = _tuning(
    {
        search_kernels.FORCE_UNPLACED: 70,
        search_kernels.FORCE: 167,
        search_kernels.SPAN: 219,
        search_kernels.BAND: 1023,
        search_kernels.FEW: 1,
        search_kernels.SPAN_LENGTH: 899,
        search_kernels.BAND_HEIGHT: 883,
        search_kernels.LITTLE_DISORDER: 9,
        search_kernels.MUCH_DISORDER: 834,
        search_kernels.BY_SIZE: 76,
        search_kernels.LITTLE_SLACK: 142,
        search_kernels.MUCH_SLACK: 163,
        search_kernels.OUTBID: 14,
        search_kernels.OVERDRAW: 39,
        search_kernels.BLINK: 31,
        search_kernels.NOISE: 4,
        search_kernels.BEFORE: 4,
        search_kernels.AFTER: 4,
        search_kernels.APP_ORDER: 61,
        search_kernels.BY_PRIORITY: 300,
        search_kernels.KEEP: 307,
        search_kernels.KEEP_DISORDER: 409,
        search_kernels.KEEP_NOISE: 16,
    }
)

#: Temperatures at the start and the end of a round, in what a job earns on average.
SCHEDULE_HEAT = (0.35, 0.01054)
PLACES_HEAT = (0.0178, 0.00124)

#: Share of a round for the starts; of the rest, where places were found for all of them, for more of the same.
STARTS_SHARE = 0.45
MORE_STARTS = 0.7

#: Exchanges that are tried at most, for each move of the starts.
EXCHANGES = 4

#: Moves of the first round, where moves are counted; every other round has twice as many as the one before.
ROUND = 1_000

#: The first round where time is counted, in seconds.
ROUND_S = 2e-3

#: In every other round unmet demand costs only these shares at first, for so much of the time for the starts.
CHEAP = (0.6, 0.4, 0.8)
CHEAP_SHARE = 0.4

#: A plan that is so many average jobs behind the best one is not gone on from.
LOSS = 1.5

#: Moves in a window of a large cluster, and jobs without a place that are tried in it.
WINDOW_MOVES = 400
WINDOW_JOBS = 24

LOGS = np.array([round(-math.log((i + 0.5) / 1024), 9) for i in range(search_kernels.PARTS)])

#: Moves of a kernel call between two looks at the clock: at first, and at most that part of a stage.
FIRST_MOVES = 32
PART = 0.125

Stage = Callable[[int, float, float], None]


def run(problem: Problem, effort: Effort) -> Assignment:
    """Improve the plan of ``aware`` for `Effort.iterations` moves, or else `Effort.budget_ms`.

    Rounds of three stages: when jobs run (only the number of free GPUs counts; then jobs change places in pairs),
    where they run at those times, then both together on the grid. The best plan seen is kept: never worse than
    ``aware``. A cluster of more than 64 GPUs is improved two runs of 32 GPUs at a time.
    """
    purse: _Moves | _Time = _Time(effort.budget_ms / 1000)
    plan = aware.run(problem, effort)
    if not problem.movable.size:
        return plan
    seed = effort.seed
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(1 << 63))
    chance = _chance(seed)
    if effort.iterations is not None:
        purse = _Moves(effort.iterations)
    if problem.gpus > 2 * HALF:
        return _in_windows(problem, plan, purse, chance)
    return _as_a_whole(problem, plan, purse, chance)


def iterations_for(problem: Problem) -> int:
    """Moves of plans that must repeat exactly and come at once.

    They take 1.5 to 3 ms on days of up to 16 GPUs x 24 steps, 5 ms on 64 GPUs x 48 steps (2 cores of 2026).
    """
    per_move = 0.35 + 0.02 * problem.movable.size + 0.015 * problem.steps
    return max(50, int(1_700 / per_move))


class _Moves:
    """A number of moves to spend: the same moves at every run."""

    def __init__(self, moves: int) -> None:
        self.left = moves
        self.size = self.round = ROUND

    @property
    def empty(self) -> bool:
        return self.left <= 0

    def next_round(self, window: bool = False) -> None:
        """Set the size of the next round: of a window, or of the whole, which doubles every time."""
        size = WINDOW_MOVES if window else self.round
        self.size = self.left if self.left < 1.5 * size else size  # no short round at the end
        self.round *= 2

    def spend(self, share: float, stage: Stage, heat: tuple[float, float]) -> int:
        """Give a stage its share of the round, cooling down from the first temperature to the second; moves made."""
        moves = min(self.left, max(1, round(self.size * share)))
        if moves <= 0:
            return 0
        self.left -= moves
        stage(moves, heat[0], (heat[1] / heat[0]) ** (1 / moves))
        return moves


class _Time:
    """Time of this thread to spend: kernel calls so short that the budget is met.

    Processor time, so that a busy machine takes longer and plans no worse; but not much longer.
    """

    def __init__(self, budget: float) -> None:
        self.end = time.thread_time() + budget
        self.latest = time.perf_counter() + 2 * budget + 0.02
        self.size = self.round = ROUND_S

    @property
    def empty(self) -> bool:
        return time.thread_time() >= self.end or time.perf_counter() >= self.latest

    def next_round(self, window: bool = False) -> None:
        """Set the length of the next round: of a window, or of the whole, which doubles every time."""
        length = ROUND_S if window else self.round
        left = self.end - time.thread_time()
        self.size = left if left < 1.5 * length else length
        self.round *= 2

    def spend(self, share: float, stage: Stage, heat: tuple[float, float]) -> int:
        """Give a stage its share of the round, cooling down from the first temperature to the second; moves made."""
        began = time.thread_time()
        length = min(self.size * share, self.end - began)
        at, moves, used, made = 0.0, FIRST_MOVES, 0.0, 0
        fall = heat[1] / heat[0]
        while at < 1.0 and length > 0:
            step = min(1.0 - at, used if used else PART)
            before = time.thread_time()
            stage(moves, heat[0] * fall**at, fall ** (step / moves))
            made += moves
            now = time.thread_time()
            if time.perf_counter() >= self.latest:
                break
            used = (now - before) / length
            at = (now - began) / length
            rate = moves / max(1e-7, now - before)
            # never far beyond the end, never so short that calls cost more than moves
            moves = max(8, int(rate * length * min(PART, max(0.0, 1.0 - at))))
        return made


def _chance(seed: int) -> Words:
    """Where the random numbers of a seed begin: splitmix64 (Steele, Lea and Flood, 2014), never 0."""
    x = (seed + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return np.array([(x ^ (x >> 31)) | 1], np.uint64)


def _as_a_whole(problem: Problem, plan: Assignment, purse: _Moves | _Time, chance: Words) -> Assignment:
    window = Window(problem, plan, WHOLE, problem.movable)
    outline = Outline(window)
    tuning = _places(problem.gpus)

    def starts(moves: int, heat: float, cooling: float) -> None:
        outline.improve(moves, heat, cooling, SCHEDULE, LOGS, chance)

    def places(moves: int, heat: float, cooling: float) -> None:
        window.improve(moves, heat, cooling, tuning, LOGS, chance)

    def cheaply(moves: int, heat: float, cooling: float) -> None:
        outline.improve(moves, heat, cooling, SCHEDULE, LOGS, chance, cheap)

    cheap = problem.apps.copy()
    number = 0
    while not purse.empty:
        purse.next_round()
        outline.forget()
        share, heat = STARTS_SHARE, SCHEDULE_HEAT
        if number % 2 == 1 and len(cheap):
            # plans that leave demand unmet on purpose lie behind worse ones: make unmet demand cheap first
            cheap[:, COST] = (problem.apps[:, COST] * CHEAP[number // 2 % len(CHEAP)]).astype(np.int64)
            purse.spend(CHEAP_SHARE * share, cheaply, heat)
            outline.go_on_from_best()
            share, heat = (1 - CHEAP_SHARE) * share, (heat[0] / 4, heat[1])
        number += 1
        made = purse.spend(share, starts, heat)
        outline.exchange(EXCHANGES * made, chance)
        rest = 1 - STARTS_SHARE
        if outline.place(tuning, LOGS, chance):
            # nothing was lost on the way from starts to places: better starts are what is missing
            made = purse.spend(MORE_STARTS * rest, starts, heat)
            outline.exchange(EXCHANGES * made, chance)
            outline.place(tuning, LOGS, chance)
            rest *= 1 - MORE_STARTS
        if window.behind > LOSS:
            window.restart()
        purse.spend(rest, places, PLACES_HEAT)
    window.tidy()
    return window.written_to(plan)


def _in_windows(problem: Problem, plan: Assignment, purse: _Moves | _Time, chance: Words) -> Assignment:
    draw = np.random.default_rng(int(chance[0]))
    n_halves = -(-problem.gpus // HALF)
    tuning = _places(2 * HALF)
    while not purse.empty:
        a, b = draw.choice(n_halves, 2, replace=False).tolist()
        if draw.random() < 0.5:
            b = a + 1 if a + 1 < n_halves else a - 1
        window = Window(problem, plan, (min(a, b), max(a, b)), _some_unplaced(problem, plan, draw))
        purse.next_round(window=True)

        def places(moves: int, heat: float, cooling: float, window: Window = window) -> None:
            window.improve(moves, heat, cooling, tuning, LOGS, chance)

        if window.inside.size:
            purse.spend(1.0, places, PLACES_HEAT)
        window.tidy()
        plan = window.written_to(plan)
    return plan


def _some_unplaced(problem: Problem, plan: Assignment, draw: np.random.Generator) -> Int64:
    """Jobs without a place that may get one: rather those that are worth much."""
    jobs = problem.movable[plan.start[problem.movable] < 0]
    if jobs.size <= WINDOW_JOBS:
        return jobs
    worth = problem.jobs[jobs, PRIORITY].astype(float)
    picked = draw.choice(jobs.size, WINDOW_JOBS, replace=False, p=worth / worth.sum())
    some: Int64 = jobs[picked]
    return some


def _places(gpus: int) -> Int64:
    tuning = PLACES.copy()
    tuning[search_kernels.GPUS] = gpus
    return tuning


POLICY = Policy(
    "search",
    "The plan of aware, improved for a few milliseconds: jobs are taken out and put in again, first in time, then on "
    "the grid, apps are laid anew around them, and the best plan is kept.",
    run,
)
