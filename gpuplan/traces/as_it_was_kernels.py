"""Where recorded work may have stood: a place on nodes for every stretch, in order of time."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpuplan.jit import njit

Ints = npt.NDArray[np.int64]

#: A 64-bit whole number: numpy's, or Python's where nothing is compiled.
Number = Any


@njit
def place(
    event: Ints,
    gpus: Ints,
    mask: Ints,
    free: Ints,
    pool: Ints,
    pool_first: Ints,
    first: Ints,
    count: Ints,
    node: Ints,
    taken: Ints,
) -> Number:
    """Give each stretch its GPUs: on the fullest node with room for all of them, else on few nodes of a pool.

    Parameters
    ----------
    event : int64[E]
        Stretch ``s`` that starts, or ``-1 - s`` of one that ends, in order of time; at one instant ends come first.
    gpus, mask : int64[S]
        GPUs of each stretch; bit ``p`` is set where it may stand in pool ``p``.
    free : int64[N]
        Free GPUs of each node; overwritten.
    pool : int64[N]
        Pool of each node.
    pool_first : int64[P + 1]
        Nodes of pool ``p`` are ``pool_first[p] .. pool_first[p + 1] - 1``.
    first, count : int64[S]
        Overwritten: the places of stretch ``s`` are rows ``first[s] .. first[s] + count[s] - 1``; none: no place.
    node, taken : int64[at least sum(min(gpus, N))]
        Overwritten: node and GPUs of each place.

    Returns
    -------
    int
        Rows of places.
    """
    rows = 0
    nodes = len(free)
    for e in range(len(event)):
        s = event[e]
        if s < 0:
            s = -1 - s
            for k in range(first[s], first[s] + count[s]):
                free[node[k]] += taken[k]
            continue
        first[s] = rows
        count[s] = 0
        wanted = gpus[s]
        best = -1
        for n in range(nodes):
            if free[n] >= wanted and mask[s] >> pool[n] & 1 and (best < 0 or free[n] < free[best]):
                best = n
        if best >= 0:
            node[rows] = best
            taken[rows] = wanted
            free[best] -= wanted
            count[s] = 1
            rows += 1
            continue
        # no node has room for all of it: the first pool that has it on several, else whatever is free
        begin, end, whole = 0, nodes, np.int64(0)
        for p in range(len(pool_first) - 1):
            if not mask[s] >> p & 1:
                continue
            there = np.int64(0)
            for n in range(pool_first[p], pool_first[p + 1]):
                there += free[n]
            if there >= wanted:
                begin, end, whole = pool_first[p], pool_first[p + 1], there
                break
            whole += there
        if whole < wanted:
            continue
        left = wanted
        while left > 0:
            best = -1
            for n in range(begin, end):
                if free[n] > 0 and mask[s] >> pool[n] & 1 and (best < 0 or free[n] > free[best]):
                    best = n
            some = min(left, free[best])
            node[rows] = best
            taken[rows] = some
            free[best] -= some
            left -= some
            count[s] += 1
            rows += 1
    return rows
