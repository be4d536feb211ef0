"""Traffic of a day as real-time apps: the GPUs that its replicas need in every step."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpuplan.allocation.model import RealtimeApp
from gpuplan.forecast.capacity import Replica, size
from gpuplan.forecast.traffic import TrafficHistory, epoch_s
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.traces.days import days_of, midnight_s, text_of
from gpuplan.traces.instants import zone_of
from gpuplan.traces.names import counted
from gpuplan.traces.to_scenario import Choices

#: Unit of traffic that is GPUs already.
GPUS = "GPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How traffic becomes GPUs.

    Attributes
    ----------
    per_gpu
        Traffic that one GPU carries at full load, in the unit of the history; None: the history counts GPUs.
    replica_gpus
        GPUs of a replica; a step has whole replicas.
    target_load
        Share of the full load that is planned for.
    priority
        Of the apps.
    max_swap
        Most GPUs that an app may acquire or release from a step to the next; None: any number.
    """

    per_gpu: float | None = None
    replica_gpus: int = 1
    target_load: float = 1.0
    priority: float = 1.0
    max_swap: int | None = None


@dataclass(frozen=True, slots=True)
class Apps:
    """The apps of a day, and what was said about them."""

    apps: tuple[RealtimeApp, ...]
    choices: Choices = field(default_factory=Choices)


def zone_name(history: TrafficHistory) -> str | None:
    """Name of the zone of a traffic history; None: times on the wall. UTC offsets count as UTC."""
    zone = history.start.tzinfo
    return None if zone is None else zone.key if isinstance(zone, ZoneInfo) else "UTC"


def in_zone(history: TrafficHistory, zone: str | None) -> TrafficHistory:
    """A history with its times shown in another zone, where it has one."""
    if zone is None or history.start.tzinfo is None:
        return history
    return replace(history, start=history.start.astimezone(zone_of(zone)))


def busiest_traffic_day(histories: Sequence[TrafficHistory]) -> date:
    """The day with the most traffic (in the unit of each history, as a share of its mean) among those best covered."""
    worth: dict[int, float] = {}
    for history in histories:
        moments = epoch_s(history.start) + np.arange(len(history), dtype=np.int64) * history.bin_s
        mean = float(np.nanmean(history.values)) if history.known.any() else 0.0
        days = days_of(moments, zone_name(history))
        for day in np.unique(days).tolist():
            values = history.values[days == day]
            known = np.isfinite(values)
            covered = int(known.sum()) * history.bin_s >= 23 * 3600
            total = float(np.nansum(values)) / mean if mean else 0.0
            worth[day] = worth.get(day, 0.0) + total + (1e9 if covered else 0.0)
    if not worth:
        raise InputError("traffic", [Mistake("", "must have a value")])
    best = max(worth, key=lambda day: (worth[day], -day))
    return date(1970, 1, 1) + timedelta(days=best)


def apps_of(
    histories: Sequence[TrafficHistory],
    span: tuple[int, int],
    step_s: int,
    service: Service,
    zone: str | None,
) -> Apps:
    """An app for each history: whole replicas that carry the mean traffic of every step.

    Parameters
    ----------
    histories
        Bins no wider than a step.
    span
        First second of the day, and of the next, as the histories count.
    step_s
        Length of a step.
    service
        How traffic becomes GPUs.
    zone
        Zone of the span, for messages.

    Raises
    ------
    InputError
        If a history does not fit the steps, has no value in the span, or nobody says what a GPU carries.
    """
    made = Apps((), Choices())
    apps = []
    for history in histories:
        if service.per_gpu is None and history.unit != GPUS:
            rule = f"must say how much one GPU carries, in {history.unit}"
            raise InputError(history.name, [Mistake("per_gpu", rule)])
        replica = Replica(
            gpus=service.replica_gpus,
            per_s=(service.per_gpu or 1.0) * service.replica_gpus,
            unit=history.unit,
            target_load=service.target_load,
            min_replicas=0 if history.unit == GPUS else 1,
        )
        values = _steps(history, span, step_s, zone)
        sized = size(values, replica, step_s=step_s, unit=history.unit)
        demand = tuple(int(gpus) for gpus in sized.gpus.tolist())
        apps.append(RealtimeApp(history.name, service.priority, demand, max_swap=service.max_swap))
        unknown = int(sized.unknown.sum())
        gaps = f"; {unknown} steps without a value keep the GPUs of the step before" if unknown else ""
        made.choices.say("Traffic", f"{history.name}: at most {max(demand):,} GPUs{gaps}.")
    carried = (
        "counted in GPUs"
        if service.per_gpu is None
        else f"one GPU carries {service.per_gpu:g} {histories[0].unit} at full load"
    )
    load = f", planned for {service.target_load:.0%} of it" if service.target_load != 1 else ""
    made.choices.say(
        "Traffic",
        f"The mean of each step, {carried}{load}; replicas of {counted(service.replica_gpus, 'GPU')}; priority "
        f"{service.priority:g}; swap cap {'none' if service.max_swap is None else service.max_swap}.",
    )
    return Apps(tuple(apps), made.choices)


def _steps(
    history: TrafficHistory, span: tuple[int, int], step_s: int, zone: str | None
) -> npt.NDArray[np.float64]:
    """Mean of the known bins that begin in each step, not-a-number where there is none."""
    if history.bin_s > step_s:
        rule = f"must be at least the {history.bin_s:,} s of a bin of the traffic"
        raise InputError(history.name, [Mistake("step_minutes", rule, step_s // 60)])
    first, last = span
    steps = -(-(last - first) // step_s)
    at = epoch_s(history.start) + np.arange(len(history), dtype=np.int64) * history.bin_s
    inside = (at >= first) & (at < last) & history.known
    if not inside.any():
        begin, end = epoch_s(history.start), epoch_s(history.start) + len(history) * history.bin_s
        rule = (
            f"must have traffic; {history.name} has some from {text_of(begin, zone)} to {text_of(end, zone)}"
        )
        raise InputError(history.name, [Mistake("day", rule, text_of(first, zone))])
    of = (at[inside] - first) // step_s
    count = np.bincount(of, minlength=steps)
    total = np.bincount(of, history.values[inside], minlength=steps)
    mean = np.full(steps, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def span_of_day(day: date, zone: str | None) -> tuple[int, int]:
    """First second of a day and of the next one."""
    return midnight_s(day, zone), midnight_s(type(day).fromordinal(day.toordinal() + 1), zone)


def same_zone(histories: Sequence[TrafficHistory]) -> str | None:
    """The zone that all histories have.

    Raises
    ------
    InputError
        If some have one and some have none.
    """
    zones = {zone_name(history) for history in histories}
    if len(zones) == 1:
        return zones.pop()
    rule = "must have times in one zone, and be named"
    raise InputError("traffic", [Mistake("zone", rule, ", ".join(sorted(map(str, zones))))])
