"""A run of the arena behind a broker: late viewers see all of it, and no broker can hold a run up."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from live_events import TABLE, end, info, ply, start
from mqtt_brokers import WAIT, TestBroker, free_port

from hnefi.gui_adapter.mqtt import arena
from hnefi.gui_adapter.mqtt.arena import Publisher
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, Message, parse_url
from hnefi.protocol.hosts.run_folder import Folder, NoRun, describe

pytest_plugins = ["mqtt_brokers"]

CONFIG = """
[run]
name = ""
format = "match"
variants = ["brandubh"]
pairs = 2
seed = 1
[output]
live = true
[[engine]]
name = "mine"
nodes = 500
cmd = "/home/somebody/engine --key secret"
env = {TOKEN = "secret"}
[[engine]]
name = "simple"
tc = "1+0.01"
"""
COMMAND = "import sys; from hnefi.gui_adapter.mqtt import arena; sys.exit(arena.main(sys.argv[1:]))"


# The folder of a run


def test_of_a_run_no_command_is_told() -> None:
    import tomllib

    found = describe(tomllib.loads(CONFIG), "cup", "spring-cup")
    assert found["name"] == "cup"
    assert found["engines"] == [{"name": "mine", "nodes": 500}, {"name": "simple", "tc": "1+0.01"}]
    assert "secret" not in json.dumps(found)


class Run:
    """A run's folder, written by the test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        (path / "config.toml").write_text(CONFIG)
        self.lock(os.getpid())
        (path / "live.jsonl").touch()

    def lock(self, process: int) -> None:
        host = os.uname().nodename
        (self.path / "lock").write_text(f"process {process} on {host} since 2026-01-01 00:00:00\n")

    def tell(self, *events: dict[str, Any]) -> None:
        with (self.path / "live.jsonl").open("a") as stream:
            stream.write("".join(json.dumps(event) + "\n" for event in events))

    def finish(self) -> None:
        summary = {"facts": {"command": "hnefi arena resume /home/somebody"}, "state": {"ending": "complete"}}
        (self.path / "summary.json").write_text(json.dumps(summary))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "Spring Cup")


def test_a_folder_without_a_run_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.toml").write_text("[")
    for path, wrong in (
        (tmp_path, "no config.toml"),
        (tmp_path / "nothere", "no such folder"),
        (run.path / "config.toml", "no such folder"),
        (tmp_path / "broken", "config.toml: Invalid .*"),
    ):
        with pytest.raises(NoRun, match=f": {wrong}: expected the folder of a run of hnefi arena$"):
            Folder(path).config()
    (run.path / "live.jsonl").unlink()
    assert Folder(run.path).config()
    (run.path / "config.toml").write_text(CONFIG.replace("live = true", "live = false"))
    with pytest.raises(NoRun, match="expected a run with --live"):
        Folder(run.path).demand_live()


@pytest.mark.process
def test_how_a_run_has_ended_is_seen(run: Run) -> None:
    folder = Folder(run.path)
    assert (folder.summary(), folder.abandoned()) == (None, False)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    run.lock(gone.pid)
    assert folder.abandoned()
    run.finish()
    assert folder.summary() is not None
    # It goes on: the tables are those of the time before.
    later = (run.path / "summary.json").stat().st_mtime_ns + 1
    os.utime(run.path / "lock", ns=(later, later))
    assert folder.summary() is None


# Behind a broker


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "LOOK", 0.3)


class Viewer:
    """What a viewer knows after one subscription."""

    def __init__(self, broker: TestBroker, run: str) -> None:
        self.known: dict[str, Any] = {}
        self.link = Link(Access(parse_url(broker.url)), "viewer")
        self.kept: set[str] = set()
        self._run = run
        self._news = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self.link.open()
        await self.link.subscribe(f"{topics.ROOT}/arena/{self._run}/#", self._take)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.link.close()

    def _take(self, message: Message) -> None:
        name = message.topic.partition(f"/{self._run}/")[2]
        self.known[name] = json.loads(message.payload) if message.payload else None
        if message.retain:
            self.kept.add(name)
        self._news.set()

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT):
            while not true():
                self._news.clear()
                await self._news.wait()

    @property
    def publisher(self) -> object:
        """Whether somebody publishes, as far as it is known."""
        return self.known.get("meta", {}).get("publisher")

    def moves(self, name: str = "1.1") -> list[str]:
        found = self.known.get(f"game/{name}/state")
        return found["moves"] if found else []


@pytest.mark.process
def test_a_late_viewer_sees_everything_after_one_subscription(broker: TestBroker, run: Run) -> None:
    run.tell(start("1.1"), *(ply(number) for number in range(2, 12)), start("1.2"), end("1.2"), TABLE)
    run.tell(start("0.1"), end("0.1", at=time.time() - 700))
    name = f"late-{broker.kind}"

    async def watch() -> None:
        publisher = Publisher(Folder(run.path), name, Access(parse_url(broker.url)))
        asked = asyncio.Event()
        working = asyncio.create_task(publisher.work(asked))
        async with Viewer(broker, name) as early:
            await early.until(
                lambda: {"meta", "standings", "game/1.1/state", "game/1.2/state"} <= early.known.keys()
            )
            async with Viewer(broker, name) as late:
                await late.until(lambda: late.known.keys() >= early.known.keys())
                assert late.kept == late.known.keys()
                assert late.known["meta"]["engines"][0] == {"name": "mine", "nodes": 500}
                assert (late.known["meta"]["state"], late.known["meta"]["publisher"]) == ("running", "online")
                assert late.known["game/1.1/state"] == early.known["game/1.1/state"]
                assert len(late.moves()) == 10
                assert late.known["game/1.2/state"]["winner"] == "a"
                assert "game/0.1/state" not in late.known
                # What comes after.
                run.tell(info(cp=77), ply(12, "g4g3"))
                await late.until(lambda: late.moves()[-1] == "g4g3" and "game/1.1/info/a" in late.known)
                assert late.known["game/1.1/info/a"]["cp"] == 77
            asked.set()
            await working
            await early.until(lambda: early.publisher == "offline")
            assert early.known.get("game/1.1/state") is None
        # Nothing that seems to go on stays behind.
        async with Viewer(broker, name) as later:
            await later.until(lambda: "standings" in later.known and "meta" in later.known)
            assert not [topic for topic in later.known if topic.startswith("game/")]

    asyncio.run(watch())


