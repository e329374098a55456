"""Ladders as data, what freezes them, pools, and what is shown of a fit."""

from __future__ import annotations

import importlib.util
import json
import lzma
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from ladder_parts import OPENINGS, ladder, made_up, tiny

from hnefi.engine.games import find
from hnefi.tools.arena import report as stored_runs
from hnefi.tools.arena.openings import list_hash
from hnefi.tools.common.rating import Model
from hnefi.tools.ladder import charts, fitting, frozen, playing, pool, published, report
from hnefi.tools.ladder.ladder import (
    CURRENT,
    FOLDER,
    LadderError,
    LimitedPlayer,
    load,
    parse_player,
    playable,
)

# Ladders and contestants


def test_the_shipped_ladder() -> None:
    found = load()
    assert found.name == CURRENT
    assert found.anchor == ("simple", 1000.0)
    assert len(found.variants) == 4
    assert found.names[0] == "random-blind"
    for rung in found.rungs:
        assert playable(rung, found) == found.variants
        assert rung.nodes or rung.depth
    lists = frozen.openings(found)
    assert all(len(lists[name]) >= 2 * found.pairs for name in found.variants)


def test_the_shipped_ladder_is_frozen() -> None:
    """Definitions, rules and openings; what the rungs answer is asked by `hnefi ladder check`, which takes longer."""
    from hnefi.engine.games import find
    from hnefi.tools.arena.openings import list_hash

    found = load()
    was, lists = frozen.read(found), frozen.openings(found)
    assert was["ladder"] == found.name
    assert list(was["rungs"]) == list(found.names)
    for rung in found.rungs:
        assert was["rungs"][rung.name]["definition"] == frozen.definition(rung)
    for name in found.variants:
        assert was["openings"][name] == list_hash(lists[name])
        assert was["rules"][name] == find(name).hash


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pairs = 2", "pairs = 0"), "pairs: 0: expected a whole number from 1 on"),
        (("pairs = 2", "pairs = 2\nspeed = 3"), "speed: 3: expected one of name, variants"),
        (("others = 1", "others = 3"), "others: 3: expected at most the 2 pairs of neighbours"),
        (('["brandubh"]', '["chess"]'), "variants: "),
        (('["brandubh"]', "[]"), "variants: []: expected names of variants"),
        (('"simple", elo', '"nobody", elo'), "anchor: {'name': 'nobody'"),
        (
            ('player = "simple"', 'player = "simpel"'),
            "rung 3: no player 'simpel' (did you mean simple?): expected",
        ),
        (
            ('player = "simple"', 'player = "default"'),
            "rung 3: player default: it has no limit: expected nodes",
        ),
        (('player = "simple"', 'player = "random-blind"'), "rung 'random-blind': expected each name once"),
        (
            ('player = "simple"', 'player = "simple", tempo = 1'),
            "rung 3: tempo: 1: expected one of name, player",
        ),
        (('name = "tiny"', "name = 3"), "name: 3: expected text"),
        (('name = "tiny"', "name ="), "not TOML"),
        (("others = 1", "others = 1\nmodel = { slope = 1 }"), "model: slope: 1: expected true or false"),
        (
            ("others = 1", "others = 1\nmodel = { prior = -1 }"),
            "model: prior: -1: expected a number from 0 to 100",
        ),
        (
            ("others = 1", "others = 1\nmodel = { prior_against = 'me' }"),
            "prior_against: 'me': expected mean or met",
        ),
        (
            ("others = 1", "others = 1\nmodel = { curve = 1 }"),
            "model: curve: 1: expected one of slope, prior",
        ),
        (('name = "tiny"', 'name = "tiny"\nmodel = 3'), "model: 3: expected a table [model]"),
    ],
)
def test_what_is_wrong_with_a_ladder_is_said(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    file = tiny(tmp_path)
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(LadderError) as refused:
        load(str(file))
    assert said in str(refused.value)
    assert str(file) in str(refused.value)


def test_ladders_that_are_not_there() -> None:
    with pytest.raises(LadderError, match=r"no ladder 'ladder-1066': expected one of ladder-2026.3"):
        load("ladder-1066")
    with pytest.raises(LadderError, match=r"/nowhere/x.toml: No such file or directory: expected"):
        load("/nowhere/x.toml")


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("ladder-*.toml")))
def test_a_shipped_ladder_has_what_it_was_frozen_with(name: str) -> None:
    """Definitions, openings and rules as frozen; ratings and games of every rung. Answers take longer to compare."""
    found = load(name)
    was = frozen.read(found)
    lists = frozen.openings(found)
    assert {one.name: frozen.definition(one) for one in found.rungs} == {
        rung: hashes["definition"] for rung, hashes in was["rungs"].items()
    }
    assert {variant: list_hash(lists[variant]) for variant in found.variants} == was["openings"]
    assert {variant: find(variant).hash for variant in found.variants} == was["rules"]
    rated = published.ratings(name)
    assert rated is not None
    assert set(found.names) <= set(rated["players"])
    played = pool.read(published.pool_file(name)).games
    assert set(found.names) <= {player for game in played for player in (game.attackers, game.defenders)}


