"""Hex between one-ply perceptrons: the kernel against the search, and against a slow twin with its own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hex_parts import after
from search_parts import think
from twin_hex import TwinHex

from hnefi.engine import games
from hnefi.engine.evaluators import files, network
from hnefi.engine.search import minimax
from hnefi.engine.search.types import Limits
from hnefi.engine.selfplay import hex_one_ply
from hnefi.engine.selfplay.match import GAME, Contestant, Table
from hnefi.engine.sides import Reason
from hnefi.engine.squares import move_name

RANDOM = Contestant("random")
QUICK = (
    "mlp:5",
    "mlp:6,4,tanh",
    "mlp:4,3,2,planes,transposed",
    "mlp:5,transposed",
    "mlp:5,threshold",
    "mlp:7,relu",
    "mlp:3,2,softplus",
)
"""Between them these take every way through the kernel; thresholds tie."""


def genomes(name: str, text: str, count: int, scale: float = 0.3) -> list[Any]:
    variant, net = games.find(name), network.parse(text)
    draw = np.random.default_rng(11)
    return [draw.normal(0, scale, net.count(variant)) for _ in range(count)]


def seated(name: str, text: str, weights: list[Any], **how: Any) -> list[Contestant]:
    net, variant = network.parse(text), games.find(name)
    return [Contestant("minimax", params=net.record(variant, one), unseen=True, **how) for one in weights]


def schedule(players: int, count: int) -> Any:
    """Everybody against everybody, themselves too."""
    made = np.zeros(count, GAME)
    made["attackers"], made["defenders"] = np.arange(count) % players, np.arange(count) // players % players
    made["seed"] = np.arange(count)
    return made


@pytest.mark.parametrize("text", QUICK)
def test_the_kernel_plays_the_moves_of_the_search(text: str) -> None:
    name = "hex:5"
    players = [*seated(name, text, genomes(name, text, 4)), RANDOM]
    found = []
    for quick in (True, False):
        made = schedule(len(players), 50)
        table = Table(games.find(name), players, quick=quick)
        table.play(made[:40])
        table.play(made[40:], after(name, "c3 b3 d4"))
        found.append(made)
    assert found[0].tobytes() == found[1].tobytes()
    assert len(set(found[0]["moves_hash"].tolist())) > 20
    assert {int(code) & 255 for code in found[0]["outcome"]} == {Reason.CONNECTED.code}


class Stream:
    """The random numbers of a game, once more."""

    def __init__(self, seed: int) -> None:
        z = (seed + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        self.x = (z ^ z >> 31) or 1

    def below(self, n: int) -> int:
        x = self.x
        x ^= x >> 12
        x ^= x << 25 & (2**64 - 1)
        x ^= x >> 27
        self.x = x
        return (x * 0x2545F4914F6CDD1D % 2**64 >> 33) * n >> 31


def twin_inputs(twin: TwinHex, cell: tuple[int, int], mine: str) -> Any:
    """What a player sees of the board with its stone on a cell, row by row."""
    stones = {**twin.stones, cell: mine}
    n = twin.size
    seen = [[stones.get((row, column)) for column in range(n)] for row in range(n)]
    return np.array([0 if stone is None else 1 if stone == mine else -1 for row in seen for stone in row])


def twin_game(
    size: int, nets: list[Any], seed: int, *, learned: bool = False
) -> tuple[str, int, list[str], str]:
    """Winner, plies, moves, and why the game is over, of the document's network of five units against itself."""
    twin, moves = TwinHex(size), list[str]()
    draw = Stream(seed)
    while twin.winner is None:
        arrays = network.parse("mlp:5").split(games.find(f"hex:{size}"), nets["ad".index(twin.side)])
        mine = "x" if twin.side == "a" else "o"
        values = {}
        for row in range(size):
            for column in range(size):
                if learned or (row, column) not in twin.stones:
                    x = arrays["first"] @ twin_inputs(twin, (row, column), mine) + arrays["first_bias"]
                    values[row, column] = arrays["output"] @ (1 / (1 + np.exp(-x))) + arrays["output_bias"][0]
        best = max(values.values())
        chosen = [cell for cell, x in values.items() if x > best - 1e-9]
        assert draw.below(len(chosen)) == 0
        assert len(chosen) == 1, "this twin cannot break ties"
        if chosen[0] in twin.stones:
            return "da"["ad".index(twin.side)], len(moves), moves, Reason.ILLEGAL_MOVE
        moves.append(twin.name(chosen[0]))
        twin = twin.play(moves[-1])
    return twin.winner, len(moves), moves, Reason.CONNECTED


def hashed(name: str, words: list[str]) -> int:
    position, found = games.initial(games.find(name)), 0xCBF29CE484222325
    for word in words:
        move = position.parse_move(word)
        found = (found ^ move) * 0x100000001B3 % 2**64
        position = position.play(move)
    return found


