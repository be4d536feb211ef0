"""From an estimate to the row of a batch job in a scenario file."""

import math
from typing import Any

from pydantic_core import PydanticCustomError

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.inputs.fields import FieldType, Real, Text

#: Limits of a scenario file.
MOST_HOURS, MOST_PRIORITY, LONGEST_NAME = 1_000_000, 1_000_000, 10_000


def job_row(name: str, kind: str, gpus: int, hours: float, priority: float) -> dict[str, Any]:
    """The row of a batch job: ``name, kind, gpus, hours, priority``.

    Hours are rounded up to hundredths: a plan must not end a job too early.

    Raises
    ------
    InputError
        For a name, a priority or a duration that a scenario file does not take, all at once.
    """
    hours = math.ceil(round(hours * 100, 6)) / 100
    fields: dict[str, tuple[FieldType, Any]] = {
        "name": (Text(1, LONGEST_NAME), name),
        "priority": (Real(0, MOST_PRIORITY, above=0, decimals=3), priority),
    }
    mistakes, read = [], {}
    for key, (kind_of_field, value) in fields.items():
        try:
            read[key] = kind_of_field.read(value)
        except PydanticCustomError as error:
            mistakes.append(Mistake(key, error.message(), value))
    if hours > MOST_HOURS:
        rule = f"must be at most {MOST_HOURS:,} in a scenario file: use more GPUs"
        mistakes.append(Mistake("hours", rule, hours))
    if mistakes:
        raise InputError("batch job", mistakes)
    return {"name": read["name"], "kind": kind, "gpus": gpus, "hours": hours, "priority": read["priority"]}
