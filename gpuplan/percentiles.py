"""The one rule of every percentile: the sorted value at index ``min(n - 1, floor(q x n))``."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def percentiles(values: Int64, quantiles: Sequence[float]) -> list[int | None]:
    """Percentiles of whole numbers; None of nothing."""
    n = len(values)
    if not n:
        return [None] * len(quantiles)
    index = [min(n - 1, math.floor(q * n)) for q in quantiles]
    ordered = np.partition(values, index)
    return [int(ordered[i]) for i in index]


def grouped_percentiles(values: Int64, group: Int64, n_groups: int, quantiles: Sequence[float]) -> Floats:
    """Percentiles of each group, float64[n_groups, Q]; not a number for an empty one."""
    order = np.lexsort((values, group))
    counts = np.bincount(group, minlength=n_groups)
    first = np.cumsum(counts) - counts
    found = np.full((n_groups, len(quantiles)), np.nan)
    some = counts > 0
    for k, q in enumerate(quantiles):
        index = first + np.minimum(counts - 1, np.floor(q * counts).astype(np.int64))
        found[some, k] = values[order[index[some]]]
    return found
