"""What the programs around the engine share: journals, traces, tables of text, a filter for strangers."""
