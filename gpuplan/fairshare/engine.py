"""From a problem to a kernel's arguments, and from its log to a `RawRun`."""

import numpy as np

from gpuplan.fairshare import kernels
from gpuplan.fairshare.kernels import D_BEGAN, D_ENDED, D_FROM, D_NEXT, D_NODE, D_REPAIR
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
    line = np.zeros(len(problem.jobs), np.int64) if lines is None else lines
    by = np.arange(len(line)) if order is None else order
    aside = {**problem.set_aside, **(set_aside or {})}
    n_lines = 1 if lines is None else len(problem.tree.leaves)
    first = np.cumsum(np.bincount(line, minlength=n_lines)) - np.bincount(line, minlength=n_lines)
    rows = np.zeros((n_lines, 6), np.int64)
    rows[:, kernels.LOW] = rows[:, kernels.HIGH] = first
    rows[:, kernels.QUOTA] = NEVER if quota is None else quota
    rows[:, kernels.RANKED] = np.arange(n_lines)
    tree, usage = budgets(problem.tree) if fair_tree else (np.zeros((0, 5), np.int64), np.zeros((0, 3)))
    if fair_tree:
        rows[:, kernels.BUDGET] = problem.tree.leaves
    table = work(problem, aside, by, line)
    keys = np.zeros((len(by), 2), np.int64)
    if kind in (kernels.SKIP, kernels.EASY):
        keys[:, kernels.KEY_A] = problem.jobs.gpus[by]
    if kind == kernels.EASY:
        keys[:, kernels.KEY_B] = bit_lengths(problem.jobs.limit_s[by])
    drains = drain_table(problem)
    tables = Tables(problem)
    fails = np.zeros((2, 1 + table[:, kernels.GROUP].max(initial=0)), np.int64)
    still = (table, *nodes(problem), by, rows, *empty_set(len(by)), keys, tree, usage, drains, fails)
    decay = 0.5 ** (DECAY_STEP_S / problem.scenario.window_s)
    while kernels.run_queue(
        kind, rules(problem), decay, tables.state, problem.jobs.submit_s, *still, *tables.growing
    ):
        tables.grow()
    return raw_run(problem, tables, drains, aside)


class Tables:
    """The tables of a run that may prove too short, and the state that outlives a pause to make them longer."""

    def __init__(self, problem: Problem) -> None:
        n = len(problem.jobs)
        self.nodes = len(problem.node_gpus)
        self.state = np.zeros(8, np.int64)
        self.heap = np.empty((min(n, problem.gpus) + 64, 2), np.int64)
        self.log = np.empty((n + min(n, problem.gpus) + 64, 9), np.int64)
        self.places = np.empty((4 * self.nodes, 3), np.int64)

    @property
    def growing(self) -> tuple[Int64, ...]:
        """The tables as the kernels take them."""
        return self.heap, self.log, self.places

    def grow(self) -> None:
        """Each table twice as long, and longer by what one instant may add."""
        more = int(self.state[kernels.S_WAITING]) + 2 * self.nodes
        self.heap, self.log, self.places = (
            np.concatenate((table, np.empty((len(table) + more, table.shape[1]), np.int64)))
            for table in self.growing
        )


def rules(problem: Problem) -> Int64:
    """Horizon, patience, checkpoint interval and restart cost; int64[4]."""
    contract = problem.scenario.contract
    return np.array(
        [
            problem.until_s,
            contract.max_min_runtime_s,
            contract.checkpoint_every_s,
            contract.restart_cost_s,
        ]
    )


