"""Least frequently used."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Eviction

PIECE = Eviction(
    "lfu",
    "The idle model for which the fewest tasks have been placed on the node so far goes first, then the "
    "lowest row.",
    kernels.LFU,
)
