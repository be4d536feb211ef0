"""The time axis: microseconds as seconds, minutes, hours or days, and bins of round length."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.gantt import Spec
from gpuplan.packing.model import SECOND, Int64

if TYPE_CHECKING:
    from gpuplan.packing.run import PackRun

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND

#: Up to a span, microseconds, an axis counts in this unit.
_UNITS = ((20 * MINUTE, "seconds", SECOND), (4 * HOUR, "minutes", MINUTE), (3 * DAY, "hours", HOUR))

#: Lengths of bins up to a week that people know, microseconds; shorter ones are decimal.
_BINS = tuple(
    unit * n
    for unit, counts in (
        (1, [10**k * n for k in range(6) for n in (1, 2, 5)]),
        (SECOND, (1, 2, 5, 10, 15, 20, 30)),
        (MINUTE, (1, 2, 5, 10, 15, 20, 30)),
        (HOUR, (1, 2, 3, 4, 6, 8, 12)),
        (DAY, (1, 2, 4, 7)),
    )
    for n in counts
)


@dataclass(frozen=True, slots=True)
class Clock:
    """Unit of a time axis.

    Parameters
    ----------
    span_us
        What the axis has to show; at least 1.
    """

    span_us: int

    @property
    def unit(self) -> str:
        """``"seconds"``, ``"minutes"``, ``"hours"`` or ``"days"``."""
        return next((unit for most, unit, _ in _UNITS if self.span_us <= most), "days")

    @property
    def unit_us(self) -> int:
        """Microseconds of the unit."""
        return next((each for most, _, each in _UNITS if self.span_us <= most), DAY)

    @property
    def span(self) -> float:
        """Length of the axis in its unit."""
        return self.span_us / self.unit_us

    def of(self, time_us: Int64) -> list[float]:
        """Positions on the axis, to a hundred-thousandth of it."""
        digits = max(0, 5 - math.floor(math.log10(max(self.span, 1e-6))))
        found: list[float] = np.round(time_us / self.unit_us, digits).tolist()
        return found

    def axis(self, *, title: bool = True, labels: bool = True) -> Spec:
        """Axis of a Vega-Lite encoding."""
        return {
            "title": f"{self.unit} after the start" if title else None,
            "labels": labels,
            "ticks": labels,
            "format": "~r",
            "tickCount": 12,
            "labelOverlap": "parity",
            "labelSeparation": 5,
        }


def clock_of(*runs: "PackRun") -> Clock:
    """Clock that shows all of some runs; a second where nothing happened."""
    return Clock(max((run.raw.end_us for run in runs), default=0) or SECOND)


def bin_of(end_us: int, most: int) -> int:
    """The shortest round length of bins, microseconds, of which at most `most` reach from 0 to the end."""
    length = next((length for length in _BINS if end_us <= length * most), None)
    return math.ceil(end_us / (most * 7 * DAY)) * 7 * DAY if length is None else length


def edges_of(end_us: int, length: int) -> Int64:
    """Edges of bins of a length from 0 to the end (at least 1 us); the last bin may be shorter."""
    end_us = max(1, end_us)
    return np.append(np.arange(0, end_us, length, dtype=np.int64), end_us)


def words(seconds: float) -> str:
    """A duration as text: ``"0.25 s"``, ``"45 s"``, ``"15 min"``, ``"1.5 h"``, ``"3 d"``."""
    for unit, word, least in ((86_400, "d", 172_800), (3600, "h", 7200), (60, "min", 120)):
        if seconds >= least:
            return f"{seconds / unit:.3g} {word}"
    return f"{seconds:.3g} s"
