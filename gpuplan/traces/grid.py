"""Numbers and times as other programs write them, and the grid of equal bins that the times lie on."""

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import DAY_S, MOST_BINS
from gpuplan.inputs.errors import Mistake

_PATTERN = r"(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf|infinity))"
_NUMBER = re.compile(_PATTERN, re.I | re.A)
_NUMBERS = re.compile(rf"{_PATTERN}(?:\n{_PATTERN})*", re.I | re.A)

#: What may stand around a number; `str.strip` would take control characters away that `float` refuses.
_BLANKS = " \t\r\n"

#: Times before 1971 are counted from something else; what lies beyond 2199 is no history.
FIRST_S, LAST_S = 31_536_000, 7_258_118_400

#: From here on a time in seconds would lie beyond the year 5000: it is in milliseconds.
MILLISECONDS_FROM = 1e11

#: From here on it cannot be milliseconds either.
_TOO_LATE = 1e14


def number(text: object) -> float | None:
    """The number of a text (``"NaN"`` and ``"+Inf"`` are numbers) or of a JSON number; otherwise ``None``.

    Stricter than `float`, which also reads ``1_000`` and digits of other scripts.
    """
    if isinstance(text, str):
        text = text.strip(_BLANKS)
        return float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        try:
            return float(text)
        except OverflowError:
            return None
    return None


def numbers(text: str) -> bool:
    """Whether every line of a text is a number as `number` reads it, without blanks."""
    return _NUMBERS.fullmatch(text) is not None


def epoch_unit(times: npt.NDArray[np.float64]) -> tuple[float, str]:
    """What divides times since 1970 to give seconds, and its name: ``(1000, "milliseconds")``.

    Raises
    ------
    ValueError
        If the times are neither all seconds nor all milliseconds.
    """
    if not np.isfinite(times).all() or (times < FIRST_S).any() or (times >= _TOO_LATE).any():
        raise ValueError("must be seconds or milliseconds since 1970")
    if (times >= MILLISECONDS_FROM).all():
        return 1000.0, "milliseconds"
    if (times < MILLISECONDS_FROM).all():
        return 1.0, "seconds"
    raise ValueError("must be all in seconds or all in milliseconds since 1970; both are there")


def bin_width(times_s: npt.NDArray[np.int64], bin_s: int | None) -> tuple[int, list[Mistake]]:
    """The width of the bins that sorted, distinct times lie on: the one given, else their least distance."""
    if bin_s is not None:
        if isinstance(bin_s, bool) or not isinstance(bin_s, int) or bin_s < 1 or DAY_S % bin_s:
            return 1, [Mistake("bin_s", "must be whole seconds that divide a day of 86400", bin_s)]
    elif len(times_s) < 2:
        return 1, [Mistake("bin_s", "must be given: one time does not tell how wide a bin is")]
    else:
        bin_s = int(np.diff(times_s).min())
        if DAY_S % bin_s:
            rule = f"must divide a day: the times are {bin_s} s apart; export with a step such as 60, 600 or 3600 s"
            return 1, [Mistake("bin_s", rule)]
    bins = int(times_s[-1] - times_s[0]) // bin_s + 1
    if bins > MOST_BINS:
        rule = f"must lie closer together: from first to last there are {bins:,} bins of {bin_s} s"
        return bin_s, [Mistake("time", rule)]
    return bin_s, []


def off_grid(times_s: npt.NDArray[np.int64], bin_s: int, place: Callable[[int], Mistake]) -> list[Mistake]:
    """A mistake (made by `place` from its number) for each time that is no whole number of bins after the first."""
    if not len(times_s):
        return []
    wrong = np.flatnonzero((times_s - times_s.min()) % bin_s)
    return [place(int(i)) for i in wrong]
