"""Which source files the machine code of a kernel depends on.

numba stamps only the file that defines a function: a helper edited in another file would silently keep running as
old machine code inside its callers. Here the stamp covers every file that the kernel's module imports, directly or
through others, and the files of the kernels that are bound to its records. A changed rule compiles the searches
anew, but no network; a changed network compiles nothing that has no network in it.

This module imports neither numpy nor numba.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

KERNELS: dict[tuple[Any, ...], Any] = {}
"""The kernel that stands for a verb (see `games.interface`) by the verb's name and the dtypes of its records."""

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = __package__.rpartition(".")[0]
"""`hnefi.engine`, whose files lie below `_ROOT`."""
# Only imports at the left margin: imports for type checkers and inside functions cannot reach a kernel.
_FROM = re.compile(rb"^from ([.\w]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_WORD = re.compile(rb"\w+")
_BESIDE = {_ROOT / "compile" / name for name in ("cache.py", "progress.py", "sources.py")}
"""They store machine code and report on it, but do not affect how it is made."""


def stamp(module: str, bound: Iterable[str] = ()) -> str:
    """Hash of the sources behind kernels of `module` when the kernels of the modules `bound` may be linked in."""
    files: set[Path] = set()
    # How kernels are linked decides about all of them, though `jit.py` imports it only where it can be used.
    for name in {module, f"{__package__}.linking", *bound}:
        files |= _reached(name)
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\n".encode() + _text_hash(path))
    return digest.hexdigest()


@cache
def stamp_of_kernels() -> str:
    """Hash of the sources of all kernels below our root: the same where the same would be compiled."""
    jit = _ROOT / "compile" / "jit.py"
    files = set(_reached(f"{__package__}.linking"))
    for path in _ROOT.rglob("*.py"):
        if jit in _imports(path, module := _name(path)):
            files |= _reached(module)
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(_ROOT).as_posix()}\n".encode() + _text_hash(path))
    return digest.hexdigest()


@cache
def _reached(module: str) -> frozenset[Path]:
    """The files of a module and of all that it imports from here."""
    found: set[Path] = set()
    waiting = [_file(module)]
    while waiting:
        path = waiting.pop()
        if path is not None and path not in found and path not in _BESIDE:
            found.add(path)
            waiting += _imports(path, module if path == _file(module) else _name(path))
    return frozenset(found)


@cache
def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@cache
def _text_hash(path: Path) -> bytes:
    return hashlib.sha256(_text(path)).digest()


@cache
def _imports(path: Path, module: str) -> tuple[Path, ...]:
    """Files that the one at `path` imports by `from … import …`."""
    found: list[Path | None] = []
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for origin, names in _FROM.findall(_text(path)):
        word = origin.decode()
        dots = len(word) - len(word.lstrip("."))
        if dots:
            base = package.rsplit(".", dots - 1)[0] if dots > 1 else package
            word = f"{base}.{word[dots:]}".rstrip(".")
        if not f"{word}.".startswith(f"{_PACKAGE.partition('.')[0]}."):
            continue
        children = [_file(f"{word}.{name.decode()}") for name in _WORD.findall(names)]
        found += children
        if not children or None in children:
            found.append(_file(word))
    return tuple(path for path in found if path is not None)


@cache
def _file(module: str) -> Path | None:
    """The source of a module: below our root by its name, elsewhere where Python found it."""
    if f"{module}.".startswith(f"{_PACKAGE}."):
        path = _ROOT.joinpath(*module.split(".")[len(_PACKAGE.split(".")) :])
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return candidate
        return None
    known = getattr(sys.modules.get(module), "__file__", None)
    return Path(known).resolve() if known else None


def _name(path: Path) -> str:
    """The module of a file below our root; elsewhere the one that Python loaded from there."""
    try:
        inner = path.relative_to(_ROOT).with_suffix("")
    except ValueError:
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) == str(path):
                return name
        return path.stem
    parts = inner.parts[:-1] if inner.name == "__init__" else inner.parts
    return ".".join([_PACKAGE, *parts])


def stamp_of_all(root: Path) -> str:
    """Hash of every source below `root`: coarse, for compilers that have a cache of their own."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(_text_hash(path))
    return digest.hexdigest()
