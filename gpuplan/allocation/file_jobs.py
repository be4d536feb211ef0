"""Pydantic models of a batch job in a scenario file: one with a number of GPUs, one with a range."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag

from gpuplan.allocation.file_parts import MOST_GPUS, MOST_HOURS, Name, Priority, Strict
from gpuplan.allocation.model import BATCH_KINDS, BatchJob, BatchKind
from gpuplan.inputs.fields import Choice, FieldType, Hours, Real, Whole, as_mapping, broken, is_null, number


@dataclass(frozen=True, slots=True)
class LeftOut(FieldType):
    """A key of the other form of a job; `rule` says why it has no place here and what to write instead."""

    rule: str

    def read(self, value: Any) -> None:
        """Nothing, where nothing is said."""
        if not is_null(value):
            raise broken(self.rule)

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"type": "null"}


_ONE_NUMBER = "must be left out where gpus is one number: "
_A_RANGE = "must be left out where gpus is a range: "

# what both forms of a job have
JobName = Annotated[Name, Field(description="Name, unique over apps and jobs.")]
Kind = Annotated[BatchKind, Choice(BATCH_KINDS), Field(description="What the job does.")]
JobPriority = Annotated[
    Priority, Field(description="More than 0, at most three decimals; larger is more important.")
]
Earliest = Annotated[
    float,
    Hours(0, MOST_HOURS),
    Field(description="Hour from the start of the horizon before which the job may not start."),
]
Deadline = Annotated[
    float | None,
    Hours(0, MOST_HOURS, optional=True),
    Field(description="Hour from the start by which it should end; lateness is reported only."),
]


class BatchFile(Strict):
    """A batch job: a block of GPUs held without a break."""

    name: JobName
    kind: Kind
    gpus: Annotated[int, Whole(1, MOST_GPUS, power_of_two=True)] = Field(
        description="GPUs of the block, a power of two; or a range of sizes, {min: 2, max: 8}."
    )
    hours: Annotated[float, Hours(1, MOST_HOURS)] = Field(
        description="Duration in hours (what is left of it, where it runs already), or text with a unit."
    )
    priority: JobPriority
    earliest_hour: Earliest = 0.0
    running_on: Annotated[int | None, Whole(0, MOST_GPUS - 1, optional=True)] = Field(
        default=None, description="First GPU of the block on which the job runs already; null: it waits."
    )
    deadline_hour: Deadline = None
    gpu_hours: Annotated[
        None, LeftOut(_ONE_NUMBER + "write hours, or give gpus as a range, {min: 2, max: 8}")
    ] = Field(default=None, description="Only where gpus is a range.")
    scaling: Annotated[None, LeftOut(_ONE_NUMBER + "how a job scales matters only for a range of sizes")] = (
        Field(default=None, description="Only where gpus is a range.")
    )

    def build(self) -> BatchJob:
        """The job."""
        return BatchJob(
            self.name,
            self.kind,
            self.gpus,
            self.hours,
            self.priority,
            self.earliest_hour,
            self.running_on,
            self.deadline_hour,
        )


class RangeFile(Strict):
    """Sizes of a job: every power of two from `min` to `max`; the policy chooses one at the start."""

    min: Annotated[int, Whole(1, MOST_GPUS, power_of_two=True)] = Field(
        description="GPUs of the smallest block, a power of two."
    )
    max: Annotated[int, Whole(1, MOST_GPUS, power_of_two=True)] = Field(
        description="GPUs of the largest block, a power of two."
    )


def _range(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise broken("must be a power of two, or a range of them, {min: 2, max: 8}")
    return as_mapping(value)


class RangedBatchFile(Strict):
    """A batch job that runs on few GPUs for long or on many for a shorter time: the policy decides."""

    name: JobName
    kind: Kind
    gpus: Annotated[RangeFile, BeforeValidator(_range)] = Field(
        description="Sizes of the block; the policy chooses one when the job starts, and it stays."
    )
    gpu_hours: Annotated[float, Hours(1, MOST_HOURS)] = Field(
        description="Work in GPU-hours on the smallest size; on n GPUs it takes "
        "gpu_hours / min x (min / n) ** scaling hours. Or text with a unit."
    )
    scaling: Annotated[float, Real(0, 1, above=0)] = Field(
        default=1.0,
        description="How speed grows with GPUs: 1, twice the GPUs are twice as fast; 0.5, 1.41 times.",
    )
    priority: JobPriority
    earliest_hour: Earliest = 0.0
    deadline_hour: Deadline = None
    hours: Annotated[
        None, LeftOut(_A_RANGE + "write gpu_hours, the work in GPU-hours on the smallest size")
    ] = Field(default=None, description="Only where gpus is one number.")
    running_on: Annotated[
        None, LeftOut(_A_RANGE + "what runs already keeps its GPUs; write them as one number, with hours")
    ] = Field(default=None, description="Only where gpus is one number.")

    def build(self) -> BatchJob:
        """The job."""
        return BatchJob(
            self.name,
            self.kind,
            self.gpus.min,
            self.gpu_hours / self.gpus.min,
            self.priority,
            self.earliest_hour,
            None,
            self.deadline_hour,
            self.gpus.max,
            self.scaling,
        )


def has_range(row: Any) -> bool:
    """Whether a row means a job with a range of GPUs; where `gpus` does not tell, its other keys do."""
    if not isinstance(row, Mapping):
        return False
    gpus = row.get("gpus")
    if isinstance(gpus, Mapping) or number(gpus) is not None:
        return isinstance(gpus, Mapping)
    return "gpu_hours" in row and "hours" not in row


def _form(row: Any) -> str:
    return "range" if has_range(row) else "number"


Row = Annotated[
    Annotated[BatchFile, Tag("number")] | Annotated[RangedBatchFile, Tag("range")], Discriminator(_form)
]
JobRows = tuple[Annotated[Row, BeforeValidator(as_mapping)], ...]
