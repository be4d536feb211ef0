"""Several days as they happen, and what was known of them beforehand: the input of a rolling run."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuplan.allocation.model import (
    AllocationScenario,
    BatchJob,
    Horizon,
    Objective,
    RealtimeApp,
    Rules,
)
from gpuplan.allocation.problem import Int64
from gpuplan.inputs.errors import InputError, Mistake

DAY_S = 86_400

#: How much of an hour's noise of traffic is still there an hour later: forecasts are wrong for hours, not for minutes.
PERSISTENCE = 0.8

#: Jobs that are announced are known so long before they may start.
NOTICE_HOURS = 24.0

#: Steps of a run at most, and of the horizon of a plan.
MOST_STEPS, MOST_HORIZON = 20_000, 1_008


@dataclass(frozen=True, slots=True)
class Errors:
    """How wrong what is known beforehand is; 0 everywhere: everything is known.

    What happens stays the same whatever the errors are, so that runs can be compared: the forecast and the
    announced durations move instead.

    Attributes
    ----------
    traffic_bias
        The forecast of every app is so much too high (0.2: 20 %) or too low (-0.2).
    traffic_noise
        Standard deviation of the logarithm of a random factor on the forecast; it fades by `PERSISTENCE` an hour.
    duration_bias
        Jobs run so much longer (0.2: 20 %) or shorter than announced, on median.
    duration_noise
        Standard deviation of the logarithm of a random factor between actual and announced duration.
    unannounced
        Share of jobs that nobody knows of before they arrive; the others are known `NOTICE_HOURS` before.
    """

    traffic_bias: float = 0.0
    traffic_noise: float = 0.0
    duration_bias: float = 0.0
    duration_noise: float = 0.0
    unannounced: float = 0.0

    def mistakes(self) -> list[Mistake]:
        """What cannot be, a mistake each."""
        found = []
        for name, least, most in (
            ("traffic_bias", -1.0, 10.0),
            ("traffic_noise", 0.0, 3.0),
            ("duration_bias", -0.95, 10.0),
            ("duration_noise", 0.0, 3.0),
            ("unannounced", 0.0, 1.0),
        ):
            value = getattr(self, name)
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or not least <= value <= most:
                found.append(Mistake(f"errors.{name}", f"must be a number from {least:g} to {most:g}", value))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Days:
    """Days as they happen (``S`` steps, ``J`` jobs, ``R`` apps), and what plans know of them.

    Attributes
    ----------
    span
        What happens, as one long scenario: demand as it comes, hours as jobs take, `earliest_hour` as they arrive.
        Value does not decay, and jobs may run over the end.
    objective
        What each plan maximises.
    horizon
        Steps of each plan.
    forecast : int64[R, S + max(horizon, a day)]
        GPUs that each app is expected to want.
    announced : float64[J]
        Announced over actual duration.
    known_from : int64[J]
        Step from which plans know of each job.
    errors
        How these forecasts were made wrong, where they were.
    """

    span: AllocationScenario
    objective: Objective
    horizon: int
    forecast: Int64
    announced: "np.ndarray[Any, np.dtype[np.float64]]"
    known_from: Int64
    errors: Errors = Errors()

    @property
    def steps(self) -> int:
        """Steps of all days."""
        return self.span.horizon.steps

    @property
    def steps_per_day(self) -> int:
        """Steps of one day."""
        return DAY_S // self.span.horizon.step_s


def repeated(scenario: AllocationScenario, days: int, ahead_steps: int = 0) -> AllocationScenario:
    """A scenario day after day, as one long scenario: its demand again, its jobs again under names of their own.

    Parameters
    ----------
    scenario
        A day. What runs already and what apps hold is so on the first morning.
    days
        How many.
    ahead_steps
        Steps of demand beyond the last day.

    Raises
    ------
    InputError
        Where a day is not a whole number of steps, or the days are too many.
    """
    _require_days(scenario, days)
    step_s = scenario.horizon.step_s
    steps = days * (DAY_S // step_s)
    horizon = Horizon(steps + ahead_steps, step_s, scenario.horizon.start)
    apps = tuple(replace(app, demand=_demand(app, horizon)) for app in scenario.realtime)
    batch = [
        replace(job, name=f"{job.name} (day {day + 1})", **_later(job, 24.0 * day))
        for day in range(days)
        for job in scenario.batch
        if day == 0 or job.running_on is None
    ]
    batch.sort(key=lambda job: (job.running_on is None, job.earliest_hour))  # in order of arrival
    return replace(
        scenario,
        name=f"{scenario.name}, {days} day{'s' if days > 1 else ''}",
        horizon=horizon,
        realtime=apps,
        batch=tuple(batch),
    )


def _later(job: BatchJob, hours: float) -> dict[str, Any]:
    deadline = None if job.deadline_hour is None else job.deadline_hour + hours
    return {"earliest_hour": job.earliest_hour + hours, "deadline_hour": deadline}


def _demand(app: RealtimeApp, horizon: Horizon) -> tuple[int, ...]:
    if app.shape is not None:
        return app.shape.demand(horizon)
    whole_days = max(1, len(app.demand) * horizon.step_s // DAY_S) * (DAY_S // horizon.step_s)
    day = app.demand[:whole_days]  # a part of a day at the end is not repeated
    return tuple(day[step % len(day)] for step in range(horizon.steps))


def unfold(
    span: AllocationScenario,
    *,
    steps: int,
    horizon: int,
    errors: Errors = Errors(),
    seed: int | np.random.Generator = 0,
    forecast: Any = None,
    announced_hours: Any = None,
) -> Days:
    """What happens over ``steps`` steps, and what plans of ``horizon`` steps know of it.

    Parameters
    ----------
    span
        A scenario of at least ``steps`` steps: demand and jobs as they come. Demand beyond its end is that of its
        last day again.
    errors
        How wrong forecasts and announcements are.
    seed
        Of the random factors. The same seed gives the same random numbers at every size of the errors.
    forecast : int64[R, >= steps], optional
        GPUs that each app is expected to want, where they are known otherwise; errors of traffic apply to it.
    announced_hours : float64[J], optional
        Hours that each job is expected to take on its smallest size, where they are known otherwise (learned from a
        history, say); errors of durations apply to them.

    Raises
    ------
    InputError
        With every mistake.
    """
    mistakes = errors.mistakes()
    if not 1 <= horizon <= MOST_HORIZON:
        mistakes.append(Mistake("horizon_hours", f"must be 1 to {MOST_HORIZON} steps", horizon))
    if mistakes:
        raise InputError(span.name, mistakes)
    draw = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    # reservations look a day ahead, however short the horizon is
    seen = steps + max(horizon, DAY_S // span.horizon.step_s)
    n_apps, n_jobs = len(span.realtime), len(span.batch)
    # a stream for each: a longer horizon draws further, not otherwise
    for_factors, for_surprise, *for_noise = draw.spawn(n_apps + 2)
    noise = np.array([stream.standard_normal(seen) for stream in for_noise]).reshape(n_apps, seen)
    factors, surprise = for_factors.standard_normal(n_jobs), for_surprise.random(n_jobs)
    actual = _beyond(np.array([app.demand for app in span.realtime], np.int64), n_apps, seen, span)
    expected = actual if forecast is None else _given(forecast, n_apps, steps, seen, span)
    step_hours = span.horizon.step_hours
    wrong = (1 + errors.traffic_bias) * np.exp(errors.traffic_noise * _persistent(noise, step_hours))
    announced = np.exp(-errors.duration_noise * factors) / (1 + errors.duration_bias)
    if announced_hours is not None:
        announced *= _expected(announced_hours, span) / np.array([job.hours for job in span.batch], float)
    arrival = np.array([span.steps_of(job.earliest_hour) for job in span.batch], np.int64)
    known = np.maximum(0, arrival - span.steps_of(NOTICE_HOURS))
    known = np.where(surprise < errors.unannounced, arrival, known)
    running = np.array([job.running_on is not None for job in span.batch], bool)
    apps = tuple(
        replace(app, demand=tuple(row[:steps].tolist()), shape=None)
        for app, row in zip(span.realtime, actual, strict=True)
    )
    happens = replace(
        span,
        horizon=replace(span.horizon, steps=steps),
        objective=replace(span.objective, half_life_hours=None),
        rules=Rules(must_finish=False, within_node=span.rules.within_node),
        realtime=apps,
    )
    return Days(
        span=happens,
        objective=span.objective,
        horizon=horizon,
        forecast=np.floor(expected * wrong + 0.5).astype(np.int64),
        announced=announced,
        known_from=np.where(running, 0, known),
        errors=errors,
    )


def _persistent(noise: Any, step_hours: float) -> Any:
    """Noise of unit variance that fades by `PERSISTENCE` an hour (a first-order autoregression)."""
    keep = PERSISTENCE**step_hours
    fresh = math.sqrt(1 - keep * keep)
    found = noise.copy()
    for step in range(1, noise.shape[1]):
        found[:, step] = keep * found[:, step - 1] + fresh * noise[:, step]
    return found


def _beyond(demand: Int64, n_apps: int, steps: int, span: AllocationScenario) -> Int64:
    """Demand over so many steps: the last day again where the span ends before."""
    known = demand.shape[-1]
    if known >= steps or n_apps == 0:
        return demand[:, :steps] if n_apps else np.zeros((0, steps), np.int64)
    day = min(known, DAY_S // span.horizon.step_s)
    at = np.arange(steps)
    at = np.where(at < known, at, known - day + (at - known) % day)
    later: Int64 = demand[:, at]
    return later


def _given(forecast: Any, n_apps: int, steps: int, seen: int, span: AllocationScenario) -> Int64:
    try:
        found = np.asarray(forecast, float)
    except (TypeError, ValueError):
        rule = "must be numbers: GPUs of each app and step"
        raise InputError(span.name, [Mistake("forecast", rule, forecast)]) from None
    if found.ndim != 2 or found.shape[0] != n_apps or found.shape[1] < steps:
        rule = f"must have a row for each of {n_apps} apps and at least {steps} steps (its shape is {found.shape})"
        raise InputError(span.name, [Mistake("forecast", rule)])
    bad = ~np.isfinite(found) | (found < 0)
    if bad.any():
        r, step = np.argwhere(bad)[0].tolist()
        rule = "must be finite and at least 0"
        raise InputError(span.name, [Mistake(f"forecast.{r}.{step}", rule, float(found[r, step]))])
    return _beyond(np.ceil(found - 1e-9).astype(np.int64), n_apps, seen, span)


def _expected(hours: Any, span: AllocationScenario) -> Any:
    """Announced hours, every one a number above 0."""
    try:
        found = np.asarray(hours, float)
    except (TypeError, ValueError):
        rule = "must be numbers: hours of each job"
        raise InputError(span.name, [Mistake("announced_hours", rule, hours)]) from None
    if found.shape != (len(span.batch),):
        rule = f"must have an entry for each of {len(span.batch)} jobs (its shape is {found.shape})"
        raise InputError(span.name, [Mistake("announced_hours", rule)])
    bad = np.flatnonzero(~np.isfinite(found) | (found <= 0))
    if bad.size:
        raise InputError(
            span.name,
            [
                Mistake(
                    f"announced_hours.{j}",
                    f"must be above 0 and known ({span.batch[j].name})",
                    float(found[j]),
                )
                for j in bad.tolist()
            ],
        )
    return found


def _require_days(scenario: AllocationScenario, days: Any) -> None:
    mistakes = []
    step_s = scenario.horizon.step_s
    if DAY_S % step_s:
        rule = f"must divide a day for a run over days (got steps of {step_s / 60:g} min)"
        mistakes.append(Mistake("horizon.step_hours", rule))
    whole = isinstance(days, (int, np.integer)) and not isinstance(days, bool)
    if not whole or days < 1:
        mistakes.append(Mistake("days", "must be a whole number of at least 1", days))
    elif not mistakes and days * (DAY_S // step_s) > MOST_STEPS:
        mistakes.append(
            Mistake("days", f"must be at most {MOST_STEPS // (DAY_S // step_s)} days of such steps", days)
        )
    if mistakes:
        raise InputError(scenario.name, mistakes)
