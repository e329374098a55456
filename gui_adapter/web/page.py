"""One browser page: handles its frames, one after another."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from hnefi.engine import about
from hnefi.protocol.hosts.sessions.engine_process import RequestError, Wanted

from . import catalogue, fairness, frames, judging, levels, puzzles, records, workshop
from .frames import FrameError
from .outbox import Outbox
from .site import Site
from .tables import Guest, Tables
from .watching import Viewer
from .web_session import WebSession

OPTIONS_LIMIT = 32
WAITING_LIMIT = 8
"""Maximum of one page's unanswered questions about puzzles and lessons."""


class Page:
    """A page at `address` and its sessions. `full` is called if the browser does not read its frames."""

    def __init__(self, site: Site, tables: Tables, full: Callable[[], None], address: str = "") -> None:
        self.box = Outbox(full)
        self.known = False
        """Whether it has sent a valid `hello`."""
        self._site = site
        self._rate = frames.Rate()
        self._sessions: dict[str, WebSession] = {}
        self.address = address
        self._guest = Guest(tables, self.box, address)
        self._viewer = Viewer(site.runs, site.matches, self.box)
        settings = site.settings
        kept = settings.journal is not None and not settings.token
        self._puzzles = puzzles.Desk(site.helper, kept)
        self._levels = levels.Levels(kept)
        self._waiting: set[asyncio.Task[None]] = set()
        self._study = fairness.Study(
            site.studies,
            lambda frame: self.box.put(frame, ("fair",)),
            lambda error: self._refuse(error, error.ident),
        )

    async def take(self, data: str | bytes) -> bool:
        """Handle a message of the browser; False if it should be disconnected."""
        if not self._rate.admits():
            self._site.counts["dropped"] += 1
            if self._rate.complains():
                text = f"expected at most {frames.RATE:g} frames a second; the rest is dropped"
                self.box.put({"t": "error", "code": "too_fast", "text": text})
            return True
        try:
            frame = frames.read(data)
            if not self.known:
                return self._greet(frame)
            await self._carry_out(frame)
        except FrameError as error:
            self._refuse(error, error.ident, error.sid)
        except RequestError as error:
            self._refuse(error, frame.get("id"))
        return True

    def _refuse(self, error: RequestError, ident: object, sid: str = "") -> None:
        frame: dict[str, Any] = {"t": "error", "code": error.code, "text": str(error)}
        if isinstance(ident, int):
            frame["id"] = ident
        if sid:
            frame["s"] = sid
        self.box.put(frame)

    def _greet(self, frame: Mapping[str, Any]) -> bool:
        token = self._site.settings.token
        if frame["t"] != "hello":
            raise FrameError("bad_frame", f"{frame['t']}: expected hello first", frame.get("id"))
        said = frames.text(frame, "token", 512)
        if token and not hmac.compare_digest(token.encode(), said.encode()):
            self.box.put({"t": "error", "code": "token", "text": "expected the token of this server"})
            return False
        self.known = True
        settings = self._site.settings
        self.box.put(
            {
                "t": "welcome",
                "version": about.VERSION,
                **catalogue.offer(),
                "default": {"variant": settings.policy.variant, "player": settings.policy.player},
                "limits": {
                    "sessions": settings.per_page,
                    "import": frames.IMPORT_LIMIT,
                    "back": settings.back,
                },
            }
        )
        for sid, after in _resumed(frame):
            session = self._site.sessions.get(sid)
            if session is None:
                self._refuse(FrameError("gone", "this game is no longer on the server"), None, sid)
                continue
            self._adopt(session, after)
        return True

    def _adopt(self, session: WebSession, after: int | None) -> None:
        """Take over a session; another page that had it no longer receives its frames."""
        session.left = None
        self._sessions[session.sid] = session
        session.outgoing.attach(self.box, after)

    async def _carry_out(self, frame: Mapping[str, Any]) -> None:
        match frame["t"]:
            case "hello":
                raise FrameError("bad_frame", "hello: expected it once", frame.get("id"))
            case "open":
                self._open(frame)
            case "close":
                session = self._session(frame)
                del self._sessions[session.sid]
                self._site.close(session, "closed by the page")
            case "line":
                session = self._session(frame)
                number, text = frames.number(frame, "n"), frames.text(frame, "text", 64 * 1024)
                session.receive((f"#{number} {text}" if number else text).encode("utf-8", "replace"))
            case "import":
                # Reading a long record takes longer than others should have to wait.
                self.box.put(await asyncio.to_thread(records.imported, frame))
            case "export":
                self.box.put(await asyncio.to_thread(records.exported, frame))
            case "table":
                self._guest.take(frame, self._games())
            case "run":
                await self._viewer.take(frame)
            case "puzzles":
                self.box.put({**await asyncio.to_thread(puzzles.offer), "id": frame.get("id")})
            case "workshop":
                self.box.put({**workshop.offer(), "id": frame.get("id")})
            case "rules":
                self.box.put(await asyncio.to_thread(workshop.made, frame))
            case "fair":
                self._study.begin(frame)
            case "level":
                self.box.put(await asyncio.to_thread(self._levels.take, frame))
            case "lesson":
                self._later(self._lesson(frame), frame)
            case "puzzle":
                self._later(self._puzzles.take(frame), frame)
            case _:
                self.box.put(await asyncio.to_thread(judging.judged, frame))

    async def _lesson(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """The steps of a variant's lesson; RequestError."""
        name = records.known_variant(frame).name
        rules = frames.text(frame, "rules", records.WORDS)
        answer = await self._site.helper.ask(lesson=name, rules=rules)
        return {"t": "lesson", "id": frame.get("id"), "variant": name, **answer}

    def _later(self, work: Coroutine[Any, Any, dict[str, Any]], frame: Mapping[str, Any]) -> None:
        """Answer when the answer arrives; the page may send other frames meanwhile."""
        if len(self._waiting) >= WAITING_LIMIT:
            work.close()
            raise FrameError(
                "too_fast", f"expected at most {WAITING_LIMIT} such questions at once", frame.get("id")
            )

        async def answered() -> None:
            try:
                self.box.put(await work)
            except RequestError as error:
                self._refuse(error, frame.get("id"))

        task = asyncio.create_task(answered())
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def _open(self, frame: Mapping[str, Any]) -> None:
        options = frame.get("options", {})
        if (
            not isinstance(options, dict)
            or len(options) > OPTIONS_LIMIT
            or not all(
                isinstance(value, str) and (name + value).isprintable() for name, value in options.items()
            )
        ):
            raise FrameError("bad_frame", "options: expected an object of names and texts", frame.get("id"))
        wanted = Wanted(frames.text(frame, "variant"), frames.text(frame, "player"), options)
        session = self._site.open(wanted, self._games() + self._guest.made, self._failed, self.address)
        self.box.put({"t": "opened", "id": frame.get("id"), "s": session.sid})
        self._adopt(session, 0)

    def _games(self) -> int:
        """The number of this page's sessions."""
        self._sessions = {sid: own for sid, own in self._sessions.items() if sid in self._site.sessions}
        return len(self._sessions)

    def _failed(self, sid: str, error: RequestError) -> None:
        self._sessions.pop(sid, None)
        self._refuse(error, None, sid)

    def _session(self, frame: Mapping[str, Any]) -> WebSession:
        sid = frames.text(frame, "s", 64)
        session = self._sessions.get(sid)
        if session is None or sid not in self._site.sessions or session.outgoing.box is not self.box:
            raise FrameError("no_session", "s: expected a game of this page", frame.get("id"), sid)
        return session

    def leave(self) -> None:
        """The browser is gone; for a while, it may return to sessions that it has not closed."""
        self._study.end()
        for task in self._waiting:
            task.cancel()
        for session in self._sessions.values():
            if session.outgoing.box is self.box:
                session.leave()
        self._sessions.clear()
        self._guest.leave()
        self._viewer.leave()


def _resumed(frame: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The sessions that a page wants back, each with the number of the last line that it received."""
    value = frame.get("resume", {})
    if not isinstance(value, dict):
        return []
    found = []
    for sid in list(value)[:16]:
        with contextlib.suppress(FrameError):
            found.append((sid, frames.number(value, sid)))
    return found
