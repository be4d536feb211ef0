"""When each row of a table of jobs was submitted, started and ended, and how long it ran."""

import numpy as np

from gpuplan.traces.history import UNKNOWN
from gpuplan.traces.instants import settle, zone_of
from gpuplan.traces.job_cells import JobCells
from gpuplan.traces.sheet import Bools, Int64, Strings
from gpuplan.traces.sheet_times import NO_TIME

#: Seconds by which a run time may differ from end - start before it is said.
_SLACK_S = 1

#: Clocks change by an hour: without a zone a job may seem to end so long before its start.
_CHANGE_S = 3600

_RUNNING = ("running", "suspended")


class JobTimes:
    """Times and states of the rows of a table; what is not known is `UNKNOWN`.

    The run time as it is told wins over end - start; where it is not told it is reckoned from them.

    Attributes
    ----------
    submit, eligible, start, end, elapsed : int64[R]
    state : object[R]
    ambiguous : bool[R]
        Its times came twice on the clock, and nothing tells which was meant.
    zone
        Of the times; None: not known.
    as_of_s, as_of_from
        Moment of the export, and how it is known.
    rules
        What was decided, as sentences.
    """

    def __init__(self, cells: JobCells, zone: str | None, as_of_s: int | None) -> None:
        self._cells = cells
        self.rules: list[str] = []
        self.state: Strings = cells.states()
        self.elapsed = cells.seconds("elapsed")
        moments, base = cells.moments()
        self.submit, self.eligible, self.start, self.end = (
            self._known(moments.get(name)) for name in ("submit", "eligible", "start", "end")
        )
        self.ambiguous: Bools = np.zeros(len(cells), np.bool_)
        self.zone = "UTC" if base == "instants" else None
        if base == "wall" and zone is not None:
            self._to_instants(zone)
        elif base == "wall":
            self.rules.append(
                "Times are those of a clock on a wall: no zone is written, and none was stated."
            )
        elif base == "zero":
            self.rules.append("Times are seconds after a zero that is not told.")
        self.as_of_s = as_of_s
        self.as_of_from = "" if as_of_s is None else "The moment of the export is as stated."
        self._open_rows()
        self._starts()
        self._runs()

    def _known(self, seconds: Int64 | None) -> Int64:
        if seconds is None:
            return np.full(len(self._cells), UNKNOWN, np.int64)
        return np.where(seconds == NO_TIME, UNKNOWN, seconds)

    def _open_rows(self) -> None:
        """Running rows have no end; where a published table was cut, those that ran then are known by it."""
        table = self._cells.table
        running = np.isin(self.state, _RUNNING)
        if table is not None and table.open_at_end and len(self._cells):
            self.as_of_s = int(max(self.submit.max(), self.start.max(), self.end.max()))
            self.as_of_from = "The file was cut at its last moment: what runs then has no end."
            gone = running & (self.end != UNKNOWN) & (self.end < self.as_of_s)
            self.state = np.where(gone, "deleted", self.state)
            running &= ~gone
            self._cells.note("deleted while it ran", gone)
        else:
            self._cells.note(
                "runs, and yet has an end: the end is a forecast", running & (self.end != UNKNOWN)
            )
        self.end = np.where(running, UNKNOWN, self.end)
        if self.as_of_s is not None:
            reckoned = (
                running & (self.elapsed == UNKNOWN) & (self.start != UNKNOWN) & (self.start <= self.as_of_s)
            )
            self.elapsed = np.where(reckoned, self.as_of_s - self.start, self.elapsed)
            self._cells.note("still runs: counted up to the moment of the export", reckoned)

    def _starts(self) -> None:
        """A start that is not told follows from submission and wait; nothing starts before its submission."""
        wait = self._cells.seconds("wait")
        follows = (self.start == UNKNOWN) & (self.submit != UNKNOWN) & (wait != UNKNOWN)
        follows &= ~np.isin(self.state, ("pending",))
        self.start = np.where(follows, self.submit + wait, self.start)
        self._cells.note("start reckoned from submission and wait", follows)
        early = (self.start != UNKNOWN) & (self.submit != UNKNOWN) & (self.start < self.submit)
        self._cells.note("submitted after its start: counted as submitted at its start", early)
        self.submit = np.where(early, self.start, self.submit)

    def _runs(self) -> None:
        """Run times and ends that are not told follow from each other; what contradicts itself is a mistake."""
        cells = self._cells
        both = (self.start != UNKNOWN) & (self.end != UNKNOWN)
        before = both & (self.end < self.start)
        change = (
            before
            & (self.end >= self.start - _CHANGE_S)
            & (self.elapsed != UNKNOWN)
            & np.bool_(self.zone is None)
        )
        hint = " (state the zone: did clocks change?)" if self.zone is None else ""
        cells.refuse("end", before & ~change, f"must not be before the start{hint}")
        span = self.end - self.start
        if cells.has("elapsed"):
            differ = both & ~before & (self.elapsed != UNKNOWN) & (np.abs(span - self.elapsed) > _SLACK_S)
            cells.note("run time differs from end - start: the run time counts", differ | change)
        reckoned = both & ~before & (self.elapsed == UNKNOWN)
        self.elapsed = np.where(reckoned, span, self.elapsed)
        if cells.has("elapsed"):
            cells.note("run time reckoned from start and end", reckoned)
        ended = (self.start != UNKNOWN) & (self.end == UNKNOWN) & (self.elapsed != UNKNOWN)
        ended &= ~np.isin(self.state, (*_RUNNING, "pending"))
        self.end = np.where(ended, self.start + self.elapsed, self.end)
        if not cells.has("state") and not cells.has("start"):  # nothing says that the job may not have run
            cells.refuse("elapsed", (self.elapsed == UNKNOWN) & ~cells.wrong, "must be given")
            cells.refuse("submit", (self.submit == UNKNOWN) & ~cells.wrong, "must be given")

    def _to_instants(self, zone: str) -> None:
        """Times on the wall of a zone as instants; a time that was shown twice is settled by the run time."""
        names = ("submit", "eligible", "start", "end")
        found = settle(zone_of(zone), {f"{name}_s": getattr(self, name) for name in names}, self.elapsed)
        for name in names:
            setattr(self, name, found.times[f"{name}_s"])
        self.ambiguous, self.zone = found.ambiguous, zone
        self.rules.append(f"Times without a zone are those of {zone}, as stated.")
        self._cells.note("a time that the clock showed twice, settled by run time and order", found.settled)
        self._cells.note("a time that the clock showed twice, taken for the first", found.ambiguous)
        self._cells.note(
            "a time that the clock skipped, taken as if it had not been put forward", found.skipped
        )
