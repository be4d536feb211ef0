"""The time axis: seconds as hours or days, and bins of round length."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.model import DAY, HOUR, Int64
from gpuplan.gantt import Spec

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run

#: Up to this span an axis counts hours, beyond it days.
_HOURS_UP_TO = 3 * DAY

#: Lengths of bins in seconds, each at least a tick people know.
_BINS = (
    *(60, 300, 600, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 6 * HOUR, 8 * HOUR, 12 * HOUR),
    *(DAY, 2 * DAY, 4 * DAY, 7 * DAY),
)


@dataclass(frozen=True, slots=True)
class Clock:
    """Unit of a time axis.

    Parameters
    ----------
    span_s
        What the axis has to show, seconds; at least 1.
    """

    span_s: int

    @property
    def unit(self) -> str:
        """``"hours"`` or ``"days"``."""
        return "hours" if self.span_s <= _HOURS_UP_TO else "days"

    @property
    def unit_s(self) -> int:
        """Seconds of the unit."""
        return HOUR if self.span_s <= _HOURS_UP_TO else DAY

    @property
    def span(self) -> float:
        """Length of the axis in its unit."""
        return self.span_s / self.unit_s

    def of(self, seconds: Int64) -> list[float]:
        """Positions on the axis: about a second is kept."""
        found: list[float] = np.round(seconds / self.unit_s, 5).tolist()
        return found

    def axis(self, *, title: bool = True, labels: bool = True) -> Spec:
        """Axis of a Vega-Lite encoding."""
        return {
            "title": f"{self.unit} after the start" if title else None,
            "labels": labels,
            "ticks": labels,
            "format": ".6~g",  # without a precision Vega takes one of its ticks, and 10 becomes 1e+1
            "tickCount": 12,
            "labelOverlap": "parity",
            "labelSeparation": 5,
        }


def clock_of(*runs: "Run") -> Clock:
    """Clock that shows all of some runs; an hour where nothing happened."""
    return Clock(max(1, *(run.raw.end_s for run in runs)) if any(run.raw.end_s for run in runs) else HOUR)


def edges_of(end_s: int, most: int) -> Int64:
    """Edges of at most `most` bins of a round length from 0 to the end; the last bin may be shorter.

    Parameters
    ----------
    end_s
        Seconds; below 1 one empty bin of a second is made.
    most
        Number of bins, at least 1.
    """
    end_s = max(1, end_s)
    length = next((length for length in _BINS if end_s <= length * most), None)
    if length is None:
        length = math.ceil(end_s / (most * 7 * DAY)) * 7 * DAY
    return np.append(np.arange(0, end_s, length, dtype=np.int64), end_s)


def length_of(edges: Int64) -> int:
    """Seconds of a bin (the last one may be shorter)."""
    return int(edges[1] - edges[0])


def words(seconds: float) -> str:
    """A duration as text: ``"45 s"``, ``"15 min"``, ``"1.5 h"``, ``"3 d"``."""
    for unit, word in ((DAY, "d"), (HOUR, "h"), (60, "min")):
        # 36 h are said as they are; two days and more in days.
        if seconds >= (2 * DAY if word == "d" else unit):
            return f"{seconds / unit:.3g} {word}"
    return f"{seconds:.3g} s"
