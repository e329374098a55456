"""What a puzzle is about, read off its solution: how the game ends, and what the first move does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hnefi.engine.solving.proof import OutOfNodesError
from hnefi.engine.squares import origin
from hnefi.protocol.hosts.puzzles.exercise import Exercise
from hnefi.protocol.hosts.puzzles.suite import Entry

if TYPE_CHECKING:
    from hnefi.engine.solving.proof import Prover

ENDS: Final = {
    "king_captured": "king-capture",
    "king_escaped": "escape",
    "exit_fort": "fort",
    "surrounded": "enclosure",
    "sealed": "enclosure",
    "all_captured": "last-man",
    "no_legal_move": "no-moves",
}
"""The theme of each end that a win can have; an end that is not here has none."""
NODES: Final = 3_000_000
"""Moves within which the best defence has to be found; a theme that takes longer is left out."""


def themes_of(entry: Entry, prover: Prover) -> tuple[str, ...]:
    """The themes of a win, how it ends first; empty for anything but a win."""
    if entry.kind != "win":
        return ()
    exercise = Exercise(entry, prover)
    start = exercise.position
    prover.allow(NODES)
    try:
        line = exercise.line()
    except OutOfNodesError:
        return ()
    finally:
        prover.allow(None)
    found = []
    outcome = exercise.position.outcome
    end = "no_legal_move" if outcome is None else outcome.reason.value
    if end in ENDS:
        found.append(ENDS[end])
    move, after = line[0]
    found.append("capture" if after.last_captures else "quiet")
    if dict(start.setup.pieces)[origin(move)] == "K":
        found.append("king-move")
    if len(line) > 1 and line[1][1].last_captures:
        found.append("sacrifice")
    if len(line) > 1 and threats(after.fen(), exercise.side, prover) > 1:
        found.append("double-threat")
    return tuple(found)


def passed(fen: str) -> str | None:
    """The position in which the other side is to move; None in the middle of a berserk turn."""
    words = fen.split()
    if len(words) < 2 or words[1] not in "ad" or any("=" in word for word in words[2:]):
        return None
    words[1] = "da"["ad".index(words[1])]
    return " ".join(words)


def threats(fen: str, side: int, prover: Prover) -> int:
    """How many moves would win at once if the other side passed."""
    turned = passed(fen)
    if turned is None:
        return 0
    position = prover.position(turned)
    if position.outcome is not None or not position.legal_moves():
        return 0
    return len(prover.winning(turned, side, 1))
