"""The constraint-aware allocator: the whole queue seen at once, apps and jobs by what they are worth."""

import numpy as np

from gpuplan.allocation.kernels import ANY_ROOM, CURVE, ROOM, SNUG
from gpuplan.allocation.policies.base import Assignment, Policy, allocate, app_step, by_priority, curves_then
from gpuplan.allocation.problem import Int64, Problem

#: Plans that a run builds at most to let jobs outbid served demand.
TRIALS = 8


def run(problem: Problem) -> Assignment:
    """Build a plan per pass, keep the best, then let blocks outbid traffic where the objective gains.

    Two of the passes are the plans of ``curve-fifo`` and ``curve-priority``: never worse than those.
    """
    jobs = problem.movable
    size, duration, priority = problem.size[jobs], problem.duration[jobs], problem.priority[jobs]
    by_size = jobs[np.lexsort((jobs, -duration, -size, -priority))]
    apps = np.argsort(-problem.cost, kind="stable").tolist()
    lay = [app_step(problem, r, CURVE) for r in apps]
    again = by_size.tolist()
    passes = [
        [SNUG, *merged(problem, by_size, apps, CURVE)],
        [SNUG, *merged(problem, by_size, apps, ROOM), *lay, ANY_ROOM, *again],
        curves_then(problem, by_priority(problem)),
        curves_then(problem, jobs),
    ]
    return allocate(problem, passes, outbid=[SNUG, *lay], order=by_size, trials=TRIALS if apps else 0)


def merged(problem: Problem, order: Int64, apps: list[int], what: int) -> list[int]:
    """Jobs and apps in one sequence: an app before the first job that is worth less than its demand.

    Compared are the cost of an unmet GPU-step and what a GPU-step of the job earns at the earliest
    step at which it may start.
    """
    weight = problem.weight[np.minimum(problem.earliest[order], problem.steps - 1)]
    worth = (problem.priority[order] * weight).tolist()
    sequence: list[int] = []
    waiting = list(apps)
    for job, job_worth in zip(order.tolist(), worth, strict=True):
        while waiting and problem.cost[waiting[0]] >= job_worth:
            sequence.append(app_step(problem, waiting.pop(0), what))
        sequence.append(job)
    return sequence + [app_step(problem, r, what) for r in waiting]


POLICY = Policy(
    "aware",
    "The whole queue seen at once: apps follow their curve within the swap cap, less where a block is worth more; "
    "jobs go by worth into the snuggest place.",
    run,
)
