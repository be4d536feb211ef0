"""Many models in the memory of a few GPUs: placement, eviction, preemption, and two ledgers of memory."""
