"""The weekly profile: hours of the week, recent weeks, gaps and outages, nights on which clocks change."""

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pytest

from gpuplan.forecast.profile import weekly_profile
from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.errors import InputError

NAN = float("nan")
MONDAY = datetime(2026, 5, 4)
WEEK = np.arange(168.0)


def history(values: npt.ArrayLike, start: datetime = MONDAY, bin_s: int = 3600) -> TrafficHistory:
    return TrafficHistory("chat", "requests/s", start, bin_s, np.asarray(values, np.float64))


def test_recent_weeks_weigh_more() -> None:
    """Weeks of 100, 200, 400 with a half-life of one: (100/4 + 200/2 + 400) / (7/4) = 300."""
    made = weekly_profile(history(np.repeat([100.0, 200, 400], 168)), 1)
    np.testing.assert_allclose(made.values, 300)
    assert made.seen.tolist() == [3] * 168
    equal = weekly_profile(history(np.repeat([100.0, 200, 600], 168)), math.inf)
    np.testing.assert_allclose(equal.values, 300)


def test_a_quantile_reaches_its_share_of_the_weight() -> None:
    """Weights 1/7, 2/7, 4/7 of 300, 100, 200: up to 100 there are 2/7, up to 200 6/7, up to 300 all."""
    values = np.repeat([300.0, 100, 200], 168)
    for share, expected in ((0.2, 100), (0.3, 200), (0.85, 200), (0.9, 300)):
        assert set(weekly_profile(history(values), 1, share).values.tolist()) == {expected}


def test_hours_are_those_of_the_week_wherever_the_history_begins() -> None:
    """From Wednesday 05:00 on: Monday 00:00 stays the first value."""
    made = weekly_profile(history(np.roll(WEEK, -53), MONDAY + timedelta(hours=53)))
    assert made.values.tolist() == WEEK.tolist()
    frame = made.to_frame()
    assert (frame["day"][53], frame["hour"][53], frame["value"][53]) == ("Wed", 5, 53)


def test_gaps_and_outages_are_left_out_and_said() -> None:
    """Hour 3 is unknown in week 0, hours 5 and 6 of week 1 are an outage of zeros."""
    values = np.concatenate([WEEK + 1, WEEK + 1])
    values[3] = NAN
    values[168 + 5 : 168 + 7] = 0
    span = (MONDAY + timedelta(hours=173), MONDAY + timedelta(hours=175))
    made = weekly_profile(history(values), outages=[span])
    assert made.values.tolist() == (WEEK + 1).tolist()
    assert made.seen[[2, 3, 5, 6, 7]].tolist() == [2, 1, 1, 1, 2]
    assert (made.account.read, made.account.used) == (336, 333)
    assert dict(made.account.excluded) == {"unknown": 1, "in an outage": 2}
    assert "2 bins lie in outages and were left out." in made.notes
    assert "1 of 336 bins are unknown and were left out, not counted as 0." in made.notes


def test_a_bin_that_only_touches_an_outage_is_left_out_too() -> None:
    half = timedelta(minutes=30)
    span = (MONDAY + 5 * 2 * half + half, MONDAY + 6 * 2 * half)
    made = weekly_profile(history(np.tile(WEEK, 2)), outages=[span])
    assert np.flatnonzero(made.seen == 1).tolist() == [5]


def test_finer_bins_are_averaged_to_hours_first() -> None:
    """The hour has 1, 3 in one week and only a 9 in the next: (2 + 9) / 2, not (1 + 3 + 9) / 3."""
    values = np.ones(2 * 336)
    values[:2], values[336:338] = (1, 3), (9, NAN)
    assert weekly_profile(history(values, bin_s=1800), math.inf).values[0] == 5.5


# ---------------------------------------------------------------------- clocks that change

BERLIN = ZoneInfo("Europe/Berlin")


def berlin_weeks(first: datetime, last: datetime) -> TrafficHistory:
    """Hours in UTC whose value is the hour of the week on the wall in Berlin."""
    hours = round((last - first).total_seconds()) // 3600
    wall = [(first + timedelta(hours=i)).astimezone(BERLIN) for i in range(hours)]
    return history([24 * moment.weekday() + moment.hour for moment in wall], first)


@pytest.mark.parametrize(("month", "day", "slot"), [(3, 29, 6 * 24 + 2), (10, 25, 6 * 24 + 2)])
def test_the_hours_of_the_wall_do_not_move_with_the_clocks(month: int, day: int, slot: int) -> None:
    """Four weeks of 2026 around each change: every hour of the week keeps its value, in local time."""
    change = datetime(2026, month, day, tzinfo=UTC)
    found = berlin_weeks(change - timedelta(days=15), change + timedelta(days=13))
    made = weekly_profile(found, timezone="Europe/Berlin")
    np.testing.assert_allclose(made.values, WEEK)
    skipped = month == 3
    assert (
        made.seen[slot] == made.seen[slot + 1] - skipped
    )  # the skipped hour is absent, the doubled counts once
    assert made.zone == BERLIN
    start = change - timedelta(hours=2)
    expected = [
        24 * moment.weekday() + moment.hour
        for moment in ((start + timedelta(hours=i)).astimezone(BERLIN) for i in range(30))
    ]
    np.testing.assert_allclose(made.forecast(start, 30), expected)


