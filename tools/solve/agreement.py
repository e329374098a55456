"""`hnefi solve agreement`: how often players find moves that keep the exact value of solved positions."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE

from ..common import arguments, interrupts
from ..common.live import Live
from ..common.statistics import wilson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hnefi.engine.games.base_position import Position
    from hnefi.engine.solving.table import Table

POSITIONS = 500
NODES = (100, 400, 1600, 6400)
"""Numbers of nodes with which `default` is asked in addition to the shipped players, as on the ladder."""
UNLIMITED_NODES = 20_000
"""For players that set no limit themselves."""
TRIES = 2000
"""Random entries examined per requested position."""
DESCRIPTION = """\
Asks players for a move in random positions of a table in which a move can lose something: at least one move keeps who
wins, and at least one does not. The positions are entries of the table with all men on the board, drawn with the same
probability; they need not come up in games. A WHO is a shipped player, a player's file, or either with a number of
nodes behind a colon. Without any, all shipped players that know the variant are asked, and default at several numbers
of nodes. The first row is what moves chosen with equal probability would keep.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A position in which a mistake is possible: the moves that keep the result, and those that are best."""

    position: Position
    keeping: frozenset[int]
    best: frozenset[int]
    moves: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """A player's moves: those that kept the result (by side to move), the best ones, and all (by side to move)."""

    name: str
    kept: tuple[float, float]
    best: float
    asked: tuple[int, int]

    @property
    def share(self) -> float:
        return sum(self.kept) / sum(self.asked)


def cases(table: Table, count: int, seed: int, least: int = 1) -> list[Case]:
    """Random positions in which a mistake is possible and which the side to move wins in at least `least` plies, or
    holds; ValueError if too few are found."""
    from hnefi.engine.solving import lookup

    from .report import fen_of, position_of

    rng = random.Random(seed)
    material = table.index.materials[-1]
    found: list[Case] = []
    for _ in range(TRIES * count):
        if len(found) == count:
            return found
        interrupts.check()
        number = rng.randrange(material.first, material.end)
        value = table.decode(table.code(number))
        if value is None or (value.plies is not None and value.plies < least):
            continue
        try:
            position = position_of(table, fen_of(table.index, number))
        except ValueError:
            continue
        if position.outcome is not None:
            continue
        moves = lookup.moves(table.value, position)
        keeping = frozenset(each.move for each in moves if each.keeps(value))
        if 0 < len(keeping) < len(moves):
            found.append(
                Case(position, keeping, frozenset(each.move for each in moves if each.best), len(moves))
            )
    raise ValueError(f"{table.path}: {len(found)} positions in which a move matters: expected {count}")


def chance(found: Sequence[Case]) -> Agreement:
    """The average result of moves chosen with equal probability."""
    kept = [0.0, 0.0]
    asked = [0, 0]
    for case in found:
        kept[case.position.side] += len(case.keeping) / case.moves
        asked[case.position.side] += 1
    best = sum(len(case.best) / case.moves for case in found)
    return Agreement("any move", (kept[0], kept[1]), best, (asked[0], asked[1]))


class Asked:
    """A player in this process. ValueError if no player has that name, or if it does not play the variant."""

    def __init__(self, word: str, table: Table) -> None:
        from hnefi import players
        from hnefi.engine.search.searcher import Searcher
        from hnefi.engine.search.types import Limits
        from hnefi.engine.session import Session

        name, _, nodes = word.rpartition(":") if word.rpartition(":")[2].isdigit() else (word, "", "")
        if nodes and not int(nodes):
            raise ValueError(f"{word}: expected a number of nodes from 1 on")
        self.word = word
        misfit = players.load(name).misfit(table.variant)
        if misfit is not None:
            raise ValueError(misfit)
        self._session = Session(load_player=players.load)
        self._session.set_option("Player", name)
        own = self._session.player_limits
        limits = Limits(nodes=int(nodes)) if nodes else Limits()
        self._limits = limits.tightened(own)
        if self._limits == Limits():
            self._limits = Limits(nodes=UNLIMITED_NODES)
        self._session.use_variant(table.variant)
        self._searcher = Searcher(self._session.settings)

    def move(self, position: Position, seed: int) -> int:
        """The player's move in a position, as the first move of a new game."""
        self._session.set_option("Seed", str(seed))
        self._searcher.configure(self._session.effective)
        self._searcher.clear()
        self._searcher.begin()
        result = self._searcher.search(position, self._limits, lambda _: None)
        assert result.move is not None
        return int(result.move)


