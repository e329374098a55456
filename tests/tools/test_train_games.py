"""The games that a training learns from, and the files that keep their positions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hnefi.engine import games
from hnefi.engine.games.tafl.codes import PIECE
from hnefi.engine.score import WON
from hnefi.engine.squares import squares
from hnefi.tools.train import run, shards
from hnefi.tools.train.games import UNKNOWN, Series, _think, play

NODES = ((20, 60), (20, 60))


@pytest.fixture(scope="module")
def played() -> Any:
    series = Series(games.find("brandubh"), "default", b"", NODES, 2, "1 round 1")  # type: ignore[arg-type]
    return np.load(io.BytesIO(play(series, 18, 8)), allow_pickle=False)


def test_games_follow_from_their_numbers(played: Any) -> None:
    series = Series(games.find("brandubh"), "default", b"", NODES, 2, "1 round 1")  # type: ignore[arg-type]
    alone = np.load(io.BytesIO(play(series, 21, 1)), allow_pickle=False)
    assert np.array_equal(played[played["game"] == 21], alone)
    assert set(played["game"].tolist()) <= set(range(18, 26))
    assert len(set(played["game"].tolist())) >= 4


def test_each_side_searches_what_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[tuple[int, int]] = set()

    def think(searcher: Any, position: Any, nodes: int) -> tuple[int, int]:
        asked.add((int(position.side), nodes))
        return _think(searcher, position, nodes)

    monkeypatch.setattr("hnefi.tools.train.games._think", think)
    variant: Any = games.find("brandubh")
    play(Series(variant, "default", b"", ((70, 90), (20,)), 0, "1 round 1"), 0, 8)
    assert asked == {(0, 70), (0, 90), (1, 20)}
    asked.clear()
    # Strays are searched with the fewest nodes, whoever is to move.
    play(Series(variant, "default", b"", ((70,), (20,)), 1, "1 round 1"), 0, 2)
    assert asked == {(0, 70), (1, 20), (0, 20)}


def test_a_row_says_what_the_game_was(played: Any) -> None:
    variant: Any = games.find("brandubh")
    assert {0, 2} <= set(played["result"].tolist())
    for number in set(played["game"].tolist()):
        rows = played[(played["game"] == number) & (played["result"] != UNKNOWN)]
        assert len(set(rows["result"].tolist())) == 1
        assert len(set((rows["ply"] + rows["left"]).tolist())) == 1
        assert (np.diff(rows["ply"]) > 0).all()
        # Who wins by force has won.
        proven = rows[np.abs(rows["score"].astype(int)) > WON]
        assert ((proven["score"] > 0) == (proven["result"] == 2)).all()
        for row in rows[:3]:
            position = run.position_of(row, variant)
            assert int(position.side) == row["side"]
            cells = np.array(list(squares(7)))
            assert np.array_equal(position.new_record()[0]["board"][cells] & PIECE, row["board"])


def test_games_begin_with_openings_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    # Random openings would all be too uneven; those of a file are played whatever they are worth.
    monkeypatch.setattr("hnefi.tools.train.games.LEVEL", -1)
    variant: Any = games.find("brandubh")
    start = games.initial(variant)
    late = ["3t3/7/2T1t2/t2K2t/7/3T3/3t3 a 0 9", "3t3/7/2T1t2/t2K2t/7/7/3t3 d 0 12"]
    series = Series(variant, "default", b"", NODES, 0, "1 round 1", openings=tuple(late))
    rows = np.load(io.BytesIO(play(series, 0, 24)), allow_pickle=False)
    cells = np.array(list(squares(7)))
    boards = [games.from_fen(variant, fen).new_record()[0]["board"][cells] & PIECE for fen in late]
    begun = [rows[rows["game"] == number][0] for number in sorted(set(rows["game"].tolist()))]
    assert len(begun) > 12
    # No ply, or one to three random ones, each of which moves one man and may capture.
    apart = [min(np.count_nonzero(row["board"] != board) for board in boards) for row in begun]
    assert min(apart) == 0 < max(apart) <= 9
    first = start.new_record()[0]["board"][cells] & PIECE
    assert all(np.count_nonzero(row["board"]) < np.count_nonzero(first) - 3 for row in begun)
    assert {tuple(board) for board in boards} <= {tuple(row["board"]) for row in begun}


def test_strays_are_a_few_random_moves_from_the_game(played: Any) -> None:
    variant: Any = games.find("brandubh")
    strays = played[played["result"] == UNKNOWN]
    known = played[played["result"] != UNKNOWN]
    # Two for each position, except where a random move ended the game.
    assert 1.5 * len(known) < len(strays) <= 2 * len(known)
    away = set()
    for stray in strays:
        begun = known[
            (known["game"] == stray["game"])
            & (known["ply"] < stray["ply"])
            & (known["ply"] >= stray["ply"] - 3)
        ]
        ends = {int(row["ply"]): row for row in begun}
        assert ends
        # One man moved a ply, and others were captured: no more than so many squares differ.
        nearest = min(
            (np.count_nonzero(row["board"] != stray["board"]), int(stray["ply"]) - ply)
            for ply, row in ends.items()
        )
        away.add(nearest[1])
        position = run.position_of(stray, variant)
        assert position.outcome is None
        assert position.legal_moves()
    assert away == {1, 2, 3}
    beyond = {int(stray["ply"]) - int(known[known["game"] == stray["game"]]["ply"].max()) for stray in strays}
    assert max(beyond) == 3
    # What a search says of them decides nothing but their own value.
    assert (np.abs(strays["score"].astype(int)) > WON).any()
    none = Series(variant, "default", b"", NODES, 0, "1 round 1")
    assert UNKNOWN not in np.load(io.BytesIO(play(none, 3, 2)), allow_pickle=False)["result"]


def test_shards_are_checked(tmp_path: Path, played: Any) -> None:
    made = io.BytesIO()
    np.save(made, played, allow_pickle=False)
    entry = shards.keep(tmp_path, 0, 8, made.getvalue())
    assert entry["attackers"] + entry["draws"] + entry["defenders"] == len(set(played["game"].tolist()))
    assert np.array_equal(shards.read(tmp_path, 7), played)
    with pytest.raises(shards.ShardError, match="expected positions on 9 x 9"):
        shards.read(tmp_path, 9)
    whole = (tmp_path / shards.LIST).read_bytes()
    (tmp_path / shards.LIST).write_bytes(whole + b'{"file": "games-0000')
    assert list(shards.listed(tmp_path)) == ["games-000000.npy"]
    assert (tmp_path / shards.LIST).read_bytes() == whole
    data = bytearray((tmp_path / "games-000000.npy").read_bytes())
    data[-1] ^= 1
    (tmp_path / "games-000000.npy").write_bytes(data)
    with pytest.raises(shards.ShardError, match="altered"):
        shards.read(tmp_path, 7)
    (tmp_path / "games-000000.npy").unlink()
    with pytest.raises(shards.ShardError, match="expected the positions that"):
        shards.read(tmp_path, 7)
    (tmp_path / shards.LIST).write_bytes(b'{"file": "../x", "sha256": "", "games": 1}\n')
    with pytest.raises(shards.ShardError, match="line 1"):
        shards.read(tmp_path, 7)