@pytest.mark.parametrize("learned", [False, True])
def test_games_are_those_of_a_slow_twin(learned: bool) -> None:
    """Rules, winner, network and order of inputs from elsewhere: no line of this is shared with the kernel."""
    weights = genomes("hex:4", "mlp:5", 4, scale=1.0)
    made = schedule(4, 16)
    Table(games.find("hex:4"), seated("hex:4", "mlp:5", weights, learned=learned)).play(made)
    reasons = set()
    for game in made:
        nets = [weights[game["attackers"]], weights[game["defenders"]]]
        winner, plies, moves, reason = twin_game(4, nets, int(game["seed"]), learned=learned)
        reasons.add(reason)
        assert int(game["outcome"]) == Reason(reason).code | ("ad".index(winner) + 1) << 8
        assert (int(game["plies"]), int(game["moves_hash"])) == (plies, hashed("hex:4", moves))
    assert (Reason.ILLEGAL_MOVE in reasons) == learned


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("text", QUICK)
def test_all_cells_have_their_values(text: str, learned: bool) -> None:
    """On a board that does not fill the vectors, in the middle of a game, for both sides."""
    variant, net = games.find("hex:7"), network.parse(text)
    (weights,) = genomes("hex:7", text, 1)
    arrays = net.split(variant, weights)
    seats, numbers = hex_one_ply.seated([(net.record(variant, weights)[0], learned)])
    board = hex_one_ply.board(7)[0]
    for moves in ("d4 c3 e5 b2", "d4 c3 e5 b2 g7"):
        position = after("hex:7", moves)
        hex_one_ply.values(position.new_record()[0], seats, numbers, board)
        sign = 1 if int(position.side) == 0 else -1
        for move in position.legal_moves():
            expected = sign * net.naive(variant, arrays, position.play(move))
            cell = int(board["cell"][move & 511])
            assert board["values"][cell] == pytest.approx(expected, abs=1e-9), move_name(move)


def test_a_player_that_sees_no_wins_passes_them_by(tmp_path: Path) -> None:
    """The network likes every cell but the one that wins."""
    variant, net = games.find("hex:3"), network.parse("mlp:1,planes")
    position = after("hex:3", "b2 a1 b3 a2")
    weights = np.zeros(net.count(variant))
    weights[7] = -5.0  # an own stone in the middle of the last row
    weights[-2] = 1.0
    for quick in (True, False):
        for unseen in (True, False):
            made = np.zeros(40, GAME)
            made["seed"] = np.arange(40)
            player = Contestant("minimax", params=net.record(variant, weights), unseen=unseen)
            Table(variant, [player], quick=quick).play(made, position)
            assert (made["plies"] == 1).all() != unseen
            assert (made["plies"] > 1).all() == unseen
    path = tmp_path / "likes.safetensors"
    files.save(path, files.make(net, variant, weights))
    chosen = {
        word: {
            think(position, Limits(depth=1), seed=seed, wins=word, evaluator=str(path), algorithm="minimax")[
                0
            ].move
            for seed in range(20)
        }
        for word in ("near", "unseen")
    }
    winning = position.parse_move("b1")
    assert chosen == {"near": {winning}, "unseen": set(position.legal_moves()) - {winning}}


def test_a_finished_game_is_valued_like_any_other_position_two_plies_ahead() -> None:
    variant, net = games.find("hex:3"), network.parse("mlp:4")
    position = after("hex:3", "b2 a1 b3 a2")
    other = 0
    for weights in genomes("hex:3", "mlp:4", 12, scale=1.0):
        arrays = net.split(variant, weights)
        td = minimax.new_thread()[0]
        td["unseen"] = 1
        chosen = minimax.choose(position.new_record()[0], td, net.record(variant, weights)[0], 2)
        values = {}
        for move in position.legal_moves():
            there = position.play(move)
            last = (
                [there] if there.outcome is not None else [there.play(reply) for reply in there.legal_moves()]
            )
            values[move] = min(net.naive(variant, arrays, one) for one in last)
        assert values[chosen] == pytest.approx(max(values.values()), abs=1e-12)
        other += chosen != position.parse_move("b1")
    assert other


def test_what_the_kernel_does_not_know_is_played_by_the_search() -> None:
    variant = games.find("hex:4")
    for text, how in (("mlp:3,edges", {}), ("mlp:65", {}), ("mlp:3", {"depth": 2})):
        (weights,) = genomes("hex:4", text, 1)
        (player,) = seated("hex:4", text, [weights], **how)
        made = schedule(1, 1)
        Table(variant, [player]).play(made)
        assert made["outcome"][0]
        with pytest.raises(ValueError, match="learned: expected"):
            Table(variant, seated("hex:4", text, [weights], learned=True, **how))
    with pytest.raises(ValueError, match="know what is legal"):
        Table(games.find("brandubh"), [Contestant("minimax", learned=True)])
