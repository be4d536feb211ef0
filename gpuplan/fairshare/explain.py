"""What a job waits for at an instant: one paragraph for people, from the stretches of a run alone."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.explain_place import where
from gpuplan.fairshare.instant import Instant
from gpuplan.fairshare.model import Floats, Int64
from gpuplan.fairshare.ratios import Ratios
from gpuplan.fairshare.raw import OUTCOMES, PREEMPTED, SHUT_DOWN
from gpuplan.fairshare.shares import partition
from gpuplan.fairshare.words import gpus_text, nodes_text, ordinal, span
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    from gpuplan.fairshare.run import Run


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
    parts = [_head(now, j, name), _line(now, j), where(now, j)]
    return " ".join(part for part in parts if part)


def _runs(now: Instant, j: int, name: str) -> str:
    rows, t = now.run.stretches, now.t
    (s,) = now.running[rows.job[now.running] == j].tolist()
    nodes = rows.place_node[rows.place_stretch == s]
    where = "" if now.run.scenario.flat else f" on {nodes_text(nodes)}"
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
        return f"{name} ({gpus_text(gpus)}) has waited {span(t - int(jobs.submit_s[j]))}."
    last = int(mine[-1])
    how = {PREEMPTED: "was preempted", SHUT_DOWN: "was shut down for a repair"}.get(
        int(rows.outcome[last]), OUTCOMES[rows.outcome[last]]
    )
    return f"{name} ({gpus_text(gpus)}) {how} {span(t - int(rows.end_s[last]))} ago and waits to go on."


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
        part = int(partition(problem.epochs.at(now.t), problem.gpus)[team[j]])
        rows = run.stretches
        held = rows.job[now.running][team[rows.job[now.running]] == team[j]]
        holds = f"Its team holds {int(jobs.gpus[held].sum())} of its {gpus_text(part)}{_since(now)}."
        line = waiting[team[waiting] == team[j]]
        if len(problem.epochs) > 1:
            if jobs.gpus[j] > part:
                return f"It is larger than its team's part, and others may pass it until that grows. {holds}"
            line = line[jobs.gpus[line] <= part]
        return _behind(now, j, line, "in its team's line", strict=True) + f" {holds}"
    if run.policy == "sjf":
        order = waiting[np.lexsort((waiting, jobs.limit_s[waiting]))]
        return _behind(now, j, order, "by declared limit, the shortest first")
    if run.policy in ("priority-tiers", "fair-tree"):
        return _behind(now, j, now.order(waiting), "by declared priority, then submission")
    return _behind(now, j, waiting, "in line", strict=run.policy == "fifo")


def _since(now: Instant) -> str:
    """Since when the shares are what they are, in brackets; nothing where budgets never change."""
    epochs = now.run.problem.epochs
    if len(epochs) == 1:
        return ""
    k = int(epochs.index(now.t))
    if k == 0:
        return " (as at the start)"
    return f" (since the change {span(now.t - int(epochs.start_s[k]))} ago)"


def _behind(now: Instant, j: int, order: Int64, line: str, *, strict: bool = False) -> str:
    jobs = now.run.problem.jobs
    rank = int(np.flatnonzero(order == j)[0])
    if rank == 0:
        return f"It is first of {len(order)} {line}."
    first = int(order[0])
    said = f"It is {ordinal(rank + 1)} of {len(order)} {line}; first is {shorten(str(jobs.name[first]))} "
    said += f"({gpus_text(int(jobs.gpus[first]))})"
    return f"{said}, which does not fit, and nobody may pass it." if strict else f"{said}."


def _claim(now: Instant, j: int) -> str:
    """Rank in its leaf, and of its budgets among their siblings, with the ratios."""
    run, problem = now.run, now.run.problem
    jobs, tree, team = problem.jobs, problem.epochs.at(now.t), problem.team
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
        share = f"{tree.share[b]:.1%}" if len(problem.epochs) > 1 else "share"
        mine = (
            f"{shorten(tree.path[b])} has used {_ratio(ratio[b])} of its {share} of the window{_since(now)}"
        )
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


def _with(now: Instant, b: int, ratio: Floats) -> str:
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
        f"higher; {gpus_text(held)} of {problem.gpus} run inside their minimum."
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
        f"{gpus_text(int(running[team[j]]))} of such work; the least of it by share goes first."
    )
