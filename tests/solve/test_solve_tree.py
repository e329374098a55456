"""Proof trees: their positions are won, as a whole table has it; players by them; files not to be trusted."""

from __future__ import annotations

import errno
import json
import random
import shutil
import struct
import time
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from search_parts import think
from solve_parts import build, tiny

from hnefi import players
from hnefi.engine import durable, games, memory
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.interface import probe
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.search.types import Limits
from hnefi.engine.session import Session, SessionError
from hnefi.engine.sides import Side
from hnefi.engine.solving import lookup, probing, proof_tree
from hnefi.engine.solving.proof_tree import Tree
from hnefi.engine.solving.table import Table, TableError
from hnefi.engine.solving.tables import SHIPPED, Tables, find
from hnefi.engine.squares import move_name
from hnefi.protocol.format import solved_lines
from hnefi.protocol.hosts.exit_codes import STORAGE, USAGE
from hnefi.tools.solve import command, grow, report

FOUR = SHIPPED / "mini-four.taflbase"
WON = ("mini-eight", Side.DEFENDERS), ("mini-edge", Side.ATTACKERS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The proof that the defenders win mini-four, by the command."""
    path = tmp_path_factory.mktemp("trees") / "four.tafltree"
    argv = ["prove", "mini-four", "--tree", str(path), "--memory", "16", "--quiet"]
    assert command.main(argv) == 0
    return path


def positions(tree: Tree, count: int, seed: int) -> list[Position]:
    """Random positions of a tree, all of them if there are not so many."""
    numbers = random.Random(seed).sample(tree.numbers.tolist(), min(count, len(tree.numbers)))
    return [games.from_fen(tree.variant, report.fen_of(tree.index, number)) for number in numbers]


def test_every_position_of_a_tree_is_won_in_as_many_plies_at_most(made: Path) -> None:
    tree = Tree(made)
    assert tree.header.winner is Side.DEFENDERS
    with Table(FOUR) as table:
        for number, plies in zip(tree.numbers.tolist(), tree.plies.tolist(), strict=True):
            value = table.decode(table.code(number))
            assert value is not None
            assert value.winner is Side.DEFENDERS
            assert value.plies is not None
            assert value.plies <= plies
    start = games.find("mini-four")
    value = tree.value(games.initial(start))
    assert value.at_most
    assert value.plies is not None
    assert value.plies >= 8
    assert value.text == f"defenders win in at most {value.plies}"


def test_a_tree_leads_to_the_end_whatever_the_loser_plays(made: Path) -> None:
    """By the rules of play: one move of the winner leads on, and no move of the loser leads elsewhere."""
    tree = Tree(made)
    for position in positions(tree, 60, 1):
        value = tree.value(position)
        after = lookup.moves(tree.value, position)
        plies = [each.value.plies for each in after if each.value is not None and each.value.winner == 1]
        assert value.plies is not None
        if position.side is Side.DEFENDERS:
            assert min(p for p in plies if p is not None) == value.plies - 1
            assert after[0].best
        else:
            assert len(plies) == len(after)
            assert max(p for p in plies if p is not None) == value.plies - 1


def test_a_tree_is_compared_with_its_moves(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["verify", str(made)]) == 0
    tree = Tree(made)
    assert capsys.readouterr().out.endswith(
        f"all {len(tree.numbers)} positions agree with their moves: the defenders win each of them\n"
    )
    assert tree.faults() == 0
    for change in (1, -1):
        tree.plies[tree.plies.argmax()] += change
        assert tree.faults() >= 1
        tree.plies[tree.plies.argmax()] -= change
    # Without one of the positions behind a move of the loser, the ones before it are not won any more.
    last = int(np.flatnonzero(tree.plies == tree.plies.max() - 1)[0])
    broken = tmp_path / "broken.tafltree"
    proof_tree.write(
        broken,
        tree.variant,
        tree.index,
        tree.header.winner,
        np.delete(tree.numbers, last),
        np.delete(tree.plies, last),
    )
    assert command.main(["verify", str(broken)]) == 1
    assert "disagree with their moves" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["verify", str(made), "--proofs", "10"])
    assert "expected a table" in capsys.readouterr().err


def test_a_search_is_told_what_a_tree_says(made: Path, tmp_path: Path) -> None:
    """Together with a table of few men, whose positions have other numbers."""
    tree = Tree(made)
    build(tree.variant, tmp_path / "few.taflbase", (1, 0)).close()
    shutil.copy(made, tmp_path)
    tables = Tables(find(str(tmp_path)))
    seen = 0
    for position in positions(tree, 80, 2):
        record = tables.record(position)
        value = tables.value(position)
        answer = int(probe(position.new_record()[0], record))
        kind = probing.WON_BY_ATTACKERS + Side.DEFENDERS
        assert value.plies is not None
        assert answer == kind << probing.KIND | value.plies
        seen += value.at_most
        for move in position.legal_moves():
            after = position.play(move)
            if after.outcome is not None:
                continue
            answer = int(probe(after.new_record()[0], record))
            try:
                expected = tables.value(after)
            except ValueError:
                assert answer == probing.NOTHING
            else:
                assert expected.winner is not None
                assert expected.plies is not None
                said = (probing.WON_BY_ATTACKERS + expected.winner) << probing.KIND | expected.plies
                longer = expected.plies > value.plies and len(after.pieces()) == len(position.pieces())
                assert answer == (probing.NOTHING if longer else said)
    assert seen > 40


def test_moves_that_a_proof_leaves_out_are_unknown(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = Tree(made)
    position = next(
        each
        for each in positions(tree, 200, 3)
        if each.side is Side.DEFENDERS and tree.value(each).plies == 3
    )
    value, moves = tree.value(position), lookup.moves(tree.value, position)
    first, *rest = solved_lines(position.side, value, moves)
    assert first == "info string tb win 3 at_most"
    assert rest[0] == f"info string tb {move_name(moves[0].move)} win 3 at_most best"
    assert rest[-1] == f"info string tb {move_name(moves[-1].move)} unknown"
    assert len(rest) == len(position.legal_moves())
    assert command.main(["query", str(made), position.fen(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["winner"], told["plies"], told["at_most"]) == ("d", 3, True)
    assert told["moves"][-1]["winner"] == "unknown"
    assert command.main(["query", str(made), position.fen()]) == 0
    shown = capsys.readouterr().out
    assert "defenders win in at most 3" in shown
    assert "not known" in shown


@pytest.mark.parametrize(("name", "winner"), WON)
def test_the_proofs_that_ship_hold(name: str, winner: Side) -> None:
    tree = Tree(SHIPPED / f"{name}.tafltree")
    assert tree.variant.hash == games.find(name).hash
    assert tree.header.winner is winner
    assert tree.value(games.initial(games.find(name))).winner is winner
    assert tree.faults() == 0


@pytest.mark.parametrize(("name", "winner"), WON)
def test_a_player_by_a_proof_wins_every_game(name: str, winner: Side) -> None:
    """Against moves at random and against itself, with ever fewer plies to go."""
    session = Session(load_player=players.load)
    session.set_option("Player", f"{name}-perfect")
    tables = session.settings.tables
    assert tables is not None
    draw = random.Random(4)
    for opponent in ("random", "random", "itself"):
        position: Position = games.initial(games.find(name))
        plies = tables.value(position).plies
        assert plies is not None
        while position.outcome is None:
            if position.side is winner or opponent == "itself":
                move = think(position, Limits(depth=4), tables=tables)[0].move
                assert move is not None
            else:
                move = draw.choice(position.legal_moves())
            position = position.play(move)
            if position.outcome is None:
                value = tables.value(position)
                assert value.winner is winner
                assert value.plies is not None
                assert value.plies < plies
                plies = value.plies
        assert position.outcome.winner is winner


def test_the_shortest_of_several_proofs_is_told_and_a_table_before_them(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a search is told: otherwise a win could lead over what was on the board and nearer to the end."""
    tree = Tree(made)
    # The longer one is no proof: its plies do not follow from its moves.
    monkeypatch.setattr(Tree, "faults", lambda _: 0)
    root = games.initial(tree.variant)
    longer = tmp_path / "longer"
    proof_tree.write(longer, tree.variant, tree.index, tree.header.winner, tree.numbers, tree.plies + 2)
    value = Tables([longer, made]).value(root)
    assert value == tree.value(root)
    assert value.at_most
    assert not Tables([longer, FOUR]).value(root).at_most


def test_positions_before_count_though_one_between_is_not_in_the_tree(made: Path) -> None:
    """A way ahead may lead over what was on the board: a win is told only if it is no longer than those before."""
    tables = Tables([made])
    tree = Tree(made)
    seen = 0
    for position in positions(tree, 300, 5):
        if position.side is not Side.DEFENDERS:
            continue
        for move in position.legal_moves():
            after = position.play(move)
            if after.outcome is None and after.quiet:
                record = tables.record(after)
                try:
                    known = tree.value(after).plies
                except ValueError:
                    known = None
                    seen += 1
                least = [plies for plies in (tree.value(position).plies, known) if plies is not None]
                assert int(record["least"][Side.DEFENDERS]) == min(least)
                assert not (known is None and record["settled"])
    assert seen > 20


# Files


def test_a_changed_or_cut_file_is_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = made.read_bytes()
    path = tmp_path / "bad.tafltree"
    draw = random.Random(6)
    for _ in range(200):
        at = draw.randrange(8, len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
        with pytest.raises(TableError, match=r"bad\.tafltree"):
            Tree(path)
        path.write_bytes(data[:at])
        with pytest.raises(TableError, match=r"bad\.tafltree"):
            Tree(path)
    path.write_bytes(data + b"x")
    with pytest.raises(TableError, match="changed or cut off"):
        Tree(path)
    for argv in (["show", str(made)], ["agreement", str(made)], ["puzzles", str(made), "--out", "x.tsv"]):
        with pytest.raises(SystemExit):
            command.main(argv)
        assert "is a proof tree: expected a table" in capsys.readouterr().err
    with pytest.raises(TableError, match=r"begins with .*TAFLTREE.*, expected"):
        Table(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 2}, "format: '2': expected 1"),
        ({"rules": "0" * 64}, "rules: .*expected the hash of its rules"),
        ({"winner": "x"}, "winner: 'x': expected a or d"),
        ({"positions": proof_tree.MOST_POSITIONS + 1}, "positions: .*expected a number from 1 to 131072"),
        ({"positions": 3}, "has .* bytes, expected at most"),
        ({"positions": 100}, "does not have 100 positions"),
        ({"attackers": 16}, "attackers"),
        ({"digest": "0" * 64}, "digest"),
        ({"attackers": 1}, "has the number"),
        ({"start": ["9" * 4000]}, "start"),
    ],
)
def test_an_untrue_header_is_refused(
    changes: dict[str, object], said: str, made: Path, tmp_path: Path
) -> None:
    data = made.read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    text = json.dumps({**json.loads(data[12 : 12 + length]), **changes}).encode()
    head = data[:8] + struct.pack("<I", len(text)) + text
    path = tmp_path / "forged"
    path.write_bytes(head + struct.pack("<I", zlib.crc32(head)) + data[12 + length + 4 :])
    with pytest.raises(TableError, match=said):
        Tree(path).value(games.initial(games.find("mini-four")))