def agreement(asked: Asked, found: Sequence[Case]) -> Agreement:
    """How a player's moves compare with the exact values."""
    kept, counts, best = [0, 0], [0, 0], 0
    for number, case in enumerate(found):
        interrupts.check()
        move = asked.move(case.position, number + 1)
        side = case.position.side
        counts[side] += 1
        kept[side] += move in case.keeping
        best += move in case.best
    return Agreement(asked.word, (kept[0], kept[1]), best, (counts[0], counts[1]))


def everybody(table: Table) -> list[str]:
    """All shipped players that know the variant, and `default` at several numbers of nodes."""
    from hnefi import players

    names = [name for name in players.names() if players.load(name).misfit(table.variant) is None]
    return [*names, *(f"default:{nodes}" for nodes in NODES)]


def main(argv: list[str]) -> int:
    """Ask the players and print the results; 0 when done."""
    parser = arguments.parser(
        "solve agreement",
        DESCRIPTION,
        ["mini-four.taflbase", "mini-six.taflbase simple default:1600 --plies 7"],
    )
    parser.add_argument("file", metavar="FILE", help="a table, or the name of one that ships")
    parser.add_argument("players", metavar="WHO", nargs="*", help="PLAYER or PLAYER:NODES (all)")
    parser.add_argument(
        "--positions",
        type=arguments.positive,
        default=POSITIONS,
        metavar="N",
        help=f"how many positions ({POSITIONS})",
    )
    parser.add_argument(
        "--plies",
        type=arguments.positive,
        default=1,
        metavar="N",
        help="leave out wins in fewer plies; most positions are won at once (1)",
    )
    parser.add_argument("--seed", type=arguments.natural, default=1, metavar="S", help="seed of the draw (1)")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="nothing but the result and errors")
    arguments.add_plain(parser)
    given = parser.parse_args(argv)
    from .files import opened

    with opened(parser, given.file) as table:
        words = given.players or everybody(table)
        try:
            asked = [Asked(word, table) for word in words]
        except ValueError as error:
            parser.error(str(error))
        live = Live(sys.stderr, plain=given.plain or given.quiet)
        rows: list[Agreement] = []
        with interrupts.caught(lambda: ["hnefi solve agreement: interrupted"]) as caught:
            try:
                found = cases(table, given.positions, given.seed, given.plies)
                rows.append(chance(found))
                for number, player in enumerate(asked, 1):
                    line = f"{number}/{len(asked)} {player.word}"
                    live.show(partial(list, (line,)))
                    rows.append(agreement(player, found))
            except ValueError as error:
                print(f"hnefi solve agreement: {error}", file=sys.stderr)
                return USAGE
            finally:
                live.close()
        if caught.ended:
            return INTERRUPTED
    _tell(rows, as_json=given.json)
    return 0


def _tell(rows: Sequence[Agreement], *, as_json: bool) -> None:
    from .files import print_table

    rows = [rows[0], *sorted(rows[1:], key=lambda row: row.share)]
    if as_json:
        print(json.dumps([_as_json(row) for row in rows]))
        return
    shown: list[tuple[str, ...]] = [
        ("player", "keeps the result", "95 %", "attackers", "defenders", "best move")
    ]
    for row in rows:
        low, high = wilson(sum(row.kept), sum(row.asked)) or (0.0, 1.0)
        sides = (f"{100 * k / n:.1f} %" if n else "-" for k, n in zip(row.kept, row.asked, strict=True))
        shown.append(
            (
                row.name,
                f"{100 * row.share:.1f} %",
                "-" if row is rows[0] else f"{100 * low:.1f} to {100 * high:.1f}",
                *sides,
                f"{100 * row.best / sum(row.asked):.1f} %",
            )
        )
    print_table(shown)


def _as_json(row: Agreement) -> dict[str, Any]:
    return {
        "player": row.name,
        "positions": sum(row.asked),
        "kept": round(sum(row.kept), 6),
        "attackers": {"positions": row.asked[0], "kept": round(row.kept[0], 6)},
        "defenders": {"positions": row.asked[1], "kept": round(row.kept[1], 6)},
        "best": round(row.best, 6),
    }
