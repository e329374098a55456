"""`hnefi bench oneply`: games of players who look one ply ahead with the network of 2007, by CPU time.

In one process the same games are played alternately with sums that are updated from move to move and with a full pass
of the network for every position; a plain forward pass in C scores positions of such games. `--verify` compares, move
by move, what the fast player and the plain one choose. `--plies` compares players that look further ahead.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hnefi.engine.wording import counted

from ..common.arguments import (
    find_tafl_variant,
    let_interrupt_end_us,
    natural,
    parser,
)
from .speed import COMPILERS, FLAGS, BenchError, add_flags, find_compiler, run_reference

REFERENCE = Path(__file__).with_suffix(".c")
NETWORK = "hingston2007"
SPREADS = (None, 0.02, 0.3, 1.0)
"""Standard deviations of random weights; None means that of an evolution's first parents, 1 / number of weights."""
ALIKE = 0.36
"""The mean of weights that grew together, as with one step size for all of them: values differ by 1e-9 or less."""
PARENTS = (5, 50, 500)
MATCHES = 10
"""Matches of every network against the random mover in a generation."""
GENERATIONS = 300
MOST_PLIES = 4
"""As deep as `few_plies` looks."""
MOST_GAMES = 1500
"""The games drawn from a generation that has more."""
SEED = 1


def contestants(variant: Any, count: int, spread: float | None, seed: int = SEED) -> list[Any]:
    """Players with random networks."""
    import numpy as np

    from hnefi.engine.evaluators import network
    from hnefi.engine.selfplay.match import Contestant

    net, numbers = network.parse(NETWORK), np.random.default_rng(seed)
    weights = net.count(variant)
    return [
        Contestant(
            "minimax", params=net.record(variant, numbers.normal(0, 1, weights) * (spread or 1 / weights))
        )
        for _ in range(count)
    ]


def generation(networks: int, most: int = MOST_GAMES) -> Any:
    """The games of a generation: a match between every two networks, and `MATCHES` of each against the last
    contestant."""
    import numpy as np

    from hnefi.engine.selfplay.match import GAME

    pairs = [(i, j) for i in range(networks) for j in range(networks) if i != j]
    for i in range(networks):
        pairs += [(i, networks), (networks, i)] * MATCHES
    chosen = np.random.default_rng(SEED).permutation(len(pairs))[:most]
    games = np.zeros(len(chosen), GAME)
    games["attackers"], games["defenders"] = np.array(pairs)[chosen].T
    games["seed"] = np.arange(len(chosen))
    return games


def seconds(variant: Any, players: Sequence[Any], games: Any, *, quick: bool = True) -> float:
    """CPU seconds of playing these games."""
    from hnefi.engine.selfplay import match as contest

    begun = time.process_time()
    contest.play(variant, players, games, quick=quick)
    return time.process_time() - begun


class Forward:
    """Positions of random games and one network's weights, as files for the reference in C."""

    def __init__(self, variant: Any, compiler: Sequence[str], folder: Path) -> None:
        import numpy as np

        from hnefi.engine import games
        from hnefi.engine.evaluators.networks import hingston2007
        from hnefi.engine.games import interface as verbs

        self._folder, self._variant = folder, variant
        params = contestants(variant, 1, 0.05)[0].params[0]
        numbers = np.random.default_rng(SEED)
        boards, self.total, self._count = b"", 0.0, 0
        position = games.initial(variant)
        for _ in range(200):
            if position.outcome is not None:
                position = games.initial(variant)
            raw = np.array([*position.taken, position.side == 0], np.float64)
            boards += hingston2007.picture(variant, position).astype(np.int8).tobytes() + raw.tobytes()
            self.total += float(verbs.value(params, position.new_record()[0]))
            self._count += 1
            moves = position.legal_moves()
            position = position.play(moves[numbers.integers(len(moves))])
        (folder / "boards").write_bytes(boards)
        (folder / "weights").write_bytes(params["weights"].tobytes())
        command = [*compiler, *FLAGS, "-o", str(folder / "forward"), str(REFERENCE), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"{shlex.join(command)}\n{done.stderr.rstrip()}")

    def nanoseconds(self, rounds: int = 500) -> float:
        """CPU time of a position; BenchError unless C finds the same values."""
        folder = self._folder
        command = (
            str(self._variant.files),
            "10",
            str(rounds),
            *(str(folder / name) for name in ("weights", "boards")),
        )
        taken, found = run_reference(folder / "forward", command)
        total = float(found[0].removeprefix("sum "))
        if abs(total - self.total) > 1e-6 * (1 + abs(self.total)):
            raise BenchError(f"not the same work: numba found {self.total!r}, C {total!r}")
        return taken / rounds / self._count * 1e9


