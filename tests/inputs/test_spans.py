"""Spans of time: units, rounding, what is refused; what is written reads back."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from gpuplan.inputs.spans import Span, span_text
from gpuplan.inputs.yaml_file import Plain

DECADE = Span(0, 10**9)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7d", 604_800),
        ("8h", 28_800),
        ("30min", 1_800),
        ("90s", 90),
        ("90 sec", 90),
        ("2w", 1_209_600),
        ("1.5h", 5_400),
        (".5h", 1_800),
        ("0.1d", 8_640),
        ("0.5s", 1),  # half a second up
        ("0.49s", 0),
        ("1.499999s", 1),
        (Plain("7d"), 604_800),
        (0, 0),
        ("0", 0),
    ],
)
def test_what_a_text_means(text: Any, seconds: int) -> None:
    assert DECADE.read(text) == seconds


def test_a_bare_number_is_in_the_unit_of_the_field() -> None:
    assert Span(0, 10**9, unit="d").read(1.5) == 129_600
    assert Span(0, 10**9, unit="s").read("2.5") == 3
    assert Span(0, 10**9, unit="s").read("1h") == 3_600
    assert Span(0, 10**9, optional=True).read(Plain("null")) is None


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (7, "must name its unit, as in 7d, 8h, 30min or 90s"),
        ("7", "must name its unit"),
        (-7, "must name its unit"),
        (True, "must be a number with s, min, h, d or w"),
        (None, "must be a number with s, min, h, d or w"),
        ("", "must be a number with s, min, h, d or w"),
        ("d", "must be a number with"),
        ("7 years", "must be a number with"),
        ("7D", "must be a number with"),
        ("-7d", "must be a number with"),
        ("1.2.3h", "must be a number with"),
        ("٣h", "must be a number with"),
        ("nan", "must be a number with"),
        ("9" * 50 + "d", "must be a number with"),
        ("1:30", "must name its unit, as in 90min, 90s or 1.5h: with colons it may mean two things"),
        ("99999999w", "must be at most"),
        ([7], "must be a number with"),
    ],
)
def test_what_means_nothing(value: Any, rule: str) -> None:
    with pytest.raises(PydanticCustomError, match=rule):
        DECADE.read(value)


def test_limits_are_told_with_their_unit() -> None:
    with pytest.raises(PydanticCustomError, match="must be at least 1min"):
        Span(60, 3600).read("59s")
    with pytest.raises(PydanticCustomError, match="must be at most 1h"):
        Span(60, 3600).read("61min")
    with pytest.raises(PydanticCustomError, match="must not be negative"):
        Span(0, 3600, unit="s").read(-1)
    with pytest.raises(PydanticCustomError, match="must be a number of seconds, or a number with"):
        Span(0, 3600, unit="s").read("soon")


@given(st.integers(0, 10**9))
def test_what_is_written_reads_back(seconds: int) -> None:
    assert DECADE.read(span_text(seconds)) == seconds


@given(st.decimals(0, 10**4, places=3), st.sampled_from(["s", "min", "h", "d"]))
def test_rounding_is_exact(amount: Any, unit: str) -> None:
    exact = Fraction(str(amount)) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
    assert DECADE.read(f"{amount}{unit}") == (2 * exact + 1) // 2
