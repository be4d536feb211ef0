"""Confidence intervals: Student's t by its tables, an interval by hand, one home for all studies."""

import math

import numpy as np
import pytest

from gpuplan.fairshare.charts.studies import bounds
from gpuplan.intervals import interval, student_t


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


def test_many_seeds_have_no_other_interval_in_a_chart_than_in_a_table() -> None:
    # 0, 1, ..., 39: mean 19.5, s = 11.6905; t of 39 degrees of freedom, 2.02269, not the normal's 1.95996
    half = 2.02269 * 11.6905 / math.sqrt(40)
    assert bounds(np.arange(40.0), "t") == pytest.approx((19.5 - half, 19.5 + half), abs=1e-3)
    assert interval(np.arange(40.0))[1:] == bounds(np.arange(40.0), "t")
