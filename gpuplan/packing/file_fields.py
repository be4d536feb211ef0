"""Types of fields with exact numbers: sizes in bytes, times in microseconds, rates in bytes per second, margins.

A value is a number in the unit of its field or text with a unit (``"80GiB"``, ``"90min"``, ``"24GB/s"``). Decimals are
taken as they are written (0.1 is a tenth, no binary fraction), and what is left of the smallest unit is rounded, half
of it up.
"""

import re
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import BaseModel, ConfigDict

from gpuplan.inputs.fields import FieldType, broken, is_null, number
from gpuplan.inputs.yaml_text import neat
from gpuplan.packing.model import SECOND

#: Bytes of the units in which sizes may be written.
SIZES = {
    "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip

#: Microseconds of the units in which times may be written.
TIMES = {
    "us": 1, "ms": 1_000, "s": SECOND, "sec": SECOND, "min": 60 * SECOND, "h": 3_600 * SECOND,
    "d": 86_400 * SECOND, "w": 604_800 * SECOND,
}  # fmt: skip

_WITH_UNIT = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([A-Za-z]{1,3}(?:/s)?)", re.ASCII)
_LONGEST = 40  # characters


def exact(value: object) -> Fraction | int | None:
    """The number that a value says, as the decimal that was written; None where it says none."""
    found = number(value)
    if found is None or isinstance(found, int):
        return found
    return Fraction(Decimal(str(value) if isinstance(value, str) else repr(found)))


def half_up(value: Fraction | int) -> int:
    """The nearest whole number, a half upwards."""
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def shortest(amount: int, unit: int) -> int | float:
    """The number with the fewest digits that, times `unit`, is rounded to `amount` again."""
    if amount % unit == 0:
        return amount // unit
    for digits in range(1, 18):
        text = f"{amount / unit:.{digits}g}"
        if half_up(Fraction(Decimal(text)) * unit) == amount:
            return neat(float(text))
    return amount / unit  # not for amounts below 2**52


@dataclass(frozen=True, slots=True)
class Amount(FieldType):
    """An exact amount from `least` to `most` (in its smallest unit): a number of `unit`, or text with a unit."""

    least: int
    most: int
    unit: str
    optional: bool = False

    @abstractmethod
    def units(self) -> dict[str, int]:
        """What each unit that may be written is worth."""

    @abstractmethod
    def told(self) -> str:
        """How an amount may be written, as the end of a rule."""

    def read(self, value: Any) -> int | None:
        """The amount in its smallest unit."""
        if self.optional and is_null(value):
            return None
        found = exact(value)
        amount: Fraction | int = self._with_unit(value) if found is None else found * self.units()[self.unit]
        if amount < 0 <= self.least:
            raise broken("must not be negative")
        whole = half_up(amount)
        if whole < self.least:
            raise broken(f"must be at least {self.text(self.least)}")
        if whole > self.most:
            raise broken(f"must be at most {self.text(self.most)}")
        return whole

    def text(self, amount: int) -> str:
        """An amount in the unit of the field, for a rule."""
        size = shortest(amount, self.units()[self.unit])
        return (
            f"{size:,} {self.unit}"
            if amount == 0 or size >= 0.001
            else f"{amount} {next(iter(self.units()))}"
        )

    def _with_unit(self, value: object) -> Fraction:
        if isinstance(value, str) and ":" in value[:_LONGEST]:
            raise broken("must name its unit, as in 90min, 90s or 1.5h: with colons it may mean two things")
        parts = _WITH_UNIT.fullmatch(value) if isinstance(value, str) and len(value) < _LONGEST else None
        if parts is None or parts[2] not in self.units():
            raise broken(f"must be {self.told()}")
        return Fraction(Decimal(parts[1])) * self.units()[parts[2]]

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        worth = self.units()[self.unit]
        plain = {"type": "number", "minimum": self.least / worth, "maximum": self.most / worth}
        names = "|".join(self.units())
        text = {"type": "string", "pattern": rf"^[0-9]*\.?[0-9]+ ?({names})$"}
        return {"anyOf": [plain, text, *([{"type": "null"}] if self.optional else [])]}


class Size(Amount):
    """A size in whole bytes."""

    def units(self) -> dict[str, int]:
        """Units of bytes."""
        return SIZES

    def told(self) -> str:
        """How a size may be written."""
        return f"a number of {self.unit}, or a number with its unit (80GiB, 500MiB, 16GB)"


class Time(Amount):
    """A time in whole microseconds."""

    def units(self) -> dict[str, int]:
        """Units of time."""
        return TIMES

    def told(self) -> str:
        """How a time may be written."""
        return "a number of seconds, or a number with us, ms, s, min, h, d or w (250ms, 90s, 30min)"


class Bandwidth(Amount):
    """A rate in whole bytes per second."""

    def units(self) -> dict[str, int]:
        """Units of bytes per second."""
        return {f"{unit}/s": worth for unit, worth in SIZES.items()}

    def told(self) -> str:
        """How a rate may be written."""
        return f"a number of {self.unit}, or a number with its unit (24GB/s, 600MiB/s)"


@dataclass(frozen=True, slots=True)
class Millionths(FieldType):
    """A number from `least` to `most` of at most six decimals, as whole millionths."""

    least: int
    most: int

    def read(self, value: Any) -> int:
        """The number times a million."""
        found = exact(value)
        if found is None:
            raise broken("must be a number")
        if found < self.least:
            raise broken(f"must be at least {self.least}")
        if found > self.most:
            raise broken(f"must be at most {self.most}")
        whole = half_up(found * 1_000_000)
        if abs(Fraction(found) * 1_000_000 - whole) > Fraction(1, 1_000_000):  # 0.1 + 0.2 is meant to be 0.3
            raise broken("must have at most 6 decimals")
        return whole

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"type": "number", "minimum": self.least, "maximum": self.most}


class Strict(BaseModel):
    """Frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
