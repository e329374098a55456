"""`hnefi ladder imitate`: a player that chooses moves as people do, fitted to their moves and the length of games.

The player searches a fixed number of nodes, its horizon, and draws among its best lines: one that is worth `d`
centipawns less than the best has a weight of exp(-d / temperature); now and then it plays any legal move. The values of
these lines in positions of recorded games determine how likely such a player is to make people's moves
(`people_fit.py`). Among the candidates that explain people's moves best, we choose the one whose games against itself
are nearest in length to people's. The winners of games are never used. Legal moves outside the best lines only count as
random moves.

plan.json       the questions; a different plan in the same folder is refused
answers.jsonl   a line for each position: the values of each candidate's best lines
games.jsonl     a line for each candidate: the lengths of its games against itself
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from hnefi.engine import durable, games
from hnefi.engine.score import MATE
from hnefi.engine.search.features import MEASURED
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.skill import EVALUATOR
from hnefi.engine.search.types import Info, Limits, Settings

from ..common.live import Counter, Live
from ..common.matches import seed as stream
from ..common.workers import WorkerFailed, carried_out
from . import people
from .ladder import LadderError
from .people import Game, GamePly
from .people_fit import Candidate, Fit, Observed, Result, compare, fit, in_fit, moves_of, nearest

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

HORIZONS: Final = (100, 300, 1000, 3000, 10_000)
"""Nodes per move."""
CHOICES: Final = (6, 12, 24)
"""Numbers of best lines to choose from."""
GAMES: Final = "games.jsonl"
LENGTHS: Final = 60
"""Games of each fitted player against itself."""
MOST_PLIES: Final = 400
"""Longer games count as games of this many plies."""
TABLE_MIB: Final = 1
MOST_NODES, MOST_CHOICES = 10**9, 256
REPORT: Final = "report.md"


@dataclass(frozen=True, slots=True)
class Plan:
    """The questions: the games (their digest), their rules, the candidates, and the positions."""

    games: str
    variant: str
    rules: str
    horizons: tuple[int, ...] = HORIZONS
    choices: tuple[int, ...] = CHOICES
    seed: int = 1

    @property
    def candidates(self) -> list[Candidate]:
        """Every horizon with every number of lines."""
        return [Candidate(nodes, choices) for nodes in self.horizons for choices in self.choices]

    def as_json(self) -> dict[str, Any]:
        """Everything that determines the answers."""
        return {
            "format": people.FORMAT,
            "games": self.games,
            "variant": self.variant,
            "rules": self.rules,
            "horizons": list(self.horizons),
            "choices": list(self.choices),
            "evaluator": EVALUATOR,
            "features": MEASURED,
            "own_games": [LENGTHS, MOST_PLIES],
            "seed": self.seed,
        }


class Task(NamedTuple):
    """Some positions of one plan."""

    plan: Plan
    rules: Variant
    asked: tuple[tuple[Game, int], ...]


def settings(choices: int, temperature: int, at_random: int = 0) -> Settings:
    """The settings of a player: `temperature` in centipawns, `at_random` in thousandths of its moves."""
    return Settings(
        evaluator=EVALUATOR,
        features=MEASURED,
        hash_mib=TABLE_MIB,
        temperature=temperature,
        choices=choices,
        at_random=at_random,
    )


def observe(task: Task) -> list[Observed | GamePly]:
    """The values of each candidate's best lines; only the ply if just one move is legal."""
    searcher = Searcher(Settings(hash_mib=TABLE_MIB))
    return [_observe(searcher, game, ply, task) for game, ply in task.asked]


def _observe(searcher: Searcher, game: Game, ply: int, task: Task) -> Observed | GamePly:
    position = people.before(game, ply, task.rules)
    played = people.move_made(game, ply, position)
    legal = position.legal_moves()
    if len(legal) < 2:
        return GamePly(game.line, ply)
    there = position.play(played).canonical()
    same = {move for move in legal if move == played or position.play(move).canonical() == there}
    lines = {}
    for one in task.plan.candidates:
        found = best_lines(
            searcher, position, one, stream(task.plan.seed, game.line, ply, one.nodes) % people.SEEDS
        )
        lines[one.key] = [(value, int(move in same)) for move, value in found]
    return Observed(game.line, ply, int(position.side), len(legal), len(same), lines)


def best_lines(searcher: Searcher, position: Any, candidate: Candidate, seed: int) -> list[tuple[int, int]]:
    """The first moves of the candidate's best lines with their values."""
    # With any temperature the engine searches as the player will, with moves in a random order.
    searcher.configure(replace(settings(candidate.choices, 1), multipv=candidate.choices, seed=seed))
    searcher.clear()
    searcher.begin()
    infos: list[Info] = []
    result = searcher.search(position, Limits(nodes=candidate.nodes), infos.append)
    if result.better:
        # The last report is for the drawn move, in place of the best line.
        infos.pop()
    last = {info.multipv: info for info in infos if info.pv}
    return [(info.pv[0], _value(info)) for info in last.values()]


