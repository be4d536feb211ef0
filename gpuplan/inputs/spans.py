"""Spans of time in whole seconds: ``7d``, ``8h``, ``30min``, ``90s``, or a number where the field names its unit."""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

from gpuplan.inputs.fields import SECONDS, FieldType, broken, is_null, number

_SPAN = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([a-z]{1,3})", re.ASCII)
_LONGEST = 40  # characters


@dataclass(frozen=True, slots=True)
class Span(FieldType):
    """A time from `least` to `most` seconds: text with a unit, or a number of `unit` where there is one.

    Fractions of a second are rounded to the nearest second, half a second up (0.5 s is 1 s).
    """

    least: int
    most: int
    unit: str = ""
    optional: bool = False

    def read(self, value: Any) -> int | None:
        """The time in whole seconds."""
        if self.optional and is_null(value):
            return None
        exact = self._seconds(value)
        seconds = floor(exact + Fraction(1, 2))
        if exact < 0:
            raise broken("must not be negative")
        if seconds < self.least:
            raise broken(f"must be at least {span_text(self.least)}")
        if seconds > self.most:
            raise broken(f"must be at most {span_text(self.most)}")
        return seconds

    def _seconds(self, value: object) -> Fraction:
        found = number(value)
        if found is not None and (self.unit or found == 0):
            return Fraction(found) * SECONDS[self.unit or "s"]
        if found is not None:
            raise broken("must name its unit, as in 7d, 8h, 30min or 90s")
        if isinstance(value, str) and ":" in value[:_LONGEST]:
            raise broken("must name its unit, as in 90min, 90s or 1.5h: with colons it may mean two things")
        exact = seconds_of(value) if isinstance(value, str) else None
        if exact is None:
            alone = f"a number of {_PLURALS[self.unit]}, or " if self.unit else ""
            raise broken(f"must be {alone}a number with s, min, h, d or w (90s, 30min, 8h, 7d)")
        return exact

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        text: dict[str, Any] = {"type": "string", "pattern": r"^[0-9]*\.?[0-9]+ ?(s|sec|min|h|d|w)$"}
        plain: dict[str, Any] = {"const": 0}
        if self.unit:
            plain = {"type": "number", "minimum": self.least / SECONDS[self.unit]}
        return {"anyOf": [plain, text, *([{"type": "null"}] if self.optional else [])]}


def seconds_of(text: str) -> Fraction | None:
    """Seconds of a number, or of a number with a unit (``90s``, ``1.5h``); None where it is neither."""
    plain = number(text)
    if plain is not None:
        return Fraction(plain)
    parts = _SPAN.fullmatch(text) if len(text) < _LONGEST else None
    if parts is None or parts[2] not in SECONDS:
        return None
    return Fraction(parts[1].rstrip(".")) * SECONDS[parts[2]]


_PLURALS = {"s": "seconds", "h": "hours", "d": "days"}


def span_text(seconds: int) -> str:
    """Whole seconds as people write them, in the largest unit that is exact: ``7d``, ``8h``, ``30min``, ``90s``."""
    for unit in ("d", "h", "min"):
        if seconds and seconds % SECONDS[unit] == 0:
            return f"{seconds // SECONDS[unit]}{unit}"
    return f"{seconds}s"
