"""The history of traffic: its rules, its times, wider bins."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.errors import InputError

NAN = float("nan")
MONDAY = datetime(2026, 5, 4)


def test_every_mistake_at_once() -> None:
    with pytest.raises(InputError) as caught:
        TrafficHistory(" ", "", datetime(2026, 5, 4, 0, 0, 0, 5), 7000, np.array([1, -1, NAN, math.inf]))
    paths = [mistake.path for mistake in caught.value.mistakes]
    assert paths == ["name", "unit", "start", "bin_s", "values.1", "values.3"]


@pytest.mark.parametrize("values", [[], [[1.0]], ["much"]])
def test_values_that_are_no_row_of_numbers(values: list[object]) -> None:
    with pytest.raises(InputError, match="values: must be"):
        TrafficHistory("a", "x", MONDAY, 3600, values)  # type: ignore[arg-type]


def test_values_are_a_copy_that_nobody_changes() -> None:
    mine = np.array([1.0, 2.0])
    history = TrafficHistory("a", "x", MONDAY, 3600, mine)
    mine[0] = 9
    assert history.values.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        history.values[0] = 9


def test_times_pass_over_a_change_of_clocks() -> None:
    """2026-03-29 in Berlin: an hour after 01:00 it is 03:00."""
    start = datetime(2026, 3, 29, 1, tzinfo=ZoneInfo("Europe/Berlin"))
    history = TrafficHistory("a", "x", start, 3600, np.ones(3))
    assert [history.at(i).hour for i in range(3)] == [1, 3, 4]
    assert history.to_frame()["time"].dt.hour.tolist() == [1, 3, 4]
    assert history.end.astimezone(UTC) == datetime(2026, 3, 29, 3, tzinfo=UTC)


def test_wider_bins_are_means_of_what_is_known() -> None:
    values = np.array([1, 3, NAN, 4, NAN, NAN, 7])
    wide = TrafficHistory("a", "x", MONDAY, 1800, values).rebinned(3600)
    np.testing.assert_array_equal(wide.values, [2, 4, NAN, 7])
    with pytest.raises(InputError, match="multiple"):
        wide.rebinned(5400)


def test_a_part_begins_at_its_first_bin() -> None:
    part = TrafficHistory("a", "x", MONDAY, 3600, np.arange(5.0)).part(2, 4)
    assert (part.start, part.values.tolist()) == (datetime(2026, 5, 4, 2), [2, 3])
