"""Hexapawn on any board: pawns that step and capture as in chess; far row, last pawn or last move decides."""
