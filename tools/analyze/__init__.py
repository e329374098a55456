"""Analysis: what an engine thinks of a position, and of every move of a recorded game."""
