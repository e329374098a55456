"""OpenTafl: our engine behind its board, and its engine as one of ours."""
