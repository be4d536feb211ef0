"""Fair share: budgets with time slicing."""

from gpuplan.fairshare import engine
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """Fair share: budgets with time slicing."""
    return engine.contract(problem)


POLICY = Policy(
    "fair-share",
    "Budgets: the child with startable allocated work and the lowest ratio of GPU-time had over the "
    "window (and still protected) to its share goes first; work past its minimum run time yields to a "
    "better claim; what is free runs unallocated work.",
    run,
    budgets=True,
    preempts=True,
)
