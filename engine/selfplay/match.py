"""Whole games between players that are data, many in one call of a kernel without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import games as doors
from ..compile.jit import entry, kernel
from ..evaluators.loaded import LOADED
from ..games import random_slide as _otherwise  # noqa: F401  binds what a game without passes does
from ..games.base_position import Position
from ..games.base_variant import AnyVariant
from ..games.interface import (
    adjudicate,
    make,
    no_move_outcome,
    pass_turn,
    random_move,
    random_slide,
    take_back,
)
from ..search import minimax
from ..sides import Reason
from . import few_plies, hex_one_ply, hingston2007_incremental, one_ply

MOST_PLIES = 4000
"""A longer game is a draw: without a limit in the rules two players may move to and fro forever."""
UNIFORM, SLIDING = 1, 2
"""Random players, in the field `random` of `PLAYER`."""
RANDOM = {"minimax": 0, "random": UNIFORM, "random-coded": SLIDING}
PLY_CAP = Reason.PLY_CAP.code | 3 << 8
BLOCK = 256
FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Of the hash FNV-1a (G. Fowler, L. C. Noll, P. Vo), here with a move in the place of a byte."""

GAME = np.dtype(
    [
        ("attackers", "i4"),  # who plays: places in the list of contestants
        ("defenders", "i4"),
        ("seed", "u8"),
        ("outcome", "i4"),  # reason | (winner + 1) << 8, winner 2 for a draw
        ("plies", "i4"),
        ("taken", "i4", (2,)),  # men taken in this game by attackers, by defenders
        ("evaluations", "i8"),  # positions scored by both
        ("moves_hash", "u8"),  # of the moves: games with the same moves have the same, others another
    ],
    align=True,
)

