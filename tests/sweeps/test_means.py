"""Means over seeds: Student's t by its tables, intervals by hand, paired differences."""

import math

import numpy as np
import pandas as pd
import pytest

from gpuplan.sweeps.means import interval, means, paired, student_t


@pytest.mark.parametrize(
    ("degrees", "t"),
    # Any printed table of Student's t, 97.5 %; the last is nearly the normal's 1.95996.
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (49, 2.00958), (10_000, 1.9602)],
)
def test_t_is_that_of_the_tables(degrees: int, t: float) -> None:
    assert student_t(degrees) == pytest.approx(t, rel=1e-5)


def test_an_interval_by_hand() -> None:
    # 1, 2, 3: mean 2, s = 1, half = 4.30265 / sqrt(3) = 2.48414
    assert interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((2, 2 - 2.48414, 2 + 2.48414), abs=1e-5)
    mean, low, high = interval(np.array([7.0]))
    assert mean == 7
    assert math.isnan(low)
    assert math.isnan(high)


def runs() -> pd.DataFrame:
    rows = [(1, 0, "a", 1.0), (1, 0, "b", 3.0), (1, 1, "a", 11.0), (1, 1, "b", 13.0), (2, 0, "a", math.nan)]
    return pd.DataFrame(rows, columns=["x", "seed", "policy", "y"])


def test_missing_values_are_counted_not_averaged() -> None:
    found = means(runs(), ["x", "policy"], ["y"], {"y": "s"})
    assert found[["x", "policy", "mean", "n", "missing"]].values.tolist()[:2] == [
        [1, "a", 6.0, 2, 0],
        [1, "b", 8.0, 2, 0],
    ]
    assert found.iloc[2][["n", "missing"]].tolist() == [0, 1]
    assert math.isnan(found.iloc[2]["mean"])


def test_paired_differences_lose_what_seeds_have_in_common() -> None:
    # b is 2 above a at both seeds, though seeds lie 10 apart: the difference has no spread
    found = means(paired(runs(), ["x", "seed"], ["y"], "a"), ["x", "policy"], ["y"], {"y": "s"})
    assert found[["policy", "mean", "low", "high", "n"]].values.tolist() == [["b", 2.0, 2.0, 2.0, 2]]
