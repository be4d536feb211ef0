"""From what the clock on the wall showed to instants: a zone, its changes, and run times that settle which was meant.

When clocks go back an hour is shown twice; when they go forward one is skipped. A time that was shown twice has two
instants, and only something else can tell which: here the run time, as the scheduler measured it, and the order of
submission, start and end.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: A time that is not known.
UNKNOWN = -1

#: Seconds between looks for a change of the clock; no zone changes there and back within them.
_LOOK_S = 43_200

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?", re.A | re.I)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone_of(name: str) -> tzinfo:
    """The zone of a name: ``Europe/Berlin``, ``UTC``, ``+01:00``.

    Raises
    ------
    InputError
        If there is no such zone.
    """
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    offset = _OFFSET.fullmatch(name.strip())
    if offset is not None and int(offset[2]) < 24 and int(offset[3] or 0) < 60:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-ahead if offset[1] == "-" else ahead)
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # no such zone, a folder, a path that leads elsewhere
        rule = "must be a time zone, such as Europe/Berlin, UTC or +01:00"
        raise InputError("time zone", [Mistake("zone", rule, name)]) from None


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """The clock of a zone over a stretch of time.

    Attributes
    ----------
    changes : int64[N]
        Instants at which it is put forward or back, seconds of the Unix epoch.
    offsets : int64[N + 1]
        Seconds that it is ahead of UTC, before the first change and after each.
    """

    changes: Int64
    offsets: Int64

    def instants(self, wall_s: Int64) -> tuple[Int64, Int64]:
        """The first and the second instant at which it showed some times; equal where it showed them once.

        A time that was skipped gets the instant of a clock that had not been put forward yet.

        Parameters
        ----------
        wall_s : int64[R]
            Seconds of the epoch, as if the times stood in UTC.
        """
        before, after = self.changes + self.offsets[:-1], self.changes + self.offsets[1:]
        first = wall_s - self.offsets[np.searchsorted(np.maximum(before, after), wall_s, side="right")]
        second = wall_s - self.offsets[np.searchsorted(np.minimum(before, after), wall_s, side="right")]
        skipped = second < first
        return first, np.where(skipped, first, second)

    def wall(self, instant_s: Int64) -> Int64:
        """What it shows at some instants, int64[R], seconds of the epoch as if it stood in UTC."""
        return np.asarray(
            instant_s + self.offsets[np.searchsorted(self.changes, instant_s, side="right")], np.int64
        )

    def day(self, wall_s: int) -> tuple[int, int]:
        """First instant of the day of a time on the wall, and of the next day; a day may have 23 or 25 hours."""
        midnight = wall_s - wall_s % 86400
        found = self.instants(np.array([midnight, midnight + 86400], np.int64))[0]
        return int(found[0]), int(found[1])


def clock_of(zone: tzinfo, first_s: int, last_s: int) -> Clock:
    """The clock of a zone from the day before `first_s` to the day after `last_s` (seconds of the epoch)."""
    at = list(range(first_s - 2 * 86400, last_s + 3 * 86400, _LOOK_S))
    found = [_offset_s(zone, seconds) for seconds in at]
    changes = [
        _change(zone, at[k], at[k + 1], found[k]) for k in range(len(at) - 1) if found[k] != found[k + 1]
    ]
    offsets = [found[0], *(_offset_s(zone, change) for change in changes)]
    return Clock(np.array(changes, np.int64), np.array(offsets, np.int64))


def _offset_s(zone: tzinfo, instant_s: int) -> int:
    offset = (_EPOCH + timedelta(seconds=instant_s)).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _change(zone: tzinfo, before: int, after: int, offset: int) -> int:
    """The first instant after `before` at which the zone has another offset."""
    while after - before > 1:
        middle = (before + after) // 2
        if _offset_s(zone, middle) == offset:
            before = middle
        else:
            after = middle
    return after


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """Times as instants, int64[R], `UNKNOWN` where they are not known.

    Attributes
    ----------
    times
        By name, as they were given.
    ambiguous : bool[R]
        A time was shown twice and nothing tells which was meant: the first is taken.
    skipped : bool[R]
        The clock never showed a time.
    settled : bool[R]
        A time was shown twice, and the others tell which was meant.
    """

    times: dict[str, Int64]
    ambiguous: Bools
    skipped: Bools
    settled: Bools


def settle(
    zone: tzinfo,
    times: dict[str, Int64],
    elapsed_s: Int64,
    fixed: dict[str, Bools] | None = None,
) -> Settled:
    """Turn times on the wall into instants.

    Of a start and an end that were shown twice those are meant whose difference is nearest to the run time. Where
    several are equally near, or the run time is not known, the order decides (``submit <= eligible <= start <= end``),
    and where that leaves several, the first instant is taken and the row is marked.

    Parameters
    ----------
    zone
    times
        Seconds of the epoch as if the times stood in UTC, int64[R], by name: ``submit_s``, ``eligible_s``,
        ``start_s``, ``end_s``, in this order; some may be absent.
    elapsed_s : int64[R]
        Run time; `UNKNOWN` where it is not known.
    fixed
        By name, bool[R]: times that are instants already.
    """
    n = len(elapsed_s)
    known = {name: values != UNKNOWN for name, values in times.items()}
    every = [values[known[name]] for name, values in times.items() if known[name].any()]
    clock = clock_of(
        zone,
        int(min((values.min() for values in every), default=0)),
        int(max((values.max() for values in every), default=0)),
    )
    first, second = {}, {}
    skipped = np.zeros(n, np.bool_)
    for name, values in times.items():
        one, two = clock.instants(values)
        there = known[name] if fixed is None else known[name] & ~fixed.get(name, np.zeros(n, np.bool_))
        skipped |= there & (clock.wall(one) != values)
        first[name], second[name] = np.where(there, one, values), np.where(there, two, values)
    twice = np.zeros(n, np.bool_)
    for name in times:
        twice |= first[name] != second[name]
    ambiguous = np.zeros(n, np.bool_)
    rows = np.flatnonzero(twice)
    if len(rows):
        chosen, open_ = _choose(
            {name: (first[name][rows], second[name][rows], known[name][rows]) for name in times},
            elapsed_s[rows],
        )
        for name, values in chosen.items():
            first[name][rows] = values
        ambiguous[rows] = open_
    return Settled(first, ambiguous, skipped, twice & ~ambiguous)


def _choose(times: dict[str, tuple[Int64, Int64, Bools]], elapsed_s: Int64) -> tuple[dict[str, Int64], Bools]:
    """One instant of each pair, and rows in which more than one choice is as good as the best."""
    names = list(times)
    n = len(elapsed_s)
    best = np.full(n, np.iinfo(np.int64).max)
    ways = np.zeros(n, np.int64)
    pick = np.zeros((len(names), n), np.int64)
    for choice in range(1 << len(names)):
        bits = [(choice >> (len(names) - 1 - k)) & 1 for k in range(len(names))]
        found = [times[name][1] if bit else times[name][0] for name, bit in zip(names, bits, strict=True)]
        # a second instant that is the first again is no choice of its own
        real = np.ones(n, np.bool_)
        for name, bit in zip(names, bits, strict=True):
            if bit:
                real &= times[name][0] != times[name][1]
        cost = _cost(
            dict(zip(names, found, strict=True)), {name: times[name][2] for name in names}, elapsed_s
        )
        cost = np.where(real, cost, np.iinfo(np.int64).max)
        better = cost < best
        ways = np.where(better, 1, ways + (real & (cost == best)))
        best = np.where(better, cost, best)
        pick[:, better] = np.array(found)[:, better]
    return {name: pick[k] for k, name in enumerate(names)}, ways > 1


def _cost(times: dict[str, Int64], known: dict[str, Bools], elapsed_s: Int64) -> Int64:
    """How far times are from what they must be: seconds by which they miss the run time or are out of order."""
    cost = np.zeros(len(elapsed_s), np.int64)
    if "start_s" in times and "end_s" in times:
        both = known["start_s"] & known["end_s"] & (elapsed_s != UNKNOWN)
        cost += np.where(both, np.abs(times["end_s"] - times["start_s"] - elapsed_s), 0)
    names = list(times)
    for early, late in pairwise(names):
        both = known[early] & known[late]
        cost += np.where(both, np.maximum(times[early] - times[late], 0), 0)
    return cost
