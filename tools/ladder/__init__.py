"""Ladders: frozen players one above the other, on whose scale others are placed."""
