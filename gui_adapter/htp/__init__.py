"""The Hnefatafl Text Protocol of the programs around hnefatafl.org: our engine behind it, its engines as ours."""
