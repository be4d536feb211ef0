"""Sweeps: many variants of one scenario, each under several policies, on all cores or many machines."""
