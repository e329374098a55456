"""Players are files: the shipped ones can be read, and broken ones say what is wrong with them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conversation import Conversation
from random_games import positions

from hnefi import players
from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import NETWORKS, files, network
from hnefi.engine.games import interface as verbs
from hnefi.engine.search.types import Limits
from hnefi.engine.selfplay import yardstick
from hnefi.engine.selfplay.match import Contestant
from hnefi.engine.selfplay.zero_search import Settings as TreeSettings
from hnefi.engine.session import Session
from hnefi.engine.squares import move_name
from hnefi.tools.arena import resolve as arena
from hnefi.tools.arena.options import ConfigError
from hnefi.tools.cli import main
from hnefi.tools.common.matches import play

GAMES = ("brandubh", "hex:4", "hexapawn:3x3")


@pytest.mark.parametrize("name", players.names())
def test_every_shipped_player_can_be_used(name: str) -> None:
    player = players.load(name)
    assert player.name == name
    assert player.description
    session = Session(load_player=players.load)
    session.set_option("Player", name)
    assert session.settings.algorithm == player.algorithm
    assert player.rating is None or player.rating.source


@pytest.mark.parametrize("name", players.names())
def test_every_player_is_an_opponent_in_the_arena(name: str) -> None:
    told = arena.resolve({"engine": [{"player": name}, {"player": "random-blind"}]}, {})
    assert arena.specs(told)[0].command[-2:] == ("--player", name)


@pytest.mark.parametrize(
    ("other", "variant"), [("random-blind", "hex:11"), ("hex-perfect", "hex:5"), ("hex-uct-1k", "hex:11")]
)
def test_the_arena_plays_what_its_players_know(other: str, variant: str) -> None:
    told = arena.resolve({"engine": [{"player": "hex-uct-100"}, {"player": other}]}, {})
    assert told["run.variants"] == [variant]


@pytest.mark.parametrize(
    ("variants", "reason"),
    [("hex:4", "run.variants 'hex:4': engine 'simple': simple plays tafl only, not hex:4")],
)
def test_the_arena_refuses_who_cannot_play(variants: str, reason: str) -> None:
    """Before anything is played: not by losing."""
    engines = [{"player": "simple"}, {"player": "default"}]
    with pytest.raises(ConfigError, match=reason):
        arena.resolve({"engine": engines, "run": {"variants": [variants]}}, {})


@pytest.mark.process
def test_the_engine_plays_as_every_player() -> None:
    """By flag and by option; each answers with a move, and looks as far ahead as it should."""
    with Conversation("--player", "simple-d2", "--variant", "brandubh") as engine:
        engine.ask("uti")
        for name in ("", *players.names()):
            player = players.load(name or "simple-d2")
            # Only who looks a number of plies ahead needs as many nodes as that takes.
            nodes = 200_000 if player.limits.depth is not None else 200
            engine.send(
                *([f"setoption name Player value {name}"] if name else []), "isready", f"go nodes {nodes}"
            )
            *_, info, answer = engine.until("bestmove")
            assert answer.split()[0] == "bestmove"
            # One of a small game looks deeper than it can here.
            if player.limits.depth is not None and player.misfit(games.find("brandubh")) is None:
                assert info.split()[1:3] == ["depth", str(player.limits.depth)]


def test_a_player_who_cannot_play_a_variant_says_so() -> None:
    """What a player's file says about games agrees with what its evaluator knows."""
    for player in players.everything():
        for variant in map(games.find, GAMES):
            if player.variants:
                knows = variant.name in player.variants
            elif player.evaluator in network.NAMES:
                knows = variant.game in network.Network(player.evaluator).module.GAMES
            else:
                knows = player.game in (None, variant.game)
            assert (player.misfit(variant) is None) == knows, f"{player.name} {variant.name}"
    simple = players.load("simple")
    assert simple.misfit(games.find("hex:4")) == "simple plays tafl only, not hex:4"
    perfect = players.load("hex-perfect")
    assert perfect.variant == "hex:5"
    assert (
        perfect.misfit(games.find("hex:6")) == "hex-perfect plays hex:5, hex:4, hex:3, hex:2 only, not hex:6"
    )