@pytest.mark.process
def test_the_end_of_a_run_is_the_end_of_its_publisher(broker: TestBroker, run: Run) -> None:
    run.tell(start("1.1"), ply(2))
    name = f"ends-{broker.kind}"

    async def watch() -> None:
        publisher = Publisher(Folder(run.path), name, Access(parse_url(broker.url)), keep=0.0)
        working = asyncio.create_task(publisher.work(asyncio.Event()))
        async with Viewer(broker, name) as viewer:
            await viewer.until(lambda: viewer.moves() == ["a1a2"])
            run.finish()
            async with asyncio.timeout(WAIT):
                await working
            await viewer.until(lambda: viewer.known.get("game/1.1/state") is None)
            await viewer.until(lambda: viewer.publisher == "offline")
            await viewer.until(lambda: "standings" in viewer.known)
            assert viewer.known["meta"]["state"] == "complete"
            assert viewer.known["standings"] == {"facts": {}, "state": {"ending": "complete"}}

    asyncio.run(watch())


@pytest.mark.process
def test_what_a_killed_publisher_left_is_taken_away(broker: TestBroker, run: Run) -> None:
    name = f"killed-{broker.kind}"

    async def watch() -> None:
        async with Viewer(broker, name) as viewer:
            await viewer.link.publish(topics.arena_state(name, "9.9"), '{"moves":["a1a2"]}', retain=True)
            publisher = Publisher(Folder(run.path), name, Access(parse_url(broker.url)))
            asked = asyncio.Event()
            working = asyncio.create_task(publisher.work(asked))
            await viewer.until(lambda: viewer.known.get("game/9.9/state", 0) is None)
            asked.set()
            await working

    asyncio.run(watch())


@pytest.mark.process
def test_a_killed_publisher_is_reported(broker: TestBroker, run: Run) -> None:
    name = f"dead-{broker.kind}"
    command = [
        sys.executable,
        "-c",
        COMMAND,
        str(run.path),
        "--broker",
        broker.url,
        "--name",
        name,
        "--mqtt",
        "3",
    ]

    async def watch() -> None:
        async with Viewer(broker, name) as viewer:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdout.readline() == f"publishing tafl/v1/arena/{name}/ at {broker.url}\n"
            await viewer.until(lambda: viewer.publisher == "online")
            process.kill()
            process.communicate(timeout=WAIT)
            await viewer.until(lambda: viewer.publisher == "offline")

    asyncio.run(watch())


@pytest.mark.process
def test_a_broker_that_hangs_or_restarts_misses_nothing(own_broker: TestBroker, run: Run) -> None:
    """While it hangs the publisher goes on, afterwards the newest state comes; one that lost all is told all."""
    run.tell(start("1.1"), ply(2), TABLE)

    async def watch() -> None:
        publisher = Publisher(Folder(run.path), "cup", Access(parse_url(own_broker.url)))
        asked = asyncio.Event()
        working = asyncio.create_task(publisher.work(asked))
        async with Viewer(own_broker, "cup") as viewer:
            await viewer.until(lambda: viewer.moves() == ["a1a2"])
            own_broker.pause()
            run.tell(*(ply(number) for number in range(3, 100)))
            await asyncio.sleep(0.5)
            own_broker.resume()
            await viewer.until(lambda: len(viewer.moves()) == 98)
            own_broker.kill()
            run.tell(ply(100, "c3c4"))
            own_broker.start()
            viewer.known.clear()
            await viewer.until(lambda: viewer.moves()[-1:] == ["c3c4"] and "standings" in viewer.known)
            # One that hangs does not keep us either.
            own_broker.pause()
            run.tell(ply(101))
            await asyncio.sleep(0.3)
            asked.set()
            async with asyncio.timeout(WAIT):
                await working
            own_broker.resume()

    asyncio.run(watch())


# The command


@pytest.mark.process
def test_the_command_is_told_to_end(broker: TestBroker, run: Run) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(run.path), "--broker", broker.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("publishing tafl/v1/arena/spring-cup/ at ")
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=WAIT)
    assert (process.returncode, out, errors) == (1, "", "")


def test_errors_are_sentences(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = f"mqtt://127.0.0.1:{free_port()}"
    # The priority would be lower for every test behind this one.
    monkeypatch.setattr(os, "nice", lambda _: 0)
    assert arena.main([str(run.path), "--broker", nobody]) == 3
    assert f"no MQTT broker at {nobody}" in capsys.readouterr().err
    assert arena.main([str(tmp_path / "nothing"), "--broker", nobody]) == 2
    assert "expected the folder of a run" in capsys.readouterr().err
    for wrong in (
        ["--name", "Ä/#"],
        ["--keep", "-1"],
        ["--broker", "http://x"],
        ["--broker", "mqtt://u:pw@x"],
    ):
        with pytest.raises(SystemExit) as ending:
            arena.main([str(run.path), *wrong])
        assert ending.value.code == 2
        assert "pw" not in capsys.readouterr().err
