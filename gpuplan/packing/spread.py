"""Copies and stages by GPU: what is of a model over several GPUs counts on each of them."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.packing.model import Int64

if TYPE_CHECKING:
    from gpuplan.packing.raw import Copies, RawPack


def copies_on(copies: "Copies") -> tuple[Int64, Int64]:
    """A row per copy and GPU that it is on, in order of copies, then GPUs: the copy and the GPU, int64[sum] each."""
    return np.repeat(np.arange(len(copies)), np.diff(copies.starts)), copies.on


def stages_on(raw: "RawPack") -> tuple[Int64, Int64]:
    """A row per stage and GPU that its task is on, in order of stages, then GPUs: the stage and the GPU."""
    rows, copies = raw.stages, raw.copies
    if len(copies.on) == len(copies):  # every copy is on one GPU
        return np.arange(len(rows)), rows.gpu
    first, count = copies.starts[rows.copy], np.diff(copies.starts)[rows.copy]
    stage, within = spans(count)
    return stage, copies.on[first[stage] + within]


def sets_of(copies: "Copies") -> tuple[Int64, list[list[int]]]:
    """The set of several GPUs that each copy is spread over (-1: one GPU), int64[C], and the GPUs of each set."""
    count = np.diff(copies.starts)
    found = np.full(len(copies), -1, np.int64)
    sets: list[list[int]] = []
    for k in np.unique(count[count > 1]).tolist():
        mine = np.flatnonzero(count == k)
        of_copy = copies.on[copies.starts[mine][:, None] + np.arange(k)]
        gpus, which = np.unique(of_copy, axis=0, return_inverse=True)
        found[mine] = len(sets) + which.ravel()
        sets += gpus.tolist()
    return found, sets


def spans(counts: Int64) -> tuple[Int64, Int64]:
    """Rows written so many times each, and 0, 1, ... within each of them: int64[sum] each."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - (np.cumsum(counts) - counts)[row]


def gpus_of_stage(raw: "RawPack", stage: int) -> list[int]:
    """The GPUs that the task of a stage is on, ascending."""
    copies = raw.copies
    if len(copies.on) == len(copies):
        return [int(raw.stages.gpu[stage])]
    return gpus_of(copies, int(raw.stages.copy[stage]))


def gpus_of(copies: "Copies", copy: int) -> list[int]:
    """The GPUs that a copy is on, ascending."""
    found: list[int] = copies.on[copies.starts[copy] : copies.starts[copy + 1]].tolist()
    return found
