"""Tables: every value as a slow twin has it; files that were changed; work that was interrupted."""

from __future__ import annotations

import json
import mmap
import random
import signal
import struct
import subprocess
import sys
import tracemalloc
import zlib
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from solve_parts import CROSS, ROWS, build, key_of, positions, tiny, twin

from hnefi.engine import games
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.games.tafl.variant import load as load_variant
from hnefi.engine.sides import Side
from hnefi.engine.solving import lookup
from hnefi.engine.solving.readings import NotSolvable, reading, without_limits
from hnefi.engine.solving.table import BLOCK, Table, TableError, Value, bits_for, compressed
from hnefi.tools.common.interrupts import Interrupted
from hnefi.tools.solve import build as building
from hnefi.tools.solve import report
from hnefi.tools.solve.build import Builder, BuildError, decode, encode, load

RULES: list[dict[str, str | int]] = [
    {},
    {"king_sides": 4, "king_on_edge": "enclosed", "king_armed": "no", "escape": "edge", "corners": "none"},
    {
        "throne": "b3",
        "throne_stop": "none",
        "king_sides_on_throne": 2,
        "encirclement": "off",
        "king_jump": "over",
    },
    {"king_jump": "capture", "encirclement": "off", "first": "d"},
    {"no_move": "draw", "capture_all": "no", "speed": "K:1", "edge_hostile": "K"},
    {"repetition": "defenders_lose", "corner_hostile": "attackers", "linnaean": "yes"},
    {"material_draw": "1 0", "shieldwall": "corner", "capture_run": "line"},
    {"repetition": "mover_loses", "escape": "none", "encirclement": "ring", "speed": "t:1,T:1"},
]


