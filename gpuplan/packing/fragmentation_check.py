"""Rules of a placement, checked from its rows alone: nothing here is shared with the kernel."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import Bools, Int64
from gpuplan.packing.pods import WHOLE, Nodes, Pods

if TYPE_CHECKING:
    from gpuplan.packing.fragmentation import Placement

#: Sentences of one kind that are spelled out.
SHOWN = 5


def check(placement: "Placement") -> list[str]:
    """Rules that a placement breaks, a sentence each; empty for a legal one.

    Each arrival is on one node or none, with as many GPUs of that node as it asks for, of a type that it allows; CPU,
    memory and every GPU bear what is on them; and who was not placed found no room at that moment.
    """
    nodes, pods = placement.nodes, placement.pods
    columns = (placement.arrivals, placement.node, placement.gpu_bits)
    if len({len(column) for column in columns}) > 1:
        return [
            f"{[len(column) for column in columns]} rows of arrivals, nodes and GPUs: each has one of each"
        ]
    if ((placement.node < -1) | (placement.node >= len(nodes))).any():
        return ["an arrival is on a node that is not there"]
    asked = pods.of(placement.arrivals)
    held = (placement.gpu_bits[:, None] >> np.arange(62)) & 1 == 1
    found = _of_rows(nodes, asked, placement.node, held)
    found += _of_nodes(nodes, asked, placement.node, held)
    return found or _of_moments(nodes, asked, placement.node, held)


def _of_rows(nodes: Nodes, asked: Pods, node: Int64, held: Bools) -> list[str]:
    """Number of GPUs, that the node has them, and the type."""
    on = node >= 0
    counts = held.sum(axis=1)
    wanted = np.where(on, asked.gpus, 0)
    last = np.where(held.any(axis=1), 61 - held[:, ::-1].argmax(axis=1), -1)
    types = [
        bool(gpus) and bool(allowed) and nodes.gpu_type[n] not in allowed
        for allowed, gpus, n in zip(asked.types.tolist(), wanted.tolist(), node.tolist(), strict=True)
    ]
    found = [
        f"arrival {t} ({asked.name[t]}) has {counts[t]} GPUs instead of {wanted[t]}"
        for t in np.flatnonzero(counts != wanted)[:SHOWN]
    ]
    found += [
        f"arrival {t} ({asked.name[t]}) has GPU {last[t]} of {nodes.name[node[t]]}, which has {nodes.gpus[node[t]]}"
        for t in np.flatnonzero(on & (last >= nodes.gpus[node]))[:SHOWN]
    ]
    found += [
        f"arrival {t} ({asked.name[t]}) is on {nodes.gpu_type[node[t]]} of {nodes.name[node[t]]}, but asks for "
        f"{' or '.join(asked.types[t])}"
        for t in np.flatnonzero(types)[:SHOWN]
    ]
    return found


def _of_nodes(nodes: Nodes, asked: Pods, node: Int64, held: Bools) -> list[str]:
    """What lies on each node and GPU."""
    on = node >= 0
    found = []
    for what, takes, has in (
        ("thousandths of a CPU", asked.cpu_milli, nodes.cpu_milli),
        ("MiB", asked.memory_mib, nodes.memory_mib),
    ):
        sums = _sums(node[on], takes[on], len(nodes))
        found += [
            f"{nodes.name[n]} bears {sums[n]:,} {what}, but has {has[n]:,}"
            for n in np.flatnonzero(sums > has)[:SHOWN]
        ]
    rows, gpu = np.nonzero(held & on[:, None])
    sums = _sums(node[rows] * 62 + gpu, asked.gpu_milli[rows], 62 * len(nodes))
    found += [
        f"GPU {k % 62} of {nodes.name[k // 62]} bears {sums[k]:,} thousandths"
        for k in np.flatnonzero(sums > WHOLE)[:SHOWN]
    ]
    return found


def _sums(where: Int64, amounts: Int64, n: int) -> Int64:
    """Exact sums by place, int64[n]."""
    sums = np.zeros(n, np.int64)
    np.add.at(sums, where, amounts)
    return sums


def _of_moments(nodes: Nodes, asked: Pods, node: Int64, held: Bools) -> list[str]:
    """Arrivals that were not placed although a node had room, the first few; fills the nodes up again."""
    most = max(int(nodes.gpus.max()), 1)
    free = np.where(np.arange(most) < nodes.gpus[:, None], WHOLE, -1)
    cpu, memory = nodes.cpu_milli.copy(), nodes.memory_mib.copy()
    allowed: dict[tuple[str, ...], Bools] = {}
    found: list[str] = []
    for t, n in enumerate(node.tolist()):
        if n >= 0:
            cpu[n] -= asked.cpu_milli[t]
            memory[n] -= asked.memory_mib[t]
            free[n, held[t, :most]] -= asked.gpu_milli[t]
            continue
        types = asked.types[t]
        room = (cpu >= asked.cpu_milli[t]) & (memory >= asked.memory_mib[t])
        if asked.gpus[t]:
            if types not in allowed:
                allowed[types] = nodes.candidates(types)
            room &= allowed[types] & ((free >= asked.gpu_milli[t]).sum(axis=1) >= asked.gpus[t])
        if room.any():
            where = nodes.name[int(room.argmax())]
            found.append(f"arrival {t} ({asked.name[t]}) was not placed, but {where} had room")
            if len(found) == SHOWN:
                break
    return found
