"""A slow and obvious second simulator of shared clusters, written from the design texts alone.

Lists and dictionaries; everything is evaluated again at every instant; ratios are exact fractions. Shares nothing
with the kernels, the policies or the checker. This file moves the clock; `reference_rules` decides who starts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

from gpuplan.fairshare.model import NEVER, BudgetNode, FairshareScenario

FINISHED, PREEMPTED, SHUT_DOWN, RUNNING = range(4)

#: More instants than any tiny scenario has: a run that reaches them would never end.
TOO_MANY = 20_000

SLURM_STEP_S = 300

#: Policies that know shares.
SHARING = ("fair-share", "fair-tree", "static-partitions")


@dataclass
class Stretch:
    job: int
    name: str
    start: int
    end: int
    outcome: int
    allocated: bool
    protected_until: int
    nodes: dict[int, int]
    overhead: int
    kept: int


@dataclass
class Work:
    """A job, and what has become of it."""

    index: int
    name: str
    leaf: int
    submit: int
    gpus: int
    run: int
    limit: int
    minimum: int
    resumable: bool
    priority: int
    one_node: bool
    opted_out: bool
    pools: tuple[int, ...]
    waiting: bool = False
    running: Stretch | None = None
    progress: int = 0
    interrupted: bool = False
    evicted_at: int | None = None


@dataclass
class Budget:
    """A node of the budget tree; `share` of everything, `among` its siblings."""

    share: Fraction
    among: Fraction
    children: list["Budget"] = field(default_factory=list)
    leaf: int | None = None

    def leaves(self) -> list[int]:
        """Teams at and below it."""
        return [self.leaf] if self.leaf is not None else [x for c in self.children for x in c.leaves()]


@dataclass
class Draining:
    """A drain: not begun, waiting for its node to be empty, under repair, or over."""

    node: int
    from_s: int
    repair_s: int
    begun: bool = False
    repair_start: int | None = None
    repair_end: int | None = None
    over: bool = False


@dataclass
class Outcome:
    """What `reference` hands back."""

    stretches: list[Stretch]
    end: int
    repairs: list[tuple[int, int]]
    set_aside: set[int]


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Digits count by their value: job9 before job10."""
    return tuple((0, int(p), p) if p.isdigit() else (1, 0, p) for p in re.split(r"(\d+)", text))


def budget_tree(top: tuple[BudgetNode, ...]) -> tuple[Budget, list[Budget], list[str]]:
    """The root, the leaves in the tree's order, and their paths."""
    leaves: list[Budget] = []
    paths: list[str] = []

    def grow(parent: Budget, above: str, siblings: tuple[BudgetNode, ...]) -> None:
        total = sum((Fraction(s.weight) for s in siblings), Fraction(0))
        for sibling in sorted(siblings, key=lambda s: natural(s.name)):
            among = Fraction(sibling.weight) / total if total else Fraction(0)
            child = Budget(parent.share * among, among)
            parent.children.append(child)
            if sibling.children:
                grow(child, f"{above}{sibling.name}/", sibling.children)
            else:
                child.leaf = len(leaves)
                leaves.append(child)
                paths.append(above + sibling.name)

    root = Budget(Fraction(1), Fraction(1))
    grow(root, "", top)
    return root, leaves, paths


def among_siblings(budget: Budget) -> list[Fraction]:
    """Shares among siblings of everything below a budget."""
    return [share for child in budget.children for share in (child.among, *among_siblings(child))]


def with_weights(
    siblings: tuple[BudgetNode, ...], weights: dict[str, float], above: str = ""
) -> tuple[BudgetNode, ...]:
    """The same budgets; those that are named by path weigh what is said there."""
    return tuple(
        BudgetNode(
            s.name,
            weights.get(above + s.name, s.weight),
            with_weights(s.children, weights, f"{above}{s.name}/"),
        )
        for s in siblings
    )


