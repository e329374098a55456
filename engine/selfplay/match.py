"""Whole games between loaded evaluators, many per kernel call, without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import games as doors
from ..compile.jit import entry, kernel
from ..compile.rng import mixed
from ..evaluators.loaded import LOADED
from ..games import random_slide as _otherwise  # noqa: F401  binds the verbs of games without passes
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
from ..mixing import GOLDEN_GAMMA
from ..search import minimax
from ..sides import DRAWN, WINNER, Reason
from . import few_plies, hex_one_ply, hingston2007_incremental, material_plies, one_ply

MOST_PLIES = 4000
"""A longer game is a draw: without a limit in the rules two players could shuffle forever."""
UNIFORM, SLIDING = 1, 2
"""Kinds of random players, in the field `random` of `PLAYER`."""
RANDOM = {"minimax": 0, "random": UNIFORM, "random-coded": SLIDING}
WEIGHTS_AT = LOADED.fields["weights"][1] if LOADED.fields else 0
"""Where in a record its weights begin, in bytes."""
PLY_CAP = Reason.PLY_CAP.code | DRAWN + 1 << WINNER
FNV_OFFSET, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
"""Constants of the hash FNV-1a (G. Fowler, L. C. Noll, P. Vo), applied here to moves instead of bytes."""

GAME = np.dtype(
    [
        ("attackers", "i4"),  # indices into the list of contestants
        ("defenders", "i4"),
        ("seed", "u8"),
        ("outcome", "i4"),  # reason | (winner + 1) << WINNER, winner DRAWN for a draw
        ("plies", "i4"),
        ("taken", "i4", (2,)),  # men taken in this game by attackers, by defenders
        ("evaluations", "i8"),  # positions scored by both
        ("moves_hash", "u8"),  # hash of the moves
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
    """A player in a match.

    `random`: a uniformly random legal move. `random-coded`: the random player of `games/tafl/random_slide.py`, who may
    pass (other games: as `random`). `minimax`: full width to `depth` plies, evaluated by `params` (one element or
    record of `LOADED`; None: every position is worth 0, so that only wins and losses count), exact ties broken at
    random. `flat`: all wins are worth the same, however far away. `unseen`: a finished position is evaluated by
    `params` like any other. `learned`, only in Hex: `unseen`, and every cell is a candidate; choosing an occupied one
    loses.
    """

    algorithm: Literal["random", "random-coded", "minimax"]
    depth: int = 1
    params: Any = None
    flat: bool = False
    unseen: bool = False
    learned: bool = False


@kernel
def choose(s, td, player, params, accumulators):
    """The move of a player; 0 if there is none, negative for a pass."""
    if player.random:
        return random_move(s) if player.random == UNIFORM else random_slide(s)
    td.flat = player.flat
    if accumulators is not None:
        net = accumulators[player.accumulator]
        if net.material:
            return material_plies.choose(s, td, params[player.params], net, player.depth)
        if net.fits:
            if player.depth == 1:
                return one_ply.choose(s, td, params[player.params], net)
            return few_plies.choose(s, td, params[player.params], net, player.depth)
    td.unseen = player.unseen
    mind = params[player.params]
    mind.root_side = s.side + 1
    mind.root_caught = s.caught_top
    return minimax.choose(s, td, mind, player.depth)


@kernel
def start_stream(s, seed):
    """Seed the random numbers of a game, mixing the seed (splitmix64) so that similar seeds give unrelated streams."""
    z = mixed(seed + GOLDEN_GAMMA)
    s.random = z if z != 0 else np.uint64(1)


@kernel
def play_game(s, td, players, params, accumulators, game):
    """Play one game from the position of `s`; restores `s`."""
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
    """Play all games in order. `accumulators`: incremental networks, None for games without them."""
    for i in range(games.size):
        play_game(s, td, players, params, accumulators, games[i])


@entry
def play_hex_games(s, seats, numbers, board, games):
    """As `play_games`, between players of `hex_one_ply`."""
    for i in range(games.size):
        start_stream(s, games[i].seed)
        hex_one_ply.play_game(s, seats, numbers, board, games[i], FNV_OFFSET, FNV_PRIME)


class Table:
    """Contestants prepared once for any number of games, from the variant's start or from a position. Not thread-safe.

    ValueError for contestants that cannot play. Without `quick` every position is evaluated from scratch: the same
    games, slowly.
    """

    def __init__(self, variant: AnyVariant, contestants: Sequence[Contestant], *, quick: bool = True) -> None:
        self.variant, self.quick = variant, quick
        self._initial = doors.initial(variant)
        self.record = self._initial.new_record()
        self.state = self.record[0]
        self.td = minimax.new_thread()[0]
        self.params = _no_params(0)
        self._accumulators = hingston2007_incremental.new(0) if variant.game == "tafl" else None
        self.seat(contestants)

    def seat(self, contestants: Sequence[Contestant]) -> None:
        """Prepare other contestants in the same memory: new memory costs more than preparing them. ValueError as for
        new tables."""
        records: dict[int, tuple[int, Any]] = {}
        rows = []
        for contestant in contestants:
            _expect_playable(self.variant, contestant)
            number, params = 0, contestant.params
            if contestant.algorithm == "minimax" and params is not None:
                number, _ = records.setdefault(id(params), (1 + len(records), params))
            kind = RANDOM[contestant.algorithm]
            rows.append((kind, contestant.depth, contestant.flat, contestant.unseen, number, 0))
        self.contestants, self.players = contestants, np.array(rows, PLAYER).view(np.recarray)
        self._seats = _seats(self.variant, contestants) if self.quick else None
        if self._seats is not None:
            return
        if any(contestant.learned for contestant in contestants):
            raise ValueError("learned: expected players one ply deep with a small perceptron")
        if len(self.params) != len(records) + 1:
            self.params = _no_params(len(records) + 1)
        kept = np.asarray(self.params)  # not a recarray, whose slices cost several times as much
        for number, record in records.values():
            _copy(np.asarray(record).reshape(-1), kept[number : number + 1])
        if self._accumulators is not None:
            self._accumulators = _follow(self.players, self.params, self.quick, self._accumulators)

    def play(self, games: Any, start: Position | None = None) -> None:
        """Play `games`, a one-dimensional array of dtype `GAME`, and write the results to it; if the start is already
        over, they stay unchanged. A game depends on its two contestants, its seed and the start only, not on other
        games; plies, moves and men taken are counted from the start. ValueError for contestants that do not exist.
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
    """Play `games` at a new `Table`."""
    Table(variant, contestants, quick=quick).play(games)


