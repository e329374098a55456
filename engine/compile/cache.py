"""The cache of machine code: one file per entry, named by everything that it depends on.

File names contain a hash of the sources, the argument types, the versions of compiler and Python and the processor, so
no file can be out of date; damaged files are dropped and compiled again. Processes share the folder: the first one with
a cache miss compiles, under a lock that is released if it dies, and others of the same version wait and load.

This module imports neither numpy nor numba.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ..regular import open_regular, read_regular
from . import progress, sources

SHIPPED = Path(__file__).resolve().parent / "machine_code"
"""Machine code that was shipped with the package, if any: read only, and trusted like the Python code beside it."""
OWN = "HNEFI_OWN_CODE"
"""If this environment variable is set, shipped machine code is not used."""
_HEAD = b"hnefi machine code 1\n"
_TIMES = "times.json"
_SUFFIX = ".code"
_LOCKED = ".lock"

KEPT_DAYS = 30
"""Files not used for this many days are removed, however much room there is."""
KEPT_BYTES = 256 * 1024 * 1024
"""Above this size the least recently used files are removed, but none that was used within a day."""
NO_HOME = "there is no home folder"
_DAY = 86400.0
_STALE = 15.0
"""A process that holds the lock and shows no sign of life for this many seconds is considered stopped."""
_LOOK = 0.1


def folder() -> Path | None:
    """This user's folder: in `NUMBA_CACHE_DIR` if that is set, else in the system's place; None without a home."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(named) / "hnefi"
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = str(Path.home() / "Library" / "Caches")
        else:
            base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    except RuntimeError:
        return None
    return Path(base) / "hnefi"


class _Notice:
    """Reports once, on standard error, why nothing can be cached: everything works, but every start compiles again."""

    said = False

    def __call__(self, unkept: str) -> None:
        if not self.said:
            self.said = True
            print(f"hnefi: {progress.unkept_text(unkept)}", file=sys.stderr, flush=True)


tell_unkept = _Notice()


def _cannot_keep(place: Path | None, error: OSError | str) -> None:
    """Report on standard error, and to listeners of the compilation's progress; or `NotStored`."""
    unkept = _unkept(place, error)
    if _storing_all:
        raise NotStored(unkept)
    progress.cannot_keep(unkept)
    tell_unkept(unkept)


def _unkept(place: Path | None, error: OSError | str) -> str:
    """Where nothing can be stored, and why, as `Progress.unkept` has it."""
    where = f"in {place}" if place else "anywhere"
    reason = error if isinstance(error, str) else error.strerror or str(error)
    return f"{where} ({reason})"


def load(name: str) -> bytes | None:
    """What was saved under `name`, None if there is nothing or it is damaged. A damaged file of ours is removed."""
    for place in (None if os.environ.get(OWN) else SHIPPED, folder()):
        if place is None:
            continue
        path = place / f"{name}{_SUFFIX}"
        try:
            with open_regular(path) as file:
                if place is not SHIPPED and not _trusted(os.fstat(file.fileno())):
                    continue
                data = file.read()
        except OSError:
            continue
        if (content := _content(data)) is not None:
            if place is not SHIPPED:
                _used(path)
            return content
        if place is not SHIPPED:
            drop(name)
    return None


def save(name: str, content: bytes) -> None:
    """Store `content` under `name`; if that fails, print one line on standard error."""
    place = folder()
    if place is None:
        _cannot_keep(None, NO_HOME)
        return
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = place / f"{name}{_SUFFIX}"
        if path.is_dir():
            _remove(path)  # anything else is replaced
        _write(path, _HEAD + hashlib.sha256(content).digest() + content)
        _prune(place)
    except OSError as error:
        _cannot_keep(place, error)


def refusal() -> str:
    """Why nothing can be stored now, in the words of `Progress.unkept`; empty if it can."""
    place = folder()
    if place is None:
        return _unkept(None, NO_HOME)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return _unkept(place, error)


def drop(name: str) -> None:
    """Remove what is stored under `name`."""
    if place := folder():
        _remove(place / f"{name.removesuffix(_SUFFIX)}{_SUFFIX}")


def _content(data: bytes) -> bytes | None:
    """The content of a file, from its bytes; None if they are damaged."""
    start = len(_HEAD) + 32
    whole = data.startswith(_HEAD) and hashlib.sha256(data[start:]).digest() == data[len(_HEAD) : start]
    return data[start:] if whole else None


def _remove(path: Path) -> bool:
    """Remove whatever has the name of one of our files, an empty folder included; returns whether it is gone."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        with contextlib.suppress(OSError):
            path.rmdir()
    return not os.path.lexists(path)


def _write(path: Path, data: bytes) -> None:
    """Write the whole file or nothing, so that readers never see half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _trusted(status: os.stat_result) -> bool:
    """Machine code is run, so it must be ours or the administrator's."""
    return not hasattr(os, "getuid") or status.st_uid in (os.getuid(), 0)


def _used(path: Path) -> None:
    """Record the day of the last use."""
    with contextlib.suppress(OSError):  # a folder that can only be read
        if time.time() - path.stat().st_mtime > _DAY / 24:
            os.utime(path)


class NotCompiled(Exception):
    """Something that should only be loaded is not in the cache."""


_only_loading = 0


@contextlib.contextmanager
def loading_only() -> Iterator[None]:
    """Within the block, raise `NotCompiled` instead of compiling."""
    global _only_loading  # noqa: PLW0603 - all threads wait for numba's one lock anyway
    _only_loading += 1
    try:
        yield
    finally:
        _only_loading -= 1


def only_loading() -> bool:
    """Whether compiling is forbidden now."""
    return _only_loading > 0


