"""Fair share: GPU-time budgets with time slicing against priorities, monopolies and queues, over weeks."""
