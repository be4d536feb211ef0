"""Merged by model."""

from gpuplan.packing import kernels
from gpuplan.packing.policies.base import Order

PIECE = Order(
    "by-model",
    "Higher priority first, then in order of arrival; but after a task of a model the earliest waiting one of "
    "the same model and priority comes next, up to `depth` times in a row; nobody is placed while somebody "
    "before it waits.",
    kernels.BY_MODEL,
)
