"""Worst fit: spread."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "worst-fit",
    "GPUs that have the model before those on which it fits before those on which it fits after evictions; of "
    "these the one with the most memory left unreserved, then the lowest number.",
    kernels.WORST_FIT,
)
