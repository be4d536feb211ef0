"""Jobs that hold a given number of GPUs at each ten minutes, made from a measured demand."""

from dataclasses import dataclass

import numpy as np

from gpuplan.fairshare.model import Bools, Int64
from gpuplan.fairshare.workloads import RUN_S, SIZE_SHARES, SIZES, contracts

#: The counts are ten minutes apart.
STEP_S = 600

#: Jobs of this size or more are counted apart.
LARGE = 8


@dataclass(frozen=True, slots=True)
class Made:
    """Generated jobs as columns, in the order in which they were made; all [J]."""

    submit_s: Int64
    gpus: Int64
    run_s: Int64
    limit_s: Int64
    minimum_s: Int64
    resumable: Bools


class _Holding:
    """Jobs of one class of sizes that hold GPUs, from one step to the next."""

    def __init__(self, large: bool, rng: np.random.Generator) -> None:
        self.least = LARGE if large else 1
        fits = [(size >= LARGE) == large for size in SIZES]
        self.sizes = np.array([size for size, fit in zip(SIZES, fits, strict=True) if fit])
        self.shares = np.array([share for share, fit in zip(SIZE_SHARES, fits, strict=True) if fit])
        self.rng = rng
        self.rows: list[tuple[int, int, int]] = []  # first step, step of the end, GPUs
        self.open: list[tuple[int, int, int]] = []  # planned end, first step, GPUs
        self.held = 0

    def step(self, now: int, demand: int) -> None:
        """End and begin jobs so that they hold `demand` GPUs (or none, where it is less than the least size)."""
        due = [job for job in self.open if job[0] <= now]
        if not due and self.held == demand:
            return
        for job in due:
            self._end(job, now)
        if self.held > demand:
            before = list(self.open)
            for k in self.rng.permutation(len(before)).tolist():
                if before[k][2] <= self.held - demand:
                    self._end(before[k], now)
        elif demand - self.held >= self.least:
            self._one_of_any_size(now, demand)
        while self.held > demand or (self.open and 0 < demand - self.held < self.least):
            # What is too much, or missing, is less than a job: the smallest one makes room for others that fit.
            self._end(min(self.open, key=lambda job: (job[2], job)), now)
        while demand - self.held >= self.least:
            self._begin(now, self._fitting(demand - self.held))

    def _one_of_any_size(self, now: int, demand: int) -> None:
        """Begin a job of a size drawn at large; where it is more than what is missing, others end for it.

        Without this, large jobs would be replaced by small ones, and never the other way round.
        """
        size = self._draw(self.sizes <= max(self.least, demand // 2))
        missing = demand - self.held
        for job in sorted(job for job in self.open if job[2] < size):
            if missing >= size:
                break
            missing += job[2]
            self._end(job, now)
        if missing == size or missing - size >= self.least:
            self._begin(now, size)

    def _begin(self, now: int, size: int) -> None:
        self.held += size
        self.open.append((now + self._steps(), now, size))

    def _end(self, job: tuple[int, int, int], now: int) -> None:
        """End a job at this step; one that began at it never was."""
        self.open.remove(job)
        self.held -= job[2]
        if job[1] < now:
            self.rows.append((job[1], now, job[2]))

    def _fitting(self, missing: int) -> int:
        """A size that leaves nothing, or enough for another job; exactly what is missing where there is none."""
        fit = (self.sizes == missing) | (missing - self.sizes >= self.least)
        return self._draw(fit) if fit.any() else missing

    def _draw(self, fit: Bools) -> int:
        """A size of those that fit, by their shares."""
        edges = np.cumsum(self.shares[fit])
        k = int(np.searchsorted(edges, self.rng.random() * edges[-1], side="right"))
        return int(self.sizes[fit][min(k, len(edges) - 1)])

    def _steps(self) -> int:
        """A planned length in steps: the durations of the synthetic workload, rounded up."""
        median, sigma, least, most = RUN_S
        seconds = min(max(median * np.exp(sigma * self.rng.standard_normal()), least), most)
        return max(1, int(np.ceil(seconds / STEP_S)))


def jobs_that_hold(demand: Int64, large: bool, rng: np.random.Generator) -> Made:
    """Jobs that, each started when it is submitted, hold ``demand[k]`` GPUs at second ``600 k``.

    Lengths are planned; a job ends before its time where the demand falls, and what still runs after the last step
    keeps its planned length.

    Parameters
    ----------
    demand : int64[S]
        GPUs at each step. For large jobs 0, or at least `LARGE`; what is less cannot be held and is not.
    large
        Whether jobs have `LARGE` GPUs or more, or less.
    rng
        For sizes, lengths, moments within a step, and contracts.
    """
    holding = _Holding(large, rng)
    for now, gpus in enumerate(demand.tolist()):
        holding.step(now, gpus)
    rows = holding.rows + [(begun, end, gpus) for end, begun, gpus in holding.open]
    begun, end, gpus = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    # A job may come at any second of the step before the one that counts it first, and ends as much earlier.
    early = np.where(begun > 0, (rng.random(len(begun)) * STEP_S).astype(np.int64), 0)
    run = (end - begun) * STEP_S
    limit, minimum, resumable = contracts(rng.random((len(begun), 3)), run, np.zeros(len(begun), np.bool_))
    return Made(begun * STEP_S - early, gpus, run, limit, minimum, resumable)
