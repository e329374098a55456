"""The experiments of "Tablut Game AI with Temporal Difference Learning", over several seeds, in two readings.

`text` is the printed text; `coded` is what its author's program does, reimplemented from a description: whole lines are
captured, Random is the player of `games/tafl/random_slide.py`, features are computed its way, and learning never sees a
result. Beyond one ply, the program's search scores positions in which its own first move is missing, so that all first
moves are worth the same and it makes any; that player is replaced by the uniform random one. `blind` is the text minus
one thing: players do not see that a move ends the game, and evaluate finished positions like all others.

Runs: a player learns from 1,000 games, for each kind and each seed. Tests: rows of games, played once and saved.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hnefi.engine import durable

from .measuring import Watch, flags, read_lines

NAME = "tablut"
SMALL, CODED, LARGE = "tablut-herr-7", "tablut-herr-7-coded", "tablut-herr-9"
GENERATIONS, GAMES = 10, 100


class Kind(NamedTuple):
    """The properties of a kind of run: the variant, and options of `hnefi evolve td`."""

    variant: str
    options: tuple[str, ...]


WHITE = ("--side", "defenders", "--opponent", "random")
KINDS: Mapping[str, Kind] = {
    "white": Kind(SMALL, WHITE),
    "white-lambda": Kind(SMALL, (*WHITE, "--lambda", "0.7")),
    "white-coded": Kind(CODED, ("--side", "defenders", "--opponent", "random-coded", "--recipe", "coded")),
    "white-blind": Kind(SMALL, (*WHITE, "--wins", "unseen")),
    "black-blind": Kind(SMALL, ("--side", "attackers", "--opponent", "random", "--wins", "unseen")),
    "white-literal": Kind(SMALL, (*WHITE, "--chain", "literal")),
    "white-minimax": Kind(SMALL, ("--side", "defenders", "--opponent", "minimax")),
    "black": Kind(SMALL, ("--side", "attackers", "--opponent", "random")),
    "both": Kind(SMALL, ("--side", "both", "--opponent", "random", "--draw-value", "0")),
    "features": Kind(SMALL, (*WHITE, "--network", "linear-tablut")),
    "features-9": Kind(LARGE, (*WHITE, "--network", "linear-tablut")),
}
"""Every kind of run. We chose exploration in one move of ten, a rate from 0.1 down to 0.01, and no traces."""


class Row(NamedTuple):
    """A row of games. `white` and `black` are players: `random`, `random-coded`, `minimax:READING` (the fixed features
    and tuned weights), `net:KIND` (the last network of a run), `first:KIND` (the one it began with) or `turned:KIND`
    (maximises the other side's chance), each followed by `@PLIES` for its depth, and by `!` if it does not see ends."""

    name: str
    variant: str
    white: str
    black: str
    games: int

    @property
    def seeded(self) -> bool:
        """Whether it is played once for each seed of the runs."""
        return any(
            player.partition(":")[0] in ("net", "first", "turned") for player in (self.white, self.black)
        )

    @property
    def depth(self) -> int:
        """The larger of the two players' depths."""
        return max(int(player.rstrip("!").partition("@")[2] or 1) for player in (self.white, self.black))


ROWS = (
    Row("random text", SMALL, "random", "random", 4000),
    Row("random coded", CODED, "random-coded", "random-coded", 4000),
    Row("minimax-minimax text", SMALL, "minimax:text@3", "minimax:text@3", 200),
    Row("minimax-minimax coded", CODED, "random", "random", 4000),
    Row("minimax-minimax blind", SMALL, "minimax:text@3!", "minimax:text@3!", 100),
    Row("minimax-1 blind", SMALL, "minimax:text!", "random", 1000),
    Row("minimax-3 blind", SMALL, "minimax:text@3!", "random", 100),
    Row("td blind", SMALL, "net:white-blind!", "random", 400),
    Row("td-minimax blind", SMALL, "net:white-blind!", "minimax:text@3!", 20),
    Row("turned literal blind", SMALL, "random", "turned:white-blind!", 400),
    Row("turned minimised blind", SMALL, "random", "net:white-blind!", 400),
    Row("untrained blind", SMALL, "first:white-blind!", "random", 400),
    Row("black blind", SMALL, "random", "net:black-blind!", 400),
    Row("net-net text", SMALL, "net:white", "net:black", 100),
    Row("net-net blind", SMALL, "net:white-blind!", "net:black-blind!", 100),
    Row("literal", SMALL, "net:white-literal", "random", 400),
    Row("met minimax", SMALL, "net:white-minimax", "random", 400),
    Row("met minimax, meets it", SMALL, "net:white-minimax", "minimax:text", 100),
    Row("minimax-1 text", SMALL, "minimax:text", "random", 1000),
    Row("minimax-1 coded", CODED, "minimax:coded", "random-coded", 1000),
    Row("minimax-3 text", SMALL, "minimax:text@3", "random", 200),
    Row("minimax-3 coded", CODED, "random", "random-coded", 4000),
    Row("random-minimax-1 text", SMALL, "random", "minimax:text", 1000),
    Row("td text", SMALL, "net:white", "random", 400),
    Row("td coded", CODED, "net:white-coded", "random-coded", 400),
    Row("td-minimax text", SMALL, "net:white", "minimax:text@3", 20),
    Row("td-minimax deep", SMALL, "net:white@3", "minimax:text@3", 10),
    Row("td-minimax coded", CODED, "net:white-coded", "random", 400),
    Row("turned literal text", SMALL, "random", "turned:white", 400),
    Row("turned minimised text", SMALL, "random", "net:white", 400),
    Row("turned literal coded", CODED, "random-coded", "turned:white-coded", 400),
    Row("turned minimised coded", CODED, "random-coded", "net:white-coded", 400),
    Row("untrained text", SMALL, "first:white", "random", 400),
    Row("lambda", SMALL, "net:white-lambda", "random", 400),
    Row("lambda-minimax", SMALL, "net:white-lambda", "minimax:text@3", 20),
    Row("black", SMALL, "random", "net:black", 400),
    Row("both as white", SMALL, "net:both", "random", 400),
    Row("both as black", SMALL, "random", "net:both", 400),
    Row("features 7x7", SMALL, "net:features", "random", 400),
    Row("features 7x7 on 9x9", LARGE, "net:features", "random", 100),
    Row("features 9x9", LARGE, "net:features-9", "random", 100),
    Row("features untrained 9x9", LARGE, "first:features-9", "random", 100),
    Row("random 9x9 text", LARGE, "random", "random", 4000),
    Row("random 9x9 coded", LARGE, "random-coded", "random-coded", 4000),
)


@dataclass(frozen=True)
class Plan:
    """The runs and tests. Of every row a share `share` of the games is played."""

    seeds: tuple[int, ...] = tuple(range(201, 211))
    generations: int = GENERATIONS
    generation_games: int = GAMES
    share: float = 1.0
    quick: bool = False

    def tests(self) -> Iterator[Test]:
        """Every test, expensive ones first so that no worker is left with one at the end."""
        for row in sorted(ROWS, key=lambda row: -row.depth):
            for seed in self.seeds if row.seeded else (0,):
                yield Test(row, seed, max(2, round(row.games * self.share)))

    def as_json(self) -> dict[str, Any]:
        """The plan as in `plan.json`; `read_plan` reads it back."""
        text: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {"experiment": NAME, **text}


QUICK = Plan(seeds=(1, 2), generations=2, generation_games=20, share=0.02, quick=True)
"""A small version: it shows that everything works, but says nothing about the paper."""


class Test(NamedTuple):
    """One test: the games of a row, for one seed if it depends on seeds."""

    row: Row
    seed: int
    games: int

    def key(self) -> str:
        """The key of its games' random streams; also its name in `tests.jsonl`."""
        return f"{self.row.name} {self.seed}"


@dataclass(frozen=True, slots=True)
class Played:
    """Results of a test's games: wins of white and of black, draws, plies of all games together, the number of
    different games, and games by winner and reason (`w corner`)."""

    white: int
    black: int
    drawn: int
    plies: int
    different: int
    reasons: Mapping[str, int]

    @property
    def games(self) -> int:
        """All games of the test."""
        return self.white + self.black + self.drawn

    def plus(self, other: Played) -> Played:
        """The sum of both, as one test."""
        return Played(
            self.white + other.white,
            self.black + other.black,
            self.drawn + other.drawn,
            self.plies + other.plies,
            self.different + other.different,
            Counter(self.reasons) + Counter(other.reasons),
        )


Results = Mapping[Test, Played]


def evolve(folder: Path, plan: Plan, jobs: int, *, plain: bool = False, backend: str = "") -> int:
    """Start or continue every run; returns the exit code of the first that did not finish."""
    from hnefi.tools.evolve import command

    for name, kind in KINDS.items():
        arguments = ["td", "--variant", kind.variant, *kind.options, "--generations", str(plan.generations)]
        arguments += ["--generation-games", str(plan.generation_games)]
        arguments += ["--seed", str(plan.seeds[0]), "--seeds", str(len(plan.seeds)), "--jobs", str(jobs)]
        arguments += ["--out", str(folder / "runs" / name), *flags(plain, backend)]
        if code := command.main(arguments):
            return code
    return 0


def run_folder(folder: Path, kind: str, seed: int) -> Path:
    """The folder of the run of a kind and a seed within an experiment's folder."""
    return folder / "runs" / kind / f"seed-{seed}"


def play(folder: Path, plan: Plan, test: Test) -> Played:
    """Play one test."""
    import numpy as np

    from hnefi.engine import games
    from hnefi.engine.selfplay import match
    from hnefi.engine.sides import Reason

    from ..common.matches import seed

    variant: Any = games.find(test.row.variant)
    if test.row.variant == LARGE:
        variant = variant.with_switches(move_limit="500", move_limit_unit="each")
    made = np.zeros(test.games, match.GAME)
    made["defenders"] = 1
    made["seed"] = [seed(test.key(), number) for number in range(test.games)]
    players = [_player(folder, plan, test, name, variant) for name in (test.row.black, test.row.white)]
    match.play(variant, players, made)
    winner = made["outcome"] >> 8
    reasons = Counter(
        f"{'-bw-'[who]} {Reason.from_code(code)}"
        for who, code in zip(winner.tolist(), (made["outcome"] & 255).tolist(), strict=True)
    )
    white, black = int((winner == 2).sum()), int((winner == 1).sum())
    different = len(np.unique(made["moves_hash"]))
    return Played(
        white, black, test.games - white - black, int(made["plies"].sum()), different, dict(reasons)
    )


def _player(folder: Path, plan: Plan, test: Test, text: str, variant: Any) -> Any:
    """The player that a row names."""
    from hnefi.engine.evaluators import files, network
    from hnefi.engine.selfplay.match import Contestant

    blind = text.endswith("!")
    text, _, plies = text.rstrip("!").partition("@")
    depth = int(plies or 1)
    word, _, what = text.partition(":")
    if word in ("random", "random-coded"):
        return Contestant(word)  # type: ignore[arg-type]
    if word == "minimax":
        net = network.parse("linear-tablut:own" if what == "text" else "linear-tablut:coded,own")
        params = net.record(variant, net.join(variant, net.module.TUNED))
        return Contestant("minimax", depth, params, unseen=blind)
    archive = run_folder(folder, what, test.seed) / "archive"
    generation = 0 if word == "first" else plan.generations
    evaluator = files.load(archive / f"gen-{generation:04}.safetensors", variant, any_rules=True)
    arrays = dict(evaluator.arrays)
    if word == "turned":
        # The value is the attackers' chance; changing its sign maximises the defenders'.
        arrays = {name: -array if name.startswith("output") else array for name, array in arrays.items()}
    net = evaluator.network
    return Contestant("minimax", depth, net.record(variant, net.join(variant, arrays)), unseen=blind)


OPENING = 20
"""Plies of the first ten turns."""


class Branching(NamedTuple):
    """Moves per position in the first ten turns: legal ones in random games, and those that alpha-beta examines, as the
    width of a uniform tree with as many nodes as the hand-tuned player visits in three plies against itself."""

    legal: float
    searched: float


def branching(name: str, games_played: int) -> Branching:
    """The means over `games_played` games of a variant."""
    import numpy as np

    from hnefi.engine import games
    from hnefi.engine.evaluators import network
    from hnefi.engine.selfplay import match

    variant: Any = games.find(name)
    draw = np.random.default_rng(1)
    counts = []
    for _ in range(games_played):
        position = games.initial(variant)
        for _ in range(OPENING):
            moves = position.legal_moves()
            if not moves or position.outcome is not None:
                break
            counts.append(len(moves))
            position = position.play(moves[draw.integers(len(moves))])
    net = network.parse("linear-tablut:own")
    player = match.Contestant("minimax", 3, net.record(variant, net.join(variant, net.module.TUNED)))
    made = np.zeros(games_played, match.GAME)
    made["seed"] = np.arange(games_played)
    match.play(variant.with_switches(move_limit=str(OPENING), move_limit_unit="plies"), [player], made)
    return Branching(float(np.mean(counts)), width(made["evaluations"].sum() / made["plies"].sum()))


def width(nodes: float) -> float:
    """The width of a uniform tree of three plies with `nodes` nodes, without the root."""
    import numpy as np

    roots = np.roots([1, 1, 1, -nodes])
    return float(roots[roots.imag == 0].real.max())


def read_results(folder: Path, plan: Plan) -> dict[Test, Played]:
    """The tests so far; ExperimentError for a line that is not a test of the plan."""
    known = {test.key(): test for test in plan.tests()}
    found: dict[Test, Played] = {}

    def take(entry: Any) -> None:
        test, played = known[entry.pop("test")], Played(**entry)
        if played.games != test.games:
            raise ValueError(f"{played.games} games")
        found[test] = played

    read_lines(folder / "tests.jsonl", take, "a test of this plan")
    return found


def measure(folder: Path, plan: Plan, jobs: int, watch: Watch, backend: str = "") -> Results:
    """Play every test that is missing; returns all results. They are saved one by one, so that an interrupt loses
    nothing."""
    from ..common.workers import carried_out, in_threads

    results = read_results(folder, plan)
    tests = list(plan.tests())
    missing = [test for test in tests if test not in results]
    whole = sum(_cost(test) for test in tests)
    done = whole - sum(_cost(test) for test in missing)
    watch(done, whole)
    tasks: list[Callable[[], Played]] = [partial(play, folder, plan, test) for test in missing]
    # Threads share compiled code, and kernels release the GIL.
    threads = jobs <= 2 and not backend
    finished = in_threads(tasks, jobs) if threads else carried_out(tasks, jobs, backend)
    for number, played in finished:
        test = missing[number]
        line = {"test": test.key(), **asdict(played)}
        durable.append_line(folder / "tests.jsonl", json.dumps(line).encode())
        results[test] = played
        done += _cost(test)
        watch(done, whole)
    return results


def _cost(test: Test) -> int:
    """The rough cost in games of one ply."""
    return test.games * (300 if test.row.depth > 1 else 1)
