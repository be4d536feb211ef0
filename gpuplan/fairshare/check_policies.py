"""Rules of single policies, recomputed from the stretches of running."""

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gpuplan.fairshare.check import named, sentences
from gpuplan.fairshare.model import Bools, Int64
from gpuplan.fairshare.ratios import Ratios
from gpuplan.fairshare.raw import PREEMPTED
from gpuplan.fairshare.shares import partition
from gpuplan.inputs.errors import shorten

if TYPE_CHECKING:
    from gpuplan.fairshare.problem import Problem
    from gpuplan.fairshare.raw import RawRun

#: Policies that charge work to budgets, and those that interrupt running work for other work.
BUDGETS = ("fair-share",)
PREEMPT = ("fair-share", "priority-tiers")

#: Instants of preemption that are looked at closely; of more, evenly spaced ones.
INSTANTS = 2000

#: Ratios are rounded when they are compared; so much is not held against a run.
_ROUNDING = Fraction(1, 10**9)


def violations(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    """Violations of the rules of a policy by its name; an unknown one has none of its own."""
    rules: list[Callable[[Problem, str, RawRun], list[str]]] = [_claims, _interrupts]
    if policy in ("fifo", "fifo-per-type", "static-partitions"):
        rules.append(_lines)
    if policy == "static-partitions":
        rules.append(_quotas)
    if policy == "fair-share":
        rules.append(_evictions)
    return [sentence for rule in rules for sentence in rule(problem, policy, raw)]


def may_wait_for_ever(problem: "Problem", policy: str) -> Bools:
    """Jobs that may wait when nothing is left to happen: their team's part has become too small for them."""
    if policy != "static-partitions" or len(problem.epochs) == 1:
        return np.zeros(len(problem.jobs), np.bool_)
    larger: Bools = problem.jobs.gpus > _parts(problem)[-1, problem.team]
    return larger


def _parts(problem: "Problem") -> Int64:
    """GPUs of each team from the start of each of the problem's epochs on, int64[E, L]."""
    return np.stack([partition(tree, problem.gpus) for tree in problem.epochs.trees])


def _claims(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    """With budgets, work is allocated where its declared minimum is above 0; without, all work is."""
    rows = raw.stretches
    declared = problem.jobs.minimum_s[rows.job]
    right = declared > 0 if policy in BUDGETS else np.ones(len(rows), bool)
    found = sentences(
        np.flatnonzero(rows.allocated != right),
        lambda s: (
            f"{named(problem, raw, s)} is {'' if rows.allocated[s] else 'not '}charged to its budget; "
            f"its declared minimum run time is {declared[s]} s."
        ),
    )
    if policy in BUDGETS:
        minimum = problem.minimum_s[rows.job]
        found += sentences(
            np.flatnonzero(rows.allocated & (rows.protected_until_s != rows.start_s + minimum)),
            lambda s: (
                f"{named(problem, raw, s)} is charged and not protected for its minimum of {minimum[s]} s."
            ),
        )
    return found


def _interrupts(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    if policy in PREEMPT:
        return []
    return sentences(
        np.flatnonzero(raw.stretches.outcome == PREEMPTED),
        lambda s: f"{named(problem, raw, s)} is preempted, which {policy} never does.",
    )


def _lines(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    """In a strict line nobody starts for the first time while somebody who came earlier waits for it.

    Where budgets change, a job that is larger than its team's part at that time is in nobody's way.
    """
    jobs, n = problem.jobs, len(problem.jobs)
    first = np.full(n, np.iinfo(np.int64).max)
    first[raw.stretches.job[::-1]] = raw.stretches.start_s[::-1]
    line = {"fifo": np.zeros(n, np.int64), "fifo-per-type": problem.mask}.get(policy, problem.team)
    stands = np.ones(n, bool)
    stands[[*problem.set_aside, *raw.set_aside]] = False
    rows = np.flatnonzero(stands)
    rows = rows[np.argsort(line[rows], kind="stable")]
    parts = _parts(problem) if policy == "static-partitions" and len(problem.epochs) > 1 else None
    epoch = np.zeros(n, np.int64) if parts is None else problem.epochs.index(first)
    found: list[str] = []
    for members in np.split(rows, np.flatnonzero(np.diff(line[rows])) + 1):
        start, passing = first[members], np.zeros(len(members), np.bool_)
        for k in np.unique(epoch[members]).tolist():
            small = True if parts is None else jobs.gpus[members] <= parts[k, problem.team[members]]
            latest = np.maximum.accumulate(np.where(small, start, -1))
            passing |= (epoch[members] == k) & (start < latest)
        found += sentences(
            members[passing],
            lambda j: (
                f"Job {shorten(str(jobs.name[j]))!r} starts at {first[j]} s, before one that came earlier."
            ),
        )
    return found


def _quotas(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    """No team has more GPUs in use than its part when work of it starts (a part may shrink below what runs)."""
    rows = raw.stretches
    some = np.flatnonzero(rows.end_s > rows.start_s)
    team = np.tile(problem.team[rows.job[some]], 2)
    when = np.concatenate([rows.start_s[some], rows.end_s[some]])
    gpus = problem.jobs.gpus[rows.job[some]]
    change = np.concatenate([gpus, -gpus])
    order = np.lexsort((change, when, team))  # at one instant ends come first
    team, when, change = team[order], when[order], change[order]
    level = np.cumsum(change)  # every team's changes add up to zero, so the next one starts at zero
    part = _parts(problem)[problem.epochs.index(when), team]
    above = np.flatnonzero((change > 0) & (level > part))
    high = above[np.lexsort((when[above], -level[above], team[above]))]
    _, worst = np.unique(team[high], return_index=True)
    return sentences(
        high[worst],
        lambda k: (
            f"Team {shorten(problem.tree.teams[team[k]])!r} has {level[k]} GPUs in use at {when[k]} s; its part is "
            f"{part[k]}."
        ),
    )


# ----------------------------------------------------------------------------- preemption by claim


def _evictions(problem: "Problem", policy: str, raw: "RawRun") -> list[str]:
    """Whatever was preempted gave way, on its own node, to a request with the better claim.

    Unallocated work gives way to any allocated work; allocated work to another leaf whose side of the
    tree has a ratio lower by more than the hysteresis at that moment, or to earlier work of its own
    leaf with a shorter minimum.
    """
    rows = raw.stretches
    gone = np.flatnonzero(rows.outcome == PREEMPTED)
    if not len(gone):
        return []
    instants = np.unique(rows.end_s[gone])
    if len(instants) > INSTANTS:
        instants = instants[np.linspace(0, len(instants) - 1, INSTANTS).astype(np.int64)]
    used = Ratios(problem, raw).of_budgets(instants, before=True)
    look = _Instant(problem, raw)
    guilty: list[int] = []
    by_end = gone[np.argsort(rows.end_s[gone], kind="stable")]
    begin = np.searchsorted(rows.end_s[by_end], instants)
    end = np.searchsorted(rows.end_s[by_end], instants, "right")
    for k, t in enumerate(instants.tolist()):
        guilty += look.without_claim(t, used[:, k], by_end[begin[k] : end[k]])
    return sentences(
        sorted(guilty),
        lambda s: (
            f"{named(problem, raw, s)} is preempted, and nothing that started then in its place had the better "
            "claim."
        ),
    )


class _Instant:
    """The claims of what starts at one instant, in the order of decisions."""

    def __init__(self, problem: "Problem", raw: "RawRun") -> None:
        self.problem, self.rows = problem, raw.stretches
        tree, amount = problem.tree, problem.gpus * problem.scenario.window_s
        self.parent = tree.parent.tolist()
        self.claims = [[share * amount for share in then.exact] for then in problem.epochs.trees]
        self.claim = self.claims[0]
        self.path = [self._path(leaf) for leaf in tree.leaves.tolist()]
        self.hysteresis = Fraction(problem.hysteresis) - _ROUNDING
        self.first_place = np.searchsorted(self.rows.place_stretch, np.arange(len(self.rows) + 1))

    def _path(self, leaf: int) -> list[int]:
        path = [leaf]
        while self.parent[path[-1]] > 0:
            path.append(self.parent[path[-1]])
        return path[::-1]

    def nodes(self, s: int) -> Int64:
        return self.rows.place_node[self.first_place[s] : self.first_place[s + 1]]

    def without_claim(self, t: int, used: Int64, gone: Int64) -> list[int]:
        """Of the stretches preempted at ``t`` those that nothing had a claim on."""
        rows = self.rows
        self.claim = self.claims[int(self.problem.epochs.index(t))]
        amounts = [int(u) for u in used.tolist()]
        left = set(gone.tolist())
        first = int(np.searchsorted(rows.start_s, t))
        last = int(np.searchsorted(rows.start_s, t, "right"))
        on = {s: set(self.nodes(s).tolist()) for s in left}
        for x in range(first, last):
            if not rows.allocated[x]:
                continue
            place = set(self.nodes(x).tolist())
            left -= {v for v in left if place & on[v] and self._better(x, v, amounts)}
            if not left:
                break
            gpus = int(self.problem.jobs.gpus[rows.job[x]])
            ahead = gpus * int(rows.protected_until_s[x] - t)
            for b in (0, *self.path[int(self.problem.team[rows.job[x]])]):
                amounts[b] += ahead
        return [v for v in left if not self._for_repair(v, t)]

    def _better(self, x: int, v: int, used: list[int]) -> bool:
        """Whether the request of stretch ``x`` has the better claim to the place of ``v``."""
        rows, jobs = self.rows, self.problem.jobs
        if not rows.allocated[v]:
            return True
        a, b = int(rows.job[x]), int(rows.job[v])
        mine, other = self.path[int(self.problem.team[a])], self.path[int(self.problem.team[b])]
        if mine == other:
            earlier = (-jobs.priority[a], a) < (-jobs.priority[b], b)
            return bool(earlier and self.problem.minimum_s[b] > self.problem.minimum_s[a])
        side, against = next((p, q) for p, q in zip(mine, other, strict=False) if p != q)
        if not self.claim[side]:
            return False
        if not self.claim[against]:
            return True
        return used[side] / self.claim[side] + self.hysteresis < used[against] / self.claim[against]

    def _for_repair(self, v: int, t: int) -> bool:
        """Whether a host of the stretch was draining: work past its minimum gives way to a repair."""
        return any(
            drain.node in self.nodes(v) and drain.from_s <= t for drain in self.problem.scenario.drains
        )
