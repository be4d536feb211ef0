"""Placement of pods on nodes with shared GPUs, one arrival after another: arrays in, arrays out.

Nothing is validated. ``N`` nodes of at most ``G`` GPUs (at most 62), ``C`` classes of pods, ``T`` arrivals, ``D``
different thousandths that classes ask for of a GPU. All whole numbers are int64; fragmentation is in thousandths of a
GPU times the weight of the classes, so it is exact.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit_kernel, njit_leaf, njit_step

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: A 64-bit whole number: numpy's, or Python's where nothing is compiled.
Number = Any

i64 = np.int64

#: Thousandths of a GPU.
WHOLE = 1000

#: Above any growth of fragmentation: the class does not fit on the node.
NO_ROOM = 1 << 62

# rows of ``classes``: CPU, memory, number of GPUs, thousandths of each, its place in ``levels``, types, weight
CPU, MEMORY, COUNT, MILLI, LEVEL, TYPES, WEIGHT = range(7)

# policies
RANDOM, DOT_PRODUCT, BEST_FIT, GRADIENT = range(4)


@njit_leaf
def fits(classes: Ints, c: Number, cpu: Number, memory: Number, free: Ints, n: Number, kind: Number) -> bool:
    """Whether a pod of a class has room on a node of which so much is left."""
    if classes[CPU, c] > cpu or classes[MEMORY, c] > memory:
        return False
    count = classes[COUNT, c]
    if count == 0:
        return True
    if classes[TYPES, c] & kind == 0:
        return False
    milli = classes[MILLI, c]
    for g in range(free.shape[1]):
        if free[n, g] >= milli:
            count -= 1
            if count == 0:
                return True
    return False


@njit_step
def fragmentation(
    classes: Ints,
    levels: Ints,
    cpu: Number,
    memory: Number,
    free: Ints,
    n: Number,
    kind: Number,
    counts: Ints,
    sums: Ints,
) -> Number:
    """Fragmentation of a node: over the classes, weight x thousandths left on GPUs that the class cannot take.

    Parameters
    ----------
    classes : int64[7, C]
        See the rows above; ``TYPES`` has the bits of the types on which the class may run.
    levels : int64[D]
        The different thousandths.
    cpu, memory
        What is left of the node.
    free : int64[N, G]
        Thousandths left of each GPU; -1 where the node has no such GPU.
    n
        The node's row in `free`.
    kind
        Bit of the node's type; 0: no GPUs.
    counts, sums : int64[D]
        Room to work in: GPUs that have a level left, thousandths on those that have less.
    """
    total = i64(0)
    for g in range(free.shape[1]):
        if free[n, g] > 0:
            total += free[n, g]
    if total == 0:
        return total
    for d in range(len(levels)):
        count = i64(0)
        less = i64(0)
        for g in range(free.shape[1]):
            if free[n, g] >= levels[d]:
                count += 1
            elif free[n, g] > 0:
                less += free[n, g]
        counts[d] = count
        sums[d] = less
    found = i64(0)
    for c in range(classes.shape[1]):
        count = classes[COUNT, c]
        level = classes[LEVEL, c]
        if (
            count > 0
            and counts[level] >= count
            and classes[CPU, c] <= cpu
            and classes[MEMORY, c] <= memory
            and classes[TYPES, c] & kind != 0
        ):
            found += classes[WEIGHT, c] * sums[level]
        else:
            found += classes[WEIGHT, c] * total
    return found


@njit_leaf
def take(free: Ints, n: Number, count: Number, milli: Number) -> Number:
    """Take thousandths of so many GPUs, of those with the least left first; bits of the GPUs."""
    bits = i64(0)
    while count > 0:
        best = -1
        for g in range(free.shape[1]):
            if free[n, g] >= milli and bits >> g & 1 == 0 and (best < 0 or free[n, g] < free[n, best]):
                best = g
        free[n, best] -= milli
        bits |= i64(1) << best
        count -= 1
    return bits


@njit_leaf
def give_back(free: Ints, n: Number, bits: Number, milli: Number) -> None:
    """Undo `take`."""
    for g in range(free.shape[1]):
        if bits >> g & 1:
            free[n, g] += milli


@njit_step
def growth(
    classes: Ints,
    levels: Ints,
    c: Number,
    cpu: Number,
    memory: Number,
    free: Ints,
    n: Number,
    kind: Number,
    counts: Ints,
    sums: Ints,
) -> tuple[Number, Number]:
    """Least growth of a node's fragmentation by a pod of a class, and the bits of the GPUs; `NO_ROOM` without room.

    A pod that takes part of one GPU is tried on each that has room (ties: the lowest); others take what `take` takes.
    """
    if not fits(classes, c, cpu, memory, free, n, kind):
        return i64(NO_ROOM), i64(0)
    before = fragmentation(classes, levels, cpu, memory, free, n, kind, counts, sums)
    cpu -= classes[CPU, c]
    memory -= classes[MEMORY, c]
    count = classes[COUNT, c]
    milli = classes[MILLI, c]
    if count != 1 or milli >= WHOLE:
        bits = take(free, n, count, milli)
        after = fragmentation(classes, levels, cpu, memory, free, n, kind, counts, sums)
        give_back(free, n, bits, milli)
        return after - before, bits
    least = i64(NO_ROOM)
    bits = i64(0)
    for g in range(free.shape[1]):
        if free[n, g] < milli:
            continue
        seen = False  # GPUs with equally much left are equal
        for other in range(g):
            seen = seen or free[n, other] == free[n, g]
        if seen:
            continue
        free[n, g] -= milli
        after = fragmentation(classes, levels, cpu, memory, free, n, kind, counts, sums) - before
        free[n, g] += milli
        if after < least:
            least = after
            bits = i64(1) << g
    return least, bits


@njit_leaf
def rung(edges: Ints, value: Number) -> Number:
    """How many of the falling edges a value is at most: 100 of them make the whole points of a score."""
    low = 0
    high = len(edges)
    while low < high:
        middle = (low + high) >> 1
        if value <= edges[middle]:
            low = middle + 1
        else:
            high = middle
    return low


@njit_leaf
def pick(free: Ints, n: Number, milli: Number, draw: Number) -> Number:
    """Bit of one of the GPUs that have so much left, by a drawn number."""
    count = i64(0)
    for g in range(free.shape[1]):
        if free[n, g] >= milli:
            count += 1
    k = draw % count
    for g in range(free.shape[1]):
        if free[n, g] >= milli:
            if k == 0:
                free[n, g] -= milli
                return i64(1) << g
            k -= 1
    return i64(0)


@njit_step
def score(
    policy: int,
    points: bool,
    largest_cpu: float,
    largest_gpu: float,
    classes: Ints,
    levels: Ints,
    edges: Ints,
    c: Number,
    cpu: Number,
    memory: Number,
    free: Ints,
    n: Number,
    kind: Number,
    counts: Ints,
    sums: Ints,
) -> tuple[float, Number]:
    """Score of a node for a pod of a class (higher is better, minus infinity without room), and bits of GPUs.

    The bits are those of `growth`, 0 under other policies. Parameters as in `place`, for one node.
    """
    if policy == GRADIENT:
        grown, bits = growth(classes, levels, c, cpu, memory, free, n, kind, counts, sums)
        if grown == NO_ROOM:
            return -np.inf, bits
        return (float(rung(edges, grown)) if points else -float(grown)), bits
    if not fits(classes, c, cpu, memory, free, n, kind):
        return -np.inf, i64(0)
    if policy == RANDOM:
        return 0.0, i64(0)
    left = i64(0)
    for g in range(free.shape[1]):
        if free[n, g] > 0:
            left += free[n, g]
    asked_cpu = classes[CPU, c] / largest_cpu
    asked_gpu = classes[COUNT, c] * classes[MILLI, c] / largest_gpu
    if policy == DOT_PRODUCT:
        found = 1.0 - (cpu / largest_cpu * asked_cpu + left / largest_gpu * asked_gpu) / 2
    else:
        found = 1.0 - (cpu / largest_cpu - asked_cpu + left / largest_gpu - asked_gpu) / 2
    return (np.floor(100 * found) if points else found), i64(0)


@njit_kernel
def place(
    policy: int,
    points: bool,
    largest_cpu: float,
    largest_gpu: float,
    classes: Ints,
    levels: Ints,
    edges: Ints,
    kind: Ints,
    cpu: Ints,
    memory: Ints,
    free: Ints,
    arrivals: Ints,
    draws: Ints,
    node: Ints,
    gpu_bits: Ints,
    fragments: Ints,
    scores: Floats,
    bits: Ints,
    ties: Ints,
    counts: Ints,
    sums: Ints,
) -> None:
    """Place the arrivals, each at once or never.

    Parameters
    ----------
    policy
        `RANDOM`, `DOT_PRODUCT`, `BEST_FIT`, `GRADIENT`.
    points
        Scores are cut to whole points of 100, ties go by `draws`; else exact scores, ties to the lowest node.
    largest_cpu, largest_gpu
        CPU and thousandths of GPUs by which scores are scaled.
    classes, levels
        As in `fragmentation`.
    edges : int64[100]
        Growth of fragmentation up to which a node has 1, 2, ... points, falling (`points` only).
    kind : int64[N]
        Bit of each node's type.
    cpu, memory : int64[N]
        What is left; overwritten.
    free : int64[N, G]
        Thousandths left of each GPU, -1 for none; overwritten.
    arrivals : int64[T]
        Classes.
    draws : int64[T, 2]
        Random whole numbers of at least 0: for the node, for the GPU.
    node, gpu_bits : int64[T]
        Filled: the node (-1: no room), bits of the GPUs.
    fragments : int64[T]
        Filled: fragmentation of all nodes after the arrival.
    scores : float64[C, N]
        Room to work in, not a number at first: scores that hold until the node changes.
    bits : int64[C, N]
        Room to work in: GPUs of `scores`.
    ties : int64[N]
        Room to work in.
    counts, sums : int64[D]
        Room to work in.
    """
    whole = i64(0)
    for n in range(len(kind)):
        whole += fragmentation(classes, levels, cpu[n], memory[n], free, n, kind[n], counts, sums)
    for t in range(len(arrivals)):
        c = arrivals[t]
        best = -np.inf
        equal = 0
        for n in range(len(kind)):
            if scores[c, n] != scores[c, n]:
                scores[c, n], bits[c, n] = score(
                    policy,
                    points,
                    largest_cpu,
                    largest_gpu,
                    classes,
                    levels,
                    edges,
                    c,
                    cpu[n],
                    memory[n],
                    free,
                    n,
                    kind[n],
                    counts,
                    sums,
                )
            if scores[c, n] > best:
                best = scores[c, n]
                equal = 0
            if scores[c, n] == best and best > -np.inf:
                ties[equal] = n
                equal += 1
        node[t] = -1
        gpu_bits[t] = 0
        if equal > 0:
            n = ties[draws[t, 0] % equal] if points or policy == RANDOM else ties[0]
            node[t] = n
            whole -= fragmentation(classes, levels, cpu[n], memory[n], free, n, kind[n], counts, sums)
            milli = classes[MILLI, c]
            if policy == GRADIENT:
                gpu_bits[t] = bits[c, n]
                give_back(free, n, bits[c, n], -milli)
            elif policy == RANDOM and classes[COUNT, c] == 1:
                gpu_bits[t] = pick(free, n, milli, draws[t, 1])
            else:
                gpu_bits[t] = take(free, n, classes[COUNT, c], milli)
            cpu[n] -= classes[CPU, c]
            memory[n] -= classes[MEMORY, c]
            whole += fragmentation(classes, levels, cpu[n], memory[n], free, n, kind[n], counts, sums)
            for k in range(len(scores)):
                scores[k, n] = np.nan
        fragments[t] = whole
