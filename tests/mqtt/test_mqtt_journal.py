"""What a service writes down: the games of its sessions, ply by ply, and every message."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mqtt_brokers import WAIT, TestBroker, password, running
from mqtt_parts import FAKE, Watcher, serving, until

from hnefi.engine import squares
from hnefi.engine.records.record import GameRecord
from hnefi.gui_adapter.mqtt.brokers import find_mosquitto
from hnefi.protocol.answers import parse_variant
from hnefi.protocol.client import own_command
from hnefi.protocol.hosts import journal
from hnefi.protocol.hosts.broker.values import traced
from hnefi.protocol.hosts.journal import Journal
from hnefi.protocol.hosts.sessions import recording as recording_module
from hnefi.protocol.hosts.sessions.recording import Recording
from hnefi.protocol.hosts.trace import Trace
from hnefi.tools.cli import main as hnefi

pytest_plugins = ["mqtt_brokers"]

OURS = tuple(own_command())
ESCAPE = "fen 4K2/7/7/7/t6/7/7 d 0 30"
"""Brandubh: the king can reach a corner."""
LINE = "info string variant brandubh files 7 ranks 7 attackers 8 defenders 4 first a startpos 3t3/7/7/3K3/7/7/7 a 0 1"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBroker]:
    """One broker, of whichever kind there is."""
    kind = "mosquitto" if find_mosquitto() else "amqtt"
    yield from running(kind, tmp_path_factory.mktemp(kind))


def only(folder: Path) -> Path:
    (file,) = folder.glob("*.jsonl")
    return file


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in only(folder).read_text().splitlines()]


def written(folder: Path) -> list[tuple[str, list[str]]]:
    """Variant and moves of each game."""
    return [(record.variant, moves(record)) for record in journal.read(only(folder))]


def moves(record: GameRecord) -> list[str]:
    return [squares.move_name(ply.move) for ply in record.plies]


def ends(folder: Path) -> list[tuple[str | None, str, str | None]]:
    return [
        (line.get("result"), line["reason"], line.get("why"))
        for line in lines(folder)
        if line.get("event") == "end"
    ]


async def closed(client: Watcher, sid: str, *, by: str = "close") -> None:
    if by == "quit":
        await client.say(sid, "quit")
        return
    assert (await client.request(op="close", sid=sid))["ok"]


@pytest.mark.process
def test_games_are_written_ply_by_ply(one: TestBroker, tmp_path: Path, capfd: Any) -> None:
    async def play() -> None:
        keeper = Journal("mqtt", tmp_path)
        async with (
            serving(one.url, OURS, journal=keeper) as service,
            Watcher(one.url, service.settings.eid, "anna") as client,
        ):
            sid = await client.open("games-1", variant="brandubh", seq=True)
            await client.say(sid, "#1 play a4a2")
            await until(lambda: list(tmp_path.glob("*")), "the journal")
            await until(lambda: written(tmp_path) == [("brandubh", ["a4a2"])], "the first ply")
            # The same game, sent whole; then a ply is taken back, and one is replaced.
            await client.say(
                sid,
                "#2 position startpos moves a4a2 d3a3 d2c2\n#3 undo\n#4 play d2b2\n"
                "#5 position startpos moves a4a2 d3b3\n#6 utinewgame",
            )
            # Looking at an earlier place takes nothing back.
            await client.say(sid, "#7 position startpos moves d2c2 c4c3\n#8 position startpos")
            await client.say(
                sid, f"#9 position {ESCAPE}\n#10 play e7g7\n#11 play a3a4\n#12 variant hexapawn:3x3"
            )
            await client.say(sid, "#13 play a1a2\n#14 quit")
            await until(lambda: not service.sessions, "the end of the session")
            heard = client.out(sid)
            assert not any("response" in line or "readyok" in line or " rules " in line for line in heard)

    asyncio.run(play())
    assert written(tmp_path) == [
        ("brandubh", ["a4a2", "d3b3"]),
        ("brandubh", ["d2c2", "c4c3"]),
        ("brandubh", ["e7g7"]),
        ("hexapawn:3x3", ["a1a2"]),
    ]
    another = (None, "interrupted", "another game was begun")
    assert ends(tmp_path) == [
        another,
        another,
        ("d", "king_escaped", None),
        (None, "interrupted", "the session ended: quit"),
    ]
    first, second, third, _ = journal.read(only(tmp_path))
    assert (first.tag("User"), first.tag("Session"), len(first.rules_hash or "")) == ("anna", "games-1", 64)
    assert (second.start, third.start) == (None, ESCAPE.removeprefix("fen "))
    assert [line["plies"] for line in lines(tmp_path) if line.get("event") == "undo"] == [2, 1]
    check_readable(only(tmp_path), capfd)


def check_readable(file: Path, capfd: Any) -> None:
    """`hnefi convert` plays all of it by the rules, `hnefi play` shows it."""
    assert hnefi(["convert", str(file), "-", "--from", "journal", "--to", "tafl", "--strict"]) == 0
    assert "e7g7 d" in capfd.readouterr().out
    script = file.parent / "script.txt"
    script.write_text(f"show\nload {file} 3\nshow\n")
    assert hnefi(["play", "--load", str(file), "--side", "both", "--no-record", "--script", str(script)]) == 0
    shown = capfd.readouterr().out
    assert "last: a1a2" in shown
    assert "last: e7g7" in shown


@pytest.mark.process
def test_a_game_outlives_its_engine(one: TestBroker, tmp_path: Path) -> None:
    async def play() -> None:
        keeper = Journal("mqtt", tmp_path)
        async with (
            serving(one.url, OURS, journal=keeper) as service,
            Watcher(one.url, service.settings.eid) as client,
        ):
            sid = await client.open("reborn-1", seq=True, variant="brandubh")
            await client.say(
                sid, "#1 rules dim:7 start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/\n#2 play a4a2\n#3 isready"
            )
            await client.line(sid, "readyok")
            session = service.sessions["guest", sid]
            before = session.engine.pid
            # It dies with a line that it has not read.
            os.kill(before, signal.SIGSTOP)
            await client.say(sid, "#4 play d3b3")
            await until(lambda: "play d3b3" in session.memory.lines(), "the line on its way")
            session.engine.kill()
            await until(lambda: session.engine.pid != before, "another engine")
            await client.say(sid, "#5 isready")
            await client.line(sid, "readyok", 2)
            await client.state(sid, lambda state: bool(state["moves"] == ["a4a2", "d3b3"]))
            await closed(client, sid)

    asyncio.run(play())
    (record,) = journal.read(only(tmp_path))
    assert (record.variant, moves(record)) == ("custom", ["a4a2", "d3b3"])
    assert record.rules is not None, "rules of one's own travel with the game"
    assert ends(tmp_path) == [(None, "interrupted", "the session ended: closed by the client")]


@pytest.mark.process
def test_a_client_hears_no_answer_to_our_questions_during_a_search(one: TestBroker, tmp_path: Path) -> None:
    async def play() -> None:
        async with (
            serving(one.url, OURS, journal=Journal("mqtt", tmp_path)) as service,
            Watcher(one.url, service.settings.eid) as client,
        ):
            sid = await client.open("leak-1", variant="brandubh")
            await client.say(sid, "go infinite\nposition startpos moves a4a2\nplay a4a2\nisready")
            lines = await client.line(sid, "readyok")
            refused = [line.partition(": ")[0] for line in lines if "error" in line]
            begin = "info string error"
            assert refused == [f"{begin} position startpos moves a4a2", f"{begin} play a4a2"]
            # What the client asks itself is answered as before.
            await client.say(sid, "stop\nplay a4a2\nrules nonsense")
            await client.line(sid, f"{begin} rules: no start position")

    asyncio.run(play())
    assert written(tmp_path) == [("brandubh", ["a4a2"])]


@pytest.mark.process
def test_an_engine_that_answers_no_questions(one: TestBroker, tmp_path: Path) -> None:
    async def play() -> None:
        keeper = Journal("mqtt", tmp_path)
        async with (
            serving(one.url, journal=keeper) as service,
            Watcher(one.url, service.settings.eid) as client,
        ):
            sid = await client.open("mute-1", variant="brandubh")
            await client.say(sid, "position startpos moves a4a2\nposition startpos moves a4a2 d3b3")
            await client.say(sid, "position otn x\nposition\nposition startpos moves nonsense\nutinewgame")
            await client.say(sid, "position startpos moves a4a2\nisready")
            await client.line(sid, "readyok")

    asyncio.run(play())
    assert written(tmp_path) == [("brandubh", ["a4a2", "d3b3"]), ("brandubh", ["a4a2"])]
    assert [why for *_, why in ends(tmp_path)] == [
        "another game was begun",
        "the session ended: draining",
    ]


@pytest.mark.process
def test_a_journal_that_cannot_be_written_disturbs_nobody(one: TestBroker, tmp_path: Path) -> None:
    told: list[str] = []

    async def play() -> None:
        (tmp_path / "file").touch()
        keeper = Journal("mqtt", tmp_path / "file", told.append)
        async with (
            serving(one.url, OURS, journal=keeper) as service,
            Watcher(one.url, service.settings.eid) as client,
        ):
            for sid in ("bad-1", "bad-2"):
                await client.open(sid, variant="brandubh")
                await client.say(sid, "play a4a2\nplay d3b3\nquery history")
                assert (await client.line(sid, "response"))[-1] == "response startpos moves a4a2 d3b3"
                await closed(client, sid, by="quit")
            await until(lambda: not service.sessions, "the end of the sessions")

    asyncio.run(play())
    (sentence,) = told
    assert sentence.startswith(f"{tmp_path / 'file'}: ")


class Told:
    """A recording that is told what an engine would say."""

    def __init__(self, folder: Path) -> None:
        self.recording = Recording(Journal("mqtt", folder), (("User", "anna"),))
        self.variant = parse_variant(LINE)

    def __call__(self, line: str, history: str, outcome: str = "none", reason: str = "none") -> None:
        words = line.split()
        assert self.recording.questions(words)
        self.recording.answered(words, self.variant, [history, outcome, reason])


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        # Taken back to the start, the game is still the same.
        ([("play", "a4a2"), ("undo", ""), ("play", "d2c2")], [["d2c2"]]),
        # A line that shares nothing is another game, one that shares something the same.
        ([("play", "a4a2"), ("position", "d2c2"), ("position", "d2c2 d3c3")], [["a4a2"], ["d2c2", "d3c3"]]),
        # A new game that was refused changes nothing.
        ([("play", "a4a2"), ("utinewgame", "a4a2"), ("play", "a4a2 d3c3")], [["a4a2", "d3c3"]]),
        # After the end: looked at again, gone on with from earlier.
        ([("play", "a4a2 d3c3 a end"), ("position", "a4a2"), ("position", "a4a2 d3c3")], [["a4a2", "d3c3"]]),
        ([("play", "a4a2 d3c3 a end"), ("undo", "a4a2"), ("play", "a4a2 d3b3")], [["a4a2", "d3c3"], ["a4a2", "d3b3"]]),
        # What is no move makes no journal unreadable.
        ([("play", "a4a2"), ("play", "a4a2 z99"), ("play", "a4a2 d3c3")], [["a4a2", "d3c3"]]),
    ],
)  # fmt: skip
def test_what_is_one_game_and_what_are_two(
    tmp_path: Path, said: Sequence[tuple[str, str]], wanted: list[list[str]]
) -> None:
    tell = Told(tmp_path)
    for line, played in said:
        over = played.endswith(" end")
        plies = played.removesuffix(" a end")
        history = f"startpos moves {plies}" if plies else "startpos"
        tell(line, history, *(("a", "king_captured") if over else ()))
    tell.recording.close("quit")
    assert [plies for _, plies in written(tmp_path)] == wanted


def test_one_session_cannot_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recording_module, "PLIES_LIMIT", 4)
    tell = Told(tmp_path)
    with caplog.at_level(logging.WARNING):
        for move in ("a4a2", "d2c2", "a4a3"):
            tell("position", f"startpos moves {move} d3c3")
        assert tell.recording.questions(["play"]) == ()
        tell.recording.answered(["play"], tell.variant, ["startpos moves a4a1", "none", "none"])
    assert len(written(tmp_path)) == 3
    assert len(caplog.records) == 1


# The command


def command(url: str, *flags: str, data: Path) -> subprocess.Popen[str]:
    """`hnefi mqtt serve` as a process of its own, ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "serve", "--broker", url, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_DATA_HOME": str(data)},
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("broker ")
    assert process.stdout.readline().startswith("ready ")
    return process


