"""The packing scenario: a frozen value that every policy is a function of.

Validation happens in `gpuplan.packing.schema`, at the border; these classes trust their fields. Times are whole
microseconds after the start of the scenario, memory is whole bytes, both as 64-bit integers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gpuplan.packing.tasks import Tasks

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: A deadline that is not set, an instant that never comes.
NEVER = 1 << 60

#: Microseconds of a second.
SECOND = 1_000_000

GIB = 1 << 30

AdmissionOn = Literal["declared", "free"]
When = Literal["never", "always", "threshold"]
ContentionModel = Literal["none", "sharing", "slowdown"]


@dataclass(frozen=True, slots=True)
class Gpus:
    """Equal GPUs of one node.

    Attributes
    ----------
    count
    memory_bytes
        Usable memory of each.
    host_bytes_per_s, disk_bytes_per_s
        The link from host memory to each GPU; the node's disk. Running transfers share a link equally.
    release_us
        Evicted memory comes back so much later.
    max_tasks
        Tasks that a GPU takes at once; None: no bound.
    host_cache
        Whether a model stays in host memory after its first load from disk.
    """

    count: int
    memory_bytes: int
    host_bytes_per_s: int = 24_000_000_000
    disk_bytes_per_s: int = 5_000_000_000
    release_us: int = SECOND
    max_tasks: int | None = None
    host_cache: bool = True


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that tasks ask for.

    Attributes
    ----------
    name
    declared_bytes, actual_bytes
        Weights as declared to the scheduler, and as they are.
    context_bytes
        What its process takes beside the weights (driver context); None: as the admission says.
    workspace_bytes
        Activations and buffers, taken as long as it is loaded.
    kv_bytes_per_token
    asleep_bytes
        What stays in the GPU's memory after an eviction.
    popularity
        Weight among the models when tasks are generated.
    pinned
        Never evicted.
    resident
        GPUs on which it is loaded at the start (over several: sorted, each `gpus` of them are one copy).
    max_tasks
        Tasks that one loaded copy takes at once; None: no bound.
    gpus
        GPUs over which a copy is spread; bytes are of the whole model, but for context and workspace: those are per
        GPU.
    """

    name: str
    declared_bytes: int
    actual_bytes: int
    context_bytes: int | None = None
    workspace_bytes: int = 0
    kv_bytes_per_token: int = 0
    asleep_bytes: int = 0
    popularity: float = 1.0
    pinned: bool = False
    resident: tuple[int, ...] = ()
    max_tasks: int | None = None
    gpus: int = 1


