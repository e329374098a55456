"""Recorded games in every format: reading, writing, carrying rules along, and checking games by their rules."""
