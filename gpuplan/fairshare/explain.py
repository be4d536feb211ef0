"""What a job waits for at an instant: one paragraph for people, from the stretches of a run alone."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.blocks import fits, largest_block
from gpuplan.fairshare.ledger import S_SET_ASIDE
from gpuplan.fairshare.model import DAY, HOUR, NEVER, Bools, Int64
from gpuplan.fairshare.ratios import Ratios
from gpuplan.fairshare.raw import FINISHED, OUTCOMES, PREEMPTED, RUNNING, SHUT_DOWN
from gpuplan.fairshare.shares import partition, share_out, whole_gpus
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    import pandas as pd

    from gpuplan.fairshare.run import Run


class Instant:
    """What runs, waits and is free at an instant, after everything that happened at it.

    Attributes
    ----------
    running : int64[R]
        Stretches that run.
    runs, waits : bool[J]
        Jobs that run; jobs that were submitted, do not run and are not done.
    closed : bool[N]
        Nodes that drain or are repaired.
    free : int64[N]
        Free GPUs of nodes that take work.
    """

    def __init__(self, run: "Run", t: int) -> None:
        self.run, self.t = run, t
        problem, rows = run.problem, run.stretches
        n = len(problem.jobs)
        last = int(np.searchsorted(rows.start_s, t, "right"))
        here = (rows.end_s[:last] > t) | ((rows.end_s[:last] == run.end_s) & (rows.outcome[:last] == RUNNING))
        self.running: Int64 = np.flatnonzero(here)
        self.runs: Bools = np.zeros(n, bool)
        self.runs[rows.job[self.running]] = True
        over = np.flatnonzero((rows.end_s <= t) & (rows.outcome == FINISHED))
        done = np.zeros(n, bool)
        done[rows.job[over]] = True
        submitted = problem.jobs.submit_s <= t
        self.waits: Bools = submitted & ~self.runs & ~done & (run.ledger.state != S_SET_ASIDE)
        self.closed: Bools = np.zeros(len(problem.node_gpus), bool)
        for k, drain in enumerate(sorted(run.scenario.drains, key=lambda d: (d.from_s, d.node))):
            if drain.from_s <= t < int(run.raw.repair_end_s[k]):
                self.closed[drain.node] = True
        used = np.zeros(len(problem.node_gpus), np.int64)
        on = np.isin(rows.place_stretch, self.running)
        np.add.at(used, rows.place_node[on], rows.place_gpus[on])
        self.free: Int64 = np.where(self.closed, 0, problem.node_gpus - used)

    def order(self, of: Int64) -> Int64:
        """Waiting jobs in the order of a leaf: declared priority, submission, id."""
        return of[np.lexsort((of, -self.run.problem.jobs.priority[of]))]


def why(run: "Run", j: int, t: int) -> str:
    """What job ``j`` waits for at second ``t``: its place in line, who is before it, what is free against its need."""
    jobs = run.problem.jobs
    name = shorten(str(jobs.name[j]))
    if j in run.reasons:
        return f"{name} never runs: {run.reasons[j]}."
    if jobs.submit_s[j] > t:
        return f"{name} is not submitted yet; it comes in {span(int(jobs.submit_s[j]) - t)}."
    now = Instant(run, t)
    if now.runs[j]:
        return _runs(now, j, name)
    if not now.waits[j]:
        end = int(run.ledger.gone_s[j])
        return f"{name} finished {span(t - end)} ago, after {span(end - int(jobs.submit_s[j]))} in all."
    parts = [_head(now, j, name), _line(now, j), _place(now, j)]
    return " ".join(part for part in parts if part)


def _runs(now: Instant, j: int, name: str) -> str:
    rows, t = now.run.stretches, now.t
    (s,) = now.running[rows.job[now.running] == j].tolist()
    nodes = rows.place_node[rows.place_stretch == s]
    where = "" if now.run.scenario.flat else f" on {_nodes(nodes)}"
    said = f"{name} runs{where} for {span(t - int(rows.start_s[s]))} so far"
    left = int(rows.protected_until_s[s]) - t
    if not rows.allocated[s]:
        return f"{said}, on GPUs that nobody with a budget wanted; any allocated request may take them."
    if left > 0:
        return f"{said} and is protected for {span(left)} more."
    return f"{said}."


def _head(now: Instant, j: int, name: str) -> str:
    jobs, rows, t = now.run.problem.jobs, now.run.stretches, now.t
    gpus = int(jobs.gpus[j])
    mine = np.flatnonzero((rows.job == j) & (rows.end_s <= t))
    if not len(mine):
        return f"{name} ({_gpus(gpus)}) has waited {span(t - int(jobs.submit_s[j]))}."
    last = int(mine[-1])
    how = {PREEMPTED: "was preempted", SHUT_DOWN: "was shut down for a repair"}.get(
        int(rows.outcome[last]), OUTCOMES[rows.outcome[last]]
    )
    return f"{name} ({_gpus(gpus)}) {how} {span(t - int(rows.end_s[last]))} ago and waits to go on."


# ----------------------------------------------------------------------------- whose turn it is


def _line(now: Instant, j: int) -> str:
    """Its place in line under the run's policy, and who is first."""
    run, problem = now.run, now.run.problem
    jobs, team = problem.jobs, problem.team
    waiting = np.flatnonzero(now.waits)
    if run.policy == "fair-share":
        return _claim(now, j) if jobs.minimum_s[j] > 0 else _unallocated(now, j)
    if run.policy == "fifo-per-type":
        mine = waiting[(problem.mask[waiting] & problem.mask[j]) != 0]
        return _behind(now, j, mine, "in line for these GPUs", strict=True)
    if run.policy == "static-partitions":
        part = int(partition(problem.tree, problem.gpus)[team[j]])
        rows = run.stretches
        held = rows.job[now.running][team[rows.job[now.running]] == team[j]]
        said = _behind(now, j, waiting[team[waiting] == team[j]], "in its team's line", strict=True)
        return f"{said} Its team holds {int(jobs.gpus[held].sum())} of its {_gpus(part)}."
    if run.policy == "sjf":
        order = waiting[np.lexsort((waiting, jobs.limit_s[waiting]))]
        return _behind(now, j, order, "by declared limit, the shortest first")
    if run.policy in ("priority-tiers", "fair-tree"):
        return _behind(now, j, now.order(waiting), "by declared priority, then submission")
    return _behind(now, j, waiting, "in line", strict=run.policy == "fifo")


