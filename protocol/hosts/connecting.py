"""What adapters that connect to somebody's server share: where a password comes from, and pauses between attempts."""

from __future__ import annotations

import os
import random
import stat
import sys
from pathlib import Path

from hnefi.engine.wording import shorten

PASSWORD_LIMIT = 4096


def password(file: str | None) -> str | None:
    """The password in `file`, else in HNEFI_PASSWORD, else none; ValueError with a sentence.

    It is the first line of the file; a warning says if others can read it.
    """
    if file is None:
        return os.environ.get("HNEFI_PASSWORD")
    path = Path(file)
    try:
        with path.open(encoding="utf-8") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            line = stream.readline(PASSWORD_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "expected text in UTF-8"
        raise ValueError(f"password file {shorten(file)}: {reason}") from None
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        print(f"warning: others can read {shorten(file)}: chmod 600 would help", file=sys.stderr)
    return line.rstrip("\r\n")


class Pauses:
    """Seconds between attempts to connect: doubled from `first` to `last`, and small again after a connection that
    has held for `good` seconds.

    Each is changed by up to a fifth at random, so that many clients do not come back at the same moment.
    """

    def __init__(self, first: float, last: float, good: float = 60.0) -> None:
        self._first, self._last, self._good = first, last, good
        self._pause = first

    def after(self, lasted: float) -> float:
        """How long to wait after an attempt, or a connection, that took so many seconds."""
        if lasted >= self._good:
            self._pause = self._first
        pause, self._pause = self._pause, min(2 * self._pause, self._last)
        return pause * random.uniform(0.8, 1.2)
