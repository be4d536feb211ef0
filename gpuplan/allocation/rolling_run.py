"""What a rolling run has done: the committed days, and what every plan had promised of them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.allocation import figures as counting
from gpuplan.allocation.bound import upper_bound
from gpuplan.allocation.days import Days
from gpuplan.allocation.figures import MEANINGS, UNITS, Figures, percentile
from gpuplan.allocation.kernels import KNOWN
from gpuplan.allocation.plan import NOTHING, UNAVAILABLE, Plan, as_bits, shown
from gpuplan.allocation.policies import Assignment, Policy
from gpuplan.allocation.problem import Int64, Words, compile_problem
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    import pandas as pd

#: Unit and definition of what a run knows beyond the figures of a plan.
_DEFINED = {
    "jobs_waiting": (
        "jobs",
        "Jobs that have arrived and wait when the run ends, those set aside not counted.",
    ),
    "plans": ("plans", "Plans that were made."),
    "promise_utilization_error": (
        "points of available GPU-hours",
        "Mean over plans of |GPU-hours of batch work promised - come| / available GPU-hours, within the plan's "
        "horizon.",
    ),
    "promise_coverage_error": (
        "points of real-time demand",
        "Mean over plans of |traffic promised to be served - served| / demand, the larger of expected and real.",
    ),
    "promise_start_shift_p50_hours": (
        "hours",
        "Time between the first promised start of a job and its real one, in either direction: the sorted value at "
        "index min(n - 1, floor(0.5 x n)).",
    ),
    "promise_start_shift_p90_hours": ("hours", "The same at index min(n - 1, floor(0.9 x n))."),
    "churn": (
        "share of planned starts",
        "Starts that the next plan changes / starts promised to jobs that still wait.",
    ),
}

#: Figures of a plan that a run has as well (value is not decayed), and what it knows beyond.
ROLLING_UNITS = {
    **{name: unit for name, unit in UNITS.items() if name not in ("bound", "gap")},
    **{name: unit for name, (unit, _) in _DEFINED.items()},
}

#: What each of them is, as a sentence.
ROLLING_MEANINGS = {name: MEANINGS[name] if name in MEANINGS else _DEFINED[name][1] for name in ROLLING_UNITS}


@dataclass(frozen=True, slots=True, eq=False)
class Promise:
    """A plan of a run, and what it said of the steps to come (all steps counted from the first day).

    Attributes
    ----------
    step, steps
        Step of the plan, and how many of the steps it sees lie within the run.
    jobs : int64[N]
        The jobs that it knows: those that run (`n_running`), then those that wait.
    start, first_gpu, size, duration : int64[N]
        Where it puts them (-1: nowhere), on how many GPUs, and for how many steps it expects them there.
    hold : uint64[R, H, W]
        GPUs of each app, as bits.
    batch_steps, served_steps, unmet_steps
        GPU-steps of batch work, of expected demand served and not served that it promises within the run.
    """

    step: int
    steps: int
    jobs: Int64
    start: Int64
    first_gpu: Int64
    size: Int64
    duration: Int64
    n_running: int
    hold: Words
    batch_steps: int
    served_steps: int
    unmet_steps: int


class RollingRun:
    """Committed days of a policy (arrays are read-only).

    Attributes
    ----------
    days : Days
        What happened, and what was known of it.
    policy : str
    replan_steps : int
        Steps from one plan to the next.
    plan : Plan
        What was committed, as a plan of the whole span: jobs with the hours that they really took.
    promises : tuple of Promise
        The plans, in order.
    seconds : float
        Wall-clock time (not part of the fingerprint).
    """

    def __init__(
        self,
        days: Days,
        policy: Policy,
        replan_steps: int,
        happened: Assignment,
        promises: Sequence[Promise],
        seconds: float,
    ) -> None:
        self.days = days
        self.policy = policy.name
        self.replan_steps = replan_steps
        self.promises = tuple(promises)
        self.seconds = seconds
        # what moves from plan to plan is no reservation any more: it is drawn and counted as what is held
        self._reservation = policy.reservation
        self.plan = Plan(compile_problem(days.span), policy, happened, seconds)

    @property
    def name(self) -> str:
        """The name of the days."""
        return self.days.span.name

    @cached_property
    def figures(self) -> Figures:
        """The figures by name (units in `ROLLING_UNITS`); value is not decayed."""
        plan = self.plan
        problem = compile_problem(self.days.span)
        found = counting.figures(problem, plan.start, plan.size, plan.held, self._swaps(), 0.0)
        steps = self.days.steps
        arrived = [self.days.span.steps_of(job.earliest_hour) < steps for job in self.days.span.batch]
        waiting = (plan.start < 0) & np.array(arrived, bool).reshape(plan.start.shape)
        shifts = self.start_shifts
        table = self._promised
        found |= {
            "jobs_waiting": int(waiting.sum()) - len(plan.set_aside),
            "plans": len(self.promises),
            "promise_utilization_error": _mean(abs(table[:, 0] - table[:, 1]) / np.maximum(1, table[:, 4])),
            "promise_coverage_error": _mean(abs(table[:, 2] - table[:, 3]) / np.maximum(1, table[:, 5])),
            "promise_start_shift_p50_hours": percentile(shifts, 0.5),
            "promise_start_shift_p90_hours": percentile(shifts, 0.9),
            "churn": self._churn(),
        }
        return {name: found[name] for name in ROLLING_UNITS if name in found}

    @cached_property
    def hindsight_bound(self) -> float:
        """No plan of these days has a larger objective, even if it had known everything beforehand."""
        return upper_bound(self.days.span)

    @cached_property
    def start_shifts(self) -> list[float]:
        """Hours between the first promised start of each job and its real one, in either direction."""
        hours = self.days.span.horizon.step_hours
        first: dict[int, int] = {}
        for promise in self.promises:
            waits = slice(promise.n_running, None)
            for j, start in zip(promise.jobs[waits].tolist(), promise.start[waits].tolist(), strict=True):
                if start >= 0:
                    first.setdefault(j, start)
        real = self.plan.start.tolist()
        return [abs(real[j] - start) * hours for j, start in sorted(first.items()) if real[j] >= 0]

    @cached_property
    def _promised(self) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
        """A row per plan: batch GPU-steps promised and come, demand served promised and come, capacity, demand."""
        plan, n = self.plan, self.days.steps
        busy = np.zeros(n + 1, np.int64)
        placed = plan.start >= 0
        np.add.at(busy, plan.start[placed], plan.size[placed])
        np.add.at(busy, plan.end[placed], -plan.size[placed])
        batch = np.concatenate([[0], busy[:n].cumsum().cumsum()])
        served = np.concatenate([[0], plan.served.sum(axis=0).cumsum()])
        demand = np.concatenate([[0], plan.demand.sum(axis=0).cumsum()])
        available = self.days.span.cluster.n_available
        rows = []
        for promise in self.promises:
            a, b = promise.step, promise.step + promise.steps
            come = (batch[b] - batch[a], served[b] - served[a])
            said = (promise.batch_steps, promise.served_steps)
            wanted = max(promise.served_steps + promise.unmet_steps, int(demand[b] - demand[a]))
            rows.append((said[0], come[0], said[1], come[1], available * promise.steps, wanted))
        return np.array(rows, float).reshape(-1, 6)

    def _churn(self) -> float:
        """Share of starts, promised of jobs that still wait, that the next plan changes."""
        promised = np.full(len(self.days.span.batch), -2, np.int64)
        common = changed = 0
        for promise in self.promises:
            jobs, start = promise.jobs[promise.n_running :], promise.start[promise.n_running :]
            before = promised[jobs]
            # a start that could not be kept because the step is over has changed as well
            common += int((before != -2).sum())
            changed += int(((before != -2) & (before != start)).sum())
            promised[:] = -2
            promised[jobs] = start
        return changed / common if common else 0.0

    def _swaps(self) -> int:
        """GPUs acquired by apps from step to step, wherever the cap would count."""
        hold, problem = self.plan._hold, compile_problem(self.days.span)
        if not hold.size:
            return 0
        count = int(np.bitwise_count(hold[:, 1:] & ~hold[:, :-1]).sum())
        known = problem.apps[:, KNOWN] == 1
        return count + int(np.bitwise_count((hold[:, 0] & ~problem.held)[known]).sum())

    def grid_of(self, promise: Promise) -> "np.ndarray[tuple[int, int], np.dtype[np.int32]]":
        """Who holds each GPU in each step of a plan of the run, int32[G, H], as in `Plan.grid`.

        Column 0 is the plan's own step; jobs and apps are numbered as in the span.
        """
        cluster, n_jobs = self.days.span.cluster, len(self.days.span.batch)
        grid = np.full((cluster.gpus, self.days.horizon), NOTHING, np.int32)
        grid[list(cluster.unavailable)] = UNAVAILABLE
        rows = zip(
            promise.jobs, promise.start, promise.first_gpu, promise.size, promise.duration, strict=True
        )
        for j, start, first, size, duration in rows:
            if start >= 0:
                at = start - promise.step
                grid[first : first + size, at : at + duration] = j
        for r, words in enumerate(promise.hold):
            grid[as_bits(words, cluster.gpus).T] = n_jobs + r
        return grid

    def check(self) -> list[str]:
        """Rules that the committed days break, a sentence each, found by code that shares nothing with the kernels."""
        from gpuplan.allocation.check import violations

        span, plan = self.days.span, self.plan
        apps = tuple(replace(app, swap_budget=None) for app in span.realtime)
        if self._reservation:  # it is sized anew for every day: caps and minimums do not apply to it
            apps = tuple(replace(app, max_swap=None, min_gpus=0, max_gpus=None, held=None) for app in apps)
        span = replace(span, realtime=apps)
        found = violations(span, plan.start, plan.first_gpu, plan.grid, False, plan.size)
        return found if self._reservation else found + self._budgets()

    def _budgets(self) -> list[str]:
        """Swap budgets that are exceeded in some window as long as the horizon."""
        found = []
        n_jobs = len(self.days.span.batch)
        for r, app in enumerate(self.days.span.realtime):
            if app.swap_budget is None:
                continue
            mine = self.plan.grid == n_jobs + r
            new = mine.copy()
            new[:, 1:] &= ~mine[:, :-1]
            if app.held is None:
                new[:, 0] = False
            else:
                new[list(app.held), 0] = False
            total = np.concatenate([[0], new.sum(axis=0).cumsum()])
            for step in range(self.days.steps):
                end = min(self.days.steps, step + self.days.horizon)
                if total[end] - total[step] > app.swap_budget:
                    found.append(
                        f"{app.name} acquires {total[end] - total[step]} GPUs in steps {step} to {end - 1}, "
                        f"more than its swap budget of {app.swap_budget}."
                    )
                    break
        return found

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the days and of what was committed: equal runs, equal text."""
        days = self.days
        digest = hashlib.sha256(f"{self.plan.fingerprint}\n{self.replan_steps}\n{days.horizon}\n".encode())
        for array in (days.forecast, days.announced, days.known_from):
            little = array.astype(array.dtype.newbyteorder("<"), copy=False)
            digest.update(np.ascontiguousarray(little).tobytes())
        return digest.hexdigest()

    # ------------------------------------------------------------------ tables

    def to_frame(self) -> "pd.DataFrame":
        """A row per GPU and unbroken stretch: ``job, kind, gpu, start_step, end_step`` (end exclusive)."""
        return self.plan.to_frame()

    def jobs_frame(self) -> "pd.DataFrame":
        """A row per job: where and when it ran, how long it waited, whether it finished."""
        return self.plan.jobs_frame()

    def hours_frame(self) -> "pd.DataFrame":
        """A row per hour of the day: ``hour, demand_gpu_hours, served_gpu_hours, coverage`` over all days and apps.

        Coverage is missing where nothing was wanted.
        """
        import pandas as pd

        hours = self.days.span.horizon.step_hours
        hour = (np.arange(self.days.steps) * hours % 24).astype(np.int64)
        demand = np.bincount(hour, self.plan.demand.sum(axis=0), 24) * hours
        served = np.bincount(hour, self.plan.served.sum(axis=0), 24) * hours
        with np.errstate(invalid="ignore"):
            coverage = np.where(demand > 0, served / demand, np.nan)
        columns = {"demand_gpu_hours": demand, "served_gpu_hours": served, "coverage": coverage}
        return pd.DataFrame({"hour": np.arange(24), **columns})

    def promises_frame(self) -> "pd.DataFrame":
        """A row per plan: what it promised of its horizon and what came (GPU-hours within the run)."""
        import pandas as pd

        hours = self.days.span.horizon.step_hours
        names = ("batch_promised", "batch_come", "served_promised", "served_come")
        table = self._promised[:, :4] * hours
        columns = {f"{name}_gpu_hours": table[:, i] for i, name in enumerate(names)}
        at = [promise.step * hours for promise in self.promises]
        seen = [promise.steps * hours for promise in self.promises]
        return pd.DataFrame({"hour": at, "horizon_hours": seen, **columns})

    def __repr__(self) -> str:
        found = self.figures
        return (
            f"<RollingRun {self.policy} of {shorten(self.name)!r}: {found['plans']} plans, "
            f"utilization {found['utilization']:.1%}, objective {found['objective']:.2f}, "
            f"coverage {found['coverage']:.1%}, {found['jobs_finished']} jobs finished>"
        )

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f'<tr><th scope="row" style="text-align:left">{name.replace("_", " ")}</th>'
            f'<td style="text-align:right">{_shown(name, value)}</td>'
            f'<td style="text-align:left">{ROLLING_UNITS[name]}</td></tr>'
            for name, value in self.figures.items()
        )
        caption = html.escape(f"{self.policy}: {shorten(self.name)}")
        return f"<table><caption>{caption}</caption><tbody>{rows}</tbody></table>"


def _shown(name: str, value: float | int | None) -> str:
    if name in UNITS:
        return shown(name, value)
    if value is None:
        return "none"
    unit = ROLLING_UNITS[name]
    if unit.startswith(("share", "points")):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    return float(values.mean()) if values.size else 0.0
