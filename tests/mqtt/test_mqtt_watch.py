"""A tournament at a terminal, from what strangers publish."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import mqtt_parts as parts
import pexpect
import pyte
import pytest
from mqtt_brokers import WAIT, TestBroker, free_port, start_dying_with_us

from hnefi.engine import games
from hnefi.engine.games.tafl.diagram import diagram
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.squares import move_name, name
from hnefi.gui_adapter.mqtt import watch
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, parse_url
from hnefi.protocol.hosts.shutdown import Asked

pytest_plugins = ["mqtt_brokers"]

HOSTILE = "evil\x1b[2J\r\n\u202e日本語" * 20
COMMAND = [sys.executable, "-m", "hnefi.tools.cli", "mqtt", "watch"]
META = {"run": "cup", "name": "Spring Cup", "format": "match", "state": "running", "publisher": "online"}
TABLE = {
    "pairs": 3, "facts": {"pairs": 20}, "faults": 1,
    "engines": [
        {
            "rank": 1, "name": "mine", "record": {"wins": 4, "draws": 0, "losses": 2},
            "strength": {"elo": 120.4, "elo_error": 31.0},
        },
        {"rank": 2, "name": "simple", "record": {"wins": 2, "draws": 0, "losses": 4}, "strength": {"elo": None}},
    ],
}  # fmt: skip
GAME = {
    "id": "1.1", "state": "running", "variant": "brandubh", "attackers": "mine", "defenders": "simple", "start": None,
    "opening": [], "fen": "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1", "moves": ["d1c1", "d3b3"], "captures": [[], []],
    "cp": [10, -31], "mate": [None, None], "depth": [8, 9], "time": [1.0, 2.0], "clock": [60000, 58000],
    "started": 5.0,
}  # fmt: skip
ENDED = GAME | {"state": "ended", "winner": "a", "reason": "king_captured", "ended": 9.0}


def show(**documents: object) -> watch.Show:
    one = watch.Show("cup")
    for topic, document in documents.items():
        one.take(topic.replace("__", "/").replace("_", "."), json.dumps(document).encode())
    return one


# What is shown


def test_the_screen() -> None:
    one = show(
        meta=META,
        standings=TABLE,
        game__1_1__state=GAME,
        game__1_1__info__a={"cp": 44, "depth": 7, "pv": ["a4a2"]},
    )
    assert one.screen(80, 40) == [
        "Spring Cup, match · running · pairs 3/20 · faults 1",
        "",
        " #  engine                       +     =     -           Elo",
        " 1  mine                         4     0     2      +120 ±31",
        " 2  simple                       2     0     4             –",
        "",
        "game 1.1  brandubh  mine (a) – simple (d)",
        "   a b c d e f g",
        " 7 x . . t . . x 7",
        " 6 . . . t . . . 6",
        " 5 . . . T . . . 5",
        " 4 t t T K T t t 4",
        " 3 . T . . . . . 3",
        " 2 . . . t . . . 2",
        " 1 x . t . . . x 1",
        "   a b c d e f g",
        "2. d3b3  -0.31 depth 9  clock 0:58",
        "a thinks +0.44 depth 7  a4a2",
    ]


def test_lines_for_who_has_no_screen() -> None:
    one = show(meta=META, game__1_1__state=GAME | {"moves": [], "captures": []})
    one.take("game/1.1/state", json.dumps(GAME).encode())
    one.take("game/1.1/state", json.dumps(ENDED).encode())
    one.take("game/1.1/state", b"")
    one.take("meta", json.dumps(META | {"state": "complete", "publisher": "offline"}).encode())
    assert one.news == [
        "Spring Cup, match: running",
        "game 1.1 mine (a) – simple (d): brandubh, 0 plies so far",
        "game 1.1 2. d3b3  -0.31 depth 9  clock 0:58",
        "game 1.1 mine (a) – simple (d): 1-0, king captured, ply 2",
        "Spring Cup, match: complete",
    ]
    assert one.over
    assert not one.games


def test_a_game_that_is_over_is_one_line() -> None:
    assert show(game__1_1__state=ENDED).news == ["game 1.1 mine (a) – simple (d): 1-0, king captured, ply 2"]


def test_the_game_that_began_last_has_the_board() -> None:
    one = show(
        game__1_1__state=GAME,
        game__1_2__state=GAME | {"started": 7.0},
        game__2_1__state=ENDED | {"started": 9.0},
    )
    assert any(line.startswith("game 1.2") for line in one.screen(80, 40))
    assert any(line.startswith("1.1 ") for line in one.screen(80, 40))
    assert any(line.startswith("game 2.1") for line in one.screen(80, 40, "2.1"))


VALUES: list[Any] = [
    None,
    True,
    -1,
    1e308,
    "x",
    HOSTILE,
    [],
    [HOSTILE],
    [[HOSTILE]],
    {},
    {"elo": HOSTILE},
    [None],
    ["a1a2"],
]


def test_whatever_strangers_publish_is_shown_harmlessly() -> None:
    draw = random.Random(7)
    for _ in range(300):
        documents = []
        for document in (META, TABLE, GAME, ENDED):
            wrong = {
                key: draw.choice(VALUES) if draw.random() < 0.5 else value for key, value in document.items()
            }
            documents.append(wrong)
        one = show(
            meta=documents[0],
            standings=documents[1],
            game__1_1__state=documents[2],
            game__1_2__state=documents[3],
        )
        one.take(
            "game/1.1/info/a", json.dumps({"cp": draw.choice(VALUES), "pv": draw.choice(VALUES)}).encode()
        )
        one.take("game/1.1/state", json.dumps(GAME).encode())
        for line in [*one.screen(60, 20, draw.choice(["", "1.1"])), *one.news]:
            assert line.isprintable(), line
        assert all(len(line) < 60 for line in one.screen(60, 20))
        assert len(one.screen(60, 20)) < 20


@pytest.mark.parametrize("payload", [b"\xff", b"[]", b"[" * 100_000, b"1" * 100_000, b'{"moves":', b"null"])
def test_what_is_no_document_counts_as_nothing(payload: bytes) -> None:
    one = watch.Show("cup")
    for topic in ("meta", "standings", "game/1.1/state", "game/1.1/info/a", "other", ""):
        one.take(topic, payload)
    assert one.screen(80, 24)
    assert not one.games


def test_names_in_topics_are_no_better() -> None:
    one = show(meta=META, game__1_1__state=GAME)
    for topic in (
        "game/\x1b[2J/state",
        "game/" + "x" * 1000 + "/state",
        "game//state",
        "game/1.1/info/\x1b",
        "game/1.1/info/b",
    ):
        one.take(topic, json.dumps(GAME).encode())
    assert list(one.games) == ["1.1"]
    assert not one.thinking


# The board


@pytest.mark.parametrize("variant", ["brandubh", "tablut-linnaeus", "copenhagen"])
def test_the_board_is_that_of_the_rules(variant: str) -> None:
    """Random games: moves and captures alone lead to the position that the engine has."""
    rules = games.find(variant)
    assert isinstance(rules, Variant)
    draw = random.Random(3)
    position = games.initial(rules)
    fen = position.fen()
    moves: list[str] = []
    captures: list[list[str]] = []
    while position.outcome is None and len(moves) < 60:
        move = draw.choice(position.legal_moves())
        position = position.play(move)
        moves.append(move_name(move))
        captures.append([name(square) for square in position.last_captures])
        if position.outcome is None:
            found = watch.board({"variant": variant, "fen": fen, "moves": moves, "captures": captures})
            assert found == diagram(rules.rules, dict(position.pieces())).splitlines()
    assert len(moves) > 5


@pytest.mark.parametrize(
    "wrong",
    [
        {"fen": None}, {"fen": "x"}, {"fen": "9/9"}, {"variant": "hex:11"}, {"variant": "/etc/passwd"}, {"variant": 7},
        {"moves": ["?", "d3b3"]}, {"moves": ["a1a2", "d3b3"]}, {"moves": "x"}, {"moves": [7, 8]}, {"captures": None},
        {"captures": [None, []]}, {"captures": [[], ["zz9"]]}, {"captures": [[]]}, {"variant": "x" * 10**6},
    ],
)  # fmt: skip
def test_a_board_that_cannot_be_known_is_not_shown(wrong: dict[str, Any]) -> None:
    assert watch.board(GAME)
    assert watch.board(GAME | wrong) == []


# Behind a broker


async def publish(broker: TestBroker, run: str, **documents: object) -> None:
    """Retained documents, or their absence."""
    async with Link(Access(parse_url(broker.url)), "arena") as link:
        for topic, document in documents.items():
            full = f"{topics.ROOT}/arena/{run}/{topic.replace('__', '/').replace('_', '.')}"
            payload = json.dumps(document).encode() if document else b""
            await link.publish(full, payload, retain=True)


@pytest.mark.process
def test_lines_until_the_run_is_over(broker: TestBroker) -> None:
    run = f"lines-{broker.kind}"
    asyncio.run(publish(broker, run, meta=META, game__1_1__state=GAME))
    process = start_dying_with_us([*COMMAND, broker.url, run], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert {process.stdout.readline(), process.stdout.readline()} == {
        b"Spring Cup, match: running\n",
        "game 1.1 mine (a) – simple (d): brandubh, 2 plies so far\n".encode(),
    }
    asyncio.run(publish(broker, run, game__1_1__state=ENDED))
    assert process.stdout.readline().endswith(b"1-0, king captured, ply 2\n")
    asyncio.run(publish(broker, run, meta=META | {"state": "complete", "publisher": "offline"}))
    assert process.communicate(timeout=WAIT)[0] == b"Spring Cup, match: complete\n"
    assert process.returncode == 0


@pytest.mark.process
def test_the_only_run_is_taken_and_several_are_listed(
    own_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "LISTING", 0.4)
    assert watch.main([own_broker.url]) == 3
    assert "no run is shown at this broker" in capsys.readouterr().err
    over = META | {"state": "complete", "publisher": "offline"}
    asyncio.run(publish(own_broker, "old", meta=over))
    asyncio.run(publish(own_broker, "older", meta=over | {"name": HOSTILE}))
    # It listens for a while; what a busy machine delivers later is not listed.
    lines: list[str] = []
    while len(lines) < 2:
        watch.main([own_broker.url])
        lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{'old':<34}Spring Cup, match: complete"
    assert len(lines) == 2
    assert lines[1].isprintable()


@pytest.mark.process
def test_a_run_that_is_not_shown_is_waited_for(
    own_broker: TestBroker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watch, "LISTING", 0.4)

    async def waits(run: str) -> str:
        """What is said of a run that begins a little later, and ends."""
        way = Access(parse_url(own_broker.url))
        task = asyncio.create_task(watch.watch(Asked(), way, run, "", True, sys.stdout))
        said = await parts.until(lambda: capsys.readouterr().err, "the sentence")
        await publish(own_broker, run, meta=META | {"state": "complete", "publisher": "offline"})
        assert await task == 0
        assert capsys.readouterr().out == "Spring Cup, match: complete\n"
        return str(said)

    none = "hnefi mqtt watch: no run is shown at this broker: waiting for {} (hnefi mqtt arena shows one)\n"
    assert asyncio.run(waits("cup")) == none.format("cup")
    # A busy machine may deliver what there is too late.
    only = "hnefi mqtt watch: no run {} is shown at this broker, only cup: waiting for it\n"
    assert asyncio.run(waits("nope")) in (only.format("nope"), none.format("nope"))
    assert show().screen(80, 24)[-1] == "this run is not shown: waiting for it"


@pytest.mark.process
def test_a_screen_at_a_terminal(broker: TestBroker) -> None:
    run = f"screen-{broker.kind}"
    asyncio.run(publish(broker, run, meta=META, standings=TABLE, game__1_1__state=GAME))
    terminal = pyte.Screen(80, 24)
    stream = pyte.Stream(terminal)
    process = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], broker.url, run],
        dimensions=(24, 80),
        encoding="utf-8",
        env={**os.environ, "TERM": "xterm"},
    )

    def seen(words: str) -> Callable[[], bool]:
        def look() -> bool:
            with suppress(pexpect.TIMEOUT, pexpect.EOF):
                stream.feed(process.read_nonblocking(65536, 0.1))
            return any(words in line for line in terminal.display)

        return look

    until(seen("2. d3b3  -0.31 depth 9"), terminal)
    until(seen("Spring Cup, match · running · pairs 3/20 · faults 1"), terminal)
    assert terminal.display[0].startswith("Spring Cup")
    # A shorter text leaves nothing of the longer one behind.
    asyncio.run(publish(broker, run, game__1_1__state=ENDED | {"moves": ["d1c1"], "captures": [[]]}))
    until(seen("1-0, king captured, ply 1 "), terminal)
    assert not any("depth" in line for line in terminal.display)
    process.sendintr()
    process.expect(pexpect.EOF, timeout=WAIT)
    process.close()
    assert process.exitstatus == 1
    asyncio.run(publish(broker, run, meta=None))


def until(true: Callable[[], bool], terminal: pyte.Screen) -> None:
    deadline = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < deadline, "\n".join(terminal.display)


def test_errors_are_sentences(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    nobody = f"mqtt://127.0.0.1:{free_port()}"
    assert watch.main([nobody, "cup"]) == 3
    assert f"hnefi mqtt watch: no MQTT broker at {nobody}" in capsys.readouterr().err
    for wrong in ([], ["http://x"], [nobody, "Cup/#"], [nobody, "--password-file", str(tmp_path / "no")]):
        with pytest.raises(SystemExit) as ending:
            watch.main(wrong)
        assert ending.value.code == 2
