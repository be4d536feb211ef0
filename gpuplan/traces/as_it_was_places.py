"""Recorded stretches on the nodes of a cluster: a record says on how many GPUs work ran, rarely on which."""

from dataclasses import dataclass

import numpy as np

from gpuplan.fairshare.model import Int64, Pool
from gpuplan.traces.as_it_was_kernels import place


@dataclass(frozen=True, slots=True)
class Places:
    """Places of stretches, and how well they fit.

    Attributes
    ----------
    stretch, node, gpus : int64[P]
        A row per stretch and node, by stretch, then node.
    homeless : int64[n]
        Stretches without room when they started.
    split : int64[n]
        Stretches that are on more nodes than their GPUs need.
    """

    stretch: Int64
    node: Int64
    gpus: Int64
    homeless: Int64
    split: Int64


def events(start_s: Int64, end_s: Int64) -> Int64:
    """Stretches in order of time for `gpuplan.traces.as_it_was_kernels.place`: ends before starts of one instant.

    What lasts no time takes no room: it is in no event.
    """
    lasting = np.flatnonzero(end_s > start_s)
    stretch = np.concatenate((-1 - lasting, lasting))
    at = np.concatenate((end_s[lasting], start_s[lasting]))
    starts = np.repeat((0, 1), len(lasting))
    row = np.concatenate((lasting, lasting))
    found: Int64 = stretch[np.lexsort((row, starts, at))]
    return found


def places(start_s: Int64, end_s: Int64, gpus: Int64, mask: Int64, pools: tuple[Pool, ...]) -> Places:
    """Place stretches in order of time: each on the fullest node with room for all of it, else on few nodes of a pool.

    Parameters
    ----------
    start_s, end_s, gpus : int64[S]
        Seconds, GPUs.
    mask : int64[S]
        Bit ``p`` is set where a stretch may stand in pool ``p``.
    pools
        The cluster.
    """
    n = len(gpus)
    sizes = np.repeat([p.gpus_per_node for p in pools], [p.nodes for p in pools]).astype(np.int64)
    pool = np.repeat(np.arange(len(pools)), [p.nodes for p in pools]).astype(np.int64)
    pool_first = np.concatenate(([0], np.cumsum([p.nodes for p in pools]))).astype(np.int64)
    room = int(np.minimum(gpus, len(sizes)).sum()) + n
    first, count = np.zeros(n, np.int64), np.zeros(n, np.int64)
    node, taken = np.zeros(room, np.int64), np.zeros(room, np.int64)
    order = events(start_s, end_s)
    rows = place(order, gpus, mask, sizes.copy(), pool, pool_first, first, count, node, taken)
    brief = np.flatnonzero(end_s <= start_s)  # is nowhere for no time: any node will do
    first[brief], count[brief] = rows + np.arange(len(brief)), 1
    taken[rows : rows + len(brief)] = gpus[brief]
    lowest = (mask[brief, None] >> np.arange(len(pools)) & 1).argmax(axis=1)
    node[rows : rows + len(brief)] = pool_first[lowest]
    stretch = np.repeat(np.arange(n), count)
    row = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(len(stretch))
    by_node = np.lexsort((node[row], stretch))
    row = row[by_node]
    own = sizes[node[first]] if n else np.ones(0, np.int64)
    split = np.flatnonzero(count > -(-gpus // own))
    return Places(stretch, node[row], taken[row], np.flatnonzero(count == 0), split)


def peak(start_s: Int64, end_s: Int64, gpus: Int64) -> tuple[int, int]:
    """Most GPUs held at once, and the first instant at which they were; 0 and 0 of nothing."""
    lasting = end_s > start_s
    at = np.concatenate((start_s[lasting], end_s[lasting]))
    change = np.concatenate((gpus[lasting], -gpus[lasting]))
    order = np.lexsort((change, at))
    level = np.cumsum(change[order])
    if not len(level):
        return 0, 0
    top = int(np.argmax(level))
    return int(level[top]), int(at[order][top])
