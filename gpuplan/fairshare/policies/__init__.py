"""The fair-share policies: one file each, and one line each in `ALL`."""

from gpuplan.fairshare.policies import (
    conservative,
    easy,
    fair_share,
    fair_tree,
    fifo,
    fifo_per_type,
    fifo_skip,
    priority_tiers,
    sjf,
    static_partitions,
)
from gpuplan.fairshare.policies.base import Policy

#: All policies, in the order of tables and legends.
ALL: tuple[Policy, ...] = (
    fifo.POLICY,
    fifo_skip.POLICY,
    fifo_per_type.POLICY,
    easy.POLICY,
    conservative.POLICY,
    sjf.POLICY,
    priority_tiers.POLICY,
    static_partitions.POLICY,
    fair_share.POLICY,
    fair_tree.POLICY,
)

#: Their names.
POLICIES: tuple[str, ...] = tuple(policy.name for policy in ALL)

__all__ = ["ALL", "POLICIES", "Policy"]
