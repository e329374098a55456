"""AlphaZero: a network plays against itself, learns from the games, and is replaced when its pupil beats it.

D. Silver et al., "Mastering the game of Go without human knowledge", 2017, in the form of HexapawnZero. A generation is
one iteration: the network plays against itself, and every position is an example; a copy trains on the examples; then
the copy plays against the network. If it wins more than the share `gate` of these games, it replaces the network.
Without a `window` the examples are dropped when that happens and kept otherwise; with a window, those of the last
`window` iterations are kept in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.selfplay import yardstick
from hnefi.engine.selfplay.match import Contestant
from hnefi.engine.selfplay.zero import GAME, Board, Examples
from hnefi.engine.selfplay.zero_search import Settings

from . import heads
from .algorithm import Champion, Play, Purpose, State, digest, game_seeds, generator
from .gradients import Adam

if TYPE_CHECKING:
    from .run import Plan

ATTACKERS, DEFENDERS = 0, 1
PAST = 8
"""The number of earlier networks that may be opponents."""
MEASURED_OPENING = 6
"""Maximum of random plies at the beginning of measured games."""
HANDICAP_STEP, MOST_HANDICAP = 0.5, 3.0
"""The change of the handicap if one side won all games, and its limit: an eighth of the simulations, or of the moves
that are not random."""
PARTS = 4
"""Jobs per thread."""


@dataclass(frozen=True, slots=True)
class Zero:
    """Runs the iterations of a run's plan."""

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
            "iterations": np.zeros(0, np.int64),  # the number of examples of each iteration that is kept
            "handicap": np.zeros(1),  # of the defenders; negative: of the attackers
            "adam_steps": np.zeros(1, np.int64),
            "adam_means": np.zeros((2, len(weights)), np.float32),  # of slopes, and of their squares
            **examples._asdict(),
        }

    def step(
        self, state: State, generation: int, play: Play
    ) -> tuple[State, tuple[Champion, ...], Mapping[str, Any]]:
        plan, values = self.plan, self.plan.values
        old = state["weights"]
        handicap = float(state["handicap"][0])
        table = self._self_play(generation, len(state["past"]), handicap)
        games, made = self._played(play, [old, *state["past"]], table, learn=True)
        kept = Examples(*(state[name] for name in Examples._fields))
        examples = Examples.joined([kept, made])
        iterations = np.append(state["iterations"], made.rows)
        if values["window"]:
            iterations = iterations[-values["window"] :]
            examples = examples.last(int(iterations.sum()))
        random = generator(plan.seed, generation, Purpose.TRAIN)
        new, loss, adam = heads.train(
            plan.network,
            plan.variant,
            old,
            heads.Kept(examples, len(_moves(plan.variant)), values["mask"] == "yes", values["value_mix"]),
            epochs=values["epochs"],
            size=values["batch"],
            steps=values["steps"],
            rate=values["rate"],
            random=random,
            symmetries=heads.images(plan.network, plan.variant)[: None if values["augment"] == "yes" else 1],
            adam=_adam(state) if values["adam"] == "kept" else None,
        )
        gate, _ = self._played(play, [new, old], self._gate(generation))
        won = _won(gate)
        share = float(won[:, 0].sum() + won[:, 1].sum() / 2) / max(1, len(gate))
        accepted = not len(gate) or share > values["gate"]
        after = {
            **state, **examples._asdict(), "iterations": iterations,
            "handicap": np.array([self._next_handicap(handicap, games)]),
        }  # fmt: skip
        if accepted:
            after |= {
                "weights": new, "parent": digest(old), "born": np.array([generation]),
                "past": np.vstack([state["past"], old])[-PAST:],
            }  # fmt: skip
            if values["adam"] == "kept":
                means = np.stack([adam.first[0][0], adam.second[0][0]])
                after |= {"adam_steps": np.array([adam.steps]), "adam_means": means}
            if not values["window"]:
                after |= {**Examples.empty(examples.inputs.shape[1])._asdict(), "iterations": iterations[:0]}
        champions = [_champion(generation, after, share if len(gate) else None)]
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
                "handicap": handicap,
                "loss_value": loss.value,
                "loss_policy": loss.policy,
                "entropy": loss.entropy,
                "as_attackers": [int(count) for count in won[ATTACKERS]],
                "as_defenders": [int(count) for count in won[DEFENDERS]],
                "share": share,
                "accepted": accepted,
                **self._measured(play, generation, after["weights"]),
            },
        )

    def describe(self, report: Mapping[str, Any]) -> list[str]:
        return words(report)

    @property
    def settings(self) -> Settings:
        """The settings of games for learning."""
        values = self.plan.values
        return Settings(
            simulations=values["simulations"],
            full=values["full"],
            fast_simulations=values["fast_simulations"],
            shared=values["shared"] == "yes",
            prove=values["prove"] == "yes",
            from_parent=values["first_play"] == "parent",
            forced=values["forced"],
            c=values["c"],
            temperature=values["temperature"],
            temperature_plies=values["temperature_plies"],
            later_temperature=values["later_temperature"],
            noise=values["noise"],
            alpha=values["noise_alpha"],
            opening=values["opening_plies"],
            ply_limit=values["ply_limit"],
        )

    def _self_play(self, generation: int, past: int, handicap: float) -> Any:
        """The games of an iteration: the network, number 0, against itself; the first ones against an earlier network,
        the last ones with a handicap for the stronger side."""
        count = self.plan.values["games"]
        table = np.zeros(count, GAME)
        table["seed"] = game_seeds(self.plan.seed, generation, Purpose.LEARN, np.arange(count), 0)
        older = int(count * self.plan.values["older"]) if past else 0
        if older:
            random = generator(self.plan.seed, generation, Purpose.OLDER)
            sides = np.arange(older) % 2
            table["players"][np.arange(older), sides] = 1 + random.integers(past, size=older)
        uneven = table[count - self._uneven :]
        for side, amount in ((ATTACKERS, max(0.0, -handicap)), (DEFENDERS, max(0.0, handicap))):
            if self.plan.values["handicap_by"] == "moves":
                uneven["careless"][:, side] = 1 - 2.0**-amount
            else:
                uneven["handicap"][:, side] = amount
        return table

    @property
    def _uneven(self) -> int:
        """The number of games with a handicap in an iteration."""
        return int(self.plan.values["games"] * self.plan.values["handicap"])

    def _next_handicap(self, handicap: float, games: Any) -> float:
        """The next handicap: larger for the side that won more of the games with a handicap."""
        if not self._uneven:
            return handicap
        winner = (games["outcome"][-self._uneven :] >> 8) - 1
        lead = float((winner == DEFENDERS).mean() - (winner == ATTACKERS).mean())
        return min(max(handicap + HANDICAP_STEP * lead, -MOST_HANDICAP), MOST_HANDICAP)

    def _gate(self, generation: int) -> Any:
        """The games of the copy, number 0, against the network; the copy defends in the first half of them."""
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
        """Play the games of a table with any number of threads; returns them with their examples, in its order."""
        plan = self.plan
        settings = self.settings
        if not learn:
            settings = replace(settings, noise=0.0, forced=0.0, full=1.0)
        inputs = plan.network.module.inputs(plan.variant)
        used = sorted({int(player) for player in table["players"].ravel()})
        table["players"] = np.searchsorted(used, table["players"])
        networks = [np.asarray(weights[player]) for player in used]
        jobs = [
            partial(play_part, plan.played, plan.network, networks, settings, part, inputs if learn else 0)
            for part in _parts(table, play)
        ]
        found = play.each(jobs)
        if not found:
            return table, Examples.empty(inputs)
        return np.concatenate([games for games, _ in found]), Examples.joined([made for _, made in found])

    def _measured(self, play: Play, generation: int, weights: Any) -> dict[str, Any]:
        """In some generations, results against opponents that never change, without learning from these games: by
        opponent, games won, drawn and lost as attackers and as defenders."""
        plan, values = self.plan, self.plan.values
        if not values["measure_every"] or generation % values["measure_every"]:
            return {}
        settings = Settings(
            simulations=values["measure_simulations"], shared=values["shared"] == "yes",
            prove=values["prove"] == "yes", c=values["c"], from_parent=values["first_play"] == "parent",
            later_temperature=0.0, opening=MEASURED_OPENING,
            ply_limit=values["ply_limit"],
        )  # fmt: skip
        seeds = game_seeds(plan.seed, generation, Purpose.MEASURE, np.arange(values["measure_pairs"]), 0)
        table = yardstick.pairs(seeds)
        found = {}
        for name, opponent in yardsticks(plan.variant).items():
            jobs = [
                partial(measure_part, plan.played, plan.network, weights, settings, opponent, part)
                for part in _parts(table, play)
            ]
            found[name] = [[int(count) for count in side] for side in _won(np.concatenate(play.each(jobs)))]
        return {"measured": found, "rung": highest_rung(found)}


