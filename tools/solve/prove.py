"""`hnefi solve prove`: whether a side can force a win from one position of any game, by proof-number search."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, STORAGE, UNWRITABLE, USAGE, unwritten

from ..common import arguments, interrupts
from ..common.live import Live, duration

if TYPE_CHECKING:
    import argparse

    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.solving.dfpn import Answer, ProofSearch
    from hnefi.engine.solving.index import Index

MEMORY = 256
"""Size of the table in MiB."""
PORTION = 500_000
"""Moves between two checks of the clock, and before switching to the other side's question."""
NOT_SETTLED = 1
PAUSE = 10.0
"""Minimum seconds between two plain lines."""
DESCRIPTION = """\
Proves or refutes that a side can force a win from a position, in any number of moves, by proof-number search (df-pn).
It works for every game and board, large ones too; it needs time, and a table of fixed size. Without --win it searches
for both sides in turn until the value of the position is known.

A repeated position counts as no win for the side in question; the rules on repetition then say what endless play is
worth. Limits on the length of a game are ignored. Exit status 1 means that a limit given here was reached first.
"""


@dataclass
class Question:
    """Whether one side can force a win, and the progress towards the answer."""

    winner: int
    answer: Answer | None = None
    nodes: int = 0
    numbers: tuple[int, int] = (1, 1)

    @property
    def open(self) -> bool:
        return self.answer is None


@dataclass
class Search:
    """Questions about one position, asked in turns until all are answered or a limit is reached."""

    search: ProofSearch
    questions: list[Question]
    seconds: float | None = None
    nodes: int | None = None
    begun: float = field(default_factory=time.monotonic)

    def run(self, on_progress: Any = lambda: None) -> None:
        """Ask the questions; interrupts.Interrupted after an interrupt."""
        from hnefi.engine.solving.dfpn import Answer

        # Time for compiling does not count.
        self.search.ask(self.questions[0].winner, 1)
        self.begun = time.monotonic()
        while asked := [question for question in self.questions if question.open]:
            for question in asked:
                interrupts.check()
                left = PORTION if self.nodes is None else min(PORTION, self.nodes - self.used)
                late = self.seconds is not None and time.monotonic() - self.begun >= self.seconds
                if left <= 0 or late or not question.open:
                    return
                answer = self.search.ask(question.winner, left)
                question.nodes += self.search.nodes
                question.numbers = self.search.numbers
                if answer is not Answer.OPEN:
                    question.answer = answer
                if answer is Answer.PROVEN:
                    # Only one side can win.
                    for other in self.questions:
                        if other is not question:
                            other.answer = Answer.REFUTED
                on_progress()

    @property
    def used(self) -> int:
        """Moves made."""
        return sum(question.nodes for question in self.questions)


def main(argv: list[str]) -> int:
    """Prove or refute; 0 if the question is settled, else 1."""
    parser = arguments.parser(
        "solve prove",
        DESCRIPTION,
        [
            "mini-eight",
            "mini-edge --win defenders --time 600 --memory 1024 --table edge.proof",
            "brandubh '3t3/2t4/3T3/1tTKTtt/T6/3t3/3t3 d 0 1' --nodes 10000000",
            "hex:4",
            "mini-eight --tree mini-eight.tafltree",
        ],
    )
    parser.add_argument(
        "variant", metavar="VARIANT", help="name or alias of a variant, or a TOML file; also as --variant"
    )
    parser.takes_variant()
    parser.add_argument("fen", metavar="FEN", nargs="?", help="the position (the start)")
    parser.add_argument(
        "--win", metavar="SIDE", help="look for a win of this side only: attackers, defenders, a or d"
    )
    parser.add_argument("--time", type=arguments.positive, metavar="S", help="stop after S seconds")
    parser.add_argument("--nodes", type=arguments.positive, metavar="N", help="stop after N tried moves")
    parser.add_argument(
        "--memory", type=arguments.positive, metavar="MIB", help=f"largest size of the table ({MEMORY})"
    )
    parser.add_argument(
        "--table",
        metavar="FILE",
        help="keep the table in this file, and continue from it; its contents are trusted",
    )
    parser.add_argument(
        "--tree",
        metavar="FILE",
        help="write the positions of the proof into a new file *.tafltree, from which a player can play",
    )
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments.add_plain(parser)
    arguments.add_variant_path(parser)
    given = parser.parse_args(argv)
    variant = arguments.find_variant(parser, given.variant, given.path)

    from hnefi.engine import games

    played, assumes = _played(variant)
    try:
        position = games.initial(played) if given.fen is None else games.from_fen(played, given.fen)
    except ValueError as error:
        parser.error(str(error))
    sides = _sides(parser, given.win, variant)
    if position.outcome is not None:
        print(f"{position.fen()}: {position.outcome.text}")
        if given.tree is None:
            return 0
        print(f"hnefi solve prove: {given.tree}: not written: the game is over", file=sys.stderr)
        return USAGE
    index = None if given.tree is None else _index(parser, Path(given.tree), variant, position)
    with closing(_table(parser, given, played)) as table:
        return _ask(given, variant, position, sides, table, assumes, index)


