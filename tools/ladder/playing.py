"""Playing on a ladder: its rungs against each other, others against its rungs. Each is a run of the arena, in a folder.

All players are in this process (`arena.in_process`), so a run needs no engine processes. The same command continues a
run in an existing folder; `hnefi arena resume FOLDER` and `hnefi arena report FOLDER` also work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arena.options import Config
from .ladder import Ladder, LadderError, LimitedPlayer

if TYPE_CHECKING:
    from ..arena.loop import Screen
    from ..arena.values import Opening

NEAR = 4
"""The number of nearest rungs to play more often."""


def rungs(ladder: Ladder, seed: int, jobs: int, backend: str = "") -> Config:
    """The run of all rungs: many games of neighbours, a few of all others."""
    return _config(
        ladder,
        ladder.rungs,
        ladder.variants,
        seed,
        {
            "name": f"{ladder.name} seed {seed}",
            "format": "ladder",
            "pairs": ladder.pairs,
            "others": ladder.others,
            **_hands(jobs, backend),
        },
    )


def gauntlet(
    ladder: Ladder,
    one: LimitedPlayer,
    against: Sequence[LimitedPlayer],
    variants: Sequence[str],
    pairs: int,
    seed: int,
    jobs: int,
    after: int = 0,
    backend: str = "",
) -> Config:
    """The run of one contestant against some rungs; the first `after` openings are skipped."""
    told = {
        "name": f"{one.name} on {ladder.name} seed {seed}" + (", near" if after else ""),
        "format": "gauntlet",
        "pairs": pairs,
        **_hands(jobs, backend),
    }
    return _config(ladder, (one, *against), variants, seed, told, after)


def _hands(jobs: int, backend: str) -> dict[str, Any]:
    """The settings for threads of this process, or for processes of a backend."""
    return {"concurrency": 1, "backend": backend, "jobs": jobs} if backend else {"concurrency": jobs}


def _config(
    ladder: Ladder,
    contestants: Sequence[LimitedPlayer],
    variants: Sequence[str],
    seed: int,
    told: Mapping[str, Any],
    after: int = 0,
) -> Config:
    from ..arena import resolve

    name, elo = ladder.anchor
    rating = {"anchor": {"name": name, "elo": elo}} if any(one.name == name for one in contestants) else {}
    document = {
        "run": {"variants": list(variants), "seed": seed, "inside": True, **told},
        "openings": {
            "source": "file",
            "file": str(ladder.openings.resolve()),
            "first": first_opening(ladder, seed) + after,
        },
        "adjudicate": {"max_plies": ladder.max_plies},
        "rating": rating,
        "engine": [one.engine() for one in contestants],
    }
    return resolve.resolve(document, {})


def first_opening(ladder: Ladder, seed: int) -> int:
    """The number of a seed's first opening, from 1. Consecutive seeds have no opening in common, provided that the list
    is long enough for two."""
    from . import frozen

    lists = frozen.openings(ladder)
    parts = min(len(lists[name]) for name in ladder.variants) // ladder.pairs
    return (seed - 1) % parts * ladder.pairs + 1


def play(
    config: Config,
    lists: Mapping[str, Sequence[Opening]],
    folder: Path,
    screen: Screen,
    *,
    force: bool = False,
) -> int:
    """Play a run from the ladder's own openings, or resume it if its folder exists; returns the arena's exit code.

    StoreError or ConfigError if it cannot be played; LadderError if the folder belongs to something else.
    """
    from ..arena import loop, run, schedule
    from ..arena.store import Store

    if not folder.exists():
        prepared, items = run.prepare(config, {name: lists[name] for name in schedule.variants(config)})
        with run.create(prepared, items, folder) as store:
            return loop.play(prepared, store, screen)
    with Store.resume(folder.absolute()) as store:
        name = run.load_config(folder)["run.name"]
        if name != config["run.name"]:
            raise LadderError(
                f"{folder}: the run {name!r:.80} is there: expected a new folder, or that of"
                f" {config['run.name']!r}"
            )
        flags = {"run": {key: config[f"run.{key}"] for key in ("concurrency", "backend", "jobs")}}
        return loop.play(run.resumed(store, flags, force=force), store, screen)


def near(ladder: Ladder, ratings: Mapping[str, float], name: str) -> tuple[LimitedPlayer, ...]:
    """The `NEAR` rungs whose ratings are nearest to that of `name`, in the ladder's order."""
    here = ratings[name]
    chosen = sorted(ladder.rungs, key=lambda rung: abs(ratings[rung.name] - here))[:NEAR]
    return tuple(rung for rung in ladder.rungs if rung in chosen)
