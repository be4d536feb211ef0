"""Clocks of zones, and times on the wall that run times and order settle."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.inputs.errors import InputError
from gpuplan.traces.instants import UNKNOWN, clock_of, settle, zone_of

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "UTC",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def wall(text: str) -> int:
    return int(np.datetime64(text, "s").astype(int))


def utc(seconds: int) -> str:
    return str(np.datetime64(int(seconds), "s"))


@given(st.sampled_from(ZONES), st.integers(31_536_000, 4_000_000_000))
def test_a_clock_shows_what_the_standard_library_shows(name: str, instant: int) -> None:
    zone = ZoneInfo(name)
    clock = clock_of(zone, instant, instant)
    shown = (EPOCH + timedelta(seconds=instant)).astimezone(zone).replace(tzinfo=UTC)
    seconds = int((shown - EPOCH).total_seconds())
    assert clock.wall(np.array([instant])).tolist() == [seconds]
    first, second = (int(values[0]) for values in clock.instants(np.array([seconds])))
    assert instant in (first, second)
    for fold, found in enumerate((first, second)):
        meant = shown.replace(tzinfo=zone, fold=fold)
        assert found == round(meant.timestamp())


@given(
    st.sampled_from(ZONES),
    st.integers(1_700_000_000, 1_800_000_000),
    st.integers(0, 200_000),
    st.integers(0, 9000),
)
def test_what_is_not_ambiguous_is_right(name: str, start: int, elapsed: int, waited: int) -> None:
    """Any submission, start and end, as a clock on the wall showed them, come back, unless the row is marked."""
    zone = ZoneInfo(name)
    clock = clock_of(zone, start - 10_000, start + 210_000)
    instants = {"submit_s": start - waited, "start_s": start, "end_s": start + elapsed}
    times = {key: clock.wall(np.array([value])) for key, value in instants.items()}
    found = settle(zone, times, np.array([elapsed]))
    if not found.ambiguous[0]:
        assert {key: int(values[0]) for key, values in found.times.items()} == instants
    assert int((found.times["end_s"] - found.times["start_s"])[0]) == elapsed
    assert not found.skipped[0]


def test_the_order_settles_what_the_run_time_does_not() -> None:
    """02:30 twice in Berlin on 2026-10-25; submitted at 00:45Z, which is 02:45 the first time: the start is the second.

    Start and end 02:50 and 02:55 by themselves fit both hours.
    """
    zone = ZoneInfo("Europe/Berlin")
    times = {
        "submit_s": "2026-10-25T02:45:00",
        "start_s": "2026-10-25T02:10:00",
        "end_s": "2026-10-25T02:20:00",
    }
    found = settle(zone, {key: np.array([wall(text)]) for key, text in times.items()}, np.array([600]))
    assert [utc(found.times[key][0]) for key in times] == [
        "2026-10-25T00:45:00",
        "2026-10-25T01:10:00",
        "2026-10-25T01:20:00",
    ]
    assert not found.ambiguous[0]
    assert found.settled[0]


def test_what_is_not_known_stays_so_and_what_is_an_instant_too() -> None:
    zone = ZoneInfo("Europe/Berlin")
    times = {"start_s": np.array([UNKNOWN, 1_793_000_000]), "end_s": np.array([UNKNOWN, 1_793_000_000])}
    found = settle(zone, times, np.array([UNKNOWN, 0]), {"end_s": np.array([False, True])})
    assert found.times["start_s"].tolist() == [UNKNOWN, 1_793_000_000 - 3600]
    assert found.times["end_s"].tolist() == [UNKNOWN, 1_793_000_000]


def test_a_time_that_never_was_is_said() -> None:
    """On 2026-03-29 the clock of Berlin goes from 02:00 to 03:00: 02:30 is taken as 01:30Z, one hour behind 00:30Z."""
    found = settle(
        ZoneInfo("Europe/Berlin"), {"start_s": np.array([wall("2026-03-29T02:30:00")])}, np.array([UNKNOWN])
    )
    assert found.skipped.tolist() == [True]
    assert utc(found.times["start_s"][0]) == "2026-03-29T01:30:00"
    assert not found.ambiguous[0]


@pytest.mark.parametrize(
    ("name", "ahead"),
    [("UTC", 0), ("Z", 0), ("+01:00", 3600), ("-0330", -12600), ("UTC+2", 7200), ("GMT-05", -18000)],
)
def test_zones_that_are_offsets(name: str, ahead: int) -> None:
    assert datetime(2026, 1, 1, tzinfo=zone_of(name)).utcoffset() == timedelta(seconds=ahead)
    assert zone_of("+01:00") == timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "name", ["", "Nowhere", "+25:00", "+01:75", "../../etc/passwd", "Europe", "\0", "Europe/\nBerlin"]
)
def test_zones_that_are_none(name: str) -> None:
    with pytest.raises(InputError, match="time zone"):
        zone_of(name)