@pytest.mark.slow
@pytest.mark.parametrize("switches", RULES, ids=lambda switches: ",".join(switches) or "default")
def test_every_value_is_that_of_a_slow_twin(switches: dict[str, str | int], tmp_path: Path) -> None:
    """All positions with a king, an attacker and a man, or two attackers, under rules with different captures."""
    variant = tiny(**switches)
    endless = reading(variant).endless
    with build(variant, tmp_path / "t", (2, 0)) as two, build(variant, tmp_path / "u", (1, 1)) as one:
        for table, men in ((two, (2, 0)), (one, (1, 1))):
            found = positions(variant, *men)
            expected = twin(found)
            decided = 0
            for position in found:
                winner, plies = expected[key_of(position)]
                value = table.value(position)
                decided += plies is not None
                if plies is not None or position.outcome is not None:
                    assert (value.winner, value.plies) == (winner, plies or 0), position.fen()
                elif endless in ("draw", "open"):
                    assert value == Value(None, None, endless == "open"), position.fen()
                else:
                    assert value == Value(Side.ATTACKERS, None), position.fen()
            assert decided
            assert report.check(table, load(table)) == (0, None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "tiny.taflbase"
    build(tiny(), path).close()
    return path


def test_a_table_is_consistent_with_moves_played_by_the_rules(made: Path) -> None:
    """One ply of minimax by positions rather than by the kernel that does the same for all of them."""
    rng = random.Random(3)
    with Table(made) as table:
        for _ in range(150):
            number = rng.randrange(table.header.entries)
            position = report.position_of(table, report.fen_of(table.index, number))
            if position.outcome is not None:
                continue
            value = table.value(position)
            moves = lookup.moves(table.value, position)
            best = moves[0].value
            assert moves[0].best
            assert value.winner is best.winner
            assert value.plies == (None if best.plies is None else best.plies + 1)


def test_lines_end_where_the_table_says(made: Path) -> None:
    with Table(made) as table:
        found = report.summary(table, load(table))
        assert found.total.all == table.index.positions == 16104
        assert found.longest[0][0] == 9
        assert found.longest[1][0] == 10
        for plies, fen in found.longest:
            position = report.position_of(table, fen)
            line = lookup.best_line(table.value, position)
            assert len(line) == plies
            for move in line:
                position = position.play(move)
            assert position.outcome is not None


def test_a_wrong_value_is_found(made: Path) -> None:
    with Table(made) as table:
        words = load(table)
        rng = random.Random(4)
        for _ in range(10):
            at = rng.randrange(len(words))
            before = int(words[at])
            words[at] = before ^ rng.choice((1, 2, 1 << 14, 1 << 15))
            assert report.check(table, words)[0] > 0
            words[at] = before
        assert report.check(table, words) == (0, None)


def test_codes_and_words() -> None:
    import numpy as np

    words = np.array([0, 1 << 14, 1 << 15 | 5, 3 << 14 | 126, 2 << 12, 3 << 12 | 7], np.uint16)
    for bits in (8, 16):
        codes = encode(words, bits)
        assert codes.tolist() == [0, (1 << bits) - 1, 11, 254, 0, 0]
        assert decode(codes, bits).tolist() == [*words[:4].tolist(), 0, 0]
    assert [bits_for(plies) for plies in (0, 126, 127)] == [8, 8, 16]


# Work that was interrupted


def test_threads_change_nothing(made: Path, tmp_path: Path) -> None:
    build(tiny(), tmp_path / "t", threads=3).close()
    assert (tmp_path / "t").read_bytes() == made.read_bytes()


def ended_after(calls: int) -> Any:
    left = [calls]

    def on_progress(_: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Interrupted

    return on_progress


@pytest.mark.parametrize("every", [1, 3])
def test_it_goes_on_where_it_was_ended(
    every: int, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended after every few ranges, each of which is small, until it comes to its end."""
    monkeypatch.setattr(building, "RANGE", 500)
    path = tmp_path / "t"
    ends = 0
    while not path.exists():
        try:
            Builder(reading(tiny()), (2, 1), path, on_progress=ended_after(every)).run()
        except Interrupted:
            ends += 1
    assert ends > 30
    assert path.read_bytes() == made.read_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["t"]


KILLED_BY_A_PAGE = """
import ctypes, faulthandler, mmap, os, random, signal, sys
from pathlib import Path

from hnefi.engine.games.tafl.variant import load
from hnefi.engine.solving.readings import reading
from hnefi.tools.solve.build import Builder

def solve(path, page):
    protected = []

    def on_progress(_):
        if not protected:
            start = builder._words.ctypes.data + page * mmap.PAGESIZE
            assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), mmap.PAGESIZE, mmap.PROT_READ) == 0
            protected.append(page)

    builder = Builder(reading(load(sys.argv[1])), (1, 2), path, on_progress=on_progress)
    builder.run()

faulthandler.disable()
dice = random.Random(1)
for path in map(Path, sys.argv[2:]):
    while not path.exists():
        page = dice.randrange(2, 16)
        child = os.fork()
        if not child:
            solve(path, page)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(ended)
        if ended not in (0, -signal.SIGSEGV):
            sys.exit(f"a child ended with {ended}")
"""
"""Solves tables in processes that are ended by the first write to one page of the words, after a first phase."""


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or mmap.PAGESIZE != 4096, reason="protects small pages")
def test_a_kill_between_the_writes_of_one_value_loses_nothing(tmp_path: Path) -> None:
    """A position has up to eight numbers, and a process may end after any of them is written, most of all where a page
    is touched for the first time. What goes on must not take the others for written: it once did."""
    rules, whole = tmp_path / "tiny.toml", tmp_path / "whole"
    rules.write_text(CROSS)
    build(load_variant(rules), whole, (1, 2)).close()
    tables = [tmp_path / f"{number}" for number in range(6)]
    words = [sys.executable, "-c", KILLED_BY_A_PAGE, *map(str, (rules, *tables))]
    ends = subprocess.check_output(words, text=True, timeout=250).split()
    assert set(ends) <= {"0", f"-{signal.SIGSEGV:d}"}
    assert len(ends) - ends.count("0") > 10
    assert {table.read_bytes() for table in tables} == {whole.read_bytes()}


def test_a_table_is_made_by_one_at_a_time(tmp_path: Path) -> None:
    """Two at once emptied each other's folder. A lock belongs to its open folder, so one process can be both."""
    path = tmp_path / "a.taflbase"
    refused = []

    def second(_: object) -> None:
        if not refused:
            with pytest.raises(
                BuildError, match=r"a\.taflbase\.part: another process is working on this table"
            ):
                Builder(reading(tiny()), (1, 1), path).run()
            refused.append(True)

    Builder(reading(tiny()), (2, 1), path, on_progress=second).run()
    assert refused
    assert [each.name for each in tmp_path.iterdir()] == ["a.taflbase"]


def test_after_a_power_failure_only_what_was_synced_counts(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages of a material that was not finished may be anything then."""
    path = tmp_path / "t"
    with pytest.raises(Interrupted):
        Builder(reading(tiny()), (2, 1), path, on_progress=ended_after(60)).run()
    plan = json.loads((tmp_path / "t.part/plan.json").read_text())
    assert 0 < plan["finished"] < 4
    with Table(made) as table:
        first = table.index.materials[plan["finished"]].first
    words = tmp_path / "t.part/words"
    data = words.read_bytes()
    words.write_bytes(data[: 2 * first] + bytes([255]) * (len(data) - 2 * first))
    monkeypatch.setattr(building, "boot", lambda: "another")
    Builder(reading(tiny()), (2, 1), path).run()
    assert path.read_bytes() == made.read_bytes()


def test_the_beginning_of_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with pytest.raises(Interrupted):
        Builder(reading(tiny()), (2, 1), path, on_progress=ended_after(5)).run()
    with pytest.raises(BuildError, match="contains another unfinished table; remove the folder"):
        Builder(reading(tiny(king_sides=4)), (2, 1), path).run()
    (tmp_path / "t.part/plan.json").write_text("{")
    with pytest.raises(BuildError, match="remove the folder"):
        Builder(reading(tiny()), (2, 1), path).run()
    (tmp_path / "t.part/plan.json").unlink()
    (tmp_path / "t.part/words").write_bytes(b"")
    Builder(reading(tiny()), (2, 1), path).run()
    assert path.exists()


def test_what_is_solved_is_in_files_and_not_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a table may be larger than memory: the arrays that numpy holds itself do not grow with it."""
    variant = Variant.build("five", ("2t2", "2T2", "t1K1t", "5", "5"), {"king_sides": 2})
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    monkeypatch.setattr(building, "RANGE", 1 << 13)

    def solved(men: tuple[int, int]) -> tuple[int, int]:
        """Bytes of the words of a table, and most bytes of arrays while it was solved."""
        held = []
        calls = count()

        def on_progress(_: object) -> None:
            if next(calls) % 32 == 16:
                traces = tracemalloc.take_snapshot().filter_traces([arrays]).traces
                held.append(sum(trace.size for trace in traces))

        tracemalloc.start()
        try:
            Builder(reading(variant), men, tmp_path / f"{men}", on_progress=on_progress).run()
        finally:
            tracemalloc.stop()
        with Table(tmp_path / f"{men}") as table:
            return 2 * table.header.entries, max(held)

    (small, held), (large, held_too) = solved((1, 1)), solved((3, 1))
    assert large - small > 400_000
    assert abs(held_too - held) < 50_000


# Files


def test_any_changed_byte_is_noticed(made: Path, tmp_path: Path) -> None:
    """Everything before the blocks when the file is opened, a block when it is read."""
    data = made.read_bytes()
    path = tmp_path / "changed"
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with pytest.raises(TableError, match="changed"), Table(path) as table:
            load(table)


def test_a_file_that_was_cut_off_is_refused_when_it_is_opened(made: Path, tmp_path: Path) -> None:
    data = made.read_bytes()
    path = tmp_path / "cut"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(TableError, match="cut: "):
            Table(path)
    path.write_bytes(data + b"x")
    with pytest.raises(TableError, match=f"has {len(data) + 1} bytes, expected {len(data)}"):
        Table(path)


def forged(made: Path, **changes: object) -> bytes:
    """The table with another header, its checksum right."""
    data = made.read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    header = {**json.loads(data[12 : 12 + length]), **changes}
    text = json.dumps(header).encode()
    head = data[:8] + struct.pack("<I", len(text)) + text
    return head + struct.pack("<I", zlib.crc32(head)) + data[12 + length + 4 :]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 1}, "format: '1': expected 2 .`hnefi solve` makes"),
        ({"format": True}, "format"),
        ({"rules": "0" * 64}, "rules: .*expected the hash of its rules"),
        ({"start": "x"}, "start: 'x': expected the rows"),
        ({"start": ["9" * 4000]}, "start"),
        ({"start": []}, "start"),
        ({"switches": {"king_sides": "7"}}, "king_sides: '7'"),
        ({"switches": {"zones": 3}}, "switches"),
        ({"name": "a b"}, "name"),
        ({"name": 3}, "name"),
        ({"entries": 10**30}, "entries"),
        ({"entries": 0}, "entries"),
        ({"entries": 2000}, "says 2000 entries, expected 2684"),
        ({"entries": BLOCK + 1}, "in the list of its 2 blocks|changed"),
        ({"attackers": 16}, "attackers"),
        ({"attackers": -1}, "attackers"),
        ({"defenders": "2"}, "defenders"),
        ({"attackers": 3}, "says 2684 entries, expected"),
        ({"defenders": 15}, "says 2684 entries, expected"),
        ({"bits": 4}, "bits: '4': expected 8 or 16"),
        ({"bits": 16}, "does not have 2684 codes"),
        ({"block": 1}, "block"),
        ({"endless": "attackers"}, "endless: 'attackers': expected draw"),
        ({"digest": None}, "digest"),
    ],
)
def test_an_untrue_header_is_refused(
    changes: dict[str, object], said: str, made: Path, tmp_path: Path
) -> None:
    path = tmp_path / "forged"
    path.write_bytes(forged(made, **changes))
    with pytest.raises(TableError, match=said), Table(path) as table:
        table.value(report.position_of(table, None))


