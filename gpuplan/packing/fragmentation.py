"""How fragmented the GPUs of a cluster become when pods arrive one after another: a study of placement without time.

Pods arrive until they have asked for as many GPUs as there are; each is placed at once or never, none ends. The
measure is that of Weng and others, "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation
Gradient Descent" (USENIX ATC 2023), section 3. With R[g] what is left of GPU g of a node, and D what a task of class m
takes of a GPU, the fragmentation of the node in the eyes of m is::

    F(m) = sum of R[g] over all g                  if the node cannot run m (CPU, memory, GPUs, type), or m wants no GPU
    F(m) = sum of R[g] over g with R[g] < D        if it can

and ``F = sum over m of p(m) F(m)``, p(m) the share of the class among the pods of the target workload. Fragmentation
gradient descent (`fgd`) places a pod on the node, and the GPU, where F grows least.

Scores are those of the authors' scheduler (`hkust-adsl/kubernetes-scheduler-simulator`, ``pkg/simulator/plugin``):

- ``best-fit``: least of what would be left, CPU / largest CPU + GPU / largest GPU;
- ``dot-product``: least product of what is left and what is asked for, CPU and GPU scaled in the same way;
- ``random``: any node, any GPU with room.

A Kubernetes scheduler cuts every score to whole points of 100 and draws among equals; that of `fgd` is then
``100 / (1 + exp(growth in GPUs))``. ``scores="points"`` does so, ``scores="exact"`` compares exact scores and takes the
lowest node among equals.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from gpuplan.inputs.errors import InputError, Mistake, did_you_mean
from gpuplan.packing import fragmentation_kernels as kernels
from gpuplan.packing.model import Int64
from gpuplan.packing.pods import WHOLE, Nodes, Pods

if TYPE_CHECKING:
    import pandas as pd

Scores = Literal["points", "exact"]

#: Policies by name, the best of the published ones first, and their codes in the kernel.
POLICIES = {
    "fgd": kernels.GRADIENT,
    "best-fit": kernels.BEST_FIT,
    "dot-product": kernels.DOT_PRODUCT,
    "random": kernels.RANDOM,
}

#: Allocated share of the GPUs in per cent when pods have asked for all of them, on 1,213 nodes with 6,212 GPUs, pods
#: of any type: figure 9a of the paper; ten seeds each in ``experiments/analysis/expected_results`` of its repository.
PUBLISHED = {"fgd": 95.2, "best-fit": 92.9, "dot-product": 90.6, "random": 86.3}

#: GPUs of a node fit into the bits of a 64-bit whole number, and so do types.
MOST_GPUS = MOST_TYPES = 60

_ANY = (1 << 62) - 1
_DRAWS = 1 << 40

#: Arrivals that are still placed, and scores (classes x nodes) that are kept.
MOST_ARRIVALS, MOST_SCORES = 10_000_000, 50_000_000


@dataclass(frozen=True, slots=True)
class Classes:
    """Pods that ask for the same, as the kernel reads them.

    Attributes
    ----------
    table : int64[7, C]
        CPU, memory, GPUs, thousandths of each, the place of these in `levels`, bits of the types, number of pods.
    levels : int64[D]
        The different thousandths.
    of_pod : int64[P]
        Class of each pod.
    kind : int64[N]
        Bit of each node's type; 0: no GPUs.
    """

    table: Int64
    levels: Int64
    of_pod: Int64
    kind: Int64

    @property
    def weight(self) -> int:
        """Pods of all classes: what fragmentation of the kernel is divided by."""
        return int(self.table[kernels.WEIGHT].sum())


def classes_of(nodes: Nodes, pods: Pods) -> Classes:
    """The classes of a target workload on some nodes."""
    names = sorted(set(nodes.gpu_type[nodes.gpus > 0].tolist()))
    bit = {name: 1 << k for k, name in enumerate(names)}
    asked = [sum(bit.get(name, 0) for name in types) if types else _ANY for types in pods.types.tolist()]
    columns = [pods.cpu_milli, pods.memory_mib, pods.gpus, pods.gpu_milli, np.array(asked, np.int64)]
    found, of_pod, counts = np.unique(
        np.stack(columns), axis=1, return_inverse=True, return_counts=True
    )  # in the order of their columns, whatever that of the pods
    levels, level = np.unique(found[3], return_inverse=True)
    table = np.stack([*found[:4], level, found[4], counts]).astype(np.int64)
    kind = [bit.get(name, 0) if gpus else 0 for name, gpus in zip(nodes.gpu_type, nodes.gpus, strict=True)]
    return Classes(table, levels, of_pod.reshape(-1).astype(np.int64), np.array(kind, np.int64))


def fragmentation(
    classes: Classes, cpu_milli: int, memory_mib: int, free_milli: Sequence[int], kind: int
) -> float:
    """Fragmentation F of one node in GPUs (see the module's text).

    Parameters
    ----------
    classes
        The target workload.
    cpu_milli, memory_mib
        What is left of the node.
    free_milli
        Thousandths left of each GPU.
    kind
        Bit of the node's type, of ``classes.kind``.
    """
    free = np.array([free_milli], np.int64)
    room = (np.zeros(len(classes.levels), np.int64), np.zeros(len(classes.levels), np.int64))
    found = kernels.fragmentation(classes.table, classes.levels, cpu_milli, memory_mib, free, 0, kind, *room)
    return int(found) / classes.weight / WHOLE


def inflate(pods: Pods, capacity_milli: int, ratio: float, rng: np.random.Generator) -> Int64:
    """Arrivals: pods drawn with replacement until they have asked for ``ratio x capacity_milli``; rows, int64[T].

    A smaller ratio gives the beginning of the same arrivals.
    """
    drawn: list[Int64] = []
    asked = 0
    while asked < ratio * capacity_milli:
        drawn.append(rng.integers(0, len(pods), 4096))
        asked += int(pods.demand_milli[drawn[-1]].sum())
    rows = np.concatenate(drawn)
    return rows[: int(np.searchsorted(np.cumsum(pods.demand_milli[rows]), ratio * capacity_milli)) + 1]


@dataclass(frozen=True)
class Placement:
    """What a policy made of the arrivals.

    Attributes
    ----------
    nodes, pods
        Where, and the target workload from which the arrivals are drawn.
    policy, scores
    arrivals : int64[T]
        Row of the pod of each arrival.
    node : int64[T]
        Row of its node; -1: there was no room.
    gpu_bits : int64[T]
        Bit ``g`` is set where it has (part of) GPU ``g`` of the node.
    fragments : float64[T]
        Fragmentation of all nodes after the arrival, in GPUs.
    """

    nodes: Nodes
    pods: Pods
    policy: str
    scores: Scores
    arrivals: Int64
    node: Int64
    gpu_bits: Int64
    fragments: "np.ndarray[tuple[int], np.dtype[np.float64]]"

    @cached_property
    def arrived_milli(self) -> Int64:
        """Thousandths of GPUs asked for up to each arrival, int64[T]."""
        return np.cumsum(self.pods.demand_milli[self.arrivals])

    @cached_property
    def allocated_milli(self) -> Int64:
        """Thousandths of GPUs allocated up to each arrival, int64[T]."""
        return np.cumsum(np.where(self.node >= 0, self.pods.demand_milli[self.arrivals], 0))

    def at(self, percent: int) -> int:
        """The arrival with which pods have asked for so many per cent of the GPUs; the last one if they never did."""
        found = int(np.searchsorted(100 * self.arrived_milli, percent * self.nodes.gpu_milli))
        return min(found, len(self.arrivals) - 1)

    def allocated(self, percent: int = 100) -> float:
        """Per cent of the GPUs that are allocated when pods have asked for `percent`."""
        return 100 * float(self.allocated_milli[self.at(percent)]) / self.nodes.gpu_milli

    def fragmented(self, percent: int = 100) -> float:
        """Fragmentation in per cent of the GPUs when pods have asked for `percent`."""
        return 100 * WHOLE * float(self.fragments[self.at(percent)]) / self.nodes.gpu_milli

    def check(self) -> list[str]:
        """Rules that the placement breaks, a sentence each, found by code that shares nothing with the kernel."""
        from gpuplan.packing.fragmentation_check import check

        return check(self)

    def to_frame(self) -> "pd.DataFrame":
        """A row per arrival: ``arrival, pod, node, gpus, gpu_milli`` (``node`` missing: no room; ``gpus`` as text)."""
        import pandas as pd

        bits = self.gpu_bits.tolist()
        where = self.node.tolist()
        return pd.DataFrame(
            {
                "arrival": np.arange(len(self.arrivals)),
                "pod": self.pods.name[self.arrivals],
                "node": [self.nodes.name[n] if n >= 0 else None for n in where],
                "gpus": [",".join(str(g) for g in range(MOST_GPUS) if b >> g & 1) for b in bits],
                "gpu_milli": np.where(self.node >= 0, self.pods.gpu_milli[self.arrivals], 0),
            }
        )


def place(
    nodes: Nodes,
    pods: Pods,
    policy: str = "fgd",
    *,
    ratio: float = 1.0,
    seed: int | np.random.Generator = 0,
    scores: Scores = "points",
) -> Placement:
    """Let pods arrive until they have asked for `ratio` times the GPUs, and place each at once or never.

    Parameters
    ----------
    nodes
        Those without GPUs take pods without GPUs (the published study leaves them out: ``nodes.with_gpus()``).
    pods
        The target workload; arrivals are drawn from it with replacement.
    policy
        A name of `POLICIES`.
    ratio
        1: as many GPUs asked for as there are.
    seed
        Of the arrivals, the same for every policy, and of what is drawn among equals.
    scores
        ``points`` or ``exact`` (see the module's text).

    Raises
    ------
    InputError
        For an unknown policy or scores, a ratio that is not above 0 and at most 10, nodes without GPUs, pods that ask
        for none, or numbers that are out of range.
    """
    _require(nodes, pods, policy, ratio, scores)
    classes = classes_of(nodes, pods)
    different = classes.table.shape[1]
    if different * len(nodes) > MOST_SCORES:
        rule = f"must have at most {MOST_SCORES // len(nodes):,} different requests on {len(nodes):,} nodes"
        raise InputError("placement", [Mistake("pods", rule, different)])
    for_arrivals, for_draws = np.random.default_rng(seed).spawn(2)
    arrivals = inflate(pods, nodes.gpu_milli, ratio, for_arrivals)
    draws = for_draws.integers(0, _DRAWS, (len(arrivals), 2))
    return _placed(nodes, pods, policy, scores, classes, arrivals, draws)


def _placed(
    nodes: Nodes, pods: Pods, policy: str, scores: Scores, classes: Classes, arrivals: Int64, draws: Int64
) -> Placement:
    most, n, t = int(nodes.gpus.max()), len(nodes), len(arrivals)
    free = np.where(np.arange(most) < nodes.gpus[:, None], WHOLE, -1).astype(np.int64)
    node, gpu_bits, fragments = (np.zeros(t, np.int64) for _ in range(3))
    unknown = np.full((classes.table.shape[1], n), np.nan)
    kernels.place(
        POLICIES[policy],
        scores == "points",
        max(float(nodes.cpu_milli.max()), 1.0),
        float(most * WHOLE),
        classes.table,
        classes.levels,
        _edges(classes.weight),
        classes.kind,
        nodes.cpu_milli.copy(),
        nodes.memory_mib.copy(),
        free,
        classes.of_pod[arrivals],
        draws,
        node,
        gpu_bits,
        fragments,
        unknown,
        np.zeros(unknown.shape, np.int64),
        np.zeros(n, np.int64),
        np.zeros(len(classes.levels), np.int64),
        np.zeros(len(classes.levels), np.int64),
    )
    for column in (arrivals, node, gpu_bits):
        column.setflags(write=False)
    return Placement(
        nodes, pods, policy, scores, arrivals, node, gpu_bits, fragments / (classes.weight * float(WHOLE))
    )


def _edges(weight: int) -> Int64:
    """Growth up to which ``100 / (1 + exp(growth in GPUs))`` is at least 1, 2, ... 100 points.

    ``100 / (1 + exp(x)) >= s`` where ``x <= log((100 - s) / s)``; all 100 are never reached.
    """
    in_gpus = [math.log((100 - s) / s) for s in range(1, 100)]
    return np.array([*(math.floor(x * WHOLE * weight) for x in in_gpus), -_ANY], np.int64)


def _require(nodes: Nodes, pods: Pods, policy: str, ratio: float, scores: str) -> None:
    mistakes = []
    if policy not in POLICIES:
        listed = ", ".join(POLICIES)
        mistakes.append(Mistake("policy", f"must be one of {listed}{did_you_mean(policy, POLICIES)}", policy))
    if scores not in ("points", "exact"):
        mistakes.append(Mistake("scores", "must be points or exact", scores))
    if not 0 < ratio <= 10:
        mistakes.append(Mistake("ratio", "must be above 0 and at most 10", ratio))
    if not nodes.gpu_milli:
        mistakes.append(Mistake("nodes", "must have GPUs"))
    elif int(nodes.gpus.max()) > MOST_GPUS:
        mistakes.append(Mistake("nodes", f"must have at most {MOST_GPUS} GPUs each", int(nodes.gpus.max())))
    if len(set(nodes.gpu_type.tolist())) > MOST_TYPES:
        mistakes.append(Mistake("nodes", f"must have at most {MOST_TYPES} types of GPUs"))
    if not pods.demand_milli.any():
        mistakes.append(Mistake("pods", "must hold one that asks for a GPU"))
    elif ratio * nodes.gpu_milli / float(pods.demand_milli.mean()) > MOST_ARRIVALS:
        rule = f"must ask for enough of the GPUs that {MOST_ARRIVALS:,} of them take all that the ratio says"
        mistakes.append(Mistake("pods", rule))
    if (pods.gpu_milli[pods.gpus > 0] < 1).any() or (pods.gpu_milli > WHOLE).any():
        mistakes.append(Mistake("pods", f"must ask for 1 to {WHOLE:,} thousandths of each GPU"))
    for what, table in (("nodes", nodes), ("pods", pods)):
        columns = [table.cpu_milli, table.memory_mib, table.gpus]
        if any(((column < 0) | (column > 1 << 40)).any() for column in columns):
            mistakes.append(Mistake(what, "must not have negative CPU, memory or GPUs, nor more than 2^40"))
    if mistakes:
        raise InputError("placement", mistakes)


def warm_up() -> None:
    """Compile the kernels (or read them from the cache), so that no later study waits for them."""
    from gpuplan.packing.pods import nodes, pods

    place(nodes(["node"], [1000], [1], [1], [""]), pods(["pod"], [1], [1], [1], [WHOLE], [()]))
