"""Means over seeds, with the interval of Student's t, of figures and of paired differences."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuplan.intervals import interval

if TYPE_CHECKING:
    import pandas as pd


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
