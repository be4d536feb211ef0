"""Whom a task of higher priority may interrupt, for `reference`."""

from collections.abc import Sequence

from packing.reference import World
from packing.reference_rules import Way, new_copy, own_copy, own_gpus, room, slots, takes
from packing.reference_things import RUNNING, Copy, Request


def by_force(world: World, request: Request, line: int) -> Way | None:
    """How a task that cannot be placed can be, if others of lower priority are interrupted: as few as that takes."""
    m = request.model
    copies = world.copies_of(m)
    sets = [cheapest_gpus(world, request)]
    if world.pieces.placement == "round-robin":
        own = own_copy(world, m, line)
        copies, sets = ([], [own_gpus(world, m, line)]) if own is None else ([own], [])
    ways = []
    for copy in copies:
        victims = victims_on_copy(world, request, copy)
        if victims is not None:
            ways.append(Way(copy.gpus, copy, victims=victims))
    for gpus in sets:
        victims = None if gpus is None else victims_on(world, request, gpus)
        if gpus is not None and victims is not None:
            way = new_copy(world, m, gpus, victims)
            way.victims = victims
            ways.append(way)
    return min(ways, key=lambda way: (len(way.victims), way.gpus[0], way.copy is None), default=None)


def prey(world: World, request: Request, gpu: int) -> list[Request]:
    """The tasks of a GPU that may be interrupted for another, in the order in which they are."""
    preemption = world.scenario.preemption
    found = [
        r
        for r in world.attached(gpu)
        if r.state == RUNNING
        and r.priority < request.priority
        and (preemption.when == "always" or r.predicted_remaining() >= preemption.threshold_us)
    ]
    return sorted(found, key=lambda r: (r.priority, -r.predicted_remaining(), -r.row))


def victims_on_copy(world: World, request: Request, copy: Copy) -> list[Request] | None:
    """Who must be interrupted for a slot of an instance, GPU by GPU; None: that is not enough."""
    victims: list[Request] = []
    for gpu in copy.gpus:
        left = [r for r in prey(world, request, gpu) if r not in victims]
        while not (slots(world, gpu, victims) and takes(world, copy, victims)):
            if not left:
                return None
            victims.append(left.pop(0))
    return victims


def victims_on(world: World, request: Request, gpus: Sequence[int]) -> list[Request] | None:
    """Who must be interrupted for a new instance on GPUs, GPU by GPU; None: that is not enough."""
    victims: list[Request] = []
    for gpu in sorted(gpus):
        left = [r for r in prey(world, request, gpu) if r not in victims]
        while room(world, request.model, gpu, victims) is None:
            if not left:
                return None
            victims.append(left.pop(0))
    return victims


def cheapest_gpus(world: World, request: Request) -> list[int] | None:
    """The GPUs that take the fewest victims for a new instance, each judged alone."""
    costs = []
    for gpu in range(world.gpus.count):
        victims = victims_on(world, request, [gpu])
        if victims is not None:
            costs.append((len(victims), gpu))
    wanted = world.models[request.model].gpus
    return [gpu for _, gpu in sorted(costs)[:wanted]] if len(costs) >= wanted else None
