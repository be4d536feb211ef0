"""The constraint-aware allocator: the whole queue seen at once, apps and jobs by what they are worth."""

import numpy as np

from gpuplan.allocation.kernels import (
    ANY_ROOM,
    CAP,
    COST,
    CURVE,
    EARLY_LARGEST,
    LEFT,
    LOWEST,
    MAXIMUM,
    PRIORITY,
    ROOM,
    SMALLEST,
    SNUG,
    WORTHIEST,
)
from gpuplan.allocation.policies.base import (
    Assignment,
    Effort,
    Policy,
    allocate,
    app_step,
    by_priority,
    curves_then,
)
from gpuplan.allocation.problem import Int64, Problem

#: Plans that a run builds at most to let jobs outbid served demand.
TRIALS = 8

#: Plans that a run builds at most with a job moved ahead.
PROMOTIONS = 2

#: Order of the queue: priority x hours ** a x GPUs ** b, largest first. Long and wide jobs are hard to place late:
#: some weight for both.
ORDER = (0.5, 0.25)

#: How a pass chooses where a job has several sizes; all are tried.
SIZE_RULES = (WORTHIEST, EARLY_LARGEST, SMALLEST)


def run(problem: Problem, _: Effort) -> Assignment:
    """Build a plan per order, keep the best, improve it, then let blocks outbid traffic where that gains.

    The plans of ``curve-fifo`` and ``curve-priority`` are among those compared: never worse than they.
    Where unmet demand costs nothing, batch work is planned as if there were no apps. Where jobs have several sizes,
    every plan is built once for each of `SIZE_RULES`.
    """
    # of equally dear apps the one that can move least goes first: the others can go around it
    apps = np.lexsort((problem.apps[:, LEFT], problem.apps[:, CAP], -problem.apps[:, COST])).tolist()
    lay = [app_step(problem, r, CURVE) for r in apps]
    passes = []
    order = by_worth(problem, *ORDER)
    for fluid in (True, False):
        sequence = merged(problem, order, apps, ROOM if fluid else CURVE)
        again = [*lay, ANY_ROOM, *order.tolist()] if fluid else []
        passes.append([SNUG, *sequence, *again])
    queues = [by_priority(problem), problem.movable]
    followers = [curves_then(problem, queue) for queue in queues]
    if apps and problem.apps[apps[0], COST] == 0:
        # no pass with apps first among these: where it wins, it would lead the promotions elsewhere
        passes += [[LOWEST, *queue.tolist(), *lay] for queue in queues]
        free = allocate(problem, with_sizes(problem, passes), promotions=PROMOTIONS)
        follower = allocate(problem, followers)
        return free if free.worth >= follower.worth else follower
    peaks = np.minimum(problem.demand.max(axis=1, initial=0), problem.apps[:, MAXIMUM])
    if len(apps) > 1 and peaks.sum() > np.bitwise_count(problem.base).sum(axis=1).min():
        # apps compete among themselves: whoever goes first may hold on through valleys at the others' cost
        passes.append([SNUG, *reversed(lay), *order.tolist()])
    trials = TRIALS if apps else 0
    passes = with_sizes(problem, passes) + followers
    return allocate(problem, passes, outbid=[SNUG, *lay], promotions=PROMOTIONS, trials=trials)


def with_sizes(problem: Problem, passes: list[list[int]]) -> list[list[int]]:
    """The passes once for each way of choosing among sizes, where there are several."""
    if len(problem.options) == len(problem.jobs):
        return passes
    return [[snug + rule, *steps] for snug, *steps in passes for rule in SIZE_RULES]


def by_worth(problem: Problem, hours_power: float, gpus_power: float) -> Int64:
    """Jobs by ``priority x hours ** a x GPUs ** b``, largest first, then in file order."""
    jobs = problem.movable
    score = (
        problem.jobs[jobs, PRIORITY]
        * problem.duration[jobs] ** hours_power
        * problem.size[jobs] ** gpus_power
    )
    # equal scores must be equal on every machine: rounding noise of the powers must not decide
    return jobs[np.lexsort((jobs, -np.round(score, 6)))]


def merged(problem: Problem, order: Int64, apps: list[int], what: int) -> list[int]:
    """Jobs and apps in one sequence: an app before the first job that is worth less than its demand.

    Compared are the cost of an unmet GPU-step and what a GPU-step of the job earns at the earliest
    step at which it may start.
    """
    weight = problem.weight[np.minimum(problem.earliest[order], problem.steps - 1)]
    worth = (problem.jobs[order, PRIORITY] * weight).tolist()
    sequence: list[int] = []
    waiting = list(apps)
    for job, job_worth in zip(order.tolist(), worth, strict=True):
        while waiting and problem.apps[waiting[0], COST] >= job_worth:
            sequence.append(app_step(problem, waiting.pop(0), what))
        sequence.append(job)
    return sequence + [app_step(problem, r, what) for r in waiting]


POLICY = Policy(
    "aware",
    "The whole queue seen at once: apps follow their curve within the swap cap, less where a block is worth more; "
    "jobs go by worth into the snuggest place; sizes are chosen so that the plan is worth most.",
    run,
)
