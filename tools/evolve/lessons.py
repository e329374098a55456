"""Learning by gradients as a learner: a generation is a number of games during which one player's weights change.

Each game of a run begins with the weights after the previous one, so the games cannot be shared among workers. Runs of
several seeds can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.evaluators.network import Network
from hnefi.engine.sides import Reason

from . import options
from .algorithm import Champion, Play, Purpose, State, digest, game_seeds, generator

if TYPE_CHECKING:
    from hnefi.engine.selfplay.learning import Lesson
    from hnefi.engine.selfplay.match import Contestant

    from .run import Plan

BOTH = {"attackers": (0,), "defenders": (1,), "both": (0, 1)}
"""The sides that the learner plays in turn."""
MIX = ("random", "random-coded", "minimax", "simple", "self")
"""The learner's opponents in a mix, in turn."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """Runs the generations of a run's plan."""

    plan: Plan

    def begin(self) -> State:
        plan = self.plan
        size, spread = plan.encoding.size, plan.values["init"]
        drawn = generator(plan.seed, 0, Purpose.START).uniform(-spread, spread, size)
        start = np.zeros(size) + plan.start if plan.values["start"] else drawn
        return {"weights": start[None], "means": np.zeros((2, size)), "steps": np.zeros(1, np.int64)}

    def step(
        self,
        state: State,
        generation: int,
        play: Play,  # noqa: ARG002 - these games are played one after another
    ) -> tuple[State, tuple[Champion, ...], Mapping[str, Any]]:
        from hnefi.engine.selfplay import learning

        plan, values = self.plan, self.plan.values
        before = state["weights"][0]
        names = MIX if values["opponent"] == "mix" else (values["opponent"],)
        games, sides = self._games(generation, names)
        learnt = learning.learn(
            plan.played,
            plan.network,
            learning.Memory(before, state["means"], int(state["steps"][0])),
            [_contestant(plan, name) for name in names if name != "self"],
            games,
            self._lesson(generation),
        )
        memory = learnt.memory
        report = {
            **_described(games, sides),
            "alpha": self._rate(generation * values["generation_games"]),
            "error": learnt.squares / max(1, learnt.errors),
        }
        won, drawn, lost = report["results"]
        champion = Champion(
            generation,
            memory.weights,
            (won + drawn / 2) / max(1, won + drawn + lost),
            generation,
            digest(before),
        )
        champions: tuple[Champion, ...] = (champion,)
        if generation == 1:
            champions = (Champion(0, before, None, 0, np.zeros(32, np.uint8)), champion)
        after = {"weights": memory.weights[None], "means": memory.means, "steps": np.array([memory.steps])}
        return after, champions, report

    def describe(self, report: Mapping[str, Any]) -> list[str]:
        """`won 83 % drawn 4 %`, `52 plies`, `error 0.0031`"""
        games = max(1, report["games"])
        if self.plan.values["opponent"] == "self":
            told = (
                f"attackers {report['winners'][0] / games:.0%} defenders {report['winners'][1] / games:.0%}"
            )
        else:
            told = f"won {report['results'][0] / games:.0%} drawn {report['results'][1] / games:.0%}"
        plies = f"{report['plies'] / games:.0f} plies"
        return [told.replace("%", " %"), plies, f"error {report['error']:.4f}"]

    def _games(self, generation: int, names: tuple[str, ...]) -> tuple[Any, Any]:
        """The games of a generation before they are played, and the learner's side in each."""
        from hnefi.engine.selfplay.match import GAME

        count = self.plan.values["generation_games"]
        number = np.arange(count)
        played = BOTH[self.plan.values["side"]]
        sides = np.array(played)[number % len(played)]
        others = [name for name in names if name != "self"]
        places = np.array([others.index(name) + 1 if name in others else 0 for name in names])
        met = places[number // len(played) % len(names)]
        games = np.zeros(count, GAME)
        games["attackers"], games["defenders"] = np.where(sides == 0, (0 * met, met), (met, 0 * met))
        games["seed"] = game_seeds(self.plan.seed, generation, Purpose.LESSON, number, 0)
        return games, sides

    def _rate(self, games: int) -> float:
        """The learning rate after so many games."""
        values = self.plan.values
        done = min(1.0, games / values["alpha_games"])
        return float(values["alpha"] + done * (values["alpha_end"] - values["alpha"]))

    def _lesson(self, generation: int) -> Lesson:
        from hnefi.engine.selfplay import learning

        values = self.plan.values
        method = {
            options.TD: learning.DIFFERENCES,
            options.TDLEAF: learning.LEAVES,
            options.TREESTRAP: learning.TREES,
        }[self.plan.algorithm]
        if values.get("recipe") == "coded":
            method = learning.PREVIOUS
        chains = {"plies": learning.PLIES, "literal": learning.LITERAL}
        draw = values["draw_value"]
        return learning.Lesson(
            method=method,
            chain=chains.get(values.get("chain", ""), learning.AFTERSTATES),
            depth=values["depth"],
            trace=values.get("lambda", 0.0),
            rate=self._rate((generation - 1) * values["generation_games"]),
            rate_end=values["alpha_end"],
            rate_change=(values["alpha_end"] - values["alpha"]) / values["alpha_games"],
            epsilon=values["epsilon"],
            unseen=values.get("wins") == "unseen",
            random_plies=values["random_plies"],
            drawn=(draw, 1 - draw),
            entropy=values["loss"] == "entropy",
            adam=values["optimizer"] == "adam",
        )


def _contestant(plan: Plan, name: str) -> Contestant:
    """The fixed opponent called `name`."""
    from hnefi.engine.selfplay.match import Contestant

    if name in ("random", "random-coded"):
        return Contestant(name)  # type: ignore[arg-type]
    network = Network("simple") if name == "simple" else Network("linear-tablut", {"sides": 1})
    weights = np.zeros(0) if name == "simple" else tuned(network, plan.variant)
    return Contestant("minimax", plan.values["opponent_depth"], network.record(plan.variant, weights))


def tuned(network: Network, variant: Any) -> Any:
    """The hand-tuned weights of "Tablut Game AI with Temporal Difference Learning"."""
    return network.join(variant, network.module.TUNED)


def _described(games: Any, sides: Any) -> dict[str, Any]:
    """Statistics of games: the results for the learner and for each side, and the reasons."""
    winner = np.where(games["outcome"] == 0, 2, (games["outcome"] >> 8) - 1)
    one = (games["attackers"] == 0) != (games["defenders"] == 0)
    won, drawn = (winner == sides) & one, (winner == 2) & one
    reasons = Counter(
        f"{'ad-'[who]} {Reason.from_code(code)}"
        for who, code in zip(winner.tolist(), (games["outcome"] & 255).tolist(), strict=True)
    )
    return {
        "games": len(games),
        "results": [int(won.sum()), int(drawn.sum()), int(one.sum() - won.sum() - drawn.sum())],
        "winners": [int((winner == side).sum()) for side in range(3)],
        "reasons": dict(sorted(reasons.items())),
        "plies": int(games["plies"].sum()),
        "evaluations": int(games["evaluations"].sum()),
    }