def test_files_are_found_from_the_folder_of_a_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('algorithm = "alphabeta"\n[limits]\nnodes = 9\n')
    one = parse_player("mine.toml", load())
    assert (one.name, one.player, one.nodes) == ("mine", str(tmp_path / "mine.toml"), 9)
    borrowed = parse_player("default+net.safetensors:9", load())
    assert borrowed.options == {"Evaluator": str(tmp_path / "net.safetensors")}
    assert borrowed.name == "default+net.safetensors:9"


def test_words_for_contestants() -> None:
    found = load()
    assert parse_player("default-400", found) is found.rung("default-400")
    assert parse_player("uct-100", found) == LimitedPlayer("uct-100", "uct-100", 100)
    assert parse_player("simple-d2", found) == LimitedPlayer("simple-d2", "simple-d2", None, 2)
    assert parse_player("default:1000", found) == LimitedPlayer("default:1000", "default", 1000)
    borrowed = parse_player("default+simple:400", found)
    assert (borrowed.nodes, borrowed.options) == (400, {"Evaluator": "simple"})
    level = parse_player("level-3", found)
    assert (level.player, level.options) == ("default", {"SkillLevel": "3"})
    assert parse_player("elo-1500", found).options == {"UCI_LimitStrength": "true", "UCI_Elo": "1500"}


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("default", "it has no limit: expected nodes or depth, as in default:1600"),
        ("default:many", "'default:many': expected PLAYER:NODES"),
        ("default:0", "'default:0': expected PLAYER:NODES"),
        ("grandmaster", r"no player 'grandmaster' .*: expected a name"),
        ("level-three", "no player 'level-three'"),
    ],
)
def test_words_for_nobody(word: str, said: str) -> None:
    with pytest.raises(LadderError, match=said):
        parse_player(word, load())


def test_players_of_one_variant_play_it_alone() -> None:
    found = load()
    assert playable(parse_player("evolved-brandubh", found), found) == ("brandubh",)
    assert playable(parse_player("default+evolved-copenhagen:100", found), found) == ("copenhagen",)
    with pytest.raises(LadderError, match=r"plays hingston-alternative only.*expected a player of brandubh"):
        playable(parse_player("evolved-hingston-alternative", found), found)


# Frozen


def test_a_frozen_ladder_is_as_it_was(tmp_path: Path) -> None:
    found = ladder(tmp_path)
    assert frozen.differences(frozen.read(found), frozen.measure(found)) == ([], [])


def test_changes_are_noticed_one_by_one(tmp_path: Path) -> None:
    file = tiny(tmp_path)
    was = frozen.read(load(str(file)))
    text = file.read_text()
    file.write_text(text.replace('player = "simple"', 'player = "simple", depth = 2'))
    unlike, _ = frozen.differences(was, frozen.measure(load(str(file))))
    assert unlike[0] == "rung simple: other definition than the frozen rung has"

    file.write_text(text.replace('{ player = "random-terminal" }, ', ""))
    unlike, _ = frozen.differences(was, frozen.measure(load(str(file))))
    assert unlike == ["rungs random-blind, simple: frozen were random-blind, random-terminal, simple"]

    file.write_text(text)
    lines = (tmp_path / "tiny.jsonl").read_text().splitlines()
    (tmp_path / "tiny.jsonl").write_text("\n".join([*lines[1:], lines[0]]) + "\n")
    unlike, _ = frozen.differences(was, frozen.measure(load(str(file))))
    assert unlike[0] == "openings of brandubh: not the frozen ones"


def test_other_answers_are_noticed_and_another_source_is_mentioned(tmp_path: Path) -> None:
    found = ladder(tmp_path)
    was, now = frozen.read(found), frozen.measure(found)
    was["rungs"]["simple"]["answers"] = was["source"] = "0" * 64
    unlike, harmless = frozen.differences(was, now)
    assert unlike == ["rung simple: other answers than the frozen rung has"]
    assert harmless == ["the source of the search differs from the frozen one"]
    was["rungs"]["simple"]["answers"] = now["rungs"]["simple"]["answers"]
    assert frozen.differences(was, now) == (
        [],
        [f"{harmless[0]}, but every rung still chooses the frozen moves"],
    )


