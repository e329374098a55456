"""The published part of a ladder: its pool, and the ratings computed from it.

ladder-2026.3.ratings.json      ratings, profiles, sides; what `hnefi players` shows
ladder-2026.3.pool.jsonl.xz     every game (`pool`)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from .ladder import CURRENT, FOLDER, Ladder, LadderError, LimitedPlayer

__all__ = ["CURRENT", "document", "measured", "pool_file", "ratings", "ratings_file"]

SCHEMA = 1


def ratings_file(name: str = CURRENT, folder: Path = FOLDER) -> Path:
    """The file with the ratings of a ladder."""
    return folder / f"{name}.ratings.json"


def pool_file(name: str = CURRENT, folder: Path = FOLDER) -> Path:
    """The file with the games of a ladder."""
    return folder / f"{name}.pool.jsonl.xz"


@lru_cache(maxsize=4)
def ratings(name: str = CURRENT, folder: Path = FOLDER) -> dict[str, Any] | None:
    """The published ratings as `document` made them, None if there are none; LadderError for a damaged file."""
    path = ratings_file(name, folder)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LadderError(f"{path}: {error.strerror or error}: expected readable ratings") from None
    except (ValueError, RecursionError) as error:
        raise LadderError(f"{path}: {error}: expected ratings as hnefi wrote them") from None
    if (
        not isinstance(found, dict)
        or found.get("schema") != SCHEMA
        or not isinstance(found.get("players"), dict)
    ):
        raise LadderError(f"{path}: expected ratings of schema {SCHEMA}")
    return found


def document(ladder: Ladder, pool: Any, fit: Any) -> dict[str, Any]:
    """All results of a pool's fit as JSON: the ladder, its runs, sides, and every player's ratings and profile,
    strongest first."""
    from .fitting import cells

    whole = cells(fit)
    alone = {variant: cells(fit, variant) for variant in fit.alone}
    players = {}
    for name, rating in fit.whole.ratings.items():
        one = pool.players[name]
        players[name] = {
            **_definition(one),
            "rung": name in ladder.names,
            **_number(rating),
            "games": fit.tally.record(engine=name).games,
            "variants": {
                variant: {
                    **_number(table.ratings[name]),
                    "games": fit.tallies[variant].record(engine=name).games,
                }
                for variant, table in fit.alone.items()
                if name in table.ratings
            },
            "profile": {
                rung: _cell(whole[name, rung], {v: alone[v].get((name, rung)) for v in alone})
                for rung in ladder.names
                if (name, rung) in whole
            },
        }
    return {
        "schema": SCHEMA,
        "ladder": ladder.name,
        "anchor": {"name": ladder.anchor[0], "elo": ladder.anchor[1]},
        "runs": [
            {"name": run.name, "seed": run.seed, "digest": run.digest, "complete": run.complete}
            for run in pool.runs
        ],
        "games": len(pool.games),
        "sides": {variant: _number(side) for variant, side in fit.whole.sides.items()},
        "slopes": {variant: _number(slope) for variant, slope in fit.whole.slopes.items()},
        "players": players,
    }


def _definition(one: LimitedPlayer) -> dict[str, Any]:
    return {"player": one.player, "nodes": one.nodes, "depth": one.depth, "options": dict(one.options)}


def _number(fitted: Any) -> dict[str, Any]:
    return {
        "elo": round(fitted.value, 4),
        "error": None if fitted.error is None else round(fitted.error, 4),
        "low": None if fitted.low is None else round(fitted.low, 4),
        "high": None if fitted.high is None else round(fitted.high, 4),
    }


def _cell(cell: Any, alone: Mapping[str, Any]) -> dict[str, Any]:
    """A meeting: games, score, its interval and the expected score; games and score in every variant."""
    low, high = cell.record.interval
    return {
        "games": cell.record.games,
        "score": round(cell.record.score, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "expected": round(cell.expected, 4),
        "variants": {
            variant: [one.record.games, round(one.record.score, 4)]
            for variant, one in alone.items()
            if one is not None
        },
    }


def measured(player: str, name: str = CURRENT, folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The published entries of a shipped player by name: itself, and versions of it with other limits or options.

    Empty if nothing is published.
    """
    found = ratings(name, folder)
    if found is None:
        return {}
    return {name: entry for name, entry in found["players"].items() if entry.get("player") == player}
