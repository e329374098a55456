"""What is said in both directions, written to a file while it is said: `--trace FILE`."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from hnefi.engine.wording import shorten

from .exit_codes import code_of


class Trace:
    """A file with one line for each line that is said: seconds since the start, arrow (`>` sent, `<` received), text.

    Every line is written at once. A file that cannot be written any more is left as it is and disturbs nobody; when it
    is closed, standard error says so.
    """

    def __init__(self, path: Path) -> None:
        """Create the file, or empty it; OSError or ValueError if that cannot be done."""
        self._file = path.open("wb", buffering=0)
        self._began = time.monotonic()
        self._path = path
        self._failure: Exception | None = None
        self._closed = False

    def __call__(self, stamp: float, arrow: str, line: bytes) -> None:
        """`stamp` is monotonic time."""
        if self._failure is not None or self._closed:
            return
        try:
            self._file.write(b"%.6f %s %s\n" % (stamp - self._began, arrow.encode(), line))
        except (OSError, ValueError) as error:
            self._failure = error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._file.close()
        if self._failure is not None:
            reason = getattr(self._failure, "strerror", None) or self._failure
            print(f"--trace {shorten(str(self._path))}: {reason}: the trace is incomplete", file=sys.stderr)


def add_flag(to: argparse._ActionsContainer, what: str) -> None:
    """`--trace FILE`; `what` it writes down."""
    to.add_argument("--trace", metavar="FILE", help=f"log {what}")


def opened(parser: argparse.ArgumentParser, name: str | None, stack: ExitStack) -> Trace | None:
    """The trace that `--trace` asked for, closed by `stack`; a file that cannot be written ends the program."""
    if name is None:
        return None
    try:
        return stack.enter_context(Trace(Path(name)))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"--trace {shorten(name)}: {reason}: expected a file that can be written"
        parser.exit(code_of(error), f"{parser.prog}: error: {text}\n")
