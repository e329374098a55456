"""AlphaZero: a network plays against itself, learns from the games, and is replaced when its pupil beats it.

D. Silver et al., "Mastering the game of Go without human knowledge", 2017, in the form of HexapawnZero. A generation is
one iteration: games of the network against itself, every position an example; a copy that trains on the examples; games
of the copy against the network. If the copy wins more than the share `gate` of them it takes the network's place.
Without a `window` the examples are then forgotten, else they are kept; with one, those of the last so many iterations
are kept in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.selfplay.zero import GAME, Board, Examples, Settings

from . import heads
from .algorithm import Champion, Play, Purpose, State, digest, game_seeds, generator

if TYPE_CHECKING:
    from hnefi.engine.evaluators.network import Network

    from .run import Plan

ATTACKERS, DEFENDERS = 0, 1
PAST = 8
"""Earlier networks that the present one may meet."""
PARTS = 4
"""Jobs for each thread."""


@dataclass(frozen=True, slots=True)
class Zero:
    """Iterations by the plan of a run."""

    plan: Plan

    def begin(self) -> State:
        plan = self.plan
        weights = heads.starting_weights(plan.network, plan.variant, generator(plan.seed, 0, Purpose.START))
        if np.ndim(plan.start):
            weights = np.asarray(plan.start, np.float32)
        examples = Examples.empty(plan.network.module.inputs(plan.variant))
        return {
            "weights": weights,
            "parent": np.zeros(32, np.uint8),
            "born": np.zeros(1, np.int64),
            "past": np.zeros((0, len(weights)), np.float32),
            "iterations": np.zeros(0, np.int64),  # examples of each iteration that is kept
            **examples._asdict(),
        }

    def step(
        self, state: State, generation: int, play: Play
    ) -> tuple[State, tuple[Champion, ...], Mapping[str, Any]]:
        plan, values = self.plan, self.plan.values
        old = state["weights"]
        table = self._self_play(generation, len(state["past"]))
        games, made = self._played(play, [old, *state["past"]], table, learn=True)
        kept = Examples(*(state[name] for name in Examples._fields))
        examples = Examples.joined([kept, made])
        iterations = np.append(state["iterations"], made.rows)
        if values["window"]:
            iterations = iterations[-values["window"] :]
            examples = examples.last(int(iterations.sum()))
        random = generator(plan.seed, generation, Purpose.TRAIN)
        moves = examples.policies(len(_moves(plan.variant)))
        new, loss = heads.train(
            plan.network,
            plan.variant,
            old,
            heads.batch(examples.inputs, moves, examples.results),
            epochs=values["epochs"],
            size=values["batch"],
            steps=values["steps"],
            rate=values["rate"],
            random=random,
            symmetries=heads.images(plan.network, plan.variant)[: None if values["augment"] == "yes" else 1],
        )
        gate, _ = self._played(play, [new, old], self._gate(generation))
        won = _won(gate)
        share = float(won[:, 0].sum() + won[:, 1].sum() / 2) / max(1, len(gate))
        accepted = not len(gate) or share > values["gate"]
        after = {**state, **examples._asdict(), "iterations": iterations}
        if accepted:
            after |= {
                "weights": new, "parent": digest(old), "born": np.array([generation]),
                "past": np.vstack([state["past"], old])[-PAST:],
            }  # fmt: skip
            if not values["window"]:
                after |= {**Examples.empty(examples.inputs.shape[1])._asdict(), "iterations": iterations[:0]}
        champions = [_champion(generation, after, share)]
        if generation == 1:
            champions.insert(0, _champion(0, state, None))
        return (
            after,
            tuple(champions),
            {
                "games": len(games) + len(gate),
                "examples": examples.rows,
                "plies": float(games["plies"].mean()),
                "winners": [int(((games["outcome"] >> 8) == winner).sum()) for winner in (1, 2, 3)],
                "loss_value": loss.value,
                "loss_policy": loss.policy,
                "entropy": loss.entropy,
                "as_attackers": [int(count) for count in won[ATTACKERS]],
                "as_defenders": [int(count) for count in won[DEFENDERS]],
                "share": share,
                "accepted": accepted,
            },
        )

    def describe(self, report: Mapping[str, Any]) -> list[str]:
        return words(report)

    @property
    def settings(self) -> Settings:
        """How games for learning are played."""
        values = self.plan.values
        return Settings(
            values["simulations"], values["shared"] == "yes", values["c"], values["temperature"],
            values["temperature_plies"], values["later_temperature"], values["noise"], values["noise_alpha"],
            values["opening_plies"], values["ply_limit"],
        )  # fmt: skip

    def _self_play(self, generation: int, past: int) -> Any:
        """The games of an iteration: the network, number 0, against itself, some of them against an earlier one."""
        count = self.plan.values["games"]
        table = np.zeros(count, GAME)
        table["seed"] = game_seeds(self.plan.seed, generation, Purpose.LEARN, np.arange(count), 0)
        older = int(count * self.plan.values["older"]) if past else 0
        if older:
            random = generator(self.plan.seed, generation, Purpose.OLDER)
            sides = np.arange(older) % 2
            table["players"][np.arange(older), sides] = 1 + random.integers(past, size=older)
        return table

    def _gate(self, generation: int) -> Any:
        """The games of the copy, number 0, against the network: as the defenders in the first half of them."""
        count = self.plan.values["gate_games"]
        table = np.zeros(count, GAME)
        table["seed"] = game_seeds(self.plan.seed, generation, Purpose.GATE, np.arange(count), 0)
        first = np.arange(count) < count // 2
        table["players"][:, ATTACKERS] = first
        table["players"][:, DEFENDERS] = ~first
        return table

    def _played(
        self, play: Play, weights: Sequence[Any], table: Any, *, learn: bool = False
    ) -> tuple[Any, Examples]:
        """The games of a table by any number of threads, and their examples in its order."""
        plan = self.plan
        settings = self.settings
        if not learn:
            settings = Settings(
                settings.simulations, settings.shared, settings.c, settings.temperature,
                settings.temperature_plies, settings.later_temperature, opening=settings.opening,
                ply_limit=settings.ply_limit,
            )  # fmt: skip
        inputs = plan.network.module.inputs(plan.variant)
        used = sorted({int(player) for player in table["players"].ravel()})
        table["players"] = np.searchsorted(used, table["players"])
        networks = [np.asarray(weights[player]) for player in used]
        parts = np.array_split(table, min(len(table), PARTS * play.jobs)) if len(table) else []
        jobs = [
            partial(play_part, plan.played, plan.network, networks, settings, part, inputs if learn else 0)
            for part in parts
        ]
        found = play.each(jobs)
        if not found:
            return table, Examples.empty(inputs)
        return np.concatenate([games for games, _ in found]), Examples.joined([made for _, made in found])


def play_part(
    variant: AnyVariant, network: Network, weights: Sequence[Any], settings: Settings, games: Any, inputs: int
) -> tuple[Any, Examples]:
    """Some games, and their examples where the number of inputs is given."""
    games = games.copy()
    board = Board(variant, [network.record(variant, each) for each in weights], settings)
    return games, board.play(games, inputs)


def _won(games: Any) -> Any:
    """Games won, drawn and lost by player 0, as attackers and as defenders."""
    winner = (games["outcome"] >> 8) - 1
    found = np.zeros((2, 3), np.int64)
    for side in (ATTACKERS, DEFENDERS):
        here = winner[(games["players"][:, side] == 0) & (games["players"][:, 1 - side] != 0)]
        found[side] = [(here == side).sum(), (here == 2).sum(), (here == 1 - side).sum()]
    return found


def _moves(variant: AnyVariant) -> tuple[int, ...]:
    from hnefi.engine import games

    return games.policy_moves(variant)


def _champion(generation: int, state: State, share: float | None) -> Champion:
    return Champion(generation, state["weights"], share, int(state["born"][0]), state["parent"])


def words(report: Mapping[str, Any]) -> list[str]:
    """`gate 14 of 20: accepted`, `as attackers 4, as defenders 10`, `loss 0.61 + 1.02`"""
    attackers, defenders = report["as_attackers"], report["as_defenders"]
    games = sum(attackers) + sum(defenders)
    verdict = "accepted" if report["accepted"] else "refused"
    won = f"won {attackers[0]} as attackers, {defenders[0]} as defenders of {games}: {verdict}"
    return [won if games else verdict, f"loss {report['loss_value']:.2f} + {report['loss_policy']:.2f}"]
