"""Every position of a suite proven again, by two searches that share no code.

The first is minimax as it stands in the engine, with an evaluator that is 0 everywhere and no table: it gives every
root move its exact value, so shortest length and lists of moves are checked at once. Where
it needs too many nodes, the second walks the proof itself with the exact rules: the claimed win, every reply
looked at, the table only a hint; and lengths and lists by the reading without repetitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine import evaluators, games
from hnefi.engine.search import minimax
from hnefi.engine.solving.proof import OutOfNodesError, Prover
from hnefi.engine.squares import move_name
from hnefi.protocol.hosts.puzzles.suite import DIGITS, Entry

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

METHODS = ("minimax", "proof")


class Verifier:
    """Checks the entries of one variant."""

    def __init__(self, variant: Variant, minimax_nodes: int, proof_nodes: int) -> None:
        self.variant = variant
        self._minimax_nodes = minimax_nodes
        self._proof_nodes = proof_nodes
        self._prover = Prover(variant)

    def check(self, entry: Entry) -> tuple[str, str | None]:
        """The method that settled an entry, and what is wrong with it (None: it is right)."""
        if entry.rules != self.variant.hash[:DIGITS]:
            return "rules", f"proven for rules {entry.rules}, these are {self.variant.hash[:DIGITS]}"
        try:
            position = games.from_fen(self.variant, entry.fen)
        except ValueError as error:
            return "rules", str(error)
        if position.outcome is not None:
            return "rules", f"the game is over: {position.outcome.text}"
        values = self._values(position, entry.plies + (2 if entry.kind == "win" else 0))
        if values is not None:
            return METHODS[0], _fault(entry, values)
        self._prover.forget()
        self._prover.allow(self._proof_nodes)
        try:
            return METHODS[1], self._walk(entry, position)
        except OutOfNodesError:
            return METHODS[1], f"not settled within {self._proof_nodes} moves"

    def _values(self, position: Any, depth: int) -> dict[str, int] | None:
        """Plies to the end after each root move, its own included: positive where the side to move wins, negative
        where it loses, 0 where neither is forced; None if minimax needs too many nodes."""
        record = position.new_record()
        params = evaluators.parameters("zero", self.variant)
        work = minimax.new_thread()
        moves = position.legal_moves()
        one = work[0]
        one["full"] = 1
        one["node_limit"] = self._minimax_nodes
        one["root_count"] = len(moves)
        one["root_moves"][: len(moves)] = moves
        for plies in range(1, depth + 1):
            minimax.deepen(record[0], one, params[0], plies)
            if one["aborted"]:
                return None
        return {
            move_name(move): _plies(float(value))
            for move, value in zip(moves, one["root_values"][: len(moves)], strict=True)
        }

    def _walk(self, entry: Entry, position: Any) -> str | None:
        prover, fen, side = self._prover, entry.fen, int(position.side)
        if entry.kind == "win":
            best = prover.shortest(fen, side, entry.plies)
            if best != entry.plies:
                return f"shortest win {best} plies"
            names = {move_name(move): move for move in position.legal_moves()}
            wins = {move_name(move) for move in prover.winning(fen, side, entry.plies)}
            late = {move_name(move) for move in prover.winning(fen, side, entry.plies + 2)} - wins
            if fault := _lists(entry, wins, late):
                return fault
            for part, plies in ((wins, entry.plies), (late, entry.plies + 2)):
                for name in part:
                    if not prover.after(fen, side, plies, names[name], strict=True):
                        return f"{name} does not win within {plies} plies by the exact rules"
            return None
        if entry.kind == "loss":
            best = prover.shortest(fen, 1 - side, entry.plies)
            if best != entry.plies:
                return f"shortest loss {best} plies"
            if not prover.within(fen, 1 - side, entry.plies, strict=True):
                return f"not lost within {entry.plies} plies by the exact rules"
            return None
        lost = set(prover.winning(fen, 1 - side, entry.plies))
        held = {move_name(move) for move in position.legal_moves() if move not in lost}
        if held != set(entry.moves):
            return f"not lost after {' '.join(sorted(held)) or 'no move'}"
        for move in lost:
            if not prover.after(fen, 1 - side, entry.plies, move, strict=True):
                return f"{move_name(move)} does not lose by the exact rules"
        return None


def _plies(value: float) -> int:
    if abs(value) <= minimax.MOST or not np.isfinite(value):
        return 0
    plies = round(minimax.WIN - abs(value))
    return plies if value > 0 else -plies


def _fault(entry: Entry, values: dict[str, int]) -> str | None:
    """What the exact values of all moves say against an entry."""
    if entry.kind == "win":
        wins = {name for name, plies in values.items() if 0 < plies <= entry.plies}
        late = {name for name, plies in values.items() if entry.plies < plies <= entry.plies + 2}
        if fault := _lists(entry, wins, late):
            return fault
        shortest = min((values[name] for name in wins), default=None)
        return None if shortest == entry.plies else f"shortest win {shortest} plies"
    lost = {name for name, plies in values.items() if plies < 0}
    if entry.kind == "loss":
        longest = max(-plies for plies in values.values())
        if len(lost) < len(values):
            return f"{min(set(values) - lost)} does not lose within {entry.plies} plies"
        return None if longest == entry.plies else f"shortest loss {longest} plies"
    held = set(values) - lost
    return None if held == set(entry.moves) else f"not lost after {' '.join(sorted(held)) or 'no move'}"


def _lists(entry: Entry, wins: set[str], late: set[str]) -> str | None:
    if wins != set(entry.moves):
        return f"wins within {entry.plies} plies: {' '.join(sorted(wins)) or 'none'}"
    if late != set(entry.later):
        return f"wins within {entry.plies + 2} plies: {' '.join(sorted(late)) or 'none'}"
    return None
