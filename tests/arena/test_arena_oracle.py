"""Games that end where a file of solved positions knows who wins."""

from __future__ import annotations

import json
from pathlib import Path

import arena_parts
import fake_arena
import pytest
from solved import Solver, write

from hnefi.engine import games
from hnefi.tools.arena import adjudication, run
from hnefi.tools.arena.adjudication import Adjudication
from hnefi.tools.arena.logs import game_line
from hnefi.tools.arena.options import ConfigError
from hnefi.tools.arena.records import Maker
from hnefi.tools.arena.values import from_json, to_json

HEXAPAWN = "hexapawn:3x3"


def test_every_position_of_a_small_game_has_its_winner(tmp_path: Path) -> None:
    solver = Solver(HEXAPAWN)
    known = adjudication.load_oracle(str(write(tmp_path / "solved.jsonl", HEXAPAWN)), (HEXAPAWN,))
    solver.lines()
    assert len(known) == len(solver.winners) > 30
    # Whoever moves second wins this game.
    assert known.winner(games.initial(solver.variant)) == "d"
    for fen, winner in solver.winners.values():
        assert known.winner(games.from_fen(solver.variant, fen)) == winner


def test_one_image_of_a_position_is_enough(tmp_path: Path) -> None:
    variant = games.find("hex:2")
    start = games.initial(variant)
    corners = [start.play(start.parse_move(name)) for name in ("a1", "b2", "a2")]
    assert corners[0].canonical() == corners[1].canonical() != corners[2].canonical()
    lines = [{"variant": "hex:2", "rules": variant.hash}, [corners[0].fen(), "d"]]
    (tmp_path / "solved.jsonl").write_text("\n".join(map(json.dumps, lines)))
    known = adjudication.load_oracle(str(tmp_path / "solved.jsonl"), ("hex:2",))
    assert [known.winner(position) for position in corners] == ["d", "d", None]


def test_other_variants_of_a_file_are_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "solved.jsonl", "hex:2", HEXAPAWN)
    both = adjudication.load_oracle(str(path), ("hex:2", HEXAPAWN))
    one = adjudication.load_oracle(str(path), ("hex:2",))
    assert 0 < len(one) < len(both)
    assert one.winner(games.initial(games.find(HEXAPAWN))) is None
    with pytest.raises(
        ConfigError, match=r"positions of 'hex:2', 'hexapawn:3x3': expected some of 'brandubh'"
    ):
        adjudication.load_oracle(str(path), ("brandubh",))


HEADER = json.dumps({"variant": HEXAPAWN, "rules": games.find(HEXAPAWN).hash})
START = games.initial(games.find(HEXAPAWN)).fen()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "positions of no variant"),
        ("{", r":1: .*expected JSON"),
        ("[" * 4000, r":1: .*expected JSON"),
        ("\xff", r":1: .*expected JSON"),
        (" " * 5000, r":1: expected at most 4096 bytes"),
        ('{"variant": "hexapawn:3x3"}', r":1: .*expected variant and rules"),
        ('{"variant": "hexapawn:3x3", "rules": "0"}', r":1: rules '0' of 'hexapawn:3x3': expected [0-9a-f]+"),
        (f'["{START}", "d"]', r":1: .*expected {\"variant\""),
        (f"{HEADER}\n3", r":2: 3: expected \[FEN, WINNER\]"),
        (f'{HEADER}\n["{START}", ["d"]]', r":2: .*expected \[FEN, WINNER\]"),
        (f'{HEADER}\n["{START}", "x"]', r":2: .*a winner of a, d, draw"),
        (f'{HEADER}\n["ppp", "a"]', r":2: "),
        (f'{HEADER}\n["{START}", "d"]\n["{START}", "a"]', r":3: winner a: expected d"),
    ],
)
def test_what_is_no_oracle_is_named_by_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=message):
        adjudication.load_oracle(str(tmp_path / "bad.jsonl"), (HEXAPAWN,))
    with pytest.raises(ConfigError, match="No such file"):
        adjudication.load_oracle(str(tmp_path / "none.jsonl"), (HEXAPAWN,))


def test_a_file_may_not_hold_more_than_memory_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adjudication, "POSITIONS", 10)
    with pytest.raises(ConfigError, match=":12: expected at most 10 positions"):
        adjudication.load_oracle(str(write(tmp_path / "solved.jsonl", HEXAPAWN)), (HEXAPAWN,))
    monkeypatch.setattr(adjudication, "FILE_LIMIT", 100)
    with pytest.raises(ConfigError, match="bytes: expected at most 100"):
        adjudication.load_oracle(str(tmp_path / "solved.jsonl"), ("hex:2",))


@pytest.mark.process
def test_a_game_ends_where_it_is_solved(tmp_path: Path) -> None:
    moves = arena_parts.by_heart()
    variant = games.find(arena_parts.VARIANT)
    position = games.initial(variant)
    for move in moves[:6]:
        position = position.play(position.parse_move(move))
    lines = [{"variant": variant.name, "rules": variant.hash}, [position.fen(), "draw"]]
    (tmp_path / "solved.jsonl").write_text("\n".join(map(json.dumps, lines)))
    known = adjudication.load_oracle(str(tmp_path / "solved.jsonl"), (variant.name,))
    specs = [arena_parts.spec("one"), arena_parts.spec("two")]
    found = arena_parts.collect(arena_parts.pair(), specs, adjudication=Adjudication(oracle=known))
    assert [(one.winner, one.reason, len(one.plies), one.fault) for one in found] == [
        ("draw", "adjudicated", 6, None)
    ] * 2
    assert from_json(to_json(found[0])).extra == {"fact": "oracle solved.jsonl"}
    assert "½-½, adjudicated (oracle solved.jsonl), ply 6" in game_line(found[0])
    assert b'[Adjudication "oracle solved.jsonl"]' in Maker("x", specs).tafl(found[0])


def test_what_an_oracle_says_is_part_of_the_run(tmp_path: Path) -> None:
    path = write(tmp_path / "one.jsonl", "hex:2")
    write(tmp_path / "same.jsonl", "hex:2")
    marks = []
    for name in ("one.jsonl", "same.jsonl", "other.jsonl"):
        (tmp_path / "other.jsonl").write_bytes(path.read_bytes() + b"\n")
        settings = fake_arena.config(variants=["hex:2"], adjudicate__oracle=str(tmp_path / name))
        assert run.adjudication(settings).oracle.winner(games.initial(games.find("hex:2"))) == "a"
        prepared = fake_arena.prepared(settings)
        marks.append(run.fingerprint(settings, prepared.specs, prepared.ids, {})["adjudicate.oracle"])
    assert marks[0] == marks[1] != marks[2]
    settings = fake_arena.config(adjudicate__oracle=str(path))
    with pytest.raises(ConfigError, match="expected some of 'brandubh'"):
        run.adjudication(settings)


def test_the_example_of_the_documents_is_an_oracle(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "arena.md").read_text()
    example = text.partition("```json\n")[2].partition("```")[0]
    (tmp_path / "solved.jsonl").write_text(example)
    known = adjudication.load_oracle(str(tmp_path / "solved.jsonl"), (HEXAPAWN,))
    assert known.winner(games.initial(games.find(HEXAPAWN))) == "d"
