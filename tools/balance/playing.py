"""Openings of a rule set, and games between equal players from them; a game depends only on arguments.

The k-th opening of a rule set is the same however many are requested. A rule set that is compared with another uses the
other's openings, so that game k begins alike in both; an opening that cannot be played, or that decides the game at
once, is replaced by one of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hnefi.engine import games
from hnefi.engine.openings import generate
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.sides import Reason
from hnefi.engine.squares import move_name

from ..common.matches import seed as stream
from .entrants import Entrant
from .strength import Strength

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

MOST_PLIES = 400
"""Plies after which a game is a draw by the ply cap."""
LEAD = 100
"""Centipawns from which a side is in the lead; less counts as even."""
SEEDS = 1 << 32
Opening = tuple[str, ...]
AHEAD = 2
"""Plies within which neither side may have a forced win in a reused opening."""
WINNERS = "ad="
REASONS = frozenset(reason.value for reason in Reason)


class Game(NamedTuple):
    """One game. `winner` is `a`, `d` or `=`; plies and men captured are those of the whole game, legal moves those
    after the opening. `lead_changes` is None if the player's values are not on the engine's scale."""

    number: int
    winner: str
    reason: str
    plies: int
    branching: float
    by_attackers: int
    by_defenders: int
    lead_changes: int | None

    @property
    def score(self) -> float:
        """The attackers' points: 1, ½ or 0."""
        return {"a": 1.0, "d": 0.0}.get(self.winner, 0.5)


def read(values: Sequence[Any]) -> Game:
    """The game in a line of the log; ValueError if it has none."""
    try:
        game = Game(*values)
        whole = (game.number, game.plies, game.by_attackers, game.by_defenders)
        good = all(type(value) is int and value >= 0 for value in whole)
        good &= game.winner in WINNERS and game.reason in REASONS and game.branching >= 0
        good &= game.lead_changes is None or (type(game.lead_changes) is int and game.lead_changes >= 0)
    except TypeError:
        good = False
    if not good:
        raise ValueError(f"{str(values)[:80]!r}: expected a game")
    return game


class Task(NamedTuple):
    """Games of one rule set and one player: their numbers, and an opening (moves as text) for each."""

    entrant: Entrant
    player: Strength
    pool: int
    numbers: tuple[int, ...]
    openings: tuple[tuple[str, ...], ...]
    seed: int
    most_plies: int


def play(task: Task) -> list[Game]:
    """Play all games of a task; a game depends only on its own number and opening."""
    searcher = Searcher(task.player.settings)
    variant = task.entrant.variant
    return [
        play_one(variant, opening, task.player, searcher, number, game_seed(task, number), task.most_plies)
        for number, opening in zip(task.numbers, task.openings, strict=True)
    ]


def game_seed(task: Task, number: int) -> int:
    """The seed of the player's random choices in a game."""
    return stream(task.seed, task.pool, task.entrant.variant.hash, task.player.label, number) % SEEDS


def play_one(
    variant: Variant,
    opening: Sequence[str],
    player: Strength,
    searcher: Searcher,
    number: int,
    seed: int,
    most_plies: int = MOST_PLIES,
) -> Game:
    """Play one game of a player against itself."""
    searcher.configure(replace(player.settings, seed=seed))
    searcher.clear()
    position = after(variant, opening)
    plies, choices, changes, leader = len(opening), 0, 0, -1
    while position.outcome is None and plies < most_plies:
        choices += len(position.legal_moves())
        infos: list[Info] = []
        searcher.begin()
        move = searcher.search(position, player.limits, infos.append).move
        assert move is not None
        if player.scored:
            ahead = _ahead(infos[-1], position.side)
            changes += ahead >= 0 <= leader and ahead != leader
            leader = ahead if ahead >= 0 else leader
        position = position.play(move)
        plies += 1
    outcome = position.outcome
    winner = "=" if outcome is None or outcome.winner is None else outcome.winner.letter
    reason = Reason.PLY_CAP if outcome is None else outcome.reason
    played = plies - len(opening)
    branching = round(choices / played, 2) if played else 0.0
    taken = position.taken
    return Game(number, winner, reason.value, plies, branching, *taken, changes if player.scored else None)


def after(variant: Variant, moves: Sequence[str]) -> Position:
    """The position after an opening; ValueError if a move is not legal."""
    position = games.initial(variant)
    for move in moves:
        position = position.play(position.parse_move(move))
    return position


def _ahead(info: Info, side: int) -> int:
    """The side that is in the lead according to a search; -1 if neither is."""
    score = info.score
    if score.cp is not None:
        if abs(score.cp) < LEAD:
            return -1
        good = score.cp > 0
    else:
        good = (score.mate or 0) > 0
    return side if good else 1 - side


def own_openings(variant: Variant, count: int, seed: int) -> list[Opening]:
    """`count` distinct openings of a rule set, as moves, or fewer if it has no more."""
    return [tuple(map(move_name, position.moves)) for position in generate(variant, count, seed)]


def shared_openings(variant: Variant, openings: list[Opening], seed: int) -> list[Opening]:
    """The same openings for another rule set, with one of its own in place of each that is unusable there."""
    searcher = Searcher(Settings(hash_mib=1, features="none"))
    good = [is_open(variant, opening, searcher) for opening in openings]
    spare = iter(own_openings(variant, good.count(False), seed) if not all(good) else [])
    found = [opening if fits else next(spare, None) for opening, fits in zip(openings, good, strict=True)]
    return [opening for opening in found if opening is not None]


def is_open(variant: Variant, opening: Opening, searcher: Searcher) -> bool:
    """Whether an opening can be played and leaves a game without a win within two plies."""
    try:
        position = after(variant, opening)
    except ValueError:
        return False
    if position.outcome is not None:
        return False
    infos: list[Info] = []
    searcher.begin()
    searcher.search(position, Limits(depth=AHEAD), infos.append)
    return infos[-1].score.cp is not None
