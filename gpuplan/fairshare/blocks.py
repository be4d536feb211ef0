"""Free GPUs against free blocks: what of the free GPUs a job can use at once."""

from gpuplan.fairshare.model import Int64


def largest_block(free: Int64) -> int:
    """The most free GPUs on one node; 0 without nodes.

    Parameters
    ----------
    free : int64[N]
        Free GPUs of each node that takes work.
    """
    return int(free.max(initial=0))


def unusable_share(free: Int64, gpus: int) -> float:
    """Share of the free GPUs that jobs of so many GPUs, each on one node, cannot use; 0 where nothing is free.

    ``1 - sum(k x floor(free / k)) / free`` (case frag-free-but-no-block).
    """
    total = int(free.sum())
    return 1 - int((free // gpus * gpus).sum()) / total if total else 0.0


def fits(free: Int64, node_gpus: int, gpus: int, one_node: bool = False) -> bool:
    """Whether a job can start in a pool of equal nodes: on one node, or on whole nodes and its rest on one more.

    Parameters
    ----------
    free : int64[N]
        Free GPUs of the pool's nodes (0 where a node takes no work).
    node_gpus
        GPUs of each of these nodes.
    one_node
        The job refuses to be spread.
    """
    if gpus <= node_gpus or one_node:
        return largest_block(free) >= gpus
    whole, rest = divmod(gpus, node_gpus)
    empty = int((free == node_gpus).sum())
    if empty < whole or not rest:
        return empty >= whole
    return int((free >= rest).sum()) > whole  # the whole nodes have room for the rest, too
