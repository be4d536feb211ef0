"""The weekly profile: what an hour of the week usually brings, recent weeks weighing more.

Traffic of services follows the week: the last weeks' same hour is a hard forecast to beat and an easy one to
explain. Where the history is shorter than a week, the hour of the day stands in, and the profile says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.outages import span_mistakes
from gpuplan.forecast.profile_notes import notes_of
from gpuplan.forecast.traffic import (
    DAY_S,
    HOUR_S,
    HOURS,
    MOST_BINS,
    Period,
    TrafficHistory,
    epoch_s,
    in_spans,
    same_clock,
    slots,
    wall_clock_s,
    zone_of,
)
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True, eq=False)
class WeeklyProfile:
    """The usual value of every hour of the week, Monday 00:00 first (or of the day, or one for all).

    Parameters
    ----------
    name, unit
        Those of the history.
    period
        ``"week"``: 168 values; ``"day"``: 24; ``"flat"``: 1.
    values
        The value of each hour; not-a-number where the hour was never seen.
    seen
        Weeks (days, hours) in which each hour was seen.
    half_life_weeks
        A week that is older by this counts half.
    quantile
        The weighted quantile that the values are; ``None`` for the weighted mean.
    zone
        Time zone of the hours; ``None`` where the history's times have none.
    account
        What became of every bin of the history.
    """

    name: str
    unit: str
    period: Period
    values: npt.NDArray[np.float64]
    seen: npt.NDArray[np.int64]
    half_life_weeks: float
    quantile: float | None
    zone: tzinfo | None
    account: Account

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed and left out, in sentences."""
        return self.account.rules

    def forecast(
        self, start: datetime, steps: int, step_s: int = HOUR_S, *, how: Literal["mean", "highest"] = "mean"
    ) -> npt.NDArray[np.float64]:
        """Values of steps of equal length from `start`; real time passes, also over a change of clocks.

        Parameters
        ----------
        start
            With a time zone exactly where the history had one.
        steps, step_s
            Number of steps, and their length in seconds.
        how
            What a step over several hours takes from them.

        Returns
        -------
        numpy.ndarray
            float64 of length `steps`; not-a-number where an hour of the step was never seen.

        Raises
        ------
        InputError
            If an argument is out of range.
        """
        mistakes = same_clock("start", start, self.zone)
        mistakes += [
            Mistake(path, "must be a whole number of at least 1", value)
            for path, value in (("steps", steps), ("step_s", step_s))
            if not isinstance(value, int) or value < 1
        ]
        # Pieces that lie in one hour each; hours of zones begin at quarters of ours.
        border = HOUR_S if self.zone is None else HOUR_S // 4
        fine = 1 if mistakes else math.gcd(step_s, border, epoch_s(start) % HOUR_S)
        if not mistakes and steps * step_s // fine > MOST_BINS:
            mistakes.append(Mistake("steps", "must end within a reasonable time", steps))
        if how not in ("mean", "highest"):
            mistakes.append(Mistake("how", "must be mean or highest", how))
        if mistakes:
            raise InputError("forecast", mistakes)
        moments = epoch_s(start) + np.arange(0, steps * step_s, fine, dtype=np.int64)
        each = self.values[slots(wall_clock_s(moments, self.zone), self.period)].reshape(steps, -1)
        found = each.mean(axis=1) if how == "mean" else each.max(axis=1)
        # A step within one hour is that hour's value, not a mean of copies with its rounding.
        return np.where(each.min(axis=1) == each.max(axis=1), each[:, 0], found)

    def to_frame(self) -> "pd.DataFrame":
        """A row per hour: ``day`` (empty unless weekly), ``hour``, ``value``, ``seen``."""
        import pandas as pd

        hours = np.arange(len(self.values))
        days = [DAYS[hour // 24] if self.period == "week" else "" for hour in hours]
        columns = {"day": days, "hour": hours % 24, "value": self.values, "seen": self.seen}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        what = "weighted mean" if self.quantile is None else f"weighted {100 * self.quantile:g} % quantile"
        head = f"{self.name}: {what} by hour of the {self.period}" if self.period != "flat" else self.name
        if np.isfinite(self.values).any():
            low, high = np.nanmin(self.values), np.nanmax(self.values)
            head += f", {low:,.6g} to {high:,.6g} {self.unit}"
        return "\n".join([head, *(f"- {note}" for note in self.notes)])


def weekly_profile(
    history: TrafficHistory,
    half_life_weeks: float = 2.0,
    quantile: float | None = None,
    *,
    outages: Sequence[tuple[datetime, datetime]] = (),
    timezone: str | tzinfo | None = None,
    period: Literal["auto", "week", "day"] = "auto",
    flat: bool = False,
) -> WeeklyProfile:
    """Build the profile of a history: the usual value of each hour of the week.

    The known bins of an hour are averaged first, so that an hour that a change of clocks doubles counts
    once and one that it skips is not there. Hours of the same name are then averaged over the weeks with weight
    0.5 ** (age / half_life_weeks), the age in whole weeks (whole days for a daily profile).

    Parameters
    ----------
    history
        Bins of an hour, or ones that divide it.
    half_life_weeks
        A week that is older by this counts half; ``math.inf`` for equal weights.
    quantile
        The weighted quantile (the least value whose weight, with all below, reaches the share) for safety,
        of the means of hours; the weighted mean where it is left out.
    outages
        Spans that say nothing of normal traffic; bins that touch one are left out and counted.
    timezone
        Zone whose hours count, such as ``America/Sao_Paulo``; the history's own where it is left out.
    period
        ``"week"``, ``"day"``, or ``"auto"``: the week where each of its hours was seen, else the day.
    flat
        Where the history is too short for either, one value for all hours instead of an error.

    Raises
    ------
    InputError
        If an argument is out of range, or the history is too short.
    """
    zone, mistakes = zone_of(timezone)
    mistakes += _argument_mistakes(history, half_life_weeks, quantile, period)
    if timezone is not None and history.start.tzinfo is None:
        rule = "must be left out: the times of the history have no zone, so their hours are taken as written"
        mistakes.append(Mistake("timezone", rule, str(timezone)))
    mistakes += span_mistakes(history, outages)
    if mistakes:
        raise InputError(f"profile of {history.name}", mistakes)
    zone = zone or history.start.tzinfo
    moments = epoch_s(history.start) + np.arange(len(history), dtype=np.int64) * history.bin_s
    out = in_spans(moments, history.bin_s, outages)
    keep = history.known & ~out
    wall = wall_clock_s(moments, zone)
    used = _period(history, wall[keep], period, flat)
    values, seen = _averaged(wall, history.values, keep, used, half_life_weeks, quantile)
    n_unknown, n_out = int((~history.known & ~out).sum()), int(out.sum())
    account = Account(
        history.name,
        "bins",
        len(history),
        int(keep.sum()),
        tuple(
            (reason, count) for reason, count in (("unknown", n_unknown), ("in an outage", n_out)) if count
        ),
        rules=tuple(notes_of(history, used, seen, half_life_weeks, quantile, zone, n_unknown, n_out)),
        made="profile",
    )
    return WeeklyProfile(
        history.name, history.unit, used, values, seen, half_life_weeks, quantile, zone, account
    )


def _argument_mistakes(
    history: TrafficHistory, half_life_weeks: float, quantile: float | None, period: str
) -> list[Mistake]:
    mistakes = []
    if HOUR_S % history.bin_s:
        rule = "must divide an hour: wider bins do not say which hour the traffic came in"
        mistakes.append(Mistake("history.bin_s", rule, history.bin_s))
    if not half_life_weeks > 0:
        mistakes.append(Mistake("half_life_weeks", "must be above 0", half_life_weeks))
    if quantile is not None and not 0 < quantile < 1:
        mistakes.append(Mistake("quantile", "must be between 0 and 1", quantile))
    if period not in ("auto", "week", "day"):
        mistakes.append(Mistake("period", "must be auto, week or day", period))
    return mistakes


def _period(history: TrafficHistory, wall: npt.NDArray[np.int64], wanted: str, flat: bool) -> Period:
    """The period that the known bins carry; an error that says how much there is where it is too little."""
    hours = len(np.unique(wall // HOUR_S))
    of_week, of_day = (len(np.unique(slots(wall, period))) for period in ("week", "day"))
    if of_week == 168 or (wanted == "week" and hours >= 168):
        return "day" if wanted == "day" else "week"
    if of_day == 24 and wanted != "week":
        return "day"
    if flat and hours:
        return "flat"
    there = f"{hours} known hour{'s' if hours != 1 else ''} so far"
    if wanted == "week":
        rule = f"must have a full week of known hours: {there}, {of_week} of the 168 hours of the week seen; "
        rule += "collect more, or ask for period='day'" if of_day == 24 else "collect more"
    else:
        rule = f"must have every hour of the day at least once: {there}, {of_day} of 24 seen; collect more"
    rule += ", or ask for flat=True, one value for all hours" if hours and not flat else ""
    raise InputError(f"profile of {history.name}", [Mistake("history", rule)])


def _averaged(
    wall: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    keep: npt.NDArray[np.bool_],
    period: Period,
    half_life_weeks: float,
    quantile: float | None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Value of each hour of the period, and in how many periods it was seen."""
    # Counted in days on the wall from the last one of the history, so that a change of clocks moves no hour.
    days = wall.max() // DAY_S - wall[keep] // DAY_S
    age = days // 7 if period == "week" else days
    key, member = np.unique(np.stack([wall[keep] // HOUR_S, age]), axis=1, return_inverse=True)
    member = member.reshape(-1)  # its shape differs between numpy 2.0 and 2.1
    hourly = np.bincount(member, values[keep]) / np.bincount(member)
    weight = 0.5 ** (key[1] * (1 if period == "week" else 1 / 7) / half_life_weeks)
    slot = slots(key[0] * HOUR_S, period)
    seen = np.bincount(slot, minlength=HOURS[period])
    found = np.full(HOURS[period], np.nan)
    for hour in np.flatnonzero(seen):
        mine = slot == hour
        each, counts = hourly[mine], weight[mine] / weight[mine].max()
        if quantile is None:
            # Between the least and the highest, where rounding would leave it above both.
            found[hour] = np.clip(np.average(each, weights=counts), each.min(), each.max())
        else:
            found[hour] = np.quantile(each, quantile, weights=counts, method="inverted_cdf")
    found.flags.writeable = seen.flags.writeable = False
    return found, seen.astype(np.int64)
