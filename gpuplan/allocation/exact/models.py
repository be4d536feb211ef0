"""The two models that the solver is given: when jobs run, and where as well.

The first is a relaxation of the grid: one resource of so many GPUs per step, an optional start per
job and size, and holdings of apps as whole numbers with bounded differences. What is optimal in it
bounds every grid. The second has every cell: the first GPU of every block and the GPUs of every
app, with swaps counted GPU by GPU.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gpuplan.allocation.exact.amounts import Amounts, choices
from gpuplan.allocation.kernels import (
    CAP,
    FIRST,
    KNOWN,
    LEFT,
    MAXIMUM,
    MINIMUM,
    N_HELD,
    O_DURATION,
    O_SIZE,
    START,
)
from gpuplan.allocation.policies.base import Assignment
from gpuplan.allocation.problem import Problem, as_int, side_by_side

#: (job, row of `Problem.options`, start)
Choice = tuple[int, int, int]


@dataclass
class Times:
    """The model of starts and holdings."""

    model: Any
    starts: dict[Choice, Any]
    holds: list[list[Any]]
    unmet: list[list[Any]]
    objective: Any
    places: dict[tuple[int, int, int, int], Any] = field(default_factory=dict)
    cells: dict[tuple[int, int, int], Any] = field(default_factory=dict)


def times_model(amounts: Amounts, only: set[Choice] | None = None) -> Times:
    """When jobs run and how many GPUs apps hold, to be maximised.

    Parameters
    ----------
    amounts
        The problem with its objective.
    only
        The choices that are left, where not all are.
    """
    from ortools.sat.python import cp_model

    problem = amounts.problem
    model = cp_model.CpModel()
    starts: dict[Choice, Any] = {}
    by_job: dict[int, dict[tuple[int, int], Any]] = defaultdict(dict)
    use = [_Sum() for _ in range(problem.steps)]
    worth = _Sum()
    for choice in choices(problem):
        if only is not None and choice not in only:
            continue
        j, option, start = choice
        literal = model.new_bool_var(f"job {j} size {option} start {start}")
        starts[choice] = literal
        by_job[j][option, start] = literal
        worth.add(literal, amounts.gain(option, start))
        size = int(problem.options[option, O_SIZE])
        for t in range(start, _end(problem, option, start)):
            use[t].add(literal, size)
    for literals in by_job.values():
        model.add_at_most_one(literals.values())
    holds, unmet = _levels(model, problem)
    for r, row in enumerate(unmet):
        for missing in row:
            worth.add(missing, -amounts.cost(r))
    free = np.bitwise_count(problem.base).sum(axis=1).tolist()
    for t, used in enumerate(use):
        for row in holds:
            used.add(row[t], 1)
        model.add(used.expression() <= int(free[t]))
    _classes(model, problem, starts)
    if only is None:
        _identical(model, problem, by_job)
    objective = worth.expression()
    model.maximize(objective)
    return Times(model, starts, holds, unmet, objective)


class _Sum:
    """A weighted sum of variables that grows: one expression at the end instead of one per term."""

    def __init__(self) -> None:
        self.variables: list[Any] = []
        self.weights: list[int] = []

    def add(self, variable: Any, weight: int) -> None:
        """Add a term."""
        self.variables.append(variable)
        self.weights.append(weight)

    def expression(self) -> Any:
        """The sum as the solver takes it."""
        from ortools.sat.python import cp_model

        return cp_model.LinearExpr.weighted_sum(self.variables, self.weights)


def _end(problem: Problem, option: int, start: int) -> int:
    return min(problem.steps, start + int(problem.options[option, O_DURATION]))


def _levels(model: Any, problem: Problem) -> tuple[list[list[Any]], list[list[Any]]]:
    """GPUs that each app holds per step, and its unmet demand."""
    holds, unmet = [], []
    for r, app in enumerate(problem.apps.tolist()):
        most = min(app[MAXIMUM], problem.gpus)
        row = [model.new_int_var(app[MINIMUM], most, f"app {r} holds {t}") for t in range(problem.steps)]
        missing = []
        for t, held in enumerate(row):
            wanted = int(problem.demand[r, t])
            short = model.new_int_var(0, wanted, f"app {r} misses {t}")
            model.add(short + held >= wanted)
            missing.append(short)
        gained = []
        for t, held in enumerate(row):
            if t == 0 and not app[KNOWN]:
                continue
            before = row[t - 1] if t else app[N_HELD]
            if app[CAP] < problem.gpus:
                model.add(held - before <= app[CAP])
                model.add(before - held <= app[CAP])
            if app[LEFT] < problem.gpus * problem.steps:
                more = model.new_int_var(0, problem.gpus, f"app {r} gains {t}")
                model.add(more >= held - before)
                gained.append(more)
        if gained:
            model.add(sum(gained) <= app[LEFT])
        holds.append(row)
        unmet.append(missing)
    return holds, unmet


def _classes(model: Any, problem: Problem, starts: dict[Choice, Any]) -> None:
    """Blocks from a size on find fewer GPUs than there are: unavailable ones and nodes cut the line."""
    sizes = problem.options[:, O_SIZE]
    words = [as_int(row) for row in problem.base]
    for c in range(1, len(problem.allowed)):
        n = 1 << c
        if not (sizes >= n).any():
            break
        fits = as_int(problem.allowed[c])
        known = {word: side_by_side(word, fits, n) for word in set(words)}
        users = {t: _Sum() for t, word in enumerate(words) if known[word] < word.bit_count() // n}
        if not users:
            continue
        for (_, option, start), literal in starts.items():
            if sizes[option] >= n:
                for t in range(start, _end(problem, option, start)):
                    if t in users:
                        users[t].add(literal, int(sizes[option]) // n)
        for t, blocks in users.items():
            if blocks.variables:
                model.add(blocks.expression() <= known[words[t]])


def _identical(model: Any, problem: Problem, by_job: dict[int, dict[tuple[int, int], Any]]) -> None:
    """Of jobs that differ in name only, the one that comes first in the file starts first."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for j in by_job:
        rows = slice(int(problem.first_option[j]), int(problem.first_option[j + 1]))
        if rows.stop - rows.start == 1:
            milli = problem.option_milli[rows.start]
            alike[(*problem.options[rows].ravel().tolist(), int(problem.earliest[j]), milli)].append(j)
    never = problem.steps
    for group in alike.values():
        for first, second in pairwise(group):
            order = _Sum()
            for j, sign in ((first, 1), (second, -1)):
                for (_, start), literal in by_job[j].items():
                    order.add(literal, sign * (start - never))
            model.add(order.expression() <= 0)


