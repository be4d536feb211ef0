"""Ways to forecast the next day of traffic from the hours before it: plain rules, profiles, and a fitted model.

Each takes a history in hours and gives two rows: the expected value of each coming hour, and the value to hold so
that the share `quantile` of hours is covered. Not-a-number stands where a method knows nothing.
"""

import warnings
from collections.abc import Callable
from datetime import tzinfo
from importlib.util import find_spec
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.profile import weekly_profile
from gpuplan.forecast.profile_notes import fewest_seen
from gpuplan.forecast.traffic import HOUR_S, TrafficHistory
from gpuplan.inputs.errors import InputError

Row = npt.NDArray[np.float64]
Method = Callable[[TrafficHistory, int, float, tzinfo | None], tuple[Row, Row]]

#: Hours of the past that a model is fitted to: two weeks, a second or two of work; older ones weigh next to nothing.
FITTED_HOURS = 2 * 168

#: Rounds of the fit, so that hard data takes seconds and not minutes; most fits end before.
ROUNDS = 100

#: Days at the end of the past whose errors make a margin.
MARGIN_DAYS = 14

#: Pairs of hours that a margin must rest on.
_FEWEST_PAIRS = 24


def last_day(past: TrafficHistory, steps: int, quantile: float, zone: tzinfo | None) -> tuple[Row, Row]:
    """The same hour of the day before; held with the quantile of what hours were to those a day earlier."""
    del zone  # 24 hours back, also on the day on which clocks change
    return _same_hour(past, steps, quantile, 24)


def last_week(past: TrafficHistory, steps: int, quantile: float, zone: tzinfo | None) -> tuple[Row, Row]:
    """The same hour of the week before; held with the quantile of what hours were to those a week earlier.

    Where the past is too short for that margin, it is the one from day to day.
    """
    del zone
    return _same_hour(past, steps, quantile, 168)


def daily_profile(past: TrafficHistory, steps: int, quantile: float, zone: tzinfo | None) -> tuple[Row, Row]:
    """The profile by hour of the day; held at its quantile, and with a margin where that rests on too few days.

    The highest of n values covers the next one in n / (n + 1) of cases only, and one value has no quantile. So
    where fewer than `fewest_seen` were seen, the higher one counts of the quantile and of the expected value times
    what hours were to this method's forecasts on the last days of the past (the quantile of these ratios).
    """
    return _profile(past, steps, quantile, zone, "day")


def week_profile(past: TrafficHistory, steps: int, quantile: float, zone: tzinfo | None) -> tuple[Row, Row]:
    """The profile by hour of the week, of the day where the past has no full week; held as `daily_profile`."""
    return _profile(past, steps, quantile, zone, "auto")


def smoothing(past: TrafficHistory, steps: int, quantile: float, zone: tzinfo | None) -> tuple[Row, Row]:
    """Exponential smoothing with a season of 24 hours, fitted to the last two weeks; held at its prediction interval.

    Additive errors and season without a trend, ETS(A,N,A), of logarithms where all values are above 0, because
    traffic swings in proportion to its level. Hours that are unknown take the daily profile's value for the fit.
    Source: Hyndman and others, "Forecasting with Exponential Smoothing", Springer 2008.
    """
    values = past.values[-FITTED_HOURS:]
    gaps = ~np.isfinite(values)
    nothing = np.full(steps, np.nan)
    if len(values) < 72 or gaps.mean() > 0.5:
        return nothing, nothing
    if gaps.any():
        try:
            profile = weekly_profile(past, period="day", timezone=None)
        except InputError:
            return nothing, nothing
        usual = profile.forecast(past.at(len(past) - len(values)), len(values))
        values = np.where(gaps, usual, values)
    logarithms = bool((values > 0).all())
    expected, held = _fit(np.log(values) if logarithms else values, steps, quantile)
    if logarithms:
        # The exponential of a mean of logarithms is the median of the traffic.
        return np.exp(expected), np.exp(held)
    return np.maximum(expected, 0), np.maximum(held, 0)


