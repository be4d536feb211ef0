"""Conservative backfill."""

from gpuplan.fairshare import engine
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """Backfill with a reservation for each of the first in line."""
    return engine.conservative(problem)


POLICY = Policy(
    "conservative",
    "Each of the first 100 in line is promised the earliest instant at which it fits by declared limits beside all "
    "earlier promises (counted in GPUs of a pool), and starts then; where work ends early promises move forward, in "
    "order, never back.",
    run,
)
