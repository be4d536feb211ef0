"""Least recently used."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Eviction

PIECE = Eviction(
    "lru",
    "The idle model whose last use ended earliest goes first, then the lowest row.",
    kernels.LRU,
)
