"""Priority tiers: the old world."""

from gpuplan.fairshare import engine
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """Priority tiers: the old world."""
    return engine.contract(problem, tiers=True)


POLICY = Policy(
    "priority-tiers",
    "By declared priority, then submission; whoever fits starts, and what does not fit may preempt work "
    "of lower priority that has not opted out (within its team's limit).",
    run,
    preempts=True,
)
