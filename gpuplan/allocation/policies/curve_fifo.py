"""First come, first served around apps that follow their demand curve."""

from gpuplan.allocation.policies.base import Assignment, Effort, Policy, with_curves
from gpuplan.allocation.problem import Problem


def run(problem: Problem, _: Effort) -> Assignment:
    """Lay the apps on their curves; each job in file order at the earliest step at which it fits."""
    return with_curves(problem, problem.movable)


POLICY = Policy(
    "curve-fifo",
    "Apps hold the smallest number of GPUs that covers demand within the swap cap; jobs go in order of arrival "
    "to the earliest step and lowest GPU at which they fit; of several sizes the largest that fits then.",
    run,
)
