"""Who starts, policy by policy, in the words of the design: the second half of `fairshare.reference`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from fairshare.reference import PREEMPTED, Budget, Work, World
from gpuplan.fairshare.model import NEVER

Nodes = dict[int, int]

# ---------------------------------------------------------------- places


def parts(gpus: int, size: int) -> tuple[int, int]:
    """Whole nodes and the GPUs on one further node."""
    return (0, gpus) if gpus <= size else divmod(gpus, size)


def place_in(world: World, work: Work, pool: int, capacity: Callable[[int], int]) -> Nodes | None:
    """Lowest empty nodes for the whole ones; best fit for what one node holds."""
    nodes = world.nodes(pool)
    size = world.scenario.pools[pool].gpus_per_node
    whole, rest = parts(work.gpus, size)
    chosen = {n: size for n in [n for n in nodes if capacity(n) == size][:whole]}
    if len(chosen) < whole:
        return None
    if rest:
        fits = [(capacity(n), n) for n in nodes if n not in chosen and capacity(n) >= rest]
        if not fits:
            return None
        chosen[min(fits)[1]] = rest
    return chosen


def place(
    world: World,
    work: Work,
    capacity: Callable[[int], int] | None = None,
    pools: Iterable[int] | None = None,
) -> Nodes | None:
    """The place in the first pool in which it fits now."""
    if work.evicted_at == world.t:
        return None
    for pool in work.pools if pools is None else pools:
        nodes = place_in(world, work, pool, capacity or world.free)
        if nodes is not None:
            return nodes
    return None


def start_if_it_fits(world: World, work: Work) -> bool:
    nodes = place(world, work)
    if nodes is not None:
        world.start(work, nodes)
    return nodes is not None


# ---------------------------------------------------------------- lines


def fifo(world: World) -> None:
    for work in world.line():
        if not start_if_it_fits(world, work):
            return


def fifo_skip(world: World) -> None:
    for work in world.line():
        start_if_it_fits(world, work)


def sjf(world: World) -> None:
    for work in sorted(world.line(), key=lambda w: (w.limit, w.index)):
        start_if_it_fits(world, work)


def fifo_per_type(world: World) -> None:
    blocked: set[int] = set()
    for work in world.line():
        nodes = place(world, work, pools=[p for p in work.pools if p not in blocked])
        if nodes is None:
            blocked |= set(work.pools)
        else:
            world.start(work, nodes)


# ---------------------------------------------------------------- backfilling


def ready_at(world: World, node: int, need: int, ends: list[tuple[float, int]]) -> float:
    """The earliest instant at which enough of a node is free, if occupants leave at `ends` (instant, GPUs)."""
    for instant in sorted({float(world.t)} | {end for end, _ in ends}):
        if world.free(node) + sum(gpus for end, gpus in ends if end <= instant) >= need:
            return instant
    raise AssertionError("a node without its occupants is empty")


def earliest_nodes(
    world: World, work: Work, ends: Callable[[int], list[tuple[float, int]]]
) -> tuple[float, Nodes] | None:
    """The promise (instant, GPUs by node) of the pool that is ready first; None where too few nodes take work."""
    best: tuple[float, Nodes] | None = None
    for pool in work.pools:
        size = world.scenario.pools[pool].gpus_per_node
        whole, rest = parts(work.gpus, size)
        nodes = world.nodes(pool)
        chosen = sorted((ready_at(world, n, size, ends(n)), n, size) for n in nodes)[:whole]
        if len(chosen) < whole:
            continue
        if rest:
            taken = [n for _, n, _ in chosen]
            others = [(ready_at(world, n, rest, ends(n)), n, rest) for n in nodes if n not in taken]
            if not others:
                continue
            chosen.append(min(others))
        promise = max(instant for instant, _, _ in chosen)
        if best is None or promise < best[0]:
            best = promise, {n: need for _, n, need in chosen}
    return best


def easy_in(world: World, line: list[Work]) -> None:
    """EASY: a reservation for the first of the line that does not fit."""
    for position, head in enumerate(line):
        if not start_if_it_fits(world, head):
            backfill(world, head, line[position + 1 :])
            return


def backfill(world: World, head: Work, others: list[Work]) -> None:
    def declared(node: int) -> list[tuple[float, int]]:
        return [(world.declared_end(w), w.running.nodes[node]) for w in world.occupants(node) if w.running]

    found = earliest_nodes(world, head, declared)
    promise, reserved = found or (inf, {})
    extra = {
        n: world.free(n) + sum(gpus for end, gpus in declared(n) if end <= promise) - need
        for n, need in reserved.items()
    }
    for work in others:
        if work.limit < NEVER and world.declared_end(work) <= promise:
            start_if_it_fits(world, work)
            continue
        nodes = place(world, work, lambda n: min(world.free(n), extra.get(n, inf)))  # type: ignore[return-value]
        if nodes is not None:
            world.start(work, nodes)
            for n in set(nodes) & set(extra):
                extra[n] -= nodes[n]


def easy(world: World) -> None:
    easy_in(world, world.line())


def conservative(world: World) -> None:
    """One flat pool: everybody holds a reservation; they are compressed when something ends early."""
    spans = world.reserved_start
    if world.ended_early:
        for work in world.line():
            if work.index in spans:
                before = spans.pop(work.index)
                spans[work.index] = min(before, earliest_span(world, work))
    for work in world.line():
        if work.index not in spans:
            spans[work.index] = earliest_span(world, work)
    for work in world.line():
        if spans[work.index] <= world.t and start_if_it_fits(world, work):
            del spans[work.index]


def earliest_span(world: World, work: Work) -> float:
    """The earliest start at which the GPUs are free for the whole declared length."""

    def length(w: Work) -> float:
        return inf if w.limit >= NEVER else w.limit

    taken = [(float(w.running.start), world.declared_end(w), w.gpus) for w in world.works if w.running]
    taken += [
        (start, start + length(world.works[k]), world.works[k].gpus)
        for k, start in world.reserved_start.items()
        if start < inf
    ]
    for start in sorted({float(world.t)} | {end for _, end, _ in taken if world.t < end < inf}):
        instants = {start} | {begin for begin, _, _ in taken if start < begin < start + length(work)}
        if all(
            sum(gpus for begin, end, gpus in taken if begin <= instant < end) + work.gpus <= world.gpus
            for instant in instants
        ):
            return int(start)
    return inf


# ---------------------------------------------------------------- monopolies


def quotas(world: World, leaves: list[Budget]) -> list[int]:
    """GPUs of every team: the largest remainder of its share, ties in the tree's order."""
    exact = [leaf.share * world.gpus for leaf in leaves]
    whole = [int(x) for x in exact]
    left = world.gpus - sum(whole)
    for k in sorted(range(len(exact)), key=lambda k: (whole[k] - exact[k], k))[:left]:
        whole[k] += 1
    return whole


