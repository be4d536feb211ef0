"""Shortest predicted service first."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Order

PIECE = Order(
    "shortest",
    "Higher priority first, then the shortest predicted service, then in order of arrival; nobody is placed "
    "while somebody before it waits.",
    kernels.SHORTEST,
)
