"""How good would forecasts have been? Each day of the past, forecast from what was known before it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.capacity import Replica, gpus_needed
from gpuplan.forecast.methods import METHODS, Row, missing_package
from gpuplan.forecast.outages import span_mistakes, without_outages
from gpuplan.forecast.traffic import HOUR_S, TrafficHistory, epoch_s, wall_clock_s, zone_of
from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.text import aligned

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the table: name, what it is, decimals that are shown.
FIGURES: tuple[tuple[str, str, int], ...] = (
    ("mae", "mean absolute error of the expected value, in the unit of the traffic", 3),
    ("wape_percent", "sum of absolute errors, of the sum of the traffic", 1),
    ("bias_percent", "sum of forecast less traffic, of the sum of the traffic", 1),
    ("pinball", "mean pinball loss of the held value at the quantile, in the unit of the traffic", 3),
    ("covered_percent", "hours in which the held value was enough; the quantile is what it should be", 1),
    ("served_percent", "demand that is served if the held value is held", 1),
    ("over_percent", "held beyond demand, of the demand", 1),
)


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """Forecasts of past days beside what came.

    Parameters
    ----------
    history
        The traffic, in hours.
    quantile
        Share of hours that the held values are meant to cover.
    first, last
        Hours of the history from `first` up to `last` that were forecast.
    expected, held
        By method: a value for each of these hours.
    compared
        Which of these hours every method is judged by.
    replica
        For which demand was counted in GPUs; ``None`` for demand in the unit of the traffic.
    notes
        What was left out, in sentences.
    """

    history: TrafficHistory
    quantile: float
    first: int
    last: int
    expected: dict[str, Row]
    held: dict[str, Row]
    compared: npt.NDArray[np.bool_]
    replica: Replica | None
    notes: tuple[str, ...]

    @property
    def actual(self) -> Row:
        """What came in each hour that was forecast."""
        return self.history.values[self.first : self.last]

    @property
    def best(self) -> str:
        """The method with the least WAPE (the first of equal ones)."""
        figures = self.figures
        return min(figures, key=lambda name: figures[name]["wape_percent"])

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """The figures of `FIGURES` by method, over the same hours for all."""
        return {name: self._judge(name) for name in self.expected}

    def to_frame(self) -> "pd.DataFrame":
        """A row per method: its name and its figures."""
        import pandas as pd

        return pd.DataFrame([{"method": name, **figures} for name, figures in self.figures.items()])

    def hours(self) -> "pd.DataFrame":
        """A row per method and hour: ``time``, ``method``, ``actual``, ``expected``, ``held``, ``compared``."""
        import pandas as pd

        times = self.history.part(self.first, self.last).to_frame()["time"]
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "time": times,
                        "method": name,
                        "actual": self.actual,
                        "expected": self.expected[name],
                        "held": self.held[name],
                        "compared": self.compared,
                    }
                )
                for name in self.expected
            ],
            ignore_index=True,
        )

    def __repr__(self) -> str:
        rows = [
            [name, *(f"{figures[column]:,.{decimals}f}" for column, _, decimals in FIGURES)]
            for name, figures in self.figures.items()
        ]
        table = aligned(["method", *(name for name, _, _ in FIGURES)], rows, right=range(1, len(FIGURES) + 1))
        head = f"{self.history.name}: {int(self.compared.sum())} of {self.last - self.first} hours compared"
        notes = "\n".join(f"- {note}" for note in self.notes)
        return f"{head}; least WAPE: {self.best}\n{table}\n{notes}".rstrip()

    def _judge(self, method: str) -> dict[str, float]:
        came, expected, held = (
            row[self.compared] for row in (self.actual, self.expected[method], self.held[method])
        )
        short = came - held
        if self.replica is None:
            demand, supply = came, held
        else:
            demand, supply = (gpus_needed(row, self.replica).astype(np.float64) for row in (came, held))
        return {
            "mae": float(np.abs(expected - came).mean()),
            "wape_percent": _percent(np.abs(expected - came).sum(), came.sum()),
            "bias_percent": _percent((expected - came).sum(), came.sum()),
            "pinball": float(np.maximum(self.quantile * short, (self.quantile - 1) * short).mean()),
            "covered_percent": _percent((short <= 0).sum(), len(came)),
            "served_percent": _percent(np.minimum(demand, supply).sum(), demand.sum()),
            "over_percent": _percent(np.maximum(supply - demand, 0).sum(), demand.sum()),
        }


def backtest(
    history: TrafficHistory,
    *,
    methods: Sequence[str] | None = None,
    test_days: int | None = None,
    quantile: float = 0.9,
    replica: Replica | None = None,
    timezone: str | tzinfo | None = None,
    outages: Sequence[tuple[datetime, datetime]] = (),
) -> Backtest:
    """Forecast the last days of a history one by one, each from the hours before it alone.

    All methods are judged by the same hours: those that are known and for which each of them has a forecast.

    Parameters
    ----------
    history
        Bins of an hour, or ones that divide it (their means are forecast).
    methods
        Names of `METHODS`; where it is left out, all whose packages are installed.
    test_days
        Number of days at the end that are forecast; where it is left out, all with a week before them, or
        with three days where there is no such day.
    quantile
        Share of hours that the held value is meant to cover.
    replica
        Count demand and what is held in whole GPUs of such replicas.
    timezone
        Zone whose hours and days count; the history's own where it is left out.
    outages
        Spans that say nothing of normal traffic: unknown to the methods, and no method is judged by them.

    Raises
    ------
    InputError
        If an argument is out of range, or the history is too short.
    """
    zone, mistakes = zone_of(timezone)
    absent = [name for name in METHODS if missing_package(name)] if methods is None else []
    methods = [name for name in METHODS if name not in absent] if methods is None else list(methods)
    mistakes += _argument_mistakes(history, methods, test_days, quantile, replica)
    mistakes += span_mistakes(history, outages)
    if timezone is not None and history.start.tzinfo is None:
        mistakes.append(
            Mistake("timezone", "must be left out: the times of the history have no zone", str(timezone))
        )
    if mistakes:
        raise InputError(f"back-test of {history.name}", mistakes)
    zone = zone or history.start.tzinfo
    usual = without_outages(history, outages)
    hours = usual.rebinned(HOUR_S)
    first, last = _tested(hours, zone, test_days)
    expected, held = _forecasts(hours, first, last, methods, quantile, zone)
    actual = hours.values[first:last]
    able = [name for name in methods if (np.isfinite(expected[name]) & np.isfinite(held[name])).any()]
    compared = np.isfinite(actual)
    notes = _notes(history, quantile, replica, int((~compared).sum()), [n for n in methods if n not in able])
    notes += _outage_notes(history, usual)
    notes += [
        f"{name} is left out: it needs {missing_package(name)} (the extra 'forecast')." for name in absent
    ]
    for name in able:
        compared &= np.isfinite(expected[name]) & np.isfinite(held[name])
    others = int((np.isfinite(actual) & ~compared).sum())
    if others:
        notes.append(f"{others} hours are left out for which a method had no forecast.")
    if not able or not compared.any():
        rule = "must have hours that all methods can forecast: use fewer methods, or a longer history"
        raise InputError(f"back-test of {history.name}", [Mistake("history", rule)])
    expected, held = ({name: rows[name] for name in able} for rows in (expected, held))
    return Backtest(hours, quantile, first, last, expected, held, compared, replica, tuple(notes))


def _forecasts(
    hours: TrafficHistory,
    first: int,
    last: int,
    methods: Sequence[str],
    quantile: float,
    zone: tzinfo | None,
) -> tuple[dict[str, Row], dict[str, Row]]:
    """Expected and held values by method, each day from the hours before it; not-a-number where there are none."""
    expected = {name: np.full(last - first, np.nan) for name in methods}
    held = {name: np.full(last - first, np.nan) for name in methods}
    for day in range(first, last, 24):
        past = hours.part(0, day)
        if not past.known.any():
            continue
        at = slice(day - first, day - first + 24)
        for name in methods:
            expected[name][at], held[name][at] = METHODS[name](past, 24, quantile, zone)
    return expected, held


def _argument_mistakes(
    history: TrafficHistory,
    methods: Sequence[str],
    test_days: int | None,
    quantile: float,
    replica: Replica | None,
) -> list[Mistake]:
    mistakes = [
        Mistake(f"methods.{i}", f"must be one of {', '.join(METHODS)}{did_you_mean(name, METHODS)}", name)
        for i, name in enumerate(methods)
        if name not in METHODS
    ]
    mistakes += [
        Mistake(f"methods.{i}", f"needs {missing_package(name)}, which the extra 'forecast' installs", name)
        for i, name in enumerate(methods)
        if missing_package(name)
    ]
    if not methods or len(set(methods)) < len(methods):
        mistakes.append(Mistake("methods", "must be at least one method, each once", list(methods)))
    if HOUR_S % history.bin_s:
        mistakes.append(Mistake("history.bin_s", "must divide an hour", history.bin_s))
    if test_days is not None and (
        isinstance(test_days, bool) or not isinstance(test_days, int) or test_days < 1
    ):
        mistakes.append(Mistake("test_days", "must be a whole number of at least 1", test_days))
    if not 0 < quantile < 1:
        mistakes.append(Mistake("quantile", "must be between 0 and 1", quantile))
    if replica is not None and replica.unit != history.unit:
        mistakes.append(Mistake("replica.unit", f"must be the history's, {history.unit}", replica.unit))
    return mistakes


def _tested(hours: TrafficHistory, zone: tzinfo | None, test_days: int | None) -> tuple[int, int]:
    """First hour that is forecast and the one after the last; days of 24 hours, from a midnight on."""
    moments = epoch_s(hours.start) + np.arange(min(len(hours), 24), dtype=np.int64) * HOUR_S
    midnight = int(np.flatnonzero(wall_clock_s(moments, zone) // HOUR_S % 24 == 0)[:1].sum())
    days = (len(hours) - midnight) // 24
    wanted = test_days or (days - 7 if days > 7 else days - 3)
    if wanted < 1 or wanted >= days:
        rule = f"must have {f'more than {wanted}' if wanted > 0 else 'at least 4'} whole days: it has {days}"
        raise InputError(f"back-test of {hours.name}", [Mistake("history", rule)])
    return midnight + (days - wanted) * 24, midnight + days * 24


def _notes(
    history: TrafficHistory, quantile: float, replica: Replica | None, unknown: int, unable: list[str]
) -> list[str]:
    demand = "in the unit of the traffic" if replica is None else f"in GPUs, {replica.gpus} for each replica"
    notes = [
        f"Held: the value that is meant to be enough in {100 * quantile:g} % of hours; demand is {demand}."
    ]
    if history.bin_s < HOUR_S:
        notes.append("Means of hours are forecast: peaks within an hour are higher.")
    if unknown:
        notes.append(f"{unknown} hours are left out because their traffic is unknown.")
    notes += [f"{name} is left out: the history is too short for it." for name in unable]
    return notes


def _outage_notes(history: TrafficHistory, usual: TrafficHistory) -> list[str]:
    lost = int(history.known.sum() - usual.known.sum())
    return [f"{lost} known bins of {history.bin_s} s lie in outages and were left out."] if lost else []


def _percent(part: float, whole: float) -> float:
    return 100 * float(part) / float(whole) if whole else float("nan")
