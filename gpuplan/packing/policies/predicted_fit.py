"""Memory and predicted run time."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "predicted-fit",
    "GPUs that have the model before those on which it fits before those on which it fits after evictions; of "
    "these the one whose tasks have the least predicted service left in sum, then the least memory left "
    "unreserved, then the lowest number.",
    kernels.PREDICTED_FIT,
)