def _value(info: Info) -> int:
    score = info.score
    if score.cp is not None:
        return score.cp
    assert score.mate is not None
    return MATE - score.mate if score.mate > 0 else -MATE - score.mate


# Games of the fitted players


def lengths(rules: Variant, candidate: Candidate, fitted: Fit, count: int, seed: int) -> tuple[int, ...]:
    """Plies of a player's games against itself from the start position; `MOST_PLIES` for longer ones."""
    player = settings(candidate.choices, fitted.temperature, fitted.at_random)
    searcher = Searcher(player)
    found = []
    for number in range(count):
        searcher.configure(replace(player, seed=stream(seed, "game", candidate.key, number) % people.SEEDS))
        searcher.clear()
        position, plies = games.initial(rules), 0
        while position.outcome is None and plies < MOST_PLIES:
            searcher.begin()
            move = searcher.search(position, Limits(nodes=candidate.nodes), lambda _: None).move
            assert move is not None
            position = position.play(move)
            plies += 1
        found.append(plies)
    return tuple(found)


def played_lengths(
    folder: Path,
    plan: Plan,
    rules: Variant,
    found: Sequence[Result],
    watch: people.Watch,
    jobs: int,
    backend: str,
) -> list[Result]:
    """The candidates with the lengths of their games; games of an unchanged fit are not played again."""
    known: dict[tuple[int, ...], tuple[int, ...]] = {}
    for number, text in enumerate(durable.whole_lines(folder / GAMES), start=1):
        try:
            told = json.loads(text)
            key, plies = tuple(map(int, told["player"])), tuple(map(int, told["plies"]))
        except (ValueError, KeyError, TypeError) as error:
            raise LadderError(
                f"{folder / GAMES}: line {number}: {text[:60]!r}: expected games ({error})"
            ) from None
        known[key] = plies

    def key_of(one: Result) -> tuple[int, ...]:
        return *one.candidate, one.fit.temperature, one.fit.at_random

    missing = [one for one in found if key_of(one) not in known]
    watch(len(found) - len(missing), len(found))
    work = [partial(lengths, rules, one.candidate, one.fit, LENGTHS, plan.seed) for one in missing]
    for done, (number, plies) in enumerate(carried_out(work, jobs, backend), start=1):
        key = key_of(missing[number])
        durable.append_line(folder / GAMES, json.dumps({"player": key, "plies": plies}).encode())
        known[key] = plies
        watch(len(found) - len(missing) + done, len(found))
    return [one._replace(plies=known[key_of(one)]) for one in found]


# The folder


def read_answers(folder: Path, plan: Plan) -> dict[GamePly, Observed | None]:
    """The answers so far, None if there was no choice; LadderError for lines that are not ours."""
    path = folder / people.ANSWERS
    found: dict[GamePly, Observed | None] = {}
    for number, line in enumerate(durable.whole_lines(path), start=1):
        try:
            told = json.loads(line)
            ply = GamePly(int(told["line"]), int(told["ply"]))
            found[ply] = None if len(told) == len(ply) else _read(told, plan)
        except (ValueError, KeyError, TypeError) as error:
            raise LadderError(f"{path}: line {number}: {line[:60]!r}: expected an answer ({error})") from None
    return found


def _read(told: Mapping[str, Any], plan: Plan) -> Observed:
    one = Observed(**told)
    if set(one.lines) != {candidate.key for candidate in plan.candidates} or not 0 < one.same <= one.legal:
        raise ValueError("other candidates or moves")
    if any(
        type(value) is not int or same not in (0, 1) for lines in one.lines.values() for value, same in lines
    ):
        raise ValueError("a line without a value")
    return one


def work(
    folder: Path,
    plan: Plan,
    rules: Variant,
    found: Sequence[Game],
    positions: int,
    watch: people.Watch,
    jobs: int,
    backend: str,
) -> list[Observed]:
    """Ask about missing positions; returns all observations in the order of `people.places`."""
    by_line = {game.line: game for game in found}
    wanted = people.places(found, plan.seed)[:positions]
    known = read_answers(folder, plan)

    def task(plies: Sequence[GamePly]) -> Any:
        return partial(observe, Task(plan, rules, tuple((by_line[line], ply) for line, ply in plies)))

    people.carry_out(folder, wanted, known, task, watch, jobs, backend)
    return [one for ply in wanted if (one := known[ply]) is not None]


# Results


def player_file(plan: Plan, candidate: Candidate, fitted: Fit, source: str) -> str:
    """The text of a player's file for the fitted player."""
    return f"""# {source}
description = "A free choice of moves, fitted to those of people on {plan.variant}."
evaluator = "{EVALUATOR}"
variant = "{plan.variant}"

[limits]
nodes = {candidate.nodes}

[options]
Features = "{MEASURED}"
Hash = {TABLE_MIB}
MoveTemperature = {fitted.temperature}
MoveChoices = {candidate.choices}
RandomMoves = {fitted.at_random}
"""


