"""`hnefi evaluator match`: two evaluators play each other in kernels, at one depth or several."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.exit_codes import INTERRUPTED
from hnefi.protocol.hosts.text_table import aligned

from ..common import interrupts
from ..common.arguments import add_variant_path, find_tafl_variant, natural, parser, positive

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

    from ..common.matches import Tally

WORDS = ("random", "simple", "zero", "default")
"""Players that can be named besides files: a blind random mover, two without weights, and the hand-written terms."""
CHUNK = 5
"""Matches that are played in one piece."""
HEAD = (
    "plies",
    "matches",
    "won",
    "drawn",
    "lost",
    "won, 95 %",
    "by captures",
    "as attackers",
    "as defenders",
    "length",
)


@dataclass(frozen=True, slots=True)
class Row:
    """What came of the matches at one depth."""

    depth: int
    tally: Tally

    def cells(self) -> tuple[str, ...]:
        from ..common.statistics import wilson

        found = self.tally
        matches = found.matches
        low, high = wilson(matches.won, matches.all) or (0.0, 1.0)
        return (
            str(self.depth),
            str(matches.all),
            *(f"{100 * part / matches.all:.1f} %" for part in matches),
            f"{100 * low:.1f}-{100 * high:.1f} %",
            f"{100 * found.by_captures / matches.all:.1f} %",
            *("/".join(map(str, games)) for games in (found.attacking, found.defending)),
            f"{found.plies / 2 / matches.all:.1f}",
        )


def main(argv: list[str]) -> int:
    """Play and print; 0 when done, 1 when interrupted."""
    options = parser(
        "evaluator match",
        "Matches of two games with sides swapped; more games won decide, else more men captured in both. Both look "
        "equally far ahead, full width, equal moves at random. A and B are evaluator files, or one of: "
        f"{', '.join(WORDS)}.",
        [
            "best.safetensors simple --variant brandubh",
            "best.safetensors old.safetensors --variant copenhagen --depths 1,2 --pairs 400",
        ],
    )
    options.add_argument("one", metavar="A", help="whose results are counted")
    options.add_argument("other", metavar="B", help="against whom")
    options.add_argument("--variant", metavar="V", help="what is played (that of the first file)")
    options.add_argument(
        "--depths", default="1,2,3", metavar="N,N", help="plies that both look ahead (1,2,3)"
    )
    options.add_argument(
        "--pairs",
        type=positive,
        default=100,
        metavar="N",
        help="pairs of games, the matches, at each depth (100)",
    )
    options.renamed("--matches", "--pairs")
    options.add_argument(
        "--plies", type=positive, metavar="N", help="a game's plies (the variant's own limit)"
    )
    options.add_argument("--seed", type=natural, default=1, metavar="S", help="of all games (1)")
    options.add_argument(
        "--note", action="store_true", help="write the results into the document of A, a file"
    )
    options.add_argument("--jobs", type=positive, metavar="J", help="threads (as many as cores)")
    add_variant_path(options)
    given = options.parse_args(argv)
    depths = [int(word) if word.isascii() and word.isdigit() else 0 for word in given.depths[:40].split(",")]
    if not all(1 <= depth <= 8 for depth in depths):
        options.error(f"--depths {given.depths[:40]!r}: expected numbers from 1 to 8, as 1,2,3")
    if given.note and not given.one.endswith(".safetensors"):
        options.error(f"--note with {given.one[:80]!r}: expected a .safetensors file")
    word = given.variant or next((found for found in map(_home, (given.one, given.other)) if found), "")
    if not word:
        options.error("expected --variant: neither A nor B is a file that names one")
    variant: Variant = find_tafl_variant(options, word, given.path)
    if given.plies:
        variant = variant.with_switches(move_limit=str(given.plies), move_limit_unit="plies")
    try:
        sides = [_side(name, variant) for name in (given.one, given.other)]
    except ValueError as error:
        options.error(str(error))
    print(f"{given.one} against {given.other}, {variant.name}, seed {given.seed}")
    rows: list[Row] = []
    with interrupts.caught(lambda: ["interrupted"]) as caught:
        for depth in depths:
            key = f"match {given.seed} {depth}"
            tally = _play(variant, sides, depth, given.pairs, key, given.jobs or len(os.sched_getaffinity(0)))
            rows.append(Row(depth, tally))
    print(
        "\n".join(aligned([HEAD, *(row.cells() for row in rows)], left=()))
        if rows
        else "no depth was finished"
    )
    if caught.ended:
        return INTERRUPTED
    if given.note:
        _note(given.one, Path(given.other).stem, variant.name, given.seed, rows)
    return 0


def _note(file: str, other: str, variant: str, seed: int, rows: Sequence[Row]) -> None:
    """Write results into a file's document: won, drawn and lost matches, and how many captures alone decided."""
    from hnefi.engine.evaluators import files

    evaluator = files.load(file, any_rules=True)
    results = dict(evaluator.document.get("results") or {})
    for row in rows:
        results[f"{variant} against {other}, {row.depth} ply"] = {
            "won": row.tally.matches.won, "drawn": row.tally.matches.drawn, "lost": row.tally.matches.lost,
            "by_captures": row.tally.by_captures, "seed": seed,
        }  # fmt: skip
    files.save(file, replace(evaluator, document={**evaluator.document, "results": results}))


def _home(name: str) -> str:
    """The variant that a file was made for; empty if it is none."""
    from hnefi.engine.evaluators.files import EvaluatorError, peek

    try:
        return peek(name).variant if name.endswith(".safetensors") else ""
    except EvaluatorError:
        return ""


def _side(name: str, variant: Variant) -> Any:
    """The parameters of an evaluator, None for Random; ValueError if there is none of that name."""
    import numpy as np

    from hnefi.engine.evaluators import files, network
    from hnefi.engine.evaluators.networks import linear

    if name == "random":
        return None
    if name == "default":
        hand_written = network.parse("linear")
        return hand_written.record(variant, hand_written.join(variant, linear.default(variant)))
    if name in WORDS:
        return network.parse(name).record(variant, np.zeros(0))
    if not name.endswith(".safetensors"):
        raise ValueError(f"{name[:80]!r}: expected a .safetensors file, or one of {', '.join(WORDS)}")
    return files.record(files.load(name, variant, any_rules=True), variant)


def _play(variant: Variant, sides: Sequence[Any], depth: int, matches: int, key: str, jobs: int) -> Tally:
    from hnefi.engine.selfplay.match import Contestant

    from ..common.live import duration
    from ..common.matches import play, total
    from ..common.workers import in_threads

    ours, theirs = (
        Contestant("random") if params is None else Contestant("minimax", depth, params) for params in sides
    )
    starts = range(0, matches, CHUNK)
    pieces = [
        partial(play, variant, ours, theirs, min(CHUNK, matches - first), key, first) for first in starts
    ]
    began = time.monotonic()
    done: dict[int, Tally] = {}
    for number, tally in in_threads(pieces, jobs):
        done[number] = tally
        if sys.stderr.isatty():
            left = (time.monotonic() - began) * (len(pieces) / len(done) - 1)
            print(
                f"\r{depth} plies: {100 * len(done) // len(pieces)} %, ETA {duration(left)} ",
                end="",
                file=sys.stderr,
            )
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return total([done[number] for number in sorted(done)])
