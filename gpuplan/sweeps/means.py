"""Means over seeds, with the interval of Student's t, of figures and of paired differences."""

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

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
    """Mean, and the ends of its 95 % interval: mean ± t s / sqrt(n); not a number for one value alone."""
    n, mean = len(values), float(values.mean())
    if n < 2:
        return mean, math.nan, math.nan
    half = student_t(n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half


def means(table: "pd.DataFrame", by: list[str], figures: list[str], units: dict[str, str]) -> "pd.DataFrame":
    """A row per setting, policy and figure: ``mean, low, high, n, missing, unit``.

    Parameters
    ----------
    table
        A row per run.
    by
        Columns of the setting, and the policy.
    figures
        Columns of the figures.
    units
        Unit of each figure.

    Returns
    -------
    DataFrame
        ``n`` counts the runs that have the figure, ``missing`` those that have none or an error.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for setting, part in table.groupby(by, sort=False, dropna=False):
        for figure in figures:
            values = part[figure].to_numpy(float)
            found = values[np.isfinite(values)]
            mean, low, high = interval(found) if len(found) else (math.nan,) * 3
            rows.append(
                {
                    **dict(zip(by, setting, strict=True)),
                    "figure": figure,
                    "mean": mean,
                    "low": low,
                    "high": high,
                    "n": len(found),
                    "missing": len(values) - len(found),
                    "unit": units[figure],
                }
            )
    columns = [*by, "figure", "mean", "low", "high", "n", "missing", "unit"]
    return pd.DataFrame(rows, columns=columns)


def paired(table: "pd.DataFrame", by: list[str], figures: list[str], against: str) -> "pd.DataFrame":
    """Each run minus that of `against` at the same point; rows of `against` are left out.

    Parameters
    ----------
    table
        A row per point and policy.
    by
        Columns that tell points apart (without the policy).
    figures
        Columns of the figures.
    against
        A policy.
    """
    base = table[table["policy"] == against]
    others = table[table["policy"] != against]
    joined = others.merge(base[[*by, *figures]], on=by, suffixes=("", "_base"), validate="many_to_one")
    for figure in figures:
        joined[figure] = joined[figure] - joined[f"{figure}_base"]
    return joined[[*by, "policy", *figures]]