def test_a_definition_is_the_bytes_of_its_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('algorithm = "minimax"\nevaluator = "simple"\n[limits]\ndepth = 1\n')
    one = LimitedPlayer("mine", str(file), None, 1)
    before = frozen.definition(one)
    assert frozen.definition(one) == before
    file.write_text(file.read_text() + "# a comment\n")
    assert frozen.definition(one) != before
    assert frozen.definition(LimitedPlayer("mine", str(file), None, 2)) != frozen.definition(one)


@pytest.mark.process
def test_a_release_wants_ladders_that_can_be_played(tmp_path: Path) -> None:
    """What `make dist` does first: from commit c788e12 on nobody could be placed, and nobody had noticed."""
    spec = importlib.util.spec_from_file_location("dist", FOLDER.resolve().parents[1] / ".ci" / "dist.py")
    assert spec is not None
    assert spec.loader is not None
    dist = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dist)
    file = tiny(tmp_path).rename(tmp_path / "ladder-tiny.toml")
    frozen.freeze(load(str(file)))
    dist.check_ladders(tmp_path)
    frozen_file = frozen.file_of(load(str(file)))
    was = json.loads(frozen_file.read_text())
    was["rungs"]["simple"]["answers"] = "0" * 64
    frozen_file.write_text(json.dumps(was))
    with pytest.raises(subprocess.CalledProcessError) as refused:
        dist.check_ladders(tmp_path)
    assert "rung simple: other answers than the frozen rung has" in refused.value.stdout


def test_a_ladder_that_was_never_frozen(tmp_path: Path) -> None:
    found = ladder(tmp_path)
    frozen.file_of(found).unlink()
    with pytest.raises(LadderError, match="not found: expected a frozen ladder"):
        frozen.read(found)
    frozen.file_of(found).write_text("{")
    with pytest.raises(LadderError, match="expected JSON as hnefi wrote it"):
        frozen.read(found)


def test_openings_that_are_too_few_or_damaged(tmp_path: Path) -> None:
    found = load(str(tiny(tmp_path, pairs=OPENINGS)))
    frozen.openings(found)
    (tmp_path / "tiny.jsonl").write_text("[1,\n")
    with pytest.raises(LadderError, match="expected lines as hnefi wrote them"):
        frozen.openings(found)
    (tmp_path / "tiny.jsonl").write_text('["brandubh",null,["a4a2"]]\n')
    with pytest.raises(LadderError, match=f"1 openings of brandubh: expected at least {OPENINGS}"):
        frozen.openings(found)


def test_seeds_have_openings_of_their_own(tmp_path: Path) -> None:
    found = ladder(tmp_path)
    firsts = [playing.first_opening(found, seed) for seed in range(1, 6)]
    assert firsts == [1, 3, 5, 7, 1]


# Pools


def test_a_pool_is_written_and_read(tmp_path: Path) -> None:
    games = made_up([("A", "B", "a", 3), ("B", "C", "draw", 2)])
    path = tmp_path / "p.jsonl.xz"
    pool.write(games, path)
    assert pool.read(path) == games
    again = tmp_path / "q.jsonl.xz"
    pool.write(pool.read(path), again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("name", "said"), [("", "it has no name"), ("cup", "its name is 'cup'")])
