"""Highest priority first, with every app's peak reserved all day."""

from gpuplan.allocation.policies.base import Assignment, Effort, Policy, by_priority, with_reservation
from gpuplan.allocation.problem import Problem


def run(problem: Problem, _: Effort) -> Assignment:
    """Reserve peaks; each job by priority at the earliest step at which it fits."""
    return with_reservation(problem, by_priority(problem))


POLICY = Policy(
    "peak-priority",
    "Each app's peak is reserved all day; jobs go by priority, then order of arrival, to the earliest step and "
    "lowest GPU at which they fit; of several sizes the largest that fits then.",
    run,
    reservation=True,
)
