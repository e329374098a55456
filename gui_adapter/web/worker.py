"""The process that knows the rules for pages: requests on standard input, answers on standard output, as lines of JSON.

It proves which moves of a puzzle are right, and finds the positions of lessons. It is a separate process because a
proof may take a second and its kernels hundreds of megabytes; it ends with its input. Between requests it only keeps
proven results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from hnefi.engine.games import find
from hnefi.engine.games.lesson import lesson
from hnefi.engine.games.tafl.variant import from_words
from hnefi.engine.squares import move_name, name, origin
from hnefi.protocol.hosts.puzzles.exercise import Exercise, prover_of
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, read
from hnefi.protocol.hosts.rulebook import special_squares

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.solving.proof import Prover

PROVERS: Final = 4
"""The number of recent variants whose tables (16 MiB each) are kept."""


class Worker:
    """Answers requests about a `puzzle` (its id, the correct moves so far, what to do) or for the `lesson` of a
    variant."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.id: entry for entry in entries}
        self._provers: dict[str, Prover] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; `error` says what was wrong with it."""
        try:
            if "lesson" in request:
                variant: AnyVariant = (
                    from_words(request["rules"]) if request["rules"] else find(request["lesson"])
                )
                return {
                    "steps": [asdict(step) for step in lesson(variant)],
                    "special": special_squares(variant.rules_lines()),
                }
            entry = self._entries[request["puzzle"]]
            exercise = Exercise(entry, self._prover(entry))
            for move in request["moves"]:
                exercise.play(move)
            return self._done(exercise, request)
        except ValueError as error:
            return {"error": str(error)}

    def _done(self, exercise: Exercise, request: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        match request["do"]:
            case "try":
                answer = exercise.play(request["move"])
                found = {
                    "right": answer.right,
                    "solved": answer.solved,
                    "text": answer.text,
                    "steps": [_step(move, after) for move, after in answer.steps],
                }
            case "hint":
                best = exercise.best()
                mark = move_name(best) if request["more"] else name(origin(best))
                found = {"text": exercise.hint(request["more"]), "mark": mark}
            case "solution":
                line = exercise.line()
                found = {"text": exercise.told(line), "steps": [_step(move, after) for move, after in line]}
            case _:
                found = {"task": exercise.task, "side": "ad"[exercise.side]}
        position = exercise.position
        legal = [] if position.outcome is not None else position.legal_moves_with_captures()
        return {
            **found,
            "fen": position.fen(),
            "legal": [
                {"m": move_name(move), "x": [name(square) for square in taken]} for move, taken in legal
            ],
            "special": special_squares(position.variant.rules_lines()),
        }

    def _prover(self, entry: Entry) -> Prover:
        prover = self._provers.pop(entry.variant, None) or prover_of(entry)
        self._provers[entry.variant] = prover
        if len(self._provers) > PROVERS:
            del self._provers[next(iter(self._provers))]
        return prover


def _step(move: int, after: Any) -> dict[str, Any]:
    return {"m": move_name(move), "x": [name(square) for square in after.last_captures], "fen": after.fen()}


def main() -> None:
    """Answer until the input ends."""
    worker = Worker(read(SHIPPED))
    for line in sys.stdin.buffer:
        print(json.dumps(worker.answer(json.loads(line)), separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
