"""Types of fields: what a written value means is decided by the field it stands in.

Used as annotations of pydantic models: ``gpus: Annotated[int, Whole(1, 16384)]``. Values come from
files (every plain scalar is text, see `gpuplan.inputs.yaml_file`) or from Python (numbers of the
standard library and of numpy). Both go through the same rules; a bool is never a number.
"""

import math
import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gpuplan.inputs.errors import did_you_mean
from gpuplan.inputs.yaml_file import Plain

#: Seconds of the units in which times may be written.
SECONDS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}

#: Where the type of a mistake comes from this module, pydantic reports this type.
RULE = "rule"

_NUMBER = re.compile(r"[+-]?(?:0|[1-9][0-9]*|(?=\.[0-9]))(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_WITH_UNIT = re.compile(r"([0-9.]+) ?([a-z]{1,3})", re.ASCII)
_LONGEST_NUMBER = 40  # characters
_BEYOND = 10**40


def broken(rule: str) -> PydanticCustomError:
    """The error of a value that breaks `rule` ("must be at least 1")."""
    return PydanticCustomError(RULE, "{rule}", {"rule": rule})


def is_null(value: object) -> bool:
    """Whether a value of a file or of Python says "none"."""
    return value is None or (isinstance(value, Plain) and value.is_null)


def number(value: object) -> int | float | None:
    """The finite number that a value says; ``None`` where it says none.

    Text must be ASCII decimal without leading zeros or underscores (``0123`` is no number).
    """
    if isinstance(value, str):
        if len(value) > _LONGEST_NUMBER or not _NUMBER.fullmatch(value):
            return None
        found: int | float = float(value) if set(value) & {".", "e", "E"} else int(value)
    elif isinstance(value, bool):
        return None
    elif isinstance(value, numbers.Integral):
        found = int(value)
    elif isinstance(value, numbers.Real):
        try:
            found = float(value)
        except OverflowError:  # a fraction beyond all floats
            return None
    else:
        return None
    if isinstance(found, int):
        return max(-_BEYOND, min(found, _BEYOND))  # beyond every limit, and still a float
    return found if math.isfinite(found) else None


@dataclass(frozen=True, slots=True)
class FieldType(ABC):
    """What all types share; `optional` lets ``null``, ``~`` and nothing mean None."""

    @abstractmethod
    def read(self, value: Any) -> Any:
        """The value as the inside of gpuplan wants it; raises `broken` rules."""

    @abstractmethod
    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return self.json()


@dataclass(frozen=True, slots=True)
class Whole(FieldType):
    """A whole number from `least` to `most`."""

    least: int
    most: int
    optional: bool = False
    power_of_two: bool = False

    def read(self, value: Any) -> int | None:
        """The whole number; ``8.0`` is one."""
        if self.optional and is_null(value):
            return None
        found = value if type(value) is int else number(value)
        if found is None or found != int(found):
            raise broken("must be a whole number")
        _between(found, self.least, self.most)
        whole = int(found)
        if self.power_of_two and whole & (whole - 1):
            raise broken("must be a power of two")
        return whole

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        limits: dict[str, Any] = {"type": "integer", "minimum": self.least, "maximum": self.most}
        if self.power_of_two:
            limits = {"enum": [1 << power for power in range(self.most.bit_length())]}
        return _or_null(limits, self.optional)


@dataclass(frozen=True, slots=True)
class Real(FieldType):
    """A finite number from `least` to `most`, above `above`, of at most `decimals` decimals."""

    least: float
    most: float
    above: float | None = None
    decimals: int | None = None
    optional: bool = False

    def read(self, value: Any) -> float | None:
        """The number as a float."""
        if self.optional and is_null(value):
            return None
        found = number(value)
        if found is None:
            raise broken("must be a number")
        if self.above is not None and found <= self.above:
            raise broken(f"must be more than {_said(self.above)}")
        _between(found, self.least, self.most)
        if self.decimals is None:
            return float(found) + 0.0  # + 0.0 turns -0.0 into 0.0
        rounded = round(float(found), self.decimals)
        if abs(rounded - found) > 4 * math.ulp(rounded):  # 0.1 + 0.2 is meant to be 0.3
            raise broken(f"must have at most {self.decimals} decimals")
        return rounded + 0.0

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        limits: dict[str, Any] = {"type": "number", "minimum": self.least, "maximum": self.most}
        if self.above is not None:
            del limits["minimum"]
            limits["exclusiveMinimum"] = self.above
        return _or_null(limits, self.optional)


@dataclass(frozen=True, slots=True)
class Hours(FieldType):
    """A time in hours from `least_s` seconds to `most` hours: a number, or text with a unit."""

    least_s: float
    most: float
    optional: bool = False
    whole_seconds: bool = False

    def read(self, value: Any) -> float | None:
        """The time in hours."""
        if self.optional and is_null(value):
            return None
        found = number(value)
        hours = self._with_unit(value) if found is None else float(found)
        if hours < 0:
            raise broken("must not be negative")
        if hours * 3600 < self.least_s - 1e-6:
            raise broken(f"must be at least {self.least_s:g} s")
        if hours > self.most:
            raise broken(f"must be at most {_said(self.most)} hours")
        if self.whole_seconds:
            seconds = round(hours * 3600)
            if abs(hours * 3600 - seconds) > 1e-6:
                raise broken("must be a whole number of seconds")
            return seconds / 3600
        return hours + 0.0

    def _with_unit(self, value: object) -> float:
        if isinstance(value, str) and ":" in value[:_LONGEST_NUMBER]:
            raise broken("must name its unit, as in 90min, 90s or 1.5h: with colons it may mean two things")
        parts = (
            _WITH_UNIT.fullmatch(value) if isinstance(value, str) and len(value) < _LONGEST_NUMBER else None
        )
        amount = number(parts[1]) if parts else None
        if parts is None or amount is None or parts[2] not in SECONDS:
            raise broken("must be a number of hours, or a number with s, min, h, d or w (90min, 1.5h, 7d)")
        return amount * SECONDS[parts[2]] / 3600

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        text = {"type": "string", "pattern": r"^[0-9]*\.?[0-9]+ ?(s|sec|min|h|d|w)$"}
        plain = {"type": "number", "minimum": self.least_s / 3600, "maximum": self.most}
        return {"anyOf": [plain, text, *([{"type": "null"}] if self.optional else [])]}


@dataclass(frozen=True, slots=True)
class Text(FieldType):
    """Text of `least` to `most` characters, whatever it looks like (``no``, ``0123``, ``=1+1``).

    Control characters are refused (they would act on a terminal); `lines` allows line breaks and
    tabs.
    """

    least: int
    most: int
    lines: bool = False

    def read(self, value: Any) -> str:
        """The text as written."""
        if not isinstance(value, str):
            raise broken("must be text")
        if len(value) > self.most:
            raise broken(f"must have at most {self.most:,} characters, but has {len(value):,}")
        text = str(value)
        if self.least and not text.strip():
            raise broken("must not be empty")
        for letter in () if text.isprintable() else text:
            if letter < " " or "\x7f" <= letter <= "\x9f" or "\ud800" <= letter <= "\udfff":
                if self.lines and letter in "\n\t":
                    continue
                raise broken(f"must not hold the control character U+{ord(letter):04X}")
        return text

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"type": "string", "minLength": self.least, "maxLength": self.most}


