"""A run's folder: one transaction per game, torn tails, exports that follow the log, one writer, full disks."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import fake_arena
import pytest
from patience import PROMPTLY

from hnefi.tools.arena import store
from hnefi.tools.arena.store import (
    GAMES,
    LOG,
    Export,
    StorageFailed,
    Store,
    StoreBusy,
    StoreError,
    run_digest,
)
from hnefi.tools.arena.values import Fault, GameResult

FILES = {"config.toml": "# a run\n", "fingerprint.json": "{}", "openings.jsonl": ""}
READY = fake_arena.prepared(fake_arena.config(pairs=3))
TASKS = tuple(READY.schedule.all_tasks(READY.openings))
GAMES_OF = tuple(fake_arena.result(task, READY.config.names) for task in TASKS)


def line(result: GameResult) -> bytes:
    return fake_arena.game_json(result)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with its first four games, an export beside it."""
    with Store.create(tmp_path / "run", FILES) as made:
        made.follow([Export("jsonl", tmp_path / "out.jsonl", line)])
        for game in GAMES_OF[:4]:
            made.append([game])
    return tmp_path / "run"


def reopened(folder: Path) -> Store:
    opened = Store.resume(folder)
    opened.follow([Export("jsonl", folder.parent / "out.jsonl", line)])
    return opened


def ids(opened: Store) -> list[str]:
    return [row.id for row in opened.rows.values()]


def test_what_was_stored_is_there_again(folder: Path) -> None:
    with reopened(folder) as opened:
        assert ids(opened) == ["1.1", "1.2", "2.1", "2.2"]
        assert list(opened.results()) == list(GAMES_OF[:4])
        assert opened.result(opened.rows[2, 1]) == GAMES_OF[2]
        assert opened.repairs == []
        row = opened.rows[2, 1]
        game = GAMES_OF[2]
        assert (row.engines, row.winner, row.reason) == (game.task.engines, game.winner, game.reason)
        assert (row.captured, row.plies) == (game.captured, len(game.plies))


def test_a_result_delivered_twice_counts_once(folder: Path) -> None:
    with reopened(folder) as opened:
        other = replace(GAMES_OF[1], winner="draw")
        assert opened.append([other, GAMES_OF[4], GAMES_OF[4]]) == [opened.rows[3, 1]]
        assert list(opened.results()) == list(GAMES_OF[:5])
    with reopened(folder) as opened:
        assert ids(opened) == ["1.1", "1.2", "2.1", "2.2", "3.1"]


def test_a_line_that_is_there_twice_counts_once(folder: Path) -> None:
    draw = store.summarize(replace(GAMES_OF[1], winner="draw", reason="repetition"))
    with Store.read(folder) as opened:
        stored = opened.rows[1, 2]
        again = replace(draw, offset=stored.offset, length=stored.length, check=stored.check)
    with (folder / LOG).open("ab") as log:
        log.write(store._seal(store._game_entry(again, {})))
    with Store.read(folder) as opened:
        assert opened.rows[1, 2] == stored != again
        assert len(opened.rows) == 4


def test_a_line_of_the_log_that_is_there_twice_cuts_nothing_off(tmp_path: Path) -> None:
    """Its ends are those of long ago: eighty games were once cut to the five before them."""
    made = fake_arena.prepared(fake_arena.config(pairs=40))
    tasks = made.schedule.all_tasks(made.openings)
    results = [fake_arena.result(task, made.config.names) for task in tasks]
    run = tmp_path / "run"
    with Store.create(run, FILES) as opened:
        opened.follow([Export("jsonl", tmp_path / "out.jsonl", line)])
        opened.append(results)
    games, log = (run / GAMES).read_bytes(), (run / LOG).read_bytes()
    lines = log.splitlines(keepends=True)
    # The first line is a note.
    (run / LOG).write_bytes(log + lines[5])
    with reopened(run) as opened:
        assert opened.repairs == [f"{LOG}:{len(lines) + 1}: game {results[4].task.id} again: not counted"]
        assert list(opened.results()) == results
    assert (run / GAMES).read_bytes() == games
    assert (tmp_path / "out.jsonl").read_bytes() == b"".join(map(line, results))
    assert not list(tmp_path.rglob("*.cut-*"))


def test_a_game_that_begins_before_the_one_before_it_ends_is_damage(folder: Path) -> None:
    with Store.read(folder) as opened:
        early = opened.rows[1, 2]
    other = replace(early, pair=3, game=1)
    with (folder / LOG).open("ab") as log:
        log.write(store._seal(store._game_entry(other, {})))
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreError, match=r"log.jsonl:6: damaged: game 3.1 begins at byte \d+ of games.jsonl"):
        Store.resume(folder)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.name != store.LOCK} == {
        path: data for path, data in before.items() if path.name != store.LOCK
    }


