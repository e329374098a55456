"""`hnefi ARGS...` in which one function never ends: `python stuck.py MODULE:NAME EVENT ARGS...`.

Whoever calls it writes the file EVENT and then waits in C for a mutex that nobody gives back, as deaf to signals and
to exceptions as a thread in LLVM, and like that without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from importlib import import_module
from pathlib import Path
from typing import Any


def stuck(event: Path, *_: Any, **__: Any) -> None:
    libc = ctypes.CDLL(None)
    mutex = ctypes.create_string_buffer(256)
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    event.touch()
    libc.pthread_mutex_lock(mutex)


def main() -> None:
    place, event, *words = sys.argv[1:]
    module, _, name = place.partition(":")
    found: Any = import_module(module)
    *path, last = name.split(".")
    for part in path:
        found = getattr(found, part)
    setattr(found, last, functools.partial(stuck, Path(event)))
    from hnefi.tools import cli

    sys.argv[1:] = words
    sys.exit(cli.main())


if __name__ == "__main__":
    main()
