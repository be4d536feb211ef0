"""The history of a service's traffic: values in bins of equal width, where a gap is unknown and never 0."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd

HOUR_S = 3_600
DAY_S = 86_400

#: Bins that a history may have; more is a wrong time or a wrong width.
MOST_BINS = 20_000_000

Period = Literal["week", "day", "flat"]

#: Hours after which a profile repeats.
HOURS: dict[Period, int] = {"week": 168, "day": 24, "flat": 1}

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class TrafficHistory:
    """Traffic, demand or load over time, in bins of equal width.

    Parameters
    ----------
    name
        What it is the traffic of.
    unit
        Unit of the values: ``"requests/s"``, ``"tokens/s"``, ``"GPUs"``.
    start
        Start of the first bin, a whole second. An aware time counts real hours, so that a night on which
        clocks change has one hour less or more; a naive one counts days of 24 hours.
    bin_s
        Width of a bin in seconds; divides a day.
    values
        Mean of each bin; not-a-number where it is unknown. Kept as a read-only copy.
    account
        What became of the rows that it was read from.

    Raises
    ------
    InputError
        With every rule that is broken.
    """

    name: str
    unit: str
    start: datetime
    bin_s: int
    values: npt.NDArray[np.float64]
    account: Account | None = None

    def __post_init__(self) -> None:
        mistakes = [
            Mistake(field, "must be a text that is not empty", text)
            for field, text in (("name", self.name), ("unit", self.unit))
            if not isinstance(text, str) or not text.strip()
        ]
        if not isinstance(self.start, datetime) or self.start.microsecond:
            mistakes.append(Mistake("start", "must be a date and time in whole seconds", self.start))
        elif not 1970 < self.start.year < 2200:
            mistakes.append(Mistake("start", "must be between 1971 and 2199", self.start.isoformat()))
        if not _whole(self.bin_s) or self.bin_s < 1 or DAY_S % self.bin_s:
            mistakes.append(Mistake("bin_s", "must be whole seconds that divide a day of 86400", self.bin_s))
        values, wrong = _checked(self.values)
        if mistakes + wrong:
            raise InputError(f"history of {self.name}", mistakes + wrong)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "bin_s", int(self.bin_s))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which bins have a value."""
        return np.isfinite(self.values)

    @property
    def end(self) -> datetime:
        """End of the last bin."""
        return self.at(len(self))

    def at(self, number: int) -> datetime:
        """Start of a bin, in the time zone of `start`; real time has passed in between, also over a clock change."""
        passed = timedelta(seconds=number * self.bin_s)
        if self.start.tzinfo is None:
            return self.start + passed
        return (self.start.astimezone(UTC) + passed).astimezone(self.start.tzinfo)

    def part(self, first: int, last: int) -> "TrafficHistory":
        """Bins from `first` up to `last`, without it."""
        return TrafficHistory(self.name, self.unit, self.at(first), self.bin_s, self.values[first:last])

    def rebinned(self, bin_s: int) -> "TrafficHistory":
        """Wider bins, from the same start: the mean of the known values in each; unknown where there is none.

        A last bin that is not full is kept: it is the mean of what there is.

        Raises
        ------
        InputError
            If the new width is not a multiple of the old one.
        """
        if not _whole(bin_s) or bin_s < self.bin_s or bin_s % self.bin_s:
            rule = f"must be a multiple of the history's own {self.bin_s} s"
            raise InputError(f"history of {self.name}", [Mistake("bin_s", rule, bin_s)])
        each = bin_s // self.bin_s
        padded = np.full(-(-len(self) // each) * each, np.nan)
        padded[: len(self)] = self.values
        rows = padded.reshape(-1, each)
        count = np.isfinite(rows).sum(axis=1)
        mean = np.full(len(rows), np.nan)
        np.divide(np.nansum(rows, axis=1), count, out=mean, where=count > 0)
        return TrafficHistory(self.name, self.unit, self.start, bin_s, mean, self.account)

    def to_frame(self) -> "pd.DataFrame":
        """A row per bin: ``time`` (its start) and ``value`` (not-a-number where unknown)."""
        import pandas as pd

        moments = pd.DatetimeIndex(
            (epoch_s(self.start) + np.arange(len(self), dtype=np.int64) * self.bin_s).astype("datetime64[s]")
        )
        if self.start.tzinfo is not None:
            moments = moments.tz_localize("UTC").tz_convert(self.start.tzinfo)
        return pd.DataFrame({"time": moments, "value": self.values})

    def __repr__(self) -> str:
        known = int(self.known.sum())
        words = f"{self.name}: {len(self):,} bins of {self.bin_s:,} s from {self.start.isoformat()}, {known:,} known"
        if not known:
            return words
        return (
            f"{words}; mean {np.nanmean(self.values):,.6g}, highest {np.nanmax(self.values):,.6g} {self.unit}"
        )


def epoch_s(moment: datetime) -> int:
    """Seconds since 1970: of the instant where a zone is given, of the clock on the wall where none is."""
    if moment.tzinfo is None:
        return round((moment - _EPOCH).total_seconds())
    return round(moment.timestamp())


def zone_of(timezone: str | tzinfo | None, path: str = "timezone") -> tuple[tzinfo | None, list[Mistake]]:
    """The zone of a name, or the mistake in it."""
    if timezone is None or isinstance(timezone, tzinfo):
        return timezone, []
    try:
        return ZoneInfo(timezone), []
    except (KeyError, ValueError, OSError, TypeError):  # unknown; no name at all; a folder of zones
        return None, [Mistake(path, "must be a name of the tz database such as America/Sao_Paulo", timezone)]


def wall_clock_s(moments_s: npt.NDArray[np.int64], zone: tzinfo | None) -> npt.NDArray[np.int64]:
    """Seconds since 1970 that the clock on the wall shows at instants (themselves where there is no zone)."""
    if zone is None or zone is UTC:
        return moments_s
    import pandas as pd

    index = pd.DatetimeIndex(moments_s.astype("datetime64[s]")).tz_localize("UTC").tz_convert(zone)
    return np.asarray(index.tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64))


def slots(wall_s: npt.NDArray[np.int64], period: Period) -> npt.NDArray[np.int64]:
    """Hour of the week (Monday 00:00 is 0), of the day, or 0, of times on the wall."""
    hours = wall_s // HOUR_S + 3 * 24  # 1970 began on a Thursday
    return np.asarray(hours % HOURS[period], np.int64)


def same_clock(path: str, moment: datetime, zone: tzinfo | None) -> list[Mistake]:
    """The mistake where one of two times has a zone and the other has none."""
    if (moment.tzinfo is None) == (zone is None):
        return []
    rule = (
        "must have no time zone, as the history" if zone is None else "must have a time zone, as the history"
    )
    return [Mistake(path, f"{rule} has {'none' if zone is None else 'one'}", moment.isoformat())]


def in_spans(
    moments_s: npt.NDArray[np.int64], bin_s: int, spans: Sequence[tuple[datetime, datetime]]
) -> npt.NDArray[np.bool_]:
    """Which bins touch one of the spans (from the first moment up to the second)."""
    touched = np.zeros(len(moments_s), bool)
    for first, last in spans:
        touched |= (moments_s < epoch_s(last)) & (moments_s + bin_s > epoch_s(first))
    return touched


def _whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _checked(given: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], list[Mistake]]:
    """A read-only copy of the values, and what is wrong with them, each by its number."""
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError):
        return np.empty(0), [Mistake("values", "must be numbers", given)]
    if values.ndim != 1 or not 0 < values.size <= MOST_BINS:
        rule = f"must be one row of 1 to {MOST_BINS:,} values"
        return values, [Mistake("values", rule, f"shape {values.shape}")]
    wrong = np.flatnonzero(np.isinf(values) | (values < 0))
    values.flags.writeable = False
    rule = "must be 0 or more, or not-a-number where unknown"
    return values, [Mistake(f"values.{i}", rule, _plain(values[i])) for i in wrong]


def _plain(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(value)