def test_a_run_goes_on_after_it_was_moved_and_by_another_path(folder: Path) -> None:
    """With an export within its folder, as --positions is."""

    def go_on(place: Path, game: GameResult) -> None:
        with Store.resume(place) as opened:
            opened.follow([Export("positions", place / "positions.jsonl", line)])
            opened.append([game])

    go_on(folder, GAMES_OF[4])
    moved = folder.rename(folder.with_name("moved"))
    (folder.with_name("link")).symlink_to(moved)
    go_on(folder.with_name("link"), GAMES_OF[5])
    expected = b"".join(map(line, GAMES_OF))
    assert (moved / "positions.jsonl").read_bytes() == expected
    # As it was written before places within the folder were written as seen from there.
    log = (moved / LOG).read_bytes().splitlines(keepends=True)
    notes = [
        number
        for number, text in enumerate(log)
        if b'["export",["positions",' in text or b'"positions"' in text
    ]
    log[notes[0]] = store._seal(["note", "export", ["positions", str(folder / "positions.jsonl")]])
    (moved / LOG).write_bytes(b"".join(log))
    with Store.resume(moved) as opened:
        opened.follow([Export("positions", moved / "positions.jsonl", line)])
    assert (moved / "positions.jsonl").read_bytes() == expected


def test_a_game_that_never_began_is_tried_again(folder: Path) -> None:
    failed = replace(GAMES_OF[4], winner=None, reason="start_failure", fault=Fault(0, "start_failure", "no"))
    with reopened(folder) as opened:
        opened.append([failed])
        assert opened.rows[3, 1].fault == (0, "start_failure")
    with reopened(folder) as opened:
        assert (3, 1) not in opened.rows
        opened.append([GAMES_OF[4]])
    with Store.read(folder) as opened:
        assert opened.rows[3, 1].winner == GAMES_OF[4].winner
        assert list(opened.results()) == list(GAMES_OF[:5])
    assert (folder.parent / "out.jsonl").read_bytes() == b"".join(map(line, GAMES_OF[:5]))


def test_the_log_may_end_at_any_byte(folder: Path) -> None:
    log = (folder / LOG).read_bytes()
    starts = [0, *(place + 1 for place, byte in enumerate(log) if byte == 10)]
    # Every byte of the last record's ends, and some within.
    last = starts[-2]
    for end in [
        *range(last - 3, last + 14),
        *range(last + 14, len(log) - 3, 29),
        *range(len(log) - 3, len(log)),
    ]:
        (folder / LOG).write_bytes(log[:end])
        with reopened(folder) as opened:
            whole = sum(start <= end for start in starts[1:]) - 1
            assert ids(opened) == ["1.1", "1.2", "2.1", "2.2"][:whole]
            torn = end not in starts
            assert any("not finished: cut off" in repair for repair in opened.repairs) == torn
            opened.append(GAMES_OF[whole:4])
        with reopened(folder) as opened:
            assert list(opened.results()) == list(GAMES_OF[:4])
        assert (folder.parent / "out.jsonl").read_bytes() == b"".join(map(line, GAMES_OF[:4]))


@pytest.mark.parametrize("tail", [b"\0" * 40, b"garbage\n", b'00000000 ["game"]\n\n\n', b"\xff\n\xff"])
def test_a_tail_of_anything_is_cut_off(folder: Path, tail: bytes) -> None:
    with (folder / LOG).open("ab") as stream:
        stream.write(tail)
    with reopened(folder) as opened:
        assert opened.repairs == [
            f"{LOG}: {len(tail)} bytes of a record that was not finished: cut off",
            f"{LOG}: what was cut off is in {LOG}.cut-1",
        ]
        assert len(opened.rows) == 4
    assert (folder / f"{LOG}.cut-1").read_bytes() == tail