def people_length(found: Sequence[Game], rules: Variant) -> float:
    """The mean plies of people's games that the rules ended. Most others were resigned, which the player never does."""
    plies = [
        len(game.moves)
        for game in found
        if people.before(game, len(game.moves) + 1, rules).outcome is not None
    ]
    if not plies:
        raise LadderError("the rules end none of these games: expected some that do, for their length")
    return mean(plies)


def report(
    plan: Plan,
    observed: Sequence[Observed],
    results: Sequence[Result],
    length: float,
    chosen: Candidate,
    fitted: Fit,
    command: str,
) -> str:
    """The report in Markdown; `fitted` is the chosen candidate's fit to all positions."""
    held = [one for one in observed if not in_fit(one.line, plan.seed)]
    by_chance = float(np.log([one.same / one.legal for one in held]).mean())
    count = len({one.line for one in observed})
    rows = "\n".join(
        f"| {one.candidate.nodes:,} | {one.candidate.choices} | {one.fit.temperature} | {one.fit.at_random / 10:g} "
        f"| {one.held_out:.3f} | {one.behind[0]:+.3f} to {one.behind[1]:+.3f} | {mean(one.plies):.1f} |"
        for one in results
    )
    return f"""# A player that imitates people: {plan.variant}

    {command}

{len(observed)} moves of people, from {count} games; {len(held)} of them, whole games, were held out of the fits in the
table: each game is with a chance of one half. Who won was not looked at.

*Likelihood*: the mean natural logarithm of the probability that the player makes people's move, on the games held out;
any legal move at random has {by_chance:.3f}. *Behind*: by how much the best candidate has more, a 95 % interval from
resampling games. *Plies*: the mean length of {LENGTHS} games of the player with itself, at most {MOST_PLIES} each;
people's games that the rules ended have {length:.1f}.

| nodes | choices | temperature, centipawns | random moves % | likelihood | behind | plies |
|---|---|---|---|---|---|---|
{rows}

Chosen: {chosen.nodes:,} nodes, {chosen.choices} choices. Of those that cannot be told from the best it is the one whose
games are nearest in length. Fitted to all moves: temperature {fitted.temperature}, {fitted.at_random / 10:g} % random
moves.
"""


# The subcommand


def read_numbers(flag: str, text: str | None, default: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The distinct numbers given with a flag, in order; LadderError for anything else."""
    if text is None:
        return default
    words = [word.strip() for word in text.split(",")]
    if len(set(words)) == len(words) and all(word.isascii() and word.isdigit() for word in words):
        found = tuple(sorted(map(int, words)))
        if found[0] > 0 and found[-1] <= most:
            return found
    raise LadderError(
        f"{flag} {text[:60]!r}: expected different whole numbers up to {most:,}, such as {default[0]},{default[1]}"
    )


def run(given: Any, variant: Variant, jobs: int) -> int:
    """Ask, fit, play and report; returns the exit code."""
    file, folder = Path(given.games), Path(given.out)
    rules = people.played_by(file, variant)
    found = people.recorded(file, variant)
    length = people_length(found, rules)
    plan = Plan(
        people.digest(file),
        variant.name,
        rules.hash,
        read_numbers("--horizons", given.horizons, HORIZONS, MOST_NODES),
        read_numbers("--choices", given.choices, CHOICES, MOST_CHOICES),
        given.seed,
    )
    people.prepare(folder, plan.as_json(), "imitate")
    live = Live(sys.stdout, plain=given.plain)
    try:
        observed = work(
            folder, plan, rules, found, given.positions, Counter(live, "positions"), jobs, given.backend
        )
        results = compare(plan.candidates, observed, plan.seed)
        results = played_lengths(
            folder, plan, rules, results, Counter(live, "players with themselves"), jobs, given.backend
        )
        live.close()
        chosen = nearest(results, length).candidate
        fitted = fit(moves_of(observed, chosen))
        command = (
            f"hnefi ladder imitate {shlex.quote(file.name)} --variant {shlex.quote(variant.name)}"
            f" --horizons {','.join(map(str, plan.horizons))} --choices {','.join(map(str, plan.choices))}"
            f" --positions {given.positions} --seed {plan.seed} --out {shlex.quote(str(folder))}"
        )
        text = report(plan, observed, results, length, chosen, fitted, command)
        player = folder / f"human-{variant.name}.toml"
        durable.put(folder / REPORT, text.encode())
        durable.put(player, player_file(plan, chosen, fitted, command).encode())
    except WorkerFailed as error:
        raise LadderError(str(error)) from None
    except OSError as error:
        raise LadderError(
            f"{error.filename or folder}: {error.strerror}: expected a folder to write"
        ) from error
    print(f"report {folder / REPORT}\nplayer {player}")
    return 0