class NotStored(Exception):
    """Something could not be stored that should be; the message is `Progress.unkept`."""


_storing_all = 0


@contextlib.contextmanager
def storing_all() -> Iterator[None]:
    """Within the block, raise `NotStored` instead of going on without storing what is compiled."""
    global _storing_all  # noqa: PLW0603 - as above
    _storing_all += 1
    try:
        yield
    finally:
        _storing_all -= 1


# Cached files


@dataclass(frozen=True, slots=True)
class Kept:
    """One file of machine code: the entry's name, bytes, and seconds since its last use."""

    entry: str
    size: int
    idle: float
    path: Path


def kept(place: Path | None = None) -> list[Kept]:
    """The machine code in the folder, least recently used first."""
    place = place or folder()
    found = []
    now = time.time()
    for path in place.glob(f"*{_SUFFIX}") if place else ():
        with contextlib.suppress(OSError):
            status = path.lstat()
            found.append(Kept(path.name.split("-")[0], status.st_size, now - status.st_mtime, path))
    return sorted(found, key=lambda one: -one.idle)


def damaged() -> list[Kept]:
    """The damaged files in the folder."""
    wrong = []
    for one in kept():
        try:
            data = read_regular(one.path)
        except FileNotFoundError:  # another process has just removed it
            continue
        except OSError:
            data = b""
        if _content(data) is None:
            wrong.append(one)
    return wrong


def clear() -> int:
    """Remove all cached machine code; returns the number of files."""
    return sum(_remove(one.path) for one in kept())


def _prune(place: Path) -> None:
    """Make room: by age, then by size; never what was used within a day, since another checkout may need it."""
    files = kept(place)
    room = sum(one.size for one in files)
    for one in files:
        if one.idle > KEPT_DAYS * _DAY or (room > KEPT_BYTES and one.idle > _DAY):
            with contextlib.suppress(OSError):
                one.path.unlink()
                room -= one.size
    for path in place.glob(f"*{_LOCKED}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT_DAYS * _DAY:
                path.unlink()


# How long things take


def times() -> dict[str, float]:
    """Seconds that each entry took when this machine compiled it last."""
    try:
        read = json.loads(read_regular(_place() / _TIMES))
    except (OSError, ValueError):
        return {}
    if not isinstance(read, dict):
        return {}
    return {str(name): float(value) for name, value in read.items() if isinstance(value, int | float)}


def note_time(entry: str, seconds: float) -> None:
    """Record how long an entry took to compile."""
    with contextlib.suppress(OSError):
        _place().mkdir(mode=0o700, parents=True, exist_ok=True)
        known = times()
        known[entry] = round(seconds, 2)
        _write(_place() / _TIMES, json.dumps(known).encode())


def _place() -> Path:
    place = folder()
    if place is None:
        raise FileNotFoundError(NO_HOME)
    return place


# One compiler at a time


def _lock_name() -> str:
    """The name of the lock shared by processes that would compile the same: same kernels, numba and Python."""
    from importlib import metadata  # slow to load, and only needed where something is compiled

    settings = (f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_"))
    parts = (sources.stamp_of_kernels(), EXTENSION_SUFFIXES[0], metadata.version("numba"), *settings)
    return f"{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:24]}{_LOCKED}"


class Lock:
    """The lock for compiling, held by one process of each version at a time.

    It is held from the first miss until the outermost `session` ends.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._lent = False
        self._sessions = 0
        self._telling = contextlib.ExitStack()

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """If this process compiles anything in the block, it keeps the lock until the block ends."""
        self._sessions += 1
        try:
            yield
        finally:
            self._sessions -= 1
            self.release()

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Within the block, compile without the lock, on behalf of the parent process that holds it."""
        self._lent = True
        try:
            yield
        finally:
            self._lent = False

    def acquire(self, part: str) -> bool:
        """Wait until no other process of this version compiles.

        Returns whether another one did, in which case the cache is worth another look. A process without a sign of life
        for `_STALE` seconds is considered stopped and no longer waited for.
        """
        if self._file is not None or self._lent:
            return False
        try:
            import fcntl

            place = _place()
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(place / _lock_name(), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except ImportError:
            return False  # nothing can be shared, so each process compiles for itself
        except OSError as error:
            _cannot_keep(folder(), error)  # now rather than when the first part is compiled
            return False
        waited = False
        begun = time.time()
        try:
            with contextlib.ExitStack() as stack:
                heard = None
                while True:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        pass
                    if heard is None:
                        heard = stack.enter_context(progress.waiting(part))
                    waited = True
                    if time.time() - max(begun, os.fstat(file).st_mtime) > _STALE:
                        os.close(file)
                        return True
                    heard(_reported(file))
                    time.sleep(_LOOK)
        except OSError:
            os.close(file)
            return waited
        self._file = file
        self._telling.enter_context(progress.listening(self._tell))
        self._tell(progress.current())
        return waited

    def release(self) -> None:
        """Release the lock, unless a session is still open."""
        if self._file is not None and not self._sessions:
            self._telling.close()
            os.close(self._file)
            self._file = None

    def _tell(self, report: progress.Progress | None) -> None:
        """Write our progress to the lock file, for processes that wait; its age is our sign of life."""
        file = self._file
        if file is not None:
            with contextlib.suppress(OSError):
                data = json.dumps(progress.as_numbers(report) if report else []).encode()
                os.pwrite(file, data, 0)
                os.ftruncate(file, len(data))
                os.utime(file)


def _reported(file: int) -> progress.Progress | None:
    try:
        return progress.of_numbers(json.loads(os.pread(file, 4096, 0)))
    except (OSError, ValueError):
        return None


LOCK = Lock()
