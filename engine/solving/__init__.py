"""Exact values: of every position of a small tafl board, and of the start of games that never repeat a position."""
