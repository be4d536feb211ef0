"""Who is placed where and what must go for it: the pieces of a policy, for `reference`.

A task is placed on an instance of its model, or on as many GPUs as the model wants. Whom that may interrupt is in
`reference_victims`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, frexp

from gpuplan.packing.model import NEVER
from gpuplan.packing.raw import LOAD, RESTORE
from packing.reference import World
from packing.reference_things import GETTING_READY, QUEUED, Copy, Merged, Request


@dataclass
class Way:
    """How a task can be placed: on an instance, or on one that is claimed on these GPUs after evictions."""

    gpus: tuple[int, ...]
    copy: Copy | None = None
    evicted: list[Copy] = field(default_factory=list)
    victims: list[Request] = field(default_factory=list)
    last_gpu: int = -1


# ---------------------------------------------------------------- can it be placed


def slots(world: World, gpu: int, gone: Sequence[Request] = ()) -> bool:
    """Whether a GPU takes another task, if some were gone."""
    most = world.gpus.max_tasks
    return most is None or len([r for r in world.attached(gpu) if r not in gone]) < most


def takes(world: World, copy: Copy, gone: Sequence[Request] = ()) -> bool:
    """Whether an instance takes another task (its GPUs apart)."""
    most = world.models[copy.model].max_tasks
    return most is None or len([r for r in world.users(copy) if r not in gone]) < most


def open_copy(world: World, copy: Copy) -> bool:
    return takes(world, copy) and all(slots(world, gpu) for gpu in copy.gpus)


def room(
    world: World, m: int, gpu: int, gone: Sequence[Request] = (), already: Sequence[Copy] = ()
) -> list[Copy] | None:
    """What must go from a GPU for a new instance of a model, if some tasks and copies were gone; None: it has no room.

    A GPU with an instance of that model has none.
    """
    if world.copy_of(m, gpu) is not None or not slots(world, gpu, gone):
        return None
    found: list[Copy] = []
    order = sorted(candidates(world, gpu, gone), key=lambda c: eviction_key(world, c, gone))
    for candidate in [c for c in order if c not in already]:
        if fits(world, m, gpu, [*already, *found], gone):
            return found
        found.append(candidate)
    return found if fits(world, m, gpu, [*already, *found], gone) else None


def fits(world: World, m: int, gpu: int, evicted: Sequence[Copy], gone: Sequence[Request]) -> bool:
    evicted = [c for c in evicted if gpu in c.gpus]
    if world.scenario.admission.on == "declared":
        taken = world.reserved(gpu) - sum(world.need(c.model) for c in evicted)
    else:
        taken = world.actual(gpu) - sum(world.taken(c.model) for c in evicted)
        taken -= sum(world.kv(r) for r in gone if gpu in world.gpus_of(r))
        taken += sum(world.need(c.model) for c in world.copies if gpu in c.gpus and c.pending)
    return taken + world.need(m) <= world.gpus.memory_bytes


def candidates(world: World, gpu: int, gone: Sequence[Request]) -> list[Copy]:
    """Instances that may be evicted."""
    return [
        c
        for c in world.copies
        if gpu in c.gpus
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


def new_copy(world: World, m: int, gpus: Sequence[int], gone: Sequence[Request] = ()) -> Way:
    """A new instance on GPUs that each have room: what must go, GPU by GPU."""
    way = Way(tuple(sorted(gpus)))
    for gpu in way.gpus:
        more = room(world, m, gpu, gone, way.evicted)
        assert more is not None
        way.evicted += more
    return way


# ---------------------------------------------------------------- where


def score(world: World, gpu: int, added: int, evicted: Sequence[Copy] = ()) -> tuple[int, ...]:
    """How good a GPU is for so many bytes more: less is better."""
    before = world.gpus.memory_bytes - world.reserved(gpu)
    rest = before + sum(world.need(c.model) for c in evicted) - added
    match world.pieces.placement:
        case "first-fit":
            return ()
        case "best-fit":
            return (rest,)
        case "worst-fit":
            return (-rest,)
        case "predicted-fit":
            return sum(r.predicted_remaining() for r in world.attached(gpu)), rest
        case "fgd":
            return (fragmentation(world, rest) - fragmentation(world, before),)
    raise AssertionError(world.pieces.placement)


def score_of_copy(world: World, copy: Copy) -> tuple[int, ...]:
    """Of an instance: the sum over its GPUs; of predicted work the largest."""
    scores = [score(world, gpu, 0) for gpu in copy.gpus]
    columns = list(zip(*scores, strict=True))
    if world.pieces.placement == "predicted-fit":
        ahead, rest = columns
        return max(ahead), sum(rest)
    return tuple(sum(column) for column in columns)


def weights(world: World) -> list[int]:
    """Popularity of each model in whole numbers, about a million (2^20) in all, so that ties are exact."""
    popularity = [model.popularity for model in world.models]
    _, exponent = frexp(sum(popularity))
    return [floor(Fraction(p) * Fraction(2) ** (20 - exponent) + Fraction(1, 2)) for p in popularity]


def fragmentation(world: World, free: int) -> int:
    """Popularity-weighted free memory that a model cannot use."""
    return sum(weight * free for m, weight in enumerate(weights(world)) if world.need(m) > free)


def find_way(world: World, request: Request, line: int) -> Way | None:
    """Where a task goes; None: it cannot be placed. `line` is its queue."""
    m = request.model
    match world.pieces.placement:
        case "round-robin":
            return on_own_gpus(world, m, line)
        case "round-robin-skip":
            return round_the_circle(world, m)
    copies = [c for c in world.copies_of(m) if open_copy(world, c)]
    if copies:
        best = min(copies, key=lambda c: (score_of_copy(world, c), c.gpu))
        return Way(best.gpus, best)
    ranks = []
    for gpu in range(world.gpus.count):
        evicted = room(world, m, gpu)
        if evicted is not None:
            ranks.append((bool(evicted), score(world, gpu, world.need(m), evicted), gpu))
    chosen = [gpu for _, _, gpu in sorted(ranks)[: world.models[m].gpus]]
    return new_copy(world, m, chosen) if len(chosen) == world.models[m].gpus else None


def own_gpus(world: World, m: int, line: int) -> list[int]:
    """The GPUs of a model's task in a blind line, from that of the line on."""
    return [(line + k) % world.gpus.count for k in range(world.models[m].gpus)]