def measure(
    variant: Any, compiler: Sequence[str] | None, rounds: int, most: int = MOST_GAMES
) -> dict[str, Any]:
    """The best figures of several rounds; BenchError unless all ways of scoring agree."""
    from hnefi.engine.selfplay.match import Contestant

    players = [*contestants(variant, 2 * PARENTS[0], SPREADS[1]), Contestant("random")]
    games = generation(2 * PARENTS[0], most)
    slow_games = games[:: max(1, len(games) // 20)].copy()
    seconds(variant, players, games[:1])
    fast, slow, plain_c = [], [], []
    with TemporaryDirectory(prefix="hnefi-bench-") as name:
        forward = None if compiler is None else Forward(variant, compiler, Path(name))
        for _ in range(rounds):
            fast.append(seconds(variant, players, games))
            slow.append(seconds(variant, players, slow_games, quick=False))
            if forward is not None:
                plain_c.append(forward.nanoseconds())
    if (games[:: max(1, len(games) // 20)] != slow_games).any():
        raise BenchError("the fast games are not the plain ones")
    scored = int(games["evaluations"].sum())
    ns = min(fast) / scored * 1e9
    plain = min(slow) / int(slow_games["evaluations"].sum()) * 1e9
    c = min(plain_c, default=None)
    figures: dict[str, Any] = {
        "variant": variant.name,
        "games": len(games),
        "plies_per_game": round(float(games["plies"].mean()), 1),
        "successors_per_game": round(scored / len(games)),
        "ns_per_successor": round(ns, 1),
        "evaluations_per_second": round(1e9 / ns),
        "games_per_second": round(len(games) / min(fast)),
        "plain_ns": round(plain, 1),
        "plain_ratio": round(plain / ns, 1),
        "c_forward_ns": None if c is None else round(c, 1),
        "c_forward_ratio": None if c is None else round(c / ns, 1),
        "first_parents_ns": 0.0,
        "run_seconds": round(min(fast) * GENERATIONS * 290 / len(games), 1),
        "populations": {},
    }
    first = [*contestants(variant, 2 * PARENTS[0], None), Contestant("random")]
    best = min(seconds(variant, first, games) for _ in range(rounds))
    figures["first_parents_ns"] = round(best / int(games["evaluations"].sum()) * 1e9, 1)
    for parents in PARENTS:
        players = [*contestants(variant, 2 * parents, SPREADS[1]), Contestant("random")]
        games = generation(2 * parents, most)
        best = min(seconds(variant, players, games) for _ in range(rounds))
        figures["populations"][f"{parents}+{parents}"] = round(len(games) / best)
    return figures


def deeper(variant: Any, plies: int, rounds: int) -> dict[str, dict[str, float]]:
    """CPU seconds of players so many plies deep for a match a round against the random mover, two games, by what they
    know: "fast", and by the "plain" search. BenchError unless the games are the same.
    """
    import numpy as np

    from hnefi.engine.evaluators import network
    from hnefi.engine.selfplay.match import GAME, Contestant

    net = network.parse(NETWORK)
    alike = ALIKE + SPREADS[1] * np.random.default_rng(SEED).normal(0, 1, net.count(variant))
    minds = {
        "network": contestants(variant, 1, SPREADS[1])[0].params,
        "weights alike": net.record(variant, alike),
        "captures and king": network.parse("simple").record(variant, ()),
        "wins and losses": None,
    }
    figures = {}
    for name, params in minds.items():
        players = [Contestant("minimax", plies, params), Contestant("random")]
        times: dict[str, list[float]] = {"fast": [], "plain": []}
        for number in range(rounds):
            made = {}
            for way, taken in times.items():
                made[way] = np.zeros(2, GAME)
                made[way]["attackers"], made[way]["defenders"] = (0, 1), (1, 0)
                made[way]["seed"] = 2 * number, 2 * number + 1
                seconds(variant, players, made[way][:0])
                taken.append(seconds(variant, players, made[way], quick=way == "fast"))
            if (made["fast"]["moves_hash"] != made["plain"]["moves_hash"]).any():
                raise BenchError(f"{name}: the fast games are not the plain ones")
        figures[name] = {way: round(sum(taken), 4) for way, taken in times.items()}
    return figures


def disagreements(variant: Any, player: Any, positions: int, seed: int) -> int:
    """The number of positions in which the fast player's move, or its draw among equal moves, differs from the plain
    player's."""
    import numpy as np

    from hnefi.engine import games
    from hnefi.engine.games import interface as verbs
    from hnefi.engine.games.tafl.state import CORE
    from hnefi.engine.search import minimax
    from hnefi.engine.selfplay import hingston2007_incremental as incremental
    from hnefi.engine.selfplay import one_ply

    params, numbers = player.params[0], np.random.default_rng(seed)
    net, work, plain = (
        incremental.prepared(player.params)[0],
        minimax.new_thread()[0],
        minimax.new_thread()[0],
    )
    done = wrong = 0
    while done < positions:
        record = games.initial(variant).new_record()
        state, core = record[0], record.view(np.uint8).reshape(-1)[CORE]
        state["random"] = seed * 1000 + done + 1
        incremental.refresh(net, state)
        for _ in range(120):
            stream = int(state["random"])
            expected = minimax.choose(state, plain, params, 1)
            expected_stream, state["random"] = int(state["random"]), stream
            before = core.tobytes()
            move = one_ply.choose(state, work, params, net)
            wrong += move != expected or int(state["random"]) != expected_stream or core.tobytes() != before
            done += 1
            if numbers.random() < 0.7:
                move = verbs.random_move(state)
            if move == 0 or done >= positions:
                break
            verbs.make(state, move)
            incremental.update(net, state)
            if state["outcome"] or verbs.adjudicate(state, -1):
                break
    return wrong


def verify(positions: int, say: Callable[[str], None]) -> int:
    """Disagreements in `positions` positions of all tafl variants with all spreads of weights."""
    from hnefi.engine import games

    variants = [variant for variant in games.everything() if variant.game == "tafl"]
    each = -(-positions // (len(variants) * len(SPREADS)))
    wrong = 0
    for number, variant in enumerate(variants):
        here = sum(
            disagreements(variant, contestants(variant, 1, spread, number)[0], each, number + 1)
            for spread in SPREADS
        )
        wrong += here
        if here:
            say(f"{variant.name}: {here} of {each * len(SPREADS)}")
    say(
        f"{each * len(SPREADS) * len(variants):,} positions of {len(variants)} variants, {wrong} disagreements"
    )
    return wrong


def compile_kernels() -> None:
    """Compile missing kernels in another process: a process that has just compiled runs its kernels a tenth slower."""
    code = (
        "import numpy\nfrom hnefi.engine import games\n"
        "from hnefi.engine.selfplay import match\nfrom hnefi.engine.selfplay.match import GAME, Contestant\n"
        "match.play(games.find('brandubh'), [Contestant('random')], numpy.zeros(1, GAME))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"the kernels do not compile:\n{done.stderr.rstrip()}")


def lines_of(figures: dict[str, Any]) -> list[str]:
    """The figures as text."""
    speeds = ", ".join(f"{name} {speed:,}" for name, speed in figures["populations"].items())
    rows = [
        ("games of a generation", f"{figures['games']}, {figures['plies_per_game']} plies each"),
        ("scored successors", f"{figures['successors_per_game']:,} a game"),
        (
            "whole games",
            f"{figures['ns_per_successor']} ns a successor, {figures['games_per_second']:,} games/s",
        ),
        ("", f"{figures['evaluations_per_second']:,} evaluations/s"),
        ("first parents", f"{figures['first_parents_ns']} ns: weights so small that all moves are close"),
        ("plain network", f"{figures['plain_ns']} ns, {figures['plain_ratio']} x"),
        ("plain forward in C", f"{figures['c_forward_ns']} ns, {figures['c_forward_ratio']} x"),
        ("games/s by population", speeds),
        (f"{GENERATIONS} generations", f"{figures['run_seconds']} s CPU for all games of 5+5"),
    ]
    return [
        f"{name:22} {text}".rstrip()
        for name, text in rows
        if name != "plain forward in C" or figures["c_forward_ns"] is not None
    ]


def lines_of_deeper(figures: dict[str, dict[str, float]]) -> list[str]:
    """The figures of `deeper` as text."""
    return [
        f"{name:22} {times['fast']:.2f} s CPU, plain search {times['plain']:.2f} s, "
        f"{times['plain'] / max(times['fast'], 1e-4):.1f} x"
        for name, times in figures.items()
    ]


def main(argv: list[str]) -> int:
    """Measure and print; the exit status is 1 if the ways of scoring disagree."""
    options = parser(
        "bench oneply",
        "Measures the CPU time of games between players who look one ply ahead with the evolved network of 2007, "
        "against the same games scored by the plain network and by a plain forward pass in C. Target: 35 ns a "
        "successor on 11x11.",
        ["", "--rounds 3 --variant brandubh", "--verify 100000", "--plies 3 --rounds 2"],
    )
    options.add_argument(
        "--variant", metavar="NAME", default="hingston-original", help="default: hingston-original"
    )
    add_flags(options)
    options.add_argument(
        "--verify", metavar="N", type=natural, default=0, help="compare the moves in N positions instead"
    )
    options.add_argument(
        "--plies",
        metavar="N",
        type=natural,
        help="compare players who look 1 to 4 plies ahead with the plain search instead",
    )
    arguments = options.parse_args(argv)
    if arguments.plies is not None and not 1 <= arguments.plies <= MOST_PLIES:
        options.error(f"--plies {arguments.plies}: expected 1 to {MOST_PLIES}")
    variant = find_tafl_variant(options, arguments.variant, arguments.path)
    let_interrupt_end_us()
    if arguments.verify:
        return int(verify(arguments.verify, print) > 0)
    try:
        compile_kernels()
        if arguments.plies:
            further = deeper(variant, arguments.plies, arguments.rounds)
            if arguments.json:
                print(json.dumps(further, indent=2))
            else:
                deep = counted(arguments.plies, "ply", "plies")
                print(f"{deep} deep, {2 * arguments.rounds} games each against the random mover")
                print("\n".join(lines_of_deeper(further)))
            return 0
        compiler = find_compiler(arguments.cc)
        figures = measure(variant, compiler, arguments.rounds)
    except BenchError as error:
        print(f"hnefi bench oneply: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return 0
    print("\n".join(lines_of(figures)))
    if compiler is None:
        print(f"no C compiler found ({', '.join(COMPILERS)}; --cc names one): nothing to compare with in C")
    else:
        print(f"CPU time, best of {arguments.rounds}; C: {shlex.join([*compiler, *FLAGS])}")
    return 0
