"""A moment of a rolling run in words and figures: when it is, what came before it, what its plan promised."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from gpuplan import gantt
from gpuplan.allocation.problem import compile_problem

if TYPE_CHECKING:
    from gpuplan.allocation.days import Days
    from gpuplan.allocation.figures import Figures
    from gpuplan.allocation.rolling_run import RollingRun

#: Figures that are known of any stretch of days, in the order in which they are listed (units: `ROLLING_UNITS`).
SO_FAR = (
    "utilization",
    "held",
    "value",
    "penalty",
    "objective",
    "coverage",
    "shortfall_gpu_hours",
    "jobs_finished",
    "jobs_waiting",
)


def moment_words(days: "Days", step: int) -> str:
    """A step as people say it: ``"day 3, Thu 06:00"``, or ``"day 3, hour 6"`` where the days have no date."""
    hours = step * days.span.horizon.step_hours
    day, start = int(hours // 24) + 1, start_of(days)
    if start is None:
        return f"day {day}, hour {round(hours % 24, 2):g}"
    return f"day {day}, {start + timedelta(hours=hours):%a %H:%M}"


def span_words(days: "Days", first: int, after: int) -> str:
    """A stretch of steps: ``"day 3, Thu 06:00 to 09:00"``, with the day again where it is another one."""
    begin, end = moment_words(days, first), moment_words(days, after)
    day = begin[: begin.rindex(" ") + 1]
    return f"{begin} to {end.removeprefix(day)}"


def so_far(run: "RollingRun", step: int) -> "Figures":
    """The figures `SO_FAR` of what a run committed before a step; at its last step those of `RollingRun.figures`.

    Shares are ``None`` where nothing was there to be shared: no hour has passed, or no traffic came.
    """
    plan, problem = run.plan, compile_problem(run.days.span)
    span = run.days.span
    placed = plan.start >= 0
    finish = plan.start + plan.duration
    worked = np.where(placed, plan.size * (np.minimum(finish, step) - np.minimum(plan.start, step)), 0)
    milli = [problem.option_milli[row] for row in problem.option(plan.size).tolist()]
    value = sum(m * amount for m, amount in zip(milli, worked.tolist(), strict=True)) * 10**6
    served, demand = plan.served[:, :step], plan.demand[:, :step]
    unmet = (demand - served).sum(axis=1)
    penalty = sum(cost * amount for cost, amount in zip(problem.cost_units, unmet.tolist(), strict=True))
    available, wanted = span.cluster.n_available * step, int(demand.sum())
    batch, came = int(worked.sum()), int(served.sum())
    arrived = np.array([span.steps_of(job.earliest_hour) < step for job in span.batch], bool)
    waiting = arrived.reshape(plan.start.shape) & ~(placed & (plan.start < step))
    fits = np.array([job.name not in plan.set_aside for job in span.batch], bool)
    return {
        "utilization": (batch + came) / available if available else None,
        "held": (batch + int(plan.held[:, :step].sum())) / available if available else None,
        "value": problem.hours(value),
        "penalty": problem.hours(penalty),
        "objective": problem.hours(value - penalty),
        "coverage": came / wanted if wanted else None,
        "shortfall_gpu_hours": int(unmet.sum()) * span.horizon.step_hours,
        "jobs_finished": int((placed & (finish <= step)).sum()),
        "jobs_waiting": int((waiting & fits.reshape(waiting.shape)).sum()),
    }


def describe_moment(run: "RollingRun", number: int) -> str:
    """Say what the page of a moment shows, with its numbers."""
    promise, days = run.promises[number], run.days
    found = so_far(run, promise.step)
    done = "nothing is committed yet"
    if found["utilization"] is not None:
        done = f"committed so far: utilization {100 * found['utilization']:.1f} %"
        if found["coverage"] is not None:
            done += f", coverage {100 * found['coverage']:.1f} %"
    hours = days.horizon * days.span.horizon.step_hours
    return (
        f"{gantt.safe_text(run.name)}: {run.policy} at {moment_words(days, promise.step)}, "
        f"plan {number + 1} of {len(run.promises)}; {done}; "
        f"{hours:g} {'hour is' if hours == 1 else 'hours are'} planned ahead."
    )


def _start(days: "Days") -> datetime | None:
    start = days.span.horizon.start
    return None if start is None else datetime.fromisoformat(start).replace(tzinfo=None)


def start_of(days: "Days") -> datetime | None:
    """Clock time at which the first day begins, where the scenario gives one."""
    start = days.span.horizon.start
    return None if start is None else datetime.fromisoformat(start).replace(tzinfo=None)
