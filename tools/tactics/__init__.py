"""Positions with proven wins and losses: found in games, proven full width, solved by any engine."""