def test_without_a_zone_of_its_own_the_hours_are_those_of_utc() -> None:
    found = berlin_weeks(datetime(2026, 5, 4, tzinfo=UTC), datetime(2026, 5, 18, tzinfo=UTC))
    assert weekly_profile(found).values[0] == 2  # Monday 00:00 in UTC is 02:00 in Berlin
    assert weekly_profile(found, timezone="Europe/Berlin").values[0] == 0


def test_a_zone_for_times_without_one_is_refused() -> None:
    with pytest.raises(InputError, match="times of the history have no zone"):
        weekly_profile(history(np.tile(WEEK, 2)), timezone="Europe/Berlin")


# ---------------------------------------------------------------------- too little history


def test_less_than_a_week_is_a_profile_of_the_day_and_says_so() -> None:
    made = weekly_profile(history(np.tile(np.arange(24.0), 6)))
    assert (made.period, made.values.tolist()) == ("day", list(range(24)))
    assert made.seen.tolist() == [6] * 24
    assert "every weekday alike" in made.notes[0]
    with pytest.raises(InputError, match=r"144 known hours so far, 144 of the 168 .*period='day'"):
        weekly_profile(history(np.tile(np.arange(24.0), 6)), period="week")


def test_days_of_a_daily_profile_age_by_the_day() -> None:
    """A half-life of one day: days of 100, 200, 400 weigh 1, 2, 4, as the weeks of a weekly one do."""
    made = weekly_profile(history(np.repeat([100.0, 200, 400], 24)), 1 / 7)
    np.testing.assert_allclose(made.values, 300)


def test_less_than_a_day_is_refused_unless_one_value_for_all_is_asked_for() -> None:
    short = history([1, 2, NAN, 6])
    with pytest.raises(
        InputError, match=r"3 known hours so far, 3 of 24 seen; collect more, or ask for flat=True"
    ):
        weekly_profile(short)
    made = weekly_profile(short, flat=True)
    assert (made.period, made.values.tolist()) == ("flat", [3])
    assert made.forecast(MONDAY, 3).tolist() == [3, 3, 3]


def test_nothing_known_is_refused_in_any_case() -> None:
    with pytest.raises(InputError, match="0 known hours"):
        weekly_profile(history([NAN] * 400), flat=True)


def test_hours_never_seen_are_unknown_where_the_week_is_asked_for() -> None:
    """Two weeks with a nightly gap on Sundays: a week on demand, a day otherwise."""
    values = np.tile(WEEK, 2)
    values[[146, 146 + 168]] = NAN
    made = weekly_profile(history(values), period="week")
    assert np.flatnonzero(np.isnan(made.values)).tolist() == [146]
    assert "1 hours of the week were never seen: their value is unknown." in made.notes
    assert np.isnan(made.forecast(MONDAY + timedelta(hours=145), 3)).tolist() == [False, True, False]
    assert weekly_profile(history(values)).period == "day"


# ---------------------------------------------------------------------- forecasts


def test_steps_of_other_lengths() -> None:
    made = weekly_profile(history(np.tile(WEEK, 2)))
    assert made.forecast(MONDAY, 4, 1800).tolist() == [0, 0, 1, 1]
    assert made.forecast(MONDAY, 2, 7200).tolist() == [0.5, 2.5]
    assert made.forecast(MONDAY, 2, 7200, how="highest").tolist() == [1, 3]
    assert made.forecast(MONDAY - timedelta(hours=1), 2).tolist() == [167, 0]
    # 00:30 to 01:30 is half of each.
    assert made.forecast(MONDAY + timedelta(minutes=30), 1).tolist() == [0.5]


def test_an_hour_of_a_zone_off_by_half_an_hour_is_split() -> None:
    """India's hours begin at our half hours: 00:00 in UTC is 05:30 there, half of hour 5 and half of 6."""
    start = datetime(2026, 5, 3, 18, 30, tzinfo=UTC)
    made = weekly_profile(history(np.tile(WEEK, 2), start), timezone="Asia/Kolkata")
    assert made.forecast(datetime(2026, 5, 4, tzinfo=UTC), 1).tolist() == [5.5]


def test_arguments_out_of_range_are_told_together() -> None:
    made = weekly_profile(history(np.tile(WEEK, 2)))
    with pytest.raises(InputError) as caught:
        made.forecast(datetime(2026, 5, 4, tzinfo=UTC), 0, 0, how="most")  # type: ignore[arg-type]
    assert [mistake.path for mistake in caught.value.mistakes] == ["start", "steps", "step_s", "how"]
    with pytest.raises(InputError) as caught:
        weekly_profile(history(np.ones(40), bin_s=7200), 0, 1.5, outages=[(MONDAY, MONDAY)], period="month")  # type: ignore[arg-type]
    paths = [mistake.path for mistake in caught.value.mistakes]
    assert paths == ["history.bin_s", "half_life_weeks", "quantile", "period", "outages.0"]
