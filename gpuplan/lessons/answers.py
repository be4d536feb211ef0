"""What people write as an answer: a number, a share, or text with a unit."""

import math
import numbers
import re
from dataclasses import dataclass
from fractions import Fraction

from gpuplan.inputs.errors import show


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as people read it: what it measures, and how many of its measure's base it is."""

    name: str
    measure: str
    factor: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A number that was understood, and its unit; ``None`` where none was written."""

    value: float
    unit: Unit | None


class NotUnderstood(ValueError):
    """An answer that is no number; its message is a sentence for the person."""


_GIB = 2.0**30

#: By measure: unit and factor, and how else people write it. The first unit of a measure is its base.
_WRITTEN: dict[str, list[tuple[str, float, str]]] = {
    "share": [("of one", 1.0, ""), ("%", 0.01, "percent|per cent|pct|prozent")],
    "change of a share": [("points", 0.01, "point|percentage points|percentage point|pp|%-points|% points")],
    "GPU-time": [
        ("GPU-hours", 1.0, "gpu-hour|gpu hours|gpu hour|gpu-h|gpu h|gpuh|gpuhours|cells|cell"),
        ("GPU-minutes", 1 / 60, "gpu-minute|gpu-min|gpu minutes|gpu min"),
        ("GPU-seconds", 1 / 3600, "gpu-second|gpu-s|gpu seconds"),
    ],
    "time": [
        ("s", 1.0, "sec|secs|second|seconds"),
        ("min", 60.0, "mins|minute|minutes"),
        ("h", 3600.0, "hour|hours|hrs|hr"),
        ("days", 86_400.0, "d|day"),
    ],
    "memory": [
        ("GiB", _GIB, "gibibyte|gibibytes"),
        ("GB", 1e9, "gigabyte|gigabytes"),
        ("MiB", 2.0**20, ""),
        ("MB", 1e6, "megabyte|megabytes"),
        ("TB", 1e12, ""),
    ],
    "GPUs": [("GPUs", 1.0, "gpu")],
    "jobs": [("jobs", 1.0, "job")],
    "tasks": [("tasks", 1.0, "task")],
    "models": [("models", 1.0, "model")],
    "loads": [("loads", 1.0, "load")],
    "rows": [("rows", 1.0, "row|lines|line")],
    "value": [
        ("of value", 1.0, "value|priority-weighted gpu-hours|weighted gpu-hours|units of value"),
    ],
    "ratio": [("times", 1.0, "x|×|fold|-fold|times as much")],
    "rate": [("requests/s", 1.0, "requests per second|req/s|per second|/s")],
    "priority": [("of priority", 1.0, "priority")],
}

_UNITS: dict[str, Unit] = {}
for _measure, _entries in _WRITTEN.items():
    for _name, _factor, _also in _entries:
        for _word in (_name.lower(), *filter(None, _also.split("|"))):
            _UNITS[_word] = Unit(_name, _measure, _factor)

_NUMBER = r"[+-]?(?:[0-9][0-9,' ]*(?:\.[0-9]+)?|\.[0-9]+)"
_SHAPE = re.compile(rf"({_NUMBER})(?:\s*/\s*({_NUMBER}))?\s*(.*)", re.DOTALL)
_ABOUT = re.compile(r"^(?:about|around|roughly|approximately|circa|ca\.?|it is|~|≈|=)\s*", re.IGNORECASE)
_LONGEST = 80  # characters of an answer


def unit(name: str) -> Unit:
    """The unit of a name that people write (``"GPU-hours"``, ``"per cent"``); KeyError where there is none."""
    return _UNITS[name.lower()]


def read(given: object) -> Answer:
    """The number and the unit of an answer.

    Parameters
    ----------
    given
        A number of any kind, or text: ``"6 GPU-hours"``, ``"33 %"``, ``"8/24"``, ``"1,000"``, ``"0,5"``.

    Raises
    ------
    NotUnderstood
        For what is no number: other types, NaN, infinities, a range, words; with a sentence.
    """
    if isinstance(given, str):
        return _of_text(given)
    if isinstance(given, bool) or not isinstance(given, numbers.Number | numbers.Real):
        if given is None or given is ...:
            raise NotUnderstood("There is no answer yet: a number is asked.")
        raise NotUnderstood(f"A number is asked, alone or as text with its unit; this is {show(given)}.")
    if isinstance(given, numbers.Complex) and not isinstance(given, numbers.Real):
        raise NotUnderstood("A real number is asked; this one is complex.")
    try:
        value = float(given)  # type: ignore[arg-type]
    except (OverflowError, ValueError, TypeError):
        raise NotUnderstood("This number is too large to mean anything here.") from None
    return Answer(_finite(value), None)


def _finite(value: float) -> float:
    if math.isnan(value):
        raise NotUnderstood("This is not a number (NaN): something before it went wrong, often 0 / 0.")
    if math.isinf(value):
        raise NotUnderstood("This is infinite: something before it was divided by 0.")
    return value


def _of_text(text: str) -> Answer:
    plain = text.strip().replace("−", "-").replace("\u00a0", " ").replace("\u202f", " ")
    if not plain:
        raise NotUnderstood("There is no answer yet: a number is asked.")
    if len(plain) > _LONGEST:
        raise NotUnderstood("This is more than a number with its unit.")
    plain = _ABOUT.sub("", plain)
    if plain.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return Answer(_finite(float(plain)), None)
    shape = _SHAPE.fullmatch(plain)
    if shape is None:
        raise NotUnderstood(f"A number in digits is asked, as in 12 or 12.5; this is {show(text)}.")
    over, under, rest = shape.groups()
    value = _number(over)
    if under is not None:
        if _number(under) == 0:
            raise NotUnderstood("Nothing can be divided by 0.")
        value /= _number(under)
    return Answer(_finite(float(value)), _unit_of(rest, text))


def _unit_of(rest: str, text: str) -> Unit | None:
    """The unit that stands behind the number; nothing behind it is no unit."""
    word = " ".join(rest.lower().split()).rstrip(".!")
    if not word:
        return None
    if word in _UNITS:
        return _UNITS[word]
    if re.match(r"(?:-|–|to|or|and|bis)\s*[0-9.]", word):
        raise NotUnderstood(f"One number is asked, not several or a range; this is {show(text)}.")
    raise NotUnderstood(
        f"The number is clear, its unit is not: {show(rest.strip())} is none that is known here."
    )


def _number(text: str) -> Fraction:
    """The number of digits with thousands set apart (``1,000``) or with a decimal comma (``0,5``)."""
    bare = text.replace(" ", "").replace("'", "")
    if "," in bare:
        head, _, tail = bare.rpartition(",")
        grouped = re.fullmatch(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?", bare)
        if not grouped and "," not in head and "." not in bare and tail:
            bare = f"{head}.{tail}"
        elif not grouped:
            raise NotUnderstood(f"The commas of {show(text)} are neither thousands nor decimals.")
    return Fraction(bare.replace(",", ""))
