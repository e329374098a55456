"""Experiments of the literature, run anew with error bars: each a plan of runs and tests, and a report."""
