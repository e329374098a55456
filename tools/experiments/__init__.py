"""Published experiments, repeated with error bars: each has a plan of runs and tests, and a report."""
