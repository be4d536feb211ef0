"""Proven optima with CP-SAT: when jobs run, then where (OR-Tools loads when it is needed)."""
