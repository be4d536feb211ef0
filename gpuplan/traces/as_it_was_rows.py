"""Recorded work on rows of GPUs, as a Gantt draws it: each stretch on the lowest block of rows that is free."""

import numpy as np
import numpy.typing as npt

from gpuplan.fairshare.model import Int64
from gpuplan.traces.as_it_was_places import events

Bools = npt.NDArray[np.bool_]


def gpu_rows(
    start_s: Int64, end_s: Int64, gpus: Int64, free: Bools, node_size: int
) -> tuple[Int64, Int64, Int64]:
    """Rows of GPUs for stretches, in order of time: a block within a node, else any block, else the lowest free rows.

    Parameters
    ----------
    start_s, end_s, gpus : int64[S]
        At no instant more GPUs than there are free rows.
    free : bool[G]
        Rows that may be used.
    node_size
        GPUs of a node.

    Returns
    -------
    tuple
        ``stretch, low, high`` (high exclusive): int64[n], a row per run of neighbouring GPUs. What lasts no time has
        none.
    """
    open_rows = free.copy()
    taken: dict[int, npt.NDArray[np.int64]] = {}
    found: list[tuple[int, int, int]] = []
    for s in events(start_s, end_s).tolist():
        if s < 0:
            open_rows[taken.pop(-1 - s)] = True
            continue
        mine = _rows(open_rows, int(gpus[s]), node_size)
        open_rows[mine] = False
        taken[s] = mine
        breaks = np.flatnonzero(np.diff(mine) != 1) + 1
        found += [(s, int(run[0]), int(run[-1]) + 1) for run in np.split(mine, breaks)]
    columns = np.array(found, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]


def _rows(free: Bools, wanted: int, node_size: int) -> npt.NDArray[np.int64]:
    """The rows of one stretch, ascending."""
    fits = _blocks(free, wanted)
    inside = (
        fits[(fits % node_size) + wanted <= node_size] if wanted <= node_size else fits[fits % node_size == 0]
    )
    for chosen in (inside, fits):
        if len(chosen):
            return np.arange(chosen[0], chosen[0] + wanted)
    return np.flatnonzero(free)[:wanted]


def _blocks(free: Bools, wanted: int) -> npt.NDArray[np.int64]:
    """First rows of all free blocks of so many rows."""
    so_far = np.concatenate(([0], np.cumsum(free)))
    return np.flatnonzero(so_far[wanted:] - so_far[:-wanted] == wanted)
