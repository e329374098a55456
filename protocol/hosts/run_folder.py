"""The folder of a run of `hnefi arena`, as viewers read it: only ever read, while another process fills it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hnefi.engine.wording import shorten

LIVE, CONFIG, SUMMARY, LOCK = "live.jsonl", "config.toml", "summary.json", "lock"
FILE_LIMIT = 4 << 20
LIMITS = ("tc", "movetime", "depth", "nodes")


class NoRun(Exception):
    """There is nothing to show; the text is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A run's folder, as another process fills it."""

    path: Path

    def config(self) -> dict[str, Any]:
        """What was asked of the arena; NoRun if this is not a run's folder."""
        try:
            found = tomllib.loads(self._text(CONFIG))
        except (OSError, ValueError) as error:
            if not self.path.is_dir():
                wrong = "no such folder"
            elif isinstance(error, FileNotFoundError):
                wrong = f"no {CONFIG}"
            else:
                wrong = f"{CONFIG}: {getattr(error, 'strerror', None) or error}"
            raise NoRun(
                f"{shorten(str(self.path))}: {wrong}: expected the folder of a run of hnefi arena"
            ) from None
        return found

    def demand_live(self) -> None:
        """NoRun if the run cannot be followed: it has no live file."""
        if not (self.path / LIVE).exists() and not table(self.config(), "output").get("live"):
            raise NoRun(f"{shorten(str(self.path))}: no {LIVE}: expected a run with --live")

    def summary(self) -> dict[str, Any] | None:
        """The final tables, once the arena that plays now has written them."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            if (self.path / SUMMARY).stat().st_mtime_ns >= (self.path / LOCK).stat().st_mtime_ns:
                found = json.loads(self._text(SUMMARY))
                return found if isinstance(found, dict) else None
        return None

    def abandoned(self) -> bool:
        """Whether the arena ended without a word. The lock itself is never tried: that could keep an arena out."""
        with contextlib.suppress(OSError):
            words = self._text(LOCK).split()
            if len(words) > 3 and words[0] == "process" and words[3] == socket.gethostname():
                try:
                    os.kill(int(words[1]), 0)
                except ProcessLookupError:
                    return True
                except (ValueError, OverflowError, PermissionError):
                    pass
        return False

    def _text(self, name: str) -> str:
        with (self.path / name).open(encoding="utf-8") as file:
            return file.read(FILE_LIMIT)


def describe(config: Mapping[str, Any], folder: str, run: str) -> dict[str, Any]:
    """What a viewer has to know of a run before its first game: of the engines names and limits, never commands."""
    plan, output = table(config, "run"), config.get("engine")
    engines = [engine for engine in output if isinstance(engine, dict)] if isinstance(output, list) else []
    return {
        "schema": 1,
        "run": run,
        "name": plan.get("name") or folder,
        **{key: plan.get(key) for key in ("format", "variants", "pairs", "swap", "seed")},
        "engines": [
            {"name": engine.get("name"), **{key: engine[key] for key in LIMITS if engine.get(key)}}
            for engine in engines
        ],
    }


def table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What stands under a name, empty if that is not a table."""
    found = document.get(name)
    return found if isinstance(found, dict) else {}