class World:
    """The cluster, its jobs and the clock."""

    def __init__(self, scenario: FairshareScenario, policy: str) -> None:
        self.scenario, self.policy, self.contract = scenario, policy, scenario.contract
        self.root, self.leaves, self.paths = budget_tree(scenario.budget)
        self.changes = self.read_changes() if policy in SHARING else []
        self.size = [pool.gpus_per_node for pool in scenario.pools for _ in range(pool.nodes)]
        self.pool_of = [p for p, pool in enumerate(scenario.pools) for _ in range(pool.nodes)]
        self.gpus = sum(self.size)
        self.drains = [Draining(d.node, d.from_s, d.repair_s) for d in scenario.drains]
        self.stretches: list[Stretch] = []
        self.t = -1
        self.end = 0
        self.something_happened = False
        self.ended_early = False
        self.usage = [0.0] * len(self.leaves)
        self.reserved_start: dict[int, int | float] = {}
        self.works = self.read_jobs()
        self.set_aside = {w.index for w in self.works if not w.pools}

    def read_changes(self) -> list[tuple[int, Budget, list[Budget]]]:
        """Instants from which other shares hold, with the tree; one that gives the same shares changes nothing."""
        found: list[tuple[int, Budget, list[Budget]]] = []
        top, shares = self.scenario.budget, among_siblings(self.root)
        for change in sorted(self.scenario.budget_changes, key=lambda c: c.at_s):
            top = with_weights(top, dict(change.weights))
            root, leaves, _ = budget_tree(top)
            if among_siblings(root) != shares:
                shares = among_siblings(root)
                found.append((change.at_s, root, leaves))
        return found

    def read_jobs(self) -> list[Work]:
        jobs = self.scenario.jobs
        assert jobs is not None
        works = []
        for k in range(len(jobs)):
            gpus, one_node, types = int(jobs.gpus[k]), bool(jobs.one_node[k]), str(jobs.gpu[k])
            pools = tuple(
                p
                for p, pool in enumerate(self.scenario.pools)
                if (types == "" or pool.gpu in types.split("|"))
                and gpus <= (pool.gpus_per_node if one_node else pool.gpus)
            )
            works.append(
                Work(
                    k,
                    str(jobs.name[k]),
                    self.paths.index(jobs.team[k]),
                    int(jobs.submit_s[k]),
                    gpus,
                    int(jobs.run_s[k]),
                    int(jobs.limit_s[k]),
                    int(jobs.minimum_s[k]),
                    bool(jobs.resumable[k]),
                    int(jobs.priority[k]),
                    one_node,
                    bool(jobs.opted_out[k]) and gpus <= self.scenario.behaviour.opt_out_limit_gpus,
                    pools,
                )
            )
        return works

    # ------------------------------------------------------------ what is where

    def occupants(self, node: int) -> list[Work]:
        return [w for w in self.works if w.running and node in w.running.nodes]

    def free(self, node: int) -> int:
        return self.size[node] - sum(w.running.nodes[node] for w in self.occupants(node) if w.running)

    def usable(self, node: int) -> bool:
        """Takes new work: neither draining nor under repair."""
        return not any(d.node == node and d.begun and not d.over for d in self.drains)

    def nodes(self, pool: int) -> list[int]:
        """The nodes of a pool that take new work."""
        return [n for n in range(len(self.size)) if self.pool_of[n] == pool and self.usable(n)]

    def line(self) -> list[Work]:
        """Waiting work in order of arrival."""
        return [w for w in self.works if w.waiting and w.index not in self.set_aside]

    # ------------------------------------------------------------ clocks of one job

    def overhead(self, work: Work) -> int:
        return self.contract.restart_cost_s if work.interrupted else 0

    def true_end(self, work: Work) -> int:
        assert work.running
        return work.running.start + work.running.overhead + work.run - work.progress

    def declared_end(self, work: Work) -> float:
        """By its declared limit; of waiting work: if it started now."""
        if work.limit >= NEVER:
            return inf
        start, overhead = (self.t, self.overhead(work))
        if work.running:
            start, overhead = work.running.start, work.running.overhead
        return start + overhead + work.limit - work.progress

    def effective_minimum(self, work: Work) -> int:
        return min(work.minimum, self.contract.max_min_runtime_s, work.limit)

    def kept(self, work: Work) -> int:
        """Progress of the stretch that would outlive an interruption now."""
        assert work.running
        done = self.t - work.running.start - work.running.overhead
        every = self.contract.checkpoint_every_s
        return max(0, done // every * every) if work.resumable else 0

    def lost(self, work: Work) -> int:
        """GPU-seconds that an interruption now would lose."""
        assert work.running
        return work.gpus * (self.t - work.running.start - self.kept(work))

    # ------------------------------------------------------------ changes

    def start(self, work: Work, nodes: dict[int, int]) -> None:
        for node, gpus in nodes.items():
            assert self.usable(node)
            assert gpus <= self.free(node)
        assert sum(nodes.values()) == work.gpus
        allocated, protected_until = True, self.t
        if self.policy == "fair-share":
            allocated = work.minimum > 0
            protected_until = self.t + self.effective_minimum(work)
        stretch = Stretch(
            work.index, work.name, self.t, -1, -1, allocated, protected_until, nodes, self.overhead(work), 0
        )
        self.stretches.append(stretch)
        work.running, work.waiting = stretch, False
        self.something_happened = True

    def finish(self, work: Work) -> None:
        assert work.running
        if self.t < self.declared_end(work):
            self.ended_early = True
        work.running.end, work.running.outcome = self.t, FINISHED
        work.running.kept = work.run - work.progress
        work.running = None
        self.something_happened = True

    def interrupt(self, work: Work, outcome: int) -> None:
        assert work.running
        work.running.end, work.running.outcome, work.running.kept = self.t, outcome, self.kept(work)
        work.progress = work.progress + work.running.kept if work.resumable else 0
        work.running, work.waiting, work.interrupted, work.evicted_at = None, True, True, self.t
        self.something_happened = True

    # ------------------------------------------------------------ the clock

    def next_instant(self) -> int | None:
        times = [w.submit for w in self.works if w.index not in self.set_aside]
        for work in self.works:
            if work.running:
                times.append(self.true_end(work))
                if self.policy == "fair-share" and work.running.allocated:
                    times.append(work.running.protected_until)
        for drain in self.drains:
            times.append(drain.from_s)
            if drain.repair_end is not None:
                times.append(drain.repair_end)
            elif self.policy != "fair-share":
                times.append(drain.from_s + self.contract.max_min_runtime_s)
        times += [int(s) for s in self.reserved_start.values() if s < inf]
        stranded = any(w.waiting and w.evicted_at == self.t for w in self.works)
        found = min((time for time in times if time > self.t), default=self.t + 1 if stranded else None)
        # a change is no event of the cluster: what was evicted does not wait for it
        changes = [at for at, _, _ in self.changes if at > self.t]
        return min([*changes, *([found] if found is not None else [])], default=None)

    def run(self, starts: Callable[["World"], None]) -> None:
        until = self.scenario.until_s
        for _ in range(TOO_MANY):
            instant = self.next_instant()
            if until is not None and (instant is None or instant >= until):
                self.cut(until)
                return
            if instant is None:
                return
            self.charge(instant)
            self.t = instant
            self.something_happened = False
            self.process(starts)
            if self.something_happened:
                self.end = self.t
        raise AssertionError("the reference does not end")

    def process(self, starts: Callable[["World"], None]) -> None:
        """One instant: releases, repairs, drains, changes of budgets, arrivals, starts.

        Again while work of no length ends in it.
        """
        while True:
            self.ended_early = False
            for work in self.works:
                if work.running and self.true_end(work) == self.t:
                    self.finish(work)
            self.repair_and_drain()
            self.change_budgets()
            for work in self.works:
                if work.submit == self.t and work.index not in self.set_aside and not self.has_run(work):
                    work.waiting = True
                    self.something_happened = True
            starts(self)
            ends = any(w.running and self.true_end(w) == self.t for w in self.works)
            if not ends and not any(d.repair_end == self.t and not d.over for d in self.drains):
                return

    def has_run(self, work: Work) -> bool:
        return any(s.job == work.index for s in self.stretches)

    def repair_and_drain(self) -> None:
        for drain in self.drains:
            if drain.repair_end == self.t and not drain.over:
                drain.over = self.something_happened = True
        for drain in self.drains:
            if drain.from_s <= self.t and not drain.begun:
                drain.begun = self.something_happened = True
        draining = [d for d in self.drains if d.begun and d.repair_start is None]
        for drain in draining:
            for work in self.occupants(drain.node):
                self.clear(work, self.t >= drain.from_s + self.contract.max_min_runtime_s)
        for drain in draining:
            if not self.occupants(drain.node):
                drain.repair_start, drain.repair_end = self.t, self.t + drain.repair_s
                self.something_happened = True

    def change_budgets(self) -> None:
        """Other shares hold from now on; nobody loses GPUs by that alone, and what was used stays used."""
        for at, root, leaves in self.changes:
            if at == self.t:
                self.root, self.leaves = root, leaves
                # where nobody waits, nothing is decided
                self.something_happened |= any(w.waiting for w in self.works)

    def clear(self, work: Work, patience_is_over: bool) -> None:
        """What becomes of an occupant of a draining node."""
        assert work.running
        if self.policy == "fair-share":
            if not work.running.allocated or work.running.protected_until <= self.t:
                self.interrupt(work, PREEMPTED)
        elif self.policy == "priority-tiers" and not work.opted_out:
            self.interrupt(work, PREEMPTED)
        elif patience_is_over:
            self.interrupt(work, SHUT_DOWN)

    def cut(self, until: int) -> None:
        """The horizon: nothing happens any more."""
        self.end = until
        for work in self.works:
            if work.running:
                work.running.end, work.running.outcome = until, RUNNING
                work.running.kept = max(0, until - work.running.start - work.running.overhead)

    def charge(self, until: int) -> None:
        """Slurm's usage of every team: GPU-seconds that decay at every multiple of the step."""
        decay = 0.5 ** (SLURM_STEP_S / self.scenario.window_s)
        now = max(self.t, 0)
        while now < until:
            then = min(until, (now // SLURM_STEP_S + 1) * SLURM_STEP_S)
            for work in self.works:
                if work.running:
                    self.usage[work.leaf] += work.gpus * (then - now)
            if then % SLURM_STEP_S == 0:
                self.usage = [u * decay for u in self.usage]
            now = then


def reference(scenario: FairshareScenario, policy: str) -> Outcome:
    """The run of a scenario under a policy."""
    from fairshare.reference_rules import RULES, never_runs

    world = World(scenario, policy)
    world.set_aside |= never_runs(world)
    world.run(RULES[policy])
    repairs = [
        (NEVER if d.repair_start is None else d.repair_start, d.repair_end if d.over else NEVER)
        for d in world.drains
    ]
    return Outcome(world.stretches, world.end, repairs, world.set_aside)  # type: ignore[arg-type]