SHIPPED = sorted(
    path.stem for path in players.FOLDER.glob("*.safetensors") if path.stem.startswith(("evolved-", "paper-"))
)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_evaluators_are_what_they_say(name: str) -> None:
    """For the rules as they are, with where they come from and what was measured; and they do beat Simple, but for the
    other seeds of the paper's evolution, which ship whatever they are worth."""
    player = players.load(name)
    assert player.variant is not None
    variant = games.find(player.variant)
    evaluator = files.load(players.FOLDER / f"{name}.safetensors", variant)
    document = evaluator.document
    assert document["trainer"]["name"].startswith("evolve ")
    assert document["seed"]
    noted = document["results"][f"{variant.name} against simple, 1 ply"]
    ours, theirs = (
        Contestant("minimax", params=params)
        for params in (files.record(evaluator, variant), network.parse("simple").record(variant, ()))
    )
    won = play(variant, ours, theirs, 60, "shipped").matches.won / 60
    share = noted["won"] / (noted["won"] + noted["drawn"] + noted["lost"])
    assert abs(won - share) < 4 * (share * (1 - share) / 60) ** 0.5 + 0.02
    assert share > 0.5 or name.endswith(("-102", "-103", "-104", "-105"))


@pytest.mark.parametrize("name", [name for name in SHIPPED if name.startswith("evolved-")])
def test_evolved_players_won_nine_of_ten_matches_at_every_depth(name: str) -> None:
    """As their documents say, against Simple; and more than they lost against the paper's champion."""
    variant = players.load(name).variant
    noted = files.load(players.FOLDER / f"{name}.safetensors", any_rules=True).document["results"]
    for plies in (1, 2, 3):
        met = noted[f"{variant} against simple, {plies} ply"]
        assert met["won"] >= 180
        assert met["won"] + met["drawn"] + met["lost"] == 200
        met = noted[f"{variant} against paper-{variant}, {plies} ply"]
        assert met["won"] > 2 * met["lost"]


@pytest.mark.parametrize("name", [name for name in players.names() if name.startswith("net-")])
def test_shipped_nets_are_what_they_say(name: str) -> None:
    """For the rules as they are, known by their versioned names, and with kernels that agree with the slow form."""
    player = players.load(name)
    assert player.variant is not None
    variant = games.find(player.variant)
    evaluator = files.load(NETWORKS.get(player.evaluator, player.evaluator), variant)
    assert evaluator.network.record_kind == "nnue"
    assert evaluator.document["name"] == name
    assert evaluator.document["trainer"]["name"] == "train"
    losses = evaluator.document["results"]["held_out"]
    assert losses["whole"] < losses["none"]
    # Later rounds are taught by nets, and need not foresee results better than these to play better.
    if evaluator.document["trainer"]["teacher"] == "default":
        assert losses["whole"] < losses["teacher"] < losses["none"]
    params = files.record(evaluator, variant)[0]
    for position in positions(variant, 20):
        value = verbs.value(params, position.new_record()[0])
        assert value == evaluator.network.naive(variant, evaluator.arrays, position)


@pytest.mark.parametrize(
    ("name", "network"), [("brandubh-zero", "residual:2"), ("brandubh-zero-2", "residual:4")]
)
def test_networks_that_learned_brandubh_from_nothing(name: str, network: str) -> None:
    """Each says what it is, is small, prefers legal moves, and beats Random, who never taught it, on either side."""
    file = players.FOLDER / f"{name}.safetensors"
    assert file.stat().st_size < 1 << 20
    player, variant = players.load(name), games.find("brandubh")
    assert (player.algorithm, player.variant, player.limits.nodes) == ("puct", "brandubh", 200)
    evaluator = files.load(file, variant)
    assert evaluator.document["trainer"]["name"] == "evolve zero"
    assert evaluator.network.text == network
    position = games.initial(variant)
    (policy,) = (
        said for said in evaluators.remarks(str(file), position) if said.startswith("network policy ")
    )
    words = policy.split()[2:]
    legal = {move_name(move) for move in position.legal_moves()}
    assert set(words[::2]) <= legal
    table = yardstick.pairs(np.arange(4, dtype=np.uint64))
    settings = TreeSettings(
        simulations=60, shared=False, c=1.5, from_parent=True, later_temperature=0.0, opening=4
    )
    yardstick.play(variant, files.record(evaluator, variant), settings, Contestant("random"), table)
    won = (table["outcome"] >> 8) - 1
    assert (table["players"][np.arange(8), won.clip(0, 1)] == 0).sum() >= 7


