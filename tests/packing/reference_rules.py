"""Who is placed where, what must go for it, who is interrupted: the pieces of a policy, for `reference`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, frexp

from gpuplan.packing.model import NEVER
from gpuplan.packing.raw import LOAD, RESTORE
from packing.reference import World
from packing.reference_things import GETTING_READY, QUEUED, RUNNING, Copy, Merged, Request


@dataclass
class Way:
    """How a task can be placed on a GPU: 0 on an instance, 1 beside the others, 2 after evictions."""

    kind: int
    evicted: list[Copy] = field(default_factory=list)
    victims: list[Request] = field(default_factory=list)


# ---------------------------------------------------------------- can it be placed


def way(world: World, request: Request, gpu: int, gone: Sequence[Request] = ()) -> Way | None:
    """How a task can be placed, if some tasks were gone; None: it cannot."""
    model, node = world.models[request.model], world.gpus
    attached = [r for r in world.attached(gpu) if r not in gone]
    if node.max_tasks is not None and len(attached) >= node.max_tasks:
        return None
    copy = world.copy_of(request.model, gpu)
    if copy is not None:
        used = sum(r.copy is copy for r in attached)
        return None if model.max_tasks is not None and used >= model.max_tasks else Way(0)
    if fits(world, request.model, gpu, [], gone):
        return Way(1)
    evicted: list[Copy] = []
    for candidate in sorted(candidates(world, gpu, gone), key=lambda c: eviction_key(world, c, gone)):
        evicted.append(candidate)
        if fits(world, request.model, gpu, evicted, gone):
            return Way(2, evicted)
    return None


def fits(world: World, model: int, gpu: int, evicted: list[Copy], gone: Sequence[Request]) -> bool:
    if world.scenario.admission.on == "declared":
        taken = world.reserved(gpu) - sum(world.need(c.model) for c in evicted)
    else:
        taken = world.actual(gpu) - sum(world.taken(c.model) for c in evicted)
        taken -= sum(world.kv(r) for r in gone)
        taken += sum(world.need(c.model) for c in world.copies if c.gpu == gpu and c.pending)
    return taken + world.need(model) <= world.gpus.memory_bytes


def candidates(world: World, gpu: int, gone: Sequence[Request]) -> list[Copy]:
    """Instances that may be evicted."""
    return [
        c
        for c in world.copies
        if c.gpu == gpu
        and c.ready < NEVER
        and c.usable
        and not world.models[c.model].pinned
        and all(r in gone for r in world.users(c))
    ]


def eviction_key(world: World, copy: Copy, gone: Sequence[Request]) -> tuple[int, int]:
    placed = world.placements[copy.model]
    if world.pieces.eviction == "lfu":
        return placed, copy.model
    if world.pieces.eviction == "cost":
        return placed * world.models[copy.model].actual_bytes, copy.model
    in_use = bool(world.users(copy))
    return (world.now if in_use else copy.last_used), copy.model


# ---------------------------------------------------------------- where


def left(world: World, request: Request, gpu: int, way: Way) -> int:
    """Bytes that are not reserved after a placement."""
    added = 0 if way.kind == 0 else world.need(request.model)
    freed = sum(world.need(c.model) for c in way.evicted)
    return world.gpus.memory_bytes - world.reserved(gpu) + freed - added


def weights(world: World) -> list[int]:
    """Popularity of each model in whole numbers, about a million (2^20) in all, so that ties are exact."""
    popularity = [model.popularity for model in world.models]
    _, exponent = frexp(sum(popularity))
    return [floor(Fraction(p) * Fraction(2) ** (20 - exponent) + Fraction(1, 2)) for p in popularity]


def fragmentation(world: World, free: int) -> int:
    """Popularity-weighted free memory that a model cannot use."""
    return sum(weight * free for m, weight in enumerate(weights(world)) if world.need(m) > free)


def choose(world: World, request: Request, ways: dict[int, Way]) -> int:
    """One of the GPUs on which a task can be placed."""
    placement, count = world.pieces.placement, world.gpus.count

    def rank(gpu: int) -> tuple[int, ...]:
        way = ways[gpu]
        rest = left(world, request, gpu, way)
        match placement:
            case "round-robin" | "first-fit":
                return way.kind, gpu
            case "round-robin-skip":
                return way.kind == 2, (gpu - world.last_gpu - 1) % count
            case "best-fit":
                return way.kind, rest, gpu
            case "worst-fit":
                return way.kind, -rest, gpu
            case "predicted-fit":
                ahead = sum(r.predicted_remaining() for r in world.attached(gpu))
                return way.kind, ahead, rest, gpu
            case "fgd":
                before = fragmentation(world, world.gpus.memory_bytes - world.reserved(gpu))
                return way.kind, fragmentation(world, rest) - before, gpu
        raise AssertionError(placement)

    return min(ways, key=rank)


# ---------------------------------------------------------------- in which order


def to_try(world: World, queue: list[Request], merged: Merged) -> list[Request]:
    """The tasks that a round looks at, in order; it places the first that can be placed."""
    order = world.pieces.order
    if order == "shortest":
        return sorted(queue, key=lambda r: (-r.priority, r.predicted, r.arrival, r.row))[:1]
    line = sorted(queue, key=lambda r: (-r.priority, r.arrival, r.row))
    if order == "backfill":
        return line[: 1 + world.pieces.depth]
    if order == "by-model" and line and merged.count < world.pieces.depth:
        like = [r for r in line if (r.model, r.priority) == (merged.model, merged.priority)]
        if like and like[0].priority == line[0].priority:
            return like[:1]
    return line[:1]


def count_merged(merged: Merged, request: Request, depth: int) -> None:
    same = (merged.model, merged.priority) == (request.model, request.priority)
    merged.count = merged.count + 1 if same and merged.count < depth else 1
    merged.model, merged.priority = request.model, request.priority


# ---------------------------------------------------------------- who is interrupted


def victims_on(world: World, request: Request, gpu: int) -> Way | None:
    """The tasks of a GPU that would have to be interrupted for one that cannot be placed, and what comes after."""
    preemption = world.scenario.preemption
    prey = [
        r
        for r in world.attached(gpu)
        if r.state == RUNNING
        and r.priority < request.priority
        and (preemption.when == "always" or r.predicted_remaining() >= preemption.threshold_us)
    ]
    prey.sort(key=lambda r: (r.priority, -r.predicted_remaining(), -r.row))
    for most in range(1, len(prey) + 1):
        found = way(world, request, gpu, prey[:most])
        if found is not None:
            found.victims = prey[:most]
            return found
    return None


# ---------------------------------------------------------------- a round


def place_all(world: World) -> None:
    """Places tasks until none can be placed; a start of service is followed by a look at the memory."""
    for number, gpus in enumerate(queues(world)):
        while place_one(world, number, gpus):
            world.out_of_memory()


def queues(world: World) -> list[list[int]]:
    """For each queue the GPUs that it serves."""
    everywhere = list(range(world.gpus.count))
    return [[g] for g in everywhere] if world.pieces.placement == "round-robin" else [everywhere]


def place_one(world: World, number: int, gpus: list[int]) -> bool:
    """Places the first task of a queue that can be placed, if there is one."""
    count = len(queues(world))
    queue = [r for r in world.requests if r.state == QUEUED and r.row % count == number]
    merged = world.merged.setdefault(number, Merged())
    for k, request in enumerate(to_try(world, queue, merged)):
        ways = {g: found for g in gpus if (found := way(world, request, g)) is not None}
        if ways:
            gpu = choose(world, request, ways)
        elif k == 0 and world.scenario.preemption.when != "never":
            ways = {g: found for g in gpus if (found := victims_on(world, request, g)) is not None}
            gpu = min(ways, key=lambda g: (len(ways[g].victims), g), default=-1)
        if ways:
            place(world, request, gpu, ways[gpu])
            count_merged(merged, request, world.pieces.depth)
            return True
    return False


def place(world: World, request: Request, gpu: int, way: Way) -> None:
    """Attaches a task to its instance, which is claimed if there is none; sees to all that this takes."""
    world.placements[request.model] += 1
    world.last_gpu = gpu
    saves = [world.interrupt(victim) for victim in way.victims]
    for copy in way.evicted:
        if world.users(copy):
            copy.must_go = True
        else:
            world.evict(copy)
    request.waits_for = [*saves, *way.evicted]
    request.copy = world.copy_of(request.model, gpu)
    if request.copy is None:
        request.copy = Copy(request.model, gpu, world.now, request.row, waits_for=request.waits_for)
        world.copies.append(request.copy)
    request.state = GETTING_READY
    world.open(request, RESTORE if request.saved else LOAD)
    world.get_going(request)