@dataclass(frozen=True, slots=True)
class Choice(FieldType):
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any) -> str:
        """The word."""
        if isinstance(value, str) and value in self.words:
            return str(value)
        listed = self.words[0] if len(self.words) == 1 else "one of " + ", ".join(self.words)
        raise broken(f"must be {listed}{did_you_mean(value, self.words)}")

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"const": self.words[0]} if len(self.words) == 1 else {"enum": list(self.words)}


_YES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Flag(FieldType):
    """Yes or no: ``true``, ``yes``, ``on``, ``false``, ``no``, ``off`` in a file, a bool in Python."""

    def read(self, value: Any) -> bool:
        """The bool."""
        if isinstance(value, str) and value.lower() in _YES:
            return _YES[value.lower()]
        if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):  # numpy's own, not imported
            return bool(value)
        raise broken("must be true or false")

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Moment(FieldType):
    """A date, with an hour where wanted (``2026-03-02``, ``2026-03-02T08:00``), without time zone."""

    optional: bool = False

    def read(self, value: Any) -> str | None:
        """The moment in ISO form: the date alone at midnight, else with hours and minutes."""
        if self.optional and is_null(value):
            return None
        rule = "must be a date, with an hour where wanted (2026-03-02 or 2026-03-02T08:00)"
        if isinstance(value, date):
            value = value.isoformat()
        if not isinstance(value, str) or not re.fullmatch(
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{2,15})?", value
        ):
            raise broken(rule)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise broken(rule) from None
        if not 1900 <= moment.year <= 2200:
            raise broken("must lie between 1900 and 2200")
        if moment == datetime(moment.year, moment.month, moment.day):
            return moment.date().isoformat()
        return moment.isoformat(timespec="auto" if moment.second or moment.microsecond else "minutes")

    def json(self) -> dict[str, Any]:
        """JSON Schema of what may be written."""
        return _or_null(
            {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}([T ]\d{2}(:\d{2})*)?$"}, self.optional
        )


def as_list(value: Any) -> Any:
    """A list, tuple, range, array or series as a list; anything else as it is (and then refused)."""
    if isinstance(value, (list, tuple)):
        return value
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1:
        return value.tolist()
    if isinstance(value, range):
        return list(value)
    raise broken("must be a list")


def as_list_or_none(value: Any) -> Any:
    """Like `as_list`; ``null`` and nothing are None."""
    return None if is_null(value) else as_list(value)


def as_list_or_empty(value: Any) -> Any:
    """Like `as_list`; ``null`` and nothing are an empty list."""
    return () if is_null(value) else as_list(value)


def as_section(value: Any) -> Any:
    """A mapping as a dict; ``null`` and nothing are an empty one."""
    return {} if is_null(value) else as_mapping(value)


def as_mapping(value: Any) -> Any:
    """A mapping as a dict with text keys; anything else is refused."""
    if not isinstance(value, Mapping):
        raise broken("must be a mapping (keys with values)")
    odd = _odd_keys(value)
    if odd:
        raise broken(f"must have words as keys, not {odd}")
    return value if isinstance(value, dict) else dict(value)


def _odd_keys(keys: Iterable[Any]) -> str:
    for key in keys:
        if not isinstance(key, str):
            return f"a {type(key).__name__}"
        if not key.isascii() and any("\ud800" <= letter <= "\udfff" for letter in key):
            return "broken text"
    return ""


def _between(found: float, least: float, most: float) -> None:
    if found < least:
        raise broken(f"must be at least {_said(least)}")
    if found > most:
        raise broken(f"must be at most {_said(most)}")


def _said(limit: float) -> str:
    return f"{int(limit):,}" if limit == int(limit) else f"{limit:g}"


def _or_null(schema: dict[str, Any], optional: bool) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]} if optional else schema