def _index(parser: argparse.ArgumentParser, path: Path, variant: AnyVariant, position: Position) -> Index:
    """The numbering of the positions of a tree. Exits the program if the tree could not be written; NotSolvable."""
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.solving.index import Index
    from hnefi.engine.solving.readings import reading

    if not isinstance(variant, Variant):
        parser.error(f"--tree {path}: expected a tafl variant, not {variant.name}")
    if path.exists():
        parser.error(f"{path}: already exists; remove it, or name another file with --tree")
    if not path.absolute().parent.is_dir():
        parser.error(f"{path}: no folder {path.absolute().parent}")
    if not os.access(path.absolute().parent, os.W_OK):
        parser.error(f"{path}: no permission to write in {path.absolute().parent}")
    index = Index(reading(variant).variant, variant.attackers, variant.defenders)
    try:
        index.number(position)
    except ValueError as error:
        parser.error(f"--tree {path}: {error}")
    return index


def _write_tree(
    path: Path,
    variant: AnyVariant,
    index: Index,
    search: ProofSearch,
    position: Position,
    winner: int,
    live: Live,
) -> str:
    """Write the tree of the proof that `search` has found; returns a sentence about it. `grow.NoTree` if there is
    none."""
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.sides import Side
    from hnefi.engine.solving import branches, proof_tree

    from .grow import Grower

    assert isinstance(variant, Variant)
    grower = Grower(index, search, winner, lambda count: live.step(lambda: f"{count} positions of the tree"))
    root = index.canonical(index.number(position))
    numbers, plies = grower.grow(root)
    found = proof_tree.by_material(
        branches.check, search.records[0], index, winner, numbers, plies, interrupts.check
    )
    if found:
        raise AssertionError(f"{found} positions of the tree do not follow from their moves")
    proof_tree.write(path, variant, index, Side(winner), numbers, plies)
    most = int(plies[numbers.searchsorted(root)])
    return f"{path}: {len(numbers)} positions, a win in at most {most} plies, {path.stat().st_size} bytes"


def _played(variant: AnyVariant) -> tuple[AnyVariant, str | None]:
    """The rules without history, and what they are assumed to say about endless play."""
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.solving.proof import memoryless
    from hnefi.engine.solving.readings import assumption

    if not isinstance(variant, Variant):
        return variant, None
    return memoryless(variant), assumption(variant)


def _names(variant: AnyVariant) -> tuple[str, str]:
    from hnefi.engine import catalogue

    first, second = catalogue.GAMES[variant.game].sides
    return first, second


def _sides(parser: argparse.ArgumentParser, word: str | None, variant: AnyVariant) -> list[int]:
    if word is None:
        return [0, 1]
    names = _names(variant)
    found = [w.index(word) for w in (names, ("a", "d"), ("attackers", "defenders")) if word in w]
    if not found:
        parser.error(f"--win {word}: expected {names[0]} or {names[1]}")
    return found[:1]


class _Table:
    """The words of a table, in memory or in a file."""

    def __init__(self, words: Any, path: Path | None) -> None:
        self.words = words
        self.path = path

    @property
    def places(self) -> int:
        """The number of entries that it can hold."""
        return len(self.words) // 2

    def filled(self) -> int:
        """The number of entries that it holds."""
        return sum(
            int((self.words[at + 1 : at + (1 << 20) : 2] != 0).sum())
            for at in range(0, len(self.words), 1 << 20)
        )

    def close(self) -> None:
        if self.path is not None:
            self.words.flush()


