"""The folder of a run: its plan, every finished game, and the openings. One process writes.

plan.json        the plan; a different plan in the same folder is refused
games.jsonl      a line for each finished job: rule set, player, pool, version, games
openings.jsonl   a line for each rule set and pool: its openings as moves
report.md, report.json, cells.csv, figures/
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hnefi.engine import durable

from . import strength
from .entrants import BalanceError, Entrant
from .playing import MOST_PLIES, Game, Opening, read
from .strength import Strength

PLAN, GAMES, OPENINGS = "plan.json", "games.jsonl", "openings.jsonl"
FORMAT = 1


class Key(NamedTuple):
    """Games of one rule set by one player. Games of different pools are independent of each other."""

    entrant: str
    player: str
    pool: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run. `kind` is `table`, `diff` or `search`; `games` is the number for each rule set and player,
    `strongest` that for the last player; `search` has the terms of a search (`searching.Terms`)."""

    kind: str
    entrants: tuple[Entrant, ...]
    players: tuple[str, ...] = strength.DEFAULT
    games: int = 200
    strongest: int = 200
    seed: int = 1
    most_plies: int = MOST_PLIES
    search: Mapping[str, int] = field(default_factory=dict)

    def strengths(self) -> list[Strength]:
        """The players, weak ones first; BalanceError if one no longer exists."""
        return [strength.parse(word) for word in self.players]

    def entrant(self, label: str) -> Entrant:
        """The rule set of that label."""
        return next(entrant for entrant in self.entrants if entrant.label == label)

    def games_of(self, player: str) -> int:
        """The number of games that this player plays of each rule set."""
        return self.strongest if player == self.players[-1] else self.games

    def as_json(self) -> dict[str, Any]:
        """The plan as in `plan.json`; `read_plan` reads it back."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "players": list(self.players),
            "games": self.games,
            "strongest": self.strongest,
            "seed": self.seed,
            "most_plies": self.most_plies,
            "search": dict(self.search),
            "entrants": [entrant.as_json() for entrant in self.entrants],
        }


def read_plan(folder: Path) -> Plan:
    """The plan in the folder of a run; BalanceError if there is none."""
    path = folder / PLAN
    try:
        found = json.loads(path.read_text())
        if found["format"] != FORMAT or found["kind"] not in ("table", "diff", "search"):
            raise ValueError(f"expected format {FORMAT}")
        plan = Plan(
            found["kind"],
            tuple(map(Entrant.from_json, found["entrants"])),
            tuple(map(str, found["players"])),
            int(found["games"]),
            int(found["strongest"]),
            int(found["seed"]),
            int(found["most_plies"]),
            {str(name): int(value) for name, value in found["search"].items()},
        )
    except OSError as error:
        raise BalanceError(
            f"{path}: {error.strerror}: expected the folder of a run of hnefi balance"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BalanceError(f"{path}: expected the plan of a run of hnefi balance ({error})") from None
    plan.strengths()
    return plan


def prepare(folder: Path, plan: Plan) -> None:
    """Create the folder, or check that it has the same plan; BalanceError names the difference."""
    path = folder / PLAN
    try:
        durable.make_folder(folder)
        if not path.exists():
            if any(
                entry.suffix != ".new" for entry in folder.iterdir()
            ):  # left by a crash of the first attempt
                raise BalanceError(f"{folder}: expected an empty folder, or one of hnefi balance: --out")
            durable.put(path, (json.dumps(plan.as_json(), indent=1) + "\n").encode())
            return
    except OSError as error:
        raise BalanceError(
            f"{folder}: {error.strerror or error}: expected a folder that can be written"
        ) from None
    there, ours = read_plan(folder).as_json(), plan.as_json()
    for key, value in ours.items():
        if value != there[key]:
            said = [str(part)[:120] for part in (there[key], value)]
            raise BalanceError(
                f"{folder}: {key}: {said[0]} there and {said[1]} here: expected another --out, or "
                f"hnefi balance resume {folder}"
            )


Results = dict[Key, dict[int, Game]]
"""Every finished game by its number."""


def games_in(results: Results, key: Key, count: int) -> list[Game]:
    """The finished games of a key among its first `count`, in the order of their numbers."""
    there = results.get(key, {})
    return [there[number] for number in sorted(there) if number < count]


class Log:
    """`games.jsonl`: a line is synced to disk before its games count; a line cut short by a crash is removed."""

    def __init__(self, folder: Path, version: str = "") -> None:
        self._path = folder / GAMES
        self._version = version
        self.versions: set[str] = set()

    def read(self) -> Results:
        """All games so far; BalanceError for a line that we cannot have written."""
        found: Results = {}
        for number, line in enumerate(durable.whole_lines(self._path), 1):
            try:
                entry = json.loads(line)
                key = Key(str(entry["rules"]), str(entry["player"]), int(entry["pool"]))
                played = [read(values) for values in entry["games"]]
                self.versions.add(str(entry["version"]))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise BalanceError(
                    f"{self._path}: line {number}: {line[:60]!r}: expected finished games ({error})"
                ) from None
            there = found.setdefault(key, {})
            for game in played:
                there.setdefault(game.number, game)
        return found

    def append(self, key: Key, played: Sequence[Game]) -> None:
        """Append finished games and sync them to disk."""
        entry = {
            "rules": key.entrant, "player": key.player, "pool": key.pool, "version": self._version,
            "games": played,
        }  # fmt: skip
        _append(self._path, entry)
        self.versions.add(self._version)


class Openings:
    """`openings.jsonl`: saves searching again for openings. A later line with the same key replaces an earlier one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / OPENINGS
        self._found: dict[tuple[str, int], tuple[int, list[Opening]]] = {}
        for number, line in enumerate(durable.whole_lines(self._path), 1):
            try:
                entry = json.loads(line)
                moves = [tuple(map(str, opening.split())) for opening in entry["openings"]]
                self._found[str(entry["rules"]), int(entry["pool"])] = (int(entry["asked"]), moves)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise BalanceError(
                    f"{self._path}: line {number}: {line[:60]!r}: expected openings ({error})"
                ) from None

    def get(self, entrant: str, pool: int, count: int) -> list[Opening] | None:
        """The openings, if `count` or more were ever requested; the game may have fewer."""
        asked, found = self._found.get((entrant, pool), (0, []))
        return found[:count] if asked >= count else None

    def put(self, entrant: str, pool: int, count: int, openings: Sequence[Opening]) -> None:
        """Append the openings that were found when `count` were requested, and sync them to disk."""
        _append(
            self._path,
            {
                "rules": entrant,
                "pool": pool,
                "asked": count,
                "openings": [" ".join(moves) for moves in openings],
            },
        )
        self._found[entrant, pool] = (count, list(openings))


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    durable.append_line(path, json.dumps(entry, separators=(",", ":")).encode())
