"""Means over seeds and paired differences."""

import math

import pandas as pd

from gpuplan.sweeps.means import means, paired


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