def static_partitions(world: World) -> None:
    for leaf, quota in enumerate(quotas(world, world.leaves)):
        # who is larger than the part as it is now stands in nobody's way
        for work in [w for w in world.line() if w.leaf == leaf and w.gpus <= quota]:
            used = sum(w.gpus for w in world.works if w.running and w.leaf == leaf)
            if used + work.gpus > quota or not start_if_it_fits(world, work):
                break


# ---------------------------------------------------------------- preemption


@dataclass
class Raid:
    """A place that is made free by evicting work."""

    nodes: Nodes
    victims: list[Work]


def raid_in(
    world: World,
    work: Work,
    pool: int,
    most: Callable[[int], float],
    prey: list[Work],
    order: Callable[[Work], Any],
) -> Raid | None:
    """Choose nodes one by one: empty ones first, then by (allocated GPUs evicted, lost, [free,] index)."""
    size = world.scenario.pools[pool].gpus_per_node
    whole, rest = parts(work.gpus, size)
    raid = Raid({}, [])

    def further_victims(node: int, need: int) -> list[Work] | None:
        have = world.free(node) + sum(v.running.nodes.get(node, 0) for v in raid.victims if v.running)
        further: list[Work] = []
        for v in sorted((v for v in prey if v not in raid.victims), key=order):
            assert v.running
            if have < need and node in v.running.nodes:
                further.append(v)
                have += v.running.nodes[node]
        return further if have >= need else None

    def choose(need: int) -> bool:
        options = []
        for node in world.nodes(pool):
            further = None if node in raid.nodes or most(node) < need else further_victims(node, need)
            if further is None:
                continue
            free = world.free(node)
            if free >= need:
                key = (0, free, 0, 0, node)
            else:
                evicted = sum(v.gpus for v in further if v.running and v.running.allocated)
                lost = sum(world.lost(v) for v in further)
                key = (1, evicted, lost, free if whole == 0 else 0, node)
            options.append((key, node, further))
        if options:
            _, node, further = min(options, key=lambda option: option[0])
            raid.nodes[node] = need
            raid.victims += further
        return bool(options)

    if all([choose(size) for _ in range(whole)]) and (rest == 0 or choose(rest)):
        return raid
    return None


