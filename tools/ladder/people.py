"""People and players on the same positions: the move of each, and what a strong player thinks of it.

Positions are drawn from recorded games, each move of people with equal probability. In each, every player is asked for
a move as in a game of its own, and the judge, who is also a player, evaluates the position, people's move, and every
other answer: always by a search of the position after the move, so that no move is searched more deeply than another.

plan.json       the questions; a different plan in the same folder is refused
answers.jsonl   a line for each position, synced to disk before the next ones begin
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hnefi.engine import durable, games
from hnefi.engine.regular import read_regular
from hnefi.engine.squares import move_name

from ..arena.in_process import InProcessEngine
from ..arena.values import EngineSpec, SideLimits
from ..common.matches import seed as stream
from ..common.workers import carried_out
from .ladder import LadderError, LimitedPlayer

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.search.types import Info

PLAN, ANSWERS = "plan.json", "answers.jsonl"
FORMAT: Final = 1
MOST: Final = 1000
"""Centipawns of a decided game, and the limit for all values."""
IN_A_JOB: Final = 4
SEEDS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions: the games (their digest), the rules, the players, the judge, and the positions."""

    games: str
    variant: str
    rules: str
    """The hash of the rules that the games were played by."""
    players: tuple[LimitedPlayer, ...]
    judge: LimitedPlayer
    seed: int = 1

    def as_json(self) -> dict[str, Any]:
        """Everything that determines the answers."""
        return {
            "format": FORMAT,
            "games": self.games,
            "variant": self.variant,
            "rules": self.rules,
            "players": [one.engine() for one in self.players],
            "judge": self.judge.engine(),
            "seed": self.seed,
        }


class Game(NamedTuple):
    """A recorded game: its line in the file, the winner (`a`, `d`, `draw`; None if unfinished), its moves."""

    line: int
    result: str | None
    moves: tuple[int, ...]


class GamePly(NamedTuple):
    """A move in a recorded game: the line of the file, and the ply, from 1."""

    line: int
    ply: int


class Answer(NamedTuple):
    """One position with all answers.

    `value` is the judge's value of the position, in centipawns for the side to move; `after` has its values of the
    positions after moves, for the side that made them. `moves` has the players' moves by name; `same` has the names of
    the players whose move leads to the same position as people's, or to a mirror image of it.
    """

    line: int
    ply: int
    plies: int
    result: str | None
    side: int
    choices: int
    value: int
    played: str
    best: str
    moves: Mapping[str, str]
    same: tuple[str, ...]
    after: Mapping[str, int]

    def loss(self, name: str = "") -> int:
        """Centipawns by which the move of a player, or of people without a name, is worse than the judge's own;
        negative if it turns out better."""
        return self.after[self.best] - self.after[self.moves[name] if name else self.played]


# The games


def recorded(file: Path, variant: Variant) -> list[Game]:
    """The games of a collection; LadderError if it is unreadable or breaks the rules."""
    from hnefi.engine.records.corpus import CorpusError, read

    try:
        found = [
            Game(game.line, game.result, tuple(move for move, _ in game.plies))
            for game in read(file, variant.size)
        ]
    except CorpusError as error:
        raise LadderError(str(error)) from None
    if not any(game.moves for game in found):
        raise LadderError(f"{file}: no moves in it: expected recorded games")
    return found


def played_by(file: Path, variant: Variant) -> Variant:
    """The rules that the games of a file followed: CSV games were not ended by repetitions and limits."""
    from hnefi.engine.records.corpus import CorpusError, corpus_format
    from hnefi.engine.records.replay import as_played

    try:
        return as_played(variant) if corpus_format(file) == "csv" else variant
    except CorpusError as error:
        raise LadderError(str(error)) from None


def digest(file: Path) -> str:
    """A digest that identifies a collection."""
    try:
        return hashlib.sha256(read_regular(file)).hexdigest()
    except OSError as error:
        raise LadderError(f"{file}: {error.strerror or error}: expected recorded games") from None


def places(found: Sequence[Game], seed: int) -> list[GamePly]:
    """All moves of all games in a random order from `seed`, so that a larger sample with the same seed begins with the
    smaller one."""
    every = [GamePly(game.line, ply) for game in found for ply in range(1, len(game.moves) + 1)]
    return sorted(every, key=lambda ply: stream(seed, *ply))