PLAYER = np.dtype(
    [
        ("random", "i8"),
        ("depth", "i8"),
        ("flat", "i8"),
        ("unseen", "i8"),
        ("params", "i8"),
        ("accumulator", "i8"),
    ]
)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A player.

    `random`: a uniformly random legal move. `random-coded`: the random player of `games/tafl/random_slide.py`, who may
    pass (other games: as `random`). `minimax`: full width to `depth` plies, values by `params` (one element
    or record of `LOADED`; None: every position is worth nothing, so that only wins and losses are told apart), exact
    ties broken at random. `flat`: a won game is worth the same near or far. `unseen`: a finished position is worth
    what `params` say of it. `learned`, only in Hex: besides, every cell is a candidate, and who chooses one that is
    taken has lost.
    """

    algorithm: Literal["random", "random-coded", "minimax"]
    depth: int = 1
    params: Any = None
    flat: bool = False
    unseen: bool = False
    learned: bool = False


@kernel
def choose(s, td, player, params, accumulators):
    """The move of a player, 0 if there is none, negative if it passes."""
    if player.random:
        return random_move(s) if player.random == UNIFORM else random_slide(s)
    if accumulators is not None:  # noqa: SIM102 - alone, so that the compiler drops the rest where there are none
        if accumulators[player.accumulator].fits:
            if player.depth == 1:
                return one_ply.choose(s, td, params[player.params], accumulators[player.accumulator])
            td.flat = player.flat
            return few_plies.choose(
                s, td, params[player.params], accumulators[player.accumulator], player.depth
            )
    td.flat = player.flat
    td.unseen = player.unseen
    mind = params[player.params]
    mind.root_side = s.side + 1
    mind.root_caught = s.caught_top
    return minimax.choose(s, td, mind, player.depth)


@kernel
def start_stream(s, seed):
    """The random numbers of a game: its seed mixed (splitmix64), so that neighbours have nothing in common."""
    z = seed + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    s.random = z if z != 0 else np.uint64(1)


@kernel
def play_game(s, td, players, params, accumulators, game):
    """One game from where `s` stands; `s` is taken back to there."""
    start_stream(s, game.seed)
    game.taken[0] = 0
    game.taken[1] = 0
    game.evaluations = 0
    game.moves_hash = FNV_OFFSET
    begun = s.ply
    attackers = players[game.attackers]
    defenders = players[game.defenders]
    if accumulators is not None:
        hingston2007_incremental.refresh(accumulators[attackers.accumulator], s)
        hingston2007_incremental.refresh(accumulators[defenders.accumulator], s)
    while s.outcome == 0:
        if s.ply - begun == MOST_PLIES:
            s.outcome = PLY_CAP
            break
        side = s.side
        td.nodes = 0
        move = choose(s, td, attackers if side == 0 else defenders, params, accumulators)
        game.evaluations += td.nodes
        if move == 0:
            s.outcome = no_move_outcome(s)
            break
        game.moves_hash = (game.moves_hash ^ np.uint64(max(move, 0))) * FNV_PRIME
        caught = s.caught_top
        if move < 0:
            pass_turn(s)
        else:
            make(s, move)
        game.taken[side] += s.caught_top - caught
        if s.outcome == 0:
            s.outcome = adjudicate(s, -1)
        if accumulators is not None:
            hingston2007_incremental.update(accumulators[attackers.accumulator], s)
            if attackers.accumulator != defenders.accumulator:
                hingston2007_incremental.update(accumulators[defenders.accumulator], s)
    game.outcome = s.outcome
    game.plies = s.ply - begun
    while s.ply > begun:
        take_back(s)
    s.outcome = 0


@entry
def play_games(s, td, players, params, accumulators, games):
    """All games in turn. `accumulators`: networks that follow the games, None where the game knows no such."""
    for i in range(games.size):
        play_game(s, td, players, params, accumulators, games[i])


@entry
def play_hex_games(s, seats, numbers, board, games):
    """The same between players of `hex_one_ply`."""
    for i in range(games.size):
        start_stream(s, games[i].seed)
        hex_one_ply.play_game(s, seats, numbers, board, games[i], FNV_OFFSET, FNV_PRIME)


class Table:
    """Contestants prepared once for any number of games, from the variant's start or from a position; for one thread at
    a time.

    ValueError for contestants who cannot play. Without `quick` every position is scored from scratch: the same games,
    slowly.
    """

    def __init__(self, variant: AnyVariant, contestants: Sequence[Contestant], *, quick: bool = True) -> None:
        players = np.zeros(len(contestants), PLAYER)
        records: dict[int, tuple[int, Any]] = {}
        for player, contestant in zip(players, contestants, strict=True):
            if contestant.algorithm not in RANDOM:
                raise ValueError(
                    f"algorithm {contestant.algorithm!r}: expected random, random-coded or minimax"
                )
            if not 1 <= contestant.depth <= minimax.DEEPEST:
                raise ValueError(f"depth {contestant.depth}: expected 1 to {minimax.DEEPEST}")
            player["random"] = RANDOM[contestant.algorithm]
            player["depth"] = contestant.depth
            player["flat"] = contestant.flat
            player["unseen"] = contestant.unseen
            if variant.game != "hex" and contestant.learned:
                raise ValueError(f"{variant.name}: expected players who know what is legal")
            if contestant.params is not None and contestant.params.dtype.itemsize != LOADED.itemsize:
                raise ValueError("parameters of another record: expected a network of `loaded.py`")
            if contestant.algorithm == "minimax" and contestant.params is not None:
                number, _ = records.setdefault(id(contestant.params), (1 + len(records), contestant.params))
                player["params"] = number
        self.players = players.view(np.recarray)
        self._seats = _seats(variant, contestants) if quick else None
        if self._seats is None:
            if any(contestant.learned for contestant in contestants):
                raise ValueError("learned: expected players one ply deep with a small perceptron")
            params = np.zeros(len(records) + 1, LOADED)
            for number, record in records.values():
                _copy(np.asarray(record).reshape(-1)[0], params[number])
            self.params = params.view(np.recarray)
        self._accumulators = _follow(self.players, self.params, quick) if variant.game == "tafl" else None
        self._initial = doors.initial(variant)
        self.record = self._initial.new_record()
        self.state = self.record[0]
        self.td = minimax.new_thread()[0]

    def play(self, games: Any, start: Position | None = None) -> None:
        """Play `games`, a one-dimensional array of dtype `GAME`, and write the results into it; a start that is an end
        already leaves them as they are. A game depends on its two contestants, its seed and the start alone, not on the
        others; plies, moves and men taken are counted from there. ValueError for contestants that do not exist.
        """
        (start or self._initial).load(self.record)
        named = np.concatenate([games["attackers"], games["defenders"]])
        if named.size and not 0 <= named.min() <= named.max() < len(self.players):
            raise ValueError(
                f"contestants {named.min()} to {named.max()}: expected 0 to {len(self.players) - 1}"
            )
        if self.state["outcome"] != 0:
            return
        if self._seats is not None:
            play_hex_games(self.state, *self._seats, games.view(np.recarray))
        else:
            play_games(
                self.state,
                self.td,
                self.players,
                self.params,
                self._accumulators,
                games.view(np.recarray),
            )


def play(variant: AnyVariant, contestants: Sequence[Contestant], games: Any, *, quick: bool = True) -> None:
    """Play `games` at a `Table` of their own."""
    Table(variant, contestants, quick=quick).play(games)


def _copy(record: Any, into: Any) -> None:
    """Copy parameters into a fresh record; memory behind the last weight stays untouched, since most of it is."""
    for name in ("architecture", "scale", "shape"):
        into[name] = record[name]
    weights = record["weights"]
    # By blocks: looking for single weights among 32,768 took longer than all else here.
    blocks = np.flatnonzero(weights.reshape(-1, BLOCK).any(axis=1))
    if blocks.size:
        used = BLOCK * (int(blocks[-1]) + 1)
        into["weights"][:used] = weights[:used]


def _seats(variant: AnyVariant, contestants: Sequence[Contestant]) -> tuple[Any, Any, Any] | None:
    """What the kernel for Hex needs, None where it does not know one of the players."""
    if variant.game != "hex" or getattr(variant, "swap", False):
        return None
    players = []
    for contestant in contestants:
        params = None
        if contestant.algorithm == "minimax":
            params = None if contestant.params is None else np.asarray(contestant.params).reshape(-1)[0]
            if (
                params is None
                or contestant.depth > 1
                or not contestant.unseen
                or not hex_one_ply.fits(params)
            ):
                return None
        players.append((params, contestant.learned))
    seats, numbers = hex_one_ply.seated(players)
    return seats, numbers, hex_one_ply.board(variant.files)[0]


def _follow(players: Any, params: Any, quick: bool) -> Any:
    """Accumulators of the contestants that look a few plies ahead; the first, of no network, stands for all others."""
    looks = (
        (players["random"] == 0) & (players["depth"] <= few_plies.DEEPEST) & (players["unseen"] == 0) & quick
    )
    used = np.unique(players["params"][looks])
    accumulators = hingston2007_incremental.new(len(used) + 1)
    for accumulator, i in enumerate(used, start=1):
        hingston2007_incremental.prepare(params[i], accumulators[accumulator])
        if accumulators[accumulator]["fits"]:
            players["accumulator"][looks & (players["params"] == i)] = accumulator
    return accumulators
