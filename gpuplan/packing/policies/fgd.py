"""Fragmentation gradient descent."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "fgd",
    "GPUs that have the model before those on which it fits before those on which it fits after evictions; of "
    "these the one whose fragmentation grows least, then the lowest number; fragmentation is the unreserved "
    "memory times the popularity of the models that do not fit into it (Weng and others, USENIX ATC 2023).",
    kernels.FGD,
)
