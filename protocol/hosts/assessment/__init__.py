"""How good the moves of a game were, from what an engine thinks of its positions: for `hnefi analyze` and `play`."""
