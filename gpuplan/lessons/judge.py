"""Whether a number is right, nearly right (and why), or not yet."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gpuplan.lessons.answers import Answer, NotUnderstood, Unit, unit

#: Half a unit of the third digit: 53.6 stands for 53.65, and 54 does not.
_THIRD_DIGIT = 0.005

#: An answer this near (a share of the right one) is told that it is near.
_NEAR = 0.1

#: By measure: factors that people forget, and the sentence that names each.
_FACTORS: dict[str, tuple[tuple[float, str], ...]] = {
    "share": ((100.0, "a share of one and a number of per cent differ by 100"),),
    "change of a share": ((100.0, "a share of one and a number of points differ by 100"),),
    "time": (
        (60.0, "seconds, minutes and hours differ by 60"),
        (3600.0, "seconds and hours differ by 3,600"),
        (24.0, "hours and days differ by 24"),
    ),
    "GPU-time": ((60.0, "minutes and hours differ by 60"), (3600.0, "seconds and hours differ by 3,600")),
    "memory": (
        (1024.0, "MiB and GiB differ by 1,024"),
        (2**30 / 1e9, "GB (10^9 bytes) and GiB (2^30 bytes) differ by 7 %"),
    ),
}

#: A share and the difference of two are mixed up, and both have their number.
_SHARES = {"share", "change of a share"}

#: What each measure is asked in, for an answer in another one.
_WHAT = {
    "GPU-time": "GPU-hours, GPUs times hours",
    "time": "a time",
    "share": "a share",
    "change of a share": "the difference of two shares, in points",
    "memory": "an amount of memory",
    "ratio": "a ratio",
    "value": "value, GPU-hours times priority",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What an answer is, and the sentence that helps, if there is one."""

    verdict: Literal["right", "nearly", "not yet"]
    words: str = ""


def judge(
    given: Answer,
    right: float,
    asked: str,
    *,
    within: float | None = None,
    step: float | None = None,
    slips: Callable[[], Sequence[tuple[float, str]]] = tuple,
) -> Finding:
    """What an answer is, against the right number.

    Parameters
    ----------
    given
        What was answered.
    right
        The right number, in the unit `asked`.
    asked
        Name of the unit that is asked.
    within
        How far an answer may be off, in that unit; by default half of a third digit.
    step
        Distance of a neighbour where things are counted.
    slips
        Numbers that a known slip leads to, with the sentence for each.
    """
    wanted = unit(asked)
    if given.unit is not None and given.unit.measure != wanted.measure:
        if _equal(_as_meant(given, given.unit, wanted), right, within):
            words = f"The number is right, its unit is not: asked is {_what(wanted)}, not {given.unit.name}."
            return Finding("nearly", words)
        return Finding("not yet", _other_measure(given.unit, wanted))
    value = in_unit(given, asked)
    if _equal(value, right, within):
        return Finding("right")
    words = next(_nearly(value, right, wanted, within, step, slips()), "")
    return Finding("nearly", words) if words else Finding("not yet")


def in_unit(given: Answer, asked: str) -> float:
    """The number of an answer in the unit that is asked; without a unit it is taken to be in that one.

    Raises
    ------
    NotUnderstood
        Where the unit measures something else.
    """
    wanted = unit(asked)
    if given.unit is None:
        return given.value
    if {given.unit.measure, wanted.measure} <= _SHARES or given.unit.measure == wanted.measure:
        return given.value * given.unit.factor / wanted.factor
    raise NotUnderstood(_other_measure(given.unit, wanted))


def _as_meant(given: Answer, found: Unit, wanted: Unit) -> float:
    """The number of an answer in another measure, as one who mixes up the two meant it."""
    if {found.measure, wanted.measure} == _SHARES:
        return given.value * found.factor / wanted.factor
    return given.value


def _what(wanted: Unit) -> str:
    return _WHAT.get(wanted.measure, f"a number of {wanted.name}")


def _other_measure(found: Unit, wanted: Unit) -> str:
    return f"Asked is {_what(wanted)} ({wanted.name}); this is in {found.name}."


def _nearly(
    value: float,
    right: float,
    wanted: Unit,
    within: float | None,
    step: float | None,
    slips: Sequence[tuple[float, str]],
) -> Iterator[str]:
    """Sentences to one whose number is that of a known slip, the most special one first."""
    for slip, words in slips:
        if _equal(value, slip, within):
            yield words
    if value and _equal(-value, right, within):
        yield "The size is right, the sign is not: is it more, or less?"
    for factor, words in _FACTORS.get(wanted.measure, ()):
        if _equal(value * factor, right, within) or _equal(
            value / factor, right, (within or 0) / factor or None
        ):
            yield f"A factor is off: {words}. Asked is a number of {wanted.name}."
    if step is not None and _equal(abs(value - right), step, 1e-6):
        yield "One step off: is one at an end counted too many, or left out?"
    for factor in (10.0, 1000.0):
        if _equal(value * factor, right, within) or _equal(value / factor, right, within):
            yield f"The digits are right; a factor of {factor:,.0f} is off."
    if right and abs(value - right) <= _NEAR * abs(right):
        yield "It is within ten per cent of the right number: count once more."


def _equal(value: float, right: float, within: float | None) -> bool:
    room = _THIRD_DIGIT * abs(right) if within is None else within
    return abs(value - right) <= room + 1e-9


def said(value: float, name: str) -> str:
    """A number with its unit, with one decimal where it has any."""
    rounded = f"{value:,.1f}".removesuffix(".0")
    return f"{rounded} {name}"
