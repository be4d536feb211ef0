"""Cheapest expected reload."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Eviction

PIECE = Eviction(
    "cost",
    "The idle model with the least tasks placed on the node so far x bytes of weights goes first, then the "
    "lowest row.",
    kernels.COST,
)
