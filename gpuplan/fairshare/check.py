"""Rules that a run must keep, whatever policy made it: violations as sentences.

It shares no code with the kernels: everything is recomputed from the jobs and the stretches of running.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.model import NEVER, Bools, Drain, Int64
from gpuplan.fairshare.raw import FINISHED, PREEMPTED, RUNNING, SHUT_DOWN
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.raw import RawRun

#: Violations of one rule that are spelled out; the rest are counted.
SHOWN = 5


def check(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    """Violations of the rules of a run, a sentence each; none for a legal one.

    Parameters
    ----------
    problem, raw
        The scenario as arrays, and what the policy did.
    policy
        Its name; the rules of policies are in `gpuplan.fairshare.check_policies`.
    """
    from gpuplan.fairshare import check_policies

    if shapes := _shapes(problem, raw):
        return shapes  # nothing else can be looked at
    found: list[str] = []
    for rule in (_times, _places, _capacity, _turns, _work, _protection, _drains):
        found += rule(problem, raw)
    found += _ends(problem, raw, check_policies.may_wait_for_ever(problem, policy))
    return found + check_policies.violations(problem, policy, raw)


def sentences(rows: Iterable[int], say: Callable[[int], str]) -> list[str]:
    """The first violations of a rule as sentences, the others counted."""
    listed = list(rows)
    found = [say(row) for row in listed[:SHOWN]]
    if len(listed) > SHOWN:
        found.append(f"... and {len(listed) - SHOWN:,} more like the last one.")
    return found


def named(problem: "Problem", raw: "RawRun", stretch: int) -> str:
    """A stretch in a sentence: ``Job 'a' from 10 to 20 s``."""
    rows = raw.stretches
    job = problem.jobs.name[rows.job[stretch]]
    return f"Job {shorten(str(job))!r} from {rows.start_s[stretch]} to {rows.end_s[stretch]} s"


def by_job(raw: "RawRun") -> Int64:
    """Stretches by job, then in their order, int64[S]."""
    return np.argsort(raw.stretches.job, kind="stable")


def _shapes(problem: "Problem", raw: "RawRun") -> list[str]:
    rows, n = raw.stretches, len(raw.stretches)
    found = []
    columns = (
        rows.start_s, rows.end_s, rows.overhead_s, rows.kept_s, rows.allocated, rows.protected_until_s, rows.outcome
    )  # fmt: skip
    if any(len(column) != n for column in columns):
        found.append("The columns of the stretches differ in length.")
    if n and not (rows.job.min() >= 0 and rows.job.max() < len(problem.jobs)):
        found.append("A stretch is of no job.")
    if not len(rows.place_stretch) == len(rows.place_node) == len(rows.place_gpus):
        found.append("The columns of the places differ in length.")
    elif len(rows.place_stretch):
        known = (rows.place_stretch >= 0) & (rows.place_stretch < n)
        known &= (rows.place_node >= 0) & (rows.place_node < len(problem.node_gpus))
        if not known.all():
            found.append("A place is of no stretch, or on no node.")
    if len(raw.repair_start_s) != len(problem.scenario.drains):
        found.append("The repairs are not as many as the drains.")
    return found


def _times(problem: "Problem", raw: "RawRun") -> list[str]:
    """Nothing before its submission, after the end, or backwards; rows by start."""
    rows, jobs = raw.stretches, problem.jobs
    found = sentences(
        np.flatnonzero(rows.start_s < jobs.submit_s[rows.job]),
        lambda s: f"{named(problem, raw, s)} starts before its submission at {jobs.submit_s[rows.job[s]]} s.",
    )
    found += sentences(
        np.flatnonzero(rows.end_s < rows.start_s),
        lambda s: f"{named(problem, raw, s)} ends before it starts.",
    )
    found += sentences(
        np.flatnonzero(rows.end_s > raw.end_s),
        lambda s: f"{named(problem, raw, s)} ends after the run, which ends at {raw.end_s} s.",
    )
    if len(rows) and (np.diff(rows.start_s) < 0).any():
        found.append("The stretches are not in order of their start.")
    if raw.end_s > problem.until_s:
        found.append(f"The run ends at {raw.end_s} s, after its horizon of {problem.until_s} s.")
    return found


def _places(problem: "Problem", raw: "RawRun") -> list[str]:
    """Every stretch has its GPUs, in one pool of a type that it accepts, on one node or on whole nodes and one more."""
    rows, jobs, n = raw.stretches, problem.jobs, len(raw.stretches)
    gpus = jobs.gpus[rows.job]
    total, nodes, whole = (np.zeros(n, np.int64) for _ in range(3))
    np.add.at(total, rows.place_stretch, rows.place_gpus)
    np.add.at(nodes, rows.place_stretch, 1)
    np.add.at(whole, rows.place_stretch, rows.place_gpus == problem.node_gpus[rows.place_node])
    found = sentences(
        np.flatnonzero(total != gpus),
        lambda s: f"{named(problem, raw, s)} holds {total[s]} GPUs and wants {gpus[s]}.",
    )
    found += sentences(
        np.unique(rows.place_stretch[rows.place_gpus <= 0]),
        lambda s: f"{named(problem, raw, s)} holds no GPU of a node that it is on.",
    )
    pair = rows.place_stretch * len(problem.node_gpus) + rows.place_node
    if len(np.unique(pair)) != len(pair):
        found.append("A stretch has two rows for one node.")
    pool = problem.node_pool[rows.place_node]
    first = np.full(n, -1, np.int64)
    first[rows.place_stretch] = pool
    found += sentences(
        np.unique(rows.place_stretch[pool != first[rows.place_stretch]]),
        lambda s: f"{named(problem, raw, s)} is spread over two pools.",
    )
    sizes = np.array([p.gpus_per_node for p in problem.scenario.pools], np.int64)
    size = sizes[first]
    gang = np.where(gpus <= size, (nodes != 1), (whole != gpus // size) | (nodes != -(-gpus // size)))
    found += sentences(
        np.flatnonzero((first >= 0) & gang),
        lambda s: (
            f"{named(problem, raw, s)} has {gpus[s]} GPUs on {nodes[s]} nodes of {size[s]}, {whole[s]} of them "
            "whole: it must be on one node, or on whole nodes and at most one more."
        ),
    )
    found += sentences(
        np.flatnonzero(jobs.one_node[rows.job] & (nodes > 1)),
        lambda s: f"{named(problem, raw, s)} refuses to be spread and is on {nodes[s]} nodes.",
    )
    types = [p.gpu for p in problem.scenario.pools]
    wanted, code = np.unique(jobs.gpu.astype(str), return_inverse=True)
    fits = np.array(
        [[not want or kind in want.split("|") for kind in types] for want in wanted.tolist()], bool
    )
    wrong = (first >= 0) & ~fits[code[rows.job], first] if len(jobs) else np.zeros(n, bool)
    found += sentences(
        np.flatnonzero(wrong),
        lambda s: (
            f"{named(problem, raw, s)} runs on {types[first[s]]!r} and wants {jobs.gpu[rows.job[s]]!r}."
        ),
    )
    return found


def peaks(at: Int64, start_s: Int64, end_s: Int64, amount: Int64, n: int) -> tuple[Int64, Int64]:
    """Highest sum of amounts over time, and its instant, of each group (ends before starts at one instant)."""
    some = end_s > start_s
    at, start_s, end_s, amount = at[some], start_s[some], end_s[some], amount[some]
    group = np.concatenate([at, at])
    when = np.concatenate([start_s, end_s])
    change = np.concatenate([amount, -amount])
    order = np.lexsort((change, when, group))
    group, when = group[order], when[order]
    level = np.cumsum(change[order])  # every group sums to zero, so the next one starts at zero
    high, instant = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.maximum.at(high, group, level)
    top = np.flatnonzero(level == high[group])[::-1]
    instant[group[top]] = when[top]
    return high, instant


def _capacity(problem: "Problem", raw: "RawRun") -> list[str]:
    """No node has more GPUs in use than it has."""
    rows = raw.stretches
    high, when = peaks(
        rows.place_node,
        rows.start_s[rows.place_stretch],
        rows.end_s[rows.place_stretch],
        rows.place_gpus,
        len(problem.node_gpus),
    )
    return sentences(
        np.flatnonzero(high > problem.node_gpus),
        lambda x: f"Node {x} has {high[x]} GPUs in use at {when[x]} s; it has {problem.node_gpus[x]}.",
    )


def _turns(problem: "Problem", raw: "RawRun") -> list[str]:
    """One stretch of a job at a time; none after its end, none at the instant of its interruption."""
    rows, order = raw.stretches, by_job(raw)
    before, after = order[:-1], order[1:]
    same = rows.job[before] == rows.job[after]
    before, after = before[same], after[same]
    gap = rows.start_s[after] - rows.end_s[before]
    ended = (rows.outcome[before] == FINISHED) | (rows.outcome[before] == RUNNING)
    found = sentences(
        after[(gap < 0)],
        lambda s: f"{named(problem, raw, s)} starts while an earlier stretch of it still runs.",
    )
    found += sentences(
        after[(gap == 0) & ~ended],
        lambda s: f"{named(problem, raw, s)} starts again at the instant of its interruption.",
    )
    found += sentences(
        after[ended],
        lambda s: f"{named(problem, raw, s)} starts although an earlier stretch had finished it.",
    )
    aside = np.zeros(len(problem.jobs), bool)
    aside[[*problem.set_aside, *raw.set_aside]] = True
    return found + sentences(
        np.flatnonzero(aside[rows.job]), lambda s: f"{named(problem, raw, s)} runs and was set aside."
    )


def _work(problem: "Problem", raw: "RawRun") -> list[str]:
    """Work adds up: restarts cost what they cost, checkpoints keep what they keep, what finished ran in full."""
    rows, jobs = raw.stretches, problem.jobs
    contract = problem.scenario.contract
    order = by_job(raw)
    job = rows.job[order]
    again = np.concatenate([[False], job[1:] == job[:-1]]) if len(job) else np.zeros(0, bool)
    cut = (rows.outcome == PREEMPTED) | (rows.outcome == SHUT_DOWN)
    overhead = np.zeros(len(rows), np.int64)
    overhead[order] = np.where(again, contract.restart_cost_s, 0)
    found = sentences(
        np.flatnonzero(rows.overhead_s != overhead),
        lambda s: (
            f"{named(problem, raw, s)} pays {rows.overhead_s[s]} s for its start; it costs {overhead[s]} s."
        ),
    )
    # progress of earlier stretches: sums so far, less the sum at the job's first stretch
    kept = rows.kept_s[order]
    so_far = np.cumsum(kept) - kept
    first = np.maximum.accumulate(np.where(again, 0, np.arange(len(order)))) if len(order) else order
    done = np.empty(len(rows), np.int64)
    done[order] = so_far - so_far[first]
    work = np.maximum(rows.end_s - rows.start_s - overhead, 0)
    every = contract.checkpoint_every_s
    saved = (done + work) // every * every - done if every > 0 else work
    right = np.where(cut, np.where(jobs.resumable[rows.job], np.maximum(saved, 0), 0), work)
    found += sentences(
        np.flatnonzero(rows.kept_s != right),
        lambda s: (
            f"{named(problem, raw, s)} keeps {rows.kept_s[s]} s of its work, where {right[s]} s are kept."
        ),
    )
    run = jobs.run_s[rows.job]
    finished = rows.outcome == FINISHED
    found += sentences(
        np.flatnonzero(finished & (done + work != run)),
        lambda s: (
            f"{named(problem, raw, s)} finishes with {done[s] + work[s]} s of work done, of {run[s]} s."
        ),
    )
    # at one instant what ends comes first: work that is done is finished, not interrupted
    found += sentences(
        np.flatnonzero(~finished & (done + work > run)),
        lambda s: (
            f"{named(problem, raw, s)} has done {done[s] + work[s]} s of work, more than its {run[s]} s."
        ),
    )
    return found


def _protection(problem: "Problem", raw: "RawRun") -> list[str]:
    """The minimum run time, granted anew at each start: min(declared, cap, limit); no preemption inside it."""
    rows, jobs = raw.stretches, problem.jobs
    cap = problem.scenario.contract.max_min_runtime_s
    minimum = np.minimum(np.minimum(jobs.minimum_s, cap), jobs.limit_s)[rows.job]
    until = rows.protected_until_s
    found = sentences(
        np.flatnonzero((until != rows.start_s) & (until != rows.start_s + minimum)),
        lambda s: (
            f"{named(problem, raw, s)} is protected until {until[s]} s; its minimum run time is {minimum[s]} s."
        ),
    )
    return found + sentences(
        np.flatnonzero((rows.outcome == PREEMPTED) & (rows.end_s < until)),
        lambda s: (
            f"{named(problem, raw, s)} is preempted inside its minimum run time, which lasts to {until[s]} s."
        ),
    )


def _drains(problem: "Problem", raw: "RawRun") -> list[str]:
    """A host that drains takes no work until its repair is over; it is repaired empty, for as long as it takes."""
    rows = raw.stretches
    found: list[str] = []
    host = np.zeros(len(rows), bool)
    for k, drain in enumerate(problem.scenario.drains):
        there: Int64 = np.unique(rows.place_stretch[rows.place_node == drain.node])
        host[there[rows.end_s[there] >= drain.from_s]] = True
        found += _drain(problem, raw, drain, there, int(raw.repair_start_s[k]), int(raw.repair_end_s[k]))
    return found + sentences(
        np.flatnonzero((rows.outcome == SHUT_DOWN) & ~host),
        lambda s: f"{named(problem, raw, s)} is shut down, but no host of it was to be repaired.",
    )


def _drain(
    problem: "Problem", raw: "RawRun", drain: Drain, there: Int64, began: int, ended: int
) -> list[str]:
    """One drain, with the stretches on its node and the times of its repair."""
    rows, node = raw.stretches, drain.node
    started = rows.start_s[there]
    found = sentences(
        there[(started >= drain.from_s) & (started < ended)],
        lambda s: f"{named(problem, raw, s)} starts on node {node}, which drains since {drain.from_s} s.",
    )
    if began >= NEVER:
        return found
    busy: Bools = (rows.end_s[there] > began) & (started < min(began + drain.repair_s, raw.end_s))
    found += sentences(
        there[busy], lambda s: f"{named(problem, raw, s)} is on node {node}, whose repair began at {began} s."
    )
    if began < drain.from_s:
        found.append(f"The repair of node {node} begins at {began} s, before its drain at {drain.from_s} s.")
    if ended < NEVER and ended != began + drain.repair_s:
        found.append(f"The repair of node {node} takes {ended - began} s instead of {drain.repair_s} s.")
    return found


def _ends(problem: "Problem", raw: "RawRun", may_wait: Bools) -> list[str]:
    """What still runs runs to the end; without a horizon everything finishes that was not set aside (nor may wait).

    Unless the run was stopped because nothing got on: then at its end more interruptions than jobs kept nothing.
    """
    rows, jobs = raw.stretches, problem.jobs
    found = sentences(
        np.flatnonzero((rows.outcome == RUNNING) & (rows.end_s != raw.end_s)),
        lambda s: f"{named(problem, raw, s)} is said to run still, and the run ends at {raw.end_s} s.",
    )
    if raw.stopped:
        got_on = rows.end_s[(rows.kept_s > 0) & (rows.outcome != RUNNING) | (rows.outcome == FINISHED)].max(
            initial=-1
        )
        vain = int(((rows.outcome == PREEMPTED) & (rows.end_s > got_on)).sum())
        if vain < len(jobs):
            found.append(f"The run was stopped, and only {vain} interruptions in a row kept nothing.")
        return found
    if problem.until_s < NEVER:
        return found
    done = np.zeros(len(jobs), bool)
    done[rows.job[rows.outcome == FINISHED]] = True
    done[[*problem.set_aside, *raw.set_aside]] = True
    return found + sentences(
        np.flatnonzero(~(done | may_wait)),
        lambda j: f"Job {shorten(str(jobs.name[j]))!r} has not finished, and the run is over.",
    )
