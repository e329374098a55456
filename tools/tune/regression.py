"""Logistic regression of the outcomes of positions on the features that the evaluator counts in them.

A position's target is a blend of the game's result and the score that the search gave it: results alone show what
strong and weak players have in common, and value men too low, while a search sees what a capture is good for. The
search's centipawns are first scaled so that they predict results best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine.evaluators import tafl
from hnefi.engine.evaluators.king_features import hand_weights
from hnefi.engine.evaluators.tafl import WEIGHTS
from hnefi.engine.evaluators.tafl_features import FEATURE_NAMES
from hnefi.engine.evaluators.tafl_weights import KINDS, family
from hnefi.engine.score import WON

if TYPE_CHECKING:
    from pathlib import Path

    from hnefi.engine.games.tafl.variant import Variant

UNIT = math.log(10) / 400
"""Log-odds per centipawn: 100 centipawns are a score of 64 %."""
SIXTEENTHS = 16
BLEND = 0.75
"""The share of the search's score in the target."""
RIDGE = 2e-3
"""Pull towards the initial weights, per squared centipawn: a weight without evidence stays there."""
SHIFT = 1e-6
CLIP = 1500
"""Centipawns beyond which scores say nothing about their scale."""
UNHINDERED = -2000
"""Centipawns of an open road for a king who is to move: the search sees him escape."""
MOST = 2000
"""The largest weight in centipawns."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Weights in centipawns, flattened in the order of WEIGHTS, and the mean losses on held-out games."""

    weights: Any
    positions: int
    games: int
    stretch: float
    loss: float
    loss_before: float
    loss_of_nothing: float


def columns() -> dict[str, slice]:
    """The place of each weight in a flattened vector."""
    places, at = {}, 0
    for name, shape in WEIGHTS:
        size = math.prod(shape)
        places[name] = slice(at, at + size)
        at += size
    return places


COLUMNS = columns()
WIDTH = sum(math.prod(shape) for _, shape in WEIGHTS)