@pytest.mark.slow
def test_a_thousand_changed_files_are_refused(made: Path, tmp_path: Path) -> None:
    """With bits, bytes and pieces that are changed at random, also behind checksums that are right: a sentence, or the
    value that was there before; never another error, and never another value of an unchanged block."""
    data = made.read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    header, body = json.loads(data[12 : 12 + length]), 12 + length + 4
    values = [None, True, -1, 0, 15, 255, 10**30, 1.5, "", "9" * 5000, "\ud800", [], ["9"] * 7, {}, [[]]]
    rng = random.Random(11)

    def broken(part: bytes) -> bytes:
        at, size = rng.randrange(len(part)), rng.choice((1, 4, 60))
        return rng.choice(
            (
                part[:at] + bytes([part[at] ^ 1 << rng.randrange(8)]) + part[at + 1 :],
                part[:at],
                part[:at] + rng.randbytes(size) + part[at:],
                part[:at] + part[at + size :],
                rng.randbytes(rng.randrange(1, 2000)),
            )
        )

    def with_header() -> bytes:
        text = json.dumps({**header, rng.choice(list(header)): rng.choice(values)}).encode()
        head = data[:8] + struct.pack("<I", len(text)) + text
        return head + struct.pack("<I", zlib.crc32(head)) + data[body:]

    def with_block() -> bytes:
        block = broken(data[body + 12 :])
        listed = struct.pack("<II", len(block), zlib.crc32(block))
        return data[:body] + listed + struct.pack("<I", zlib.crc32(listed)) + block

    path = tmp_path / "fuzzed"
    start = games.initial(tiny())
    with Table(made) as table:
        truth = table.value(start)
    said = []
    for made_new in rng.choices((lambda: broken(data), with_header, with_block), k=1000):
        path.write_bytes(made_new())
        try:
            with Table(path) as table:
                value = table.value(start)
        except TableError as error:
            said.append(str(error))
        else:
            assert value == truth or made_new is with_block
    assert len(said) > 900
    assert all(words.startswith(f"{path}: ") for words in said)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for data in (b"", b"PK\3\4", b"TAFLBASE", b"TAFLBASE\xff\xff\xff\xff", b"TAFLBASE\2\0\0\0{}"):
        path.write_bytes(data)
        with pytest.raises(TableError, match="x: "):
            Table(path)
    with pytest.raises(IsADirectoryError):
        Table(tmp_path)
    bomb = compressed(bytes(1 << 24))
    header = json.dumps({"format": 2}).encode()
    head = b"TAFLBASE" + struct.pack("<I", len(header)) + header
    path.write_bytes(head + struct.pack("<I", zlib.crc32(head)) + bomb)
    with pytest.raises(TableError, match="start"):
        Table(path)


