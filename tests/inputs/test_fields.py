"""What a written value means is decided by the type of its field."""

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic_core import PydanticCustomError

from gpuplan.inputs.fields import Choice, FieldType, Flag, Hours, Moment, Real, Text, Whole, as_list
from gpuplan.inputs.yaml_file import Plain

WHOLE = Whole(0, 100)
REAL = Real(0, 1e6, decimals=3)
HOURS = Hours(1, 1e6)


def rule(kind: FieldType, value: Any) -> str:
    with pytest.raises(PydanticCustomError) as caught:
        kind.read(value)
    return caught.value.message()


@pytest.mark.parametrize(
    "value",
    [8, 8.0, "8", "8.0", "+8", "8e0", np.int64(8), np.uint8(8), np.float32(8), Plain("8"), Fraction(8)],
)
def test_whole_numbers(value: Any) -> None:
    read = WHOLE.read(value)
    assert read == 8
    assert type(read) is int


NO_NUMBERS = [
    True,
    False,
    np.True_,
    None,
    "",
    " 8",
    "8_0",
    "0x10",
    "0123",
    "٣",  # Arabic-Indic three
    "８",  # full-width eight
    "nan",
    ".nan",
    "inf",
    "-.inf",
    float("nan"),
    float("inf"),
    np.float64("nan"),
    "1:30",
    "1,5",
    "1e9999",
    "9" * 5000,
    "eight",
    [8],
    {"a": 8},
    np.array([8]),
    8j,
    b"8",
    date(2026, 3, 2),
]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_is_none_for_any_field(value: Any) -> None:
    assert rule(WHOLE, value) == "must be a whole number"
    assert rule(REAL, value) == "must be a number"
    assert "hours" in rule(HOURS, value) or "unit" in rule(HOURS, value)


def test_limits_of_whole_numbers() -> None:
    assert rule(WHOLE, 2.5) == "must be a whole number"
    assert rule(WHOLE, "-1") == "must be at least 0"
    assert rule(WHOLE, 101) == "must be at most 100"
    assert rule(WHOLE, 10**400) == "must be at most 100"
    assert rule(Whole(1, 64, power_of_two=True), 3) == "must be a power of two"
    assert rule(Whole(1, 64, power_of_two=True), 0) == "must be at least 1"
    assert Whole(1, 64, power_of_two=True).read("64") == 64


def test_limits_of_real_numbers() -> None:
    assert rule(Real(0, 10, above=0), 0) == "must be more than 0"
    assert rule(Real(0, 10), -0.5) == "must be at least 0"
    assert rule(Real(0, 1_000_000), 10**400) == "must be at most 1,000,000"
    assert rule(REAL, "1.0005") == "must have at most 3 decimals"
    assert rule(REAL, 1e-9) == "must have at most 3 decimals"
    assert REAL.read(0.1 + 0.2) == 0.3  # the noise of floats is not a fourth decimal
    assert str(REAL.read(-0.0)) == "0.0"


@pytest.mark.parametrize(
    ("value", "hours"),
    [
        (1, 1.0),
        ("1.5", 1.5),
        ("90min", 1.5),
        ("90 min", 1.5),
        ("1.5h", 1.5),
        ("7d", 168.0),
        ("2w", 336.0),
        ("30s", 30 / 3600),
        ("3600s", 1.0),
        (".5h", 0.5),
    ],
)
def test_times_in_hours_or_with_a_unit(value: Any, hours: float) -> None:
    assert HOURS.read(value) == hours


@pytest.mark.parametrize(
    "value",
    ["1:30", "01:30", "12:00:00", "1h30", "90m", "5 hours", "h", "1 h 5", "0x1h", "٣h", "1_0h", "nanh"],
)
def test_times_that_may_mean_two_things_are_refused(value: str) -> None:
    assert "90min" in rule(HOURS, value)
    assert rule(HOURS, Plain(value)) == rule(HOURS, value)  # quotes make no difference


