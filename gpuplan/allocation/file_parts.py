"""What the models of the sections of a scenario file share: limits, frequent types, strictness."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict

from gpuplan.inputs.fields import Real, Text, Whole

MOST_GPUS, MOST_STEPS, MOST_HOURS, MOST_DEMAND = 16_384, 1_008, 1_000_000, 1_000_000

Name = Annotated[str, Text(1, 10_000)]
Priority = Annotated[float, Real(0, 1_000_000, above=0, decimals=3)]
GpuNumbers = tuple[Annotated[int, Whole(0, MOST_GPUS - 1)], ...]
Level = Annotated[float, Real(0, MOST_DEMAND)]


class Strict(BaseModel):
    """Frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
