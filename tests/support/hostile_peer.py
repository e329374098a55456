"""Whoever is at the other end of an adapter, and means it no good; knows no convention by itself.

    python -I -S hostile_peer.py WHERE KIND DONE [WANTED=>REPLY]...

WHERE is `stdio`, `connect=HOST:PORT` or `listen=HOST:PORT`. It waits until WANTED has come and writes REPLY (Python's
escapes for bytes), one after the other, then does KIND; what it writes is spoilt from the last REPLY, which is a whole
message. When it has, it makes the file DONE. `listen` serves one connection, and says `listening` before it.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

PIECE = b"x" * 65_536
GARBAGE = bytes(random.Random(1).choices(range(256), k=65_536)) + b"\x00\xff\xfe\x1b[2J\xc3\x28\n"


class Ends:
    """The two directions."""

    def __init__(self, where: str) -> None:
        self.link: socket.socket | None = None
        how, _, place = where.partition("=")
        if how != "stdio":
            host, _, port = place.rpartition(":")
            if how == "connect":
                self.link = socket.create_connection((host, int(port)))
            else:
                listener = socket.create_server((host, int(port)))
                print("listening", flush=True)
                self.link = listener.accept()[0]
                listener.close()
        self._seen = b""

    def read(self) -> bytes:
        return os.read(0, 65_536) if self.link is None else self.link.recv(65_536)

    def write(self, data: bytes) -> None:
        if self.link is not None:
            self.link.sendall(data)
            return
        while data:
            data = data[os.write(1, data) :]

    def wait_for(self, wanted: bytes) -> None:
        if not wanted:
            return
        while wanted not in self._seen:
            data = self.read()
            if not data:
                sys.exit()
            self._seen += data
        self._seen = self._seen.partition(wanted)[2]


def endless(ends: Ends, _: bytes) -> None:
    """No end of a line: 64 MiB, if somebody takes them."""
    for _number in range(1_024):
        ends.write(PIECE)


def vanish(ends: Ends, message: bytes) -> None:
    """Gone within a message."""
    ends.write(message[: len(message) // 2])


def one_by_one(ends: Ends, message: bytes) -> None:
    """A message byte by byte."""
    for at in range(len(message)):
        ends.write(message[at : at + 1])
        time.sleep(0.001)


KINDS: dict[str, Callable[[Ends, bytes], None]] = {
    "garbage": lambda ends, _: ends.write(GARBAGE),
    "bytes": one_by_one,
    "overlong": lambda ends, message: ends.write(PIECE * 16 + b"\n" + message),
    "endless": endless,
    "vanish": vanish,
    "deaf": lambda _ends, _message: None,
    "twice": lambda ends, message: ends.write(message * 2),
    "flood": lambda ends, message: ends.write(message * 10_000),
}
"""`deaf` neither reads nor writes any more."""


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(f"{__doc__}\nkinds: {', '.join(KINDS)}")
    where, kind, done, *exchange = sys.argv[1:]
    ends = Ends(where)
    reply = b""
    for text in exchange:
        if reply:
            ends.write(reply)
        wanted, _, answer = text.partition("=>")
        ends.wait_for(wanted.encode())
        reply = answer.encode("latin-1").decode("unicode_escape").encode("latin-1")
    with contextlib.suppress(OSError):
        KINDS[kind](ends, reply)
    Path(done).touch()
    if kind == "deaf":
        time.sleep(3_600)
    with contextlib.suppress(OSError):
        while kind != "vanish" and ends.read():
            pass


if __name__ == "__main__":
    main()