def _behind(now: Instant, j: int, order: Int64, line: str, *, strict: bool = False) -> str:
    jobs = now.run.problem.jobs
    rank = int(np.flatnonzero(order == j)[0])
    if rank == 0:
        return f"It is first of {len(order)} {line}."
    first = int(order[0])
    said = f"It is {ordinal(rank + 1)} of {len(order)} {line}; first is {shorten(str(jobs.name[first]))} "
    said += f"({_gpus(int(jobs.gpus[first]))})"
    return f"{said}, which does not fit, and nobody may pass it." if strict else f"{said}."


def _claim(now: Instant, j: int) -> str:
    """Rank in its leaf, and of its budgets among their siblings, with the ratios."""
    run, problem = now.run, now.run.problem
    jobs, tree, team = problem.jobs, problem.tree, problem.team
    waiting = np.flatnonzero(now.waits & (jobs.minimum_s > 0))
    order = now.order(waiting[team[waiting] == team[j]])
    said = [_behind(now, j, order, f"in {shorten(tree.teams[team[j]])}")]
    ratio = Ratios(problem, run.raw).at(np.array([now.t], np.int64))[:, 0]
    wants = np.zeros(len(tree.path), bool)
    wants[tree.leaves[np.unique(team[waiting])]] = True
    for b in range(len(wants) - 1, 0, -1):
        wants[tree.parent[b]] |= wants[b]
    path = [int(tree.leaves[team[j]])]
    while tree.parent[path[-1]] > 0:
        path.append(int(tree.parent[path[-1]]))
    for b in reversed(path):
        rivals = np.flatnonzero((tree.parent == tree.parent[b]) & wants)
        rivals = rivals[np.argsort(ratio[rivals], kind="stable")]
        rank = int(np.flatnonzero(rivals == b)[0])
        mine = f"{shorten(tree.path[b])} has used {_ratio(ratio[b])} of its share of the window"
        if len(rivals) == 1:
            said.append(f"{mine}; none of its siblings waits.")
        elif rank == 0:
            near = int(rivals[1])
            said.append(f"{mine}, the least of {len(rivals)} that wait (next: {_with(now, near, ratio)}).")
        else:
            first = int(rivals[0])
            said.append(
                f"{mine}: {ordinal(rank + 1)} of {len(rivals)} that wait, after {_with(now, first, ratio)}."
            )
    return " ".join(said) + " " + _protected(now, j)


