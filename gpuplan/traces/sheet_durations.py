"""Durations as spreadsheets and programs write them: numbers of a unit, ``90min``, ``1:30:00``, ``2 days 03:04:05``.

``1:30`` alone may be minutes and seconds or hours and minutes and is refused, but for limits in the notation of batch
systems, where it is minutes and seconds.
"""

import re

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.spans import seconds_of
from gpuplan.traces.sheet import Bools, Strings
from gpuplan.traces.sheet_numbers import NOTHING, Mark, number_of, numbers_of

#: Seconds of a number of each unit.
UNITS = {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0, "d": 86400.0}

_CLOCK = re.compile(
    r"(-?)(?:(\d{1,6})(?:-|\s*d(?:ays?)?,?\s*))?(\d{1,6}):(\d\d?)(?::(\d\d?)(?:[.,]\d{1,9})?)?", re.A | re.I
)

_LONGEST = 48


def durations_of(cells: Strings, unit: str, decimal: Mark) -> tuple[npt.NDArray[np.float64], Bools, Bools]:
    """Seconds of a column of durations, float64[R] (not-a-number: none), which cells are empty, which are wrong.

    Numbers are of `unit`; ``batch`` is the notation of batch systems, in which ``90`` and ``90:30`` are minutes and
    ``1-12`` is days and hours.
    """
    import pandas as pd

    if unit != "batch":
        values, empty, wrong = numbers_of(cells, decimal)
        values = values * UNITS[unit or "s"]
        if not wrong.any():
            return values, empty, wrong
    codes, texts = pd.factorize(cells)
    found = [_duration(text, unit, decimal) for text in texts.tolist()]
    seconds = np.array([np.nan if value is None else value for value in found], np.float64)
    none = np.array([value is None for value in found], np.bool_)
    blank = np.array([text.strip().lower() in NOTHING for text in texts.tolist()], np.bool_)
    return seconds[codes], (none & blank)[codes], (none & ~blank)[codes]


def _duration(text: str, unit: str, decimal: Mark) -> float | None:
    """Seconds of a cell; None where it holds no duration."""
    bare = text.strip()
    if len(bare) > _LONGEST:
        return None
    if unit == "batch":
        return batch_limit(bare)
    value = number_of(bare, decimal)
    if value is not None:
        return value * UNITS[unit or "s"]
    clock = _CLOCK.fullmatch(bare)
    if clock:
        if clock[5] is None and clock[2] is None:
            return None  # 1:30 may be minutes and seconds, or hours and minutes
        sign, days, hours, minutes, seconds = clock.groups()
        total = 86_400 * int(days or 0) + 3600 * int(hours) + 60 * int(minutes) + int(seconds or 0)
        return float(-total if sign else total) if int(minutes) < 60 and int(seconds or 0) < 60 else None
    exact = seconds_of(bare.lower().replace(",", ".") if decimal == "," else bare.lower())
    return None if exact is None else float(exact)


_BATCH = re.compile(
    r"(?:(\d{1,6})-(\d{1,6})(?::(\d{1,2})(?::(\d{1,2}))?)?|(\d{1,9})(?::(\d{1,2})(?::(\d{1,2}))?)?)", re.A
)


def batch_limit(text: str) -> float | None:
    """Seconds of a limit in the notation of batch systems; None where it is none.

    ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours``, ``days-hours:minutes``,
    ``days-hours:minutes:seconds`` (manual of Slurm's ``sbatch``, ``--time``).
    """
    found = _BATCH.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds, first, second, third = (
        int(part) if part else 0 for part in found.groups()
    )
    if found[1] is not None:
        return float(86_400 * days + 3600 * hours + 60 * minutes + seconds)
    if found[7] is not None:
        return float(3600 * first + 60 * second + third)
    return float(60 * first + second)