def _no_params(count: int) -> Any:
    """Parameters of players to whom every position is worth 0."""
    return np.zeros(count, LOADED).view(np.recarray)


def _expect_playable(variant: AnyVariant, contestant: Contestant) -> None:
    """ValueError unless the contestant can play."""
    if contestant.algorithm not in RANDOM:
        raise ValueError(f"algorithm {contestant.algorithm!r}: expected random, random-coded or minimax")
    if not 1 <= contestant.depth <= minimax.DEEPEST:
        raise ValueError(f"depth {contestant.depth}: expected 1 to {minimax.DEEPEST}")
    if variant.game != "hex" and contestant.learned:
        raise ValueError(f"{variant.name}: expected players who know what is legal")
    if contestant.params is not None and contestant.params.dtype.itemsize != LOADED.itemsize:
        raise ValueError("parameters of another record: expected a network of `loaded.py`")


def _copy(record: Any, into: Any) -> None:
    """Copy parameters over others, both arrays of one element. Memory after the last weight, which is most of it, stays
    untouched; of what is behind it, every move sets what it needs."""
    used = int(max(record["used"][0], into["used"][0]))
    end = WEIGHTS_AT + used * LOADED["weights"].base.itemsize
    into.view(np.uint8)[:end] = record.view(np.uint8)[:end]


def _seats(variant: AnyVariant, contestants: Sequence[Contestant]) -> tuple[Any, Any, Any] | None:
    """The arguments of the kernel for Hex, None if it does not support one of the players."""
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


def _follow(players: Any, params: Any, quick: bool, memory: Any) -> Any:
    """Accumulators of the contestants that search a few plies, in `memory` if it has the right size; the first, without
    a network, is for all others."""
    looks = (
        (players["random"] == 0) & (players["depth"] <= few_plies.DEEPEST) & (players["unseen"] == 0) & quick
    )
    used = np.unique(players["params"][looks])
    accumulators = memory
    if len(memory) == len(used) + 1:
        memory.view(np.uint8)[:] = 0
    else:
        accumulators = hingston2007_incremental.new(len(used) + 1)
    hingston2007_incremental.prepare_all(params, used, accumulators[1:])
    fits = np.asarray(accumulators)["fits"] | np.asarray(accumulators)["material"]
    for accumulator, i in enumerate(used, start=1):
        if fits[accumulator]:
            players["accumulator"][looks & (players["params"] == i)] = accumulator
    return accumulators
