"""Days and moments of a history, in its own zone or by the clock on the wall."""

from datetime import UTC, date, datetime, timedelta, tzinfo

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.inputs.spans import seconds_of
from gpuplan.traces.history import UNKNOWN, History, Int64
from gpuplan.traces.instants import zone_of

_EPOCH = date(1970, 1, 1)
DAY_S = 86_400

#: Longest time after a beginning: about two hundred years.
_LONGEST_S = 200 * 366 * DAY_S


def clock_zone(zone: str | None) -> tzinfo:
    """The zone of a history's times; UTC where they are times on the wall."""
    return UTC if zone is None else zone_of(zone)


def midnight_s(day: date, zone: str | None) -> int:
    """Start of a day in seconds of a history; where clocks skip midnight, the first moment of the day."""
    return int(datetime(day.year, day.month, day.day, tzinfo=clock_zone(zone)).timestamp())


def day_of(seconds: int, zone: str | None) -> date:
    """The day of a moment."""
    return (
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds)))
        .astimezone(clock_zone(zone))
        .date()
    )


def text_of(seconds: int, zone: str | None) -> str:
    """A moment as people write it: the date alone at midnight, else with hours and minutes (and an offset)."""
    moment = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))).astimezone(clock_zone(zone))
    bare = moment.replace(tzinfo=None)
    if bare == datetime(bare.year, bare.month, bare.day):
        return bare.date().isoformat()
    return (bare if zone is None else moment).isoformat(timespec="seconds" if bare.second else "minutes")


def days_of(moments: Int64, zone: str | None) -> Int64:
    """Days after 1970-01-01 of moments, by the clock of the zone, int64[N]."""
    if zone is None:
        return np.floor_divide(moments, DAY_S)
    import pandas as pd

    local = pd.to_datetime(moments, unit="s", utc=True).tz_convert(clock_zone(zone)).tz_localize(None)
    return np.floor_divide(local.to_numpy("datetime64[s]").astype(np.int64), DAY_S)


def busiest_day(history: History) -> date | None:
    """The day on which the most GPU time was submitted, the earliest of equals; None: no job can be placed."""
    rows = np.flatnonzero(
        history.used & (history.submit_s != UNKNOWN) & (history.gpus > 0) & (history.elapsed_s > 0)
    )
    if not len(rows):
        return None
    days, of = np.unique(days_of(history.submit_s[rows], history.zone), return_inverse=True)
    work = np.bincount(of.ravel(), (history.gpus[rows] * history.elapsed_s[rows]).astype(np.float64))
    return _EPOCH + timedelta(days=int(days[int(np.argmax(work))]))


def day_named(text: str, where: str = "day") -> date:
    """A day written as ``YYYY-MM-DD``.

    Raises
    ------
    InputError
        Where it is none.
    """
    try:
        day = date.fromisoformat(text)
        if day.isoformat() == text and 1970 <= day.year < 2200:
            return day
    except ValueError:
        pass
    raise InputError("import", [Mistake(where, "must be a day written as YYYY-MM-DD", text)])


def moment_named(text: str, where: str, origin_s: int, zone: str | None) -> int:
    """A date, a date and time, or a time after the beginning (``"7d"``), in seconds of a history.

    Raises
    ------
    InputError
        Where it is none of these.
    """
    after = None if text.isdecimal() else seconds_of(text)
    if after is not None and after < _LONGEST_S:
        return origin_s + int(after)
    try:
        moment = datetime.fromisoformat(text)
        if not 1970 <= moment.year < 2200:
            raise ValueError
    except ValueError:
        rule = "must be a date (2026-03-02), a date and time (2026-03-02T08:00), or a time after the beginning (7d)"
        raise InputError("import", [Mistake(where, rule, text)]) from None
    if moment.tzinfo is not None and zone is None:
        rule = "must have no offset: the file does not say in which zone its times are (name the zone)"
        raise InputError("import", [Mistake(where, rule, text)])
    return int((moment if moment.tzinfo else moment.replace(tzinfo=clock_zone(zone))).timestamp())
