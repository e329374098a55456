"""`hnefi web`: the board in the browser, with an engine process behind each game."""
