"""The allocation policies: one file each, and one line each in `ALL`."""

from gpuplan.allocation.policies import (
    aware,
    curve_fifo,
    curve_priority,
    exact,
    fifo,
    fifo_strict,
    peak_priority,
    search,
)
from gpuplan.allocation.policies.base import Assignment, Effort, Policy, Progress, Proof

#: All policies, in the order of tables and legends.
ALL: tuple[Policy, ...] = (
    fifo.POLICY,
    fifo_strict.POLICY,
    curve_fifo.POLICY,
    peak_priority.POLICY,
    curve_priority.POLICY,
    aware.POLICY,
    search.POLICY,
    exact.POLICY,
)

#: Their names.
POLICIES: tuple[str, ...] = tuple(policy.name for policy in ALL)

__all__ = ["ALL", "POLICIES", "Assignment", "Effort", "Policy", "Progress", "Proof"]
