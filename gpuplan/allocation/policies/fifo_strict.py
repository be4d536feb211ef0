"""First come, first served without overtaking, with every app's peak reserved all day."""

from gpuplan.allocation.policies.base import Assignment, Effort, Policy, with_reservation
from gpuplan.allocation.problem import Problem


def run(problem: Problem, _: Effort) -> Assignment:
    """Reserve peaks; jobs in file order, starts never decrease, a job without a place ends the queue."""
    return with_reservation(problem, problem.movable, strict=True)


POLICY = Policy(
    "fifo-strict",
    "As fifo, but nobody overtakes: starts never decrease in order of arrival, and a job that finds no place "
    "in the horizon blocks all behind it.",
    run,
    reservation=True,
)
