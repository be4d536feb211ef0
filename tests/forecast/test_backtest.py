"""Back-tests of traffic forecasts: only the past is used, and the figures are those that one works out by hand."""

import csv
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpuplan.forecast import backtest as backtest_module
from gpuplan.forecast.backtest import FIGURES, backtest
from gpuplan.forecast.capacity import Replica
from gpuplan.forecast.charts import backtest_chart, lines_data, profile_chart, profile_data
from gpuplan.forecast.methods import METHODS
from gpuplan.forecast.outages import likely_outages, without_outages
from gpuplan.forecast.profile import weekly_profile
from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.errors import InputError
from gpuplan.traces.hourly import read_hourly

NAN = float("nan")
MONDAY = datetime(2026, 5, 4)


def history(values: npt.ArrayLike, start: datetime = MONDAY, bin_s: int = 3600) -> TrafficHistory:
    return TrafficHistory("chat", "requests/s", start, bin_s, np.asarray(values, np.float64))


def noisy(days: int, seed: int = 1) -> npt.NDArray[np.float64]:
    """Days with a daily shape, noise, and a level that drifts."""
    hours = np.arange(24 * days)
    noise = np.random.default_rng(seed).lognormal(0, 0.1, len(hours))
    shape: npt.NDArray[np.float64] = (100 + hours / 10 + 40 * np.sin(hours * np.pi / 12)) * noise
    return shape


@pytest.mark.parametrize("method", METHODS)
def test_what_comes_later_changes_no_forecast(method: str) -> None:
    """Days 8 and 9 are replaced: the forecasts of day 8 stay, those of day 9 follow what day 8 was.

    Methods that look a week back saw no other day of the same name.
    """
    values = noisy(10)
    changed = values.copy()
    changed[8 * 24 :] *= 5
    first, second = (backtest(history(rows), methods=[method], test_days=2) for rows in (values, changed))
    for rows in ("expected", "held"):
        before, after = getattr(first, rows)[method], getattr(second, rows)[method]
        assert before[:24].tolist() == after[:24].tolist()
        if method not in ("last-week-same-hour", "weekly-profile"):
            assert before[24:].tolist() != after[24:].tolist()


def test_the_figures_by_hand() -> None:
    """Days of 10, 20, 10, 20, 10: the last two are forecast as the days before were.

    Forecast 10 came 20, forecast 20 came 10: MAE 10, WAPE 480 of 720, no bias. Ratios so far are 2 and 1/2, so
    the 90 % margin is 2: held 20 and 40, enough in all hours, beyond demand by 0 and 30 of 20 + 10.
    Pinball at 0.9: (0.1 x 0 + 0.1 x 30) / 2 = 1.5.
    """
    found = backtest(history(np.repeat([10.0, 20, 10, 20, 10], 24)), methods=["last-day"], test_days=2)
    assert found.expected["last-day"].tolist() == [10.0] * 24 + [20.0] * 24
    assert found.held["last-day"].tolist() == [20.0] * 24 + [40.0] * 24
    figures = found.figures["last-day"]
    assert figures == pytest.approx(
        {
            "mae": 10,
            "wape_percent": 100 * 480 / 720,
            "bias_percent": 0,
            "pinball": 1.5,
            "covered_percent": 100,
            "served_percent": 100,
            "over_percent": 100,
        }
    )
    assert list(figures) == [name for name, _, _ in FIGURES]


def test_demand_in_gpus() -> None:
    """Replicas of 8/s with 2 GPUs: 20 and 10 need 6 and 4; held 20 and 40 are 6 and 10: 6 of 10 too many."""
    rows = history(np.repeat([10.0, 20, 10, 20, 10], 24))
    found = backtest(rows, methods=["last-day"], test_days=2, replica=Replica(2, 8, "requests/s"))
    assert found.figures["last-day"]["served_percent"] == 100
    assert found.figures["last-day"]["over_percent"] == pytest.approx(60)


def test_too_little_held_is_demand_that_is_not_served() -> None:
    """Traffic that doubles for the first time on the last day: half of it is served, no hour is covered."""
    found = backtest(history(np.repeat([10.0, 10, 10, 10, 20], 24)), methods=["last-day"], test_days=1)
    figures = found.figures["last-day"]
    assert (figures["served_percent"], figures["covered_percent"], figures["over_percent"]) == (50, 0, 0)
    assert figures["pinball"] == pytest.approx(0.9 * 10)


def test_a_week_that_repeats_is_forecast_exactly_by_those_that_look_a_week_back() -> None:
    week = np.random.default_rng(2).uniform(1, 9, 168)
    found = backtest(history(np.tile(week, 3)), methods=["last-day", "last-week-same-hour", "weekly-profile"])
    assert found.figures["last-week-same-hour"]["mae"] == 0
    assert found.figures["weekly-profile"]["mae"] == pytest.approx(0, abs=1e-12)
    assert found.figures["last-day"]["mae"] > 1
    assert (found.first, found.last) == (168, 504)


