"""Pydantic models of the packing scenario file: what each key means, its unit, its limits.

They exist at the border only; `gpuplan.packing.schema` turns them into the frozen value that policies work with.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from gpuplan.inputs.fields import (
    Choice,
    Flag,
    Real,
    Text,
    Whole,
    as_list_or_empty,
    as_mapping,
    as_section,
)
from gpuplan.packing.file_fields import Amount, Bandwidth, Millionths, Size, Strict, Time, shortest
from gpuplan.packing.file_tasks import GenerateFile, ServiceFile, TaskFile, TasksFile, TokensFile
from gpuplan.packing.limits import (
    LEAST_RATE,
    MOST_BYTES,
    MOST_GPUS,
    MOST_KV_BYTES,
    MOST_MODELS,
    MOST_RATE,
    MOST_SERVICE_US,
    MOST_SLOTS,
    MOST_US,
)
from gpuplan.packing.model import (
    SECOND,
    Admission,
    Contention,
    Gpus,
    Pieces,
    Preemption,
    Retry,
    ServedModel,
)

#: Names of the pieces of a policy (`gpuplan.packing.policies` has what they do).
PLACEMENTS = (
    "round-robin", "round-robin-skip", "first-fit", "best-fit", "worst-fit", "predicted-fit", "fgd",
)  # fmt: skip
ORDERS = ("fifo", "backfill", "shortest", "by-model")
EVICTIONS = ("lru", "lfu", "cost", "keep-alive")

_GPUS, _ADMISSION, _PREEMPTION = Gpus(1, 1), Admission(), Preemption()
_CONTENTION, _RETRY, _PIECES = Contention(), Retry(), Pieces()


_Row = TypeVar("_Row", bound=Strict)
_Section = Annotated[_Row, BeforeValidator(as_section)]
_Rows = Annotated[tuple[Annotated[_Row, BeforeValidator(as_mapping)], ...], BeforeValidator(as_list_or_empty)]


class GpusFile(Strict):
    """Equal GPUs of one node, and the links over which models are loaded."""

    count: Annotated[int, Whole(1, MOST_GPUS)] = Field(description="Number of GPUs.")
    memory_gib: Annotated[int, Size(1, MOST_BYTES, "GiB")] = Field(
        description="Usable memory of each, in GiB, or text with a unit."
    )
    host_gb_per_s: Annotated[int, Bandwidth(LEAST_RATE, MOST_RATE, "GB/s")] = Field(
        default=_GPUS.host_bytes_per_s,
        description="Link from host memory to each GPU, in GB/s (24); running transfers share it equally.",
    )
    disk_gb_per_s: Annotated[int, Bandwidth(LEAST_RATE, MOST_RATE, "GB/s")] = Field(
        default=_GPUS.disk_bytes_per_s, description="The node's disk, in GB/s (5), shared in the same way."
    )
    release_s: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(
        default=_GPUS.release_us, description="Evicted memory comes back so much later, in seconds (1)."
    )
    max_tasks: Annotated[int | None, Whole(1, MOST_SLOTS, optional=True)] = Field(
        default=None, description="Tasks that a GPU takes at once; null: no bound."
    )
    host_cache: Annotated[bool, Flag()] = Field(
        default=True, description="A model stays in host memory after its first load from disk."
    )

    def build(self) -> Gpus:
        """The GPUs."""
        return Gpus(
            self.count, self.memory_gib, self.host_gb_per_s, self.disk_gb_per_s, self.release_s,
            self.max_tasks, self.host_cache,
        )  # fmt: skip


class AdmissionFile(Strict):
    """What the scheduler believes that a model needs: declared x (1 + margin) + context."""

    margin: Annotated[int, Millionths(0, 10)] = Field(
        default=_ADMISSION.margin,
        description="Added to what is declared: 0.2 (the default) is 20 %; 0 to 10.",
    )
    context_gib: Annotated[int, Size(0, MOST_BYTES, "GiB")] = Field(
        default=_ADMISSION.context_bytes, description="Context of models that name none, in GiB (0.5)."
    )
    count_context: Annotated[bool, Flag()] = Field(
        default=True, description="Whether the scheduler counts the context."
    )
    on: Annotated[str, Choice(("declared", "free"))] = Field(
        default="declared",
        description="declared: compared with what is reserved; free: with what the monitor says is free.",
    )

    def build(self) -> Admission:
        """The admission."""
        return Admission(self.margin, self.context_gib, self.count_context, self.on)  # type: ignore[arg-type]


class ModelFile(Strict):
    """A model that tasks ask for. Spread over several GPUs, each of them holds an equal part of it (rounded up)."""

    name: Annotated[str, Text(1, 200)] = Field(description="Name, unique.")
    declared_gib: Annotated[int, Size(0, MOST_BYTES, "GiB")] = Field(
        description="Weights as declared to the scheduler, in GiB, or text with a unit."
    )
    actual_gib: Annotated[int | None, Size(0, MOST_BYTES, "GiB", optional=True)] = Field(
        default=None, description="Weights as they are; null: as declared. May be more or less."
    )
    context_gib: Annotated[int | None, Size(0, MOST_BYTES, "GiB", optional=True)] = Field(
        default=None, description="Context of its process, on each of its GPUs; null: that of the admission."
    )
    workspace_gib: Annotated[int, Size(0, MOST_BYTES, "GiB")] = Field(
        default=0,
        description="Activations and buffers on each of its GPUs, taken as long as it is loaded (0).",
    )
    kv_kib_per_token: Annotated[int, Size(0, MOST_KV_BYTES, "KiB")] = Field(
        default=0, description="KV cache of a token, in KiB (0)."
    )
    asleep_gib: Annotated[int, Size(0, MOST_BYTES, "GiB")] = Field(
        default=0, description="What stays in the memory of its GPUs, all together, after an eviction (0)."
    )
    popularity: Annotated[float, Real(0, 1e9)] = Field(
        default=1.0, description="Weight among the models when tasks are generated (1)."
    )
    pinned: Annotated[bool, Flag()] = Field(default=False, description="Never evicted.")
    resident: Annotated[
        tuple[Annotated[int, Whole(0, MOST_GPUS - 1)], ...], BeforeValidator(as_list_or_empty)
    ] = Field(
        default=(),
        description="Numbers of the GPUs on which it is loaded at the start, from 0; in order, each `gpus` of them are "
        "a copy.",
    )
    max_tasks: Annotated[int | None, Whole(1, MOST_SLOTS, optional=True)] = Field(
        default=None, description="Tasks that one loaded copy takes at once; null: no bound."
    )
    gpus: Annotated[int, Whole(1, MOST_GPUS)] = Field(
        default=1,
        description="GPUs over which a copy is spread, each with an equal part of its weights and KV cache (1).",
    )

    def build(self) -> ServedModel:
        """The model."""
        actual = self.declared_gib if self.actual_gib is None else self.actual_gib
        return ServedModel(
            self.name, self.declared_gib, actual, self.context_gib, self.workspace_gib, self.kv_kib_per_token,
            self.asleep_gib, self.popularity, self.pinned, tuple(sorted(self.resident)), self.max_tasks, self.gpus,
        )  # fmt: skip


class PreemptionFile(Strict):
    """Whether a waiting task of higher priority may interrupt others, and what that costs."""

    when: Annotated[str, Choice(("never", "always", "threshold"))] = Field(
        default=_PREEMPTION.when,
        description="never, always, or threshold: only tasks with that much predicted time left (never).",
    )
    threshold_s: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(
        default=_PREEMPTION.threshold_us,
        description="Least predicted remaining time of a victim, seconds (3).",
    )
    save_s: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(
        default=_PREEMPTION.save_us, description="Time to save a victim, in seconds (3)."
    )
    restore_s: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(
        default=_PREEMPTION.restore_us, description="Time to restore it, in seconds (3)."
    )

    def build(self) -> Preemption:
        """The preemption."""
        return Preemption(self.when, self.threshold_s, self.save_s, self.restore_s)  # type: ignore[arg-type]


class ContentionFile(Strict):
    """How tasks on one GPU slow each other down."""

    model: Annotated[str, Choice(("none", "sharing", "slowdown"))] = Field(
        default=_CONTENTION.model,
        description="none, sharing (n tasks at 1/n of the speed), slowdown: 1 / (1 + beta (n - 1)) (none).",
    )
    beta: Annotated[float, Real(0, 1_000)] = Field(
        default=_CONTENTION.beta, description="Slowdown of each further task (0.15)."
    )

    def build(self) -> Contention:
        """The contention."""
        return Contention(self.model, self.beta)  # type: ignore[arg-type]


class RetryFile(Strict):
    """What becomes of a task that failed for memory."""

    most: Annotated[int, Whole(0, 1_000)] = Field(
        default=_RETRY.most, description="How often it comes back; then it has failed for good (3)."
    )
    after_s: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(
        default=_RETRY.after_us, description="How long after the failure, in seconds (1)."
    )

    def build(self) -> Retry:
        """The retries."""
        return Retry(self.most, self.after_s)


class PolicyFile(Strict):
    """The pieces of the policy, where the caller does not name them."""

    placement: Annotated[str, Choice(PLACEMENTS)] = Field(
        default=_PIECES.placement, description="Which GPU (best-fit)."
    )
    queue: Annotated[str, Choice(ORDERS)] = Field(
        default=_PIECES.order, description="Order of the queue, after priorities (fifo)."
    )
    eviction: Annotated[str, Choice(EVICTIONS)] = Field(
        default=_PIECES.eviction, description="Which idle model goes first (lru)."
    )
    depth: Annotated[int, Whole(0, 100_000)] = Field(
        default=_PIECES.depth,
        description="Tasks that backfill looks at behind the first, or by-model serves in a row (16).",
    )
    keep_alive_s: Annotated[int | None, Time(0, MOST_SERVICE_US, "s", optional=True)] = Field(
        default=None,
        description="An idle model is evicted after that time, in seconds; null: when need be. keep-alive needs it.",
    )

    def build(self) -> Pieces:
        """The pieces."""
        return Pieces(self.placement, self.queue, self.eviction, self.depth, self.keep_alive_s)


class ScenarioFile(Strict):
    """A gpuplan scenario file: a node with a few GPUs, models, tasks."""

    kind: Annotated[str, Choice(("packing",))] = Field(description="Which question the scenario asks.")
    name: Annotated[str, Text(1, 10_000)] = Field(description="Name of the scenario.")
    about: Annotated[str, Text(0, 4_000, lines=True)] = Field(
        default="", description="One paragraph for people."
    )
    gpus: Annotated[GpusFile, BeforeValidator(as_mapping)] = Field(description="The GPUs of the node.")
    admission: _Section[AdmissionFile] = Field(
        default_factory=AdmissionFile, description="What the scheduler believes that a model needs."
    )
    models: Annotated[_Rows[ModelFile], Field(max_length=MOST_MODELS)] = Field(
        description="The models, at least one."
    )
    tasks: Annotated[TasksFile, BeforeValidator(as_mapping)] = Field(
        description="Where the tasks come from: one of file, generate, rows."
    )
    preemption: _Section[PreemptionFile] = Field(
        default_factory=PreemptionFile, description="Whether tasks may be interrupted."
    )
    contention: _Section[ContentionFile] = Field(
        default_factory=ContentionFile, description="Whether tasks on one GPU slow each other down."
    )
    retry: _Section[RetryFile] = Field(
        default_factory=RetryFile, description="How often a task that failed for memory comes back."
    )
    policy: _Section[PolicyFile] = Field(
        default_factory=PolicyFile, description="The pieces of the policy that a caller does not name."
    )
    until_s: Annotated[int | None, Time(1, MOST_US, "s", optional=True)] = Field(
        default=None, description="The run stops there, in seconds; null: when nothing is left to do."
    )


#: The model at each place of a scenario file; a star stands for every row.
MODELS: dict[str, type[Strict]] = {
    "": ScenarioFile,
    "gpus": GpusFile,
    "admission": AdmissionFile,
    "models.*": ModelFile,
    "tasks": TasksFile,
    "tasks.generate": GenerateFile,
    "tasks.generate.service_s": ServiceFile,
    "tasks.generate.tokens_in": TokensFile,
    "tasks.generate.tokens_out": TokensFile,
    "tasks.rows.*": TaskFile,
    "preemption": PreemptionFile,
    "contention": ContentionFile,
    "retry": RetryFile,
    "policy": PolicyFile,
}


def json_schema_of(model: type[Strict]) -> dict[str, Any]:
    """The JSON Schema of a model, its defaults in the units in which people write."""
    schema = model.model_json_schema()
    parts = {part.__name__: part for part in MODELS.values()}
    for name, described in {**schema["$defs"], model.__name__: schema}.items():
        for key, shown in described["properties"].items():
            field = parts[name].model_fields[key]
            kind = next((kind for kind in field.metadata if isinstance(kind, (Amount, Millionths))), None)
            if kind is not None and isinstance(field.default, int):
                unit = kind.units()[kind.unit] if isinstance(kind, Amount) else SECOND
                shown["default"] = shortest(field.default, unit)
    return schema
