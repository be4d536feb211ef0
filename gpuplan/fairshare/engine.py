"""From a problem to a kernel's arguments, and from its log to a `RawRun`."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare import kernels
from gpuplan.fairshare.kernels import D_BEGAN, D_ENDED, D_FROM, D_NEXT, D_NODE, D_REPAIR
from gpuplan.fairshare.model import NEVER, Floats, Int64
from gpuplan.fairshare.problem import Problem
from gpuplan.fairshare.raw import RawRun, Stretches
from gpuplan.fairshare.tree import Tree

#: Slurm decays usage in steps of this many seconds (its default ``PriorityCalcPeriod``).
DECAY_STEP_S = 300

#: Answers of `gpuplan.fairshare.kernels.run_contract`.
PAUSED, STUCK = 1, 2

#: Why a run was stopped before its end.
STUCK_WORDS = (
    "Stopped here: work is preempted again and again before it gets on, and without more time nothing will finish. "
    "Work that cannot resume, or whose minimum run time is shorter than the time between checkpoints, needs a longer "
    "minimum run time."
)


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
        `STRICT`, `SKIP`, `PER_TYPE`, `EASY` or `PER_LINE` of the kernels.
    order : int64[J], optional
        Jobs by their place in line (those of line 0 first); by arrival where there is none.
    lines : int64[J], optional
        Line of each job; one line for all where there is none.
    quota : int64[E, L], optional
        GPUs that each line, a team's, may hold from each of ``problem.epochs`` on.
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
    rows = np.zeros((n_lines, kernels.LINE_COLUMNS), np.int64)
    rows[:, kernels.LOW] = rows[:, kernels.HIGH] = first
    rows[:, kernels.QUOTA] = NEVER if quota is None else quota[0]
    rows[:, kernels.RANKED] = np.arange(n_lines)
    tree, usage = (
        budgets(problem.tree)
        if fair_tree
        else (np.zeros((0, kernels.BUDGET_COLUMNS), np.int64), np.zeros((0, 3)))
    )
    changes, changed = no_changes()
    if fair_tree or quota is not None:
        rows[:, kernels.BUDGET] = problem.tree.leaves
        changes, changed = changes_of_lines(problem, quota)
    table = work(problem, aside, by, line)
    keys = np.zeros((len(by), 2), np.int64)
    if kind in (kernels.SKIP, kernels.EASY):
        keys[:, kernels.KEY_A] = problem.jobs.gpus[by]
    if kind == kernels.EASY:
        keys[:, kernels.KEY_B] = bit_lengths(problem.jobs.limit_s[by])
    drains = drain_table(problem)
    tables = Tables(problem)
    fails = np.zeros((2, 1 + table[:, kernels.GROUP].max(initial=0)), np.int64)
    still = (table, *nodes(problem), by, rows, *empty_set(len(by)), keys, tree, usage, changes, changed)
    decay = 0.5 ** (DECAY_STEP_S / problem.scenario.window_s)
    while kernels.run_queue(
        kind,
        rules(problem),
        decay,
        tables.state,
        problem.jobs.submit_s,
        *still,
        drains,
        fails,
        *tables.growing,
    ):
        tables.grow()
    return raw_run(problem, tables, drains, aside)


def conservative(problem: Problem) -> RawRun:
    """Run conservative backfill (see `gpuplan.fairshare.kernels.run_conservative`)."""
    n, n_pools = len(problem.jobs), len(problem.scenario.pools)
    table = work(problem, problem.set_aside, np.arange(n), np.zeros(n, np.int64))
    drains = drain_table(problem)
    tables = Tables(problem)
    room = 2 * (problem.gpus + 2 * kernels.PROMISES) + 8
    still = (table, *nodes(problem), *empty_set(n), np.zeros((n, 2), np.int64), drains, np.full((n, 2), -1))
    scratch = (np.zeros((problem.gpus + 1, 2), np.int64), np.zeros((n_pools * room, 2), np.int64))
    rows = np.zeros(n_pools, np.int64)
    while kernels.run_conservative(
        rules(problem), tables.state, problem.jobs.submit_s, *still, *scratch, rows, *tables.growing
    ):
        tables.grow()
    return raw_run(problem, tables, drains, problem.set_aside)


def contract(problem: Problem, *, tiers: bool = False) -> RawRun:
    """Run budgets with time slicing, or priority tiers (see `gpuplan.fairshare.kernels.run_contract`)."""
    jobs, n = problem.jobs, len(problem.jobs)
    limit = problem.scenario.behaviour.opt_out_limit_gpus
    opted = jobs.opted_out & (jobs.gpus <= limit) if tiers else np.zeros(n, np.bool_)
    line = np.where(opted, problem.team + 1, 0) if tiers else problem.team
    n_lines = len(problem.tree.leaves) + tiers
    loose = np.zeros(n, np.bool_) if tiers else jobs.minimum_s == 0
    masks = np.unique(problem.mask, return_inverse=True)[1].astype(np.int64)
    ranks = np.empty(n, np.int64)
    ranks[np.lexsort((np.arange(n), -jobs.priority))] = np.arange(n)
    columns = (line, loose, jobs.gpus, masks)
    order = np.lexsort((ranks, *reversed(columns)))
    table = work(problem, problem.set_aside, order, line)
    table[:, kernels.RANK], table[:, kernels.PRIORITY], table[:, kernels.OPTED] = ranks, jobs.priority, opted
    groups, rows = groups_of(table, order, columns, n_lines)
    rows[:, kernels.QUOTA] = np.where(np.arange(n_lines) > 0, limit, NEVER) if tiers else NEVER
    links, weights, shares = budget_weights(problem, problem.tree)
    changes, changed = no_changes() if tiers else changes_of_budgets(problem)
    if not tiers:
        rows[:, kernels.BUDGET] = problem.tree.leaves
    keys = np.zeros((n, 2), np.int64)
    keys[:, kernels.KEY_A] = problem.minimum_s[order]
    drains = drain_table(problem)
    tables = Tables(problem, n_lines)
    scratch = (
        np.zeros((2, 1 + masks.max(initial=0)), np.int64),
        np.zeros(n + 1, np.int64),
        np.zeros((problem.gpus + 1, 2), np.int64),
    )
    budget = (links, weights, shares, changes, changed)
    still = (table, *nodes(problem), order, rows, groups, *empty_set(n), keys, *budget, drains)
    status = PAUSED
    while status == PAUSED:
        status = kernels.run_contract(
            int(tiers),
            rules(problem),
            tables.state,
            jobs.submit_s,
            *still,
            *scratch,
            *tables.growing,
            tables.shields,
            tables.points,
        )
        if status == PAUSED:
            tables.grow()
    return raw_run(problem, tables, drains, problem.set_aside, STUCK_WORDS if status == STUCK else "")


def groups_of(
    table: Int64, order: Int64, columns: Sequence[npt.NDArray[Any]], n_lines: int
) -> tuple[Int64, Int64]:
    """The kernels' tables of groups and lines; the group of each job is written.

    ``columns``: line, unallocated, GPUs and mask of each job, by which ``order`` sorts.
    """
    sorted_columns = [column[order] for column in columns]
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in sorted_columns:
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    groups = np.full((len(first), kernels.GROUP_COLUMNS), -1, np.int64)
    groups[:, kernels.G_FROM] = first
    groups[:, kernels.G_TO] = np.append(first[1:], len(order))
    groups[:, kernels.G_GPUS] = sorted_columns[2][first]
    groups[:, kernels.G_MASK] = sorted_columns[3][first]
    table[order, kernels.GROUP] = np.cumsum(new) - 1
    rows = np.zeros((n_lines, kernels.LINE_COLUMNS), np.int64)
    kinds = 2 * sorted_columns[0][first] + sorted_columns[1][first]
    rows[:, kernels.FROM] = np.searchsorted(kinds, 2 * np.arange(n_lines))
    rows[:, kernels.MIDDLE] = np.searchsorted(kinds, 2 * np.arange(n_lines) + 1)
    rows[:, kernels.TO] = np.searchsorted(kinds, 2 * np.arange(n_lines) + 2)
    rows[:, kernels.LAST] = rows[:, kernels.TAIL] = np.arange(n_lines)
    rows[:, kernels.OLD] = -1
    return groups, rows


def budget_weights(problem: Problem, tree: Tree) -> tuple[Int64, Floats, Floats]:
    """Links of the budgets, what sorts them, shares of the leaves (see `gpuplan.fairshare.kernels.run_contract`).

    Weights are whole numbers, so that equal ratios are equal numbers: a quotient of whole numbers is rounded correctly.
    """
    n = len(tree.path)
    links = budgets(tree)[0]
    links[:, kernels.DEPTH :] = 0
    weights = np.zeros((n, 3))
    children: dict[int, list[int]] = {}
    for b in range(1, n):
        links[b, kernels.DEPTH] = links[tree.parent[b], kernels.DEPTH] + 1
        children.setdefault(int(tree.parent[b]), []).append(b)
    capacity = Fraction(problem.gpus * problem.scenario.window_s)
    for parent, below in children.items():
        whole = whole_numbers([tree.among[b] for b in below])
        if not tree.exact[parent]:
            continue  # without a share the ratio is infinite, whatever the weight
        weights[below, kernels.WEIGHT] = [float(number) for number in whole]
        if any(whole):
            gap = Fraction(problem.hysteresis) * capacity * tree.exact[parent] / sum(whole)
            weights[parent, kernels.GAP] = float(gap)
    weights[0, kernels.WEIGHT] = 1.0
    return links, weights, np.array(whole_numbers([tree.exact[b] for b in tree.leaves.tolist()]), np.float64)


def no_changes() -> tuple[Int64, Floats]:
    """The kernels' tables of changes where budgets stay as they are."""
    return np.zeros(0, np.int64), np.zeros((0, 0, kernels.CHANGE_COLUMNS))


