"""Moments that are numbers: seconds or milliseconds since 1970, seconds after some zero, days of a spreadsheet."""

from dataclasses import dataclass

import numpy as np

from gpuplan.traces.grid import FIRST_S, LAST_S, MILLISECONDS_FROM
from gpuplan.traces.sheet import Bools, Int64, Strings
from gpuplan.traces.sheet_durations import UNITS
from gpuplan.traces.sheet_numbers import Mark, numbers_of
from gpuplan.traces.sheet_times import NO_TIME

#: 1970-01-01 in days of a spreadsheet.
_SHEET_ZERO = 25_569

#: Longest duration and latest moment after some zero: 317 years.
MOST_S = 10_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A column of moments that are numbers.

    Attributes
    ----------
    seconds : int64[R]
        `NO_TIME` where there is none.
    since_1970
        Whether they count from 1970, else from a zero that is not told.
    unit
    empty, wrong, rounded : bool[R]
    unsaid : bool[R]
        -1, or 0 among seconds since 1970: no moment.
    """

    seconds: Int64
    since_1970: bool
    unit: str
    empty: Bools
    wrong: Bools
    rounded: Bools
    unsaid: Bools


def counted_moments(cells: Strings, unit: str, decimal: Mark) -> Counted:
    """Read a column of numbers as moments.

    Parameters
    ----------
    cells : object[R]
    unit
        ``s``, ``ms``, ``min``, ``h``, ``d`` or ``sheet-days``; empty: seconds, or milliseconds since 1970 where all
        numbers are so large.
    decimal
    """
    values, empty, wrong = numbers_of(cells, decimal)
    told = values[~np.isnan(values) & (values != 0) & (values != -1)]
    if not unit:
        unit = "ms" if len(told) and (told >= MILLISECONDS_FROM).all() else "s"
    scale, zero = (86_400.0, _SHEET_ZERO) if unit == "sheet-days" else (UNITS[unit], 0)
    far = ((told - zero) * scale >= 10 * FIRST_S) & ((told - zero) * scale < LAST_S)
    since_1970 = unit == "sheet-days" or bool(len(told) and far.all())
    unsaid = (values == -1) | ((values == 0) & since_1970)
    values = np.where(unsaid, np.nan, (values - zero) * scale)
    wrong = wrong | (np.abs(values) > MOST_S)
    none = wrong | np.isnan(values)
    seconds = np.floor(np.where(none, 0, values) + 0.5)
    return Counted(
        np.where(none, NO_TIME, seconds).astype(np.int64),
        since_1970,
        unit,
        empty | unsaid,
        wrong,
        ~none & (np.abs(seconds - values) > 1e-6),
        unsaid,
    )
