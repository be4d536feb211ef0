"""Tables of hours: their order, gaps, repeated rows, time zones, and mistakes with their lines."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.errors import InputError
from gpuplan.traces.hourly import read_hourly

NAN = float("nan")
BERLIN = "Europe/Berlin"


def write(folder: Path, *rows: str, head: str = "hour,rate") -> Path:
    path = folder / "traffic.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def left_out(history: TrafficHistory) -> dict[str, int]:
    assert history.account is not None
    return dict(history.account.excluded)


def night(day: str, hours: list[int]) -> list[str]:
    """Rows of a night, with 10, 20, 30 ... as the values."""
    return [f"{day}T{hour:02}:00,{10 * (i + 1)}" for i, hour in enumerate(hours)]


def test_gaps_are_unknown_and_every_row_is_accounted_for(tmp_path: Path) -> None:
    path = write(
        tmp_path, "2026-05-04T02:00,5", "2026-05-04 00:00,0", "2026-05-04T04,", "2026-05-04T05:00,+Inf", ","
    )
    history = read_hourly(path, unit="requests/s")
    np.testing.assert_array_equal(history.values, [0, NAN, 5, NAN, NAN, NAN])
    assert (history.name, history.unit, history.bin_s) == ("rate", "requests/s", 3600)
    assert (history.start, history.end) == (datetime(2026, 5, 4), datetime(2026, 5, 4, 6))
    assert left_out(history) == {"no value: unknown": 1, "not finite: unknown": 1, "a blank line": 1}
    assert history.account is not None
    assert (history.account.read, history.account.used) == (5, 2)
    assert history.account.amounts[1] == ("unknown", 4, "bins")


def test_a_night_of_25_hours(tmp_path: Path) -> None:
    """2025-10-26: 02:00 comes twice; midnight in Berlin is 22:00 in UTC before, so the rows are hours 22 to 2."""
    path = write(tmp_path, *night("2025-10-26", [0, 1, 2, 2, 3]))
    history = read_hourly(path, unit="x", timezone=BERLIN)
    assert history.values.tolist() == [10, 20, 30, 40, 50]
    assert history.start.astimezone(UTC) == datetime(2025, 10, 25, 22, tzinfo=UTC)
    assert history.at(2).isoformat() == "2025-10-26T02:00:00+02:00"
    assert history.at(3).isoformat() == "2025-10-26T02:00:00+01:00"


def test_a_night_of_25_hours_written_backwards(tmp_path: Path) -> None:
    rows = night("2025-10-26", [0, 1, 2, 2, 3])
    history = read_hourly(write(tmp_path, *reversed(rows)), unit="x", timezone=BERLIN)
    assert history.values.tolist() == [10, 20, 30, 40, 50]


def test_a_night_of_25_hours_with_one_row_for_both_has_an_unknown_hour(tmp_path: Path) -> None:
    path = write(tmp_path, *night("2025-10-26", [1, 2, 3]))
    history = read_hourly(path, unit="x", timezone=BERLIN)
    np.testing.assert_array_equal(history.values, [10, 20, NAN, 30])


def test_a_night_of_23_hours_has_no_gap(tmp_path: Path) -> None:
    """2026-03-29: after 01:00 comes 03:00."""
    history = read_hourly(write(tmp_path, *night("2026-03-29", [0, 1, 3, 4])), unit="x", timezone=BERLIN)
    assert history.values.tolist() == [10, 20, 30, 40]
    assert history.at(2).hour == 3


def test_an_hour_that_the_clock_skips_is_left_out_or_a_mistake(tmp_path: Path) -> None:
    rows = ["2026-03-29T01:00,1", "2026-03-29T02:00,0", "2026-03-29T03:00,3"]
    history = read_hourly(write(tmp_path, *rows), unit="x", timezone=BERLIN)
    assert history.values.tolist() == [1, 3]
    assert left_out(history) == {"an hour that the clock skips": 1}
    rows[1] = "2026-03-29T02:00,2"
    with pytest.raises(InputError, match=r"line 3: is an hour that clocks skip in Europe/Berlin"):
        read_hourly(write(tmp_path, *rows), unit="x", timezone=BERLIN)


def test_without_a_zone_the_hour_twice_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 5: .*another value for 2025-10-26T02:00 than line 4"):
        read_hourly(write(tmp_path, *night("2025-10-26", [0, 1, 2, 2, 3])), unit="x")


def test_times_with_a_zone_are_instants(tmp_path: Path) -> None:
    rows = ["2026-05-04T02:00+02:00,1", "2026-05-04T01:00Z,2"]
    history = read_hourly(write(tmp_path, *rows), unit="x", timezone="America/Sao_Paulo")
    assert history.values.tolist() == [1, 2]
    assert history.start.isoformat() == "2026-05-03T21:00:00-03:00"
    assert history.start.tzinfo == ZoneInfo("America/Sao_Paulo")


@pytest.mark.parametrize("times", [("1775001600", "1775005200"), ("1775001600000", "1775005200000")])
def test_seconds_and_milliseconds_since_1970(tmp_path: Path, times: tuple[str, str]) -> None:
    history = read_hourly(write(tmp_path, f"{times[1]},2", f"{times[0]},1"), unit="x")
    assert history.values.tolist() == [1, 2]
    assert history.start == datetime(2026, 4, 1, tzinfo=UTC)


def test_both_seconds_and_milliseconds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="both are there"):
        read_hourly(write(tmp_path, "1775001600,1", "1775005200000,2"), unit="x")


@pytest.mark.parametrize(("twice", "expected"), [("sum", 12), ("mean", 4), ("last", 5)])
def test_two_values_for_one_time_as_the_user_says(tmp_path: Path, twice: str, expected: float) -> None:
    """2, 5 and 5: their sum is 12 and their mean 4, as nothing is left out as a repetition then."""
    rows = ["2026-05-04T00:00,2", "2026-05-04T00:00,5", "2026-05-04T00:00,5", "2026-05-04T01:00,9"]
    history = read_hourly(write(tmp_path, *rows), unit="x", twice=twice)  # type: ignore[arg-type]
    assert history.values.tolist() == [expected, 9]
    assert left_out(history) == ({"the same time and value again": 1} if twice == "last" else {})


def test_negative_values_are_refused_or_left_out(tmp_path: Path) -> None:
    rows = ["2026-05-04T00:00,-2", "2026-05-04T01:00,5", "2026-05-04T02:00,-1e3"]
    with pytest.raises(InputError) as caught:
        read_hourly(write(tmp_path, *rows), unit="x")
    assert [(mistake.line, mistake.value) for mistake in caught.value.mistakes] == [(2, -2), (4, -1000)]
    history = read_hourly(write(tmp_path, *rows), unit="x", negative="exclude")
    np.testing.assert_array_equal(history.values, [NAN, 5, NAN])
    assert left_out(history) == {"negative: unknown": 2}


def test_every_wrong_row_is_told_with_its_line(tmp_path: Path) -> None:
    rows = [
        "2026-05-04T00:00,1",
        "yesterday,2",
        "2026-05-04T02:00,much",
        "2026-05-04T03:00Z,1_000",
        "20260504,3",
    ]
    with pytest.raises(InputError) as caught:
        read_hourly(write(tmp_path, *rows), unit="x")
    assert [mistake.line for mistake in caught.value.mistakes] == [3, 4, 5, 5, 6]
    assert "'yesterday'" in str(caught.value)


@pytest.mark.parametrize("time", ["0001-01-01T00:00", "0001-01-01T00:00+14:00", "9999-12-31T23:00-14:00"])
def test_times_that_no_history_has(tmp_path: Path, time: str) -> None:
    with pytest.raises(InputError, match="line 2: must be between 1971 and 2199"):
        read_hourly(write(tmp_path, f"{time},1"), unit="x", timezone=BERLIN)


def test_a_time_beside_the_grid_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 4: must be a whole number of bins of 3600 s.*02:10"):
        read_hourly(
            write(tmp_path, "2026-05-04T00:00,1", "2026-05-04T01:00,1", "2026-05-04T02:10,1"), unit="x"
        )


def test_coarser_than_hourly_is_refused_unless_hours_are_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "2026-05-04T00:00,1", "2026-05-04T02:00,3")
    with pytest.raises(InputError, match="hourly or finer"):
        read_hourly(path, unit="x")
    np.testing.assert_array_equal(read_hourly(path, unit="x", bin_s=3600).values, [1, NAN, 3])


def test_a_column_is_asked_for_where_there_are_several(tmp_path: Path) -> None:
    path = write(tmp_path, "0,1,2", "600,3,0", "1200,5,4", head="t_s,a,b")
    with pytest.raises(InputError, match=r"value: must be named, as one of the columns t_s, a, b"):
        read_hourly(path, unit="x")
    history = read_hourly(
        path, unit="x", time="t_s", value="b", seconds_since=datetime(2001, 1, 1), zero_is_unknown=True
    )
    np.testing.assert_array_equal(history.values, [2, NAN, 4])
    assert left_out(history) == {"0, which stands for a gap in the recording: unknown": 1}


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "", "Europe", "../etc"])
def test_a_zone_that_does_not_exist(tmp_path: Path, zone: str) -> None:
    with pytest.raises(InputError, match="tz database"):
        read_hourly(write(tmp_path, "2026-05-04T00:00,1"), unit="x", timezone=zone)


def test_a_file_without_rows_or_with_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must have a row"):
        read_hourly(write(tmp_path), unit="x")
    with pytest.raises(InputError, match="one time does not tell"):
        read_hourly(write(tmp_path, "2026-05-04T00:00,1"), unit="x")


# ---------------------------------------------------------------------- the real file


def test_the_gaps_of_servegen(shared: Path) -> None:
    """The collection's README counts 62 bins of m-mid and 6 of m-small that are 0."""
    path = shared / "traces" / "servegen" / "total_rate_10min.csv"
    for model, gaps in (("m-large", 0), ("m-mid", 62), ("m-small", 6)):
        history = read_hourly(
            path,
            unit="requests/s",
            time="t_s",
            value=model,
            seconds_since=datetime(2001, 1, 1),
            zero_is_unknown=True,
        )
        assert (len(history), history.bin_s) == (1440, 600)
        assert int((~history.known).sum()) == gaps