def _with(now: Instant, b: int, ratio: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> str:
    return f"{shorten(now.run.problem.tree.path[b])} with {_ratio(ratio[b])}"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "infinitely much"


def _protected(now: Instant, j: int) -> str:
    """How much of what runs may not be preempted for anybody."""
    rows, problem = now.run.stretches, now.run.problem
    guarded = now.running[rows.protected_until_s[now.running] > now.t]
    held = int(problem.jobs.gpus[rows.job[guarded]].sum())
    return (
        f"It may preempt work past its minimum run time of budgets whose ratio is more than {problem.hysteresis:.3f} "
        f"higher; {_gpus(held)} of {problem.gpus} run inside their minimum."
    )


def _unallocated(now: Instant, j: int) -> str:
    """Work without a claim: the leaf with the least of it running, by share, goes first."""
    run, problem = now.run, now.run.problem
    jobs, tree, team, rows = problem.jobs, problem.tree, problem.team, run.stretches
    waiting = np.flatnonzero(now.waits & (jobs.minimum_s == 0))
    order = now.order(waiting[team[waiting] == team[j]])
    free = now.running[~rows.allocated[now.running]]
    running = np.zeros(len(tree.leaves), np.int64)
    np.add.at(running, team[rows.job[free]], jobs.gpus[rows.job[free]])
    said = _behind(now, j, order, f"in {shorten(tree.teams[team[j]])}")
    return (
        f"Its declared minimum is 0, so it has no claim and takes free GPUs only. {said} The team runs "
        f"{_gpus(int(running[team[j]]))} of such work; the least of it by share goes first."
    )


# ----------------------------------------------------------------------------- where it would fit


def _place(now: Instant, j: int) -> str:
    """Free GPUs and blocks of the pools that it accepts, against its need."""
    problem = now.run.problem
    pools, gpus = problem.scenario.pools, int(problem.jobs.gpus[j])
    one_node = bool(problem.jobs.one_node[j])
    mine = [p for p in range(len(pools)) if int(problem.mask[j]) >> p & 1]
    nodes = np.isin(problem.node_pool, mine)
    free, draining = now.free[nodes], int(now.closed[nodes].sum())
    total = int(free.sum())
    kinds = " or ".join(sorted({pools[p].gpu for p in mine} - {""}))
    said = f"{_gpus(total, kinds)} {'is' if total == 1 else 'are'} free"
    somewhere = any(
        fits(now.free[problem.node_pool == p], pools[p].gpus_per_node, gpus, one_node) for p in mine
    )
    if all(pools[p].nodes == 1 for p in mine):
        said += f", it wants {gpus}"
    else:
        said += f", the largest free block on one node is {largest_block(free)}, "
        said += _need(now, mine, gpus, one_node)
    if draining:
        said += f"; {draining} {'node takes' if draining == 1 else 'nodes take'} no work (drain or repair)"
    return f"{said}." + (" It would fit; it is not its turn." if somewhere else "")


def _need(now: Instant, mine: list[int], gpus: int, one_node: bool) -> str:
    """What it wants, in nodes."""
    problem = now.run.problem
    sizes = sorted({problem.scenario.pools[p].gpus_per_node for p in mine})
    if one_node or gpus <= sizes[-1]:
        return f"it wants {gpus} on one node"
    size = sizes[-1]
    empty = int((now.free[np.isin(problem.node_pool, mine)] == size).sum())
    whole, rest = divmod(gpus, size)
    more = f" and {rest} on one more" if rest else ""
    return f"it wants {whole} whole nodes of {size}{more}, {empty} {'is' if empty == 1 else 'are'} empty"


# ----------------------------------------------------------------------------- shares at an instant


def shares_at(run: "Run", t: int) -> "pd.DataFrame":
    """A row per team: nominal and present shares in GPUs, GPUs wanted (running and waiting) and running."""
    import pandas as pd

    now, problem = Instant(run, t), run.problem
    tree, team, gpus, n = problem.tree, problem.team, problem.jobs.gpus, len(problem.tree.leaves)
    running, wanted = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.add.at(running, team[now.runs], gpus[now.runs])
    asks = now.runs | now.waits
    np.add.at(wanted, team[asks], gpus[asks])
    demand = dict(zip(tree.teams, wanted.tolist(), strict=True))
    exact = share_out(problem.scenario.budget, demand, problem.gpus)
    whole = whole_gpus(exact)
    return pd.DataFrame(
        {
            "team": list(tree.teams),
            "share": tree.share[tree.leaves],
            "nominal_gpus": partition(tree, problem.gpus),
            "wanted_gpus": wanted,
            "running_gpus": running,
            "now_exact_gpus": [float(exact[path]) for path in tree.teams],
            "now_gpus": [whole[path] for path in tree.teams],
        }
    )


# ----------------------------------------------------------------------------- words


def span(seconds: int) -> str:
    """A length of time for people: 45 s, 12 min, 3.4 h, 2.1 d."""
    if seconds >= NEVER:
        return "ever"
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 2 * HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / HOUR:.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:.1f} d"


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th..."""
    last = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{last}"


def _gpus(n: int, kind: str = "") -> str:
    return f"{n:,} {kind or ('GPU' if n == 1 else 'GPUs')}"


def _nodes(nodes: Int64) -> str:
    if len(nodes) == 1:
        return f"node {nodes[0]}"
    listed = ", ".join(map(str, nodes[:4].tolist()))
    return f"nodes {listed}" + (f" and {len(nodes) - 4} more" if len(nodes) > 4 else "")
