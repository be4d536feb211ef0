"""EASY backfill."""

from gpuplan.fairshare import engine, flat, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """Backfill with a reservation for the first in line."""
    if flat.fits(problem):
        return flat.easy(problem)
    return engine.queue(problem, kernels.EASY)


POLICY = Policy(
    "easy",
    "In order of submission until the first does not fit; it is promised the earliest instant at which it fits by "
    "declared limits, and later jobs may start if they end by then or use GPUs that are not reserved for it "
    "(Lifka 1995; EASY backfill).",
    run,
)