def test_limits_of_times() -> None:
    assert rule(HOURS, -1) == "must not be negative"
    assert rule(HOURS, 0) == "must be at least 1 s"
    assert rule(HOURS, 10**400) == "must be at most 1,000,000 hours"
    assert rule(Hours(1, 168, whole_seconds=True), "0.0001h") == "must be at least 1 s"
    assert rule(Hours(1, 168, whole_seconds=True), 1.0001) == "must be a whole number of seconds"
    assert Hours(1, 168, whole_seconds=True).read(1 / 3) == 1200 / 3600


@pytest.mark.parametrize(
    "kind",
    [
        Whole(0, 9, optional=True),
        Real(0, 9, optional=True),
        Hours(0, 9, optional=True),
        Moment(optional=True),
    ],
)
def test_null_means_none_where_a_value_is_optional(kind: FieldType) -> None:
    assert [kind.read(value) for value in (None, Plain("null"), Plain("~"), Plain(""))] == [None] * 4
    assert rule(kind, "null").startswith("must be")


@pytest.mark.parametrize(
    "name", ["no", "null", "~", "0123", "3.10", "1:30", "=1+1", "../x", "<b>", "😀", "\u202eevil", " a "]
)
def test_text_is_text(name: str) -> None:
    assert Text(1, 200).read(Plain(name)) == name
    assert type(Text(1, 200).read(Plain(name))) is str


def test_limits_of_text() -> None:
    assert rule(Text(1, 200), "x" * 10_000) == "must have at most 200 characters, but has 10,000"
    assert rule(Text(1, 200), " \u3000") == "must not be empty"
    assert rule(Text(1, 200), 12) == "must be text"
    assert rule(Text(1, 200), "a\x1b[2J") == "must not hold the control character U+001B"
    assert rule(Text(1, 200), "\ud800") == "must not hold the control character U+D800"
    assert rule(Text(1, 200), "a\nb") == "must not hold the control character U+000A"
    assert Text(0, 200, lines=True).read("a\n\tb") == "a\n\tb"


@pytest.mark.parametrize(
    ("value", "flag"), [("true", True), ("no", False), ("On", True), (False, False), (np.True_, True)]
)
def test_flags(value: Any, flag: bool) -> None:
    assert Flag().read(value) is flag


@pytest.mark.parametrize("value", [1, 0, "1", "maybe", None, 1.0])
def test_no_flags(value: Any) -> None:
    assert rule(Flag(), value) == "must be true or false"


def test_choices_suggest() -> None:
    kind = Choice(("training", "quantization"))
    assert kind.read("training") == "training"
    assert rule(kind, "trainng") == "must be one of training, quantization; did you mean training?"
    assert rule(kind, "Training").endswith("did you mean training?")
    assert rule(kind, 3) == "must be one of training, quantization"


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-03-02", "2026-03-02"),
        ("2026-03-02T00:00", "2026-03-02"),
        ("2026-03-02 08:00", "2026-03-02T08:00"),
        ("2026-03-02T08", "2026-03-02T08:00"),
        ("2026-03-02T08:00:30", "2026-03-02T08:00:30"),
        (date(2026, 3, 2), "2026-03-02"),
        (datetime(2026, 3, 2, 8), "2026-03-02T08:00"),
        (pd.Timestamp("2026-03-02 08:00"), "2026-03-02T08:00"),
    ],
)
def test_moments(value: Any, moment: str) -> None:
    assert Moment().read(value) == moment


@pytest.mark.parametrize(
    "value",
    [
        "2026-02-30",
        "today",
        "2026-03-02T25:00",
        "2026-03-02T08:00Z",
        20260302,
        pd.NaT,
        "0001-01-01",
        "2026-1-2",
    ],
)
def test_no_moments(value: Any) -> None:
    assert rule(Moment(), value).startswith("must")


def test_lists_come_in_many_forms() -> None:
    for value in ([1, 2], (1, 2), np.array([1, 2]), pd.Series([1, 2]), range(1, 3)):
        assert list(as_list(value)) == [1, 2]
    for value in ("12", {1, 2}, {"a": 1}, 12, None, np.zeros((2, 2)), iter([1])):
        with pytest.raises(PydanticCustomError, match="must be a list"):
            as_list(value)
