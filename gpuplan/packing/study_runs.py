"""What all studies share: runs without tables, intervals over seeds."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpuplan.intervals import interval
from gpuplan.packing.ledger import Ledger, ledger
from gpuplan.packing.model import SECOND, PackingScenario
from gpuplan.packing.problem import Problem, compile_problem, tasks_of
from gpuplan.packing.raw import RawPack

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run without its tables: problem, what the policy did, where the time of each task went."""

    problem: Problem
    raw: RawPack
    books: Ledger

    @property
    def wait_s(self) -> float:
        """Mean wait (queue + load) of all tasks that were not rejected, seconds."""
        return float(self.books.wait[self.books.counted].mean()) / SECOND

    @property
    def throughput_per_s(self) -> float:
        """Tasks done / time from the first arrival to the end of the run."""
        span_us = self.raw.end_us - int(self.problem.tasks.arrival_us[0])
        return int(self.books.done.sum()) / (span_us / SECOND)


def outcome(scenario: PackingScenario, policy: str) -> Outcome:
    """Run a scenario under a policy."""
    from gpuplan.packing import engine
    from gpuplan.packing.policies import pieces_named

    problem = compile_problem(scenario)
    raw = engine.run(problem, pieces_named(policy, scenario.policy))
    return Outcome(problem, raw, ledger(problem, raw))


def with_own_tasks(scenario: PackingScenario) -> PackingScenario:
    """The scenario with its generated tasks in place, so that other settings meet the very same ones."""
    return replace(scenario, tasks=tasks_of(scenario), generate=None)


def saved_percent(mine: Floats, other: Floats) -> tuple[float, float, float]:
    """Saving ``100 (1 - sum(mine) / sum(other))`` of paired seeds, and its 95 % interval by the jackknife.

    With ``R`` the saving of all ``n`` seeds, ``R_i`` that without seed ``i``, the pseudo-values ``n R - (n - 1) R_i``
    are taken as a sample (Tukey). Not a number where nothing waited under the other.
    """
    n, whole = len(mine), float(other.sum())
    if whole <= 0:
        return (np.nan,) * 3
    all_of_them = 100 * (1 - float(mine.sum()) / whole)
    if n == 1:
        return all_of_them, np.nan, np.nan
    left = whole - other
    if (left <= 0).any():
        return all_of_them, np.nan, np.nan
    without = 100 * (1 - (mine.sum() - mine) / left)
    _, low, high = interval(n * all_of_them - (n - 1) * without)
    half = (high - low) / 2
    return all_of_them, all_of_them - half, all_of_them + half
