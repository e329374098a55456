"""Experiments of the literature, repeated with error bars: each a plan of runs and tests, and a report."""
