"""`hnefi bench pruning`: what sorting, narrow windows, a table and MTD(f) save in a plain alpha-beta.

P. Hingston, "Evolving Players for an Ancient Game: Hnefatafl" (2007), reports an effective branching factor of 10 to 20
"even with pruning", where over a hundred moves are legal, and that sorting moves by their heuristic values, aspiration
search, transposition tables and MTD gave no significant improvement. Here each of them is added alone to the same
search, written as plainly as possible, with the values of the paper's player Simple. What is counted are nodes, the
positions that a move was made to reach, those of earlier depths and of sorting included.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..common.arguments import (
    add_variant_path,
    find_tafl_variant,
    let_interrupt_end_us,
    parser,
)
from ..common.live import Live
from ..experiments.spread import bootstrap
from .search import add_search, positions

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

WIN = 1_000_000
"""The value of a win at the root, one less for every ply until it."""
INFINITE = 2 * WIN
MARGIN = 5
"""Half the width of an aspiration window in Simple's tenths of a man."""


@dataclass(frozen=True, slots=True)
class Way:
    """What is added to alpha-beta. `sort`: moves in the order of the values of the positions they lead to, but for the
    last ply, where these are the leaves. `table`: bounds and best moves by position. `windows`: how each depth is
    searched, starting from the value of the depth before: `full`, `aspiration`, or `mtd`, which needs the table.
    """

    sort: bool = False
    table: bool = False
    windows: str = "full"

    @property
    def deepens(self) -> bool:
        """Whether the smaller depths are searched first."""
        return self.table or self.windows != "full"


WAYS = {
    "plain": Way(),
    "sorting": Way(sort=True),
    "aspiration": Way(windows="aspiration"),
    "table": Way(table=True),
    "mtd": Way(table=True, windows="mtd"),
    "sorting, table and aspiration": Way(sort=True, table=True, windows="aspiration"),
}
"""The first is what the others are compared with."""


@dataclass(slots=True)
class Search:
    """One search from a root. `nodes` counts the positions that moves were made to reach."""

    way: Way
    distance: dict[int, int]
    """The king's distance to the nearest goal by square."""
    nodes: int = 0
    bounds: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)
    """By position, depth and ply: the value is at least the first and at most the second."""
    best: dict[int, int] = field(default_factory=dict)
    """The best move of a position at the last depth that it was searched to."""

    def value(self, root: Position, depth: int) -> int:
        """The minimax value of the root for the side to move."""
        guess = 0
        for d in range(1 if self.way.deepens else depth, depth + 1):
            guess = self._search(root, d, guess, first=d == 1 or not self.way.deepens)
        return guess

    def _search(self, root: Position, depth: int, guess: int, *, first: bool) -> int:
        if self.way.windows == "mtd":
            # A. Plaat, J. Schaeffer, W. Pijls, A. de Bruin, "Best-first fixed-depth minimax algorithms", 1996.
            low, high = -INFINITE, INFINITE
            while low < high:
                beta = max(guess, low + 1)
                guess = self._alphabeta(root, depth, beta - 1, beta, 0)
                low, high = (low, guess) if guess < beta else (guess, high)
            return guess
        low, high = -INFINITE, INFINITE
        if self.way.windows == "aspiration" and not first:
            low, high = guess - MARGIN, guess + MARGIN
        found = self._alphabeta(root, depth, low, high, 0)
        if found <= low:
            return self._alphabeta(root, depth, -INFINITE, found + 1, 0)
        if found >= high:
            return self._alphabeta(root, depth, found - 1, INFINITE, 0)
        return found

    def _alphabeta(self, position: Position, depth: int, alpha: int, beta: int, ply: int) -> int:
        """The value for the side to move if it is between `alpha` and `beta`, else a bound of it (fail-soft)."""
        outcome = position.outcome
        if outcome is not None:
            won = 0 if outcome.winner is None else WIN - ply
            return won if outcome.winner == position.side else -won
        if depth == 0:
            return self._evaluate(position)
        # The value of a win counts plies from the root, which other depths of the root reach at other plies.
        key = (position.key, depth, ply)
        low, high = self.bounds.get(key, (-INFINITE, INFINITE))
        if low >= beta or low == high:
            return low
        if high <= alpha:
            return high
        top, above = -INFINITE, alpha
        for move, child in self._children(position, depth):
            after = child or self._play(position, move)
            value = -self._alphabeta(after, depth - 1, -beta, -above, ply + 1)
            if value > top:
                top = value
                if self.way.table:
                    self.best[position.key] = move
            above = max(above, value)
            if above >= beta:
                break
        if self.way.table:
            self.bounds[key] = (top if top > alpha else low, top if top < beta else high)
        return top

    def _children(self, position: Position, depth: int) -> list[tuple[int, Position | None]]:
        """The moves in the order in which they are tried, with the positions after them if sorting made these."""
        found: list[tuple[int, Position | None]] = [(move, None) for move in position.legal_moves()]
        if self.way.sort and depth > 1:
            children = [(move, self._play(position, move)) for move, _ in found]
            found = [*sorted(children, key=lambda pair: self._evaluate(pair[1]))]
        if self.way.table and (best := self.best.get(position.key)) is not None:
            found.sort(key=lambda pair: pair[0] != best)
        return found

    def _play(self, position: Position, move: int) -> Position:
        self.nodes += 1
        return position.play(move)

    def _evaluate(self, position: Position) -> int:
        """Simple's value for the side to move, in tenths of a man."""
        by_attackers, by_defenders = position.taken
        king = next((sq for sq, letter in position.pieces() if letter == "K"), None)
        value = 10 * (by_attackers - by_defenders) + (0 if king is None else self.distance[king])
        return value if position.side == 0 else -value