def own_copy(world: World, m: int, line: int) -> Copy | None:
    """The instance to which a blind line is bound."""
    there = (world.copy_of(m, gpu) for gpu in own_gpus(world, m, line))
    return next((copy for copy in there if copy is not None), None)


def on_own_gpus(world: World, m: int, line: int) -> Way | None:
    copy = own_copy(world, m, line)
    if copy is not None:
        return Way(copy.gpus, copy) if open_copy(world, copy) else None
    gpus = own_gpus(world, m, line)
    return None if any(room(world, m, gpu) is None for gpu in gpus) else new_copy(world, m, gpus)


def round_the_circle(world: World, m: int) -> Way | None:
    """The next GPU on whose instance, or from which on, there is room: first without evictions, then with."""
    count = world.gpus.count
    for evictions in (False, True):
        for k in range(count):
            anchor = (world.last_gpu + 1 + k) % count
            copy = world.copy_of(m, anchor)
            if copy is not None and open_copy(world, copy):
                return Way(copy.gpus, copy, last_gpu=anchor)
            circle = [(anchor + further) % count for further in range(count)]
            rooms = {gpu: room(world, m, gpu) for gpu in circle}
            open_to_it = [gpu for gpu, evicted in rooms.items() if evicted == [] or (evicted and evictions)]
            chosen = open_to_it[: world.models[m].gpus]
            if anchor in chosen and len(chosen) == world.models[m].gpus:
                way = new_copy(world, m, chosen)
                way.last_gpu = anchor
                return way
    return None


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


# ---------------------------------------------------------------- a round


def place_all(world: World) -> None:
    """Places tasks until none can be placed; a start of service is followed by a look at the memory."""
    lines = world.gpus.count if world.pieces.placement == "round-robin" else 1
    for line in range(lines):
        while place_one(world, line, lines):
            world.out_of_memory()


def place_one(world: World, line: int, lines: int) -> bool:
    """Places the first task of a queue that can be placed, if there is one."""
    from packing.reference_victims import by_force

    queue = [r for r in world.requests if r.state == QUEUED and r.row % lines == line]
    merged = world.merged.setdefault(line, Merged())
    for k, request in enumerate(to_try(world, queue, merged)):
        way = find_way(world, request, line)
        if way is None and k == 0 and world.scenario.preemption.when != "never":
            way = by_force(world, request, line)
        if way is not None:
            place(world, request, way)
            count_merged(merged, request, world.pieces.depth)
            return True
    return False


def place(world: World, request: Request, way: Way) -> None:
    """Attaches a task to its instance, which is claimed if there is none; sees to all that this takes."""
    world.placements[request.model] += 1
    world.last_gpu = way.last_gpu if way.last_gpu >= 0 else way.gpus[0]
    saves = [world.interrupt(victim) for victim in way.victims]
    for copy in way.evicted:
        if world.users(copy):
            copy.must_go = True
        else:
            world.evict(copy)
    request.waits_for = [*saves, *way.evicted]
    request.copy = way.copy
    if request.copy is None:
        request.copy = Copy(request.model, way.gpus, world.now, request.row, waits_for=request.waits_for)
        world.copies.append(request.copy)
    request.state = GETTING_READY
    world.open(request, RESTORE if request.saved else LOAD)
    world.get_going(request)
