"""The slow twin against the outer world: recorded games and published perft counts.

The recorded games are facts about how tafl is played; replaying them shows that the twin reads the rules as players
do, which is what makes it worth comparing the kernels with.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from thoroughness import THOROUGH
from twin import Twin

from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.rules import Rules
from hnefi.engine.sides import Reason, Side
from hnefi.engine.squares import move, parse

GAMES_BY_DEFAULT = 450


@dataclass(frozen=True)
class Game:
    """One recorded game: (origin, target, captured squares or None where the record does not say) per ply."""

    line: int
    plies: tuple[tuple[str, str, frozenset[str] | None], ...]
    result: str | None
    """`a`, `d`, `draw`; None where the record holds nothing that the rules must agree with."""
    ended_by_rules: bool = False
    """The record says that the rules ended it, so they must declare an end."""
    refused: str | None = None


def read_csv(path: Path) -> Iterator[Game]:
    results = {"White": "d", "Black": "a", "Draw": "draw"}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        moves, _, _, result = line.split(",")
        plies = []
        for word in moves.split():
            if word == "timeout":
                continue
            ply, *captured = word.split("x")
            start, end = ply.split("-")
            plies.append((start, end, frozenset(captured)))
        yield Game(number, tuple(plies), results.get(result))


def read_jsonl(path: Path) -> Iterator[Game]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        record = json.loads(line)
        plies = tuple((word[:2], word[2:], None) for word in record["moves"].split())
        refused = record["refused"]
        readable = refused if refused is not None and refused[0].isalnum() else None
        by_rules = record["ended_by"] == "rules"
        yield Game(number, plies, record["result"] if by_rules else None, by_rules, readable)


def replay(game: Game, start: Twin) -> tuple[list[str], Twin]:
    """What the twin and the record disagree about, and the last position."""
    twin, size = start, start.rules.size
    wrong: list[str] = []
    for number, (origin, target, captured) in enumerate(game.plies, start=1):
        ply = move(parse(origin, size), parse(target, size))
        here = f"line {game.line}, ply {number}, {origin}{target}"
        if twin.outcome is not None:
            return [*wrong, f"{here}: over before: {twin.outcome.text}"], twin
        if not twin.is_legal(ply):
            return [*wrong, f"{here}: illegal"], twin
        twin = twin.play(ply)
        if captured is not None and twin.last_captures != {parse(square, size) for square in captured}:
            wrong.append(f"{here}: took {sorted(twin.last_captures)}, recorded {sorted(captured)}")
    here = f"line {game.line}, at the end"
    if twin.outcome is not None and game.result is not None and twin.outcome.result != game.result:
        wrong.append(f"{here}: {twin.outcome.text}, recorded {game.result}")
    if twin.outcome is None and game.ended_by_rules:
        wrong.append(f"{here}: goes on, recorded {game.result} by the rules")
    if game.refused is not None:
        try:
            ply = move(parse(game.refused[:2], size), parse(game.refused[2:], size))
        except ValueError:
            return wrong, twin
        if twin.is_legal(ply):
            wrong.append(f"{here}: {game.refused} was refused but is legal")
    return wrong, twin


def tally(games: list[Game], start: Twin) -> tuple[list[str], Counter[Reason], int]:
    """All disagreements, the ends that the rules declare, and the refused moves that can be read."""
    wrong: list[str] = []
    ends: Counter[Reason] = Counter()
    for game in games:
        differences, last = replay(game, start)
        wrong += differences
        if last.outcome is not None:
            ends[last.outcome.reason] += 1
    return wrong, ends, sum(game.refused is not None for game in games)


FILES = {
    "copenhagen": (
        "copenhagen.csv",
        (876, 44155),
        {
            Reason.KING_ESCAPED: 123,
            Reason.EXIT_FORT: 21,
            Reason.KING_CAPTURED: 20,
            Reason.SURROUNDED: 10,
            Reason.NO_LEGAL_MOVE: 5,
        },
    ),
    "brandubh": ("brandubh.csv", (263, 5665), {Reason.KING_CAPTURED: 44, Reason.KING_ESCAPED: 17}),
    "tablut-bologna": (
        "bologna.jsonl",
        (436, 12417),
        {Reason.KING_CAPTURED: 188, Reason.KING_ESCAPED: 152, Reason.REPETITION: 36},
    ),
}


def as_recorded(rules: Rules, file: str) -> Rules:
    """The rules that a file's games were played by: the site of the CSV files ended none by repetition or limit."""
    if file.endswith(".jsonl"):
        return rules
    return rules.replace(repetition="ignore", draw_fort="no", move_limit=0, quiet_limit=0, sealed="off")


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_recorded_games_are_played_as_recorded(name: str, corpora: Path) -> None:
    file, (games_in_file, plies_in_file), ends_in_file = FILES[name]
    games = list((read_csv if file.endswith(".csv") else read_jsonl)(corpora / file))
    assert len(games) == games_in_file
    assert sum(len(game.plies) for game in games) == plies_in_file
    sample = games[: GAMES_BY_DEFAULT * THOROUGH]
    variant = variants.find(name)
    wrong, ends, refused = tally(sample, Twin(as_recorded(variant.rules, file), variant.start))
    assert not wrong, "\n".join(wrong[:20])
    if len(sample) == len(games):
        assert ends == ends_in_file
        assert refused == (8 if name == "tablut-bologna" else 0)
    else:
        assert set(ends) <= set(ends_in_file)


def test_a_wrong_reading_is_found() -> None:
    """The replay can fail: with one switch turned the wrong way it says where."""
    variant = variants.find("brandubh")
    game = Game(1, (("a4", "a2", frozenset()), ("d3", "a3", frozenset({"a2"}))), None)
    assert replay(game, Twin(variant))[0] == []
    deaf = Twin(variant.rules.replace(corner_hostile="none"), variant.start)
    assert replay(game, deaf)[0] == ["line 1, ply 2, d3a3: took [], recorded ['a2']"]
    assert replay(Game(1, (("a4", "a4", None),), None), deaf)[0] == ["line 1, ply 1, a4a4: illegal"]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("copenhagen", [(116, 0), (6788, 16)]),
        ("fetlar", [(116, 0), (6788, 16)]),
        ("hingston-original", [(116, 0), (6788, 16)]),
        ("brandubh", [(40, 0), (960, 16), (39512, 568)]),
        ("tablut-linnaeus", [(80, 0), (4400, 24)]),
        ("tablut-bologna", [(56, 0), (4408, 72)]),
    ],
)
def test_perft_of_the_twin(name: str, counts: list[tuple[int, int]]) -> None:
    twin = Twin(variants.find(name))
    assert [twin.perft(depth) for depth in range(1, len(counts) + 1)] == counts


def test_bologna_counts_depend_on_who_begins() -> None:
    assert Twin(variants.find("tablut-bologna").with_switches(first="a")).perft(1) == (80, 0)


def test_side_to_move_and_counters() -> None:
    twin = Twin(variants.find("tablut-bologna"))
    assert twin.fen == "3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3 d 0 1"
    assert twin.side is Side.DEFENDERS
    twin = twin.play(move(parse("e4", 9), parse("f4", 9)))
    assert twin.fen == "3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t4T2t/4T4/4t4/3ttt3 a 1 1"
    twin = twin.play(move(parse("d1", 9), parse("d3", 9)))
    assert (twin.quiet, twin.move_number, twin.repetitions) == (2, 2, 1)