def empty_set(n: int) -> tuple[Int64, Int64]:
    """An empty set of positions below ``n`` as the kernels take it."""
    words = np.full((n // 32 + 1, 3), 1 << 62, np.int64)
    above = np.full((len(words) // 32 + 1, 3), 1 << 62, np.int64)
    words[:, kernels.BITS] = above[:, kernels.BITS] = 0
    return words, above


def bit_lengths(numbers: Int64) -> Int64:
    """Binary digits of each number from 0 on, exact below 2**62."""
    digits = np.zeros(len(numbers), np.int64)
    for shift in (32, 16, 8, 4, 2, 1):
        large = (numbers >> digits) >= 1 << shift
        digits[large] += shift
    return digits + (numbers > 0)


def work(problem: Problem, set_aside: dict[int, str], order: Int64, line: Int64) -> Int64:
    """The kernels' table of jobs, fresh; int64[J, 17]."""
    jobs = problem.jobs
    table = np.full((len(jobs), 17), -1, np.int64)
    table[:, kernels.GPUS] = jobs.gpus
    table[:, kernels.RUN] = jobs.run_s
    table[:, kernels.LIMIT] = jobs.limit_s
    table[:, kernels.MINIMUM] = problem.minimum_s
    table[:, kernels.RESUMABLE] = jobs.resumable
    table[:, kernels.MASK] = problem.mask
    table[list(set_aside), kernels.MASK] = 0
    table[:, kernels.GROUP] = np.unique(problem.mask, return_inverse=True)[1]
    table[:, kernels.LINE] = line
    table[order, kernels.WHERE] = np.arange(len(jobs))
    table[:, [kernels.DONE, kernels.OWES]] = 0
    return table


def nodes(problem: Problem) -> tuple[Int64, Int64, Int64]:
    """The kernels' tables of nodes, pools and seats, all empty."""
    size = problem.node_gpus
    table = np.zeros((len(size), 11), np.int64)
    table[:, kernels.SIZE] = table[:, kernels.FREE] = size
    table[:, kernels.POOL] = problem.node_pool
    table[1:, kernels.OFFSET] = np.cumsum(size)[:-1]
    table[:, kernels.CHAIN] = -1
    table[:, kernels.EXTRA] = NEVER
    pools = np.zeros((len(problem.pool_first), 2), np.int64)
    pools[:, kernels.FIRST] = problem.pool_first
    np.add.at(pools[:, kernels.SPARE], problem.node_pool, size)
    return table, pools, np.zeros((problem.gpus, 3), np.int64)


def drain_table(problem: Problem) -> Int64:
    """Drains as the kernels take them, by begin, then node; int64[D, 7]."""
    drains = sorted(problem.scenario.drains, key=lambda drain: (drain.from_s, drain.node))
    table = np.full((len(drains), 7), NEVER, np.int64)
    for row, drain in zip(table, drains, strict=True):
        row[[D_NODE, D_FROM, D_REPAIR, kernels.D_STATE]] = drain.node, drain.from_s, drain.repair_s, 0
        row[D_NEXT] = drain.from_s
    return table


def budgets(tree: Tree) -> tuple[Int64, Floats]:
    """The kernels' tables of budgets: links int64[B, 5]; share among siblings and room for usage float64[B, 3]."""
    n = len(tree.path)
    links = np.full((n, 5), -1, np.int64)
    usage = np.zeros((n, 3))
    usage[0, kernels.SHARE] = 1.0
    links[:, kernels.PARENT] = tree.parent
    last: dict[int, int] = {}
    for b in range(1, n):
        parent = int(tree.parent[b])
        if parent in last:
            links[last[parent], kernels.BESIDE] = b
        else:
            links[parent, kernels.DOWN] = b
        last[parent] = b
        whole = tree.exact[parent]
        usage[b, kernels.SHARE] = float(tree.exact[b] / whole) if whole else 0.0
    links[tree.leaves, kernels.LEAF] = np.arange(len(tree.leaves))
    return links, usage


def raw_run(problem: Problem, tables: Tables, drains: Int64, set_aside: dict[int, str]) -> RawRun:
    """What a kernel logged, as read-only columns."""
    log = tables.log[: tables.state[kernels.S_LOG]]
    places = tables.places[: tables.state[kernels.S_PLACES]]
    end = int(tables.state[kernels.S_T])
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