def test_a_block_that_unpacks_to_too_much_is_refused(made: Path, tmp_path: Path) -> None:
    data = made.read_bytes()
    (length,) = struct.unpack_from("<I", data, 8)
    begin = 12 + length + 4
    bomb = compressed(bytes(1 << 24))
    listed = struct.pack("<II", len(bomb), zlib.crc32(bomb))
    path = tmp_path / "bomb"
    path.write_bytes(data[:begin] + listed + struct.pack("<I", zlib.crc32(listed)) + bomb)
    with Table(path) as table, pytest.raises(TableError, match="does not have 2684 codes"):
        table.code(0)


def test_other_rules_and_other_men_get_no_answer(made: Path) -> None:
    with Table(made) as table:
        with pytest.raises(ValueError, match="rules hash"):
            table.value(games.initial(tiny(king_sides=4)))
        with pytest.raises(
            ValueError, match="3 attackers against 1 defenders: expected one king and at most 2"
        ):
            table.value(report.position_of(table, "2t1/1K2/1T2/1tt1 a 0 1"))


# Rules


def test_what_endless_play_is_worth() -> None:
    said = {
        "draw": "draw", "ignore": "draw", "attackers_lose": "defenders", "defenders_lose": "attackers",
        "mover_loses": "open", "forbidden_to_attackers": "open",
    }  # fmt: skip
    for repetition, endless in said.items():
        found = reading(tiny(repetition=repetition))
        assert found.endless == endless
        assert f"repetition = {repetition}" in found.assumption
        assert found.played.rules.repetition == "ignore"


