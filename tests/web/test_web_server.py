"""The server as a hostile network sees it: names, origins, tokens, frames, floods, readers that do not read, drops."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from leftover_processes import MARK, expect_nobody, marked
from mqtt_parts import fake, until
from web_parts import WAIT, Tab, policy, serving, tab

from hnefi.gui_adapter.web import frames
from hnefi.gui_adapter.web import server as server_module
from hnefi.gui_adapter.web.server import HEADERS, PAGES
from hnefi.protocol import fork_client
from hnefi.protocol.hosts.journal import Journal, read
from hnefi.protocol.hosts.sessions.engine_process import Piped

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT * 2):
            await scene()

    asyncio.run(bounded())


def test_pages_come_with_headers_and_nothing_else_does() -> None:
    async def scene() -> None:
        async with serving() as (_, url), aiohttp.ClientSession() as client:
            for name in ("", *(f"static/{path.name}" for path in PAGES.iterdir() if path.suffix != ".py")):
                async with client.get(f"{url}/{name}") as answer:
                    assert answer.status == 200, name
                    assert {key: answer.headers[key] for key in HEADERS} == HEADERS
            async with client.get(f"{url}/static/app.js") as answer:
                assert answer.headers["Content-Encoding"] in ("gzip", "deflate")
            for name in (
                "static/../command.py",
                "static/%2e%2e/command.py",
                "static/none",
                "ws/",
                "favicon.ico",
            ):
                async with client.get(f"{url}/{name}") as answer:
                    assert answer.status == 404, name
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
            async with client.post(f"{url}/") as answer:
                assert answer.status == 405
            async with client.get(f"{url}/healthz") as answer:
                assert (await answer.json())["state"] == "ready"

    play(scene)


def test_all_pages_together_are_small_and_name_no_other_place() -> None:
    files = {path.name: path.read_bytes() for path in PAGES.iterdir()}
    whole = b"".join(files.values())
    # Modules that `import("./x.js")` names are loaded when their page is opened. What any page loads, the first among
    # them, is small as it is; all pages together are as they are sent.
    later = set(re.findall(rb'import\("\./(\w+\.js)"\)', files["app.js"]))
    assert len(later) >= 3
    first = sum(len(data) for name, data in files.items() if name.encode() not in later)
    assert first < 125 * 1024
    assert all(first + len(files[name.decode()]) < 140 * 1024 for name in later)
    assert sum(len(gzip.compress(data)) for data in files.values()) < 65 * 1024
    text = whole.decode().replace("http://www.w3.org/2000/svg", "")
    for word in (
        "http://",
        "https://",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ):
        assert word not in text, word


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::2]:80", "localhost.evil"]
)
def test_a_foreign_name_of_this_machine_is_refused(host: str) -> None:
    async def scene() -> None:
        async with serving() as (_, url), aiohttp.ClientSession() as client:
            for name in ("", "healthz", "ws"):
                async with client.get(f"{url}/{name}", headers={"Host": host}) as answer:
                    assert answer.status == 403, name

    play(scene)


def test_a_socket_needs_a_page_of_this_server() -> None:
    async def scene() -> None:
        async with serving(names=("club.example",)) as (_, url), aiohttp.ClientSession() as client:
            for origin in (
                None,
                "null",
                "http://evil.example",
                "http://localhost:1",
                f"{url}.evil",
                "file://",
            ):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await client.ws_connect(f"{url}/ws", origin=origin)
                assert refused.value.status == 403
            async with client.ws_connect(
                f"{url}/ws", origin="https://club.example", headers={"Host": "club.example"}
            ) as socket:
                await Tab(socket).hello()

    play(scene)


def test_a_token_is_asked_for_in_the_first_frame() -> None:
    token = "s" * 22

    async def scene() -> None:
        async with serving(token=token) as (_, url):
            for said in ("", "wrong", token + "s", "ß" * 22):
                async with tab(url, hello=False) as page:
                    await page.say({"t": "hello", "token": said})
                    assert await page.error() == "token"
                    with pytest.raises(ConnectionError):
                        await page.kind("welcome")
            async with tab(url, hello=False) as page:
                await page.hello(token=token)
            async with tab(url, hello=False) as page:
                await page.say({"t": "open", "variant": "brandubh"})
                assert await page.error() == "bad_frame"

    play(scene)


def test_who_says_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "HELLO", 0.2)

    async def scene() -> None:
        async with serving() as (server, url), tab(url, hello=False) as page:
            with pytest.raises(ConnectionError):
                await page.kind("welcome")
            assert page.closed_with == 1008
            assert not server.pages

    play(scene)


def test_a_game_by_lines() -> None:
    async def scene() -> None:
        async with serving() as (server, url), tab(url) as page:
            sid = await page.open()
            await page.line(sid, "position startpos moves a4a2", 1)
            state = await page.state(sid, "a4a2")
            assert (state["side"], state["outcome"], state["last_in"]) == ("d", None, 1)
            assert {"m": "d3a3", "x": ["a2"]} in state["legal"]
            assert state["special"]["d4"] == "throne"
            await page.line(sid, "play d3d7", 2)
            assert (await page.text("info string error play d3d7"))["text"].endswith("blocked at d4")
            await page.line(sid, "go depth 2", 3)
            assert (await page.text("bestmove "))["n"] == 3
            await page.line(sid, "position fen 4K2/7/7/7/t6/7/7 d 0 30 moves e7g7", 4)
            ended = await page.state(sid, "e7g7")
            assert (ended["outcome"], ended["legal"]) == ({"result": "d", "reason": "king_escaped"}, [])
            await page.line(sid, "variant hex:5", 5)
            hexes = await page.hear(lambda frame: frame["t"] == "state" and frame["variant"] == "hex:5")
            assert (len(hexes["legal"]), hexes["special"]) == (25, {})
            await page.say({"t": "close", "s": sid})
            await page.kind("closed")
            assert not server.site.sessions

    play(scene)


def test_a_state_knows_of_its_last_line_even_if_another_came_while_it_was_asked_for() -> None:
    async def scene() -> None:
        async with serving() as (server, url), tab(url) as page:
            sid = await page.open()
            session = server.site.sessions[sid]
            await page.line(sid, "position startpos moves a4a2", 1)
            await page.state(sid, "a4a2")
            ask, passed = session._questions.ask, asyncio.Event()

            async def slow(engine: Piped, *questions: str) -> list[str]:
                answers = await ask(engine, *questions)
                if not passed.is_set():
                    passed.set()
                    await page.line(sid, "position startpos", 3)
                    await until(lambda: session.last_passed == 3, "the line being passed on")
                return answers

            session._questions.ask = slow
            await page.line(sid, "play d3a3", 2)
            state = await page.hear(lambda frame: frame["t"] == "state" and frame["last_in"] == 3)
            assert (passed.is_set(), state["moves"]) == (True, [])

    play(scene)


@pytest.mark.parametrize(
    "line", ["debug on", "perft 9", "setoption name DebugLogFile value /x", "setoption name Hash value 99999"]
)
def test_strangers_lines_are_filtered(line: str) -> None:
    async def scene() -> None:
        async with serving(policy=policy(fake())) as (_, url), tab(url) as page:
            await page.say({"t": "open"})
            sid = (await page.kind("opened"))["s"]
            await page.line(sid, line)
            assert "not allowed here" in (await page.text("info string error"))["text"]

    play(scene)


def test_hostile_frames_change_nothing() -> None:
    async def scene() -> None:
        async with serving() as (server, url), tab(url) as page:
            sid = await page.open()
            for frame, code in (
                (os.urandom(64 * 1024), "bad_json"),
                ("\x00\x1b[2J", "bad_json"),
                ("[" * 10_000, "bad_json"),
                ({"t": "hello"}, "bad_frame"),
                ({"t": "watch"}, "bad_frame"),
                ({"t": "line", "s": sid, "text": 5}, "bad_frame"),
                ({"t": "line", "s": sid, "text": "go\nquit"}, "bad_frame"),
                ({"t": "line", "s": sid, "n": -1, "text": "go"}, "bad_frame"),
                ({"t": "line", "s": "x" * 22, "text": "go"}, "no_session"),
                ({"t": "line", "s": ["x"], "text": "go"}, "bad_frame"),
                ({"t": "close", "s": ""}, "no_session"),
                ({"t": "open", "variant": "../../etc/passwd"}, "unknown_variant"),
                ({"t": "open", "variant": "chess"}, "unknown_variant"),
                ({"t": "open", "player": "/etc/passwd"}, "bad_option"),
                ({"t": "open", "options": {"DebugLogFile": "/x"}}, "bad_option"),
                ({"t": "open", "options": [1]}, "bad_frame"),
                ({"t": "import", "id": 3, "text": "nonsense"}, "bad_record"),
                ({"t": "export", "id": 3, "variant": "nonsense"}, "bad_record"),
                ({"t": "puzzle", "id": 3, "do": ["next"]}, "bad_frame"),
                ({"t": "puzzle", "id": 3, "do": "show", "puzzle": "../suite"}, "no_puzzle"),
                ({"t": "lesson", "id": 3, "variant": "hex:1"}, "unknown_variant"),
                ({"t": "lesson", "id": 3, "rules": "start=" + "9" * 1_000}, "unknown_variant"),
                ({"t": "rules", "id": 3, "start": ["K"]}, "bad_frame"),
                ({"t": "fair", "id": 3, "games": -1}, "bad_frame"),
                ({"t": "fair", "id": 3, "games": 1, "variant": "chess"}, "unknown_variant"),
            ):
                await page.say(frame)
                assert await page.error() == code, frame
            for n in (3, 1, 1, 9):  # a gap, the next, the same again, another gap
                await page.line(sid, "position startpos moves a4a2", n)
            assert (await page.state(sid, "a4a2"))["last_in"] == 1
            assert list(server.site.sessions) == [sid]

    play(scene)


def test_a_frame_beyond_all_limits_ends_the_page_and_no_other() -> None:
    async def scene() -> None:
        async with serving(policy=policy(fake())) as (server, url), tab(url) as other, tab(url) as page:
            await page.say("x" * 400_000)
            with pytest.raises(ConnectionError):
                await page.kind("welcome")
            assert page.closed_with == 1009
            await other.say({"t": "none"})
            assert await other.error() == "bad_frame"
            assert len(server.pages) == 1

    play(scene)


def test_ten_thousand_frames_are_mostly_dropped_and_answered_once_a_second() -> None:
    async def scene() -> None:
        async with serving() as (_, url), tab(url) as page:
            sid = await page.open()
            began = time.monotonic()
            for _ in range(10_000):
                await page.line(sid, "isready")
            await page.error()

            async def go_on() -> None:
                # Until it is heard: nobody knows when the rest of the flood has been read.
                while True:
                    await page.line(sid, "position startpos moves a4a2")
                    await asyncio.sleep(0.5)

            speaking = asyncio.create_task(go_on())
            await page.state(sid, "a4a2")
            speaking.cancel()
            seconds = time.monotonic() - began
            answered = sum(frame.get("text") == "readyok" for frame in page.frames)
            assert answered <= frames.BURST + frames.RATE * seconds
            assert 1 <= sum(frame["t"] == "error" for frame in page.frames) <= 2 + seconds

    play(scene)


def test_nobody_reaches_the_game_of_another_page() -> None:
    async def scene() -> None:
        async with serving() as (server, url), tab(url) as page, tab(url) as other:
            sid = await page.open()
            await other.line(sid, "position startpos moves a4a2")
            assert await other.error() == "no_session"
            await other.say({"t": "close", "s": sid})
            assert await other.error() == "no_session"
            assert list(server.site.sessions) == [sid]
            assert not any(frame.get("s") == sid for frame in other.frames if frame["t"] == "state")

    play(scene)


def test_sessions_are_counted_for_a_page_and_in_all() -> None:
    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), sessions=3, per_page=2) as (_, url),
            tab(url) as page,
            tab(url) as other,
            aiohttp.ClientSession() as client,
        ):
            for _ in range(2):
                await page.say({"t": "open"})
                await page.kind("opened")
            await page.say({"t": "open"})
            assert await page.error() == "too_many"
            await other.say({"t": "open"})
            await other.kind("opened")
            await other.say({"t": "open"})
            assert await other.error() == "too_many"
            async with client.get(f"{url}/healthz") as answer:
                health = await answer.json()
            assert (health["pages"], health["sessions"], health["max"], health["searching"]) == (2, 3, 3, 0)
            # Two times hello, and five times open.
            assert (health["counts"]["refused"], health["counts"]["frames_in"]) == (2, 7)
            assert health["counts"]["frames_out"] >= 7

    play(scene)


def test_pages_are_counted_too() -> None:
    async def scene() -> None:
        many = aiohttp.TCPConnector(limit=0)
        async with serving(pages=200) as (server, url), aiohttp.ClientSession(connector=many) as client:
            sockets = [await client.ws_connect(f"{url}/ws", origin=url) for _ in range(200)]
            # All of them are served.
            await asyncio.gather(*(Tab(socket).hello() for socket in sockets))
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await client.ws_connect(f"{url}/ws", origin=url)
            assert refused.value.status == 503
            for socket in sockets:
                await socket.close()
            while server.pages:
                await asyncio.sleep(0.02)

    play(scene)


def test_a_page_that_comes_back_finds_its_game_with_what_was_said_meanwhile() -> None:
    async def scene() -> None:
        async with serving() as (server, url):
            async with tab(url) as page:
                sid = await page.open()
                await page.line(sid, "position startpos moves a4a2", 1)
                await page.state(sid, "a4a2")
                await page.line(sid, "go movetime 1000", 2)
                await page.hear(lambda frame: frame["t"] == "info" or frame.get("searching", False))
                heard = max((frame["m"] for frame in page.frames if frame["t"] == "line"), default=0)
            async with tab(url, hello=False) as again:
                await again.hello(resume={sid: heard})
                answer = await again.text("bestmove ")
                assert (answer["s"], answer["n"]) == (sid, 2)
                assert answer["m"] > heard
                assert list(server.site.sessions) == [sid]
            async with tab(url, hello=False) as third:
                await third.hello(resume={"no such session": 0, sid: 10**20})
                assert await third.error() == "gone"

    play(scene)


def test_a_game_whose_page_stays_away_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = os.urandom(8).hex()
    monkeypatch.setenv(MARK, mark)

    async def scene() -> None:
        async with serving(policy=policy(fake()), back=0.2) as (server, url):
            async with tab(url) as page:
                await page.say({"t": "open"})
                await page.kind("opened")
            while server.site.sessions:
                await asyncio.sleep(0.02)

    play(scene)


def test_an_unused_game_is_closed_and_says_so() -> None:
    async def scene() -> None:
        async with serving(idle=0.3) as (server, url), tab(url) as page:
            await page.say({"t": "open", "variant": "brandubh"})
            await page.text("info string closing: idle")
            await page.kind("closed")
            assert not server.site.sessions

    play(scene)


def test_a_page_that_does_not_read_is_let_go_and_its_game_stays() -> None:
    async def scene() -> None:
        async with serving() as (server, url), aiohttp.ClientSession() as client:
            socket = await client.ws_connect(f"{url}/ws", origin=url, max_msg_size=1 << 30)
            page = Tab(socket)
            await page.hello()
            sid = await page.open()
            connection = socket._response.connection
            assert connection is not None
            connection.transport.pause_reading()
            voice = server.site.sessions[sid].outgoing
            # More than any buffer on the way holds.
            end = asyncio.get_running_loop().time() + WAIT
            while server.pages and asyncio.get_running_loop().time() < end:
                voice.say(os.urandom(30_000).hex())
                await asyncio.sleep(0.001)
            assert not server.pages
            assert list(server.site.sessions) == [sid]
            connection.close()

    play(scene)


def test_an_engine_that_dies_is_started_again_and_told_the_game() -> None:
    async def scene() -> None:
        async with serving() as (server, url), tab(url) as page:
            sid = await page.open()
            await page.line(sid, "position startpos moves a4a2")
            await page.state(sid, "a4a2")
            os.kill(server.site.sessions[sid].engine.pid, signal.SIGKILL)
            await page.text("info string error")
            await page.state(sid, "a4a2")
            # It counts as soon as it has happened, and once.
            assert server.site.count("restarted") == 1
            server.site.close(server.site.sessions[sid], "test")
            assert server.site.count("restarted") == 1

    play(scene)


def test_an_engine_that_cannot_be_had_is_an_error() -> None:
    async def scene() -> None:
        async with serving(policy=policy(("/no/such/engine",))) as (server, url), tab(url) as page:
            await page.say({"t": "open", "variant": "brandubh"})
            assert await page.error() == "engine_failed"
            assert not server.site.sessions

    play(scene)


def test_games_are_written_down(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(journal=Journal("web", tmp_path)) as (_, url), tab(url) as page:
            sid = await page.open()
            await page.line(sid, "position startpos moves a4a2 d3a3")
            await page.state(sid, "a4a2", "d3a3")

    play(scene)
    (record,) = [game for file in tmp_path.rglob("*.jsonl") for game in read(file)]
    assert (record.variant, len(record.plies)) == ("brandubh", 2)


def test_a_page_hears_no_answer_to_our_questions_during_a_search(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(journal=Journal("web", tmp_path)) as (_, url), tab(url) as page:
            sid = await page.open()
            await page.line(sid, "go infinite")
            await page.line(sid, "position startpos moves a4a2")
            await page.line(sid, "isready")
            await page.text("readyok")
            errors = [frame["text"] for frame in page.frames if "error" in frame.get("text", "")]
            assert [error.partition(": ")[0] for error in errors] == [
                "info string error position startpos moves a4a2"
            ]

    play(scene)


@pytest.mark.cold
def test_the_command_serves_drains_and_leaves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = os.urandom(8).hex()
    monkeypatch.setenv(MARK, mark)
    command = [sys.executable, "-m", "hnefi.tools.cli", "web", "--port", "0", "--no-record"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("web ").strip().rstrip("/")

        async def scene() -> None:
            async with tab(url) as page:
                sid = await page.open()
                await page.line(sid, "go infinite", 1)
                await page.hear(lambda frame: frame["t"] == "info" or frame.get("searching", False))
                if fork_client.possible():
                    # The engine is a fork of a process that has everything loaded.
                    pids = [line.split()[0] for line in marked(mark)]
                    assert "hnefi engine\n" in [Path(f"/proc/{pid}/comm").read_text() for pid in pids]
                process.send_signal(signal.SIGTERM)
                await page.text("info string closing")
                await page.text("bestmove ")
                with pytest.raises(ConnectionError):
                    await page.text("never")
                assert page.closed_with == 1001

        play(scene)
        assert process.wait(WAIT) == 0
    finally:
        process.kill()
        process.communicate()
    expect_nobody(mark)


def test_a_port_that_is_taken_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["-m", "hnefi.tools.cli", "web", "--port", str(port), "--no-record", "--no-fork"]
        done = subprocess.run(
            [sys.executable, *command], stderr=subprocess.PIPE, text=True, timeout=WAIT, check=False
        )
    said = f"port {port} of 127.0.0.1: address already in use: expected a free port, or --port 0 for any"
    assert (done.returncode, done.stderr) == (2, f"hnefi web: {said}\n")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--bind", "0.0.0.0"], "expected --token-file"),
        (["--bind", "nowhere"], "expected an address"),
        (["--port", "99999"], "expected a port"),
        (["--variant", "chess"], "chess"),
        (["--player", "nobody"], "nobody"),
        (["--token-file", "/no/such/file"], "expected a file"),
        (["--token-file", "SHORT"], "at least 22"),
        (["--option", "Foo=1"], "no such option"),
        (["--option", "Hash=much"], "Hash=much"),
        (["--record-dir", "SHORT"], "not a folder"),
        (["--record-dir", "/proc/games"], "expected a folder"),
        (["--host-name", "http://tafl.example"], "without http://"),
        (["--host-name", "tafl.example:8080"], "without http:// and port"),
        (["--host-name", ""], "expected a name"),
        (["--user", "anna"], "expected it only for --engines"),
        (["--engines", "mqtt://broker", "--user", "an/na"], "an/na"),
    ],
)
def test_wrong_flags_are_a_sentence(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from hnefi.gui_adapter.web.command import main

    short = tmp_path / "token"
    short.write_text("secret\n")
    with pytest.raises(SystemExit) as ended:
        main([str(short) if flag == "SHORT" else flag for flag in flags])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