@pytest.mark.process
def test_it_plays_behind_the_protocol() -> None:
    with Conversation("--player", "brandubh-zero", "--variant", "brandubh") as engine:
        engine.ask("uti")
        engine.send("position startpos")
        engine.send("go nodes 30")
        assert re.match(r"bestmove [a-g][1-7][a-g][1-7]", engine.until("bestmove")[-1])
        engine.send("go movetime 50")
        assert engine.until("bestmove")[-1].startswith("bestmove ")
        engine.send("eval")
        assert any(
            line.startswith("info string network policy ") for line in engine.until("info string eval total")
        )


def test_a_player_of_one_variant(tmp_path: Path) -> None:
    file = tmp_path / "narrow.toml"
    file.write_text('variant = "Brandubh"\n')
    player = players.load(str(file))
    assert player.misfit(games.find("brandubh")) is None
    assert player.misfit(games.find("copenhagen")) == "narrow plays Brandubh only, not copenhagen"


def test_options_of_the_player_before_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "flat.toml"
    file.write_text('[options]\nWins = "flat"\nHash = 2\n')
    session = Session(load_player=players.load)
    session.set_option("Seed", "7")
    session.set_option("Player", str(file))
    assert (session.settings.wins, session.settings.hash_mib) == ("flat", 2)
    session.set_option("Player", "simple")
    assert (session.settings.wins, session.settings.hash_mib, session.settings.seed) == ("near", 64, 7)


