"""Times of a `sacct` table: instants, forecasts taken away, run times, the moment of the export."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt

from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.history import UNKNOWN
from gpuplan.traces.instants import clock_of, settle, zone_of
from gpuplan.traces.slurm_fields import GpuColumns
from gpuplan.traces.slurm_layout import TIMES
from gpuplan.traces.slurm_table import Table

Int64 = npt.NDArray[np.int64]
Strings = npt.NDArray[np.object_]
Bools = npt.NDArray[np.bool_]

#: Seconds by which end - start may miss the run time.
_SLACK_S = 1

_ZONE_RULE = (
    "The time zone is not told: times are those on the wall. Run times are right; what lies near a change of the "
    "clocks may be an hour off."
)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user said about a file; see `gpuplan.traces.slurm.read_sacct`."""

    zone: str | None
    as_of: str | datetime | None
    partition_limits: Mapping[str, int | None] | int | None
    strict: bool
    notes: tuple[str, ...]


@dataclass(slots=True)
class Times:
    """Times of the records, int64[R] by name, and what was done to them."""

    s: dict[str, Int64]
    elapsed_s: Int64
    ambiguous: Bools
    zone: str | None
    changed: list[tuple[str, int]]
    rules: list[str]


def times_of(source: str, table: Table, choices: Choices) -> Times:
    """Times as instants where a zone is known, and run times."""
    n = len(table.line)
    elapsed = np.full(n, UNKNOWN, np.int64)
    for name in ("elapsed", "elapsedraw"):
        if name in table.seconds:
            elapsed = np.where(table.seconds[name] != UNKNOWN, table.seconds[name], elapsed)
    one, other = (table.seconds.get(name, np.full(n, UNKNOWN)) for name in ("elapsed", "elapsedraw"))
    differ = (one != UNKNOWN) & (other != UNKNOWN) & (one != other)
    found = {name: table.seconds[name] for name in TIMES if name in table.seconds}
    fixed = {name: table.instants[name] for name in found}
    offsets = sum(int(values.sum()) for values in fixed.values())
    known = sum(int((values != UNKNOWN).sum()) for values in found.values())
    times = Times(found, elapsed, np.zeros(n, np.bool_), choices.zone, [], [])
    times.changed.append(("Elapsed and ElapsedRaw differ: the latter counts", int(differ.sum())))
    if choices.zone is not None:
        settled = settle(
            zone_of(choices.zone),
            {f"{name}_s": values for name, values in found.items()},
            elapsed,
            {f"{name}_s": values for name, values in fixed.items()},
        )
        times.s = {name: settled.times[f"{name}_s"].copy() for name in found}
        times.ambiguous = settled.ambiguous
        times.changed += [
            ("times that the clock showed twice, settled by run time and order", int(settled.settled.sum())),
            ("times that the clock showed twice: the first is taken", int(settled.ambiguous.sum())),
            ("times that the clock never showed", int(settled.skipped.sum())),
        ]
        times.rules.append(f"Times are those of {choices.zone}.")
    elif offsets:
        if offsets < known:
            rule = "must be given: some times of the file have an offset from UTC, and others have none"
            raise InputError(source, [Mistake("zone", rule)])
        times.zone = "UTC"
        times.rules.append("Times have an offset from UTC.")
    elif found:
        times.rules.append(_ZONE_RULE)
    return times


def open_ended(times: Times, waits: Bools, runs: Bools, held: GpuColumns, group: Strings) -> None:
    """Take away forecasts, and starts of jobs that never started; fill in run times."""
    start, end = times.s.get("start"), times.s.get("end")
    elapsed = times.elapsed_s
    if end is not None:
        forecast = (waits | runs) & (end != UNKNOWN)
        times.changed.append(("ends that are forecasts: the job has not ended", int(forecast.sum())))
        end[forecast] = UNKNOWN
    if start is not None:
        forecast = waits & (start != UNKNOWN)
        times.changed.append(("starts that are forecasts: the job waits", int(forecast.sum())))
        start[forecast] = UNKNOWN
    submit = times.s.get("submit")
    if start is not None and submit is not None:
        early = (start != UNKNOWN) & (submit != UNKNOWN) & (start < submit)
        times.changed.append(("start before the submission: the wait is not known", int(early.sum())))
    if start is None or end is None:
        return
    both = (start != UNKNOWN) & (end != UNKNOWN)
    never = both & (start == end) & (elapsed == 0) & (group == "cancelled") & ~held.told
    if (held.held != UNKNOWN).any():
        times.changed.append(
            ("cancelled at the moment of their start, holding nothing: never started", int(never.sum()))
        )
        start[never] = UNKNOWN
    filled = both & ~never & (elapsed == UNKNOWN) & (end >= start)
    elapsed[filled] = (end - start)[filled]
    times.changed.append(("run time not told: end - start", int(filled.sum())))
    differ = both & (elapsed != UNKNOWN) & (np.abs(end - start - elapsed) > _SLACK_S)
    times.changed.append(("end - start is not the run time told: the run time counts", int(differ.sum())))


def as_of(source: str, times: Times, runs: Bools, used: Bools, choices: Choices) -> tuple[int | None, str]:
    """The moment the file tells about, and how it is known."""
    if choices.as_of is not None:
        return _given_moment(source, choices.as_of, times.zone), "The moment of the export was given."
    start = times.s.get("start")
    if start is not None:
        sure = runs & (start != UNKNOWN) & (times.elapsed_s != UNKNOWN)
        if sure.any():
            moment = int((start + times.elapsed_s)[sure].max())
            return (
                moment,
                "The moment of the export is the start + run time of a running job, the latest of them.",
            )
    latest = [int(values[used].max(initial=UNKNOWN)) for values in times.s.values()]
    if max(latest, default=UNKNOWN) == UNKNOWN:
        return None, ""
    return max(
        latest
    ), "The moment of the export is a guess: the latest time in the file, for no job of it runs."


def _given_moment(source: str, as_of: str | datetime, zone: str | None) -> int:
    try:
        moment = datetime.fromisoformat(as_of) if isinstance(as_of, str) else as_of
        if moment.tzinfo is not None:
            return round(moment.timestamp())
        wall = round((moment - datetime(1970, 1, 1)).total_seconds())
        if zone is None:
            return wall
        return int(clock_of(zone_of(zone), wall, wall).instants(np.array([wall]))[0][0])
    except (ValueError, OverflowError):
        rule = "must be a time such as 2026-04-10T12:00:00"
        raise InputError(source, [Mistake("as_of", rule, str(as_of))]) from None


def so_far(times: Times, runs: Bools, as_of_s: int | None) -> None:
    """Run times of running jobs that are not told, up to the moment of the export."""
    start = times.s.get("start")
    if start is None or as_of_s is None:
        return
    rows = runs & (times.elapsed_s == UNKNOWN) & (start != UNKNOWN) & (start <= as_of_s)
    times.elapsed_s[rows] = as_of_s - start[rows]
    times.changed.append(("run time not told of running jobs: up to the export", int(rows.sum())))
