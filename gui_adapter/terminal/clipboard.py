"""The clipboard of the desktop, through the small programs that systems have for it."""

from __future__ import annotations

import os
import shutil
import subprocess

_SECONDS = 2.0
_LIMIT = 1 << 20
_Commands = tuple[tuple[str, tuple[str, ...]], ...]
_PUT: _Commands = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("", ("pbcopy",)),
)
_GET: _Commands = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-o")),
    ("", ("pbpaste",)),
)


def put(text: str) -> bool:
    """Put a text there; False if there is no clipboard."""
    return _run(_PUT, text.encode("utf-8", "replace")) is not None


def get() -> str | None:
    """The text that lies there, at most a mebibyte of it; None if there is no clipboard."""
    data = _run(_GET, b"")
    return None if data is None else data[:_LIMIT].decode("utf-8", "replace")


def _run(commands: _Commands, data: bytes) -> bytes | None:
    """What the first usable command writes when it is given `data`; None if there is none, or it fails."""
    command = _usable(commands)
    if command is None:
        return None
    # A program that stays to serve the clipboard keeps its output open: only what is asked for is read.
    output = subprocess.PIPE if not data else subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, input=data, stdout=output, stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or b"") if done.returncode == 0 else None


def _usable(commands: _Commands) -> list[str] | None:
    """The first command that is installed and has a desktop to talk to."""
    for variable, (program, *rest) in commands:
        if (not variable or os.environ.get(variable)) and shutil.which(program):
            return [program, *rest]
    return None
