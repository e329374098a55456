"""Who plays: networks by their weights, and the fixed opponents; whole games between them inside kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant

from ..common.streams import Purpose
from .fitness import Games


@dataclass(frozen=True, slots=True)
class Contestants:
    """The contestants of a schedule in their order: networks (a row of `weights` each), then the `fixed` opponents.
    There are as many rows of all these as `depths`, each row looking so many plies ahead; Random sees wins and losses
    so far if he is `terminal`."""

    variant: AnyVariant
    network: Network
    weights: Any
    fixed: tuple[Purpose, ...]
    depths: tuple[int, ...] = (1,)
    terminal: bool = False

    def __len__(self) -> int:
        return (len(self.weights) + len(self.fixed)) * len(self.depths)

    def table(self, chosen: Iterable[int]) -> Any:
        """A `contest.Table` with the contestants in the places `chosen`."""
        from hnefi.engine.selfplay.match import Contestant, Table

        networks = len(self.weights)
        row = networks + len(self.fixed)
        params = cache(self._params)
        seated = []
        for seat in chosen:
            level, place = divmod(int(seat), row)
            blind = place >= networks and self.fixed[place - networks] == Purpose.RANDOM and not self.terminal
            seated.append(
                Contestant("random")
                if blind
                else Contestant("minimax", depth=self.depths[level], params=params(place))
            )
        return Table(self.variant, seated)

    def _params(self, place: int) -> Any:
        """The parameters of whoever is in a place of the first row."""
        if place < len(self.weights):
            return self.network.record(self.variant, self.weights[place])
        if self.fixed[place - len(self.weights)] == Purpose.SIMPLE:
            return Network("simple").record(self.variant, np.zeros(0))
        return None


def play(contestants: Contestants, attackers: Any, defenders: Any, seeds: Any) -> Any:
    """Games between contestants (by place), in an array of dtype `contest.GAME`. Only those who play are built."""
    chosen, numbers = np.unique(np.concatenate([attackers, defenders]), return_inverse=True)
    return _play(contestants.table(chosen), numbers[: len(seeds)], numbers[len(seeds) :], seeds)


def at_tables(contestants: Contestants) -> Callable[[Any, Any, Any], Any]:
    """The same for threads of this process: all contestants are built once for every thread."""
    kept = threading.local()

    def play(attackers: Any, defenders: Any, seeds: Any) -> Any:
        if not hasattr(kept, "table"):
            kept.table = contestants.table(range(len(contestants)))
        return _play(kept.table, attackers, defenders, seeds)

    return play


def _play(table: Any, attackers: Any, defenders: Any, seeds: Any) -> Any:
    from hnefi.engine.selfplay import match as contest

    games = np.zeros(len(seeds), contest.GAME)
    games["attackers"], games["defenders"], games["seed"] = attackers, defenders, seeds
    table.play(games)
    return games


def finished(games: Any) -> Games:
    """The results of games (matches x 2). An outcome is the reason plus 256 times (winner + 1), 0 if nobody won."""
    winner = np.where(games["outcome"] == 0, 2, (games["outcome"] >> 8) - 1)
    return Games(winner, games["taken"].astype(np.int64), games["plies"], games["evaluations"])