def with_places(times: Times, problem: Problem) -> None:
    """Add every cell to a model of starts: where each block lies, and which GPUs each app holds."""
    model = times.model
    occupied: dict[tuple[int, int], list[Any]] = defaultdict(list)
    gpus = range(problem.gpus)
    bits = [as_int(row) for row in problem.base]
    for (j, option, start), literal in times.starts.items():
        size = int(problem.options[option, O_SIZE])
        end = _end(problem, option, start)
        free = -1
        for t in range(start, end):
            free &= bits[t]
        allowed = as_int(problem.allowed[size.bit_length() - 1])
        whole = (1 << size) - 1
        here = []
        for first in range(problem.gpus - size + 1):
            if allowed >> first & 1 and free >> first & whole == whole:
                place = model.new_bool_var(f"job {j} size {option} start {start} gpu {first}")
                times.places[j, option, start, first] = place
                here.append(place)
                for t in range(start, end):
                    for gpu in range(first, first + size):
                        occupied[gpu, t].append(place)
        model.add(sum(here) == literal)
    for r in range(len(problem.apps)):
        for t in range(problem.steps):
            mine = []
            for gpu in gpus:
                if bits[t] >> gpu & 1:
                    cell = model.new_bool_var(f"app {r} gpu {gpu} step {t}")
                    times.cells[r, gpu, t] = cell
                    occupied[gpu, t].append(cell)
                    mine.append(cell)
            model.add(sum(mine) == times.holds[r][t])
        _swaps(times, problem, r)
    for users in occupied.values():
        if len(users) > 1:
            model.add_at_most_one(users)


