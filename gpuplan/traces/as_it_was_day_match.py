"""The stretches of a record that are of the batch jobs of an allocation day, within its horizon."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from gpuplan.allocation.model import AllocationScenario
from gpuplan.fairshare.ledger import gpu_seconds
from gpuplan.fairshare.model import HOUR, Int64
from gpuplan.forecast.traffic import TrafficHistory, epoch_s, zone_of
from gpuplan.inputs.account import Account
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.as_it_was_match import rows_of
from gpuplan.traces.recorded import Recorded

#: GPUs that each app held, by its name, per step.
Services = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, eq=False)
class DayStretches:
    """Stretches within the horizon, by start; `over_s` (int64[J]): when the record of a job ends, maybe beyond it."""

    job: Int64
    start_s: Int64
    end_s: Int64
    gpus: Int64
    over_s: Int64
    account: Account
    elsewhere_s: int


def matched_day(day: AllocationScenario, record: Recorded, start_s: int | None) -> DayStretches:
    """The stretches of the day's jobs within its horizon."""
    names = [job.name for job in day.batch]
    job = rows_of(np.array(names, object), record.job)
    # An import writes "name (job)" where an app has the name already.
    plain = [name.removesuffix(" (job)") for name in names]
    if plain != names and len(set(plain)) == len(plain):
        job = np.where(job < 0, rows_of(np.array(plain, object), record.job), job)
    if not (job >= 0).any():
        rule = "must name batch jobs of the scenario; none of its names is one"
        raise InputError(record.source, [Mistake("job", rule, str(record.job[0]) if len(record) else "")])
    zero = _start(day, record) if start_s is None else start_s
    last = day.horizon.steps * day.horizon.step_s
    begin, end = record.start_s - zero, record.end_s - zero
    tests = (
        ("of no batch job of the scenario", job < 0),
        ("ended before the day begins", (begin < 0) & (end <= 0)),
        ("began after the day ends", begin >= last),
    )
    left, excluded = np.ones(len(record), np.bool_), list(record.left_out)
    for reason, fails in tests:
        excluded.append((reason, int((left & fails).sum())))
        left &= ~fails
    inside = np.clip(begin, 0, last), np.clip(end, 0, last)
    seconds = inside[1] - inside[0]
    order = np.flatnonzero(left)
    order = order[np.lexsort((job[order], inside[0][order]))]
    over = np.full(len(names), -1, np.int64)
    np.maximum.at(over, job[job >= 0], end[job >= 0])
    elsewhere = gpu_seconds(record.gpus, np.where(job < 0, seconds, 0))
    account = Account(
        record.source,
        "stretches",
        len(record) + sum(count for _, count in record.left_out),
        len(order),
        tuple(row for row in excluded if row[1]),
        tuple(
            row
            for row in (
                ("cut at the start of the day", int((left & (begin < 0)).sum())),
                ("cut at its end", int((left & (end > last)).sum())),
            )
            if row[1]
        ),
        (
            (
                "held by the jobs of the day",
                gpu_seconds(record.gpus[order], seconds[order]) / HOUR,
                "GPU-hours",
            ),
            ("held meanwhile by other jobs of the record", elsewhere / HOUR, "GPU-hours"),
        ),
        (f"The day begins at {record.moment(zero)} of the record.",),
        made="record",
    )
    return DayStretches(
        job[order], inside[0][order], inside[1][order], record.gpus[order], over, account, elsewhere
    )


def _start(day: AllocationScenario, record: Recorded) -> int:
    """Start of the horizon on the clock of the record."""
    if record.clock is None:
        return 0
    if day.horizon.start is None:
        rule = "must be given: the scenario has no start (horizon.start)"
        raise InputError(record.source, [Mistake("start_s", rule)])
    moment = datetime.fromisoformat(day.horizon.start)
    if moment.tzinfo is None:
        zone = zone_of(record.clock)[0] if record.clock else None
        moment = moment.replace(tzinfo=zone or UTC)
    return epoch_s(moment)


def services_of(day: AllocationScenario, services: Services | None) -> Int64 | None:
    """GPUs of each app per step, int64[R, T]; None: not recorded."""
    if services is None:
        return np.zeros((0, day.horizon.steps), np.int64) if not day.realtime else None
    names = [app.name for app in day.realtime]
    mistakes = [
        Mistake(f"services.{name}", "must be an app of the scenario")
        for name in services
        if name not in names
    ]
    for name in names:
        row = services.get(name)
        if row is None:
            mistakes.append(Mistake(f"services.{name}", "must be given: what this app held is needed too"))
        elif len(row) != day.horizon.steps or any(int(n) != n or n < 0 for n in row):
            rule = f"must be a whole number of GPUs for each of the {day.horizon.steps} steps"
            mistakes.append(Mistake(f"services.{name}", rule, list(row)))
    if mistakes:
        raise InputError(day.name, mistakes)
    return np.array([[int(n) for n in services[name]] for name in names], np.int64).reshape(
        len(names), day.horizon.steps
    )


def services_of_histories(
    day: AllocationScenario, histories: Mapping[str, TrafficHistory]
) -> dict[str, list[int]]:
    """GPUs that apps held per step of a day, from histories in GPUs (see `gpuplan.traces.dcgm`): means, rounded.

    Parameters
    ----------
    day
        With a start; where it has no zone, it is a time on the clock of the histories.
    histories
        By name of the app; bins that divide a step and lie on its grid.

    Raises
    ------
    InputError
        If the day has no start, or a step of it is not known in a history.
    """
    if day.horizon.start is None:
        raise InputError(day.name, [Mistake("horizon.start", "must be given to find the day in a history")])
    step_s, found, mistakes = day.horizon.step_s, {}, []
    for name, history in histories.items():
        moment = datetime.fromisoformat(day.horizon.start)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=history.start.tzinfo)
        shift, each = epoch_s(moment) - epoch_s(history.start), step_s // history.bin_s
        first = shift // history.bin_s
        if step_s % history.bin_s or shift % history.bin_s:
            rule = f"must have bins that divide steps of {step_s} s from {day.horizon.start} on"
            mistakes.append(Mistake(f"services.{name}", rule, f"{history.bin_s} s"))
            continue
        values = np.full(day.horizon.steps * each, np.nan)
        inside = history.values[max(0, first) : max(0, first + len(values))]
        values[max(0, -first) : max(0, -first) + len(inside)] = inside[: max(0, len(values) + min(0, first))]
        rows = values.reshape(-1, each)
        known = np.isfinite(rows)
        lost = np.flatnonzero(~known.any(axis=1))
        if len(lost):
            rule = f"must be known in every step of the day; {len(lost):,} are not, step {lost[0]} first"
            mistakes.append(Mistake(f"services.{name}", rule))
            continue
        mean = np.where(known, rows, 0).sum(axis=1) / known.sum(axis=1)
        found[name] = [int(gpus) for gpus in np.floor(mean + 0.5).tolist()]
    if mistakes:
        raise InputError(day.name, mistakes)
    return found
