"""Shortest job first, by declared limits."""

import numpy as np

from gpuplan.fairshare import engine, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """One line by declared limit; what does not fit is passed over."""
    return engine.queue(problem, kernels.SKIP, np.argsort(problem.jobs.limit_s, kind="stable"))


POLICY = Policy(
    "sjf",
    "By declared limit, shortest first (no limit: last), then by submission; whoever fits starts.",
    run,
)
