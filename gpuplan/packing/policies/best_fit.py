"""Best fit by memory."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "best-fit",
    "GPUs that have the model before those on which it fits before those on which it fits after evictions; of "
    "these the one with the least memory left unreserved, then the lowest number.",
    kernels.BEST_FIT,
)
