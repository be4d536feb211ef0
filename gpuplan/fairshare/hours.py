"""Exact integrals over time of what runs and what is wanted: GPU-seconds per team and hour."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.epochs import Epochs
from gpuplan.fairshare.ledger import Ledger
from gpuplan.fairshare.model import HOUR, Int64

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.raw import RawRun

#: Whole numbers below it are exact as floats, which add up several times faster.
_EXACT = 1 << 53


def integrals(
    start_s: Int64, end_s: Int64, gpus: Int64, group: Int64, n_groups: int, until_s: int, step_s: int = HOUR
) -> Int64:
    """GPU-seconds of intervals by group and step of time, int64[n_groups, ceil(until / step)].

    Parameters
    ----------
    start_s, end_s : int64[N]
        Half-open intervals, seconds, inside ``[0, until_s]``.
    gpus : int64[N]
        GPUs of each interval.
    group : int64[N]
        Row of the result that each interval adds to.
    n_groups
        Rows of the result.
    until_s
        End of time; the last step may be shorter than the others.
    step_s
        Length of a step, seconds.
    """
    steps = -(-until_s // step_s)
    wide = steps + 1  # an end at `until_s` may lie at the start of a step that is not shown
    cell, into, level = [], [], []
    for instant, sign in ((start_s, 1), (end_s, -1)):
        step = instant // step_s
        cell.append(group * wide + step)
        # from the instant to the end of its step, then in every later step in full
        into.append(sign * gpus * ((step + 1) * step_s - instant))
        level.append(sign * gpus)
    where = np.concatenate(cell)
    first = _add_up(where, np.concatenate(into), n_groups * wide).reshape(n_groups, wide)
    change = _add_up(where, np.concatenate(level), n_groups * wide).reshape(n_groups, wide)
    before = np.zeros_like(change)
    np.cumsum(change[:, :-1], axis=1, out=before[:, 1:])
    return (first + step_s * before)[:, :steps]


def _add_up(where: Int64, amounts: Int64, size: int) -> Int64:
    """Sums of whole numbers by cell, exact, int64[size]."""
    if len(amounts) and float(np.abs(amounts).max()) * len(amounts) < _EXACT:
        return np.bincount(where, amounts, size).astype(np.int64)
    found = np.zeros(size, np.int64)
    np.add.at(found, where, amounts)
    return found


@dataclass(frozen=True, slots=True)
class Hours:
    """GPU-seconds per team and step of time (see `integrals`).

    Attributes
    ----------
    start_s, length_s : int64[H]
        Start of each step, and its length (the last one may be shorter).
    allocated : int64[L, H]
        Work with a declared minimum run time above 0 that ran: charged to its team's budget.
    unallocated : int64[L, H]
        Other work that ran.
    wanted : int64[L, H]
        Running and waiting work with a declared minimum above 0: from its submission to its end.
    """

    start_s: Int64
    length_s: Int64
    allocated: Int64
    unallocated: Int64
    wanted: Int64


def kinds_of(epochs: Epochs, start_s: Int64, length_s: Int64) -> tuple[Int64, list[dict[int, int]]]:
    """Steps of time by the budgets that hold in them.

    Parameters
    ----------
    epochs
        The budgets over time.
    start_s, length_s : int64[H]
        Steps, as in `Hours`.

    Returns
    -------
    int64[H]
        Kind of each step.
    list
        Of each kind the seconds that epochs hold in it: one kind for all steps of one length within one epoch, a kind
        of its own for every step in which budgets change.
    """
    first = epochs.index(start_s)
    last = epochs.index(start_s + np.maximum(length_s - 1, 0))
    apart = np.stack((first, last, np.where(first == last, length_s, start_s)))
    # few steps differ from the one before, and only those are compared with all others
    new = np.ones(len(start_s), np.bool_)
    new[1:] = (apart[:, 1:] != apart[:, :-1]).any(axis=0)
    heads = np.flatnonzero(new)
    _, where, kind = np.unique(apart[:, heads], axis=1, return_index=True, return_inverse=True)
    steps = zip(start_s[heads[where]].tolist(), length_s[heads[where]].tolist(), strict=True)
    lasting = np.diff(np.append(heads, len(start_s)))
    return np.repeat(kind.reshape(-1).astype(np.int64), lasting), [
        epochs.seconds(start, start + length) for start, length in steps
    ]


def by_team(
    problem: "Problem", raw: "RawRun", ledger: Ledger, step_s: int = HOUR, teams: range | None = None
) -> Hours:
    """What ran and what was wanted, by team and step of time.

    Parameters
    ----------
    step_s
        Length of a step, seconds.
    teams
        Only these rows of `Tree.leaves` (all, where it is None).
    """
    rows = range(len(problem.tree.leaves)) if teams is None else teams
    n = len(rows)
    stretches, jobs = raw.stretches, problem.jobs
    team = problem.team[stretches.job] - rows.start
    charged = ledger.charged[stretches.job]
    mine = (team >= 0) & (team < n)
    ran = mine & (stretches.end_s > stretches.start_s)
    group = np.where(charged, team, team + n)[ran]
    both = integrals(
        stretches.start_s[ran],
        stretches.end_s[ran],
        jobs.gpus[stretches.job[ran]],
        group,
        2 * n,
        raw.end_s,
        step_s,
    )
    of_job = problem.team - rows.start
    asks = ledger.charged & ledger.counted & (of_job >= 0) & (of_job < n)
    wanted = integrals(
        jobs.submit_s[asks], ledger.gone_s[asks], jobs.gpus[asks], of_job[asks], n, raw.end_s, step_s
    )
    start = np.arange(both.shape[1], dtype=np.int64) * step_s
    length = np.minimum(start + step_s, raw.end_s) - start
    return Hours(start, length, both[:n], both[n:], wanted)
