"""First come, first served, with every app's peak reserved all day."""

from gpuplan.allocation.policies.base import Assignment, Effort, Policy, with_reservation
from gpuplan.allocation.problem import Problem


def run(problem: Problem, _: Effort) -> Assignment:
    """Reserve peaks; each job in file order at the earliest step at which it fits."""
    return with_reservation(problem, problem.movable)


POLICY = Policy(
    "fifo",
    "Each app's peak is reserved all day; jobs go in order of arrival to the earliest step and lowest GPU "
    "at which they fit, later jobs into gaps that earlier ones left; of several sizes the largest that fits then.",
    run,
    reservation=True,
)