def _swaps(times: Times, problem: Problem, r: int) -> None:
    """Acquired and released GPUs of an app, GPU by GPU, within its cap and budget."""
    model, app = times.model, problem.apps[r].tolist()
    held = as_int(problem.held[r])
    capped, budgeted = app[CAP] < problem.gpus, app[LEFT] < problem.gpus * problem.steps
    if not capped and not budgeted:
        return
    all_gained = []
    for t in range(problem.steps):
        if t == 0 and not app[KNOWN]:
            continue
        gained, lost = [], []
        for gpu in range(problem.gpus):
            now = times.cells.get((r, gpu, t))
            before = times.cells.get((r, gpu, t - 1)) if t else (held >> gpu & 1)
            if before is None:
                before = 0
            gained += _change(model, before, now)
            lost += _change(model, now, before)
        if capped:
            model.add(sum(gained) <= app[CAP])
            model.add(sum(lost) <= app[CAP])
        all_gained += gained
    if budgeted:
        model.add(sum(all_gained) <= app[LEFT])


def _change(model: Any, before: Any, now: Any) -> list[Any]:
    """A literal (or nothing) that is true where a cell is held now and was not before."""
    if now is None or (isinstance(now, int) and now == 0):
        return []
    if before is None or (isinstance(before, int) and before == 0):
        return [now]
    if isinstance(before, int):
        return []
    changed = model.new_bool_var("")
    if isinstance(now, int):
        model.add_bool_or([before, changed])
    else:
        model.add_bool_or([before, now.negated(), changed])
    return [changed]


def hint(times: Times, problem: Problem, plan: Assignment) -> None:
    """Tell the solver a plan to start from."""
    model = times.model
    option = problem.option(plan.size).tolist()
    starts = plan.start.tolist()
    for (j, row, start), literal in times.starts.items():
        model.add_hint(literal, int(starts[j] == start and option[j] == row))
    for (j, row, start, first), literal in times.places.items():
        here = starts[j] == start and option[j] == row and int(plan.first_gpu[j]) == first
        model.add_hint(literal, int(here))
    held = np.bitwise_count(plan.hold).sum(axis=2, dtype=np.int64)
    for r, levels in enumerate(times.holds):
        for t, level in enumerate(levels):
            model.add_hint(level, int(held[r, t]))
            model.add_hint(times.unmet[r][t], max(0, int(problem.demand[r, t] - held[r, t])))
    words = [[as_int(row) for row in rows] for rows in plan.hold]
    for (r, gpu, t), cell in times.cells.items():
        model.add_hint(cell, words[r][t] >> gpu & 1)


def chosen(times: Times, value: Any) -> set[Choice]:
    """The starts of a solution; ``value`` gives that of a variable."""
    return {choice for choice, literal in times.starts.items() if value(literal)}


def plan_of(times: Times, problem: Problem, value: Any) -> Assignment:
    """The plan of a solution with places."""
    start, first = problem.jobs[:, START].copy(), problem.jobs[:, FIRST].copy()
    size = problem.size.copy()
    for (j, option, step, gpu), literal in times.places.items():
        if value(literal):
            start[j], first[j], size[j] = step, gpu, problem.options[option, O_SIZE]
    n_words = problem.available.size
    hold = np.zeros((len(problem.apps), problem.steps, n_words), np.uint64)
    for (r, gpu, t), cell in times.cells.items():
        if value(cell):
            hold[r, t, gpu // 64] |= np.uint64(1 << (gpu % 64))
    return Assignment(start, first, size, hold)
