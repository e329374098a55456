"""`hnefi bench web` against a server of this process: figures that can be, and a page that is let go."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import pytest
from web_parts import WAIT, serving

from hnefi.tools.bench import command as bench
from hnefi.tools.bench import web

pytestmark = pytest.mark.process


def test_round_trips_are_measured_by_turns_and_beside_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "OPENINGS", 2)

    async def scene() -> None:
        async with serving() as (server, url), aiohttp.ClientSession() as client:
            visitor = web.Visitor(client, url)
            opens, more, piped, through, adds = [row async for row in web.echoes(visitor, 3)]
            assert [row.tries for row in (opens, more, piped, through, adds)] == [1, 2, 3, 3, 3]
            assert 0 < piped.median <= piped.max
            assert 0 <= adds.median <= through.max
            greeted, beside = [row async for row in web.crowd(visitor, 5, 2)]
            assert (greeted.tries, beside.tries) == (4, 2)
            assert greeted.median > 0
            while server.pages:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(scene(), WAIT))


def test_a_server_that_refuses_is_an_error_with_its_sentence() -> None:
    async def scene() -> None:
        async with (
            serving(sessions=0) as (_, url),
            aiohttp.ClientSession() as client,
            web.Visitor(client, url).page() as page,
        ):
            with pytest.raises(OSError, match="the server says: all 0 games"):
                await page.open()

    asyncio.run(asyncio.wait_for(scene(), WAIT))


@pytest.mark.skipif(sys.platform != "linux", reason="processor time is read from /proc")
def test_a_server_that_does_not_start_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        bench.main(["web", "--engines", "mqtt://"])
    assert ended.value.code == 3
    assert "expected mqtt://HOST" in capsys.readouterr().err
