"""The files of a tuning folder: FOLDER/VARIANT/SEED-FIRST.npy, each with the quiet positions of some games.

A file is written completely or not at all; an interrupted series continues with the missing parts.
"""

from __future__ import annotations

import io
import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine import durable

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

SERIES_GAMES = 1_000_000
"""Numbers per series, so that games of different series never share a number."""


@dataclass(frozen=True, slots=True)
class Series:
    """What determines the games of a series, besides the variant."""

    seed: int
    nodes: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of this series in files: the seed and the nodes."""
        return f"{self.seed}-{'-'.join(map(str, self.nodes))}"


def path(folder: Path, variant: str, series: Series, first: int) -> Path:
    """The file of the part that begins with game `first`."""
    return folder / variant / f"{series.name}.{first}.npy"


def play(
    name: str, variant: Variant, first: int, games: int, folder: Path, series: Series
) -> tuple[str, int, int]:
    """Play and save one part; returns its variant, games and positions."""
    from . import selfplay

    rows = selfplay.play(variant, games, first, series.seed, series.nodes)
    target = path(folder, name, series, first)
    partial = target.with_suffix(f".{os.getpid()}.part")
    # When numpy writes a file itself, it does not say why the disk is refusing.
    made = io.BytesIO()
    np.save(made, rows, allow_pickle=False)
    durable.put(target, made.getvalue(), draft=partial)
    return name, games, len(rows)


def clear(folder: Path, variant: str) -> None:
    """Remove unfinished files of processes that have ended."""
    for partial in (folder / variant).glob("*.part"):
        pid = partial.name.split(".")[-2]
        if not (pid.isdigit() and _alive(int(pid))):
            partial.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    # A killed process still accepts signals until it is reaped.
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def variants(folder: Path) -> list[str]:
    """The names of the variants that have games, sorted."""
    return sorted({found.parent.name for found in folder.glob("*/*.npy")})


def read(folder: Path, variant: str) -> Any:
    """All positions of a variant, with a distinct number for each game; ValueError if there are none, or if a file is
    not ours."""
    from .selfplay import ROW

    found = []
    for part in sorted((folder / variant).glob("*.npy")):
        try:
            rows = np.load(part, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"{part}: expected positions of `hnefi tune games`: {error}") from None
        if rows.dtype != ROW:
            raise ValueError(f"{part}: expected positions of `hnefi tune games` of this version")
        rows["game"] += zlib.crc32(part.name.split(".")[0].encode()) % 2000 * SERIES_GAMES
        found.append(rows)
    if not found:
        raise ValueError(
            f"{folder}: expected games of {variant}: `hnefi tune games {variant} --out {folder}`"
        )
    return np.concatenate(found)
