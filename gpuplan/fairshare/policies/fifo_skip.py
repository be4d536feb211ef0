"""First come, first served, past those that do not fit."""

from gpuplan.fairshare import engine, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """One line; what does not fit is passed over."""
    return engine.queue(problem, kernels.SKIP)


POLICY = Policy(
    "fifo-skip",
    "In order of submission, whoever fits starts; a large job may be passed over without end.",
    run,
)