def highest_rung(measured: Mapping[str, Sequence[Sequence[int]]]) -> str | None:
    """The last opponent in the order of `yardsticks` against which the network scored at least half of the points; None
    if there is none."""
    reached = None
    for name, sides in measured.items():
        won, drawn, lost = map(sum, zip(*sides, strict=True))
        if won >= lost and won + drawn + lost:
            reached = name
    return reached


def yardsticks(variant: AnyVariant) -> dict[str, Contestant]:
    """Opponents that never change, from the weakest: random, and in tafl also `simple` at one to three plies."""
    found = {"random": Contestant("random")}
    if variant.game == "tafl":
        params = Network("simple").record(variant, np.zeros(0))
        for depth in (1, 2, 3):
            found[f"simple-d{depth}"] = Contestant("minimax", depth, params)
    return found


def measure_part(
    variant: AnyVariant, network: Network, weights: Any, settings: Settings, opponent: Contestant, games: Any
) -> Any:
    """Play some games against a fixed opponent."""
    games = games.copy()
    yardstick.play(variant, network.record(variant, weights), settings, opponent, games)
    return games


def _parts(table: Any, play: Play) -> list[Any]:
    """Split a table of games into parts for the workers."""
    return np.array_split(table, min(len(table), PARTS * play.jobs)) if len(table) else []


def _adam(state: State) -> Adam:
    """The state of Adam after earlier iterations."""
    empty = np.zeros(0, np.float32)
    first, second = state["adam_means"]
    return Adam(int(state["adam_steps"][0]), [(first, empty)], [(second, empty)])


def play_part(
    variant: AnyVariant, network: Network, weights: Sequence[Any], settings: Settings, games: Any, inputs: int
) -> tuple[Any, Examples]:
    """Play some games; returns them, with their examples if the number of inputs is given."""
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
    """`won 4 as attackers, 10 as defenders of 20: accepted`, `loss 0.61 + 1.02`; if measured, `rung simple-d2`."""
    attackers, defenders = report["as_attackers"], report["as_defenders"]
    games = sum(attackers) + sum(defenders)
    verdict = "accepted" if report["accepted"] else "refused"
    won = f"won {attackers[0]} as attackers, {defenders[0]} as defenders of {games}: {verdict}"
    said = [won if games else verdict, f"loss {report['loss_value']:.2f} + {report['loss_policy']:.2f}"]
    return [*said, f"rung {report['rung'] or 'none'}"] if "rung" in report else said
