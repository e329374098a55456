"""Opening and replacing files that a user named: regular files only, so that nothing blocks forever.

Opening a FIFO blocks until another process writes to it, and a device may have no end. All packages open files that a
person or another program named through here; standard input and files that are read while they are written (a script
of lines, a password) are read elsewhere. A user's own files lie below `home_folder`.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

_KINDS = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def home_folder() -> Path:
    """The user's home; for a user without one the root folder, as containers have it."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """The file, to be read; OSError, its `strerror` saying what it is instead, if it is no regular one."""
    # Do not wait for a process at the other end, and do not make a terminal the controlling one.
    flags = os.O_RDONLY | sum(
        getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
    )
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        _expect(mode, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """All that is in the file; OSError as `open_regular`."""
    with open_regular(path) as stream:
        return stream.read()


def replaceable(path: Path) -> Path:
    """The place of a file that is going to be put there whole: links are followed. OSError if something else than a
    regular file is there: it would be replaced by one, /dev/null too."""
    try:
        place = path.resolve()
    except RuntimeError:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path)) from None
    if place.exists():
        _expect(place.stat().st_mode, path)
    return place


def _expect(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "something else")
        raise OSError(errno.EINVAL, f"{kind}, not a regular file", os.fspath(path))