def before(game: Game, ply: int, rules: Variant) -> Position:
    """The position in which a move was made; LadderError for a game that breaks its rules."""
    position: Position = games.initial(rules)
    for number, move in enumerate(game.moves[: ply - 1], start=1):
        try:
            position = position.play(move)
        except ValueError as error:
            raise LadderError(
                f"line {game.line} ply {number}: {move_name(move)}: {error}: expected games of {rules.name}; "
                "hnefi verify says more"
            ) from None
    return position


def move_made(game: Game, ply: int, position: Position) -> int:
    """People's move in the position before it; LadderError if it is illegal there."""
    move = game.moves[ply - 1]
    if position.outcome is not None or move not in position.legal_moves():
        raise LadderError(
            f"line {game.line} ply {ply}: {move_name(move)}: expected games of {position.variant.name}; "
            "hnefi verify says more"
        )
    return move


# Asking


def expect_fit(one: LimitedPlayer, rules: Variant) -> None:
    """LadderError for a player that does not play these rules."""
    from hnefi import players
    from hnefi.engine.evaluators import misfit

    known = players.load(one.player)
    reason = known.misfit(rules) or misfit(one.options.get("Evaluator", known.evaluator), rules)
    if reason:
        raise LadderError(f"{one.name}: {reason}: expected a player of {rules.name}")


class Asked:
    """A player for single positions; each is asked as if nothing had been asked before."""

    def __init__(self, one: LimitedPlayer) -> None:
        self.name = one.name
        limit = SideLimits(depth=one.depth, nodes=one.nodes)
        self._engine = InProcessEngine(
            EngineSpec(
                one.name, (), player=one.player, options=tuple(one.options.items()), limits=(limit, limit)
            )
        )

    def move(self, position: Position, seed: int) -> tuple[int, Info | None]:
        """A move, and the last report of the search."""
        self._engine.ready(position.variant, seed)
        return self._engine.move(position)


class Task(NamedTuple):
    """Some positions of one plan."""

    players: tuple[LimitedPlayer, ...]
    judge: LimitedPlayer
    rules: Variant
    seed: int
    asked: tuple[tuple[Game, int], ...]


def answers(task: Task) -> list[Answer | GamePly]:
    """All answers; only the ply if just one move is legal."""
    players = [_asked(one) for one in task.players]
    judge = _asked(task.judge)
    return [_answer(game, ply, task, players, judge) for game, ply in task.asked]


@cache
def _asked_by(text: str) -> Asked:
    told = json.loads(text)
    return Asked(LimitedPlayer(**told))


def _asked(one: LimitedPlayer) -> Asked:
    """The player, cached in this process because loading one takes longer than a move."""
    return _asked_by(json.dumps(one.engine()))


def _answer(game: Game, ply: int, task: Task, players: Sequence[Asked], judge: Asked) -> Answer | GamePly:
    position = before(game, ply, task.rules)
    played = move_made(game, ply, position)
    legal = position.legal_moves()
    if len(legal) < 2:
        return GamePly(game.line, ply)
    seed = stream(task.seed, game.line, ply) % SEEDS
    best, info = judge.move(position, seed)
    said = {one.name: one.move(position, seed)[0] for one in players}
    after: dict[str, int] = {}
    for move in dict.fromkeys((played, best, *said.values())):
        after[move_name(move)] = _after(position.play(move), int(position.side), judge, seed)
    there = position.play(played).canonical()
    same = tuple(
        name for name, move in said.items() if move == played or position.play(move).canonical() == there
    )
    return Answer(
        game.line, ply, len(game.moves), game.result, int(position.side), len(legal), _value(info),
        move_name(played), move_name(best), {name: move_name(move) for name, move in said.items()}, same, after,
    )  # fmt: skip


def _after(position: Position, side: int, judge: Asked, seed: int) -> int:
    """The value of a position for a side, in centipawns."""
    outcome = position.outcome
    if outcome is not None:
        return 0 if outcome.winner is None else MOST if int(outcome.winner) == side else -MOST
    value = _value(judge.move(position, seed)[1])
    return value if int(position.side) == side else -value


