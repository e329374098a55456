"""Opening books: what games add up to, which moves follow, and files that are not believed."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pytest

from hnefi.engine import book, games
from hnefi.engine.book import Book, BookError, Chapter, Record
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.variant import find
from hnefi.engine.search.types import Limits, SearchResult
from hnefi.engine.session import Session, SessionError
from hnefi.engine.sides import Side
from hnefi.engine.squares import move_name
from hnefi.tools import book as command

MINI = find("mini-four")
RULES = MINI.hash[: book.DIGITS]


def walk(draw: random.Random, plies: int = 30) -> tuple[list[Position], Side | None]:
    """A random game: its positions and who won it."""
    positions: list[Position] = [games.initial(MINI)]
    while positions[-1].outcome is None and len(positions) <= plies:
        positions.append(positions[-1].play(draw.choice(positions[-1].legal_moves())))
    end = positions[-1].outcome
    return positions, None if end is None else end.winner


def collected(count: int = 80) -> list[tuple[list[Position], Side | None]]:
    draw = random.Random(26)
    return [walk(draw) for _ in range(count)]


def grown(least: int = 1, plies: int = 4) -> dict[str, Record]:
    grower = book.Grower(plies)
    for positions, winner in collected():
        grower.add(positions, winner)
    return grower.entries(least)


def test_games_are_counted_by_position_and_images_are_one() -> None:
    """Against a slow count that compares positions by all eight images of their boards."""
    entries = grown()
    counts: dict[tuple[object, ...], list[int]] = {}
    names = {}
    for positions, winner in collected():
        for canon in {one.canonical(): one for one in positions[:5] if one.outcome is None}:
            counts.setdefault(canon, [0, 0, 0])[2 if winner is None else int(winner)] += 1
        names |= {one.canonical(): book.key(one) for one in positions[:5]}
    assert {names[canon]: tuple(count) for canon, count in counts.items()} == {
        name: (one.attackers, one.defenders, one.draws) for name, one in entries.items()
    }
    start = games.initial(MINI)
    first = {move: book.key(start.play(move)) for move in start.legal_moves()}
    assert len(set(first.values())) < len(first)


def slow_value(entries: dict[str, Record], position: Position, ply: int, plies: int) -> float:
    """Minimax over everything that games played, by its definition; only for positions that no two plies share."""
    one = entries[book.key(position)]
    after = {
        book.key(position.play(move)): position.play(move)
        for move in position.legal_moves()
        if book.key(position.play(move)) in entries
    }
    if ply == plies or not after:
        return (one.attackers + (one.draws + book.PRIOR) / 2) / (one.games + book.PRIOR)
    values = [slow_value(entries, child, ply + 1, plies) for child in after.values()]
    return max(values) if position.side == Side.ATTACKERS else min(values)


@pytest.mark.parametrize("plies", [1, 2])
def test_values_are_minimax(plies: int) -> None:
    """Two plies from a start on which each side moves once: no position can come up at two plies."""
    entries = grown(plies=plies)
    start = games.initial(MINI)
    assert entries[book.key(start)].value == round(1000 * slow_value(entries, start, 0, plies))
    for choice in book.choices(entries, start):
        child = start.play(choice.moves[0])
        assert choice.record.value == round(1000 * slow_value(entries, child, 1, plies))


def test_choices_are_in_the_order_of_who_moves() -> None:
    entries = grown()
    start = games.initial(MINI)
    values = [choice.record.value for choice in book.choices(entries, start)]
    assert len(values) > 1
    assert values == sorted(values, reverse=start.side == Side.ATTACKERS)
    child = start.play(book.choices(entries, start)[0].moves[0])
    values = [choice.record.value for choice in book.choices(entries, child)]
    assert values == sorted(values, reverse=child.side == Side.ATTACKERS)
    assert child.side != start.side


def made(values: list[tuple[int, int]]) -> dict[str, Record]:
    """A book in which the first moves from the start have these values and games."""
    start = games.initial(MINI)
    entries = {book.key(start): Record(50, 50, 0, 500)}
    keys = list(dict.fromkeys(book.key(start.play(move)) for move in start.legal_moves()))
    assert len(keys) >= len(values)
    for name, (value, count) in zip(keys, values, strict=False):
        entries[name] = Record(count, 0, 0, value)
    return entries


def test_only_what_is_nearly_as_good_and_well_known_is_played() -> None:
    start = games.initial(MINI)
    best, near = 700, 700 - book.MARGIN
    for values in ([(best, 10), (near - 1, 99)], [(best, 10), (999, book.FEWEST - 1)]):
        assert [one.record.value for one in book.near_best(book.choices(made(values), start))] == [best]
    entries = made([(best, 10), (near, 30)])
    draw = random.Random(1)
    played = [book.choose(entries, start, draw) for _ in range(400)]
    values = [entries[book.key(start.play(move))].value for move in played if move is not None]
    assert len(values) == 400
    assert set(values) == {best, near}
    assert 0.65 < values.count(near) / 400 < 0.85, "three times as many games, three times as often"
    assert len(set(played)) > 2, "images of a move are moves"


def test_an_unknown_position_has_no_move() -> None:
    draw = random.Random(1)
    assert book.choose({}, games.initial(MINI), draw) is None
    lone = {book.key(games.initial(MINI)): Record(9, 9, 0, 500)}
    assert book.choose(lone, games.initial(MINI), draw) is None


# Files


def test_a_book_is_read_as_it_was_written(tmp_path: Path) -> None:
    whole = Book(
        (Chapter("mini-four", RULES, grown()), Chapter("other", "0123456789abcdef", made([(500, 4)])))
    )
    book.write(tmp_path / "a.taflbook", whole)
    read = book.read(tmp_path / "a.taflbook")
    assert read == whole
    assert read.of(MINI) == grown()
    assert read.of(find("brandubh")) == {}


def signed(body: str) -> bytes:
    return f"{body}sha256 {hashlib.sha256(body.encode()).hexdigest()}\n".encode()


HEAD = f"taflbook 1\nvariant mini-four {RULES}\n"
GOOD = "00112233445566aa 3 2 1 500\n"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "expected 'taflbook 1'"),
        (b"\x80\x04\x95pickle", "expected 'taflbook 1'"),
        (signed(HEAD + GOOD)[:-10], "expected the digest"),
        (signed(HEAD + GOOD).replace(b" 3 2", b" 4 2"), "expected the digest"),
        (signed("taflbook 2\n"), "expected 'taflbook 1'"),
        (signed("taflbook 1\n" + GOOD), ":2: .*expected a line `variant NAME RULES` before"),
        (signed(f"taflbook 1\nvariant x {RULES[:-1]}\n"), ":2: .*digits of the rules hash"),
        (signed(HEAD + HEAD.splitlines()[1] + "\n"), ":3: .*each set of rules once"),
        (signed(HEAD + GOOD + GOOD), ":4: .*each position once"),
        (signed(HEAD + "00112233445566AA 3 2 1 500\n"), "expected a key"),
        (signed(HEAD + "00112233445566aa 3 2 1\n"), "expected a key"),
        (signed(HEAD + "00112233445566aa 3 2 1 1001\n"), "a value of 0 to 1000"),
        (signed(HEAD + "00112233445566aa 0 0 0 500\n"), "one of them above 0"),
        (signed(HEAD + "00112233445566aa -3 2 1 500\n"), "numbers of games"),
        (signed(HEAD + "00112233445566aa 9999999999999999999999 2 1 500\n"), "numbers of games"),
        (signed(HEAD + "\n"), ":3: .*expected a key"),
    ],
)
def test_what_is_no_book_is_refused(tmp_path: Path, data: bytes, complaint: str) -> None:
    file = tmp_path / "x.taflbook"
    file.write_bytes(data)
    with pytest.raises(BookError, match=complaint):
        book.read(file)
    with pytest.raises(SessionError, match="BookFile"):
        Session().set_option("BookFile", str(file))


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", Path("/dev/zero")):
        with pytest.raises(BookError, match=str(place)):
            book.read(place)


def test_the_shipped_books_can_be_read_and_are_of_rules_that_ship() -> None:
    found = book.shipped()
    assert found.chapters
    for chapter in found.chapters:
        variant = find(chapter.name)
        assert variant.hash.startswith(chapter.rules)
        start = games.initial(variant)
        assert book.near_best(book.choices(chapter.entries, start)), "the first move is in the book"


# In the engine


def answered(session: Session, limits: Limits) -> int | None:
    """The move that a session answers with."""
    session.go(limits)
    assert session.wait(60)
    return ANSWERS[-1]


ANSWERS: list[int | None] = []


def session_with(tmp_path: Path) -> Session:
    entries = made([(0, 9)])
    (name,) = set(entries) - {book.key(games.initial(MINI))}
    file = tmp_path / "one.taflbook"
    book.write(file, Book((Chapter("mini-four", RULES, {**entries, name: Record(9, 0, 0, 0)}),)))

    def keep(_: Position, result: SearchResult) -> None:
        ANSWERS.append(result.move)

    session = Session(on_result=keep)
    session.set_option("Algorithm", "random")
    session.set_variant("mini-four")
    session.set_option("BookFile", str(file))
    return session


def test_the_engine_plays_from_its_book_only_where_it_is_told_to(tmp_path: Path) -> None:
    session = session_with(tmp_path)
    start = games.initial(MINI)
    entries = session._options._book.of(MINI) if session._options._book is not None else {}
    (known,) = book.choices(entries, start)
    off = {answered(session, Limits(depth=1)) for _ in range(2)}
    session.set_option("OwnBook", "true")
    played = set()
    for seed in range(12):
        session.set_option("Seed", str(seed))
        move = answered(session, Limits(depth=1))
        assert move == answered(session, Limits(depth=1)), "the same for the same seed"
        played.add(move)
    assert played <= set(known.moves)
    assert len(played) > 1
    session.set_option("Seed", "1")
    for limits in (Limits(depth=1, searchmoves=tuple(off)), Limits(depth=1, mate=1)):  # type: ignore[arg-type]
        assert {answered(session, limits)} == off
    session.set_option("MultiPV", "2")
    assert {answered(session, Limits(depth=1))} == off
    session.set_option("MultiPV", "1")
    session.set_option("OwnBook", "false")
    assert {answered(session, Limits(depth=1))} == off


def test_a_book_of_other_rules_is_silent(tmp_path: Path) -> None:
    session = session_with(tmp_path)
    session.set_option("OwnBook", "true")
    session.set_variant("mini-six")
    assert answered(session, Limits(depth=1)) in games.initial(find("mini-six")).legal_moves()


# The command


def record(moves: list[str], result: str, variant: str = "brandubh") -> str:
    numbered = " ".join(f"{ply // 2 + 1}. {move}" if ply % 2 == 0 else move for ply, move in enumerate(moves))
    return f'[Variant "{variant}"]\n[Result "{result}"]\n\n{numbered} {result.split(maxsplit=1)[0]}\n\n'


def test_build_and_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = record(["a4a2", "d3a3"], "a resignation") * 3 + record(["g4g6", "d3c3"], "d resignation") * 2
    games_file = tmp_path / "games.tafl"
    games_file.write_text(text + record(["a4a2"], "*"))
    out = tmp_path / "own.taflbook"
    words = [str(games_file), "--out", str(out), "--least", "1", "--quiet"]
    assert command.main(["build", *words]) == 0
    assert "1 games left out" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["build", *words])
    assert "expected --force" in capsys.readouterr().err
    assert command.main(["show", "--book", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    ((first, _),) = [(one["moves"], one) for one in shown["moves"]]
    # g4g6 mirrors a4a2's twin: all are the same first move.
    assert {"a4a2", "g4g6"} <= set(first)
    assert (shown["moves"][0]["attackers"], shown["moves"][0]["defenders"]) == (3, 2)
    assert command.main(["show", "a4a2", "--book", str(out)]) == 0
    assert "defenders to move" in capsys.readouterr().out
    assert command.main(["show", "a4a2", "d3a3", "d1c1", "--book", str(out)]) == 0
    assert "does not know this position" in capsys.readouterr().out
    assert command.main(["build", *words, "--force", "--least", "4"]) == 0
    assert command.main(["show", "a4a2", "--book", str(out)]) == 0
    assert "knows this position (games: 5), but no move from it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["show", "a1a9", "--variant", "brandubh"], "a1a9"),
        (["show", "--variant", "mini-edge"], "expected a variant of the book"),
        (["show", "--book", "/dev/null"], "not a regular file"),
        (["build", "x.csv", "--out", "y.taflbook"], "CSV names no variant"),
        (["build", "/nowhere.tafl", "--out", "y.taflbook"], "expected a file of recorded games"),
        (["build", "x.tafl", "--out", "y.taflbook", "--plies", "61"], "expected at most 60"),
    ],
)
def test_bad_input_gets_a_sentence(
    words: list[str],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        status: object = command.main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert complaint in capsys.readouterr().err


def test_moves_are_legal_in_every_image() -> None:
    """Every move of a choice leads to the position that the choice is about."""
    entries = grown()
    start = games.initial(MINI)
    for choice in book.choices(entries, start):
        assert {book.key(start.play(move)) for move in choice.moves} == {
            name for name, one in entries.items() if one is choice.record
        }, move_name(choice.moves[0])
