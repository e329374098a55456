"""What has to be mended around the MQTT library: how a connection begins and ends, and its sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

LIBRARY_LOG = logging.getLogger("hnefi.mqtt.library")
LIBRARY_LOG.setLevel(logging.CRITICAL)
CLOSED = "the connection was closed before the broker had answered"
THREAD = 0.3
"""Seconds to wait for the connecting thread when the connection is no longer wanted."""
PARTING = 2.0
"""How long a goodbye may take, in seconds."""


def mend_writing(client: aiomqtt.Client) -> None:
    """Where the library asks to be told that it may write, the socket may be closed before the loop hears of it; its
    number is then wrong, or already another socket's. Here the loop looks first."""
    loop, inner = asyncio.get_running_loop(), client._client

    def write() -> None:
        try:
            inner.loop_write()
        except Exception as error:  # noqa: BLE001 - as the library does: whatever it was, the connection is lost
            if not client._disconnected.done():
                client._disconnected.set_exception(error)

    def watch(open_socket: Any) -> None:
        if open_socket.fileno() >= 0:
            loop.add_writer(open_socket.fileno(), write)

    def begin(_client: Any, _userdata: Any, open_socket: Any) -> None:
        loop.call_soon_threadsafe(watch, open_socket)

    def end(_client: Any, _userdata: Any, open_socket: Any) -> None:
        if open_socket.fileno() >= 0:
            loop.remove_writer(open_socket.fileno())

    inner.on_socket_register_write = begin
    inner.on_socket_unregister_write = end


def choose(client: aiomqtt.Client, admit: Callable[[str, int], bool]) -> None:
    """Only messages that `admit` wants, by topic and size, are made into something; the others are acknowledged."""
    inner = client._client
    take = inner.on_message

    def on_message(paho: Any, userdata: Any, message: Any) -> None:
        if take is not None and admit(message.topic, len(message.payload)):
            take(paho, userdata, message)

    inner.on_message = on_message


async def enter(client: aiomqtt.Client) -> None:
    """Connect. The library waits its whole time for a broker that has closed the connection; we do not."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    clean_up = client._client.on_socket_close

    def close(*arguments: Any) -> None:
        clean_up(*arguments)  # type: ignore[misc]
        loop.call_soon_threadsafe(closed.set)

    client._client.on_socket_close = close
    connect, connected, given_up = client._client_connect, asyncio.Event(), False

    def connect_for_somebody() -> None:
        """In a thread, which cannot be cancelled: it cleans up if its result is no longer wanted."""
        try:
            connect()
        finally:
            if given_up:
                _close(client)
            else:
                loop.call_soon_threadsafe(connected.set)

    client._client_connect = connect_for_somebody  # type: ignore[method-assign]
    entering = asyncio.ensure_future(client.__aenter__())
    # A cancelled caller gets no refusal; without this asyncio would log that it was never retrieved.
    for refused in (client._connected, entering):
        refused.add_done_callback(lambda future: future.cancelled() or future.exception())
    watching = asyncio.ensure_future(closed.wait())
    try:
        await asyncio.wait([entering, watching], return_when=asyncio.FIRST_COMPLETED)
        # A refusal arrives together with the end of the socket.
        await asyncio.wait([entering], timeout=0.05)
        if not entering.done():
            raise aiomqtt.MqttError(CLOSED)
    finally:
        for task in (entering, watching):
            task.cancel()
        with contextlib.suppress(TimeoutError):
            # What it has begun to tell the loop is to be told before it is undone.
            async with asyncio.timeout(THREAD):
                await connected.wait()
        given_up = not connected.is_set()
        await asyncio.wait([entering, watching])
        if client._connected.cancelled():
            # As the library does it after a time-out: it would stumble over this at the end of the connection.
            client._connected = asyncio.get_running_loop().create_future()
    entering.result()


async def part(client: aiomqtt.Client, *, goodbye: bool = True) -> None:
    """Disconnect, with a goodbye where the broker still listens; afterwards the socket is closed in any case."""
    if not goodbye:
        cut(client)
        await asyncio.sleep(0)
    with contextlib.suppress(aiomqtt.MqttError, TimeoutError, OSError, ValueError):
        async with asyncio.timeout(PARTING):
            await client.__aexit__(None, None, None)
    # The library leaves it open after an attempt that timed out.
    cut(client)
    await asyncio.sleep(0)
    _close(client)
    if client._misc_task is not None:
        client._misc_task.cancel()
        await asyncio.wait([client._misc_task])


def leave_nothing(client: aiomqtt.Client) -> None:
    """On MQTT 5 a goodbye ends what the broker keeps of us, too, which would take what is shared out among a pool."""
    goodbye = Properties(PacketTypes.DISCONNECT)  # type: ignore[no-untyped-call]
    goodbye.SessionExpiryInterval = 0
    paho = client._client
    paho.disconnect = partial(paho.disconnect, properties=goodbye)  # type: ignore[method-assign]


def _close(client: aiomqtt.Client) -> None:
    """Close the socket if it is still open, and tell its watcher unless the loop is gone."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        client._client._sock_close()


def cut(client: aiomqtt.Client) -> None:
    """End the socket, if there is one; the library sees that and cleans up."""
    open_socket = client._client.socket()
    if open_socket is not None:
        with contextlib.suppress(OSError), _duplicate(open_socket.fileno()) as same:
            same.shutdown(socket.SHUT_RDWR)


def no_delay(client: aiomqtt.Client) -> None:
    """The library passes the option to plain sockets only; behind WebSockets Nagle's algorithm would cost 40 ms."""
    open_socket = client._client.socket()
    if open_socket is not None:
        with contextlib.suppress(OSError), _duplicate(open_socket.fileno()) as same:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _duplicate(descriptor: int) -> socket.socket:
    return socket.socket(fileno=os.dup(descriptor))


def plain(error: BaseException) -> str:
    """The library's words without numbers in brackets."""
    text = str(error) or type(error).__name__
    return text.partition("] ")[2] or text if text.startswith("[Errno") else text
