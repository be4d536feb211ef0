"""One instant of fair share, in the words of the design: the last part of `fairshare.reference`."""

from fractions import Fraction
from math import inf

from fairshare.reference import Budget, Work, World
from fairshare.reference_rules import earliest_nodes, place, start_by_force


class Instant:
    """The starts of one instant; at most one reservation is made in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.holder: int | None = None
        self.reservation_decided = False
        self.promise: float = inf
        #: GPUs of a reserved node that others may hold beyond the promise
        self.extra: dict[int, float] = {}

    def decide(self) -> None:
        while self.evaluate(self.world.root):
            pass
        while self.start_unallocated():
            pass

    # ------------------------------------------------------------ ratios

    def ratio(self, budget: Budget) -> Fraction | float:
        """(Allocated GPU-seconds of the window + protected time ahead) / (share x capacity x window)."""
        world, window = self.world, self.world.scenario.window_s
        if budget.share == 0:
            return inf
        teams, total = budget.leaves(), 0
        for s in world.stretches:
            if s.allocated and world.works[s.job].leaf in teams:
                running = s.end < 0
                gpus = sum(s.nodes.values())
                total += gpus * max(0, (world.t if running else s.end) - max(s.start, world.t - window))
                total += gpus * max(0, s.protected_until - world.t) if running else 0
        return Fraction(total) / (budget.share * world.gpus * window)

    def hysteresis(self) -> Fraction:
        contract = self.world.contract
        if contract.hysteresis is not None:
            return Fraction(contract.hysteresis)
        return Fraction(contract.max_min_runtime_s, self.world.scenario.window_s)

    def sides(self, a: int, b: int) -> tuple[Budget, Budget]:
        """The children of the lowest common ancestor of two teams."""
        budget = self.world.root
        while True:
            side_a = next(c for c in budget.children if a in c.leaves())
            side_b = next(c for c in budget.children if b in c.leaves())
            if side_a is not side_b:
                return side_a, side_b
            budget = side_a

    # ------------------------------------------------------------ claims

    def place_in_leaf(self, work: Work) -> tuple[int, int]:
        return -work.priority, work.index

    def claims(self, work: Work, occupant: Work) -> bool:
        """Whether `work` may evict the occupant, once that is past its minimum (unallocated work at once)."""
        assert occupant.running
        if not occupant.running.allocated:
            return True
        if occupant.leaf == work.leaf:
            later = self.place_in_leaf(occupant) > self.place_in_leaf(work)
            minimum = self.world.effective_minimum
            return later and minimum(occupant) > minimum(work)
        mine, theirs = self.sides(work.leaf, occupant.leaf)
        return self.ratio(mine) + self.hysteresis() < self.ratio(theirs)

    def prey(self, work: Work) -> list[Work]:
        now = self.world.t
        running = [(w, w.running) for w in self.world.works if w.running]
        open_to_all = [
            w for w, s in running if not s.allocated or (s.protected_until <= now and s.start < now)
        ]
        return [w for w in open_to_all if self.claims(work, w)]

    # ------------------------------------------------------------ allocated work

    def evaluate(self, budget: Budget) -> bool:
        """Start the one with the best claim at or below a budget; false where none can start."""
        if budget.leaf is not None:
            return self.try_leaf(budget.leaf)
        return any(self.evaluate(child) for child in sorted(budget.children, key=self.ratio))

    def past_by_promise(self, work: Work) -> bool:
        """Whether the reservation does not concern it."""
        if self.holder is None or work.index == self.holder:
            return True
        return self.world.t + self.world.effective_minimum(work) <= self.promise

    def try_leaf(self, leaf: int) -> bool:
        waiting = [w for w in self.world.line() if w.leaf == leaf and w.minimum > 0]
        failed: list[tuple[Work, bool]] = []
        for work in sorted(waiting, key=self.place_in_leaf):
            if work.evicted_at == self.world.t:
                continue
            past = self.past_by_promise(work)
            closed = any(
                f.pools == work.pools and f.gpus <= work.gpus and (all_of_them or not past)
                for f, all_of_them in failed
            )
            if not closed and self.start_allocated(work):
                return True
            if not closed:
                failed.append((work, past))
            self.reserve(work)
        return False

    def start_allocated(self, work: Work) -> bool:
        world = self.world
        free_to_use = self.past_by_promise(work)
        started = start_by_force(
            world,
            work,
            lambda n: inf if free_to_use else self.extra.get(n, inf),
            self.prey(work),
            lambda v: (v.running.allocated, world.lost(v), v.index),
        )
        if started and not free_to_use:
            for node, gpus in work.running.nodes.items():
                self.extra[node] = self.extra.get(node, inf) - gpus
        if started and work.index == self.holder:
            self.holder, self.extra = None, {}
        return started

    # ------------------------------------------------------------ the reservation

    def reserve(self, work: Work) -> None:
        """The reservation of this instant, if `work` is the first blocked one that is large enough."""
        world = self.world
        largest = max(world.scenario.pools[p].gpus_per_node for p in work.pools)
        large = work.gpus > 1 if world.scenario.flat else work.gpus > largest
        if self.reservation_decided or not large:
            return
        self.reservation_decided = True

        def leaving(node: int) -> list[tuple[float, int]]:
            ends: list[tuple[float, int]] = []
            for w in world.occupants(node):
                assert w.running
                if not w.running.allocated:
                    end: float = world.t
                elif self.claims(work, w):
                    end = max(world.t, w.running.protected_until)
                else:
                    end = world.declared_end(w)
                ends.append((end, w.running.nodes[node]))
            return ends

        found = earliest_nodes(world, work, leaving)
        if found and found[0] - world.t <= world.contract.max_min_runtime_s:
            self.holder, (self.promise, reserved) = work.index, found
            for node, gpus in reserved.items():
                then = sum(g for end, g in leaving(node) if end <= self.promise)
                self.extra[node] = world.free(node) + then - gpus

    # ------------------------------------------------------------ unallocated work

    def start_unallocated(self) -> bool:
        world = self.world

        def fullness(leaf: int) -> Fraction | float:
            share = world.leaves[leaf].share
            running = sum(
                w.gpus for w in world.works if w.running and not w.running.allocated and w.leaf == leaf
            )
            return running / share if share else inf

        for leaf in sorted(range(len(world.leaves)), key=fullness):
            waiting = [w for w in world.line() if w.leaf == leaf and w.minimum == 0]
            for work in sorted(waiting, key=self.place_in_leaf):
                nodes = place(world, work)
                if nodes is not None:
                    world.start(work, nodes)
                    return True
        return False
