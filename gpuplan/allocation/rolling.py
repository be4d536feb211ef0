"""The day as it unfolds: plan the horizon, commit the current step, meet what really comes, plan again."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic_core import PydanticCustomError

from gpuplan.allocation.days import DAY_S, Days, Errors, repeated, unfold
from gpuplan.allocation.effort import effort_from
from gpuplan.allocation.kernels import (
    CAP,
    CHOICES,
    DURATION,
    EARLIEST,
    FIRST,
    KNOWN,
    LATEST,
    LEFT,
    MINIMUM,
    N_HELD,
    O_DURATION,
    O_LATEST,
    O_PRIORITY,
    O_SIZE,
    OPTION,
    PRIORITY,
    SIZE,
    START,
)
from gpuplan.allocation.model import AllocationScenario, BatchJob
from gpuplan.allocation.plan import policy_named, ready
from gpuplan.allocation.policies import Assignment, Policy
from gpuplan.allocation.policies.base import Effort
from gpuplan.allocation.policies.search import iterations_for
from gpuplan.allocation.problem import (
    UNLIMITED,
    Int64,
    Problem,
    Words,
    as_int,
    compile_problem,
    span_words,
    weights,
)
from gpuplan.allocation.rolling_run import Promise, RollingRun
from gpuplan.inputs.errors import InputError, Mistake
from gpuplan.inputs.fields import Hours

#: Days of a run where nothing else is said.
DAYS = 7

_TIME = Hours(0, 1e6)

__all__ = ["Days", "Errors", "RollingRun", "repeated", "roll", "unfold"]


def roll(
    scenario: Any,
    policy: str | Policy = "aware",
    *,
    days: int | None = None,
    horizon_hours: float | str | None = None,
    replan_every: float | str | None = None,
    errors: Errors | Mapping[str, float] | None = None,
    seed: int | np.random.Generator = 0,
    **effort: Any,
) -> RollingRun:
    """Run a policy over days: at every re-plan it plans the horizon and only the next steps are committed.

    What runs is inherited and pinned, never interrupted; apps keep to their swap cap from step to step. A job that
    runs longer than announced keeps its GPUs, one that ends earlier gives them back with the step. A reservation is
    sized anew from the highest forecast of the coming day. Jobs may run over the end of a horizon.

    Parameters
    ----------
    scenario
        A day that comes again and again, as an `AllocationScenario` or the mapping of a file; or the `Days` themselves
        (``days``, ``horizon_hours`` and ``errors`` are then theirs and must be left out).
    policy
        One of `gpuplan.POLICIES`, or a `gpuplan.allocation.policies.Policy` of one's own.
    days
        How many; 7 where it is left out.
    horizon_hours
        How far plans see, in hours or as text with a unit; the scenario's horizon where it is left out.
    replan_every
        Time between two plans, in hours or as text with a unit (``"30min"``), a whole number of steps; one step where
        it is left out.
    errors
        How wrong forecasts and announcements are.
    seed
        Of the errors.
    **effort
        As in `gpuplan.plan`; ``iterations`` of ``search`` is by default a few milliseconds' worth for every plan.

    Raises
    ------
    InputError
        With every mistake.
    """
    chosen = policy_named(policy)
    allowed = effort_from(effort)
    if isinstance(scenario, Days):
        world = scenario
        _require_nothing(world, days=days, horizon_hours=horizon_hours, errors=errors)
    else:
        world = _world(scenario, DAYS if days is None else days, horizon_hours, errors, seed)
    every = _replan_steps(world, replan_every)
    counted = chosen.name == "search" and not {"iterations", "budget_ms"} & effort.keys()
    return _Run(world, chosen, allowed, every, counted).all_days()


def _require_nothing(world: Days, **given: Any) -> None:
    rule = "must be left out: the days that are given have their own"
    found = [Mistake(name, rule, value) for name, value in given.items() if value is not None]
    if found:
        raise InputError(world.span.name, found)


def _world(
    scenario: Any,
    days: int,
    horizon_hours: float | str | None,
    errors: Errors | Mapping[str, float] | None,
    seed: int | np.random.Generator,
) -> Days:
    day = ready(scenario)
    horizon = day.horizon.steps
    if horizon_hours is not None:
        horizon = _steps(day, "horizon_hours", horizon_hours)
    ahead = max(horizon, DAY_S // day.horizon.step_s)
    span = repeated(day, days, ahead)
    steps = span.horizon.steps - ahead
    return unfold(span, steps=steps, horizon=horizon, errors=_errors(day, errors), seed=seed)


def _errors(day: AllocationScenario, errors: Errors | Mapping[str, float] | None) -> Errors:
    if errors is None:
        return Errors()
    if isinstance(errors, Errors):
        return errors
    known = Errors.__dataclass_fields__
    unknown = [
        Mistake(f"errors.{name}", "unknown error of a forecast") for name in errors if name not in known
    ]
    if unknown:
        raise InputError(day.name, unknown)
    return Errors(**errors)


def _steps(scenario: AllocationScenario, name: str, hours: Any) -> int:
    """A time that must be a whole number of steps."""
    if isinstance(hours, str):
        try:
            hours = _TIME.read(hours)
        except PydanticCustomError as error:
            raise InputError(scenario.name, [Mistake(name, error.message(), hours)]) from None
    step_hours = scenario.horizon.step_hours
    number = isinstance(hours, (int, float, np.integer, np.floating)) and not isinstance(hours, bool)
    steps = hours / step_hours if number else 0.0
    if not number or not 0.5 <= steps < 1e6 or abs(steps - round(steps)) > 1e-9:
        rule = f"must be a whole number of steps of {step_hours * 60:g} min, at least one"
        raise InputError(scenario.name, [Mistake(name, rule, hours)])
    return round(steps)


def _replan_steps(world: Days, replan_every: float | str | None) -> int:
    every = 1 if replan_every is None else _steps(world.span, "replan_every", replan_every)
    if every > world.horizon:
        rule = f"must not be longer than the horizon of {world.horizon * world.span.horizon.step_hours:g} h"
        raise InputError(world.span.name, [Mistake("replan_every", rule, replan_every)])
    return every


class _Run:
    """What is known at a step, and what has happened by then."""

    def __init__(self, world: Days, policy: Policy, effort: Effort, every: int, counted: bool) -> None:
        self.world, self.policy, self.effort = world, policy, effort
        self.every, self.counted = every, counted
        self.whole = whole = compile_problem(world.span)
        n_jobs, n_apps, words = len(whole.jobs), len(whole.apps), whole.available.size
        self.steps, self.horizon = world.steps, world.horizon
        owner = np.repeat(np.arange(n_jobs), np.diff(whole.first_option))
        hours = np.array([job.hours_on(n) for job in world.span.batch for n in job.sizes], float)
        announced = hours * world.announced[owner] * 3600 / world.span.horizon.step_s
        self.announced = np.maximum(1, np.ceil(announced - 1e-9 * np.maximum(1.0, announced))).astype(
            np.int64
        )
        self.milli = np.array(whole.option_milli, dtype=object)
        self.weight_sum = np.array(
            [0, *weights(self.horizon, world.span.horizon.step_hours, world.objective.half_life_hours)],
            np.int64,
        ).cumsum()
        self.start = np.where(whole.running >= 0, 0, -1)
        self.first = whole.running.copy()
        self.row = whole.option(whole.size)  # of `Problem.options`: the size that is or would be taken
        self.hold = np.zeros((n_apps, self.steps, words), np.uint64)
        self.waits = whole.movable.copy()  # not started, in order of arrival
        self.arrival = whole.earliest
        self.running = np.flatnonzero(whole.running >= 0).tolist()
        self.block: dict[int, Words] = {}
        for j in self.running:
            self.block[j] = span_words(int(self.first[j]), int(whole.size[j]), words)
        self.ends = np.where(whole.running >= 0, whole.options[self.row, O_DURATION], 0)
        self.expected_ends = np.where(whole.running >= 0, self.announced[self.row], 0)
        self.promises: list[Promise] = []
        self.template = replace(world.span, objective=world.objective, batch=(), realtime=())

    def all_days(self) -> RollingRun:
        began = time.perf_counter()
        for step in range(0, self.steps, self.every):
            problem, jobs = self.moment(step)
            effort = self.effort
            if self.counted:
                effort = replace(effort, iterations=iterations_for(problem) if problem.movable.size else 0)
            assignment = self.policy.run(problem, effort)
            self.promises.append(self.promise(step, jobs, problem, assignment))
            self.commit(step, jobs, problem, assignment)
        seconds = time.perf_counter() - began
        size = self.whole.options[self.row, O_SIZE]
        happened = Assignment(self.start, self.first, size, self.hold)
        return RollingRun(self.world, self.policy, self.every, happened, tuple(self.promises), seconds)

    # ------------------------------------------------------------------ what is known

    def moment(self, step: int) -> tuple[Problem, Int64]:
        """The problem of the plan at a step, and which jobs its rows are: those that run, then those that wait."""
        whole, horizon = self.whole, self.horizon
        self.running = [j for j in self.running if self.ends[j] > step]
        running = np.array(self.running, np.int64)
        waits = self.waits
        waits = waits[(self.world.known_from[waits] <= step) & (self.arrival[waits] < step + horizon)]
        jobs = np.concatenate([running, waits])
        # a job that runs longer than announced is expected to end any moment
        left = np.maximum(1, self.expected_ends[running] - step)
        options, rows, first_option = self.options(running, waits, left)
        table = self.table(running, waits, options, first_option, step)
        base = np.repeat(whole.available[None, :], horizon, axis=0)
        for j, steps in zip(self.running, left.tolist(), strict=True):
            base[:steps] &= ~self.block[j]
        demand = np.ascontiguousarray(self.world.forecast[:, step : step + horizon])
        if self.policy.reservation:
            demand = np.repeat(self.peak(step)[:, None], horizon, axis=1)
        problem = Problem(
            scenario=self.template if self.policy.live else self.scenario_at(step, jobs, left),
            gpus=whole.gpus,
            steps=horizon,
            available=whole.available,
            base=base,
            jobs=table,
            allowed=whole.allowed,
            weight_sum=self.weight_sum,
            demand=demand,
            apps=self.apps(step),
            held=whole.held if step == 0 else self.hold[:, step - 1].copy(),
            options=options,
            first_option=first_option,
            option_milli=tuple(self.milli[rows].tolist()),
            cost_units=whole.cost_units,
            set_aside={},
            movable=np.arange(running.size, jobs.size),
            milli=whole.milli[jobs],
        )
        return problem, jobs

    def options(self, running: Int64, waits: Int64, left: Int64) -> tuple[Int64, Int64, Int64]:
        """Rows of sizes for these jobs; which rows of the whole they are; where each job's begin."""
        whole = self.whole
        counts = np.diff(whole.first_option)[waits]
        offsets = np.concatenate(
            [np.zeros(1, np.int64), np.cumsum(np.concatenate([np.ones_like(running), counts]))]
        )
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = np.concatenate([self.row[running], np.repeat(whole.first_option[waits], counts) + within])
        options = whole.options[rows]
        n = running.size
        options[:n, O_DURATION] = left
        options[n:, O_DURATION] = self.announced[rows[n:]]
        options[:, O_LATEST] = np.where(whole.options[rows, O_LATEST] < 0, -1, self.horizon - 1)
        return options, rows, offsets

    def table(self, running: Int64, waits: Int64, options: Int64, first_option: Int64, step: int) -> Int64:
        """The table of jobs as the kernels take it."""
        n = running.size
        at = first_option[:-1].copy()
        at[n:] += self.row[waits] - self.whole.first_option[waits]
        table = np.zeros((at.size, 9), np.int64)
        table[:, SIZE], table[:, DURATION] = options[at, O_SIZE], options[at, O_DURATION]
        table[:, PRIORITY], table[:, LATEST] = options[at, O_PRIORITY], options[at, O_LATEST]
        table[n:, EARLIEST] = np.maximum(0, self.arrival[waits] - step)
        table[n:, START] = table[n:, FIRST] = -1
        table[:n, FIRST] = self.first[running]
        table[:, OPTION], table[:, CHOICES] = first_option[:-1], np.diff(first_option)
        return table

    def apps(self, step: int) -> Int64:
        """The table of apps: what they hold is known after the first step, budgets count over a horizon."""
        apps = self.whole.apps.copy()
        if step > 0:
            apps[:, KNOWN] = 1
            apps[:, N_HELD] = np.bitwise_count(self.hold[:, step - 1]).sum(axis=1)
        budgeted = np.flatnonzero(apps[:, LEFT] < UNLIMITED)
        for r in budgeted.tolist():
            # in any window as long as the horizon; what was acquired before it is free again
            since = max(0, step - self.horizon + 1)
            apps[r, LEFT] = max(0, apps[r, LEFT] - self.acquired(r, since, step))
        return apps

    def acquired(self, r: int, first: int, after: int) -> int:
        """GPUs that an app acquired before the steps ``first .. after - 1``, wherever the cap counts."""
        count = 0
        if after > first:
            before = self.hold[r, first - 1 : after - 1] if first else self.hold[r, : after - 1]
            now = self.hold[r, first:after] if first else self.hold[r, 1:after]
            count = int(np.bitwise_count(now & ~before).sum())
            if first == 0 and self.whole.apps[r, KNOWN]:
                count += int(np.bitwise_count(self.hold[r, 0] & ~self.whole.held[r]).sum())
        return count

    def peak(self, step: int) -> Int64:
        """The highest forecast of the coming day, however short the horizon is."""
        ahead = self.world.forecast[:, step : step + max(self.world.steps_per_day, 1)]
        peak: Int64 = ahead.max(axis=1, initial=0)
        return peak

    def scenario_at(self, step: int, jobs: Int64, left: Int64) -> AllocationScenario:
        """The moment as a scenario, for policies that want more than arrays."""
        span, hours = self.world.span, self.world.span.horizon.step_hours
        batch: list[BatchJob] = []
        for i, j in enumerate(jobs.tolist()):
            job = span.batch[j]
            if i < left.size:
                size = int(self.whole.options[self.row[j], O_SIZE])
                job = replace(
                    job, gpus=size, max_gpus=None, hours=int(left[i]) * hours, running_on=int(self.first[j])
                )
            else:
                wait = max(0, int(self.arrival[j]) - step) * hours
                job = replace(job, hours=job.hours * float(self.world.announced[j]), earliest_hour=wait)
            batch.append(replace(job, deadline_hour=None))
        demand = self.world.forecast[:, step : step + self.horizon]
        table = self.apps(step)
        held = self.whole.held if step == 0 else self.hold[:, step - 1]
        apps = tuple(
            replace(
                app,
                demand=tuple(demand[r].tolist()),
                held=_numbers(held[r]) if table[r, KNOWN] else None,
                swap_budget=None if app.swap_budget is None else int(table[r, LEFT]),
            )
            for r, app in enumerate(span.realtime)
        )
        horizon = replace(span.horizon, steps=self.horizon, start=None)
        return replace(
            span, horizon=horizon, objective=self.world.objective, realtime=apps, batch=tuple(batch)
        )

    # ------------------------------------------------------------------ what happens

    def promise(self, step: int, jobs: Int64, problem: Problem, plan: Assignment) -> Promise:
        """What the plan says about the steps to come."""
        end = min(self.steps, step + self.horizon) - step
        rows = problem.option(plan.size)
        placed = plan.start >= 0
        ends = np.minimum(plan.start + problem.options[rows, O_DURATION], end)
        busy = int((plan.size * np.maximum(0, ends - plan.start))[placed].sum())
        held = np.bitwise_count(plan.hold[:, :end]).sum(axis=2, dtype=np.int64)
        expected = self.world.forecast[:, step : step + end]
        return Promise(
            step=step,
            steps=end,
            jobs=jobs,
            start=np.where(placed, plan.start + step, -1),
            first_gpu=plan.first_gpu,
            size=plan.size,
            duration=problem.options[rows, O_DURATION],
            n_running=jobs.size - problem.movable.size,
            hold=plan.hold,
            batch_steps=busy,
            served_steps=int(np.minimum(held, expected).sum()),
            unmet_steps=int(np.maximum(0, expected - held).sum()),
        )

    def commit(self, step: int, jobs: Int64, problem: Problem, plan: Assignment) -> None:
        """The next steps as planned, as far as what really runs leaves room."""
        n = jobs.size - problem.movable.size
        rows = problem.option(plan.size)
        soon = np.flatnonzero((plan.start >= 0) & (plan.start < self.every) & (np.arange(jobs.size) >= n))
        begun: list[int] = []
        for i in range(min(self.every, self.steps - step)):
            now = step + i
            busy = np.zeros(self.whole.available.size, np.uint64)
            for j in self.running:
                if self.ends[j] > now:
                    busy |= self.block[j]
            for k in soon[plan.start[soon] == i].tolist():
                j, size = int(jobs[k]), int(plan.size[k])
                block = span_words(int(plan.first_gpu[k]), size, busy.size)
                if (block & busy).any():
                    continue  # somebody runs longer than announced: it waits for the next plan
                busy |= block
                row = int(self.whole.first_option[j] + rows[k] - problem.first_option[k])
                self.start[j], self.first[j], self.row[j] = now, plan.first_gpu[k], row
                self.ends[j] = now + self.whole.options[row, O_DURATION]
                self.expected_ends[j] = now + self.announced[row]
                self.block[j] = block
                self.running.append(j)
                begun.append(j)
            for r in range(len(self.hold)):
                self.hold[r, now] = plan.hold[r, i]
                if i > 0:
                    self.hold[r, now] = self.within_rules(r, now, plan.hold[r, i] & ~busy, busy)
        if begun:
            self.waits = self.waits[~np.isin(self.waits, begun)]

    def within_rules(self, r: int, now: int, wanted: Words, busy: Words) -> Words:
        """GPUs of an app as planned a while ago, without more changes than its cap and never below its minimum."""
        cap = int(self.whole.apps[r, CAP])
        if self.policy.reservation:
            return wanted
        before, target = as_int(self.hold[r, now - 1]), as_int(wanted)
        gained = _lowest(target & ~before, cap)
        lost = before & ~target
        short = int(self.whole.apps[r, MINIMUM]) - (before & target).bit_count() - gained.bit_count()
        keep = max(0, lost.bit_count() - cap, short)
        held = (before & target) | gained | _lowest(lost & ~as_int(busy), keep)
        return np.frombuffer(held.to_bytes(8 * wanted.size, "little"), "<u8").astype(np.uint64)


def _lowest(bits: int, n: int) -> int:
    """The lowest ``n`` of some bits."""
    found = 0
    while bits and n > 0:
        bit = bits & -bits
        found |= bit
        bits ^= bit
        n -= 1
    return found


def _numbers(words: Words) -> tuple[int, ...]:
    bits = as_int(words)
    return tuple(gpu for gpu in range(bits.bit_length()) if bits >> gpu & 1)
