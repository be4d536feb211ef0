"""Allocation: which GPU runs which job, at which step, at what priority."""
