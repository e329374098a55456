"""`hnefi web --engines`: games of pages on engine hosts behind a broker, and what becomes of them when one is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from mqtt_brokers import TestBroker, password, require, start_dying_with_us
from mqtt_brokers import running as broker_running
from mqtt_parts import fake, until
from mqtt_parts import serving as host
from web_parts import WAIT, Tab, policy, serving, tab

from hnefi.gui_adapter.web import command
from hnefi.protocol.hosts.broker import pool as pool_module
from hnefi.protocol.hosts.broker.pool import Pool
from hnefi.protocol.hosts.broker.values import Access, parse_url

pytestmark = [pytest.mark.broker, pytest.mark.process, pytest.mark.timeout(600)]

IN_POOL: dict[str, Any] = {"pool": True, "shares": True, "per_user": 8}


def play(scene: Callable[[TestBroker], Awaitable[None]], folder: Path, **how: Any) -> None:
    async def bounded(broker: TestBroker) -> None:
        async with asyncio.timeout(WAIT * 2):
            await scene(broker)

    for broker in broker_running("mosquitto", folder, **how):
        asyncio.run(bounded(broker))


@contextlib.asynccontextmanager
async def site(broker: TestBroker, prefix: str = "", **settings: Any) -> AsyncIterator[tuple[Pool, str]]:
    """A web server whose engines are those of the hosts at a broker."""
    login = {"user": "alice", "password": password("alice")} if broker.club else {}
    async with (
        Pool(Access(parse_url(broker.url + prefix), **login)) as pool,
        serving(policy=policy(settings.pop("command", None)), engines=pool, **settings) as (_, url),
    ):
        yield pool, url


@contextlib.asynccontextmanager
async def host_process(broker: TestBroker, eid: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """An engine host as an operator starts it."""
    words = [
        "mqtt",
        "serve",
        "--pool",
        "--broker",
        broker.url,
        "--eid",
        eid,
        "--per-user",
        "8",
        "--no-record",
    ]
    words += ["--user", "hnefi-engine", "--password-file", str(broker.password_file("hnefi-engine"))]
    with (broker.folder / f"{eid}.log").open("wb") as log:
        process = start_dying_with_us(
            [sys.executable, "-m", "hnefi.tools.cli", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, WAIT)
        finally:
            process.kill()


async def opened(page: Tab, variant: str = "") -> str:
    """A session of an engine that does not know its rules, which has no state."""
    await page.say({"t": "open", "id": 1, "variant": variant})
    sid = str((await page.kind("opened"))["s"])
    await page.line(sid, "isready", n=1)
    await page.text("readyok")
    return sid


def test_a_host_that_is_killed_leaves_its_games_to_another_one(tmp_path: Path) -> None:
    async def scene(broker: TestBroker) -> None:
        async with (
            host_process(broker, "east") as east,
            host_process(broker, "west"),
            site(broker) as (pool, url),
            tab(url) as one,
            tab(url) as two,
        ):
            await until(lambda: len(pool.ready) == 2, "both hosts")
            games = [(page, await page.open("brandubh")) for page in (one, two, one, two)]
            await until(lambda: all(h.sessions == 2 for h in pool.ready), f"shared load: {pool.hosts}")
            moves = [["d1c1"], ["d1e1"], ["a4a3"], ["a4a5"]]
            for (page, sid), played in zip(games, moves, strict=True):
                await page.line(sid, f"position startpos moves {played[0]}")
                await page.state(sid, *played)
                await page.line(sid, "go infinite", n=1)
                await page.hear(lambda frame, sid=sid: frame["t"] == "info" and frame["s"] == sid)
            async with aiohttp.ClientSession() as client, client.get(f"{url}/healthz") as answer:
                engines = (await answer.json())["engines"]
            assert engines == {"connected": True, "hosts": 2, "sessions": 4, "max": 16}
            os.kill(east.pid, signal.SIGKILL)
            moved = [process for process in pool._processes if process.session.eid == "east"]
            assert len(moved) == 2
            await until(lambda: all(p.exit for p in moved), "the loss")
            await until(lambda: {p.session.eid for p in pool._processes} == {"west"}, "the move")
            await until(lambda: len(pool._processes) == 4, "all of them")
            for (page, sid), played in zip(games, moves, strict=True):
                await page.line(sid, "stop", n=2)
                best = await page.hear(
                    lambda f, sid=sid: f["t"] == "line" and f["s"] == sid and f["text"].startswith("bestmove")
                )
                assert best["n"] == 1
                await page.line(sid, f"play {best['text'].split()[1]}", n=3)
                await page.state(sid, *played, best["text"].split()[1])
            told = [
                (frame["s"], frame["text"])
                for page in (one, two)
                for frame in page.frames
                if frame["t"] == "line" and "started again" in frame["text"]
            ]
            assert len(told) == 2
            assert len({sid for sid, _ in told}) == 2
            assert all("engine host east: the service is offline" in text for _, text in told)
            # Nobody hears what is said in another's game.
            for page in (one, two):
                own = {sid for other, sid in games if other is page}
                assert {frame["s"] for frame in page.frames if "s" in frame} == own
                assert len([f for f in page.frames if f.get("text", "").startswith("bestmove")]) == 2

    require("mosquitto")
    # With names, passwords and rights, as a club has them.
    play(scene, tmp_path, club=True)


def test_a_broker_that_is_away_is_named_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "FIRST_WAIT", 0.2)
    monkeypatch.setattr(pool_module, "SHORT_CUT", 0.05)
    monkeypatch.setattr(pool_module, "SETTLING", 0.5)

    async def scene(broker: TestBroker) -> None:
        broker.kill()
        async with site(broker, command=fake()) as (pool, url), tab(url) as page:
            await page.say({"t": "open", "id": 1})
            error = await page.kind("error")
            assert error["code"] == "engine_failed"
            assert error["text"].startswith(
                f"the engine hosts cannot be reached: no MQTT broker at {broker.url}"
            )
            assert not pool.connected
            broker.start()
            await until(lambda: pool.connected, "the broker")
            await page.say({"t": "open", "id": 1})
            error = await page.kind("error")
            assert error["code"] == "engine_failed"
            assert f"no engine host at {broker.url} answers" in error["text"]
            async with host(broker.url, fake(), eid="late", **IN_POOL):
                sid = await opened(page)
                broker.kill()
                heard = await page.text("info string error lost the connection to the engine hosts")
                assert heard["s"] == sid
                # What is asked meanwhile is answered afterwards, once.
                await page.line(sid, "go nodes 5", n=2)
                broker.start()
                await page.text("info string connected to the engine hosts again")
                assert (await page.text("bestmove"))["n"] == 2
                assert [process.session.eid for process in pool._processes] == ["late"]

    require("mosquitto")
    play(scene, tmp_path)


def test_full_and_leaving_hosts_pass_their_games_on(tmp_path: Path) -> None:
    async def scene(broker: TestBroker) -> None:
        async with (
            # Another club at the same broker, which has room for all.
            host(broker.url, fake(), eid="elsewhere", **IN_POOL),
            site(broker, "/club/a", command=fake(), per_page=9) as (pool, url),
            tab(url) as page,
        ):
            there = f"{broker.url}/club/a"
            small = host(there, fake(), eid="small", **IN_POOL, sessions=1)
            large = host(there, fake(), eid="large", **IN_POOL, sessions=3)
            async with large:
                async with small:
                    await until(lambda: len(pool.ready) == 2, "both hosts")
                    for _ in range(4):
                        await opened(page)
                    where = sorted(process.session.eid for process in pool._processes)
                    assert where == ["large", "large", "large", "small"]
                    await page.say({"t": "open", "id": 1})
                    error = await page.kind("error")
                    assert error["text"] == "all 4 games of the 2 engine hosts are taken: try again later"
                    sid = next(p.session.sid for p in pool._processes if p.session.eid == "large")
                    process = next(p for p in pool._processes if p.session.sid == sid)
                    process.kill()
                    # Its page gets another one, on the host that has room again.
                    await page.text("info string error Fake 1.0 has ended: killed by SIGKILL: started again")
                # The small one is gone, and the large one full.
                heard = await page.text("info string error engine failed")
                assert "all 3 games of the engine host are taken" in heard["text"]
                await until(lambda: len(pool._processes) == 3, "the others")
            await until(lambda: not pool.ready, "the end of the hosts")

    require("mosquitto")
    play(scene, tmp_path)


def test_a_broker_that_refuses_us_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require("mosquitto")
    for broker in broker_running("mosquitto", tmp_path, club=True):
        wrong = tmp_path / "wrong"
        wrong.write_text("no password of anybody\n")
        wrong.chmod(0o600)
        words = ["--engines", broker.url, "--user", "alice", "--password-file", str(wrong), "--port", "0"]
        assert command.main([*words, "--no-record"]) == 3
        said = capfd.readouterr()
        assert f"hnefi web: --engines: {broker.url} refuses user 'alice'" in said.err
        assert said.out == ""


@pytest.mark.parametrize("url", ["http://x", "mqtt://a:b@x", "mqtt://x/?q", "x"])
def test_a_wrong_address_is_said(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--engines", url])
    assert ended.value.code == 2
    assert "broker" in capsys.readouterr().err
