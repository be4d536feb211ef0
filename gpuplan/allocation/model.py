"""The allocation scenario: a frozen value that every policy is a function of.

Validation happens in `gpuplan.allocation.schema`, at the border; these classes trust their fields.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gpuplan.cluster import Cluster

BatchKind = Literal["training", "batch-inference", "quantization"]

#: Kinds of batch-like work, in the order of legends and tables.
BATCH_KINDS: tuple[BatchKind, ...] = ("training", "batch-inference", "quantization")

#: The kind under which real-time apps stand in tables and legends.
REALTIME_KIND = "real-time"


@dataclass(frozen=True, slots=True)
class Horizon:
    """`steps` equal steps of `step_s` seconds; `start` (ISO date and hour) only labels the axis."""

    steps: int = 24
    step_s: int = 3600
    start: str | None = None

    @property
    def step_hours(self) -> float:
        """Length of a step in hours."""
        return self.step_s / 3600


@dataclass(frozen=True, slots=True)
class Objective:
    """Value minus penalty: the price of unmet demand and the half-life of value.

    `shortfall_penalty` is what a GPU-step of unmet demand costs, as a multiple of what a GPU-step
    of batch work of equal priority earns at step 0. `half_life_hours` ``None`` means no decay.
    """

    shortfall_penalty: float = 8.0
    half_life_hours: float | None = 24.0


@dataclass(frozen=True, slots=True)
class Rules:
    """`must_finish`: a job starts only if it also ends in the horizon. `within_node`: see rule 6."""

    must_finish: bool = True
    within_node: bool = False


@dataclass(frozen=True, slots=True)
class DemandShape:
    """A raised-cosine day: `base` GPUs, `peak` at `peak_hour`, `width_hours` wide, every 24 h."""

    base: float
    peak: float
    peak_hour: float
    width_hours: float

    def demand(self, horizon: Horizon) -> tuple[int, ...]:
        """GPUs wanted in each step of the horizon (formula of the scenario-file reference)."""
        return tuple(self._at(step * horizon.step_hours) for step in range(horizon.steps))

    def _at(self, hour: float) -> int:
        distance = abs(hour - self.peak_hour) % 24.0
        distance = min(distance, 24.0 - distance)
        if distance >= self.width_hours / 2:
            return math.floor(self.base + 0.5 + 1e-9)
        rise = (1 + math.cos(2 * math.pi * distance / self.width_hours)) / 2
        return math.floor(self.base + (self.peak - self.base) * rise + 0.5 + 1e-9)


@dataclass(frozen=True, slots=True)
class RealtimeApp:
    """An elastic app: a demand curve in GPUs per step, held within its swap cap.

    `demand` has one whole number per step (already expanded where the file gives a `shape`).
    ``None`` means: no cap (`max_swap`), all GPUs (`max_gpus`), not known (`held`), no budget
    (`swap_budget`).
    """

    name: str
    priority: float
    demand: tuple[int, ...]
    shape: DemandShape | None = None
    max_swap: int | None = None
    min_gpus: int = 0
    max_gpus: int | None = None
    held: tuple[int, ...] | None = None
    swap_budget: int | None = None


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch-like job: a block of `gpus` (a power of two) for `hours`, without a break.

    `running_on` is the first GPU of a block that already runs at step 0, with `hours` left.

    Where `max_gpus` is given, the size is the policy's decision: any power of two from `gpus` to
    `max_gpus`, kept from start to end. `hours` is the duration on `gpus` GPUs; on ``n`` it is
    ``hours x (gpus / n) ** scaling`` (1: perfect scaling, the same GPU-hours at every size).
    """

    name: str
    kind: BatchKind
    gpus: int
    hours: float
    priority: float
    earliest_hour: float = 0.0
    running_on: int | None = None
    deadline_hour: float | None = None
    max_gpus: int | None = None
    scaling: float = 1.0

    @property
    def sizes(self) -> tuple[int, ...]:
        """GPUs that the job may run on, ascending: one number, or every power of two of its range."""
        most = self.gpus if self.max_gpus is None else self.max_gpus
        return tuple(self.gpus << k for k in range((most // self.gpus).bit_length()))

    @property
    def gpu_hours(self) -> float:
        """The work of the job: GPU-hours on its smallest size."""
        return self.gpus * self.hours

    def hours_on(self, gpus: int) -> float:
        """Duration on so many GPUs, in hours."""
        if self.scaling == 1:
            return self.gpus * self.hours / gpus
        return float(self.hours * (self.gpus / gpus) ** self.scaling)


@dataclass(frozen=True, slots=True)
class AllocationScenario:
    """One horizon on one cluster: real-time apps and batch jobs (in order of arrival)."""

    name: str
    cluster: Cluster
    horizon: Horizon = Horizon()
    objective: Objective = Objective()
    rules: Rules = Rules()
    realtime: tuple[RealtimeApp, ...] = ()
    batch: tuple[BatchJob, ...] = ()
    about: str = ""

    kind = "allocation"

    def steps_of(self, hours: float) -> int:
        """Whole steps that cover `hours`, rounded up; noise below a billionth is not a step."""
        steps = hours * 3600 / self.horizon.step_s
        return max(0, math.ceil(steps - 1e-9 * max(1.0, steps)))

    def replace(self, changes: Mapping[str, Any]) -> "AllocationScenario":
        """A copy with values changed by dotted path, validated like a file.

        Parameters
        ----------
        changes
            ``{"cluster.gpus": 16, "batch.0.priority": 5, "realtime.0.demand": [1, 2]}``.

        Raises
        ------
        InputError
            With every mistake, where the result is not a valid scenario.
        """
        from gpuplan.allocation.schema import replace

        return replace(self, changes)

    def to_dict(self) -> dict[str, Any]:
        """The scenario as the mapping of its file (values that equal their default left out)."""
        from gpuplan.allocation.schema import to_dict

        return to_dict(self)

    def to_yaml(self) -> str:
        """The text of a scenario file that reads back to an equal scenario."""
        from gpuplan.allocation.schema import to_yaml

        return to_yaml(self)

    def save(self, path: str | Path) -> None:
        """Write a scenario file (UTF-8) that reads back to an equal scenario."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of the scenario's canonical form: equal scenarios, equal text."""
        from gpuplan.allocation.schema import fingerprint

        return fingerprint(self)
