"""Games at the terminal: typed lines, a full screen, or a script, on one controller."""
