"""Pydantic models of where the tasks of a packing scenario file come from: a table, the generator, rows."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from gpuplan.inputs.fields import Real, Text, Whole, as_list_or_none, as_mapping, is_null
from gpuplan.packing.file_fields import Strict, Time
from gpuplan.packing.limits import (
    MOST_GENERATED,
    MOST_PRIORITY,
    MOST_ROWS,
    MOST_SERVICE_US,
    MOST_TOKENS,
    MOST_US,
)
from gpuplan.packing.model import SECOND, Draw, Generate


class FileName(Text):
    """The name of a file; ``null`` and nothing: none."""

    def read(self, value: Any) -> str | None:  # type: ignore[override]
        """The name as written."""
        return None if is_null(value) else Text.read(self, value)

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"anyOf": [Text.json(self), {"type": "null"}]}


def _or_none(value: Any) -> Any:
    return None if is_null(value) else as_mapping(value)


def _as_draw(value: Any) -> Any:
    """A plain number or text is always drawn; a mapping has a mean and a coefficient of variation."""
    return as_mapping(value) if isinstance(value, Mapping) else {"mean": value, "cv": 0}


def _or_plain(schema: dict[str, Any]) -> None:
    """JSON Schema of a draw: also a plain number, or text with a unit."""
    schema["anyOf"] = [{"type": ["number", "string"]}, {"$ref": schema.pop("$ref")}]


class ServiceFile(Strict):
    """Service times by mean and coefficient of variation."""

    mean: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(description="Mean, in seconds.")
    cv: Annotated[float, Real(0, 20)] = Field(
        default=1.0, description="Coefficient of variation: 0 always the mean, 1 exponential, else Gamma (1)."
    )

    def build(self) -> Draw:
        """The distribution, in seconds."""
        return Draw(self.mean / SECOND, self.cv)


class TokensFile(Strict):
    """Numbers of tokens by mean and coefficient of variation."""

    mean: Annotated[float, Real(0, MOST_TOKENS)] = Field(description="Mean.")
    cv: Annotated[float, Real(0, 20)] = Field(
        default=1.0, description="Coefficient of variation: 0 always the mean, 1 exponential, else Gamma (1)."
    )

    def build(self) -> Draw:
        """The distribution."""
        return Draw(self.mean, self.cv)


class GenerateFile(Strict):
    """Tasks made by the generator."""

    rate_per_s: Annotated[float, Real(0, 1e6, above=0.0)] = Field(description="Arrivals per second.")
    count: Annotated[int, Whole(0, MOST_GENERATED)] = Field(description="Number of tasks.")
    service_s: Annotated[ServiceFile, BeforeValidator(_as_draw)] = Field(
        description="Service time alone on a GPU, in seconds: a number (always that), or {mean, cv}.",
        json_schema_extra=_or_plain,
    )
    arrival_cv: Annotated[float, Real(0, 20)] = Field(
        default=1.0, description="Coefficient of variation of the gaps: 1 Poisson (1), 0 a fixed beat."
    )
    prediction_cv: Annotated[float, Real(0, 20)] = Field(
        default=0.0, description="Error of the predicted service time, log-normal of mean 1 (0: exact)."
    )
    tokens_in: Annotated[TokensFile, BeforeValidator(_as_draw)] = Field(
        default=TokensFile(mean=0, cv=0),
        description="Tokens that come with a task: a number (always that), or {mean, cv} (0).",
        json_schema_extra=_or_plain,
    )
    tokens_out: Annotated[TokensFile, BeforeValidator(_as_draw)] = Field(
        default=TokensFile(mean=0, cv=0),
        description="Tokens that a task makes: a number (always that), or {mean, cv} (0).",
        json_schema_extra=_or_plain,
    )
    high_priority_share: Annotated[float, Real(0, 1)] = Field(
        default=0.0, description="Share of the tasks with priority 1; the others have 0 (0)."
    )
    tenants: Annotated[int, Whole(1, 10_000)] = Field(
        default=1, description="Number of tenants, Zipf-popular (1)."
    )
    timeout_s: Annotated[int | None, Time(0, MOST_SERVICE_US, "s", optional=True)] = Field(
        default=None, description="A task that is not served so long after its arrival leaves; null: never."
    )
    seed: Annotated[int, Whole(0, 2**53)] = Field(
        default=1, description="Seed: the same tasks every time (1)."
    )

    def build(self) -> Generate:
        """What the generator is asked for."""
        return Generate(
            self.rate_per_s, self.count, self.service_s.build(), self.arrival_cv, self.prediction_cv,
            self.tokens_in.build(), self.tokens_out.build(), self.high_priority_share, self.tenants,
            self.timeout_s, self.seed,
        )  # fmt: skip


class TaskFile(Strict):
    """A task; the keys are the columns of a task table."""

    arrival_s: Annotated[int, Time(0, MOST_US, "s")] = Field(
        description="Arrival: seconds after the start, or text with a unit."
    )
    model: Annotated[str, Text(1, 200)] = Field(description="Name of a model.")
    tenant: Annotated[str, Text(0, 200)] = Field(default="everyone", description="Whose task it is.")
    priority: Annotated[int, Whole(-MOST_PRIORITY, MOST_PRIORITY)] = Field(
        default=0, description="Larger is more important (0)."
    )
    service_s: Annotated[int, Time(0, MOST_SERVICE_US, "s")] = Field(
        description="Service time alone on a GPU, in seconds."
    )
    predicted_s: Annotated[int | None, Time(0, MOST_SERVICE_US, "s", optional=True)] = Field(
        default=None, description="What the scheduler believes that it is; null: the service time itself."
    )
    tokens_in: Annotated[int, Whole(0, MOST_TOKENS)] = Field(
        default=0, description="Tokens that come with it (0)."
    )
    tokens_out: Annotated[int, Whole(0, MOST_TOKENS)] = Field(
        default=0, description="Tokens that it makes (0)."
    )
    deadline_s: Annotated[int | None, Time(0, MOST_US, "s", optional=True)] = Field(
        default=None,
        description="Seconds after the start at which it leaves if it was never served; null: never.",
    )


_TaskRows = Annotated[
    tuple[Annotated[TaskFile, BeforeValidator(as_mapping)], ...], Field(max_length=MOST_ROWS)
]


class TasksFile(Strict):
    """Where the tasks come from: a table, the generator, or rows that stand here."""

    file: Annotated[str | None, FileName(1, 4_000)] = Field(
        default=None, description="A task table (.csv or .csv.gz), relative to the scenario file."
    )
    generate: Annotated[GenerateFile | None, BeforeValidator(_or_none)] = Field(
        default=None, description="Generated tasks."
    )
    rows: Annotated[_TaskRows | None, BeforeValidator(as_list_or_none)] = Field(
        default=None, description="The tasks themselves, with the columns of a task table as keys."
    )
