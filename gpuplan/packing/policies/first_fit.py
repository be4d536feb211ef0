"""First fit."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "first-fit",
    "GPUs that have the model before those on which it fits before those on which it fits after evictions; of "
    "these the one with the lowest number.",
    kernels.FIRST_FIT,
)
