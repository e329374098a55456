"""Files that survive a power failure once they are reported as written.

A system keeps what is written in memory for a while. What must survive is synced: the bytes of a file, and also the
folder that names it, because a new or changed name is lost with the folder. All errors are OSError.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .regular import replaceable


def put(path: Path, data: bytes, *, draft: Path | None = None) -> None:
    """Put `data` in place of a file, whole or not at all; what is half done lies beside it under the name of `draft`,
    which may be `NAME.new` where only one process writes. A link stays one; what is no regular file is not replaced."""
    draft = draft or path.with_name(f"{path.name}.new")
    try:
        path = replaceable(path)
        draft = path.with_name(draft.name)
        with draft.open("wb", buffering=0) as file:
            write(file.fileno(), data)
        draft.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other process that asks for the same changes files in a folder meanwhile, where the system has such locks; the
    folder is made."""
    make_folder(folder)
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def append_line(path: Path, line: bytes) -> None:
    """Write a line through to the disk. What a crash tears is cut off when it is read."""
    try:
        new = not path.exists()
        with path.open("ab", buffering=0) as file:
            write(file.fileno(), line + b"\n")
        if new:
            sync_folder(path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file that `append_line` writes, none where there is no file; what a crash left of a line is
    cut off the file."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return whole.splitlines()


def make_folder(path: Path) -> None:
    """A folder, with those that it lies in; nothing happens where it is there."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """The names in a folder as they are now; nothing where the system syncs no folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(descriptor: int, data: bytes) -> None:
    """Write all of it through to the disk, one that gets full takes a part first and says why with the next."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)
