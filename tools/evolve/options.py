"""Every option of a run in one table: its values, its default, and its algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hnefi.engine.wording import nearest, shorten

ES, CMA, ZERO, TORUS = "es", "cma", "zero", "torus"
TD, TDLEAF, TREESTRAP = "td", "tdleaf", "treestrap"
BOTH = (ES, CMA)
"""Algorithms that compare individuals."""
GRADIENTS = (TD, TDLEAF, TREESTRAP)
"""Algorithms that change the weights of one player while it plays."""
DEEPEST = 8
ALGORITHMS = {
    ES: "the (mu + lambda) evolution strategy of P. Hingston, 2007",
    CMA: "sep-CMA-ES by the package cma (pip install 'hnefi[cma]')",
    ZERO: "AlphaZero: a network learns value and moves from games against itself",
    TORUS: "evolution on a torus, where neighbours meet and mix, as in McCarver and LeGrand's Hex",
    TD: "temporal differences on the positions a player leaves, as in Herr's Tablut",
    TDLEAF: "TDLeaf: temporal differences on the positions its searches lead to",
    TREESTRAP: "TreeStrap: every position of a search tree learns what the search found there",
}


class OptionError(ValueError):
    """An option is unusable; the message names it, repeats its value and says what was expected."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `least` and `most` bound a number, `words` are the alternatives; a default of None is determined when
    the run begins (`help` says how)."""

    name: str
    default: Any
    help: str
    kind: type = int
    least: float = 0
    most: float = 1_000_000
    words: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = BOTH

    def read(self, text: str) -> Any:
        """Parse a value from the command line."""
        if self.kind is str:
            return self.check(text)
        try:
            return self.check(self.kind(text) if len(text) <= 40 else None)
        except ValueError:
            raise self._refused(text) from None

    def check(self, value: Any) -> Any:
        """The value, if it is allowed."""
        if self.kind is str and isinstance(value, str) and (not self.words or value in self.words):
            return value
        if self.kind is int and type(value) is int and self.least <= value <= self.most:
            return value
        if self.kind is float and type(value) in (int, float) and self.least <= value <= self.most:
            return float(value)
        raise self._refused(value)

    def _refused(self, value: object) -> OptionError:
        return OptionError(f"{self.name}: {shorten(value)}: expected {self.expected}")

    @property
    def expected(self) -> str:
        """The allowed values in words."""
        if self.words:
            return ", ".join(self.words[:-1]) + f" or {self.words[-1]}"
        if self.kind is str:
            return "text"
        return f"{'a whole number' if self.kind is int else 'a number'} from {self.least:g} to {self.most:g}"


ONLY_ES = (ES,)
ONLY_TD = (TD,)
ONLY_TORUS = (TORUS,)
SEARCHING = (TDLEAF, TREESTRAP)
YES = ("yes", "no")
MET = ("random", "random-coded", "minimax", "simple", "self", "mix")
TABLE: tuple[Option, ...] = (
    Option("network", "hingston2007", "an architecture with its sizes, like hingston2007:hidden=20", str),
    Option("symmetric", "none", "share weights over the board's symmetries", str, words=("none", "tied")),
    Option("generations", 300, "generations of the run", least=1),
    Option("mu", 5, "parents", least=1, most=100_000, algorithms=ONLY_ES),
    Option("lambda", None, "children (5; cma: candidates, 20)", least=1, most=100_000),
    Option("depth", 1, "plies that all players look ahead", least=1, most=DEEPEST),
    Option("deeper", "", "further depths for games against fixed opponents, such as 2,3 (none)", str),
    Option("opponent", "random", "fixed opponents of all individuals", str, words=("random", "simple", "both")),
    Option("random_matches", 10, "matches of each individual against each fixed opponent"),
    Option("random_reading", "blind", "terminal: Random sees wins and losses", str, words=("blind", "terminal")),
    Option("pair_games", 1, "matches of each pair of individuals"),
    Option("ply_limit", None, "plies of a game (the variant's own limit; 200 if it has none)", least=1),
    Option("common", "no", "the opponent uses the same random numbers against all individuals", str, words=YES),
    Option("hall", 0, "past champions, drawn at random, that each individual plays once", most=10_000),
    Option("start", "", "an evaluator file, or default: what first weights spread around (zeros)", str),
    Option("init_scale", None, "first weights are N(start, this squared) (1/n)", float, most=1e6),
    Option("sigma0", None, "first step size (1/sqrt(n))", float, least=1e-300, most=1e6),
    Option("sigma_min", 0.0, "least step size", float, most=1e6, algorithms=ONLY_ES),
    Option(
        "tau", "printed", "rates of step sizes", str, words=("printed", "schwefel"), algorithms=ONLY_ES
    ),
    Option(
        "inherit", "own", "whose step sizes a child inherits", str, words=("own", "first", "mean"),
        algorithms=ONLY_ES,
    ),
    Option(
        "step", "weight", "one normal random number for each weight, or one for all", str, words=("weight", "vector"),
        algorithms=ONLY_ES,
    ),
    Option(
        "tie", "random", "who survives among equals", str, words=("random", "parents", "children"),
        algorithms=ONLY_ES,
    ),
    Option("reevaluate", "yes", "measure parents again in each generation", str, words=YES, algorithms=ONLY_ES),
    Option(
        "average", 1.0, "how far a surviving child moves its parent's weights (1: it replaces them)", float, 1e-6, 1,
        algorithms=ONLY_ES,
    ),
    Option("archive_every", 1, "keep the champion of every N-th generation", least=1),
    Option("network", "policy-mlp", "an architecture with its sizes, like policy-mlp:64,64", str, algorithms=(ZERO,)),
    Option("generations", 10, "iterations", least=1, algorithms=(ZERO,)),
    Option("games", 20, "games of an iteration from which it learns", least=1, algorithms=(ZERO,)),
    Option("simulations", 10, "simulations of a move", least=2, most=2048, algorithms=(ZERO,)),
    Option("c", 1.0, "how much the search explores", float, most=1000, algorithms=(ZERO,)),
    Option("full", 1.0, "share of the moves with all simulations; only these are learned from", float, 1e-3, 1,
           algorithms=(ZERO,)),
    Option("fast_simulations", 10, "simulations of the other moves", least=2, most=2048, algorithms=(ZERO,)),
    Option("forced", 0.0, "a move tried at the root gets sqrt(this * prior * visits) simulations, pruned from what is "
           "learnt", float, most=100, algorithms=(ZERO,)),
    Option("first_play", "zero", "value of a move not yet tried: 0, or that of its position", str,
           words=("zero", "parent"), algorithms=(ZERO,)),
    Option("shared", "yes", "a position that is reached in two ways is one node", str, words=YES, algorithms=(ZERO,)),
    Option("prove", "no", "prove forced ends in the tree (with shared=no)", str, words=YES, algorithms=(ZERO,)),
    Option("temperature", 1.0, "moves are drawn by visits ^ (1 / this); 0: the most visited", float, most=100,
           algorithms=(ZERO,)),
    Option("temperature_plies", 1000, "plies for which this temperature holds", algorithms=(ZERO,)),
    Option("later_temperature", 0.25, "the temperature after these plies", float, most=100, algorithms=(ZERO,)),
    Option("noise", 0.0, "share of Dirichlet noise in the priors of the root", float, most=1, algorithms=(ZERO,)),
    Option("noise_alpha", 1.0, "the parameter of the noise", float, 1e-3, 1000, algorithms=(ZERO,)),
    Option("opening_plies", 0, "a game begins with up to N random plies", most=1000, algorithms=(ZERO,)),
    Option("handicap", 0.0, "share of the games in which the side that wins more has a handicap", float, most=1,
           algorithms=(ZERO,)),
    Option("handicap_by", "simulations", "the handicap: fewer simulations, or random moves now and then", str,
           words=("simulations", "moves"), algorithms=(ZERO,)),
    Option("older", 0.0, "share of the games that are against an earlier network", float, most=1, algorithms=(ZERO,)),
    Option("window", 0, "iterations whose examples are kept (0: all since a copy was last accepted)", most=1000,
           algorithms=(ZERO,)),
    Option("augment", "no", "also learn from the symmetric images of each example", str, words=YES, algorithms=(ZERO,)),
    Option("mask", "no", "the loss of the policy is over legal moves only", str, words=YES, algorithms=(ZERO,)),
    Option("value_mix", 0.0, "share of the search's value in the target; the rest is the result", float, most=1,
           algorithms=(ZERO,)),
    Option("epochs", 128, "passes over the examples", least=1, most=100_000, algorithms=(ZERO,)),
    Option("batch", 0, "examples per step (0: all)", algorithms=(ZERO,)),
    Option("steps", 0, "at most N steps in each pass (0: all examples)", algorithms=(ZERO,)),
    Option("rate", 0.001, "learning rate of Adam", float, 1e-12, 10, algorithms=(ZERO,)),
    Option("adam", "fresh", "Adam's moments at the start of an iteration: zero, or kept from the one before", str,
           words=("fresh", "kept"), algorithms=(ZERO,)),
    Option("gate_games", 20, "games of the copy against the network (0: it is always accepted)", algorithms=(ZERO,)),
    Option("gate", 0.5, "the copy must win more than this share of them", float, most=1, algorithms=(ZERO,)),
    Option("measure_every", 0, "iterations between two measurements against random and simple (0: none)",
           algorithms=(ZERO,)),
    Option("measure_pairs", 20, "pairs of games against each of them", least=1, algorithms=(ZERO,)),
    Option("measure_simulations", 200, "simulations per move in measurements", least=2, most=2048, algorithms=(ZERO,)),
    Option("start", "", "an evaluator file: the first weights", str, algorithms=(ZERO,)),
    Option("ply_limit", None, "plies of a game (the variant's own limit; 200 if it has none)", least=1,
           algorithms=(ZERO,)),
    Option("archive_every", 1, "keep the network of every N-th iteration", least=1, algorithms=(ZERO,)),
    Option("network", "mlp:5", "an architecture with its sizes, like mlp:25,5,tanh", str, algorithms=ONLY_TORUS),
    Option("symmetric", "none", "share weights over the board's symmetries", str, words=("none", "tied"),
           algorithms=ONLY_TORUS),
    Option("generations", 400, "generations of the run", least=1, algorithms=ONLY_TORUS),
    Option("side", 10, "the torus has N x N players", least=3, most=64, algorithms=ONLY_TORUS),
    Option("neighbourhood", 1, "steps within which players are neighbours (0: all are)", most=31,
           algorithms=ONLY_TORUS),
    Option("selection", "wins", "a source is drawn by the games it won, or by 2 to the power of that", str,
           words=("wins", "exponential"), algorithms=ONLY_TORUS),
    Option("inertia", 0.0, "probability that a weight keeps its value", float, most=1, algorithms=ONLY_TORUS),
    Option("shake_kept", "yes", "kept weights also get noise", str, words=YES, algorithms=ONLY_TORUS),
    Option("mutation", "swap", "two weights of a player are swapped, or one is copied over the other", str,
           words=("swap", "copy", "none"), algorithms=ONLY_TORUS),
    Option("again", 0.0, "probability that another pair follows", float, most=0.99, algorithms=ONLY_TORUS),
    Option("sigma", 1.0, "size of the noise", float, most=1e6, algorithms=ONLY_TORUS),
    Option("noise", "absolute", "relative: in proportion to each weight", str, words=("absolute", "relative"),
           algorithms=ONLY_TORUS),
    Option("noise_floor", 0.1, "relative noise of smaller weights is as for this size", float,
           most=1e6, algorithms=ONLY_TORUS),
    Option("rearrange", 0, "sort the players on the torus by wins every N generations (0: never)",
           algorithms=ONLY_TORUS),
    Option("wins", None, "whether players see that a game is won (seen; Hex: unseen)", str, words=("seen", "unseen"),
           algorithms=ONLY_TORUS),
    Option("legality", "known", "learned: all cells are candidates, and choosing an occupied one loses (Hex)", str,
           words=("known", "learned"), algorithms=ONLY_TORUS),
    Option("quick_win", "no", "a win counts 1 minus its length divided by the longest possible", str, words=YES,
           algorithms=ONLY_TORUS),
    Option("rungs", "random", "fixed opponents: random, simple, evaluator files, separated by commas", str,
           algorithms=ONLY_TORUS),
    Option("rung_games", 0, "games of each player against each fixed opponent", most=10_000, algorithms=ONLY_TORUS),
    Option("depth", 1, "plies that all players look ahead", least=1, most=DEEPEST, algorithms=ONLY_TORUS),
    Option("ply_limit", None, "plies of a game (the variant's own limit; 200 if it has none)", least=1,
           algorithms=ONLY_TORUS),
    Option("measure_every", 10, "generations between measurements against Random (0: none)", algorithms=ONLY_TORUS),
    Option("measure_games", 20, "games of each player in such a measurement", most=10_000, algorithms=ONLY_TORUS),
    Option("start", "", "an evaluator file, or default: what first weights spread around (zeros)", str,
           algorithms=ONLY_TORUS),
    Option("init_scale", 1.0, "first weights are N(start, this squared)", float, most=1e6, algorithms=ONLY_TORUS),
    Option("archive_every", 1, "keep the champion of every N-th generation", least=1, algorithms=ONLY_TORUS),
    Option(
        "network", "mlp:50", "an architecture with its sizes, like mlp:50 or linear-threats", str, algorithms=ONLY_TD
    ),
    Option(
        "network", "linear-threats", "an architecture with its sizes, like mlp:32 or linear", str,
        algorithms=SEARCHING,
    ),
    Option("generations", 10, "generations of the run", least=1, algorithms=GRADIENTS),
    Option("generation_games", 100, "games of a generation", least=1, algorithms=GRADIENTS),
    Option("depth", 1, "plies that the learner looks ahead", least=1, most=DEEPEST, algorithms=ONLY_TD),
    Option("depth", 2, "plies that the learner looks ahead", least=1, most=DEEPEST, algorithms=SEARCHING),
    Option(
        "side", "both", "the learner's side", str, words=("attackers", "defenders", "both"), algorithms=GRADIENTS
    ),
    Option("opponent", "random", "the learner's opponent", str, words=MET, algorithms=ONLY_TD),
    Option("opponent", "self", "the learner's opponent", str, words=MET, algorithms=SEARCHING),
    Option(
        "opponent_depth", 1, "plies that minimax and simple look ahead", least=1, most=DEEPEST, algorithms=GRADIENTS
    ),
    Option("lambda", 0.0, "decay of eligibility traces", float, most=1, algorithms=ONLY_TD),
    Option("lambda", 0.7, "decay of eligibility traces", float, most=1, algorithms=(TDLEAF,)),
    Option(
        "chain", "afterstates", "the target of a position: the learner's next one, that of the next ply, or "
        "(literal) the one after the answer, which is never updated itself",
        str, words=("afterstates", "plies", "literal"), algorithms=ONLY_TD,
    ),
    Option(
        "recipe", "text", "coded: as in the program of 2014, the target is its last score, not the result", str,
        words=("text", "coded"), algorithms=ONLY_TD,
    ),
    Option(
        "wins", "seen", "unseen: the learner's search also evaluates finished games by the network",
        str, words=("seen", "unseen"), algorithms=ONLY_TD,
    ),
    Option("alpha", 0.1, "first learning rate", float, 1e-12, 1e6, algorithms=ONLY_TD),
    Option("alpha_end", 0.01, "last learning rate", float, 1e-12, 1e6, algorithms=ONLY_TD),
    Option("alpha", 0.02, "first learning rate", float, 1e-12, 1e6, algorithms=SEARCHING),
    Option("alpha_end", 0.002, "last learning rate", float, 1e-12, 1e6, algorithms=SEARCHING),
    Option("alpha_games", 1000, "games until the last rate is reached", least=1, algorithms=GRADIENTS),
    Option("optimizer", "sgd", "plain steps, or Adam's", str, words=("sgd", "adam"), algorithms=ONLY_TD),
    Option("optimizer", "adam", "plain steps, or Adam's", str, words=("sgd", "adam"), algorithms=SEARCHING),
    Option("loss", "squared", "the loss function", str, words=("squared", "entropy"), algorithms=ONLY_TD),
    Option("loss", "entropy", "the loss function", str, words=("squared", "entropy"), algorithms=SEARCHING),
    Option("epsilon", 0.1, "share of the learner's moves that are random", float, most=1, algorithms=ONLY_TD),
    Option("epsilon", 0.0, "share of the learner's moves that are random", float, most=1, algorithms=SEARCHING),
    Option("random_plies", 0, "a game begins with up to N random plies", most=1000, algorithms=ONLY_TD),
    Option("random_plies", 8, "a game begins with up to N random plies", most=1000, algorithms=SEARCHING),
    Option(
        "draw_value", None, "value of a draw (0 if the learner plays one side of two players, else 0.5)",
        float, most=1, algorithms=GRADIENTS,
    ),
    Option("start", "", "an evaluator file, or default: the first weights", str, algorithms=GRADIENTS),
    Option(
        "init", None, "without start, first weights are uniform in -X to X (0.7; linear: 0)", float,
        most=1e6, algorithms=GRADIENTS,
    ),
    Option(
        "ply_limit", None, "plies of a game (the variant's own limit; 200 if it has none)", least=1,
        algorithms=GRADIENTS,
    ),
    Option("archive_every", 1, "keep the weights of every N-th generation", least=1, algorithms=GRADIENTS),
)  # fmt: skip


def of(algorithm: str) -> dict[str, Option]:
    """The options that an algorithm has, by name."""
    return {option.name: option for option in TABLE if algorithm in option.algorithms}


def depths(values: Mapping[str, Any]) -> tuple[int, ...]:
    """`depth`, and those of `deeper`; OptionError if they are not numbers in ascending order."""
    found = [values["depth"]]
    for word in filter(None, values["deeper"].split(",")):
        number = int(word) if word.isascii() and word.isdigit() and len(word) <= 4 else 0
        if not found[-1] < number <= DEEPEST:
            raise OptionError(
                f"deeper: {shorten(values['deeper'])}: expected whole numbers that rise from depth {values['depth']} "
                f"to {DEEPEST} at most, as 2,3"
            )
        found.append(number)
    return tuple(found)


def read_settings(algorithm: str, settings: list[str]) -> dict[str, Any]:
    """The values of `--set name=value ...`."""
    known, found = of(algorithm), {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"--set {shorten(text)}: expected name=value")
        if name not in known:
            raise OptionError(f"{shorten(name)}: expected one of {', '.join(known)}{nearest(name, known)}")
        found[name] = known[name].read(value)
    return found


def complete(algorithm: str, said: Mapping[str, Any], size: int, limit: Callable[[], int]) -> dict[str, Any]:
    """All options with values: `size` is the number of free weights, `limit` the variant's own limit of plies."""
    values = {name: said.get(name, option.default) for name, option in of(algorithm).items()}
    found: dict[str, Callable[[], Any]] = {
        "lambda": lambda: 20 if algorithm == CMA else 5,
        "ply_limit": limit,
        "init_scale": lambda: 1 / size,
        "sigma0": lambda: 1 / math.sqrt(size),
        "draw_value": lambda: 0.5 if values["side"] == "both" or values["opponent"] == "self" else 0.0,
        "init": lambda: 0.0 if values["network"].startswith("linear") else 0.7,
    }
    for name, make in found.items():
        if name in values and values[name] is None:
            values[name] = make()
    if algorithm == ZERO and values["prove"] == values["shared"] == "yes":
        raise OptionError("prove=yes with shared=yes: expected shared=no")
    if algorithm not in BOTH:
        return values
    if not values["pair_games"] and not values["random_matches"]:
        raise OptionError(
            "pair_games and random_matches: 0: expected matches of at least one kind: a hall begins empty"
        )
    depths(values)
    if algorithm == CMA and values["lambda"] < 2:
        raise OptionError(f"lambda: {values['lambda']}: expected at least 2 candidates")
    return values
