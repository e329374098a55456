"""`hnefi mqtt arena RUN`: a run of the arena for viewers behind a broker.

The run is only read: we follow its live file and publish the changes, so that neither a slow, hanging or absent broker
nor this command can delay a game. Behind a slow broker, viewers see fewer intermediate states.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hnefi.protocol.hosts.argument_types import number
from hnefi.protocol.hosts.broker import topics
from hnefi.protocol.hosts.broker.client import Access, Link, LinkError, Message, Offline, Will
from hnefi.protocol.hosts.broker.flags import access, add_connection
from hnefi.protocol.hosts.exit_codes import INTERRUPTED
from hnefi.protocol.hosts.run_folder import LIVE, Folder, NoRun, describe, table
from hnefi.protocol.hosts.run_state import KEEP, Picture
from hnefi.protocol.hosts.shutdown import Asked
from hnefi.protocol.hosts.tail import Tail

from .command import parser

PAUSE = 0.2
"""Seconds between two reads of the live file, and so between two versions of a document."""
LOOK = 2.0
"""Seconds between two reads of the run's other files."""
LEFTOVERS = 10.0
"""Seconds after which a new subscriber has received all retained messages, even on a busy machine."""
DOCUMENT_LIMIT = 512 * 1024
"""Larger documents are not published: many brokers refuse them."""
MISSING, FAILED = 2, 3