def _table(parser: argparse.ArgumentParser, given: argparse.Namespace, played: AnyVariant) -> _Table:
    """The requested table. Exits the program if it cannot be created or opened."""
    import numpy as np

    from hnefi.engine import memory
    from hnefi.engine.solving.dfpn import BYTES

    from . import proof_table

    mib = given.memory or MEMORY
    buckets = 1 << ((mib << 20) // BYTES).bit_length() - 1
    try:
        if given.table is None:
            memory.demand(mib)
            return _Table(np.zeros(buckets * BYTES // 8, np.uint64), None)
        path = Path(given.table)
        return _Table(
            proof_table.mapped(path, played, None if given.memory is None and path.exists() else buckets),
            path,
        )
    except MemoryError as error:
        parser.error(f"--memory {mib}: {error}")
    except proof_table.ProofTableError as error:
        parser.error(str(error))
    except OSError as error:
        if error.errno in UNWRITABLE:
            raise
        parser.error(f"{given.table}: {error.strerror}")


def _ask(
    given: argparse.Namespace,
    variant: AnyVariant,
    position: Position,
    sides: list[int],
    table: _Table,
    assumes: str | None,
    index: Index | None,
) -> int:
    from hnefi.engine.solving.dfpn import Answer, ProofSearch

    from .grow import NoTree

    names = _names(variant)
    live = Live(sys.stderr, plain=given.plain)
    if assumes and not given.quiet:
        live.report([assumes])
    asked = Search(
        ProofSearch(position, table.words), [Question(side) for side in sides], given.time, given.nodes
    )
    last = time.monotonic()

    def state() -> str:
        parts = [
            f"{names[question.winner]}: proof {question.numbers[0]}, disproof {question.numbers[1]}"
            for question in asked.questions
        ]
        seconds = time.monotonic() - asked.begun
        return f"{'; '.join(parts)}; {asked.used} moves in {duration(seconds)}"

    def shown() -> None:
        nonlocal last
        if given.quiet:
            return
        live.show(lambda: [state()])
        if not live.terminal and time.monotonic() - last >= PAUSE:
            last = time.monotonic()
            live.report([state()])

    kept = "nothing was kept (no --table)" if table.path is None else f"{table.path} keeps what was found"
    with interrupts.caught(lambda: [f"hnefi solve prove: interrupted: {state()}; {kept}"]) as caught:
        asked.run(shown)
    live.close()
    if caught.ended:
        return INTERRUPTED
    seconds = time.monotonic() - asked.begun
    proven = next((question.winner for question in asked.questions if question.answer is Answer.PROVEN), None)
    line = () if proven is None else asked.search.line(proven)
    written = no_tree = None
    status = USAGE
    if proven is not None and index is not None:
        words = [f"hnefi solve prove: interrupted: {given.tree} is not written; {kept}"]
        try:
            with interrupts.caught(lambda: words) as caught:
                written = _write_tree(Path(given.tree), variant, index, asked.search, position, proven, live)
        except NoTree as error:
            no_tree = f"hnefi solve prove: {given.tree}: not written: {error}"
        except OSError as error:
            no_tree = f"hnefi solve prove: {unwritten(error)}: the tree is not written; {kept}"
            status = STORAGE
        live.close()
        if caught.ended:
            return INTERRUPTED
    text, winner, repetition = _value(variant, asked.questions)
    if given.json:
        print(json.dumps(_as_json(variant, position, asked, winner, repetition, line, seconds)))
    else:
        from hnefi.engine.squares import move_name

        print(f"{position.fen()}: {text}")
        if line:
            print(f"a line of the proof: {' '.join(map(move_name, line))}")
        if written is not None:
            print(written)
    if not given.quiet:
        filled = table.filled()
        live.report(
            [f"{state()}; {filled} of {table.places} places of the table ({100 * filled // table.places} %)"]
        )
    if no_tree is not None:
        print(no_tree, file=sys.stderr)
        return status
    if not all(question.answer in (Answer.PROVEN, Answer.REFUTED) for question in asked.questions):
        return NOT_SETTLED
    if proven is None and index is not None:
        print(f"hnefi solve prove: {given.tree}: not written: there is no win to prove", file=sys.stderr)
        return USAGE
    return 0


def _value(variant: AnyVariant, questions: list[Question]) -> tuple[str, str | None, bool]:
    """The conclusion: in words, who wins (`a`, `d`, `draw`; None if unknown), and whether that is by repetition."""
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.solving.dfpn import Answer
    from hnefi.engine.solving.readings import drawing_switch, endless_play

    names = _names(variant)
    for question in questions:
        if question.answer is Answer.PROVEN:
            return f"{names[question.winner]} can force a win", "ad"[question.winner], False
    refuted = [question.winner for question in questions if question.answer is Answer.REFUTED]
    if len(refuted) < len(questions) or not refuted:
        deep = any(question.answer is Answer.TOO_DEEP for question in questions)
        why = "the lines are too long for this search" if deep else "a limit was reached first"
        return f"not settled: {why}", None, False
    if len(refuted) == 1:
        return f"{names[refuted[0]]} cannot force a win", None, False
    neither = "neither side can force a win"
    if not isinstance(variant, Variant):
        return f"{neither}: a draw", "draw", False
    endless = endless_play(variant)
    if endless == "draw":
        return f"{neither}: a draw", "draw", False
    if endless == "open":
        return f"{neither}: it depends on the history", None, False
    if switch := drawing_switch(variant):
        return (
            f"{neither}: it is a draw by {switch} or a win by repetition; the search does not tell which",
            None,
            False,
        )
    return f"{endless} win by repetition", endless[0], True


def _as_json(
    variant: AnyVariant,
    position: Position,
    asked: Search,
    winner: str | None,
    repetition: bool,
    line: tuple[int, ...],
    seconds: float,
) -> dict[str, Any]:
    from hnefi.engine.squares import move_name

    return {
        "variant": variant.name,
        "rules": variant.hash,
        "fen": position.fen(),
        "winner": winner,
        "by_repetition": repetition,
        "questions": [
            {
                "side": "ad"[question.winner],
                "answer": "open" if question.answer is None else question.answer.name.lower(),
                "proof": question.numbers[0],
                "disproof": question.numbers[1],
                "nodes": question.nodes,
            }
            for question in asked.questions
        ],
        "line": [move_name(move) for move in line],
        "nodes": asked.used,
        "seconds": round(seconds, 3),
    }