def start_by_force(
    world: World,
    work: Work,
    most: Callable[[int], float],
    prey: list[Work],
    order: Callable[[Work], Any],
) -> bool:
    """Start on free GPUs of any of its pools, else by evicting in the first pool where that makes room."""
    if work.evicted_at == world.t:
        return False
    nodes = place(world, work, lambda n: min(world.free(n), most(n)))
    if nodes is not None:
        world.start(work, nodes)
        return True
    for pool in work.pools:
        raid = raid_in(world, work, pool, most, prey, order)
        if raid is not None:
            for victim in raid.victims:
                world.interrupt(victim, PREEMPTED)
            world.start(work, raid.nodes)
            return True
    return False


def priority_tiers(world: World) -> None:
    for work in sorted(world.line(), key=lambda w: (-w.priority, w.index)):
        if work.opted_out:
            held = sum(w.gpus for w in world.works if w.running and w.opted_out and w.leaf == work.leaf)
            if held + work.gpus > world.scenario.behaviour.opt_out_limit_gpus:
                continue
        open_to_all = [w for w in world.works if w.running and not w.opted_out and w.running.start < world.t]
        prey = [w for w in open_to_all if w.priority < work.priority]
        start_by_force(world, work, lambda n: inf, prey, lambda v: (v.priority, world.lost(v), v.index))


# ---------------------------------------------------------------- Slurm's fair tree


def fair_tree(world: World) -> None:
    rank = {leaf: k for k, leaf in enumerate(fair_tree_ranks(world, world.root))}
    easy_in(world, sorted(world.line(), key=lambda w: (rank[w.leaf], -w.priority, w.index)))


def fair_tree_ranks(world: World, budget: Budget) -> list[int]:
    """Leaves depth first by descending share / share of the usage among siblings; Slurm's is 0 where the share is."""

    def used(b: Budget) -> float:
        return sum(world.usage[leaf] for leaf in b.leaves())

    def level(b: Budget) -> float | Fraction:
        if b.among == 0:
            return 0
        return b.among / Fraction(used(b)) if used(b) else inf

    ordered = sorted(budget.children, key=level, reverse=True)
    return [leaf for b in ordered for leaf in ([b.leaf] if b.leaf is not None else fair_tree_ranks(world, b))]


# ---------------------------------------------------------------- what never runs, and the list


def never_runs(world: World) -> set[int]:
    """Jobs that a policy sets aside beyond those that fit no pool."""
    if world.policy == "static-partitions":
        since = [0, *(at for at, _, _ in world.changes)]
        parts = [quotas(world, world.leaves), *(quotas(world, leaves) for _, _, leaves in world.changes)]
        until = [*since[1:], inf]
        return {
            w.index
            for w in world.works
            if all(w.gpus > part[w.leaf] for part, end in zip(parts, until, strict=True) if end > w.submit)
        }
    return set()


def fair_share(world: World) -> None:
    from fairshare.reference_fair_share import Instant

    Instant(world).decide()


RULES: dict[str, Callable[[World], None]] = {
    "fifo": fifo,
    "fifo-skip": fifo_skip,
    "fifo-per-type": fifo_per_type,
    "easy": easy,
    "conservative": conservative,
    "sjf": sjf,
    "priority-tiers": priority_tiers,
    "static-partitions": static_partitions,
    "fair-share": fair_share,
    "fair-tree": fair_tree,
}
