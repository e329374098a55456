"""Games of a policy network with the tree search of `zero_search.py` against players of `match.py` (kernels): progress
measured against opponents that never change."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import games as doors
from ..compile.jit import entry, kernel
from ..games.base_variant import AnyVariant
from ..games.interface import adjudicate, generate, make, no_move_outcome, pass_turn, take_back
from . import match
from .match import PLY_CAP, Contestant, choose
from .zero import GAME, play_opening
from .zero_search import SEARCH, Settings, draw, think


@kernel
def play_game(s, search, net, settings, td, player, minds, game):
    """Play one game from the position of `s`, in which player 0 is the network; restores `s`."""
    begun = s.ply
    play_opening(s, settings, game.seed)
    while s.outcome == 0:
        if s.ply - begun >= settings.ply_limit:
            s.outcome = PLY_CAP
            break
        if game.players[s.side] == 0:
            end = generate(s, 0)
            move = 0
            if end:
                think(s, search, net, settings, end, int(settings.simulations), False)
                move = draw(s, search, end, settings.later_temperature)
        else:
            move = choose(s, td, player, minds, None)
        if move == 0:
            s.outcome = no_move_outcome(s)
            break
        if move < 0:
            pass_turn(s)
        else:
            make(s, move)
        if s.outcome == 0:
            s.outcome = adjudicate(s, -1)
    game.outcome = s.outcome
    game.plies = s.ply - begun
    while s.ply > begun:
        take_back(s)
    s.outcome = 0


@entry
def play_games(s, search, nets, settings, td, players, minds, games):
    """Play all games in order."""
    for i in range(games.size):
        play_game(s, search, nets[0], settings, td, players[0], minds, games[i])


def play(variant: AnyVariant, network: Any, settings: Settings, opponent: Contestant, games: Any) -> None:
    """Play `games`, of dtype `zero.GAME`, between a network (a record of `POLICY_NET`, one element) as player 0 and
    `opponent` as player 1, and write the results to them. A game begins with up to `settings.opening` random plies;
    after them the network always uses `later_temperature`."""
    table = match.Table(variant, [opponent], quick=False)
    search = np.zeros(1, SEARCH).view(np.recarray)
    state = doors.initial(variant).load(doors.initial(variant).new_record())
    play_games(
        state, search[0], np.asarray(network).view(np.recarray), settings.record()[0], table.td, table.players,
        table.params, games.view(np.recarray),
    )  # fmt: skip


def pairs(seeds: Any) -> Any:
    """Games to play: for each seed a pair from the same opening, with the network on each side once."""
    games = np.zeros(2 * len(seeds), GAME)
    games["seed"] = np.repeat(seeds, 2)
    games["players"][:, 0] = np.arange(len(games)) % 2
    games["players"][:, 1] = 1 - games["players"][:, 0]
    return games