@pytest.mark.parametrize(
    ("switches", "said"),
    [
        ({"berserk": "capture"}, "berserk = capture: expected off"),
        (
            {"move_limit": 50},
            "move_limit = 50: values would depend on the plies played; expected 0",
        ),
        ({"quiet_limit": 9}, "quiet_limit = 9"),
        ({"king_jump": "over"}, "king_jump = over: expected none where encirclement"),
        ({"repetition_compare": "board", "repetition_count": 2}, "repetition_compare = board"),
        ({"repetition": "attackers_lose", "no_move": "draw"}, "no_move = draw: cannot be solved together"),
        ({"repetition": "attackers_lose", "material_draw": "1 1"}, "material_draw"),
    ],
)
def test_rules_that_cannot_be_solved_soundly_are_refused(switches: dict[str, Any], said: str) -> None:
    with pytest.raises(NotSolvable, match=f"tiny: {said}"):
        reading(tiny(**switches))
    if "limit" in next(iter(switches)):
        assert reading(without_limits(tiny(**switches)))


def test_boards_and_pieces_that_have_no_numbers_are_refused() -> None:
    for name, said in (("copenhagen", "size = 11"), ("tablut-linnaeus", "size = 9")):
        variant = games.find(name)
        assert isinstance(variant, Variant)
        with pytest.raises(NotSolvable, match=said):
            reading(variant)
    with pytest.raises(NotSolvable, match="soldiers and a king only"):
        reading(Variant.build("x", ["2c1", *ROWS[1:]]))