@dataclass
class Row:
    """What a way took for every position: nodes and CPU seconds, by position and depth from 1."""

    name: str
    nodes: list[list[int]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)


def distances(variant: Variant) -> dict[int, int]:
    """The distance of every square to the nearest goal."""
    from hnefi.engine.games.tafl.tables import goal_distance
    from hnefi.engine.squares import squares

    return {sq: goal_distance(variant.rules, sq) for sq in squares(variant.rules.size)}


def compare(
    places: dict[str, Position], variant: Variant, depth: int, note: Callable[[str], None]
) -> list[Row]:
    """Search every position in every way to each depth up to the given one, each time from nothing."""
    near = distances(variant)
    rows = [Row(name) for name in WAYS]
    for name, position in places.items():
        for row in rows:
            note(f"{row.name}: {name}")
            row.nodes.append([])
            row.cpu.append([])
            for d in range(1, depth + 1):
                search, began = Search(WAYS[row.name], near), time.process_time()
                search.value(position, d)
                row.nodes[-1].append(search.nodes)
                row.cpu[-1].append(time.process_time() - began)
    return rows


def factor(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, tuple[float, float] | None]:
    """The geometric mean of the quotients, and its 95 % interval from resampling them; None for too few."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    interval = bootstrap(logs)
    return math.exp(statistics.mean(logs)), interval and (math.exp(interval[0]), math.exp(interval[1]))


def table(rows: Sequence[Row], legal: float) -> str:
    """The ways as text: nodes at the last depth, compared with the first way, and CPU time."""
    whole = rows[0]
    lines = [f"{'alpha-beta with':32}{'nodes':>12}{'x':>8}  {'95 %':14}{'CPU s':>9}{'x':>8}"]
    for row in rows:
        nodes, base = ([one[-1] for one in way.nodes] for way in (row, whole))
        cpu, base_cpu = (sum(one[-1] for one in way.cpu) for way in (row, whole))
        x, interval = factor(nodes, base)
        shown = "" if row is whole or not interval else f"{interval[0]:.2f} to {interval[1]:.2f}"
        lines.append(
            f"{row.name:32}{round(statistics.geometric_mean(nodes)):>12,}{x:8.2f}  {shown:14}{cpu:9.2f}"
            f"{cpu / base_cpu:8.2f}"
        )
    growth = [
        statistics.geometric_mean(b / a for one in whole.nodes for a, b in [(one[d - 1], one[d])])
        for d in range(1, len(whole.nodes[0]))
    ]
    lines += ["", f"{legal:.0f} legal moves on average"]
    if growth:
        factors = ", ".join(f"{x:.1f}" for x in growth)
        lines[-1] += f"; a ply multiplies the nodes of plain alpha-beta by {factors}"
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Measure and print."""
    options = parser(
        "bench pruning",
        "Searches positions with a plain alpha-beta and the values of Simple, and with one thing added: moves sorted "
        "by the values of the positions after them, aspiration windows, a transposition table, MTD(f), and all but the "
        "last together. Counts nodes, the positions that moves lead to; all find the same value. It is written in "
        "Python: what it counts is the same on every machine, its times are not those of the engine, and the usual run "
        "takes some minutes.",
        ["", "brandubh --depth 4 --positions 10", "--json"],
    )
    add_search(options, "hingston-original", depth=3, positions=20)
    options.add_argument("--json", action="store_true", help="the figures as one JSON document")
    add_variant_path(options)
    arguments = options.parse_args(argv)
    variant = find_tafl_variant(options, arguments.variant, arguments.path)
    let_interrupt_end_us()
    live = Live(sys.stderr)
    places = positions(variant, arguments.positions)
    rows = compare(places, variant, arguments.depth, lambda text: live.step(lambda: text))
    live.close()
    legal = statistics.mean(len(position.legal_moves()) for position in places.values())
    document: dict[str, Any] = {
        "variant": variant.name,
        "depth": arguments.depth,
        "legal_moves": round(legal, 1),
        "ways": {row.name: {"nodes": row.nodes, "cpu": row.cpu} for row in rows},
    }
    print(json.dumps(document, indent=2) if arguments.json else table(rows, legal))
    return 0
