"""The server behind nginx and Caddy, with the lines of docs/examples, below a path of its own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import aiohttp
import pytest
from leftover_processes import wait_until
from mqtt_parts import fake
from web_parts import WAIT, Tab, policy, serving

from hnefi.gui_adapter.web.addresses import HEADER, network

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
HOST = "club.example"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


def configured(name: str, behind: int, port: int, folder: Path) -> list[str]:
    """The command of a proxy that listens at `port`, by its example."""
    text = (
        (EXAMPLES / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[name])
        .read_text()
        .replace("8080", str(behind))
    )
    file = folder / "config"
    if name == "nginx":
        text = text.replace("8081", str(port)).replace("/tmp/hnefi-nginx.pid", str(folder / "pid"))
        file.write_text(text)
        return ["nginx", "-p", str(folder), "-c", str(file)]
    # No certificate, and nothing that is administered from elsewhere.
    file.write_text("{\n\tadmin off\n}\n" + text.replace("club.example {", f"http://club.example:{port} {{"))
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(file)]


# Caddy throws away what its client says of others; nginx adds its client on the right.
@pytest.mark.parametrize(("name", "believed"), [("nginx", "1.2.3.4"), ("caddy", "127.0.0.1")])
def test_behind_a_proxy_below_a_path(name: str, believed: str, tmp_path: Path) -> None:
    path = os.environ["PATH"] + ":/usr/sbin"
    if shutil.which(name, path=path) is None:
        pytest.skip(f"{name} is not installed")

    async def scene() -> None:
        async with (
            serving(policy=policy(fake()), names=(HOST,), proxies=(network("127.0.0.1"),)) as (server, url),
            aiohttp.ClientSession() as client,
        ):
            port = free_port()
            command = configured(name, int(url.rpartition(":")[2]), port, tmp_path)
            environment = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
            process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
            try:
                await asyncio.to_thread(wait_until, lambda: answers(port) or process.poll() is not None)
                assert process.poll() is None, process.communicate()
                host = {"Host": f"{HOST}:{port}"}
                front = f"http://127.0.0.1:{port}"
                async with client.get(f"{front}/tafl", headers=host, allow_redirects=False) as answer:
                    assert answer.status in (301, 302)
                    assert answer.headers["Location"].endswith("/tafl/")
                for part in ("", "static/app.js", "healthz"):
                    async with client.get(f"{front}/tafl/{part}", headers=host) as answer:
                        assert answer.status == 200, part
                        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                        assert part != "healthz" or json.loads(await answer.text())["state"] == "ready"
                with pytest.raises(aiohttp.WSServerHandshakeError):
                    await client.ws_connect(f"{front}/tafl/ws", headers=host, origin="http://evil.example")
                origin = f"http://{HOST}:{port}"
                made_up = {**host, HEADER: "1.2.3.4"}
                async with client.ws_connect(
                    f"{front}/tafl/ws", headers=made_up, origin=origin
                ) as web_socket:
                    # Here client and proxy have one address, behind which the server does not look.
                    assert [page.address for page in server.pages] == [believed]
                    page = Tab(web_socket)
                    await page.hello()
                    await page.say({"t": "open", "id": 1})
                    await page.kind("opened")
            finally:
                process.terminate()
                await asyncio.to_thread(process.communicate)

    async def bounded() -> None:
        async with asyncio.timeout(WAIT):
            await scene()

    asyncio.run(bounded())
