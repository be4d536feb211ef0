"""Series of a monitoring system on one grid of bins: what they add up to, and what is not known of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from gpuplan.forecast.traffic import TrafficHistory
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["counter", "gauge"]
How = Literal["sum", "mean", "highest", "same"]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One series.

    Parameters
    ----------
    labels
        Names and values, ``__name__`` included.
    values
        Increase in each bin (of a counter), or reading at its start (of a gauge); not-a-number where unknown.
    first, last
        The bins from `first` up to `last` lie between its first and last reading.
    readings
        Rows of the answer.
    usable, nan, infinite, repeated
        Readings by what they are; together they are `readings`.
    missing
        Times between the first and the last reading without one.
    resets
        Bins in which a counter began again from zero; their increase is a lower bound.
    over_gaps
        Increase of a counter over times without a reading: it is known, but not when it came.
    """

    labels: tuple[tuple[str, str], ...]
    values: npt.NDArray[np.float64]
    first: int
    last: int
    readings: int
    usable: int
    nan: int = 0
    infinite: int = 0
    repeated: int = 0
    missing: int = 0
    resets: int = 0
    over_gaps: float = 0.0

    def label(self, name: str) -> str:
        """The value of a label; empty where the series has none, as the server counts it."""
        return dict(self.labels).get(name, "")


