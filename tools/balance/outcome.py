"""The outcome of a run: measures of every rule set and player, and differences from their bases."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import searching
from .entrants import Entrant, points
from .folder import Key, Openings, Plan, Results, games_in
from .measures import Measures, Shift, measure, shift
from .searching import Found

SHORT = 4
"""Maximum plies of a short opening."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One rule set played by one player."""

    entrant: Entrant
    player: str
    measures: Measures


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a run has found so far. `misfits` are sentences about rule sets that some or all players cannot
    play; `borrowed` maps rule sets that are judged by weights fitted for another variant to that variant."""

    plan: Plan
    cells: tuple[Cell, ...]
    halves: tuple[tuple[str, Measures | None, Measures | None], ...]
    """Rule sets with the last player's games after short and after long openings."""
    shifts: tuple[tuple[Entrant, str, Shift], ...]
    found: Found | None
    misfits: tuple[str, ...]
    borrowed: Mapping[str, str]
    versions: tuple[str, ...]
    command: str

    def of(self, player: str) -> dict[str, Measures]:
        """The measures of one player, by rule set."""
        return {cell.entrant.label: cell.measures for cell in self.cells if cell.player == player}

    def at(self, label: str, player: str) -> Measures | None:
        """The measures of one rule set and player; None if there are no games."""
        return self.of(player).get(label)


def summarize(
    plan: Plan,
    results: Results,
    openings: Openings,
    found: Found | None,
    versions: Sequence[str],
    folder: str,
) -> Outcome:
    """The outcome of the games in a folder; rule sets and players without games are left out."""
    cells, shifts = [], []
    misfits = [
        f"{entrant.label}: a few random plies decide every game, so there are no openings"
        for entrant in plan.entrants
        if openings.get(entrant.label, searching.SELECTION, 1) == []
    ]
    borrowed: dict[str, str] = {}
    for player in plan.strengths():
        count = plan.games_of(player.label)
        for entrant in plan.entrants:
            reason = player.misfit(entrant.variant)
            if reason is not None:
                misfits.append(f"{entrant.label}: {reason}")
            games = games_in(results, Key(entrant.label, player.label, searching.SELECTION), count)
            measures = measure(games)
            if measures is None or plan.kind == "search":
                continue
            cells.append(Cell(entrant, player.label, measures))
            source = player.borrows(entrant.variant)
            if source is not None:
                borrowed[entrant.label] = source
            base = games_in(results, Key(entrant.base, player.label, searching.SELECTION), count)
            gap = shift(base, games)
            if gap is not None:
                shifts.append((entrant, player.label, gap))
    order = [entrant.label for entrant in plan.entrants]
    shifts.sort(key=lambda found: order.index(found[0].label))
    return Outcome(
        plan,
        tuple(cells),
        tuple(_halves(plan, results, openings)) if plan.kind == "table" else (),
        tuple(shifts),
        found,
        tuple(misfits),
        borrowed,
        tuple(sorted(versions)),
        command_of(plan, folder),
    )


def _halves(
    plan: Plan, results: Results, openings: Openings
) -> Iterator[tuple[str, Measures | None, Measures | None]]:
    """The last player's games by the length of their openings: at most `SHORT` plies, and more."""
    player = plan.players[-1]
    count = plan.games_of(player)
    for entrant in plan.entrants:
        begun = openings.get(entrant.label, searching.SELECTION, count)
        games = games_in(results, Key(entrant.label, player, searching.SELECTION), count)
        if begun and games:
            short = [game for game in games if len(begun[game.number % len(begun)]) <= SHORT]
            long = [game for game in games if len(begun[game.number % len(begun)]) > SHORT]
            yield entrant.label, measure(short), measure(long)


def command_of(plan: Plan, folder: str) -> str:
    """The command that reproduces a plan."""
    words = ["hnefi", "balance"]
    labels = [entrant.label for entrant in plan.entrants]
    if plan.kind == "search":
        words += ["--search", labels[0]]
    elif plan.kind == "diff":
        words += ["--diff", labels[0], *(_word(entrant) for entrant in plan.entrants[1:])]
    else:
        words += _sets(plan.entrants)
    words += ["--players", ",".join(plan.players)]
    if plan.kind != "search":
        words += ["--games", str(plan.games)]
    if plan.strongest != plan.games:
        words += ["--strongest", str(plan.strongest)]
    words += ["--seed", str(plan.seed), "--plies", str(plan.most_plies)]
    for name, value in plan.search.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join([*words, "--out", folder])


def _word(entrant: Entrant) -> str:
    """The name of a rule set in a comparison: its changed switches if it is a modification of its base."""
    change = entrant.label.removeprefix(entrant.base)
    return change.removeprefix("+") if change != entrant.label else entrant.label


def _sets(entrants: Sequence[Entrant]) -> list[str]:
    """Labels; the points of the paper, which have no names of their own, appear as the name of their set."""
    named = {entrant.label for entrant in points()}
    words: list[str] = []
    for entrant in entrants:
        ours = entrant.label in named and (bool(entrant.base) or any(other.base for other in entrants))
        word = "points" if ours else entrant.label
        if word not in words:
            words.append(word)
    return words