class Publisher:
    """Publishes one run until it has ended and its last games have been removed."""

    def __init__(self, folder: Folder, run: str, way: Access, *, keep: float = KEEP) -> None:
        self.picture = Picture(keep=keep)
        self._folder = folder
        self._run = run
        folder.demand_live()
        self._about = describe(folder.config(), folder.path.name, run)
        self._tail = Tail(folder.path / LIVE)
        self._ending = ""
        # Tells late viewers that the run is no longer being published.
        offline = json.dumps({**self._about, "state": "unknown", "publisher": "offline"}).encode()
        self.link = Link(
            way, f"arena-{run}", will=Will(topics.arena_meta(run), offline), on_up=self._show_all
        )
        self._again = False
        self._told: set[str] = set()

    async def work(self, asked: asyncio.Event) -> None:
        """Publish until the end of the run, or until `asked` is set. LinkError if the broker refuses us."""
        async with self.link:
            telling = asyncio.create_task(self._tell())
            waiting = asyncio.create_task(asked.wait())
            ended = asyncio.create_task(self.link.closed())
            tidying = asyncio.create_task(self._take_leftovers())
            try:
                await asyncio.wait([telling, waiting, ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                # Not even a broker that hangs can keep us from ending.
                for task in (telling, waiting, ended, tidying):
                    task.cancel()
                await asyncio.wait([telling, waiting, ended, tidying])
                self._tail.close()
            if not telling.cancelled():
                telling.result()
            if not ended.cancelled():
                raise ended.result() or LinkError("the connection was closed")
            await self._say_goodbye()

    async def _tell(self) -> None:
        """Publish everything as it happens; returns when the run has ended and its games have been removed."""
        looked = -LOOK
        while True:
            more = self._read()
            now = asyncio.get_running_loop().time()
            if not more and now - looked >= LOOK:
                looked = now
                self._look()
            self.picture.tick()
            await self._publish()
            if not more:
                if self._ending and not self.picture.games and self.link.up:
                    return
                await asyncio.sleep(PAUSE)

    def _read(self) -> bool:
        events = self._tail.read()
        for event in events:
            self.picture.take(event)
        return bool(events)

    def _look(self) -> None:
        """Whether the run has ended, and with which tables."""
        summary = self._folder.summary()
        if summary is not None:
            self._ending = str(table(summary, "state").get("ending") or "ended")
            # A command for the administrator that contains a local path.
            table(summary, "facts").pop("command", None)
            if len(json.dumps(summary)) <= DOCUMENT_LIMIT:
                self._show("standings", summary)
        else:
            self._ending = "abandoned" if self._folder.abandoned() else ""
        if self._ending:
            self.picture.end_all()
        self._show("meta", {**self._about, "state": self._ending or "running", "publisher": "online"})

    def _show(self, topic: str, document: Mapping[str, Any]) -> None:
        if self.picture.documents.get(topic) != document:
            self.picture.show(topic, document)

    async def _show_all(self) -> None:
        """Publish everything again, because a broker that was gone may have lost it."""
        self._again = True

    async def _publish(self) -> None:
        """Publish what has changed; what does not reach the broker is published after the next connection."""
        if not self.link.up:
            return
        if self._again:
            self._again = False
            self.picture.touch_all()
        with contextlib.suppress(Offline):
            for topic, report in self.picture.thoughts():
                await self.link.publish(self._topic(topic), report, qos=0)
            for topic in list(self.picture.changed):
                document = self.picture.payload(topic)
                if (document or topic in self._told) and len(document) <= DOCUMENT_LIMIT:
                    self._told.add(topic)
                    await self.link.publish(self._topic(topic), document, retain=True)
                    if not document:
                        self._told.discard(topic)
                self.picture.changed.pop(topic)

    async def _take_leftovers(self) -> None:
        """Remove the games of an earlier publisher of the same run that could not do so itself."""
        found: asyncio.Queue[str] = asyncio.Queue()
        prefix = self._topic("")

        def note(message: Message) -> None:
            # We may also receive our own messages.
            if message.retain and message.payload and message.topic.removeprefix(prefix) not in self._told:
                found.put_nowait(message.topic)

        everything = topics.arena_state(self._run, topics.ANY)
        await self.link.subscribe(everything, note)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEFTOVERS):
                while True:
                    topic = await found.get()
                    if topic.removeprefix(prefix) not in self._told:
                        with contextlib.suppress(Offline):
                            await self.link.publish(topic, b"", retain=True)
        await self.link.unsubscribe(everything)

    async def _say_goodbye(self) -> None:
        """Leave nothing behind that looks like a running game."""
        for name in self.picture.games:
            self.picture.drop(name)
        state = self._ending or "unknown"
        self._show("meta", {**self._about, "state": state, "publisher": "offline"})
        if self.link.up:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._publish()

    def _topic(self, part: str) -> str:
        return f"{topics.ROOT}/arena/{self._run}/{part}"


def main(argv: list[str]) -> int:
    """`hnefi mqtt arena`."""
    options = parser(
        "arena",
        "Shows a run of `hnefi arena … --live` to viewers through a broker: games, standings and every board are\n"
        "retained messages, so that a late viewer sees everything at once; the engines' thinking is not retained.\n"
        "The arena is never delayed. Ends when the run has ended and its last games have been removed.",
        [
            "arena-20260301-120000",
            "cup --broker mqtts://broker.example --user hnefi-arena --password-file arena.password",
            "cup --name spring-cup --keep 60",
        ],
    )
    options.add_argument("run", metavar="RUN", help="the run's folder")
    options.add_argument(
        "--broker",
        metavar="URL",
        default=os.environ.get("HNEFI_BROKER") or "mqtt://127.0.0.1:1883",
        help="where to publish (default: HNEFI_BROKER, else mqtt://127.0.0.1:1883)",
    )
    options.add_argument("--name", help="the run's name in topics (default: derived from the folder's)")
    options.add_argument(
        "--keep",
        type=number(0, 86400, "seconds"),
        default=KEEP,
        metavar="S",
        help="how long ended games are shown (default: 600 s)",
    )
    add_connection(options)
    arguments = options.parse_args(argv)
    way = access(options, arguments, arguments.broker)
    path = Path(arguments.run)
    try:
        run = topics.level(arguments.name, "--name") if arguments.name else topics.slug(path.resolve().name)
    except ValueError as error:
        options.error(str(error))
    # The games take precedence on the processor.
    with contextlib.suppress(OSError):
        os.nice(5)
    try:
        return Asked().run(lambda asked: _publish(asked, Folder(path), run, way, arguments.keep))
    except NoRun as error:
        print(f"hnefi mqtt arena: {error}", file=sys.stderr)
        return MISSING
    except LinkError as error:
        print(f"hnefi mqtt arena: {error}", file=sys.stderr)
        return FAILED


async def _publish(asked: Asked, folder: Folder, run: str, way: Access, keep: float) -> int:
    publisher = Publisher(folder, run, way, keep=keep)
    print(f"publishing {topics.ROOT}/arena/{run}/ at {way.address}", flush=True)
    await asked.unless(publisher.link.open())
    if not asked.is_set():
        await publisher.work(asked)
    return INTERRUPTED if asked.is_set() else 0