def _value(info: Info | None) -> int:
    """Centipawns for the side to move; a forced win counts as much as a game won."""
    assert info is not None
    score = info.score
    if score.cp is None:
        return MOST if (score.mate or 0) > 0 else -MOST
    return max(-MOST, min(MOST, score.cp))


# The folder


def prepare(folder: Path, ours: Mapping[str, Any], command: str = "people") -> None:
    """Create the folder of `hnefi ladder COMMAND`, or check that it has the same plan; LadderError names the
    differences."""
    path = folder / PLAN
    try:
        durable.make_folder(folder)
        if not path.exists():
            if any(
                entry.suffix != ".new" for entry in folder.iterdir()
            ):  # left by a crash of the first attempt
                raise LadderError(
                    f"{folder}: expected an empty folder, or one of hnefi ladder {command}: --out"
                )
            durable.put(path, (json.dumps(ours, indent=1) + "\n").encode())
            return
        there = json.loads(read_regular(path))
        differing = [key for key, value in ours.items() if there[key] != value]
    except OSError as error:
        raise LadderError(
            f"{folder}: {error.strerror or error}: expected a folder that can be written"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise LadderError(f"{path}: expected the plan of hnefi ladder {command}") from None
    if differing:
        raise LadderError(
            f"{folder}: other {', '.join(differing)} there: expected another --out, or the same command"
        )


def read_answers(folder: Path) -> dict[GamePly, Answer | None]:
    """The answers so far, None if there was no choice; LadderError for lines that are not ours."""
    path = folder / ANSWERS
    found: dict[GamePly, Answer | None] = {}
    for number, line in enumerate(durable.whole_lines(path), start=1):
        try:
            told = json.loads(line)
            ply = GamePly(int(told["line"]), int(told["ply"]))
            found[ply] = None if len(told) == len(ply) else _read(told)
        except (ValueError, KeyError, TypeError) as error:
            raise LadderError(f"{path}: line {number}: {line[:60]!r}: expected an answer ({error})") from None
    return found


def _read(told: Mapping[str, Any]) -> Answer:
    answer = Answer(**{**told, "same": tuple(told["same"])})
    moves = {answer.played, answer.best, *answer.moves.values()}
    if answer.side not in (0, 1) or answer.result not in (None, "a", "d", "draw"):
        raise ValueError("side or result")
    if not moves <= set(answer.after) or any(type(value) is not int for value in answer.after.values()):
        raise ValueError("a move without a value")
    return answer


Watch = Callable[[int, int], None]
"""Called with the numbers of finished positions and of all positions."""


def work(
    folder: Path,
    plan: Plan,
    rules: Variant,
    found: Sequence[Game],
    positions: int,
    watch: Watch,
    jobs: int,
    backend: str,
) -> list[Answer]:
    """Ask about missing positions; returns all answers in the order of `places`."""
    by_line = {game.line: game for game in found}
    wanted = places(found, plan.seed)[:positions]
    known = read_answers(folder)

    def task(plies: Sequence[GamePly]) -> Callable[[], list[Answer | GamePly]]:
        asked = tuple((by_line[line], ply) for line, ply in plies)
        return partial(answers, Task(plan.players, plan.judge, rules, plan.seed, asked))

    carry_out(folder, wanted, known, task, watch, jobs, backend)
    return [answer for ply in wanted if (answer := known[ply]) is not None]


def carry_out(
    folder: Path,
    wanted: Sequence[GamePly],
    known: dict[GamePly, Any],
    task: Callable[[Sequence[GamePly]], Callable[[], Sequence[Any]]],
    watch: Watch,
    jobs: int,
    backend: str,
) -> None:
    """Add the missing answers for `wanted` to `known` and to the folder: named tuples that begin with a `GamePly`, or
    only such a ply, which is stored as None. `task` makes the job for some plies."""
    missing = [ply for ply in wanted if ply not in known]
    tasks = [task(missing[first : first + IN_A_JOB]) for first in range(0, len(missing), IN_A_JOB)]
    done = len(wanted) - len(missing)
    watch(done, len(wanted))
    for _, said in carried_out(tasks, jobs, backend):
        for one in said:
            durable.append_line(folder / ANSWERS, json.dumps(one._asdict(), separators=(",", ":")).encode())
            known[GamePly(one.line, one.ply)] = None if isinstance(one, GamePly) else one
        done += len(said)
        watch(done, len(wanted))
