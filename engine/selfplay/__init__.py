"""Whole games between players that are data, played in kernels: for evolution, for tuning, for measuring."""
