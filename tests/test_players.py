"""Players are files: the shipped ones can be read, and broken ones say what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hnefi import players
from hnefi.engine.search.types import Limits
from hnefi.engine.session import Session


@pytest.mark.parametrize("name", players.names())
def test_every_shipped_player_can_be_used(name: str) -> None:
    player = players.load(name)
    assert player.name == name
    assert player.description
    session = Session(load_player=players.load)
    session.set_option("Player", name)
    assert session.settings.algorithm == player.algorithm


def test_a_player_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'evaluator = "net.safetensors"\n[limits]\ndepth = 2\n[options]\nMultiPV = 3\nPonder = true\n'
    )
    player = players.load(str(file))
    assert (player.name, player.limits) == ("mine", Limits(depth=2))
    assert player.evaluator == str(tmp_path / "net.safetensors")
    assert player.options == {"MultiPV": "3", "Ponder": "true"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("colour = 1", "colour: 1: expected one of description, "),
        ("description = 1", "description: 1: expected text"),
        ('algorithm = "magic"', "algorithm: 'magic': expected one of alphabeta, random"),
        ("limits = 3", "limits: 3: expected a table"),
        ("[limits]\ndepth = 0", "limits.depth: 0: expected a whole number of at least 1"),
        ("[limits]\nclock = 1", "limits.clock: 1: expected one of depth, "),
        ("[options]\nHash = 0", "options.Hash: 0: expected 1 to 65536"),
        ("[options]\nPlayer = 'x'", "options.Player: 'x': expected one of Algorithm, "),
        ("nonsense", "not TOML: "),
    ],
)
def test_a_broken_player_says_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(text)
    with pytest.raises(players.PlayerError) as caught:
        players.load(str(file))
    assert str(caught.value).startswith(f"{file}: {complaint}")


def test_unknown_players() -> None:
    with pytest.raises(
        players.PlayerError, match=r"no player 'nobody': expected one of default, random-blind"
    ):
        players.load("nobody")
    with pytest.raises(players.PlayerError, match=r"nowhere\.toml: No such file"):
        players.load("/nowhere.toml")