def design(rows: Any, variant: Variant) -> Any:
    """A row for each position: how often each weight counts in it."""
    seen = {name: rows["counts"][:, i].astype(np.int64) for i, name in enumerate(FEATURE_NAMES)}
    x = np.zeros((len(rows), WIDTH), np.float32)
    lines = np.arange(len(rows))
    side = seen["to_move"]

    def put(name: str, offset: Any, amount: Any) -> None:
        x[lines, COLUMNS[name].start + offset] = amount

    for k, (lost, start) in enumerate(
        (("attackers_lost", variant.attackers), ("defenders_lost", variant.defenders))
    ):
        put("lost", 2 * k, np.minimum(seen[lost], start // 2))
        put("lost", 2 * k + 1, np.maximum(seen[lost] - start // 2, 0))
    x[:, COLUMNS["post"]] = rows["posts"].reshape(len(rows), 2 * KINDS)
    put("king", rows["king"].astype(np.int64), 1)
    put("road", 4 * side + seen["escapes_in_1"], 1)
    put("way", 2 * side, seen["escapes_in_2"] > 0)
    put("way", 2 * side + 1, np.maximum(seen["escapes_in_2"] - 1, 0))
    put("far_way", 2 * side, seen["escapes_in_3"] > 0)
    put("far_way", 2 * side + 1, seen["escapes_in_3"])
    put("goal", seen["goals"], 1)
    put("pressure", seen["pressure"], 1)
    for i, near in enumerate(
        ("near_attackers", "far_attackers", "beside_defenders", "near_defenders", "far_defenders")
    ):
        put("near", i, seen[near])
    for name, count in (
        ("edge", "edges"),
        ("region", "region"),
        ("thin", "thin"),
        ("empty", "empty"),
        ("room", "room"),
    ):
        put(name, 0, seen[count])
    put("reach", 0, seen["attackers_reach"])
    put("reach", 1, seen["defenders_reach"])
    put("tempo", 0, 1 - 2 * side)
    put("level", 0, 1)
    # What most positions have belongs to `level`: no road, all goals in reach, no men beside the king.
    for name, offset in (("road", 0), ("road", 4), ("goal", 4), ("pressure", 0)):
        x[:, COLUMNS[name].start + offset] = 0
    return x


def beginning(variant: Variant) -> Any:
    """The initial weights in centipawns, taken from those set by hand as far as they count the same things."""
    hand = hand_weights(variant)
    weights = np.zeros(WIDTH)
    parts: dict[str, Any] = {
        "lost": (-hand["attacker"],) * 2 + (hand["defender"],) * 2,
        "road": (*hand["road"], 0, UNHINDERED, UNHINDERED, UNHINDERED),
        "way": (0, hand["lane"], 0, hand["lane"]),
        "goal": (100, 0, 0, 0, 0),
        "pressure": hand["pressure"],
        "room": hand["room"],
        "thin": 8,
        "reach": (8, -4),
        "tempo": hand["tempo"],
    }
    for name, values in parts.items():
        weights[COLUMNS[name]] = values
    # Kinds of squares are pairs of distances from the edges: (0 0), (0 1), (1 1), (0 2) and so on.
    edge = variant.rules.escape == "edge"
    pairs = [(near, far) for far in range(5) for near in range(far + 1)]
    for kind, (near, far) in enumerate(pairs):
        weights[COLUMNS["king"].start + kind] = hand["distance"] * (near if edge else near + far)
        if near + far == 2:
            weights[COLUMNS["post"].start + kind] = hand["guard"]
    return weights


def fit(rows: Any, variant: Variant, before: Any, blend: float = BLEND, ridge: float = RIDGE) -> Fit:
    """The weights that predict the targets best; `before` are the current ones, for comparison only.

    Losses are measured with every fifth game held out; the returned weights are fitted to all games.
    """
    x = design(rows, variant)
    results = rows["result"] / 2
    weight = _balance(rows["game"], results)
    stretch = stretch_of(rows["score"], results, weight)
    target = (1 - blend) * results + blend * _expected(rows["score"], stretch)
    start = beginning(variant) * stretch
    start[COLUMNS["road"]][5:] = UNHINDERED
    held = rows["game"] % 5 == 0
    trained = newton(x[~held], target[~held], weight[~held], start, ridge)
    shift = _level_only(x[~held] @ before, target[~held], weight[~held])
    base = float(np.average(target[~held], weights=weight[~held]))
    constant = math.log(base / (1 - base)) / UNIT
    return Fit(
        centred(newton(x, target, weight, start, ridge), x),
        len(rows),
        len(np.unique(rows["game"])),
        stretch,
        loss(x[held] @ trained, target[held], weight[held]),
        loss(x[held] @ before + shift, target[held], weight[held]),
        loss(np.full(int(held.sum()), constant), target[held], weight[held]),
    )


def _balance(games: Any, results: Any) -> Any:
    """Weights of positions: long games count more than short ones, but less than in proportion to their length, and
    wins of both sides count equally."""
    _, index, length = np.unique(games, return_inverse=True, return_counts=True)
    weight = 1 / np.sqrt(length[index])
    share = float(np.average(results, weights=weight))
    weight = np.where(results == 1, weight / (2 * max(share, 0.05)), weight)
    weight = np.where(results == 0, weight / (2 * max(1 - share, 0.05)), weight)
    return weight / weight.mean()


def _expected(score: Any, stretch: float) -> Any:
    """Search scores as expected results; forced results are exact."""
    cp = score.astype(float)
    return np.where(np.abs(cp) > WON, cp > 0, 1 / (1 + np.exp(-np.clip(UNIT * stretch * cp, -30, 30))))


def stretch_of(score: Any, results: Any, weight: Any) -> float:
    """The factor for centipawns that predicts results best: 1 if 100 are a score of 64 %."""
    near = np.abs(score.astype(int)) <= CLIP
    x = np.stack([np.ones(int(near.sum())), score[near].astype(float)], axis=1)
    return float(newton(x, results[near], weight[near], np.zeros(2), SHIFT)[1])


def _level_only(value: Any, target: Any, weight: Any) -> float:
    """The centipawns to add to a value so that it predicts the targets best."""
    x = np.stack([np.ones(len(value)), value], axis=1)
    start = np.array([0.0, 1.0])
    return float(newton(x, target, weight, start, np.array([SHIFT, 1e9]))[0])


def newton(x: Any, target: Any, weight: Any, start: Any, ridge: Any, steps: int = 30) -> Any:
    """Minimise the weighted logistic loss plus half of `ridge` times the squared distance from `start`, by damped
    Newton steps."""
    x = np.asarray(x, np.float64)

    def objective(theta: Any) -> float:
        z = x @ theta * UNIT
        return float(
            (weight * (np.logaddexp(0, z) - target * z)).sum() + (ridge * (theta - start) ** 2).sum() / 2
        )

    theta = start.copy()
    # The start may be so far off that the loss is nearly linear there: then zero is a better place to begin.
    if objective(np.zeros_like(start)) < objective(theta):
        theta = np.zeros_like(start)
    now = objective(theta)
    for _ in range(steps):
        p = 1 / (1 + np.exp(-np.clip(x @ theta * UNIT, -30, 30)))
        slope = UNIT * (x.T @ (weight * (p - target))) + ridge * (theta - start)
        curve = UNIT * UNIT * (x.T * (weight * p * (1 - p))) @ x + np.diag(
            np.broadcast_to(ridge, start.shape)
        )
        way = np.linalg.solve(curve, slope)
        length = 1.0
        while length > 1e-4 and objective(theta - length * way) >= now:
            length /= 2
        if length <= 1e-4:
            break
        theta = theta - length * way
        gained, now = now - objective(theta), objective(theta)
        if gained < 1e-7 * now:
            break
    return theta


def loss(value: Any, target: Any, weight: Any) -> float:
    """Mean logistic loss of values in centipawns."""
    z = value * UNIT
    return float(np.average(np.logaddexp(0, z) - target * z, weights=weight))


def centred(weights: Any, x: Any) -> Any:
    """The same evaluator with posts that are worth nothing on average, so that only `lost` has the value of a man."""
    weights = weights.copy()
    level = COLUMNS["level"].start
    post, lost = COLUMNS["post"].start, COLUMNS["lost"].start
    for side in range(2):
        part = slice(post + side * KINDS, post + (side + 1) * KINDS)
        often = x[:, part].sum(axis=0)
        mean = float(often @ weights[part] / max(often.sum(), 1))
        men = x[:, part].sum(axis=1) + x[:, lost + 2 * side] + x[:, lost + 2 * side + 1]
        weights[part] -= np.where(often > 0, mean, 0)
        weights[lost + 2 * side : lost + 2 * side + 2] -= mean
        weights[level] += mean * float(men.mean())
    often = x[:, COLUMNS["king"]].sum(axis=0)
    mean = float(often @ weights[COLUMNS["king"]] / max(often.sum(), 1))
    weights[COLUMNS["king"]] -= np.where(often > 0, mean, 0)
    weights[level] += mean
    return weights


def in_force(variant: Variant) -> Any:
    """The current weights of a variant, flattened, in centipawns."""
    record = tafl.parameters(variant)[0]
    weights = np.zeros(WIDTH)
    for name, _ in WEIGHTS:
        weights[COLUMNS[name]] = np.asarray(record[name], float).ravel() / SIXTEENTHS
    return weights


def write(folder: Path, variant: Variant, found: Fit, stretch: float, command: str) -> None:
    """Write a file of weights that `engine/evaluators/tafl_weights.py` can read; OSError if that fails."""
    said = [f"{key} = {str(value).lower()}" for key, value in family(variant)._asdict().items()]
    lines = [
        f"family = {{ {', '.join(said)} }}",
        f"# {command}",
        f"# {found.positions} quiet positions of {found.games} games; loss on held out games {found.loss:.4f}, of no",
        f"# evaluation {found.loss_of_nothing:.4f}. Sixteenths of a centipawn, for the attackers; tafl.py names them.",
    ]
    for name, shape in WEIGHTS:
        values = found.weights[COLUMNS[name]] * stretch
        if name == "road":
            # If the king is to move, there is nothing to fit: he escapes.
            values = np.concatenate([values[:4], [0, UNHINDERED, UNHINDERED, UNHINDERED]])
        whole = np.clip(np.rint(values * SIXTEENTHS), -MOST * SIXTEENTHS, MOST * SIXTEENTHS).astype(int)
        lines.append(f"{name} = {_text(whole.reshape(shape).tolist())}")
    (folder / f"{variant.name}.toml").write_text("\n".join(lines) + "\n", "ascii")


def _text(values: Any) -> str:
    """A whole number, a list of them, or a list of such lists with one per line."""
    if (
        isinstance(values, list)
        and values
        and isinstance(values[0], list)
        and math.prod(map(len, values)) > 16
    ):
        return "[\n" + "".join(f"  {_text(line)},\n" for line in values) + "]"
    return str(values)