def changes_of_budgets(problem: Problem) -> tuple[Int64, Floats]:
    """When budgets change, and what sorts them from then on (see `gpuplan.fairshare.kernels.run_contract`)."""
    epochs = problem.epochs
    changed = np.zeros((len(epochs) - 1, len(problem.tree.path), kernels.CHANGE_COLUMNS))
    for rows, tree in zip(changed, epochs.trees[1:], strict=True):
        _, weights, shares = budget_weights(problem, tree)
        rows[:, kernels.N_WEIGHT] = weights[:, kernels.WEIGHT]
        rows[:, kernels.N_GAP] = weights[:, kernels.GAP]
        rows[tree.leaves, kernels.N_PART] = shares
    return epochs.start_s[1:], changed


def changes_of_lines(problem: Problem, quota: Int64 | None) -> tuple[Int64, Floats]:
    """When budgets change, and shares and quotas of teams from then on (see `gpuplan.fairshare.kernels.run_queue`)."""
    epochs = problem.epochs
    changed = np.zeros((len(epochs) - 1, len(problem.tree.path), kernels.CHANGE_COLUMNS))
    for k, tree in enumerate(epochs.trees[1:]):
        changed[k, :, kernels.N_WEIGHT] = budgets(tree)[1][:, kernels.SHARE]
        changed[k, tree.leaves, kernels.N_PART] = NEVER if quota is None else quota[k + 1]
    return epochs.start_s[1:], changed


