"""Round-robin past GPUs that cannot take the task.

A model over k GPUs: a copy on that GPU, else a new one there and on the next k - 1 in the circle that can take a part.
"""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "round-robin-skip",
    "The next GPU in the circle after the last one used on which the task can be placed without an eviction, "
    "else the next on which it can be placed with evictions.",
    kernels.ROUND_ROBIN_SKIP,
)
