"""What tests of evolutions share: a digest of what a run has made, and its death at a chosen moment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine import durable
from hnefi.tools.evolve import folder


def archive(out: Path) -> str:
    """A digest of all that a run is for."""
    names = sorted([*out.glob("**/archive/*"), *out.glob("**/champion.safetensors")])
    assert names
    return hashlib.sha256(
        b"".join(str(name.relative_to(out)).encode() + name.read_bytes() for name in names)
    ).hexdigest()


@contextmanager
def dying_at_state(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is run inside dies where it would write its state for that time."""
    put, states = durable.put, 0

    def dying(path: Path, data: bytes, **more: Any) -> None:
        nonlocal states
        if path.name == folder.STATE:
            states += 1
            if states == number:
                raise KeyboardInterrupt
        put(path, data, **more)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "put", dying)
        with pytest.raises(KeyboardInterrupt):
            yield
