"""Games that were never played, for tables: results from a few letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from hnefi.tools.arena import openings, option_reader
from hnefi.tools.arena.run import Run
from hnefi.tools.arena.store import CONFIG, FINGERPRINT, OPENINGS, Store
from hnefi.tools.arena.summary import Counts, RunFacts, State, Summary, sprt_line, summarize
from hnefi.tools.arena.values import Fault, GameResult, GameTask, Opening, PlyLog, Winner, image
from hnefi.tools.common.pairs import Ending, Pair, Played
from hnefi.tools.common.rating import Model
from hnefi.tools.common.sprt import Sprt, Walk

WINNERS: dict[str, Winner] = {"a": "a", "d": "d", "=": "draw"}
REASONS = {"a": "king_captured", "d": "king_escaped", "draw": "repetition"}
MOVES = ("a4a2", "d3a3", "d2d3", "b4b2", "d1c1", "f4f3")


def game(
    pair: int,
    number: Literal[1, 2],
    winner: Winner | None,
    names: tuple[str, ...] = ("mine", "simple"),
    engines: tuple[int, int] = (0, 1),
    *,
    variant: str = "brandubh",
    reason: str = "",
    fault: Fault | None = None,
    plies: int = 20,
    captured: tuple[int, int] = (0, 0),
    lateness: float = 0.1,
) -> GameResult:
    """Game 1 or 2 of a pair; `engines` are those of game 1."""
    sides = engines if number == 1 else engines[::-1]
    # No two games of one length are alike.
    numbered = [
        PlyLog(MOVES[(pair * 7 + number * 3 + ply) % 6], cp=ply, depth=4, nodes=pair) for ply in range(plies)
    ]
    return GameResult(
        task=GameTask(pair, number, variant, Opening(None, (f"a{pair}b{pair}",)), sides, (1, 2)),
        names=(names[sides[0]], names[sides[1]]),
        winner=winner,
        reason=reason or (fault.reason if fault else REASONS[winner] if winner else "interrupted"),
        plies=tuple(numbered),
        captured=captured,
        fault=fault,
        final="7/7/7/3K3/7/7/7 a 3 9",
        lateness=lateness,
        seconds=1.5,
    )


def pairs(text: str, **known: object) -> Iterator[GameResult]:
    """Pairs such as `aa ad d=`: who won the first and the second game; `a.` has no second game yet."""
    for number, (one, two) in enumerate(text.split(), 1):
        yield game(number, 1, WINNERS[one], plies=20 + number, **known)  # type: ignore[arg-type]
        if two != ".":
            yield game(number, 2, WINNERS[two], plies=30 + number, **known)  # type: ignore[arg-type]


def facts(**known: object) -> RunFacts:
    """Facts of a run of two engines."""
    given: dict[str, object] = {
        "name": "cup",
        "format": "match",
        "engines": ("mine", "simple"),
        "variants": ("brandubh",),
        "limits": "nodes 2000",
        "openings": "random, 2-8 plies",
        "seed": 7,
        "slots": 2,
        "pairs": 400,
        "model": Model(bootstrap=50),
    }
    return RunFacts(**{**given, **known})  # type: ignore[arg-type]


def played(result: GameResult) -> Played | None:
    """A result as tallies take it; None for a game without one."""
    if result.winner is None:
        return None
    task = result.task
    ending = Ending(task.variant, *result.names, result.winner)
    moves = len(result.plies)
    return Played(task.pair, task.game, ending, result.reason, result.captured, moves, image(result))


def counts_of(results: Iterable[GameResult]) -> Counts:
    """What a run counts of these results."""
    counts = Counts()
    for result in results:
        if (one := played(result)) is not None:
            fault = None if result.fault is None else (result.fault.side, result.fault.reason)
            counts.add(one, fault, result.lateness, result.seconds)
    return counts


def walk_of(test: Sprt, results: Iterable[GameResult]) -> Walk:
    """The test along complete pairs."""
    walk = Walk(test)
    known = [one for result in results if (one := played(result)) is not None]
    for one, two in zip(known[::2], known[1::2], strict=False):
        walk.add(one.pair, Pair(one, two).classes(test.unit))
    return walk


def summary(
    results: Iterable[GameResult], state: State | None = None, fit: bool = True, **known: object
) -> Summary:
    """The summary of some games."""
    about = facts(**known)
    found = list(results)
    test = None if about.test is None else sprt_line(about, walk_of(about.test, found))
    return summarize(about, counts_of(found), state, test, fit=fit)


def new_run(folder: Path, run: Run) -> Store:
    """The folder of a run that was prepared without engines."""
    lists = {name: tuple(found) for name, found in run.openings.items()}
    files = {
        CONFIG: option_reader.to_toml(run.config),
        FINGERPRINT: "{}\n",
        OPENINGS: openings.to_lines(lists),
    }
    return Store.create(folder, files)
