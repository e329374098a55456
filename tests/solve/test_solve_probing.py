"""Tables that a search asks: right values, whatever was played before, and files that deserve no trust."""

from __future__ import annotations

import os
import random
import shutil
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from search_parts import think
from solve_parts import build, tiny

from hnefi import players
from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.games.interface import probe
from hnefi.engine.search.types import Info, Limits
from hnefi.engine.session import Session, SessionError
from hnefi.engine.sides import Side
from hnefi.engine.solving import probing
from hnefi.engine.solving.table import Table, TableError, Value, compressed
from hnefi.engine.solving.tables import SHIPPED, Tables, find, open_file
from hnefi.engine.squares import move_name
from hnefi.protocol.format import solved_lines
from hnefi.tools.solve import report

RULES: dict[str, dict[str, str | int]] = {
    "draw": {"repetition": "draw", "repetition_count": 2},
    "attackers": {"repetition": "defenders_lose", "repetition_count": 2, "encirclement": "off"},
    "open": {"repetition": "mover_loses", "speed": "t:1,T:1"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of tables: of each of the rule sets, of two attackers against one man and of one against none."""
    folder = tmp_path_factory.mktemp("tables")
    for name, switches in RULES.items():
        build(tiny(**switches), folder / f"{name}.taflbase").close()
        build(tiny(**switches), folder / f"{name}-few.taflbase", (1, 0)).close()
    return folder


@pytest.fixture(scope="module")
def tables(made: Path) -> Tables:
    opened = Tables(find(str(made)))
    for switches in RULES.values():
        opened.load(tiny(**switches))
    return opened


def drawn(variant: AnyVariant, table: Table, count: int, seed: int) -> Iterator[Position]:
    """Random undecided positions of a table."""
    draw = random.Random(seed)
    while count:
        try:
            position = games.from_fen(
                variant, report.fen_of(table.index, draw.randrange(table.header.entries))
            )
        except ValueError:
            continue
        if position.outcome is None:
            count -= 1
            yield position


def answer_of(value: Value) -> int:
    """What a kernel is to say of a position with this value."""
    if value.open:
        return probing.NOTHING
    if value.plies is not None and value.winner is not None:
        return int(probing.WON_BY_ATTACKERS + value.winner) << probing.KIND | value.plies
    kind = probing.DRAWN if value.winner is None else probing.ENDLESS_BY_ATTACKERS + value.winner
    return int(kind) << probing.KIND


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_kernels_read_what_the_file_says(name: str, wide: bool, tables: Tables, made: Path) -> None:
    """Also with codes of two bytes, as beside a table that needs them."""
    variant = tiny(**RULES[name])
    codes = tables._loaded[variant.hash]._codes
    wider = codes.astype("u2")
    wider[codes == 255] = 65535
    seen = set()
    with Table(made / f"{name}.taflbase") as table:
        for position in drawn(variant, table, 300, 4):
            record = tables.record(position).copy()
            # Nothing is held back because of the root.
            record["attackers"] = -1
            if wide:
                record["codes"], record["wide"] = wider.ctypes.data, 1
            value = table.value(position)
            seen.add(value.plies is None)
            assert probe(position.new_record()[0], record) == answer_of(value), position.fen()
    assert False in seen


def test_what_no_table_has_is_not_answered(tables: Tables) -> None:
    variant = tiny(**RULES["draw"])
    known = games.initial(variant)
    record = tables.record(known)
    for fen in ("2t1/1K2/1T2/1tt1 a 0 1", "2t1/1K2/1TT1/1t2 a 0 1"):
        position = games.from_fen(variant, fen)
        assert probe(position.new_record()[0], record) == probing.NOTHING
        assert tables.record(position)["least"].tolist() == [probing.NEVER] * 2
    assert tables.record(games.initial(tiny(king_sides=4))) is None
    # As somebody may set it up: the king on a corner, from which no game goes on.
    state = known.new_record()[0]
    state["king"] = int(record["index"]["cell"][0])
    assert probe(state, record) == probing.NOTHING
    pawns = games.initial(games.find("hexapawn:3x3"))
    assert probe(pawns.new_record()[0], record) == probing.NOTHING


def value_of(info: Info) -> tuple[str, int]:
    """What a report says of the side to move: a win or loss in plies, or a number of centipawns."""
    moves = info.score.mate
    if moves is None:
        return "cp", info.score.cp or 0
    return ("won", 2 * moves - 1) if moves > 0 else ("lost", -2 * moves)


@pytest.mark.parametrize("name", ["draw", "attackers"])
def test_a_search_of_one_ply_has_the_exact_value(name: str, tables: Tables, made: Path) -> None:
    """And answers at once, with a move that is as good as any."""
    variant = tiny(**RULES[name])
    seen = set()
    with Table(made / f"{name}.taflbase") as table:
        for position in drawn(variant, table, 60, 9):
            value = table.value(position)
            result, infos = think(position, Limits(depth=30), tables=tables, contempt=25)
            last = infos[-1]
            kind = "won" if value.winner is position.side else "lost"
            assert last.tbhits is not None
            if value.plies is None and value.winner is not None:
                continue
            expected = (kind, value.plies) if value.plies is not None else ("cp", -25)
            assert value_of(last) == expected, position.fen()
            assert last.depth == 1 or value.plies is not None
            assert result.move is not None
            after = table.value(position.play(result.move))
            assert after.winner is value.winner
            assert after.plies == (None if value.plies is None else value.plies - 1)
            seen.add(expected[0])
    assert {"won", "lost"} <= seen


def forced(position: Position, winner: Side, plies: int) -> bool:
    """Whether a side forces a win within so many plies, by the rules to the letter and all that was played."""
    outcome = position.outcome
    if outcome is not None:
        return outcome.winner is winner
    if plies == 0:
        return False
    after = (forced(position.play(move), winner, plies - 1) for move in position.legal_moves())
    return any(after) if position.side is winner else all(after)


@pytest.mark.slow
def test_no_win_is_told_that_a_repetition_takes_away(tables: Tables, made: Path) -> None:
    """Games that wandered: some wins of the table are none any more, because the way leads through a position that
    has been on the board. A search says win only where a slow twin finds one with the whole game in mind."""
    variant = tiny(**RULES["draw"])
    draw = random.Random(2)
    spoilt = told = 0
    with Table(made / "draw.taflbase") as table:
        for start in drawn(variant, table, 400, 6):
            position = start
            for _ in range(draw.randrange(4, 12)):
                quiet = [move for move, taken in position.legal_moves_with_captures() if not taken]
                if not quiet or (after := position.play(draw.choice(quiet))).outcome is not None:
                    break
                position = after
            value = table.value(position)
            if value.plies is None or value.winner is None or value.plies > 4:
                continue
            true = forced(position, value.winner, value.plies)
            spoilt += not true
            _, infos = think(position, Limits(depth=1), tables=tables)
            kind, plies = value_of(infos[-1])
            if kind in ("won", "lost"):
                told += 1
                winner = position.side if kind == "won" else position.side.other
                assert forced(position, winner, plies), (start.fen(), position.moves)
    assert spoilt >= 3
    assert told >= 50


def test_endless_play_is_a_win_without_a_distance(tables: Tables, made: Path) -> None:
    """Seen from before a capture; where it has begun, the search looks for the repetition itself."""
    variant = tiny(**RULES["attackers"])
    with Table(made / "attackers.taflbase") as table:
        for position in drawn(variant, table, 2000, 3):
            value = table.value(position)
            if value.plies is not None:
                continue
            assert value.winner is Side.ATTACKERS
            record = tables.record(position)
            state = position.new_record()[0]
            assert probe(state, record) == probing.NOTHING
            record["attackers"] = -1
            assert probe(state, record) >> probing.KIND == probing.ENDLESS_BY_ATTACKERS
            break
        else:
            raise AssertionError("no endless position found")


def test_levels_and_other_games_do_not_look(tables: Tables) -> None:
    position = games.initial(tiny(**RULES["draw"]))
    _, infos = think(position, Limits(depth=2), tables=tables, skill=3)
    assert infos[-1].tbhits == 0
    _, infos = think(games.initial(games.find("hexapawn:3x3")), Limits(depth=2), tables=tables)
    assert infos[-1].tbhits == 0
    _, infos = think(position, Limits(depth=2))
    assert infos[-1].tbhits is None


# The option


def play(session: Session, fen: str, depth: int = 1) -> None:
    session.warm()
    session.set_position(fen)
    session.go(Limits(depth=depth))
    assert session.wait(60)


def test_the_option_names_files_and_folders(made: Path, tmp_path: Path) -> None:
    infos: list[Info] = []
    session = Session(on_info=infos.append)
    session.use_variant(tiny(**RULES["draw"]))
    fen = games.initial(session.variant).fen()
    for text in (
        str(made), str(made / "draw.taflbase"), os.pathsep.join((str(made / "open.taflbase"), str(made))),
    ):  # fmt: skip
        session.set_option("TablePath", text)
        infos.clear()
        play(session, fen)
        assert infos[-1].tbhits
        assert infos[-1].score.mate is not None
    session.set_option("TablePath", "")
    infos.clear()
    play(session, fen)
    assert infos[-1].tbhits is None
    empty = tmp_path / "empty"
    empty.mkdir()
    for text, said in (
        (str(tmp_path / "none"), "none: No such file"),
        (str(empty), "empty: expected files"),
        (str(__file__), "expected a table or a proof tree of hnefi solve"),
    ):
        with pytest.raises(SessionError, match=said):
            session.set_option("TablePath", text)


def test_a_table_of_other_rules_never_answers(made: Path, tmp_path: Path) -> None:
    """Neither one of other switches nor one that only says it is of these."""
    infos: list[Info] = []
    session = Session(on_info=infos.append)
    session.use_variant(tiny(king_sides=4))
    session.set_option("TablePath", str(made))
    play(session, games.initial(session.variant).fen())
    assert infos[-1].tbhits == 0
    data = (made / "draw.taflbase").read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    text = data[12 : 12 + length].replace(
        tiny(**RULES["draw"]).hash.encode(), tiny(king_sides=4).hash.encode()
    )
    head = data[:8] + struct.pack("<I", length) + text
    (tmp_path / "forged").write_bytes(head + struct.pack("<I", zlib.crc32(head)) + data[12 + length + 4 :])
    with pytest.raises(SessionError, match="the hash of its rules"):
        session.set_option("TablePath", str(tmp_path / "forged"))


def test_damaged_files_are_refused_at_once_and_the_engine_goes_on(made: Path, tmp_path: Path) -> None:
    infos: list[Info] = []
    session = Session(on_info=infos.append)
    session.use_variant(tiny(**RULES["draw"]))
    data = (made / "draw.taflbase").read_bytes()
    path = tmp_path / "damaged"
    cases = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in (3, 40, len(data) // 2, -20)[:3]]
    cases += [data[: len(data) // 2], data[:-1], data + b"x", b"", bytes(1 << 20)]
    quickest = []
    for case in cases:
        path.write_bytes(case)
        begun = time.process_time()
        with pytest.raises(SessionError, match="damaged: "):
            session.set_option("TablePath", str(path))
        quickest.append(time.process_time() - begun)
    assert sorted(quickest)[len(quickest) // 2] < 0.1
    play(session, games.initial(session.variant).fen())
    assert infos


def test_a_table_that_deceives_is_left_out_with_a_sentence(made: Path, tmp_path: Path) -> None:
    """All checksums are right, but a block unpacks to too much, or to what does not unpack."""
    data = (made / "draw.taflbase").read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    begin = 12 + length + 4
    for block, said in ((compressed(bytes(1 << 24)), "does not have"), (b"no lzma", "cannot be unpacked")):
        listed = struct.pack("<II", len(block), zlib.crc32(block))
        path = tmp_path / "bomb.taflbase"
        path.write_bytes(data[:begin] + listed + struct.pack("<I", zlib.crc32(listed)) + block)
        infos: list[Info] = []
        errors: list[Exception] = []
        session = Session(on_info=infos.append, on_error=errors.append)
        session.use_variant(tiny(**RULES["draw"]))
        session.set_option("TablePath", str(path))
        play(session, games.initial(session.variant).fen())
        assert len(errors) == 1
        assert said in str(errors[0])
        assert "are not used" in str(errors[0])
        assert infos[-1].tbhits == 0


def test_a_table_that_memory_does_not_hold_is_left_out(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hnefi.engine import memory

    shutil.copy(made / "draw.taflbase", tmp_path / "t.taflbase")
    opened = Tables(find(str(tmp_path)))
    monkeypatch.setattr(memory, "available", lambda: 0)
    with pytest.raises(MemoryError, match="expected at most"):
        opened.load(tiny(**RULES["draw"]))
    assert opened.record(games.initial(tiny(**RULES["draw"]))) is None
    with pytest.raises(ValueError, match="no table has the rules"):
        opened.value(games.initial(tiny(**RULES["draw"])))


def test_one_bad_file_of_a_folder_is_named(made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "draw.taflbase", tmp_path / "a.taflbase")
    (tmp_path / "b.taflbase").write_bytes(b"x")
    with pytest.raises(TableError, match=r"b\.taflbase"):
        Tables(find(str(tmp_path)))


# Words


def test_every_move_is_said_with_its_value_counted_from_now(made: Path) -> None:
    variant = tiny(**RULES["draw"])
    session = Session()
    session.use_variant(variant)
    with pytest.raises(SessionError, match="tb: expected tables: setoption name TablePath value shipped"):
        session.solved()
    session.set_option("TablePath", str(made))
    with Table(made / "draw.taflbase") as table:
        for position in drawn(variant, table, 20, 5):
            session.set_position(position.fen())
            value, moves = session.solved()
            first, *rest = solved_lines(position.side, value, moves)
            worth = first.removeprefix("info string tb ")
            assert sorted(move_name(move) for move in position.legal_moves()) == sorted(
                line.split()[3] for line in rest
            )
            assert rest[0] == f"info string tb {move_name(moves[0].move)} {worth} best"
            for line, each in zip(rest, moves, strict=True):
                after = table.value(position.play(each.move))
                words = line.split()[4:]
                assert words[0] == (
                    "draw" if after.winner is None else "win" if after.winner is position.side else "loss"
                )
                assert after.plies is None or words[1] == str(after.plies + 1)
                assert (words[-1] in ("best", "keeps")) == (after.winner is value.winner)
    session.set_position("2t1/1K2/1T2/1tt1 a 0 1")
    with pytest.raises(SessionError, match="3 attackers against 1 defenders"):
        session.solved()


@pytest.mark.parametrize("name", ["mini-four", "mini-six", "mini-cross"])
def test_a_perfect_player_never_gives_anything_away(name: str) -> None:
    """The table that ships is the variant's, and the player asks it."""
    session = Session(load_player=players.load)
    session.set_option("Player", f"{name}-perfect")
    tables = session.settings.tables
    assert tables is not None
    variant = games.find(name)
    with Table(SHIPPED / f"{name}.taflbase") as table:
        for position in drawn(variant, table, 12, 8):
            result, _ = think(position, Limits(depth=20), tables=tables)
            assert result.move is not None
            value, after = table.value(position), table.value(position.play(result.move))
            assert (after.winner, after.plies) == (value.winner, value.plies and value.plies - 1)
    # Another player has no tables again.
    session.set_option("Player", "default")
    assert session.settings.tables is None


def test_the_tables_that_ship_are_whole_and_small() -> None:
    found = find("shipped")
    assert [path.stem for path in found] == [
        "brandubh-2v2", "brandubh-4v1", "mini-cross", "mini-edge", "mini-eight", "mini-four", "mini-six",
    ]  # fmt: skip
    for path in found:
        with open_file(path) as table:
            if isinstance(table, Table):
                table.check_sums()
            assert table.variant.hash == games.find(table.variant.name).hash
    assert sum(path.stat().st_size for path in found) < 5_000_000