#: Every method by its name, plain ones first.
METHODS: dict[str, Method] = {
    "last-day": last_day,
    "last-week-same-hour": last_week,
    "daily-profile": daily_profile,
    "weekly-profile": week_profile,
    "exponential-smoothing": smoothing,
}

#: What a method needs beside the base installation.
NEEDS = {"exponential-smoothing": "statsmodels"}


def missing_package(method: str) -> str:
    """The package that a method needs and that is not installed; empty where nothing is missing."""
    package = NEEDS.get(method, "")
    return package if package and find_spec(package) is None else ""


def _same_hour(past: TrafficHistory, steps: int, quantile: float, lag: int) -> tuple[Row, Row]:
    values = past.values
    if len(values) < lag:
        return np.full(steps, np.nan), np.full(steps, np.nan)
    expected = values[len(values) - lag + np.arange(steps) % lag]
    for distance in dict.fromkeys((lag, 24)):
        before, after = values[:-distance], values[distance:]
        usable = np.isfinite(before) & np.isfinite(after) & (before > 0)
        if usable.sum() >= _FEWEST_PAIRS:
            ratio = np.quantile(after[usable] / before[usable], quantile, method="inverted_cdf")
            return expected, expected * ratio
    return expected, np.full(steps, np.nan)


def _profile(
    past: TrafficHistory, steps: int, quantile: float, zone: tzinfo | None, period: Literal["auto", "day"]
) -> tuple[Row, Row]:
    try:
        usual = weekly_profile(past, period=period, timezone=zone)
        safe = weekly_profile(past, quantile=quantile, period=period, timezone=zone)
    except InputError:  # the past is too short
        return np.full(steps, np.nan), np.full(steps, np.nan)
    expected = usual.forecast(past.end, steps, HOUR_S)
    held = safe.forecast(past.end, steps, HOUR_S)
    if usual.seen.min() < fewest_seen(quantile):
        held = np.fmax(held, expected * _margin(past, quantile, zone, period))
    return expected, held


def _margin(
    past: TrafficHistory, quantile: float, zone: tzinfo | None, period: Literal["auto", "day"]
) -> float:
    """The quantile of what hours were to their profile, over the last days of the past, each from what was before."""
    ratios: list[float] = []
    for day in range(max(len(past) - 24 * MARGIN_DAYS, len(past) % 24), len(past), 24):
        before = past.part(0, day) if day else past
        if not day or not before.known.any():
            continue
        try:
            expected = weekly_profile(before, period=period, timezone=zone).forecast(before.end, 24, HOUR_S)
        except InputError:
            continue
        came = past.values[day : day + 24]
        usable = np.isfinite(came) & np.isfinite(expected) & (expected > 0)
        ratios += (came[usable] / expected[usable]).tolist()
    if len(ratios) < _FEWEST_PAIRS:
        return float("nan")
    return float(np.quantile(ratios, quantile, method="inverted_cdf"))


def _fit(values: Row, steps: int, quantile: float) -> tuple[Row, Row]:
    import pandas as pd
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel  # type: ignore[import-untyped]

    model = ETSModel(pd.Series(values), error="add", trend=None, seasonal="add", seasonal_periods=24)
    with warnings.catch_warnings():  # a fit that has not quite converged is still judged by its forecasts
        warnings.simplefilter("ignore")
        fitted = model.fit(disp=False, maxiter=ROUNDS)
        prediction = fitted.get_prediction(len(values), len(values) + steps - 1)
        # The upper end of the central interval that leaves 1 - quantile above it.
        share = max(quantile, 1 - quantile)
        interval = np.asarray(prediction.pred_int(alpha=2 * (1 - share)), np.float64)
        expected = np.asarray(prediction.predicted_mean, np.float64)
    return expected, interval[:, 1 if quantile >= 0.5 else 0]
