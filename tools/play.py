"""`hnefi play`: a placeholder that says what can be done until games at the terminal exist."""

from __future__ import annotations

from .arguments import parser

TEXT = """\
Playing at the terminal is not there yet: a board in colour, moves with completion, clocks, hints and analysis
come with one of the next versions.

Until then the engine itself plays with whoever types its commands. Start it with `hnefi engine` and try:

  variant brandubh
  d                      the board
  moves                  what may be played
  play a4a2              a move of yours
  go movetime 1000       the engine thinks for a second; its move is the one behind `bestmove`
  play ...               play that move for it, then yours
  help                   everything else
  quit"""


def main(argv: list[str]) -> int:
    """Say what comes, and what there is."""
    parser("play", "A game at the terminal: not there yet, says what can be done instead.").parse_args(argv)
    print(TEXT)
    return 0