@dataclass(frozen=True, slots=True)
class Admission:
    """What the scheduler believes that a model needs: ``declared x (1 + margin) + context``.

    Attributes
    ----------
    margin
        Exact decimal of the file, as millionths (0.2 is 200,000).
    context_bytes
        Context of models that name none.
    count_context
        Whether the scheduler counts the context.
    on
        ``declared``: compared with what is reserved; ``free``: with what is free by the monitor.
    """

    margin: int = 200_000
    context_bytes: int = GIB // 2
    count_context: bool = True
    on: AdmissionOn = "declared"


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whether a waiting task of higher priority may interrupt others, and what that costs."""

    when: When = "never"
    threshold_us: int = 3 * SECOND
    save_us: int = 3 * SECOND
    restore_us: int = 3 * SECOND


@dataclass(frozen=True, slots=True)
class Contention:
    """How tasks on one GPU slow each other down: not, by processor sharing, or by 1 + beta (n - 1)."""

    model: ContentionModel = "none"
    beta: float = 0.15


@dataclass(frozen=True, slots=True)
class Retry:
    """A task that failed for memory comes back after `after_us`, at most `most` times."""

    most: int = 3
    after_us: int = SECOND


@dataclass(frozen=True, slots=True)
class Pieces:
    """Names of the pieces of a policy (see `gpuplan.packing.policies`), and their numbers."""

    placement: str = "best-fit"
    order: str = "fifo"
    eviction: str = "lru"
    depth: int = 16
    keep_alive_us: int | None = None


@dataclass(frozen=True, slots=True)
class Draw:
    """Positive numbers by mean and coefficient of variation (0: always the mean; 1: exponential; else Gamma)."""

    mean: float
    cv: float = 1.0


@dataclass(frozen=True, slots=True)
class Generate:
    """What a generated workload is asked to look like (see `gpuplan.packing.workloads`).

    Attributes
    ----------
    rate_per_s, count
        Tasks arrive as a renewal process whose gaps have the coefficient of variation `arrival_cv` (1: Poisson).
    service
        Seconds.
    prediction_cv
        Error of the predicted service time: predicted / true is log-normal of mean 1 with this coefficient.
    tokens_in, tokens_out
    high_priority_share
        Of tasks; they have priority 1, the others 0.
    tenants
        Number of tenants, Zipf-popular.
    seed
    """

    rate_per_s: float
    count: int
    service: Draw
    arrival_cv: float = 1.0
    prediction_cv: float = 0.0
    tokens_in: Draw = Draw(0.0, 0.0)
    tokens_out: Draw = Draw(0.0, 0.0)
    high_priority_share: float = 0.0
    tenants: int = 1
    timeout_us: int | None = None
    seed: int = 1


@dataclass(frozen=True, slots=True)
class PackingScenario:
    """A node with a few GPUs, models, tasks.

    `tasks` are those of a file, or None where they are made from `generate`. `until_us`: the run stops there (None:
    when nothing is left to do). `notes` are sentences about what was decided while reading, shown with every result.
    """

    name: str
    gpus: Gpus
    models: tuple[ServedModel, ...]
    admission: Admission = Admission()
    preemption: Preemption = Preemption()
    contention: Contention = Contention()
    retry: Retry = Retry()
    policy: Pieces = Pieces()
    generate: Generate | None = None
    tasks: "Tasks | None" = field(default=None, repr=False)
    tasks_file: str | None = field(default=None, compare=False)
    until_us: int | None = None
    about: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def kind(self) -> str:
        """``"packing"``."""
        return "packing"

    def context(self, model: ServedModel) -> int:
        """Bytes of a model's context."""
        return self.admission.context_bytes if model.context_bytes is None else model.context_bytes

    def part(self, whole: int, model: ServedModel) -> int:
        """Of bytes of a whole model, those on each of its GPUs (equal parts, rounded up)."""
        return -(-whole // model.gpus)

    def taken(self, model: ServedModel) -> int:
        """Bytes that a loaded copy of a model takes on each of its GPUs, without the KV of its tasks."""
        return self.part(model.actual_bytes, model) + self.context(model) + model.workspace_bytes

    def needed(self, model: ServedModel) -> int:
        """Bytes that the scheduler reserves for a copy of a model on each of its GPUs."""
        declared = self.part(model.declared_bytes, model)
        declared = -(-declared * (SECOND + self.admission.margin) // SECOND)
        return declared + (self.context(model) if self.admission.count_context else 0)

    def replace(self, changes: Mapping[str, Any]) -> "PackingScenario":
        """A copy with values changed by dotted path of the file, validated like a file.

        Parameters
        ----------
        changes
            ``{"admission.margin": 0.1, "models.0.declared_gib": 20, "policy.placement": "worst-fit"}``.

        Raises
        ------
        InputError
            With every mistake, where the result is not a valid scenario.
        """
        from gpuplan.packing.schema import replace

        return replace(self, changes)

    def with_tasks(self, tasks: "Tasks", notes: tuple[str, ...] = ()) -> "PackingScenario":
        """A copy with other tasks (whose models are rows of this scenario's), and sentences about them."""
        from gpuplan.packing.schema import with_tasks

        return with_tasks(self, tasks, notes)

    def to_dict(self) -> dict[str, Any]:
        """The scenario as the mapping of its file (values that equal their default left out)."""
        from gpuplan.packing.schema import to_dict

        return to_dict(self)

    def to_yaml(self) -> str:
        """The text of a scenario file that reads back to an equal scenario."""
        from gpuplan.packing.schema import to_yaml

        return to_yaml(self)

    def save(self, path: str | Path) -> None:
        """Write a scenario file (UTF-8) that reads back to an equal scenario."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) of the scenario's canonical form, tasks included: equal scenarios, equal text."""
        from gpuplan.packing.schema import fingerprint

        return fingerprint(self)
