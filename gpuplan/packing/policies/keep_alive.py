"""Least recently used, and an expiry."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Eviction

PIECE = Eviction(
    "keep-alive",
    "As lru; a model that has been idle for the keep-alive time goes then, whether its memory is needed or "
    "not.",
    kernels.KEEP_ALIVE,
)
