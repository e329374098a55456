"""Pools: all games played on a ladder as lines, and their conversion to counts and records.

A pool is compressed text (`.jsonl.xz`). Its first line is an object: the ladder, the runs with seed and result digest,
and the definitions of the players. Every further line is a list, one game:

    [run, pair, game, variant, opening, attackers, defenders, winner, reason, captures, captures, moves]

`run`, `variant`, players and `reason` are indices into the lists of the first line, `opening` counts from 1 in the
ladder's list of that variant, `winner` is `a`, `d` or `draw`, captures are the totals of men captured by attackers and
by defenders, and `moves` are those after the opening. Pairs that repeat earlier ones are left out.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..arena.values import Opening
from ..common.pairs import Ending, Played, Tally
from .ladder import Ladder, LadderError, LimitedPlayer

if TYPE_CHECKING:
    from hnefi.engine.records.record import GameRecord

    from ..arena.report import Stored

FORMAT = 1
LIMIT = 256 << 20
"""Maximum bytes of a pool's text."""
_PAIRS = 10**7
"""More pairs than any run has."""


@dataclass(frozen=True, slots=True)
class Game:
    """One game. `run` is an index into the pool's runs, `opening` counts from 1."""

    run: int
    pair: int
    game: int
    variant: str
    opening: int
    attackers: str
    defenders: str
    winner: str
    reason: str
    captured: tuple[int, int]
    moves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The run that games come from: its name, seed, result digest, and whether it is complete."""

    name: str
    seed: int
    digest: str
    complete: bool
    repeated: int = 0
    forced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """Games on a ladder, their runs, and the players."""

    ladder: str
    runs: tuple[Source, ...]
    players: Mapping[str, LimitedPlayer]
    games: tuple[Game, ...]

    def tally(self, variant: str | None = None) -> Tally:
        """All counts, or those of one variant."""
        tally = Tally()
        for game in self.games:
            if variant in (None, game.variant):
                tally.add(
                    Played(
                        game.run * _PAIRS + game.pair,
                        2 if game.game == 2 else 1,
                        Ending(game.variant, game.attackers, game.defenders, game.winner),  # type: ignore[arg-type]
                        game.reason,
                        game.captured,
                        len(game.moves),
                    )
                )
        return tally

    def joined(self, other: Pool) -> Pool:
        """The games of both; LadderError if a name stands for two players, or if the ladders differ."""
        if self.ladder != other.ladder:
            raise LadderError(f"games of {other.ladder}: expected those of {self.ladder}")
        for name, player in other.players.items():
            if self.players.get(name, player) != player:
                raise LadderError(f"{name}: {player} in one run, {self.players[name]} in another")
        shift = len(self.runs)
        moved = tuple(
            Game(
                game.run + shift, game.pair, game.game, game.variant, game.opening, game.attackers, game.defenders,
                game.winner, game.reason, game.captured, game.moves,
            )
            for game in other.games
        )  # fmt: skip
        return Pool(
            self.ladder, self.runs + other.runs, {**self.players, **other.players}, self.games + moved
        )


def folders(place: Path) -> list[Path]:
    """The runs in a folder, or the folder itself if it is one; LadderError if there are none."""
    from ..arena.store import CONFIG, LOG

    found = sorted(log.parent for log in place.rglob(LOG) if (log.parent / CONFIG).is_file())
    if not found:
        raise LadderError(f"{place}: expected the folder of a run, or a folder with such folders")
    return found


def of_folders(ladder: Ladder, places: Sequence[Path]) -> Pool:
    """All games of the runs in some folders. StoreError, ConfigError or LadderError if they are unreadable, or if they
    belong to another ladder."""
    from ..arena.report import Stored
    from . import frozen

    numbers = {
        name: {opening: number for number, opening in enumerate(found, 1)}
        for name, found in frozen.openings(ladder).items()
    }
    pool = Pool(ladder.name, (), {}, ())
    seen: set[tuple[str, str]] = set()
    for place in places:
        for folder in folders(place):
            one = _of_run(ladder, Stored(folder), numbers, len(pool.runs))
            known = (one.runs[0].name, one.runs[0].digest)
            # A run that is named twice, or copied, counts once.
            if one.games and known not in seen:
                seen.add(known)
                pool = Pool(
                    pool.ladder, pool.runs + one.runs, {**pool.players, **one.players}, pool.games + one.games
                )
    return pool


def _of_run(ladder: Ladder, stored: Stored, numbers: Mapping[str, Mapping[Opening, int]], run: int) -> Pool:
    from ..arena.store import run_digest

    config, progress = stored.run.config, stored.progress
    name = str(config["run.name"])
    if ladder.name not in name:
        said = f"its name is {name!r:.80}" if name else "it has no name"
        raise LadderError(
            f"{stored.store.folder}: not a run of the ladder {ladder.name} ({said}): expected a run of "
            "`hnefi ladder run` or `hnefi ladder place`; `hnefi arena report` reports other runs"
        )
    players = {
        engine["name"]: LimitedPlayer(
            engine["name"],
            engine["player"],
            engine.get("nodes"),
            engine.get("depth"),
            dict(engine["options"]),
        )
        for engine in config.engines
    }
    for rung in ladder.rungs:
        if players.get(rung.name, rung) != rung:
            raise LadderError(
                f"{stored.store.folder}: {rung.name} is {players[rung.name]}: expected the rung {rung}"
            )
    games = []
    for result in stored.games():
        task = result.task
        if task.pair in progress.duplicates or result.winner is None:
            continue
        number = numbers[task.variant].get(task.opening)
        if number is None:
            raise LadderError(
                f"{stored.store.folder}: game {task.id}: its opening is not in {ladder.openings.name}"
            )
        games.append(
            Game(
                run, task.pair, task.game, task.variant, number, result.names[0], result.names[1], result.winner,
                result.reason, result.captured, tuple(ply.move for ply in result.plies),
            )
        )  # fmt: skip
    forced = tuple(str(data) for word, data in stored.store.notes if word == "forced")
    source = Source(
        name,
        config["run.seed"],
        run_digest(progress.counted),
        progress.complete,
        len(progress.duplicates),
        forced,
    )
    return Pool(ladder.name, (source,), players, tuple(games))


# Files


def write(pool: Pool, path: Path) -> None:
    """Write a pool; the same pool gives the same bytes."""
    reasons = sorted({game.reason for game in pool.games})
    variants = sorted({game.variant for game in pool.games})
    names = sorted(pool.players)
    head = {
        "format": FORMAT,
        "ladder": pool.ladder,
        "runs": [
            {
                "name": run.name,
                "seed": run.seed,
                "digest": run.digest,
                "complete": run.complete,
                "repeated": run.repeated,
                "forced": list(run.forced),
            }
            for run in pool.runs
        ],
        "variants": variants,
        "reasons": reasons,
        "players": [_player(pool.players[name]) for name in names],
    }
    lines = [json.dumps(head)]
    lines += [
        json.dumps(
            [
                game.run, game.pair, game.game, variants.index(game.variant), game.opening,
                names.index(game.attackers), names.index(game.defenders), game.winner, reasons.index(game.reason),
                *game.captured, " ".join(game.moves),
            ],
            separators=(",", ":"),
        )
        for game in pool.games
    ]  # fmt: skip
    with lzma.open(path, "wb", preset=9 | lzma.PRESET_EXTREME) as stream:
        stream.write(("\n".join(lines) + "\n").encode())


def _player(one: LimitedPlayer) -> dict[str, Any]:
    return {
        "name": one.name,
        "player": one.player,
        "nodes": one.nodes,
        "depth": one.depth,
        "options": dict(one.options),
    }


def read(path: Path) -> Pool:
    """The pool in a file; LadderError if the file is not one."""
    try:
        with lzma.open(path, "rb") as stream:
            data = stream.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise LadderError(f"{path}: expected at most {LIMIT} bytes of text")
        lines = data.decode().splitlines()
        head = json.loads(lines[0])
        if head["format"] != FORMAT:
            raise LadderError(f"{path}: format {head['format']!r:.20}: expected {FORMAT}")
        players = [
            LimitedPlayer(one["name"], one["player"], one["nodes"], one["depth"], dict(one["options"]))
            for one in head["players"]
        ]
        runs = tuple(
            Source(
                run["name"],
                run["seed"],
                run["digest"],
                run["complete"],
                run["repeated"],
                tuple(run["forced"]),
            )
            for run in head["runs"]
        )
        games = tuple(_game(head, players, line) for line in lines[1:])
    except (OSError, EOFError, lzma.LZMAError) as error:
        text = getattr(error, "strerror", None) or error
        raise LadderError(f"{path}: {text}: expected a pool of games") from None
    except LadderError:
        raise
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise LadderError(f"{path}: {type(error).__name__}: {error}: expected a pool of games") from None
    return Pool(head["ladder"], runs, {one.name: one for one in players}, games)


def _game(head: Mapping[str, Any], players: Sequence[LimitedPlayer], line: str) -> Game:
    run, pair, game, variant, opening, attackers, defenders, winner, reason, one, two, moves = json.loads(
        line
    )
    if winner not in ("a", "d", "draw") or game not in (1, 2):
        raise ValueError(f"winner {winner!r:.20} of game {game!r:.20}")
    return Game(
        run, pair, game, head["variants"][variant], opening, players[attackers].name, players[defenders].name,
        winner, head["reasons"][reason], (one, two), tuple(moves.split()),
    )  # fmt: skip


# Records


def records(
    pool: Pool, lists: Mapping[str, Sequence[Opening]], player: str = "", variant: str = ""
) -> Iterator[GameRecord]:
    """The games as records, for all players and variants or for one; ValueError if a game cannot be replayed."""
    from hnefi.engine import games as doors
    from hnefi.engine.games import find
    from hnefi.engine.records.record import GameRecord, Ply, sorted_squares
    from hnefi.engine.sides import Outcome, Reason, Side

    winners = {"a": Side.ATTACKERS, "d": Side.DEFENDERS, "draw": None}
    for game in pool.games:
        if player and player not in (game.attackers, game.defenders):
            continue
        if variant and variant != game.variant:
            continue
        rules = find(game.variant)
        opening = lists[game.variant][game.opening - 1]
        position = doors.initial(rules)
        plies = []
        for text in (*opening.moves, *game.moves):
            move = position.parse_move(text)
            position = position.play(move)
            plies.append(Ply(move, sorted_squares(position.last_captures)))
        tags = [
            ("Event", pool.runs[game.run].name),
            ("Round", f"{game.pair}.{game.game}"),
            ("OpeningPlies", str(len(opening.moves))),
        ]
        yield GameRecord(
            variant=game.variant,
            start=None,
            plies=tuple(plies),
            outcome=Outcome(winners[game.winner], Reason(game.reason)),
            players=(game.attackers, game.defenders),
            rules_hash=rules.hash,
            tags=tuple(tags),
        )
