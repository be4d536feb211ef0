"""From a plan to a proven one: bound by starts alone, a grid at those starts, then both together."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any

import numpy as np

from gpuplan.allocation.bound import upper_bound
from gpuplan.allocation.exact import amounts as counting
from gpuplan.allocation.exact.amounts import Amounts
from gpuplan.allocation.exact.models import Choice, Times, chosen, hint, plan_of, times_model, with_places
from gpuplan.allocation.policies import search
from gpuplan.allocation.policies.base import Assignment, Effort, Progress, Proof
from gpuplan.allocation.problem import Problem
from gpuplan.inputs.errors import InputError, Mistake

#: Moves of the search that makes the plan to start from, in those of `search.iterations_for`.
SEARCHES = 25

#: Share of the time left for the starts, then for more search, then for a grid at given starts.
TIMES_SHARE, SEARCH_SHARE, GRID_SHARE = 0.4, 0.5, 0.5

#: Seeds among which the time for more search is divided: plans differ more between seeds than they gain with time.
SEEDS = 4

#: Choices of start and size up to which the solver is asked at all, and cells of a model (choices x GPUs)
#: up to which starts and places are solved together: the time would pass before the first answer.
MOST_CHOICES, MOST_CELLS = 60_000, 400_000

#: Seconds between two looks at whether somebody has asked the solver to stop.
HEARING_S = 0.1

MISSING = (
    'needs OR-Tools, which is not installed: pip install "gpuplan[exact]"; all other policies work without it'
)


class _Clock:
    """Time since the start, the best so far, and whether somebody has asked to stop."""

    def __init__(self, problem: Problem, effort: Effort, plan: Assignment) -> None:
        self.problem = problem
        self.began = time.perf_counter()
        self.limit = effort.time_limit_s
        self.listener = effort.report
        self.plan = plan
        self.units = counting.units_of(problem, plan)
        self.bound: int | None = None
        self.rounded = False
        self.stopped = False
        self.history: list[Progress] = []
        self.note()

    @property
    def left(self) -> float:
        return self.began + self.limit - time.perf_counter()

    @property
    def closed(self) -> bool:
        return self.bound is not None and self.units >= self.bound

    @property
    def over(self) -> bool:
        return self.stopped or self.closed or self.left <= 0

    def note(self) -> None:
        """Keep and report where things stand."""
        bound = None if self.bound is None else self.problem.hours(self.bound)
        seconds = time.perf_counter() - self.began
        progress = Progress(seconds, self.problem.hours(self.units), bound)
        self.history.append(progress)
        if self.listener is not None:
            try:
                self.listener(progress)
            except KeyboardInterrupt:
                self.stopped = True

    def offer(self, plan: Assignment) -> None:
        """Keep a plan that is better than the best."""
        units = counting.units_of(self.problem, plan)
        if units > self.units:
            self.plan, self.units = plan, units
            self.note()

    def lower(self, bound: int) -> None:
        """Keep a bound that is lower than the best."""
        if self.bound is None or bound < self.bound:
            self.bound = max(bound, self.units)
            self.note()


def solve(problem: Problem, effort: Effort) -> Assignment:
    """The best plan that can be found and proven within `Effort.time_limit_s`, with its `Proof`.

    Raises
    ------
    InputError
        Where OR-Tools is missing, or no plan keeps all rules.
    """
    start = search.run(
        problem, Effort(iterations=SEARCHES * search.iterations_for(problem), seed=effort.seed)
    )
    clock = _Clock(problem, effort, start)
    if effort.time_limit_s <= 0:
        sentence = "Nothing was proven: the time limit is 0, this is the plan of the search."
        return replace(start, proof=Proof(None, "none", sentence, tuple(clock.history)))
    try:
        import ortools.sat.python.cp_model  # noqa: F401
    except ImportError as error:
        raise InputError(problem.scenario.name, [Mistake("policy", f"exact {MISSING}")]) from error
    try:
        _prove(problem, effort, clock)
    except KeyboardInterrupt:
        clock.stopped = True
    return replace(clock.plan, worth=0, proof=_proof(problem, clock))


def _prove(problem: Problem, effort: Effort, clock: _Clock) -> None:
    clock.lower(counting.units_above(problem, upper_bound(problem.scenario)))
    if len(counting.choices(problem)) > MOST_CHOICES:
        _search_on(problem, effort, clock, clock.left)
        return
    amounts = counting.amounts(problem)
    clock.rounded = not amounts.exact
    found, known = _prove_starts(amounts, effort, clock)
    if not known and not clock.over:
        # a large day: the search finds better plans faster than the solver does
        _search_on(problem, effort, clock, SEARCH_SHARE * clock.left)
    if found and not clock.over:
        fixed = times_model(amounts, found)
        for literal in fixed.starts.values():
            fixed.model.add(literal == 1)
        with_places(fixed, problem)
        _run(fixed, effort, clock, GRID_SHARE * clock.left, None, _offering(fixed, problem, clock))
    if clock.over:
        return
    whole = times_model(amounts)
    if len(whole.starts) * problem.gpus > MOST_CELLS:
        if not known:
            _search_on(problem, effort, clock, clock.left)
        return
    with_places(whole, problem)
    hint(whole, problem, clock.plan)
    if amounts.exact:
        if clock.bound is not None:
            whole.model.add(whole.objective <= (clock.bound - problem.inherited) // amounts.unit)
        whole.model.add(whole.objective >= (clock.units - problem.inherited) // amounts.unit)
    lower = _lowering(amounts, clock)
    _run(whole, effort, clock, clock.left, lower, _offering(whole, problem, clock))


def _prove_starts(amounts: Amounts, effort: Effort, clock: _Clock) -> tuple[set[Choice], bool]:
    """Starts worth more than the best plan (none: the solver found no such), and whether they are optimal."""
    problem = amounts.problem
    relaxed = times_model(amounts)
    hint(relaxed, problem, clock.plan)
    found: set[Choice] = set()

    def remember(value: Callable[[Any], int]) -> None:
        found.clear()
        if amounts.exact_units(value(relaxed.objective)) > clock.units:
            found.update(chosen(relaxed, value))

    status = _run(relaxed, effort, clock, TIMES_SHARE * clock.left, _lowering(amounts, clock), remember)
    if status == "INFEASIBLE":
        raise InputError(problem.scenario.name, [Mistake("", _conflict(problem))])
    return found, status == "OPTIMAL"


def _search_on(problem: Problem, effort: Effort, clock: _Clock, seconds: float) -> None:
    """More search, from other seeds."""
    seeds = np.random.SeedSequence(_seed(effort)).spawn(SEEDS)
    end = time.perf_counter() + seconds
    for number, seed in enumerate(seeds):
        left = end - time.perf_counter()
        if clock.over or left <= 0:
            return
        budget_ms = 1000 * left / (SEEDS - number)
        clock.offer(search.run(problem, Effort(budget_ms=budget_ms, seed=np.random.default_rng(seed))))


def _seed(effort: Effort) -> int:
    """The seed as a number; of a generator that `search` draws from, nothing more is taken."""
    return 0 if isinstance(effort.seed, np.random.Generator) else int(effort.seed)


def _lowering(amounts: Amounts, clock: _Clock) -> Callable[[float], None]:
    """Pass bounds on: an optimum comes as a whole number, what is bounded only as a float."""
    return lambda bound: clock.lower(
        amounts.exact_units(bound) if isinstance(bound, int) else amounts.bound_units(bound)
    )


def _offering(times: Times, problem: Problem, clock: _Clock) -> Callable[[Callable[[Any], int]], None]:
    return lambda value: clock.offer(plan_of(times, problem, value))


def _run(
    times: Times,
    effort: Effort,
    clock: _Clock,
    seconds: float,
    lower: Callable[[float], None] | None,
    on_solution: Callable[[Callable[[Any], int]], None],
) -> str:
    """Solve a model; its status. Solutions and bounds are passed on as they come."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    # its own handler may wait for itself for ever, and leaves the next Ctrl-C to end the process
    solver.parameters.catch_sigint_signal = False
    solver.parameters.absolute_gap_limit = 0.0  # it would be taken of floats
    solver.parameters.max_time_in_seconds = max(0.05, seconds)
    solver.parameters.num_workers = min(8, os.cpu_count() or 1)
    solver.parameters.random_seed = _seed(effort) % (1 << 31)

    class Listener(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            on_solution(self.value)
            if clock.stopped or clock.closed:
                self.stop_search()

    def new_bound(bound: float) -> None:
        if lower is not None:
            lower(bound)
        if clock.stopped or clock.closed:
            solver.stop_search()

    solver.best_bound_callback = new_bound
    name = _in_a_thread(solver, times.model, Listener(), clock)
    if name == "MODEL_INVALID":
        raise RuntimeError(f"the solver refuses the model: {times.model.validate()}")
    if lower is not None and name in ("OPTIMAL", "FEASIBLE"):
        lower(solver.value(times.objective) if name == "OPTIMAL" else solver.best_objective_bound)
    return name


def _in_a_thread(solver: Any, model: Any, listener: Any, clock: _Clock) -> str:
    """Solve beside the thread of the caller, which is the one that hears of Ctrl-C."""
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(solver.solve, model, listener)
        while not answer.done():
            try:
                wait([answer], timeout=HEARING_S)
            except KeyboardInterrupt:
                clock.stopped = True
            if clock.stopped or clock.closed:
                solver.stop_search()  # said again and again: it is not heard before the search has begun
        return str(solver.status_name(answer.result()))


def _proof(problem: Problem, clock: _Clock) -> Proof:
    history = tuple(clock.history)
    if clock.bound is None:
        return Proof(None, "none", f"Nothing was proven{_why(clock)}.", history)
    bound = problem.hours(clock.bound)
    if clock.closed:
        best = problem.hours(clock.units)
        return Proof(
            best, "optimal", f"Proven optimal: no legal plan is worth more than {best:,.2f}.", history
        )
    gap = (clock.bound - clock.units) / max(1, abs(clock.bound))
    sentence = f"At most {gap:.2%} from the best possible: no legal plan is worth more than {bound:,.2f}{_why(clock)}."
    if clock.rounded:
        sentence += (
            " Amounts were too large for the solver and were rounded upwards, so that the bound still holds."
        )
    return Proof(bound, "bounded", sentence, history)


def _why(clock: _Clock) -> str:
    if clock.stopped:
        return " (stopped before the proof was complete)"
    if clock.left <= 0.5:
        return f" (the time limit of {clock.limit:g} s was reached)"
    return ""


def _conflict(problem: Problem) -> str:
    """Which rules leave no plan at all."""
    from gpuplan.allocation.consistency import conflicts

    named = [f"{'.'.join(map(str, path))}: {rule}" for path, rule, _ in conflicts(problem.scenario)]
    if named:
        return "has no legal plan: " + "; ".join(named)
    return (
        "has no legal plan: what apps must hold (min_gpus, held less max_swap, swap_budget), running work "
        "and unavailable GPUs leave too few GPUs in some step"
    )
