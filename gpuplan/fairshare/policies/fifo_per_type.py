"""First come, first served, a line per GPU type."""

from gpuplan.fairshare import engine, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """A strict line in front of every pool."""
    return engine.queue(problem, kernels.PER_TYPE)


POLICY = Policy(
    "fifo-per-type",
    "A strict line in front of every pool; a job that accepts several types stands in all their lines and takes "
    "the first pool that is its turn.",
    run,
)