def whole_numbers(fractions: Sequence[Fraction]) -> list[int]:
    """The smallest whole numbers in the same proportion."""
    scale = math.lcm(*(fraction.denominator for fraction in fractions))
    numbers = [int(fraction * scale) for fraction in fractions]
    divisor = math.gcd(*numbers) or 1
    return [number // divisor for number in numbers]


class Tables:
    """The tables of a run that may prove too short, and the state that outlives a pause to make them longer."""

    #: Where the state says how many rows of a table are filled.
    FILLED: ClassVar[dict[str, int]] = {
        "heap": kernels.S_HEAP,
        "log": kernels.S_LOG,
        "places": kernels.S_PLACES,
        "shields": kernels.S_SHIELDS,
        "points": kernels.S_POINTS,
    }

    def __init__(self, problem: Problem, n_lines: int = 0) -> None:
        n = len(problem.jobs)
        self.nodes = len(problem.node_gpus)
        self.state = np.zeros(kernels.STATE_COLUMNS, np.int64)
        self.heap = np.empty((4 * min(n, problem.gpus) + 64, 2), np.int64)
        self.log = np.empty((n + min(n, problem.gpus) + 64, 9), np.int64)
        self.places = np.empty((n + 8 * self.nodes, 3), np.int64)
        self.shields = np.empty((len(self.heap) if n_lines else 0, 2), np.int64)
        self.points = np.zeros((2 * n + 2 * n_lines + 64 if n_lines else 0, 4), np.int64)
        self.points[:, kernels.P_NEXT] = -1
        self.state[kernels.S_POINTS] = n_lines
        self.n_lines = n_lines

    @property
    def growing(self) -> tuple[Int64, ...]:
        """The tables as the kernels take them."""
        return self.heap, self.log, self.places

    def grow(self) -> None:
        """Whatever may not hold what one more instant adds: twice as long, and longer by that."""
        most = int(self.state[kernels.S_WAITING]) + 4 * self.nodes + self.n_lines
        for name, used in self.FILLED.items():
            table = getattr(self, name)
            if int(self.state[used]) + most > len(table):
                more = np.empty((len(table) + most, table.shape[1]), np.int64)
                setattr(self, name, np.concatenate((table, more)))


def rules(problem: Problem) -> Int64:
    """Horizon, patience, checkpoint interval, restart cost, window, and what is large in a flat pool; int64[6]."""
    contract = problem.scenario.contract
    return np.array(
        [
            problem.until_s,
            contract.max_min_runtime_s,
            contract.checkpoint_every_s,
            contract.restart_cost_s,
            problem.scenario.window_s,
            1 if problem.scenario.flat else NEVER,
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
    """The kernels' table of jobs, fresh; one row per job."""
    jobs = problem.jobs
    table = np.full((len(jobs), kernels.JOB_COLUMNS), -1, np.int64)
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
    table[:, [kernels.DONE, kernels.OWES, kernels.MARK, kernels.OPTED]] = 0
    return table


def nodes(problem: Problem) -> tuple[Int64, Int64, Int64]:
    """The kernels' tables of nodes, pools and seats, all empty."""
    size = problem.node_gpus
    table = np.zeros((len(size), kernels.NODE_COLUMNS), np.int64)
    table[:, kernels.SIZE] = table[:, kernels.FREE] = size
    table[:, kernels.POOL] = problem.node_pool
    table[1:, kernels.OFFSET] = np.cumsum(size)[:-1]
    table[:, kernels.CHAIN] = -1
    table[:, kernels.EXTRA] = NEVER
    pools = np.zeros((len(problem.pool_first), kernels.POOL_COLUMNS), np.int64)
    pools[:, kernels.FIRST] = problem.pool_first
    np.add.at(pools[:, kernels.SPARE], problem.node_pool, size)
    return table, pools, np.zeros((problem.gpus, 3), np.int64)


def drain_table(problem: Problem) -> Int64:
    """Drains as the kernels take them; int64[D, 7]."""
    drains = problem.scenario.drains
    table = np.full((len(drains), 7), NEVER, np.int64)
    for row, drain in zip(table, drains, strict=True):
        row[[D_NODE, D_FROM, D_REPAIR, kernels.D_STATE]] = drain.node, drain.from_s, drain.repair_s, 0
        row[D_NEXT] = drain.from_s
    return table


def budgets(tree: Tree) -> tuple[Int64, Floats]:
    """The kernels' tables of budgets: links; weight among siblings and room for usage float64[B, 3]."""
    n = len(tree.path)
    links = np.full((n, kernels.BUDGET_COLUMNS), -1, np.int64)
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
    links[tree.leaves, kernels.LEAF] = np.arange(len(tree.leaves))
    for parent in range(n):
        below = np.flatnonzero(tree.parent == parent)
        usage[below, kernels.SHARE] = whole_numbers([tree.among[b] for b in below.tolist()])
    return links, usage


def raw_run(
    problem: Problem, tables: Tables, drains: Int64, set_aside: dict[int, str], stopped: str = ""
) -> RawRun:
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
    return RawRun(Stretches(*kept), end, began, ended, set_aside, stopped)
