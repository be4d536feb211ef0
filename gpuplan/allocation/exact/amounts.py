"""Objectives of plans as exact integers, and what the solver is given of them."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from gpuplan.allocation.kernels import O_LATEST
from gpuplan.allocation.policies.base import Assignment
from gpuplan.allocation.problem import UNITS_PER_STEP, Problem

#: Sums of coefficients stay below: the solver counts in 64 bits.
MOST = 1 << 60


@dataclass(frozen=True, slots=True)
class Amounts:
    """Objectives of a problem's plans in the solver's unit.

    Attributes
    ----------
    unit
        Exact units (priority in thousandths x weight in millionths x GPU-steps) to one of the solver's.
    exact
        Whether every amount is a whole number of these; else amounts of gain are rounded up and
        those of cost down, so that a bound stays a bound.
    """

    problem: Problem
    unit: int
    exact: bool

    def gain(self, option: int, start: int) -> int:
        """What a job earns with a row of `Problem.options` from a step on."""
        return -(-self.problem.gain(option, start) // self.unit)

    def cost(self, r: int) -> int:
        """What a GPU-step of unmet demand of an app costs."""
        return self.problem.cost_units[r] // self.unit

    def exact_units(self, objective: int) -> int:
        """An objective in the solver's unit as exact units, inherited work included."""
        return objective * self.unit + self.problem.inherited

    def bound_units(self, bound: float) -> int:
        """An upper bound in the solver's unit as exact units; it is a float, whole up to 53 bits only."""
        whole = math.floor(bound + 1e-6)
        return self.exact_units(whole + (abs(whole) >> 52))


def amounts(problem: Problem) -> Amounts:
    """The solver's unit: whatever all amounts have in common, more where sums would not fit."""
    found = [problem.gain(option, start) for _, option, start in choices(problem)]
    costs = list(problem.cost_units)
    common = math.gcd(*found, *costs) or 1
    unmet = sum(cost * int(row.sum()) for cost, row in zip(costs, problem.demand, strict=True))
    most = (sum(found) + unmet) // common
    coarser = max(1, -(-most // MOST))
    return Amounts(problem, common * coarser, coarser == 1)


def choices(problem: Problem) -> list[tuple[int, int, int]]:
    """Everything that jobs may do: (job, row of `Problem.options`, start)."""
    found = []
    for j in problem.movable.tolist():
        for option in range(int(problem.first_option[j]), int(problem.first_option[j + 1])):
            last = int(problem.options[option, O_LATEST])
            found += [(j, option, start) for start in range(int(problem.earliest[j]), last + 1)]
    return found


def units_of(problem: Problem, assignment: Assignment) -> int:
    """The objective of a plan in exact units."""
    option = problem.option(assignment.size).tolist()
    total = sum(
        problem.gain(option[j], start) for j, start in enumerate(assignment.start.tolist()) if start >= 0
    )
    held = np.bitwise_count(assignment.hold).sum(axis=2, dtype=np.int64)
    unmet = np.maximum(0, problem.demand - held).sum(axis=1).tolist()
    return total - sum(cost * int(n) for cost, n in zip(problem.cost_units, unmet, strict=True))


def units_above(problem: Problem, bound: float) -> int:
    """Exact units that are no fewer than a bound in priority-weighted GPU-hours, however that was rounded."""
    units = math.ceil(Fraction(bound) * 3600 * UNITS_PER_STEP / problem.scenario.horizon.step_s)
    return units + (abs(units) >> 50) + 1
