"""`hnefi bench evaluators`: the cost of an evaluation with each evaluator, and the speed of a search with it."""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.text_table import aligned

from ..common.arguments import add_variant_path, find_tafl_variant, let_interrupt_end_us, parser, positive

if TYPE_CHECKING:
    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

BASE = "zero"
"""An evaluator that costs nothing, so that only the walk is measured."""
SEED = 1
PLIES = (6, 30)
"""Random plies in front of a position."""
DEPTH = 2
NODES = 200_000
HASH_MIB = 64
HEAD = ("evaluator", "ns an evaluation", "± spread", "nodes/s", "± spread")


def walk(params: Any, state: Any) -> tuple[float, int]:
    """CPU seconds and evaluations of one walk through the tree below a position."""
    from hnefi.engine import count

    begun = time.process_time()
    positions = int(count.evaluate_tree(state, params, DEPTH, 0))
    return time.process_time() - begun, positions


def speed(position: Position, evaluator: str) -> float:
    """Nodes per CPU second of a search with an empty table."""
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Info, Limits, Settings

    searcher = Searcher(Settings(evaluator=evaluator, hash_mib=HASH_MIB))
    last: list[Info] = []
    searcher.begin()
    searcher.search(position, Limits(nodes=1), last.append)
    searcher.clear()
    searcher.begin()
    begun = time.process_time()
    searcher.search(position, Limits(nodes=NODES), last.append)
    return last[-1].nodes / (time.process_time() - begun)


def measure(variant: Variant, names: list[str], positions: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each evaluator, with medians over the rounds. In every round all evaluators visit the same trees in
    turn, so that other load on the machine affects them equally."""
    from hnefi.engine import evaluators
    from hnefi.engine.openings import generate

    starts = list(generate(variant, positions, SEED, plies=PLIES))
    states = [start.new_record()[0] for start in starts]
    params = {name: evaluators.parameters(name, variant)[0] for name in (BASE, *names)}
    for each in params.values():
        walk(each, states[0])
    cost: dict[str, list[float]] = {name: [] for name in names}
    nodes: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        seconds = dict.fromkeys(params, 0.0)
        counted = 0
        for state in states:
            for name, each in params.items():
                taken, found = walk(each, state)
                seconds[name] += taken
            counted += found
        for name in names:
            cost[name].append((seconds[name] - seconds[BASE]) / counted * 1e9)
            nodes[name].append(speed(starts[number % len(starts)], name))
    return [
        {
            "variant": variant.name,
            "evaluator": name,
            "nanoseconds": round(statistics.median(cost[name]), 1),
            "nanoseconds_spread": round(_spread(cost[name]), 1),
            "nodes_per_second": round(statistics.median(nodes[name])),
            "nodes_per_second_spread": round(_spread(nodes[name])),
        }
        for name in names
    ]


def _spread(values: list[float]) -> float:
    """Half the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / 2


def main(argv: list[str]) -> int:
    """Measure and print; 0."""
    from hnefi.engine import evaluators

    options = parser(
        "bench evaluators",
        "Measures evaluators by CPU time in one run: what an evaluation costs during a walk through a tree, as in a "
        "search, including its updates for each move (the cost of the walk itself is subtracted), and the nodes per "
        "second of the search. The spread is half the distance between the quartiles of the rounds.",
        ["brandubh", "copenhagen --evaluators default,net.safetensors --rounds 9"],
    )
    options.add_argument("variant", metavar="VARIANT", help="a tafl variant")
    options.takes_variant()
    options.add_argument(
        "--evaluators",
        metavar="E,E",
        default="default",
        help="names as the option Evaluator takes them, or .safetensors files (default)",
    )
    options.add_argument(
        "--positions",
        type=positive,
        default=8,
        metavar="N",
        help="positions of random games, each with its tree (8)",
    )
    options.add_argument("--rounds", type=positive, default=7, metavar="N", help="(7)")
    options.add_argument("--json", action="store_true", help="the figures as one JSON document")
    add_variant_path(options)
    given = options.parse_args(argv)
    variant = find_tafl_variant(options, given.variant, given.path)
    names = given.evaluators.split(",")
    for name in names:
        if reason := evaluators.misfit(name, variant):
            options.error(f"--evaluators: {reason}")
    let_interrupt_end_us()
    rows = measure(variant, names, given.positions, given.rounds)
    if given.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"{variant.name}, {given.rounds} rounds of {given.positions} positions, depth {DEPTH}")
    lines = [
        (
            str(row["evaluator"]),
            f"{row['nanoseconds']:.0f}",
            f"{row['nanoseconds_spread']:.0f}",
            f"{row['nodes_per_second']:,}",
            f"{row['nodes_per_second_spread']:,}",
        )
        for row in rows
    ]
    print("\n".join(aligned([HEAD, *lines], left=(0,))))
    return 0
