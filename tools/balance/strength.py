"""Players of a given strength: a shipped player or a player's file, with an optional limit after an `@`.

simple               without a further limit
default@1600         at most 1600 nodes a move; always with the evaluator that is written by hand
default@d5           five plies
default-2026.1@1600  the same search with a fixed set of weights and features, which later versions do not change
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hnefi import players
from hnefi.engine import evaluators, games, options
from hnefi.engine.evaluators import tafl_weights
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.search import features
from hnefi.engine.search.types import Limits, Settings
from hnefi.engine.wording import shorten

from .entrants import BalanceError

if TYPE_CHECKING:
    from hnefi.engine.solving.tables import Tables

DEFAULT = (
    "random-terminal",
    "simple",
    "simple-d2",
    "simple-d3",
    f"{features.MEASURED}@100",
    f"{features.MEASURED}@400",
    f"{features.MEASURED}@1600",
)
"""From weak to strong: two players from the literature, and our search with more and more nodes. Its weights are those
of the ladder's rungs: with the newest weights the same command would give other figures in each version."""
SMALL_TABLE, LARGE_TABLE, MANY = 1, 16, 10_000
"""MiB of a small and a large table, and the nodes from which the large one is used."""
MOST = 10**9
DRAWN = ("minimax", "random", "random-coded", "mcts", "puct")
"""Algorithms whose games from the same opening depend on the seed."""


@dataclass(frozen=True, slots=True)
class Strength:
    """The player of both sides: `label` is its name in tables and part of every game's random stream."""

    label: str
    settings: Settings
    limits: Limits
    player: players.Player

    @property
    def varied(self) -> bool:
        """Whether games from the same opening depend on the seed."""
        chosen = self.settings
        return chosen.algorithm in DRAWN or chosen.skill < 10 or bool(chosen.temperature or chosen.at_random)

    @property
    def scored(self) -> bool:
        """Whether its searches report values on the scale of the engine's own evaluation."""
        return self.settings.algorithm == "alphabeta" and self.settings.evaluator in evaluators.BY_HAND

    def misfit(self, variant: Variant) -> str | None:
        """Why this player cannot play a rule set; None if it can."""
        return self.player.misfit(variant) or evaluators.misfit(self.settings.evaluator, variant)

    def borrows(self, variant: Variant) -> str | None:
        """The variant whose weights this player uses to judge `variant`; None if it uses weights of its own."""
        if self.settings.evaluator not in evaluators.BY_HAND or self.settings.algorithm.startswith("random"):
            return None
        source = tafl_weights.file_for(variant, evaluators.BY_HAND[self.settings.evaluator])
        return None if games.find(source).hash == variant.hash else source

    def milliseconds(self, size: int) -> float:
        """The rough duration of a game on a board of this size; only used for the size of jobs and the time left."""
        if self.settings.algorithm == "minimax":
            depth = self.limits.depth or 1
            cost = 20.0 if depth == 1 else 250.0 * 6.0 ** max(0, depth - 3)
        elif self.limits.nodes is not None:
            cost = 25 + 0.07 * self.limits.nodes
        else:
            cost = 4.0 ** (self.limits.depth or 5)
        return cost * (size / 11) ** 2


def parse(word: str) -> Strength:
    """The player that a word names; BalanceError otherwise."""
    name, at, limit = word.partition("@")
    bound = name in evaluators.BY_HAND and name not in players.names()
    try:
        player = players.load("default" if bound else name)
    except players.PlayerError as error:
        raise BalanceError(str(error)) from None
    limits = player.limits
    if at:
        deep = limit.startswith("d")
        digits = limit[1:] if deep else limit
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and 0 < int(digits) <= MOST):
            raise BalanceError(f"{shorten(word)}: expected {name}@NODES or {name}@dPLIES, as default@1600")
        limits = replace(limits, depth=int(digits)) if deep else replace(limits, nodes=int(digits))
    if limits.depth is None and limits.nodes is None:
        if not player.algorithm.startswith("random"):
            raise BalanceError(f"{shorten(word)}: expected a limit: {name}@NODES or {name}@dPLIES")
        limits = replace(limits, depth=1)
    if limits.movetime is not None:
        raise BalanceError(
            f"{shorten(word)}: expected a player without movetime: its games cannot be repeated"
        )
    table = LARGE_TABLE if limits.nodes is None or limits.nodes >= MANY else SMALL_TABLE
    fields: dict[str, Any] = {}
    for key, text in player.options.items():
        option = options.find(key)
        assert option is not None
        fields[option.setting] = _tables(word, text) if option.setting == "tables" else option.read(text)
    # Rules are compared by one evaluator: `default` would judge some by a network, and a change of them by hand.
    evaluator = evaluators.HAND if player.evaluator in evaluators.PICKING else player.evaluator
    fields = {"hash_mib": table, **fields, "algorithm": player.algorithm, "evaluator": evaluator}
    if bound:
        fields |= {"evaluator": name, "features": name if name in features.groups(0) else "default"}
    return Strength(word, Settings(**fields), limits, player)


def _tables(word: str, path: str) -> Tables | None:
    """The solved tables that a player names."""
    from hnefi.engine.solving.tables import find, opened

    try:
        return opened(find(path)) if path else None
    except (ValueError, OSError, MemoryError) as error:
        raise BalanceError(f"{shorten(word)}: {error}") from None


def several(text: str) -> list[Strength]:
    """Comma-separated players, weak ones first; BalanceError if one is named twice or does not exist."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise BalanceError(f"--players {shorten(text)}: expected players with commas between them")
    for word in words:
        if words.count(word) > 1:
            raise BalanceError(f"--players: {shorten(word)}: expected each player once")
    return [parse(word) for word in words]
