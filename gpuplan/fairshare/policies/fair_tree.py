"""Slurm's Fair Tree."""

import numpy as np

from gpuplan.fairshare import engine, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun


def run(problem: Problem) -> RawRun:
    """EASY backfill in the order of Fair Tree."""
    order = np.lexsort((np.arange(len(problem.jobs)), -problem.jobs.priority, problem.team))
    return engine.queue(problem, kernels.EASY, order, lines=problem.team, fair_tree=True)


POLICY = Policy(
    "fair-tree",
    "Slurm's Fair Tree: teams by share / usage level by level from the root, usage decayed with the window as its "
    "half-life in steps of 5 minutes; then declared priority, then submission; EASY backfill, no preemption.",
    run,
)
