"""First come, first served, strictly."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Order

PIECE = Order(
    "fifo",
    "Higher priority first, then in order of arrival; nobody is placed while somebody before it waits.",
    kernels.FIFO,
)