def test_a_hole_in_the_log_is_damage(folder: Path) -> None:
    log = bytearray((folder / LOG).read_bytes())
    log[len(log) // 2] ^= 1
    (folder / LOG).write_bytes(log)
    with pytest.raises(StoreError, match=r"log.jsonl:\d+: damaged"):
        Store.resume(folder)
    assert (folder / LOG).read_bytes() == log


def test_games_beyond_the_log_and_games_cut_short(folder: Path) -> None:
    whole = (folder / GAMES).read_bytes()
    (folder / GAMES).write_bytes(whole + b'{"half')
    with reopened(folder) as opened:
        assert opened.repairs == [
            f"{GAMES}: 6 bytes of a game that was not stored: cut off",
            f"{GAMES}: what was cut off is in {GAMES}.cut-1",
        ]
        assert list(opened.results()) == list(GAMES_OF[:4])
    assert (folder / f"{GAMES}.cut-1").read_bytes() == b'{"half'
    (folder / GAMES).write_bytes(whole[:-1])
    with reopened(folder) as opened:
        assert opened.repairs[0] == f"{GAMES} ends within game 2.2: cut off with all that came later"
        assert ids(opened) == ["1.1", "1.2", "2.1"]
    damaged = bytearray((folder / GAMES).read_bytes())
    damaged[5] ^= 1
    (folder / GAMES).write_bytes(damaged)
    with reopened(folder) as opened, pytest.raises(StoreError, match=r"game 1\.1 is damaged"):
        list(opened.results())
    (folder / GAMES).write_bytes(damaged + b'{"half')
    with pytest.raises(StoreError, match=r"at byte 0 it does not have game 1\.1"):
        Store.resume(folder)


@pytest.mark.parametrize("how", ["twice", "shorter", "longer"])
def test_games_that_are_not_where_the_log_says_are_damage(folder: Path, how: str) -> None:
    """A line that was there twice once cost the last game, cut off as if it had never been stored."""
    first, second, *rest = (folder / GAMES).read_bytes().splitlines(keepends=True)
    changed = {"twice": second + second, "shorter": second[30:], "longer": b"what is this" + second}[how]
    (folder / GAMES).write_bytes(b"".join([first, changed, *rest]))
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != store.LOCK}
    with pytest.raises(
        StoreError, match=r"games.jsonl: damaged: at byte \d+ it does not have game [12].[12] as"
    ):
        Store.resume(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != store.LOCK} == before


def test_an_export_takes_no_device_for_a_file_and_leaves_no_draft(folder: Path) -> None:
    fifo, real, link = (folder.parent / name for name in ("fifo", "real", "link"))
    os.mkfifo(fifo)
    link.symlink_to(real)
    with Store.read(folder) as opened:
        with pytest.raises(OSError, match="a FIFO, not a regular file"):
            opened.rebuild(Export("new", fifo, line))
        opened.rebuild(Export("new", link, line))
        assert link.is_symlink()
        assert real.read_bytes() == b"".join(map(line, GAMES_OF[:4]))

        def full(_: GameResult) -> bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with pytest.raises(OSError, match=f"No space left on device: '{real}'"):
            opened.rebuild(Export("new", real, full))
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert not list(folder.parent.glob("*.new-*"))


def test_exports_are_cut_back_completed_and_rebuilt(folder: Path) -> None:
    out = folder.parent / "out.jsonl"
    whole = out.read_bytes()
    for broken in (whole + b"more", whole[:-7], b""):
        out.write_bytes(broken)
        with reopened(folder) as opened:
            assert opened.repairs
        assert out.read_bytes() == whole
    assert (out.parent / f"{out.name}.cut-1").read_bytes() == b"more"
    out.unlink()
    reopened(folder).close()
    assert out.read_bytes() == whole
    with reopened(folder) as opened:
        opened.append([GAMES_OF[4]])
    assert out.read_bytes() == whole + line(GAMES_OF[4])


def test_an_export_that_is_wanted_later_holds_everything(folder: Path) -> None:
    late = Export("late", folder.parent / "late.jsonl", line)
    with Store.resume(folder) as opened:
        opened.follow([late])
    assert late.path.read_bytes() == b"".join(map(line, GAMES_OF[:4]))


def test_foreign_files_are_not_taken_for_exports(folder: Path) -> None:
    mine = folder.parent / "thesis.txt"
    mine.write_text("years of work")
    with (
        Store.resume(folder) as opened,
        pytest.raises(StoreError, match=r"thesis.txt: exists, and is not of this"),
    ):
        opened.follow([Export("jsonl", mine, line)])
    assert mine.read_text() == "years of work"


def test_notes_stay_and_are_made_once(folder: Path) -> None:
    with reopened(folder) as opened:
        opened.note("forced", "engine 1 id: was 'a', is 'b'")
        opened.note("forced", "engine 1 id: was 'a', is 'b'")
        opened.append([GAMES_OF[4]])
    with reopened(folder) as opened:
        forced = [note for note in opened.notes if note[0] == "forced"]
        assert forced == [("forced", "engine 1 id: was 'a', is 'b'")]
        assert len(opened.rows) == 5


@pytest.mark.process
def test_a_second_arena_is_told_who_holds_the_run(folder: Path) -> None:
    with reopened(folder):
        program = "import sys; from pathlib import Path; from hnefi.tools.arena.store import *\n"
        program += "try: Store.resume(Path(sys.argv[1]))\nexcept StoreBusy as error: print(error)"
        done = subprocess.run(
            [sys.executable, "-c", program, folder], check=False, capture_output=True, text=True, timeout=60
        )
        assert f"in use by process {os.getpid()} on " in done.stdout
        with pytest.raises(StoreBusy):
            Store.resume(folder)
        with Store.read(folder) as looking:
            assert len(looking.rows) == 4
    reopened(folder).close()