async def one_game(url: str, eid: str, user: str, **access: Any) -> None:
    async with Watcher(url, eid, user, **access) as client:
        sid = await client.open("game-1", variant="brandubh")
        await client.say(sid, "position startpos moves a4a2\nisready\n# größe\tx")
        await client.line(sid, "readyok")
        await closed(client, sid)


def served(url: str, *flags: str, data: Path, **access: Any) -> str:
    """Serve one game; standard error."""
    user = access.pop("user", "guest")
    process = command(url, "--eid", "kept", *flags, data=data)
    try:
        asyncio.run(one_game(url, "kept", user, **access))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    return errors


@pytest.mark.process
def test_a_trace_has_every_message_and_no_password(club: TestBroker, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    flags = ("--user", "hnefi-engine", "--password-file", str(club.password_file("hnefi-engine")))
    served(club.url, *flags, "--trace", str(trace), data=tmp_path, user="alice", password=password("alice"))
    assert written(tmp_path / "hnefi" / "games" / "mqtt") == [("brandubh", ["a4a2"])]
    said = trace.read_text().splitlines()
    assert all(re.fullmatch(r"\d+\.\d{6} [<>] tafl/v1/\S+ \[q[01]( retained)?\] .*", line) for line in said)
    inner = "< tafl/v1/session/alice/game-1/in [q1] position startpos moves a4a2\\nisready\\n# größe\\tx"
    assert any(line.endswith(inner) for line in said)
    for wanted in (
        "> tafl/v1/session/alice/game-1/out [q1] readyok",
        "< tafl/v1/engine/kept/req/alice [q1] {",
        "> tafl/v1/user/alice/reply/default [q1] {",
        "> tafl/v1/engine/kept/status [q1 retained] {",
    ):
        assert any(wanted in line for line in said), wanted
    stamps = [float(line.split()[0]) for line in said]
    assert stamps == sorted(stamps)
    for user in ("hnefi-engine", "alice"):
        assert password(user) not in trace.read_text()


@pytest.mark.process
def test_nothing_is_written_where_nothing_is_to_be(one: TestBroker, tmp_path: Path) -> None:
    engine = ("--engine", f"{sys.executable} -I -S {FAKE}")
    errors = served(one.url, *engine, "--no-record", data=tmp_path / "data")
    assert "WARNING" not in errors
    assert not (tmp_path / "data").exists()
    served(one.url, *engine, "--record-dir", str(tmp_path / "here"), data=tmp_path / "data")
    assert written(tmp_path / "here") == [("brandubh", ["a4a2"])]
    assert not (tmp_path / "data").exists()
    (tmp_path / "data").touch()
    errors = served(one.url, *engine, data=tmp_path / "data")
    assert errors.count("games are no longer recorded") == 1


def test_a_trace_that_cannot_be_written(tmp_path: Path, capfd: Any) -> None:
    with pytest.raises(SystemExit, match="2"):
        hnefi(["mqtt", "serve", "--trace", str(tmp_path / "none" / "trace")])
    assert "expected a file that can be written" in capfd.readouterr().err
    if Path("/dev/full").exists():
        with Trace(Path("/dev/full")) as full:
            full(0.0, ">", b"nobody is disturbed")


def test_a_message_is_one_line_of_a_trace() -> None:
    assert traced("t", b"a\nb\x1b\xff", 0, retain=False) == rb"t [q0] a\nb\x1b\xff"
    assert traced("t", "größe", 1, retain=True) == "t [q1 retained] größe".encode()
