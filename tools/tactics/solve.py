"""What an engine makes of a suite: each position asked once, as the first of a new game."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hnefi.engine.search.types import Limits
from hnefi.protocol.client import Engine
from hnefi.protocol.hosts.puzzles.suite import Entry

from ..common import compiling


@dataclass(frozen=True, slots=True)
class Result:
    """One answer. `solved`: the move is a proven one; for a loss, the engine says that it loses.

    `announced`: its score is a forced end for the right side. `nodes` and `milliseconds` are those of the whole
    search, None and our own clock where the engine does not say them.
    """

    entry: Entry
    move: str | None
    solved: bool
    announced: bool
    nodes: int | None
    milliseconds: float


async def solve(
    command: Sequence[str],
    options: Sequence[tuple[str, str]],
    entries: Sequence[Entry],
    limits: Limits,
    on_result: Callable[[Result], None],
) -> list[Result]:
    """Ask one engine process about every position; EngineError if it fails."""
    results: list[Result] = []
    async with await Engine.start(list(command), on_compiling=compiling.report) as engine:
        for name, value in options:
            await engine.set_option(name, value)
        variant = ""
        for entry in entries:
            if entry.variant != variant:
                await engine.set_variant(entry.variant)
                variant = entry.variant
            await engine.new_game()
            engine.position(f"fen {entry.fen}")
            answer = await (await engine.go(limits))
            info = answer.info
            mate = info.score.mate if info is not None and info.score is not None else None
            if entry.kind == "loss":
                announced = solved = mate is not None and mate < 0
            else:
                solved = answer.move in entry.moves + entry.later
                announced = entry.kind == "win" and mate is not None and mate > 0
            nodes = None if info is None else info.nodes
            results.append(Result(entry, answer.move, solved, announced, nodes, 1000 * answer.seconds))
            on_result(results[-1])
    return results


def table(results: Sequence[Result], key: Callable[[Result], str]) -> list[tuple[str, int, int, int, float]]:
    """Rows by `key` and their sum: name, positions, solved, announced, seconds."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return [_row(name, groups[name]) for name in sorted(groups)] + [_row("all", results)]


def _row(name: str, results: Sequence[Result]) -> tuple[str, int, int, int, float]:
    return (
        name,
        len(results),
        sum(result.solved for result in results),
        sum(result.announced for result in results),
        sum(result.milliseconds for result in results) / 1000,
    )


def by_variant(result: Result) -> str:
    """The group of a result in a table of variants."""
    return result.entry.variant


def by_length(result: Result) -> str:
    """The group of a result in a table of kinds and lengths, in plies."""
    return f"{result.entry.kind} {result.entry.plies:>2}"