def test_exponential_smoothing_follows_a_shape_and_a_level() -> None:
    """A profile is a mean of the past, which lags behind a level that grows by 5 % a day."""
    shape = 100 + 40 * np.sin(np.arange(24) * np.pi / 12)
    rows = np.concatenate([shape * 1.05**day for day in range(10)])
    figures = backtest(history(rows)).figures
    assert figures["exponential-smoothing"]["wape_percent"] < figures["daily-profile"]["wape_percent"]


@pytest.mark.parametrize(("quantile", "deviations"), [(0.9, 1.2816), (0.25, -0.6745)])
def test_exponential_smoothing_is_held_at_a_quantile_of_its_errors(
    quantile: float, deviations: float
) -> None:
    """Noise of 5 % alone: the 90 % quantile of the normal distribution lies 1.28 deviations above its middle."""
    noise = np.random.default_rng(4).normal(0, 0.05, 240)
    found = backtest(
        history(100 * np.exp(noise)), methods=["exponential-smoothing"], test_days=1, quantile=quantile
    )
    above = np.log(found.held["exponential-smoothing"] / found.expected["exponential-smoothing"]) / 0.05
    np.testing.assert_allclose(above, deviations, rtol=0.15)


def test_a_profile_is_held_at_its_quantile_where_that_rests_on_enough_days() -> None:
    """After 20 days of 1 to 20 in a shuffled order, almost equally weighted: 90 % of them are up to 18."""
    order = np.random.default_rng(3).permutation(20) + 1.0
    rows = history(np.repeat([*order, 5.0], 24))
    found = backtest(rows, methods=["daily-profile"], test_days=1)
    exact = weekly_profile(rows.part(0, 480), quantile=0.9, period="day").values
    assert found.held["daily-profile"].tolist() == exact.tolist()
    assert 17 <= exact[0] <= 19


def test_a_profile_of_few_days_is_held_with_the_margin_of_its_own_errors() -> None:
    """Days of 10, 10, 10, 40: the profile before the last was 10, so that hours were up to four times it."""
    rows = history(np.repeat([10.0, 10, 10, 40, 10], 24))
    found = backtest(rows, methods=["daily-profile"], test_days=1)
    np.testing.assert_allclose(found.held["daily-profile"], 4 * found.expected["daily-profile"])
    # Without errors of its own the margin adds nothing to the highest that was seen.
    calm = backtest(history(np.repeat([10.0] * 5, 24)), methods=["daily-profile"], test_days=1)
    assert calm.held["daily-profile"].tolist() == [10] * 24


def test_unknown_hours_judge_nobody_and_are_said() -> None:
    values = noisy(10)
    values[-5:-2] = NAN
    found = backtest(history(values), methods=["last-day", "daily-profile"])
    assert int(found.compared.sum()) == 72 - 3
    assert "3 hours are left out because their traffic is unknown." in found.notes


def test_all_methods_are_judged_by_the_same_hours() -> None:
    """A gap on the last day but one: no forecast for the same hours of the last day by the day before."""
    values = noisy(10)
    values[-48:-44] = NAN
    found = backtest(history(values), methods=["last-day", "daily-profile"], test_days=1)
    assert np.flatnonzero(~found.compared).tolist() == [0, 1, 2, 3]
    assert "4 hours are left out for which a method had no forecast." in found.notes
    alone = backtest(history(values), methods=["daily-profile"], test_days=1)
    assert alone.compared.all()


def test_a_method_that_needs_more_history_is_left_out_and_said() -> None:
    found = backtest(history(noisy(6)), methods=["last-day", "last-week-same-hour"])
    assert list(found.expected) == ["last-day"]
    assert "last-week-same-hour is left out: the history is too short for it." in found.notes


def test_outages_are_unknown_to_the_methods() -> None:
    """A day of zeros must not become the forecast of the next one."""
    values = np.repeat([10.0] * 6, 24)
    values[4 * 24 : 4 * 24 + 6] = 0
    span = (MONDAY + timedelta(days=4), MONDAY + timedelta(days=4, hours=6))
    assert likely_outages(history(values)) == [span]
    found = backtest(history(values), methods=["last-day"], test_days=1, outages=[span])
    assert found.figures["last-day"]["mae"] == 0
    assert "6 known bins of 3600 s lie in outages and were left out." in found.notes
    assert backtest(history(values), methods=["last-day"], test_days=1).figures["last-day"]["mae"] > 0


def test_likely_outages_take_the_gaps_beside_them() -> None:
    values = [10, 10, NAN, 10, 0.1, NAN, NAN, 0.1, 10, 10]
    spans = likely_outages(history(values))
    assert spans == [(MONDAY + timedelta(hours=4), MONDAY + timedelta(hours=8))]
    np.testing.assert_array_equal(
        without_outages(history(values), spans).values, [10, 10, NAN, 10, *[NAN] * 4, 10, 10]
    )
    assert likely_outages(history([NAN, NAN])) == []


