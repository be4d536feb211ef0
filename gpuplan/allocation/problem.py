"""A scenario as arrays: what the kernels are given, in exact integers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.allocation.kernels import (
    DURATION,
    EARLIEST,
    FIRST,
    O_DURATION,
    O_LATEST,
    O_PRIORITY,
    O_SIZE,
    SIZE,
)
from gpuplan.allocation.model import AllocationScenario, BatchJob

Int64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

#: Stands for "no cap" and "no budget": larger than any number of swaps, small enough to multiply.
UNLIMITED = 1 << 40

#: Value is counted in priority (three decimals) x weight (six decimals) x GPU-steps.
UNITS_PER_STEP = 10**9

_KERNEL_LIMIT = 1 << 62


# equal only to itself: what is prepared for a problem can be kept by it
@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """The arrays of an allocation scenario (shapes as in `gpuplan.allocation.kernels`).

    `options` has a row for every size that a job may run on (one for most), ascending, with the columns
    `O_SIZE`, `O_DURATION`, `O_PRIORITY` and `O_LATEST`, which mean what `SIZE` ... `LATEST` mean in `jobs`
    (`O_LATEST` -1: this size never fits); the rows of job ``j`` are ``first_option[j] .. first_option[j + 1] - 1``.
    `jobs` itself has the smallest size that fits. `milli` is the stated priority of each job in thousandths.

    A job whose size is a decision earns for its work, not for the GPUs it holds: on ``n`` GPUs for ``d``
    steps each GPU-step earns ``priority x work / (n x d)``, rounded once to three decimals
    (`option_milli`), so that neither bad scaling nor rounding up to whole steps makes a size worth more.

    The columns `PRIORITY` of `jobs` and `COST` of `apps` share one unit, divided by whatever they have
    in common (and rounded where the largest possible objective would not fit 64 bits): good for
    comparing plans, while figures are counted from `option_milli`, `weight_sum` and `cost_units`, which are exact.
    """

    scenario: AllocationScenario
    gpus: int
    steps: int
    available: Words
    base: Words
    jobs: Int64
    allowed: Words
    weight_sum: Int64
    demand: Int64
    apps: Int64
    held: Words
    options: Int64
    first_option: Int64
    option_milli: tuple[int, ...]
    cost_units: tuple[int, ...]
    set_aside: dict[str, str]
    movable: Int64
    milli: Int64

    @property
    def weight(self) -> Int64:
        """Value weight of each step in millionths."""
        return np.diff(self.weight_sum)

    @property
    def work(self) -> int:
        """Jobs and apps x steps x words of GPUs: what a pass over the grid costs grows with it."""
        return (len(self.jobs) + len(self.apps)) * self.steps * self.available.size

    @property
    def size(self) -> Int64:
        """GPUs of each job, int64[J]."""
        return self.jobs[:, SIZE]

    @property
    def duration(self) -> Int64:
        """Steps of each job, int64[J]."""
        return self.jobs[:, DURATION]

    @property
    def earliest(self) -> Int64:
        """First step at which each job may start, int64[J]."""
        return self.jobs[:, EARLIEST]

    def option(self, size: Int64) -> Int64:
        """The row of `options` of each job on ``size`` [J] GPUs (one of its sizes), int64[J]."""
        level = np.bitwise_count(size - 1).astype(np.int64)
        smallest = np.bitwise_count(self.options[self.first_option[:-1], O_SIZE] - 1).astype(np.int64)
        rows: Int64 = self.first_option[:-1] + level - smallest
        return rows

    def gain(self, option: int, start: int) -> int:
        """What a job earns with a row of `options` from a step on, in exact units (see `hours`)."""
        size, duration, _, _ = self.options[option].tolist()
        end = min(self.steps, start + duration)
        weight = int(self.weight_sum[end] - self.weight_sum[start])
        return self.option_milli[option] * int(size) * weight

    @property
    def inherited(self) -> int:
        """What work that runs already earns, in exact units."""
        running = np.flatnonzero(self.running >= 0).tolist()
        return sum(self.gain(int(self.first_option[j]), 0) for j in running)

    def hours(self, units: int) -> float:
        """Exact units (priority in thousandths x weight in millionths x GPU-steps) as priority-weighted GPU-hours.

        One division of whole numbers: correctly rounded, the same on every machine.
        """
        return units * self.scenario.horizon.step_s / (3600 * UNITS_PER_STEP)

    @property
    def running(self) -> Int64:
        """First GPU of inherited work, -1 for other jobs, int64[J]."""
        return self.jobs[:, FIRST]


def weights(steps: int, step_hours: float, half_life_hours: float | None) -> list[int]:
    """Value weight of each step in millionths: ``0.5 ** (step x step_hours / half_life_hours)``."""
    if half_life_hours is None:
        return [10**6] * steps
    return [round(0.5 ** (step * step_hours / half_life_hours) * 10**6) for step in range(steps)]


def to_words(gpus: Any, n_words: int) -> Words:
    """A set of GPU numbers as bits."""
    words = np.zeros(n_words, np.uint64)
    for gpu in gpus:
        words[gpu // 64] |= np.uint64(1 << (gpu % 64))
    return words


def as_int(words: Words) -> int:
    """A set of GPUs in words as one whole number, bit ``g`` for GPU ``g``."""
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


def side_by_side(free: int, allowed: int, n: int) -> int:
    """The most blocks of ``n`` GPUs that fit into ``free``, each from one of ``allowed`` (both as bits).

    The lowest block first is never wrong.
    """
    count = first = 0
    whole = (1 << n) - 1
    top = free.bit_length()
    while first + n <= top:
        if allowed >> first & 1 and free >> first & whole == whole:
            count += 1
            first += n
        else:
            first += 1
    return count


def span_words(first: int, n: int, n_words: int) -> Words:
    """The GPUs ``first .. first + n - 1`` as bits."""
    bits = np.zeros(n_words * 64, np.uint8)
    bits[first : first + n] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


@lru_cache(maxsize=16)
def compile_problem(scenario: AllocationScenario) -> Problem:
    """Turn a valid scenario into arrays (not to be written to); jobs that can never fit are set aside with a reason."""
    cluster, horizon = scenario.cluster, scenario.horizon
    n_words = -(-cluster.gpus // 64)
    steps = horizon.steps
    jobs, apps = scenario.batch, scenario.realtime
    available = span_words(0, cluster.gpus, n_words) & ~to_words(cluster.unavailable, n_words)
    allowed = _allowed(scenario, n_words)
    earliest = np.array([scenario.steps_of(job.earliest_hour) for job in jobs], np.int64)
    running = np.array([-1 if job.running_on is None else job.running_on for job in jobs], np.int64)
    weight = weights(steps, horizon.step_hours, scenario.objective.half_life_hours)
    weight_sum = np.array([0, *weight], np.int64).cumsum()
    demand = np.array([app.demand for app in apps], np.int64).reshape(len(apps), steps)
    penalty_micro = round(scenario.objective.shortfall_penalty * 10**6)
    cost_units = tuple(round(app.priority * 1000) * penalty_micro for app in apps)
    fits = _Fits(scenario, available, allowed)
    sizes, option_milli, set_aside, first_option, chosen = [], [], {}, [0], []
    for job in jobs:
        reasons = []
        for gpus in job.sizes:
            n_steps = scenario.steps_of(job.hours_on(gpus))
            reasons.append(fits.reason(job, gpus, n_steps))
            latest = -1 if reasons[-1] else steps - (n_steps if scenario.rules.must_finish else 1)
            sizes.append((gpus, n_steps, 0, latest))
            option_milli.append(_milli_per_gpu_step(job, gpus, n_steps, horizon.step_s))
        chosen.append(first_option[-1] + (reasons.index(None) if None in reasons else 0))
        first_option.append(len(sizes))
        if None not in reasons:
            set_aside[job.name] = str(reasons[0])
    capacity = cluster.gpus * int(weight_sum[-1])
    largest = max(option_milli, default=0) * capacity
    largest += sum(cost * int(row.sum()) for cost, row in zip(cost_units, demand, strict=True))
    priority, cost = _kernel_units(tuple(option_milli), cost_units, largest)
    options = np.array(sizes, np.int64).reshape(-1, 4)
    options[:, O_PRIORITY] = priority
    movable = [j for j, job in enumerate(jobs) if job.running_on is None and job.name not in set_aside]
    base = np.repeat(available[None, :], steps, axis=0)
    table = options[chosen]
    for j in np.flatnonzero(running >= 0):
        base[: table[j, O_DURATION]] &= ~span_words(running[j], table[j, O_SIZE], n_words)
    start = np.where(running >= 0, 0, -1)
    offsets = np.array(first_option, np.int64)
    columns = (
        table[:, O_SIZE],
        table[:, O_DURATION],
        earliest,
        table[:, O_LATEST],
        table[:, O_PRIORITY],
        start,
        running,
        offsets[:-1],
        np.diff(offsets),
    )
    return Problem(
        scenario=scenario,
        gpus=cluster.gpus,
        steps=steps,
        available=available,
        base=base,
        jobs=np.stack(columns, axis=1),
        allowed=allowed,
        weight_sum=weight_sum,
        demand=demand,
        apps=_app_table(scenario, cost),
        held=np.array([to_words(app.held or (), n_words) for app in apps], np.uint64).reshape(-1, n_words),
        options=options,
        first_option=offsets,
        option_milli=tuple(option_milli),
        cost_units=cost_units,
        set_aside=set_aside,
        movable=np.array(movable, np.int64),
        milli=_numbers(round(job.priority * 1000) for job in jobs),
    )


def _milli_per_gpu_step(job: BatchJob, gpus: int, n_steps: int, step_s: int) -> int:
    """What a GPU-step earns at weight 1, in thousandths of a priority-weighted GPU-step."""
    milli = round(job.priority * 1000)
    if job.max_gpus is None:
        return milli
    work = Fraction(job.gpu_hours) * 3600 / step_s
    return max(1, round(milli * work / (gpus * n_steps)))


def _app_table(scenario: AllocationScenario, cost: Int64) -> Int64:
    rows = [
        (
            UNLIMITED if app.max_swap is None else app.max_swap,
            app.min_gpus,
            scenario.cluster.gpus if app.max_gpus is None else app.max_gpus,
            UNLIMITED if app.swap_budget is None else app.swap_budget,
            app.held is not None,
            -1 if app.held is None else len(app.held),
            app_cost,
        )
        for app, app_cost in zip(scenario.realtime, cost.tolist(), strict=True)
    ]
    return np.array(rows, np.int64).reshape(-1, 7)


def _numbers(values: Any) -> Int64:
    return np.fromiter(values, np.int64)


def _kernel_units(priority: tuple[int, ...], cost: tuple[int, ...], largest: int) -> tuple[Int64, Int64]:
    # What all amounts have in common is divided out. If sums could still overflow 64 bits, amounts
    # are rounded up to a coarser unit for the comparison of plans (figures never lose a digit).
    common = math.gcd(*priority, *cost) or 1
    shift = max(0, (largest // common).bit_length() - _KERNEL_LIMIT.bit_length() + 1)

    def scaled(amount: int) -> int:
        return -((-(amount // common)) >> shift)

    return _numbers(map(scaled, priority)), _numbers(map(scaled, cost))


def _allowed(scenario: AllocationScenario, n_words: int) -> Words:
    """First GPUs of blocks of ``2**c`` GPUs under the node rule, a row per ``c``."""
    gpus, node = scenario.cluster.gpus, scenario.cluster.node_size
    rows = []
    for c in range(gpus.bit_length()):
        n = 1 << c
        first = np.arange(n_words * 64)
        fits = first + n <= gpus
        if scenario.rules.within_node:
            fits &= (first % node + n <= node) if n <= node else (first % node == 0) & (n % node == 0)
        rows.append(np.packbits(fits, bitorder="little").view(np.uint64))
    return np.array(rows)


class _Fits:
    """Whether a job fits the cluster with nothing else on it, and why not."""

    def __init__(self, scenario: AllocationScenario, available: Words, allowed: Words) -> None:
        self.scenario = scenario
        self.allowed = allowed
        bits = np.unpackbits(available.view(np.uint8), bitorder="little").astype(np.int64)
        self.available_below = np.concatenate([[0], bits.cumsum()])
        self.blocks: dict[int, bool] = {}

    def reason(self, job: BatchJob, gpus: int, n_steps: int) -> str | None:
        scenario = self.scenario
        first = scenario.steps_of(job.earliest_hour)
        cluster, horizon = scenario.cluster, scenario.horizon
        if job.running_on is not None:
            return None
        if gpus > cluster.gpus:
            return f"{gpus} GPUs wanted, {cluster.gpus} exist"
        node = cluster.node_size
        if scenario.rules.within_node and gpus > node and gpus % node:
            return f"{gpus} GPUs wanted as whole nodes, but a node has {node}"
        if not self.has_block(gpus):
            rule = " under the node rule" if scenario.rules.within_node else ""
            return f"{gpus} contiguous GPUs wanted, no such block is free of unavailable GPUs{rule}"
        if first >= horizon.steps:
            return f"may start from hour {job.earliest_hour:g}, the horizon ends at hour {self.hours(horizon.steps)}"
        if scenario.rules.must_finish and first + n_steps > horizon.steps:
            return (
                f"must finish inside the horizon: {self.hours(n_steps)} h from hour {self.hours(first)} "
                f"end after hour {self.hours(horizon.steps)}"
            )
        return None

    def hours(self, steps: int) -> str:
        return f"{steps * self.scenario.horizon.step_hours:g}"

    def has_block(self, n: int) -> bool:
        if n not in self.blocks:
            whole = self.available_below[n:] - self.available_below[:-n] == n
            allowed = np.unpackbits(self.allowed[n.bit_length() - 1].view(np.uint8), bitorder="little")
            self.blocks[n] = bool((whole & (allowed[: whole.size] > 0)).any())
        return self.blocks[n]