def test_more_men_than_numbers_is_refused_by_whoever_opens_the_file(made: Path, tmp_path: Path) -> None:
    """The positions of 12 against 12 men on 7 x 7 squares do not fit into 64 bits."""
    variant = games.find("brandubh")
    assert isinstance(variant, Variant)
    tree = Tree(made)
    path = tmp_path / "many"
    index = SimpleNamespace(attackers=12, defenders=12)
    proof_tree.write(path, variant, cast("Any", index), Side.DEFENDERS, tree.numbers, tree.plies)
    tables = Tables([path])
    with pytest.raises(TableError, match="12 attackers against 12 defenders: expected fewer men"):
        tables.value(games.initial(variant))
    with pytest.raises(TableError, match="expected fewer men"):
        tables.load(variant)
    assert tables.files == []


def test_a_file_longer_than_its_positions_is_not_read(made: Path, tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(made.read_bytes())
    with path.open("r+b") as file:
        file.truncate(1 << 36)
    with pytest.raises(TableError, match=f"has {1 << 36} bytes, expected at most"):
        Tree(path)
    path.write_bytes(FOUR.read_bytes())
    with path.open("r+b") as file:
        file.truncate(1 << 36)
    with pytest.raises(TableError, match=f"has {1 << 36} bytes, expected"):
        Table(path, held=True)


def test_little_memory_is_told_in_a_sentence(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: int) -> None:
        raise MemoryError("expected at most 3")

    monkeypatch.setattr(memory, "demand", refuse)
    assert command.main(["query", str(made)]) == USAGE
    assert capsys.readouterr().err == "hnefi solve: not enough memory (expected at most 3)\n"


@pytest.mark.parametrize("spoil", ["order", "plies"])
def test_what_a_file_was_made_to_say_is_refused(spoil: str, made: Path, tmp_path: Path) -> None:
    tree = Tree(made)
    if spoil == "order":
        tree.numbers[3] = tree.numbers[2]
    else:
        tree.plies[3] = 60_000
    proof_tree.write(
        tmp_path / "made", tree.variant, tree.index, tree.header.winner, tree.numbers, tree.plies
    )
    with pytest.raises(TableError, match="not in order" if spoil == "order" else "60000 plies"):
        Tree(tmp_path / "made")


@pytest.mark.parametrize("spoil", ["plies", "winner", "gap"])
def test_a_tree_that_proves_nothing_never_answers(
    spoil: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With checksums and a digest that fit: only its moves show that it was made to deceive."""
    tree = Tree(made)
    numbers, plies, winner = tree.numbers, tree.plies.copy(), tree.header.winner
    if spoil == "plies":
        plies[plies.argmax()] -= 2
    elif spoil == "winner":
        winner = Side.ATTACKERS
    else:
        left_out = int(np.flatnonzero(plies == 3)[0])
        numbers, plies = np.delete(numbers, left_out), np.delete(plies, left_out)
    path = tmp_path / "false.tafltree"
    proof_tree.write(path, tree.variant, tree.index, winner, numbers, plies)
    said = r"false\.tafltree: \d+ of \d+ positions disagree with their moves: it proves nothing"
    root = games.initial(tree.variant)
    with pytest.raises(TableError, match=said):
        Tree(path).value(root)
    tables = Tables([path])
    with pytest.raises(TableError, match=said):
        tables.load(tree.variant)
    assert tables.files == []
    assert tables.record(root) is None
    errors: list[Exception] = []
    session = Session(on_error=errors.append)
    session.set_option("TablePath", str(path))
    session.set_variant("mini-four")
    with pytest.raises(SessionError, match=said):
        session.solved()
    session.warm()
    session.go(Limits(nodes=100))
    assert session.wait(60)
    assert [str(error).endswith("the tables of mini-four are not used") for error in errors] == [True]
    assert command.main(["query", str(path)]) == USAGE
    assert "it proves nothing" in capsys.readouterr().err
    assert command.main(["verify", str(path)]) == 1


def test_the_longest_file_is_read_quickly(made: Path, tmp_path: Path) -> None:
    """So that nobody can keep an engine busy with one: 0.07 seconds to open noise, which takes longest to unpack, and
    half a second to compare positions. The limits allow for a machine that is ten times slower."""
    tree, draw = Tree(made), np.random.default_rng(7)
    count = proof_tree.MOST_POSITIONS
    plies = draw.integers(0, proof_tree.MOST_PLIES, count)
    path = tmp_path / "long.tafltree"

    def opened(widest_gap: int) -> Tree:
        numbers = np.cumsum(draw.integers(1, widest_gap, count))
        proof_tree.write(path, tree.variant, tree.index, Side.DEFENDERS, numbers, plies)
        begun = time.process_time()
        found = Tree(path)
        assert time.process_time() - begun < 0.7
        return found

    with pytest.raises(TableError, match="has the number"):
        opened(1 << 45).demand_proof()
    found = opened(1 << 6)
    begun = time.process_time()
    with pytest.raises(TableError, match=f"of {count} positions disagree"):
        found.demand_proof()
    assert time.process_time() - begun < 5


def test_a_proof_with_too_many_positions_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(grow, "MOST_POSITIONS", 100)
    path = tmp_path / "x.tafltree"
    assert command.main(["prove", "mini-four", "--tree", str(path), "--memory", "16", "--quiet"]) == USAGE
    said = capsys.readouterr()
    assert "defenders can force a win" in said.out
    assert "not written: it would have 227 positions, expected at most 100" in said.err
    assert not path.exists()


def test_other_rules_get_no_answer(made: Path) -> None:
    with pytest.raises(ValueError, match="rules hash"):
        Tree(made).value(games.initial(tiny()))


def test_where_a_tree_cannot_be_written(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv, said in (
        (["mini-four", "--tree", str(made)], "already exists"),
        (["hex:4", "--tree", "x.tafltree"], "expected a tafl variant"),
        (["mini-four", "--tree", str(made / "x")], "no folder"),
        (["mini-four", "5/5/t1K1t/ttttt/5 a 0 1", "--tree", "x.tafltree"], "expected one king and at most"),
    ):
        with pytest.raises(SystemExit):
            command.main(["prove", *argv])
        assert said in capsys.readouterr().err


def test_what_was_proven_is_told_though_the_tree_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.tafltree"

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(durable, "put", refuse)
    assert command.main(["prove", "mini-four", "--tree", str(path), "--memory", "16", "--quiet"]) == STORAGE
    said = capsys.readouterr()
    assert "defenders can force a win" in said.out
    assert f"{path}: No space left on device: the tree is not written" in said.err
    argv = ["prove", "mini-four", "--win", "attackers", "--tree", str(path), "--memory", "16", "--quiet"]
    assert command.main(argv) == USAGE
    assert "not written: there is no win to prove" in capsys.readouterr().err
    assert command.main(["prove", "mini-four", "4K/5/1t3/5/2t2 d 0 1", "--tree", str(path)]) == USAGE
    assert "not written: the game is over" in capsys.readouterr().err
    assert not path.exists()