def test_days_begin_at_midnight_of_the_zone() -> None:
    """From 22:00 in UTC on it is tomorrow in Berlin; the two hours before are history only."""
    start = datetime(2026, 5, 4, 20, tzinfo=UTC)
    found = backtest(history(noisy(10), start), methods=["last-day"], test_days=3, timezone="Europe/Berlin")
    assert found.history.at(found.first) == datetime(2026, 5, 10, 22, tzinfo=UTC)


def test_finer_bins_are_forecast_by_the_hour() -> None:
    fine = np.repeat(np.repeat([10.0, 20, 10, 20, 10], 24), 6)
    found = backtest(history(fine, bin_s=600), methods=["last-day"], test_days=2)
    assert found.figures["last-day"]["mae"] == 10
    assert "Means of hours are forecast: peaks within an hour are higher." in found.notes


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(InputError, match="at least 4 whole days: it has 2"):
        backtest(history(noisy(2)))
    with pytest.raises(InputError, match="more than 9 whole days: it has 9"):
        backtest(history(noisy(9)), test_days=9)
    with pytest.raises(InputError) as caught:
        backtest(
            history(noisy(9), bin_s=7200),
            methods=["last-dya", "last-day", "last-day"],
            test_days=0,
            quantile=1,
            replica=Replica(1, 1, "tokens/s"),
        )
    assert len(caught.value.mistakes) == 6
    assert "did you mean last-day" in str(caught.value)


def test_without_statsmodels_the_model_is_left_out_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        backtest_module,
        "missing_package",
        lambda name: "statsmodels" if name == "exponential-smoothing" else "",
    )
    found = backtest(history(noisy(10)))
    assert "exponential-smoothing is left out: it needs statsmodels (the extra 'forecast')." in found.notes
    assert "exponential-smoothing" not in found.expected
    with pytest.raises(InputError, match=r"methods\.0: needs statsmodels"):
        backtest(history(noisy(10)), methods=["exponential-smoothing"])


# ---------------------------------------------------------------------- charts


def test_the_chart_has_every_line_and_its_gaps() -> None:
    values = noisy(10)
    values[-5:-2] = NAN
    found = backtest(history(values), methods=["last-day", "daily-profile"])
    data = lines_data(found)
    assert set(data["series"]) == {"actual", "last-day", "daily-profile"}
    assert data[data["series"] == "actual"]["value"].isna().sum() == 3
    chart = backtest_chart(found).to_dict()
    hours, below = chart["vconcat"]
    assert hours["encoding"]["y"]["title"] == "requests/s, mean of the hour"
    assert hours["encoding"]["x"]["title"] == "hours from 2026-05-11 00:00"
    assert len(below["hconcat"]) == 2
    assert f"WAPE {found.figures['last-day']['wape_percent']:.1f} %" in chart["description"]


def test_the_profile_is_drawn_with_gaps_where_it_is_unknown() -> None:
    values = np.tile(np.arange(168.0), 2)
    values[[146, 146 + 168]] = NAN
    made = weekly_profile(history(values), period="week")
    data = profile_data(made)
    assert len(data) == 167
    assert data[data["hour"] == "Tue 05:00"][["from_h", "to_h", "value"]].to_numpy().tolist() == [
        [29, 30, 29]
    ]
    chart = profile_chart(made).to_dict()
    assert chart["layer"][0]["encoding"]["y"]["title"] == "requests/s"
    assert "never seen" in chart["description"]
    daily = weekly_profile(history(values), period="day")
    assert len(profile_data(daily)) == 24
    assert len(profile_data(weekly_profile(history([1, 2]), flat=True))) == 1


# ---------------------------------------------------------------------- the real file


@pytest.mark.parametrize("model", ["m-large", "m-mid", "m-small"])
def test_real_days_against_sums_without_numpy(shared: Path, model: str) -> None:
    """The WAPE of the day before, from the file by plain loops."""
    path = shared / "traces" / "servegen" / "total_rate_10min.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rates = [float(row[model]) for row in csv.DictReader(file)]
    hours = []
    for i in range(0, 1440, 6):
        known = [rate for rate in rates[i : i + 6] if rate > 0]
        hours.append(sum(known) / len(known) if known else math.nan)
    pairs = [(hours[i], hours[i - 24]) for i in range(168, 240)]
    pairs = [(came, before) for came, before in pairs if came == came and before == before]
    expected = 100 * sum(abs(came - before) for came, before in pairs) / sum(came for came, _ in pairs)
    history = read_hourly(
        path,
        unit="requests/s",
        time="t_s",
        value=model,
        seconds_since=datetime(2001, 1, 1),
        zero_is_unknown=True,
    )
    found = backtest(history, methods=["last-day"])
    assert found.figures["last-day"]["wape_percent"] == pytest.approx(expected)
    assert int(found.compared.sum()) == len(pairs)