@pytest.mark.process
def test_reading_players_loads_nothing_heavy() -> None:
    """Weights are opened when somebody searches with them; a file that is not there is no error before."""
    script = (
        "import sys\n"
        "from hnefi import players\n"
        "players.everything()\n"
        "print(*{'numpy', 'numba', 'safetensors'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# The command


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["players", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(["players", *arguments])
    return capsys.readouterr().err


def test_descriptions_are_broken_between_words_at_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = " ".join(shown(capsys).split())
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = shown(capsys)
        assert max(map(len, text.splitlines())) <= columns
        assert " ".join(text.split()) == whole


def test_the_list(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = shown(capsys)
    for name in players.names():
        assert f"\n{name} " in text
        assert players.load(name).description in text
    (tmp_path / "mine.toml").write_text(
        'description = "Mine."\nvariant = "brandubh"\n[rating]\nelo = 1180\nerror = 25.5\nsource = "a cup"\n'
    )
    lines = [" ".join(line.split()) for line in shown(capsys, "--path", str(tmp_path)).splitlines()]
    assert "mine brandubh 1180 ± 25.5 Mine." in lines
    rows = json.loads(shown(capsys, "--json", "--path", str(tmp_path / "mine.toml"), "--variant", "brandubh"))
    brandubh = games.find("brandubh")
    narrow = {name for name in players.names() if players.load(name).misfit(brandubh)}
    assert [row["name"] for row in rows] == [*(n for n in players.names() if n not in narrow), "mine"]
    assert rows[-1]["rating"] == {"elo": 1180, "error": 25.5, "source": "a cup"}
    rows = json.loads(shown(capsys, "--json", "--path", str(tmp_path), "--variant", "hex:5"))
    assert {row["name"] for row in rows} == {
        "default", "random-blind", "random-coded", "random-terminal", "random-terminal-d2", "random-terminal-d3",
        "uct-100", "uct-1k", "uct-10k", "hex-perfect", "hex-uct-100", "hex-uct-1k", "hex-uct-10k",
    }  # fmt: skip


def test_one_player(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = shown(capsys, "simple-d3")
    for fact in ("plays      tafl", "algorithm  minimax", "limits     depth 3", "evaluator  simple"):
        assert f"\n  {fact}\n" in text
    assert "P. Hingston" in text
    assert "rated by   ladder-2026.3, " in text
    assert "not measured" in shown(capsys, "default")
    assert json.loads(shown(capsys, "net-copenhagen-2", "--json"))["provenance"]["architecture"] == "nnue:128"
    everything = json.loads(shown(capsys, "simple-d3", "--json"))
    assert everything["limits"] == {"depth": 3}
    assert "P. Hingston" in everything["provenance"]["source"]
    file = tmp_path / "mine.toml"
    file.write_text('[options]\nWins = "flat"\n[rating]\nelo = 990\nsource = "a cup of 400 pairs"\n')
    text = shown(capsys, str(file))
    assert "\n  rating     990\n  rated by   a cup of 400 pairs\n" in text
    assert "\n  options    Wins flat\n" in text


def test_wrong_questions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "no player 'smple' (did you mean simple?): expected a name that hnefi players" in refused(
        capsys, "smple"
    )
    assert "simple plays tafl only, not hex:5" in refused(capsys, "simple", "--variant", "hex:5")
    assert "expected players in it" in refused(capsys, "--path", str(tmp_path))
    assert "No such file" in refused(capsys, "--path", str(tmp_path / "nowhere.toml"))
    broken = tmp_path / "broken.toml"
    broken.write_text('evaluator = "gone.safetensors"')
    assert "gone.safetensors" in refused(capsys, str(broken))


# Files of one's own


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
        ('algorithm = "magic"', "algorithm: 'magic': expected one of alphabeta, "),
        ("limits = 3", "limits: 3: expected a table"),
        ("[limits]\ndepth = 0", "limits.depth: 0: expected a whole number of at least 1"),
        ("[limits]\nclock = 1", "limits.clock: 1: expected one of depth, "),
        ("[options]\nHash = 0", "options.Hash: 0: expected 1 to 65536"),
        ("[options]\nPlayer = 'x'", "options.Player: 'x': expected one of Algorithm, "),
        ("[options]\nWins = 'far'", "options.Wins: 'far': expected one of near, flat, unseen"),
        ("variant = ['hex:5', 4]", "variant: ['hex:5', 4]: expected a name, or a list of names"),
        ("game = 'chess'", "game: 'chess': expected one of tafl, hex, hexapawn"),
        ("[rating]\nelo = 5", "rating: {'elo': 5}: expected elo, and as source what was played"),
        ("[rating]\nsource = 'a'", "rating: {'source': 'a'}: expected elo, and as source what was played"),
        ("[rating]\nelo = nan\nsource = 'a'", "rating.elo: nan: expected a number up to 10000"),
        ("[rating]\nelo = 1\nerror = true", "rating.error: True: expected a number up to 10000"),
        ("[rating]\nstrength = 1", "rating.strength: 1: expected one of elo, error, source"),
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
        players.PlayerError,
        match=r"no player 'nobody': expected a name that hnefi players lists",
    ):
        players.load("nobody")
    with pytest.raises(players.PlayerError, match=r"nowhere\.toml: No such file"):
        players.load("/nowhere.toml")


@pytest.mark.parametrize("name", ["tablut-minimax", "tablut-minimax-coded"])
def test_tuned_players_have_the_weights_of_their_paper(name: str) -> None:
    evaluator = files.load(players.FOLDER / f"{name}.safetensors", games.find("tablut-herr-7"))
    assert evaluator.arrays["attackers"].tolist() == [5, 2, 1, 1, 3, 1, 1]
    assert evaluator.arrays["defenders"].tolist() == [5, 1, 8, 3, 1, 5, 2]
    assert evaluator.network.sizes == {"reading": int(name.endswith("coded")), "sides": 1}


@pytest.mark.parametrize(("name", "side"), [("td-tablut-white", 1), ("td-tablut-black", 0)])
def test_learned_players_beat_random_on_the_side_that_they_learned(name: str, side: int) -> None:
    """Of 400 games each of ten seeds won 75 to 87 % as white, 96 to 100 % as black."""
    from hnefi.engine.selfplay import match

    variant = games.find("tablut-herr-7")
    evaluator = files.load(players.FOLDER / f"{name}.safetensors", variant)
    assert evaluator.document["trainer"]["name"] == "evolve td"
    made = np.zeros(200, match.GAME)
    made["attackers"], made["defenders"], made["seed"] = side, 1 - side, np.arange(200)
    ours = Contestant("minimax", params=files.record(evaluator, variant))
    match.play(variant, [ours, Contestant("random")], made)
    assert ((made["outcome"] >> 8) == side + 1).mean() > (0.65, 0.9)[side == 0]
