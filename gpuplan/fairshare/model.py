"""The fair-share scenario: a frozen value that every policy is a function of.

Validation happens in `gpuplan.fairshare.schema`, at the border; these classes trust their fields.
Times are whole seconds after the start of the scenario, as 64-bit integers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gpuplan.fairshare.jobs import Jobs

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: A limit that is not known, an instant that never comes.
NEVER = 1 << 60

HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Pool:
    """Equal nodes of one GPU type; a flat pool of ``n`` GPUs is one node of ``n`` GPUs.

    `gpu` is the type that jobs name (``""``: types are not told apart).
    """

    nodes: int
    gpus_per_node: int
    gpu: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of the pool."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class BudgetNode:
    """A budget: a weight among its siblings; without children it is a leaf, that is a team."""

    name: str
    weight: float = 1.0
    children: tuple["BudgetNode", ...] = ()


@dataclass(frozen=True, slots=True)
class Contract:
    """What a workload is promised and what a preemption costs.

    Parameters
    ----------
    max_min_runtime_s
        Cap on the declared minimum run time (protection), seconds.
    checkpoint_every_s
        Work that can resume keeps what it did up to its last checkpoint, seconds of run time.
    restart_cost_s
        Seconds that a restart needs before work goes on.
    hysteresis
        How much lower a budget's ratio must be before it may preempt another's work; None: the cap over the window.
    """

    max_min_runtime_s: int = 8 * HOUR
    checkpoint_every_s: int = 1800
    restart_cost_s: int = 300
    hysteresis: float | None = None


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Habits of the old world, as rates from 0 to 1.

    Parameters
    ----------
    inflation
        Share of jobs that declare the highest priority, whatever they are worth.
    squatting
        Share of debug jobs whose owner holds the GPUs with a no-op job instead (see `gpuplan.fairshare.habits`).
    opt_out
        Share of jobs that opt out of preemption (under ``priority-tiers``).
    opt_out_limit_gpus
        GPUs that a team may hold at once with jobs that opted out.
    """

    inflation: float = 0.0
    squatting: float = 0.0
    opt_out: float = 0.0
    opt_out_limit_gpus: int = 16


@dataclass(frozen=True, slots=True)
class Drain:
    """A node takes no new work from `from_s` on; once it is empty, its repair takes `repair_s`."""

    node: int
    from_s: int
    repair_s: int


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """From `at_s` on budgets have other weights: pairs of path and weight, by path; who is not named keeps its own."""

    at_s: int
    weights: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Generate:
    """What a generated workload is asked to look like (see `gpuplan.fairshare.workloads`).

    `oversubscription`: GPU-hours submitted / GPU-hours available over `days`. `debug_share`: of jobs.
    """

    days: float = 28.0
    oversubscription: float = 1.1
    debug_share: float = 0.2
    seed: int = 1


@dataclass(frozen=True, slots=True)
class FairshareScenario:
    """One cluster over weeks: pools of GPUs, a tree of budgets, a contract, jobs.

    `budget_changes` are in order of their instants. `jobs` are those of a file, or None where they are made from
    `generate`. `until_s`: the run stops there (None: when nothing is left to do). `notes` are sentences about what was
    decided while reading (rows changed, defaults taken), shown with every result.
    """

    name: str
    pools: tuple[Pool, ...]
    budget: tuple[BudgetNode, ...]
    window_s: int = 7 * DAY
    contract: Contract = Contract()
    generate: Generate | None = None
    jobs: "Jobs | None" = field(default=None, repr=False)
    jobs_file: str | None = field(default=None, compare=False)
    behaviour: Behaviour = Behaviour()
    drains: tuple[Drain, ...] = ()
    until_s: int | None = None
    about: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)
    budget_changes: tuple[BudgetChange, ...] = ()

    kind = "fairshare"

    @property
    def gpus(self) -> int:
        """GPUs installed, over all pools."""
        return sum(pool.gpus for pool in self.pools)

    @property
    def flat(self) -> bool:
        """Whether GPUs are not divided into nodes: one pool that is one node."""
        return len(self.pools) == 1 and self.pools[0].nodes == 1

    def replace(self, changes: Mapping[str, Any]) -> "FairshareScenario":
        """A copy with values changed by dotted path of the file, validated like a file.

        Parameters
        ----------
        changes
            ``{"window": "1d", "contract.max_min_runtime": "4h", "budget.0.weight": 70}``.

        Raises
        ------
        InputError
            With every mistake, where the result is not a valid scenario.
        """
        from gpuplan.fairshare.schema import replace

        return replace(self, changes)

    def to_dict(self) -> dict[str, Any]:
        """The scenario as the mapping of its file (values that equal their default left out)."""
        from gpuplan.fairshare.schema import to_dict

        return to_dict(self)

    def to_yaml(self) -> str:
        """The text of a scenario file that reads back to an equal scenario."""
        from gpuplan.fairshare.schema import to_yaml

        return to_yaml(self)

    def save(self, path: str | Path) -> None:
        """Write a scenario file (UTF-8) that reads back to an equal scenario."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of the scenario's canonical form, jobs included: equal scenarios, equal text."""
        from gpuplan.fairshare.schema import fingerprint

        return fingerprint(self)