def test_a_new_run_never_takes_an_old_folder(folder: Path) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(StoreError, match="exists: expected a new folder"):
        Store.create(folder, FILES)
    assert sorted(folder.iterdir()) == before


def test_what_is_no_run_is_said_to_be_none(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(StoreError, match="expected the folder of a run"):
            Store.resume(place)


@contextmanager
def nobody() -> Iterator[None]:
    """Without the privileges that make every folder writable."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_folder() -> None:
    """In a folder that everybody can reach: those that pytest makes are ours alone."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        with (
            nobody(),
            pytest.raises(StorageFailed, match="Permission denied: expected a folder to write into"),
        ):
            Store.create(folder / "run", FILES)
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_a_full_disk_stores_nothing_and_counts_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, allowed: int
) -> None:
    """The disk takes half a write after `allowed` whole ones: the game, the export or the log line."""
    real, writes = os.write, []

    def full(descriptor: int, data: bytes) -> int:
        writes.append(len(data))
        if len(writes) <= allowed:
            return real(descriptor, data)
        if len(writes) == allowed + 1 and len(data) > 1:
            return real(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    sizes = {name: (folder / name).stat().st_size for name in (LOG, GAMES)}
    exported = (folder.parent / "out.jsonl").read_bytes()
    with reopened(folder) as opened:
        monkeypatch.setattr(store.os, "write", full)
        with pytest.raises(StorageFailed, match="No space left on device"):
            opened.append([GAMES_OF[4]])
        known = len(opened.rows)
        monkeypatch.undo()
        with pytest.raises(StorageFailed, match="an earlier write failed"):
            opened.append([GAMES_OF[5]])
    assert {name: (folder / name).stat().st_size for name in (LOG, GAMES)} == sizes
    assert (folder.parent / "out.jsonl").read_bytes() == exported
    with reopened(folder) as opened:
        assert len(opened.rows) == known == 4
        assert opened.repairs == []


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be removed")
def test_a_run_whose_folder_is_removed_ends(folder: Path) -> None:
    with reopened(folder) as opened:
        shutil.rmtree(folder)
        with pytest.raises(
            StorageFailed, match=r"games\.jsonl was removed during the run: 1 games not stored"
        ):
            opened.append([GAMES_OF[4]])


def test_the_digest_knows_moves_and_results_but_no_times() -> None:
    rows = [store.summarize(game) for game in GAMES_OF]
    digest = run_digest(rows)
    assert run_digest(rows[::-1]) == digest
    slower = [store.summarize(replace(game, seconds=9.0, lateness=3.0, started=5.0)) for game in GAMES_OF]
    assert run_digest(slower) == digest
    assert run_digest(rows[:-1]) != digest
    game = GAMES_OF[0]
    changed = [
        replace(game, winner="draw" if game.winner != "draw" else "a"),
        replace(game, reason="sealed"),
        replace(game, plies=game.plies[:-1]),
        replace(game, task=replace(game.task, opening=replace(game.task.opening, moves=("b1b2",)))),
        replace(game, task=replace(game.task, pair=9)),
    ]
    for other in changed:
        assert store.game_digest(other) != store.game_digest(game)


def test_fingerprints_are_compared_item_by_item() -> None:
    was = {"run.seed": "7", "engine 1 id": "A", "gone": "x"}
    now = {"run.seed": "7", "engine 1 id": "B", "new": "y"}
    assert store.differences(was, now) == [
        "engine 1 id: was 'A', is 'B'",
        "gone: was 'x', is 'not there'",
        "new: was 'not there', is 'y'",
    ]


@pytest.mark.slow
def test_fifty_thousand_games_are_opened_in_seconds(tmp_path: Path) -> None:
    """The log alone is read; the games themselves are not."""
    Store.create(tmp_path / "run", FILES).close()
    row = store.summarize(GAMES_OF[0])
    length = len(line(GAMES_OF[0]))
    with (tmp_path / "run" / LOG).open("wb") as log:
        for number in range(50_000):
            made = replace(
                row, pair=number // 2 + 1, game=number % 2 + 1, offset=number * length, length=length
            )
            log.write(store._seal(store._game_entry(made, {})))
    with (tmp_path / "run" / GAMES).open("wb") as games:
        games.truncate(50_000 * length)
    begun = time.process_time()
    with Store.resume(tmp_path / "run") as opened:
        assert len(opened.rows) == 50_000
    assert time.process_time() - begun < PROMPTLY
