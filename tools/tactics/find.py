"""Positions for a suite: from recorded games or games of the engine with itself, backwards from the end.

Near the end of a decided game one side has a forced win. From there each game is gone back ply by ply as long as the
prover finds one; of its positions at most two are kept, the longest first.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.engine import games
from hnefi.engine.records import corpus
from hnefi.engine.records.replay import as_played
from hnefi.engine.solving.proof import OutOfNodesError, Prover
from hnefi.engine.squares import move_name
from hnefi.protocol.hosts.puzzles.suite import DIGITS, Entry

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

LOOK_BACK = 14
FIRST_PLY = 8
ONLY_PLIES = 4
MOST_WINS = 4
MOST_LATER = 20
PER_GAME = 2
OPENING = (3, 8)
MOST_PLIES = 160
NODES = (100, 1200)


@dataclass(frozen=True, slots=True)
class Game:
    """A decided game: where it comes from, its positions before each move, and who won."""

    source: str
    positions: tuple[Position, ...]
    winner: int


def recorded(path: Path, variant: Variant) -> Iterator[Game]:
    """The decided games of a collection, as they were played; CorpusError if it cannot be read."""
    csv = corpus.corpus_format(path) == "csv"
    start = games.initial(as_played(variant) if csv else variant)
    for game in corpus.read(path, variant.size):
        if game.result not in ("a", "d"):
            continue
        positions = [start]
        try:
            for move, _ in game.plies:
                positions.append(positions[-1].play(move))
        except ValueError:
            continue  # `hnefi verify` reports it
        if positions[-1].outcome is not None:
            yield Game(f"{path.name}:{game.line}", tuple(positions[:-1]), "ad".index(game.result))


def self_play(variant: Variant, count: int, seed: int) -> Iterator[Game]:
    """Decided games of the engine with itself: a random opening, then so few nodes a move that it errs."""
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Limits, Settings

    for number in range(count):
        draw = random.Random(f"tactics {variant.hash} {seed} {number}")
        searcher = Searcher(Settings(hash_mib=1))
        positions: list[Position] = [games.initial(variant)]
        opening = draw.randint(*OPENING)
        while len(positions) <= MOST_PLIES and positions[-1].outcome is None:
            now = positions[-1]
            if len(positions) <= opening:
                move: int | None = draw.choice(now.legal_moves())
            else:
                searcher.begin()
                move = searcher.search(now, Limits(nodes=draw.randint(*NODES)), lambda _: None).move
            assert move is not None
            positions.append(now.play(move))
        end = positions[-1].outcome
        if end is not None and end.winner is not None:
            yield Game(f"self-play seed {seed} game {number}", tuple(positions[:-1]), int(end.winner))


def candidates(prover: Prover, game: Game, nodes: int, most: int) -> list[Entry]:
    """What can be proven near the end of a game, at most `PER_GAME` positions; ids are still to be given."""
    found: list[Entry] = []
    decided = True
    for position in reversed(game.positions[max(FIRST_PLY, len(game.positions) - LOOK_BACK) :]):
        fen = position.fen()
        if prover.position(fen, strict=True).outcome is not None:
            continue
        prover.allow(nodes)
        try:
            plies = prover.shortest(fen, game.winner, most) if decided else None
            if plies is None:
                decided = False
                entry = _only(prover, game, position)
            else:
                entry = _forced(prover, game, position, plies)
        except OutOfNodesError:
            decided = False
            continue
        found += [] if entry is None else [entry]
    return _best(found)


def _best(found: list[Entry]) -> list[Entry]:
    """The longest win, then whatever is longest, not two neighbours."""
    found.sort(key=lambda entry: entry.plies, reverse=True)
    first = next((entry for kind in ("win", "only") for entry in found if entry.kind == kind), None)
    kept = [] if first is None else [first]
    for entry in found:
        if len(kept) < PER_GAME and all(abs(entry.ply - other.ply) > 1 for other in kept):
            kept.append(entry)
    return kept


def _forced(prover: Prover, game: Game, position: Position, plies: int) -> Entry | None:
    """A win or a loss; None if it is too plain: a win by captures alone, or one that leaves a choice of many."""
    fen = position.fen()
    if int(position.side) != game.winner:
        return None if plies < 4 else _entry(prover.variant, game, position, "loss", plies)
    if plies < 3:
        return None
    wins = prover.winning(fen, game.winner, plies)
    later = prover.winning(fen, game.winner, plies + 2)
    if len(wins) > MOST_WINS or len(later) > MOST_LATER:
        return None
    if plies == 3 and any(position.play(move).last_captures for move in wins):
        return None
    extra = tuple(move for move in later if move not in wins)
    return _entry(prover.variant, game, position, "win", plies, wins, extra)


def _only(prover: Prover, game: Game, position: Position) -> Entry | None:
    """The one move that does not lose, if there is one and not every other loses at once."""
    fen, enemy = position.fen(), 1 - int(position.side)
    lost = prover.winning(fen, enemy, ONLY_PLIES)
    moves = prover.position(fen).legal_moves()
    if len(moves) - len(lost) != 1 or len(prover.winning(fen, enemy, 2)) == len(lost):
        return None
    (held,) = set(moves) - set(lost)
    return _entry(prover.variant, game, position, "only", ONLY_PLIES, (held,))


def _entry(
    variant: Variant,
    game: Game,
    position: Position,
    kind: str,
    plies: int,
    moves: tuple[int, ...] = (),
    later: tuple[int, ...] = (),
) -> Entry:
    first, second = (tuple(move_name(move) for move in part) for part in (moves, later))
    rules, proof = variant.hash[:DIGITS], "full width"
    return Entry(
        "",
        variant.name,
        rules,
        kind,
        plies,
        first,
        second,
        game.source,
        position.ply,
        proof,
        position.fen(),
    )


def select(found: list[Entry], count: int) -> list[Entry]:
    """`count` of the candidates of one variant: kinds and lengths in turn, none twice, with ids."""
    groups: dict[tuple[str, int], list[Entry]] = {}
    seen: set[str] = set()
    for entry in found:
        board = entry.fen.split()[0]
        if board not in seen:
            seen.add(board)
            groups.setdefault((entry.kind, entry.plies), []).append(entry)
    chosen: list[Entry] = []
    order = sorted(groups, key=lambda group: (-group[1], group[0]))
    while len(chosen) < count and any(groups.values()):
        for group in order:
            if groups[group] and len(chosen) < count:
                chosen.append(groups[group].pop(0))
    return [replace(entry, id=f"{entry.variant}-{number:03}") for number, entry in enumerate(chosen, start=1)]


def find(
    variant: Variant, source: Iterator[Game], count: int, nodes: int, most: int, enough: int
) -> list[Entry]:
    """A suite of `count` positions of one variant; the games are looked at until `enough` candidates are there."""
    prover = Prover(variant)
    found: list[Entry] = []
    for game in source:
        found += candidates(prover, game, nodes, most)
        if len(found) >= enough:
            break
    return select(found, count)
