"""What one address may have and ask for, and whom a server believes about addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from mqtt_parts import fake
from web_parts import WAIT, Tab, policy, serving

from hnefi.gui_adapter.web import addresses, command
from hnefi.gui_adapter.web.addresses import HEADER, Requests, client_of, network

PROXIES = (network("127.0.0.1"), network("10.0.0.0/8"), network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "said", "client"),
    [
        ("203.0.113.7", [], "203.0.113.7"),
        # Nobody who is not trusted is believed.
        ("203.0.113.7", ["198.51.100.1"], "203.0.113.7"),
        ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        # What the client has made up stands on the left.
        ("127.0.0.1", ["1.2.3.4, 198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", ["10.9.9.9, 198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", ["1.2.3.4", "198.51.100.1,10.1.2.3"], "198.51.100.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("127.0.0.1", ["unknown"], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1, <script>"], "127.0.0.1"),
        ("127.0.0.1", [", ,"], "127.0.0.1"),
        ("::ffff:127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["[2001:db8::7]:99"], "2001:db8::/64"),
        ("2001:db8::1:2:3:4", [], "2001:db8::/64"),
        ("2001:db8:0:1::2", [], "2001:db8:0:1::/64"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_whose_request_it_is(peer: str, said: list[str], client: str) -> None:
    assert client_of(peer, said, PROXIES) == client


def test_without_a_trusted_proxy_nobody_is_believed() -> None:
    assert client_of("127.0.0.1", ["198.51.100.1"], ()) == "127.0.0.1"


def test_requests_come_at_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(addresses.time, "monotonic", lambda: now)
    requests = Requests(2.0)
    assert [requests.admits("a") for _ in range(12)] == [True] * 10 + [False] * 2
    assert requests.admits("b")
    now += 1.0
    assert [requests.admits("a") for _ in range(3)] == [True, True, False]
    now += 1000.0
    assert sum(requests.admits("a") for _ in range(20)) == 10
    assert all(Requests(0.0).admits("a") for _ in range(100))


def test_no_more_addresses_are_remembered_than_fit() -> None:
    requests = Requests(1.0)
    for number in range(2 * addresses.KEPT):
        assert requests.admits(str(number))
    assert len(requests._known) == addresses.KEPT


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await scene()

    asyncio.run(bounded())


@pytest.mark.process
def test_one_address_does_not_take_all_that_there_is() -> None:
    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), per_address=2, proxies=(network("127.0.0.1"),)) as (server, url),
            aiohttp.ClientSession() as client,
        ):

            async def page(address: str) -> Tab:
                socket = await client.ws_connect(f"{url}/ws", origin=url, headers={HEADER: address})
                tab = Tab(socket)
                await tab.hello()
                return tab

            async def opens(tab: Tab, frame: dict[str, object]) -> str:
                await tab.say({"id": 1, **frame})
                answer = await tab.hear(lambda f: f["t"] in ("opened", "made", "error"))
                return str(answer.get("text", "yes"))

            one, two = await page("198.51.100.1"), await page("198.51.100.1")
            other = await page("198.51.100.2")
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await page("198.51.100.1")
            assert refused.value.status == 429
            assert await opens(one, {"t": "open"}) == "yes"
            assert await opens(two, {"t": "table", "do": "make"}) == "yes"
            for frame in ({"t": "open"}, {"t": "table", "do": "make"}):
                said = await opens(one, frame)
                assert said == "2 games are open from your address: close one first"
            assert await opens(other, {"t": "open"}) == "yes"
            # A page that has gone makes room for another one; its game is kept for a while, and still counts.
            await one.socket.close()
            while len(server.pages) > 2:
                await asyncio.sleep(0.01)
            third = await page("198.51.100.1")
            assert "2 games are open" in await opens(third, {"t": "open"})
            async with client.get(f"{url}/healthz") as answer:
                counts = (await answer.json())["counts"]
            assert (counts["refused"], counts["refused_by_address"], counts["pages_refused"]) == (3, 4, 1)

    play(scene)


def test_one_address_does_not_ask_without_end() -> None:
    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), rate=1.0, proxies=(network("127.0.0.1"),)) as (_, url),
            aiohttp.ClientSession() as client,
        ):

            async def asked(address: str) -> int:
                async with client.get(f"{url}/healthz", headers={HEADER: address}) as answer:
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
                    if answer.status == 429:
                        assert answer.headers["Retry-After"] == "1"
                    return answer.status

            seen = [await asked("198.51.100.1") for _ in range(40)]
            assert seen[:5] == [200] * 5
            assert 429 in seen
            assert await asked("198.51.100.2") == 200
            async with client.get(f"{url}/healthz") as answer:
                assert (await answer.json())["counts"]["requests_refused"] == seen.count(429)

    play(scene)


@pytest.mark.parametrize(
    "words", [["--trusted-proxy", "proxy.example"], ["--per-address", "0"], ["--rate", "x"]]
)
def test_a_wrong_limit_is_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert words[0] in capsys.readouterr().err