def test_a_run_of_the_arena_is_not_one_of_the_ladder(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SimpleNamespace(
        run=SimpleNamespace(config={"run.name": name}), progress=None, store=SimpleNamespace(folder=tmp_path)
    )
    monkeypatch.setattr(stored_runs, "Stored", lambda _: run)
    monkeypatch.setattr(pool, "folders", lambda place: [place])
    with pytest.raises(LadderError) as refused:
        pool.of_folders(load(), [tmp_path])
    assert f"{tmp_path}: not a run of the ladder {CURRENT} ({said}): " in str(refused.value)
    assert "`hnefi arena report` reports other runs" in str(refused.value)


def test_what_is_no_pool_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.xz"
    with pytest.raises(LadderError, match=r"No such file or directory: expected a pool of games"):
        pool.read(path)
    path.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(LadderError, match="expected a pool of games"):
        pool.read(path)
    pool.write(made_up([("A", "B", "a", 3)]), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LadderError, match="expected a pool of games"):
        pool.read(path)
    lines = lzma.decompress(whole).decode().splitlines()
    for number, line in (
        (0, "{}"),
        (0, lines[0].replace('"format": 1', '"format": 9')),
        (1, "[]"),
        (1, "nonsense"),
    ):
        changed = [*lines[:number], line, *lines[number + 1 :]]
        path.write_bytes(lzma.compress("\n".join(changed).encode()))
        with pytest.raises(LadderError, match="expected"):
            pool.read(path)


def test_pools_are_joined_and_names_stand_for_one_player() -> None:
    one, two = made_up([("A", "B", "a", 3)]), made_up([("B", "C", "a", 2)])
    both = one.joined(two)
    assert len(both.games) == 10
    assert both.tally().engines == ["A", "B", "C"]
    assert sum(both.tally().pairs.values()) == 5
    other = pool.Pool("tiny", (), {"B": LimitedPlayer("B", "simple", None, 1)}, ())
    with pytest.raises(LadderError, match=r"B: .* in one run, .* in another"):
        one.joined(other)


# What is shown


def test_reports_and_pictures_of_a_made_up_pool(tmp_path: Path) -> None:
    found = ladder(tmp_path)
    games = made_up(
        [
            ("simple", "random-blind", "a", 6), ("random-terminal", "random-blind", "draw", 6),
            ("simple", "random-terminal", "a", 4), ("simple", "random-terminal", "d", 1),
        ]
    )  # fmt: skip
    fit = fitting.fit(games, found.model, bootstrap=50)
    file = report.write(tmp_path / "out", found, games, fit)
    text = file.read_text()
    assert "34 games of 3 players in 1 runs on brandubh; simple = 1000." in text
    assert "| **simple** | 1000 | 1000 | 22 |" in text
    assert "80 (49-94)" in text
    assert "0 cycles" in text
    document = json.loads((tmp_path / "out" / "ratings.json").read_text())
    assert document["players"]["simple"]["profile"]["random-terminal"]["score"] == 0.8
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {"ratings.svg", "profiles.svg"}


def test_deviations_are_counted_among_meetings_of_enough_games() -> None:
    few, enough = report.FEW - 1, report.FEW
    games = made_up([("A", "B", "a", enough), ("A", "C", "a", few), ("B", "C", "draw", enough)])
    fit = fitting.fit(games, Model(anchor=("B", 1000.0)), bootstrap=0)
    (said,) = (line for line in report.oddities(fit) if line.startswith("The same by variant"))
    assert said.endswith(" of 4."), "those of A and C are too few to deviate"


def test_what_is_shown_is_what_was_fitted() -> None:
    """To a digit that rounding again does not change: 88.51 would be 88.5 and then 88."""
    shown = published._number(SimpleNamespace(value=2202.46, error=88.5104, low=None, high=2290.0))
    assert shown == {"elo": 2202.46, "error": 88.5104, "low": None, "high": 2290.0}


def test_pictures_are_xml_that_says_what_it_shows() -> None:
    games = made_up([("A<&", "B", "a", 6), ("A<&", "B", "d", 2)])
    fit = fitting.fit(games, Model(anchor=("B", 1000.0)), bootstrap=20)
    drawn = [
        charts.ratings(fit, ["A<&", "B"], ["B"], ("one", "two")),
        charts.profiles(fitting.cells(fit), ["A<&", "B"], ["B", "never"], ("one",)),
        charts.growth({"all": [(100, 1000, 5), (400, 1200, 6)], "x": [(100, 900, 5)]}, ("t",), "nodes", True),
    ]
    for drawing in drawn:
        root = ET.fromstring(drawing)
        texts = [element.text for element in root.iter() if element.text and element.tag.endswith("text")]
        assert texts
    assert "A&lt;&amp;" in drawn[0]
    assert "75" in [element.text for element in ET.fromstring(drawn[1]).iter()]


def test_players_bound_to_a_set_are_one_kind_by_nodes() -> None:
    """What a rung is bound to (weights, features) hid how strength grows with nodes."""
    games = made_up([("A", "B", "a", 6), ("A", "B", "d", 2)])
    bound = {"Evaluator": "default-2026.1", "Features": "default-2026.1", "Hash": "4"}
    players = {
        name: LimitedPlayer(name, "default", nodes, None, bound) for name, nodes in (("A", 100), ("B", 400))
    }
    games = replace(games, players=players)
    fit = fitting.fit(games, Model(anchor=("B", 1000.0)), bootstrap=20)
    assert report.by_nodes(games, fit) == {"default": [(100, "A"), (400, "B")]}


def test_published_ratings(tmp_path: Path) -> None:
    assert published.ratings("tiny", tmp_path) is None
    assert published.measured("simple", "other", tmp_path) == {}
    published.ratings.cache_clear()
    path = published.ratings_file("tiny", tmp_path)
    for text in ("{", "[]", '{"schema": 99, "players": {}}'):
        path.write_text(text)
        with pytest.raises(LadderError, match=r"tiny.ratings.json: .*expected ratings"):
            published.ratings("tiny", tmp_path)
