"""Monopolies: every team has GPUs of its own."""

import numpy as np

from gpuplan.fairshare import engine, kernels
from gpuplan.fairshare.policies.base import Policy
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun
from gpuplan.fairshare.shares import partition


def run(problem: Problem) -> RawRun:
    """A strict line per team within its part of the cluster."""
    epochs = problem.epochs
    quota = np.stack([partition(tree, problem.gpus) for tree in epochs.trees])
    # the largest part of each team from each epoch on: what is larger than that at its submission never runs
    most = np.maximum.accumulate(quota[::-1])[::-1]
    mine = most[epochs.index(problem.jobs.submit_s), problem.team]
    too_large = np.flatnonzero((problem.jobs.gpus > mine) & (problem.mask != 0)).tolist()
    reasons = {j: f"{problem.jobs.gpus[j]} GPUs wanted, the team's part is {mine[j]}" for j in too_large}
    order = np.argsort(problem.team, kind="stable")
    return engine.queue(problem, kernels.PER_LINE, order, lines=problem.team, quota=quota, set_aside=reasons)


POLICY = Policy(
    "static-partitions",
    "Every team may hold its share of the GPUs (largest remainders), used or not, in a strict line of its own; "
    "a job larger than its team's part never runs (where budgets change, not as long as the part is so small).",
    run,
)
