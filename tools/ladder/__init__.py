"""Ladders: scales of fixed players, from weak to strong, on which other players are placed."""
