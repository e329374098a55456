"""Hex: two sides join opposite edges of a rhombus; with `hex-swap` the second ply may take over the first stone."""
