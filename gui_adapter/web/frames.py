"""Frames from the browser, which are JSON objects with the key `t`: limits, checks, and a limit on their rate."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.hosts.bounded_json import PAYLOAD_LIMIT, decode
from hnefi.protocol.hosts.sessions.engine_process import RequestError

IMPORT_LIMIT: Final = 256 * 1024
"""Maximum bytes of an imported record."""
FRAME_LIMIT: Final = IMPORT_LIMIT + 1024
"""Maximum bytes of any frame; for all except those in `LARGE` it is `PAYLOAD_LIMIT`."""
LARGE: Final = ("import", "export", "judge")
KINDS: Final = (
    *("hello", "open", "close", "line"),
    *("import", "export", "judge"),
    *("puzzles", "puzzle", "lesson", "workshop", "rules", "fair", "level"),
    *("table", "run"),
)
RATE: Final = 20.0
"""Sustained frames per second."""
BURST: Final = 60.0
"""Frames at once."""
COMPLAINT_PAUSE: Final = 1.0
"""Seconds between two complaints about too many frames: a flood is not answered by a flood."""


class FrameError(RequestError):
    """A rejected frame: a code and a sentence, and the `id` and session that the frame named."""

    def __init__(self, code: str, text: str, ident: object = None, sid: str = "") -> None:
        super().__init__(code, text)
        self.ident = ident if isinstance(ident, int) and not isinstance(ident, bool) else None
        self.sid = sid


def read(data: str | bytes) -> dict[str, Any]:
    """The frame in a message; FrameError."""
    payload = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        frame = decode(payload, FRAME_LIMIT)
    except ValueError as error:
        raise FrameError("bad_json", f"frame: {error}") from None
    kind = frame.get("t")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = nearest(kind, KINDS) if isinstance(kind, str) else ""
        raise FrameError(
            "bad_frame", f"t {shorten(kind)}: expected one of {', '.join(KINDS)}{hint}", frame.get("id")
        )
    if len(payload) > PAYLOAD_LIMIT and kind not in LARGE:
        raise FrameError(
            "bad_frame", f"{kind} of {len(payload)} bytes: expected at most {PAYLOAD_LIMIT}", frame.get("id")
        )
    return frame


def text(frame: Mapping[str, Any], key: str, most: int = 1024, *, lines: bool = False) -> str:
    """A text in a frame, empty if it is missing; a single line unless `lines`. FrameError."""
    value = frame.get(key, "")
    good = isinstance(value, str) and len(value) <= most
    if not good or not (lines or value.isprintable()):
        what = f"text of at most {most} characters" if lines else "one line of text"
        raise FrameError("bad_frame", f"{key} {shorten(value)}: expected {what}", frame.get("id"))
    assert isinstance(value, str)
    return value


def number(frame: Mapping[str, Any], key: str) -> int:
    """The number of a line, 0 if it is missing; FrameError."""
    value = frame.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**15:
        raise FrameError(
            "bad_frame", f"{key} {shorten(value)}: expected the number of a line", frame.get("id")
        )
    return value


def words(frame: Mapping[str, Any], key: str, most: int) -> tuple[str, ...]:
    """A list of short texts, empty if it is missing; FrameError."""
    value = frame.get(key, [])
    if (
        not isinstance(value, list)
        or len(value) > most
        or not all(isinstance(word, str) and len(word) <= 512 for word in value)
    ):
        raise FrameError(
            "bad_frame", f"{key} {shorten(value)}: expected at most {most} words", frame.get("id")
        )
    return tuple(value)


class Rate:
    """Limits the frames of one browser: `RATE` a second, `BURST` at once."""

    def __init__(self) -> None:
        self._left = BURST
        self._seen = time.monotonic()
        self._complained = 0.0

    def admits(self) -> bool:
        """Whether one more frame is allowed now."""
        now = time.monotonic()
        self._left = min(BURST, self._left + (now - self._seen) * RATE)
        self._seen = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def complains(self) -> bool:
        """Whether it is time for another complaint."""
        now = time.monotonic()
        if now - self._complained < COMPLAINT_PAUSE:
            return False
        self._complained = now
        return True
