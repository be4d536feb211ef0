"""First come, first served, with bounded backfill."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Order

PIECE = Order(
    "backfill",
    "Higher priority first, then in order of arrival; up to `depth` tasks behind the first that cannot be "
    "placed are tried, again as long as one of them is placed.",
    kernels.BACKFILL,
)
