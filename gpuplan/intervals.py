"""Confidence intervals of means by Student's t, for any number of values."""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

#: Confidence of an interval.
LEVEL = 0.95


@cache
def student_t(degrees: int, level: float = LEVEL) -> float:
    """The t beyond which (on both sides) 1 - `level` of Student's distribution lies, for whole degrees of freedom.

    Source of the sums: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        low, high = high, 2 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def _within(t: float, degrees: int) -> float:
    """The part of Student's distribution between -t and t."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= square * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def interval(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean, and the ends of its 95 % interval: mean ± t s / sqrt(n); not a number for one value alone.

    Parameters
    ----------
    values : float64[n]
        At least one; s is their sample standard deviation.
    """
    n, mean = len(values), float(values.mean())
    if n < 2:
        return mean, math.nan, math.nan
    half = student_t(n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half
