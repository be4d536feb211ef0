"""Highest priority first around apps that follow their demand curve."""

from gpuplan.allocation.policies.base import Assignment, Effort, Policy, by_priority, with_curves
from gpuplan.allocation.problem import Problem


def run(problem: Problem, _: Effort) -> Assignment:
    """Lay the apps on their curves; each job by priority at the earliest step at which it fits."""
    return with_curves(problem, by_priority(problem))


POLICY = Policy(
    "curve-priority",
    "Apps hold the smallest number of GPUs that covers demand within the swap cap; jobs go by priority, then "
    "order of arrival, to the earliest step and lowest GPU at which they fit; of several sizes the largest that "
    "fits then.",
    run,
)
