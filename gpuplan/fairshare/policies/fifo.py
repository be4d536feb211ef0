"""First come, first served, strictly."""

from gpuplan.fairshare import engine, flat, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """One strict line."""
    if flat.fits(problem):
        return flat.fifo(problem)
    return engine.queue(problem, kernels.STRICT)


POLICY = Policy("fifo", "In order of submission; nobody starts while somebody who came earlier waits.", run)
