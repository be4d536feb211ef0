"""What people write as an answer, and what is said to it."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpuplan.lessons.answers import NotUnderstood, read
from gpuplan.lessons.judge import judge


@pytest.mark.parametrize(
    ("given", "value", "unit"),
    [
        (6, 6, None),
        (np.float32(0.5), 0.5, None),
        (np.int64(3), 3, None),
        (Fraction(1, 3), 1 / 3, None),
        (Decimal("0.1"), 0.1, None),
        ("6 GPU-hours", 6, "GPU-hours"),
        ("6 gpu hours", 6, "GPU-hours"),
        ("360 GPU-minutes", 360, "GPU-minutes"),
        ("33 %", 33, "%"),
        ("33%", 33, "%"),
        ("33 percentage points", 33, "points"),
        ("+33.3 points", 33.3, "points"),
        ("−5", -5, None),
        ("8/24", 1 / 3, None),
        ("1,000", 1000, None),
        ("1 000 GB", 1000, "GB"),
        ("1,234,567.5", 1234567.5, None),
        ("0,5", 0.5, None),
        ("about 12 GiB", 12, "GiB"),
        ("~ 3 h", 3, "h"),
        (".5", 0.5, None),
        ("4 GPUs.", 4, "GPUs"),
    ],
)
def test_numbers_and_units_are_understood(given: Any, value: float, unit: str | None) -> None:
    answer = read(given)
    assert answer.value == pytest.approx(value)
    assert (answer.unit.name if answer.unit else None) == unit


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "no answer yet"),
        ("", "no answer yet"),
        (..., "no answer yet"),
        (True, "this is True"),
        ([1, 2], "this is [1, 2]"),
        (3 + 4j, "complex"),
        (math.nan, "NaN"),
        ("nan", "NaN"),
        (-math.inf, "infinite"),
        (10**400, "too large"),
        ("six", "in digits"),
        ("10-12", "range"),
        ("10 to 12", "range"),
        ("5 apples", "'apples' is none that is known"),
        ("1/0", "divided by 0"),
        ("1,2,3", "commas"),
        ("1" * 90, "more than a number"),
        ("<b>5</b>", "'<b>5</b>'"),
    ],
)
def test_what_is_no_number_is_explained(given: Any, words: str) -> None:
    with pytest.raises(NotUnderstood) as caught:
        read(given)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("given", "right", "unit", "verdict", "words"),
    [
        (53.6, 53.645, "%", "right", ""),
        (54, 53.645, "%", "nearly", "within ten per cent"),
        ("53.6 %", 53.645, "%", "right", ""),
        (0.536, 53.645, "%", "nearly", "differ by 100"),
        ("33.3 %", 33.33, "points", "nearly", "points, not %"),
        ("50 %", 33.33, "points", "not yet", "in points"),
        ("14 h", 14, "GPU-hours", "nearly", "its unit is not"),
        ("3 h", 14, "GPU-hours", "not yet", "this is in h"),
        ("840 GPU-minutes", 14, "GPU-hours", "right", ""),
        (840, 14, "GPU-hours", "nearly", "differ by 60"),
        (50400, 14, "GPU-hours", "nearly", "differ by 3,600"),
        ("2 days", 48, "h", "right", ""),
        (2, 48, "h", "nearly", "differ by 24"),
        ("16 GB", 16 * 1e9 / 2**30, "GiB", "right", ""),
        (16 * 1.0737, 16, "GiB", "nearly", "7 %"),
        (-14, 14, "GPU-hours", "nearly", "sign"),
        (140, 14, "GPU-hours", "nearly", "factor of 10"),
        (30, 14, "GPU-hours", "not yet", ""),
        (0, 14, "GPU-hours", "not yet", ""),
    ],
)
def test_slips_of_unit_and_factor_are_told(
    given: Any, right: float, unit: str, verdict: str, words: str
) -> None:
    found = judge(read(given), right, unit)
    assert found.verdict == verdict
    assert words in found.words


def test_one_step_off_is_told_where_things_are_counted() -> None:
    assert judge(read(13), 14, "GPU-hours", within=0.01, step=1).words.startswith("One step off")
    assert judge(read(13), 14, "GPU-hours", within=0.01).words.startswith("It is within ten per cent")
    assert judge(read(12), 14, "GPU-hours", within=0.01, step=1).verdict == "not yet"


def test_a_slip_of_the_exercise_goes_before_the_common_ones() -> None:
    found = judge(read(140), 14, "GPU-hours", slips=lambda: ((140, "You counted nights."),))
    assert (found.verdict, found.words) == ("nearly", "You counted nights.")
