"""Blind round-robin.

A model over k GPUs: on that GPU and the next k - 1 in the circle, or the copy that the first of them has that has one.
"""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Placement

PIECE = Placement(
    "round-robin",
    "Task i (its row) goes to GPU i mod count, whatever is there: every GPU has a strict queue of its own.",
    kernels.ROUND_ROBIN,
)
