"""From a problem to a kernel's arguments, and from its log to a `RawRun`."""

import numpy as np

from gpuplan.fairshare import kernels
from gpuplan.fairshare.kernels import D_BEGAN, D_ENDED, D_FROM, D_NEXT, D_NODE, D_REPAIR, Machine, Work
from gpuplan.fairshare.model import NEVER, Floats, Int64
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun, Stretches
from gpuplan.fairshare.tree import Tree

#: Slurm decays usage in steps of this many seconds (its default ``PriorityCalcPeriod``).
DECAY_STEP_S = 300


def queue(
    problem: Problem,
    kind: int,
    order: Int64 | None = None,
    *,
    lines: Int64 | None = None,
    quota: Int64 | None = None,
    fair_tree: bool = False,
    set_aside: dict[int, str] | None = None,
) -> RawRun:
    """Run a policy without preemption (see `gpuplan.fairshare.kernels.run_queue`).

    Parameters
    ----------
    kind
        `STRICT`, `SKIP`, `PER_TYPE`, `EASY` or `LINES` of the kernels.
    order : int64[J], optional
        Jobs by their place in line (those of line 0 first); by arrival where there is none.
    lines : int64[J], optional
        Line of each job; one line for all where there is none.
    quota : int64[L], optional
        GPUs that each line may hold.
    fair_tree
        Lines are teams, ranked by Slurm's Fair Tree over decayed usage.
    set_aside
        Jobs that can never run under this policy, beside those of the problem.
    """
    n = len(problem.jobs)
    line = np.zeros(n, np.int64) if lines is None else lines
    n_lines = len(problem.tree.leaves) if lines is not None else 1
    first = np.concatenate(([0], np.cumsum(np.bincount(line, minlength=n_lines)))).astype(np.int64)
    aside = {**problem.set_aside, **(set_aside or {})}
    drains = drain_table(problem)
    log, places, end = kernels.run_queue(
        kind,
        problem.until_s,
        problem.jobs.submit_s,
        work(problem, aside),
        nodes(problem),
        np.arange(n) if order is None else order,
        first,
        np.unique(problem.mask, return_inverse=True)[1].astype(np.int64),
        np.full(n_lines, NEVER) if quota is None else quota,
        tree_links(problem.tree) if fair_tree else tree_links(None),
        0.5 ** (DECAY_STEP_S / problem.scenario.window_s),
        drains,
        problem.scenario.contract.max_min_runtime_s,
        problem.scenario.contract.checkpoint_every_s,
        problem.scenario.contract.restart_cost_s,
    )
    return raw_run(problem, log, places, int(end), drains, aside)


def work(problem: Problem, set_aside: dict[int, str]) -> Work:
    """The jobs' columns, fresh."""
    jobs, n = problem.jobs, len(problem.jobs)
    mask = problem.mask.copy()
    mask[list(set_aside)] = 0
    return Work(
        jobs.gpus.copy(),
        jobs.run_s.copy(),
        jobs.limit_s.copy(),
        problem.minimum_s.copy(),
        jobs.resumable.astype(np.int64),
        mask,
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.full(n, -1),
        np.zeros(n, np.int64),
        np.full(n, -1),
        np.full(n, -1),
        np.full(n, -1),
    )


def nodes(problem: Problem) -> Machine:
    """The nodes, empty."""
    made: Machine = kernels.machine(problem.node_gpus, problem.node_pool, problem.pool_first)
    return made


def drain_table(problem: Problem) -> Int64:
    """Drains as the kernels take them, by begin, then node; int64[D, 7]."""
    drains = sorted(problem.scenario.drains, key=lambda drain: (drain.from_s, drain.node))
    table = np.full((len(drains), 7), NEVER, np.int64)
    for row, drain in zip(table, drains, strict=True):
        row[[D_NODE, D_FROM, D_REPAIR, kernels.D_STATE]] = drain.node, drain.from_s, drain.repair_s, 0
        row[D_NEXT] = drain.from_s
    return table


def tree_links(tree: Tree | None) -> tuple[Int64, Int64, Int64, Floats]:
    """First child, next sibling, line (of leaves) and share among siblings of every budget; empty without a tree."""
    if tree is None:
        none = np.zeros(0, np.int64)
        return none, none, none, np.zeros(0)
    n = len(tree.path)
    down, beside, line = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    among = np.ones(n)
    last: dict[int, int] = {}
    for b in range(1, n):
        parent = int(tree.parent[b])
        if parent in last:
            beside[last[parent]] = b
        else:
            down[parent] = b
        last[parent] = b
        whole = tree.exact[parent]
        among[b] = float(tree.exact[b] / whole) if whole else 0.0
    line[tree.leaves] = np.arange(len(tree.leaves))
    return down, beside, line, among


def raw_run(
    problem: Problem, log: Int64, places: Int64, end: int, drains: Int64, set_aside: dict[int, str]
) -> RawRun:
    """What a kernel logged, as read-only columns."""
    one = np.ones(len(log), np.bool_)
    one[places[:, 0]] = False
    single = np.flatnonzero(one)
    stretch = np.concatenate((single, places[:, 0]))
    node = np.concatenate((log[single, kernels.NODE], places[:, 1]))
    taken = np.concatenate((problem.jobs.gpus[log[single, kernels.JOB]], places[:, 2]))
    by = np.lexsort((node, stretch)) if len(places) else slice(None)
    columns = [
        log[:, kernels.JOB],
        log[:, kernels.START],
        log[:, kernels.END],
        log[:, kernels.OVERHEAD],
        log[:, kernels.KEPT],
        log[:, kernels.ALLOCATED].astype(np.bool_),
        log[:, kernels.PROTECTED],
        log[:, kernels.OUTCOME].astype(np.int8),
        stretch[by],
        node[by],
        taken[by],
    ]
    kept = [np.ascontiguousarray(column) for column in columns]
    began, ended = drains[:, D_BEGAN].copy(), drains[:, D_ENDED].copy()
    for column in (*kept, began, ended):
        column.flags.writeable = False
    return RawRun(Stretches(*kept), end, began, ended, set_aside)