@dataclass(frozen=True, slots=True, eq=False)
class Metrics:
    """The series of one answer, on one grid.

    Parameters
    ----------
    source
        Name of the file.
    kind
        Counters (their values are increases) or gauges.
    start
        Start of the first bin.
    bin_s
        Width of a bin in seconds.
    series
        The series.
    warnings
        What the server warned of, in its words.
    rules
        What was recognised or decided, in sentences.
    spread
        Whether increases over gaps were spread evenly.
    """

    source: str
    kind: Kind
    start: datetime
    bin_s: int
    series: tuple[Series, ...]
    warnings: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    spread: bool = False

    @property
    def n_bins(self) -> int:
        """Bins from the first reading of any series to the last."""
        return len(self.series[0].values)

    @property
    def known_series(self) -> npt.NDArray[np.int64]:
        """Series with a value, in each bin."""
        return np.asarray(np.isfinite(self._table).sum(axis=0), np.int64)

    @property
    def resets(self) -> int:
        """Resets of all counters."""
        return sum(each.resets for each in self.series)

    @property
    def account(self) -> Account:
        """What became of every reading."""
        count = {
            name: sum(getattr(each, name) for each in self.series)
            for name in ("readings", "usable", "nan", "infinite", "repeated", "missing", "resets")
        }
        reasons = (("NaN", "nan"), ("infinite", "infinite"), ("the same reading again", "repeated"))
        amounts = [("times between the readings of a series without one", count["missing"], "times")]
        rules = [*self.rules, *(f"The server warns: {warning}" for warning in self.warnings)]
        if self.kind == "counter":
            amounts.append(
                ("resets of counters: the increase of such a bin is a lower bound", count["resets"], "resets")
            )
            over = sum(each.over_gaps for each in self.series)
            where = "spread evenly over them" if self.spread else "left unknown"
            amounts.append((f"increase over times without a reading, {where}", over, "counted"))
        return Account(
            self.source,
            "readings",
            count["readings"],
            count["usable"],
            tuple((reason, count[name]) for reason, name in reasons if count[name]),
            amounts=tuple(amounts),
            rules=tuple(rules),
            made="history",
        )

    def by(self, label: str) -> dict[str, "Metrics"]:
        """The series by the value of a label, in their order; empty for series without it.

        Raises
        ------
        InputError
            If no series has the label.
        """
        names = {each.label(label): None for each in self.series}
        if not any(names):
            there = sorted({name for each in self.series for name, _ in each.labels})
            rule = f"must be a label of the series: {', '.join(there) or 'they have none'}"
            raise InputError(self.source, [Mistake("label", rule, label)])
        return {
            name: replace(self, series=tuple(each for each in self.series if each.label(label) == name))
            for name in names
        }

    def combined(
        self,
        how: How,
        unit: str,
        *,
        name: str | None = None,
        per_s: bool = True,
        partial: Literal["unknown", "known"] = "unknown",
    ) -> TrafficHistory:
        """One history from all series.

        Parameters
        ----------
        how
            ``"sum"``, ``"mean"`` or ``"highest"`` of the series that are known in a bin; ``"same"`` where
            they must agree, as the readings of one node by two servers.
        unit
            Unit of the result.
        name
            Its name; that of the metric where it is left out.
        per_s
            Whether increases of counters become a rate per second.
        partial
            What a sum is in a bin for which a series has no value between its first and its last one: unknown,
            or the sum of the known ones. Before its first and after its last reading a series adds nothing.

        Raises
        ------
        InputError
            If ``"same"`` series differ, buckets of a histogram are added up, or a value is negative.
        """
        table = self._table
        if how == "same":
            found = self._agreed(table)
        elif how in ("mean", "highest"):
            known = np.isfinite(table)
            if how == "mean":
                total, count = np.where(known, table, 0).sum(axis=0), known.sum(axis=0)
                found = np.divide(total, count, out=np.full(self.n_bins, np.nan), where=count > 0)
            else:
                highest = np.where(known, table, -np.inf).max(axis=0)
                found = np.where(known.any(axis=0), highest, np.nan)
        elif how == "sum":
            found = self._sum(table, partial)
        else:
            raise InputError(self.source, [Mistake("how", "must be sum, mean, highest or same", how)])
        if self.kind == "counter" and per_s:
            found = found / self.bin_s
        names = dict.fromkeys(each.label("__name__") for each in self.series)
        called = name or " + ".join(filter(None, names)) or self.source
        return TrafficHistory(called, unit, self.start, self.bin_s, found, self.account)

    def to_frame(self) -> "pd.DataFrame":
        """A row per series and bin: the labels, ``time``, ``value``."""
        import pandas as pd

        times = pd.date_range(self.start, periods=self.n_bins, freq=pd.Timedelta(seconds=self.bin_s))
        frames = [
            pd.DataFrame({**dict(each.labels), "time": times, "value": each.values}) for each in self.series
        ]
        return pd.concat(frames, ignore_index=True)

    def __repr__(self) -> str:
        words = "increases of counters" if self.kind == "counter" else "gauges"
        head = f"{len(self.series)} series ({words}), {self.n_bins:,} bins of {self.bin_s:,} s"
        return f"{head} from {self.start.isoformat()}\n{self.account!r}"

    @property
    def _table(self) -> npt.NDArray[np.float64]:
        return np.stack([each.values for each in self.series])

    def _sum(self, table: npt.NDArray[np.float64], partial: str) -> npt.NDArray[np.float64]:
        if any(each.label("le") for each in self.series):
            rule = "must not add up buckets of a histogram, each of which contains the ones below; use its _count"
            raise InputError(self.source, [Mistake("how", rule)])
        if partial not in ("unknown", "known"):
            raise InputError(self.source, [Mistake("partial", "must be unknown or known", partial)])
        known = np.isfinite(table)
        bins = np.arange(self.n_bins)
        alive = np.array([(bins >= each.first) & (bins < each.last) for each in self.series])
        gap = ~known.any(axis=0)
        if partial == "unknown":
            gap |= (alive & ~known).any(axis=0)
        return np.where(gap, np.nan, np.where(known, table, 0).sum(axis=0))

    def _agreed(self, table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        known = np.isfinite(table)
        low = np.where(known, table, np.inf).min(axis=0)
        high = np.where(known, table, -np.inf).max(axis=0)
        mistakes = [
            Mistake(
                f"bin {i}", f"must have one value in all {len(table)} series, not {low[i]:g} to {high[i]:g}"
            )
            for i in np.flatnonzero(low < high)
        ]
        if mistakes:
            raise InputError(self.source, mistakes)
        return np.where(known.any(axis=0), low, np.nan)


def increases(
    readings: npt.NDArray[np.float64], *, spread: bool = False
) -> tuple[npt.NDArray[np.float64], int, float]:
    """Increase of a counter between neighbouring readings, its resets, and what it grew by over gaps.

    A reading below the one before means that the counter began again from zero, so that it grew by at least
    the new reading (as the server's own ``increase()``, without its extrapolation). What was counted between
    the last reading and the restart is lost, and a restart that overtakes the old reading cannot be seen.

    Parameters
    ----------
    readings
        In order; not-a-number where there is none.
    spread
        Whether an increase over a gap is spread evenly over its bins; otherwise they are unknown.

    Returns
    -------
    tuple
        One value fewer than there are readings, the number of resets, and the sum over gaps.
    """
    known = np.flatnonzero(np.isfinite(readings))
    found = np.full(max(len(readings) - 1, 0), np.nan)
    step = np.diff(readings[known])
    reset = step < 0
    grown = np.where(reset, readings[known[1:]], step)
    width = np.diff(known)
    one = width == 1
    found[known[:-1][one]] = grown[one]
    if spread:
        for at, over, amount in zip(known[:-1][~one], width[~one], grown[~one], strict=True):
            found[at : at + over] = amount / over
    return found, int(reset.sum()), float(grown[~one].sum())


def alive(readings: Sequence[float] | npt.NDArray[np.float64]) -> tuple[int, int]:
    """Numbers of the first reading, and of the one after the last; 0 and 0 where there is none."""
    known = np.flatnonzero(np.isfinite(readings))
    return (int(known[0]), int(known[-1]) + 1) if len(known) else (0, 0)
