"""`hnefi evaluator match`: two evaluators play each other in kernels, at one depth or several."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.exit_codes import INTERRUPTED
from hnefi.protocol.hosts.text_table import aligned

from ..common import interrupts
from ..common.arguments import add_variant_path, find_tafl_variant, natural, parser, positive
from ..common.workers import cores

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from hnefi.engine.games.base_position import Position
    from hnefi.engine.games.tafl.variant import Variant

    from ..common.matches import Tally

BY_HAND = ("linear", "linear-threats")
"""Architectures with weights set by hand, from which evolution can start."""
WORDS = ("random", "simple", "zero", *BY_HAND)
"""Names accepted besides files: a blind random mover, two evaluators without weights, and those set by hand."""
CHUNK = 5
"""Matches per unit of work."""
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
    "different games",
)


@dataclass(frozen=True, slots=True)
class Row:
    """The results at one depth."""

    depth: int
    tally: Tally
    different: int
    """The number of distinct games; for the interval, two of them count as one match."""

    def cells(self) -> tuple[str, ...]:
        """The row as the table shows it."""
        from ..common.statistics import wilson

        found = self.tally
        matches = found.matches
        counted = max(1, self.different // 2)
        low, high = wilson(counted * matches.won / matches.all, counted) or (0.0, 1.0)
        return (
            str(self.depth),
            str(matches.all),
            *(f"{100 * part / matches.all:.1f} %" for part in matches),
            f"{100 * low:.1f}-{100 * high:.1f} %",
            f"{100 * found.by_captures / matches.all:.1f} %",
            *("/".join(map(str, games)) for games in (found.attacking, found.defending)),
            f"{found.plies / 2 / matches.all:.1f}",
            str(self.different),
        )


def main(argv: list[str]) -> int:
    """Play and print; 0 when done, 1 when interrupted."""
    options = parser(
        "evaluator match",
        "Plays matches of two games of tafl with sides swapped. Whoever wins more games wins the match; if both win "
        "the same number, whoever captures more men wins. Both players search to the same depth at full width and "
        f"choose at random among equal moves. A and B are evaluator files, or one of: {', '.join(WORDS)}. Networks "
        "of the kind nnue, which hnefi train writes, and those with a policy meet others in `hnefi arena`, which also "
        "plays the other games.",
        [
            "gen-0300.safetensors simple --variant brandubh",
            "gen-0300.safetensors gen-0200.safetensors --variant copenhagen --depths 1,2 --pairs 400",
        ],
    )
    options.add_argument("one", metavar="A", help="the evaluator whose results are counted")
    options.add_argument("other", metavar="B", help="its opponent")
    options.add_argument("--variant", metavar="V", help="a tafl variant (that of the first file)")
    options.add_argument("--depths", default="1,2,3", metavar="N,N", help="search depths in plies (1,2,3)")
    options.add_argument(
        "--pairs",
        type=positive,
        default=100,
        metavar="N",
        help="matches (pairs of games) at each depth (100)",
    )
    options.renamed("--matches", "--pairs")
    options.add_argument(
        "--plies", type=positive, metavar="N", help="end each game after N plies (the variant's own limit)"
    )
    options.add_argument(
        "--openings",
        type=_plies,
        default=(2, 8),
        metavar="K-L",
        help="start each pair with K to L random plies, no two pairs alike (2-8); 0: from the variant's start",
    )
    options.add_argument("--seed", type=natural, default=1, metavar="S", help="seed of all games (1)")
    options.add_argument("--note", action="store_true", help="write the results into the file A")
    options.add_argument("--jobs", type=positive, metavar="J", help="number of threads (one per core)")
    add_variant_path(options)
    given = options.parse_args(argv)
    depths = [int(word) if word.isascii() and word.isdigit() else 0 for word in given.depths[:40].split(",")]
    if not all(1 <= depth <= 8 for depth in depths):
        options.error(f"--depths {given.depths[:40]!r}: expected numbers from 1 to 8, as 1,2,3")
    if given.note and not given.one.endswith(".safetensors"):
        options.error(f"--note with {given.one[:80]!r}: expected a .safetensors file")
    word = given.variant or next((found for found in map(_home, (given.one, given.other)) if found), "")
    if not word:
        for name in (given.one, given.other):
            if name.endswith(".safetensors") and not Path(name).exists():
                options.error(f"{name[:200]}: No such file: expected an evaluator's file")
        options.error("expected --variant: neither A nor B is a file that names one")
    variant: Variant = find_tafl_variant(options, word, given.path)
    if given.plies:
        variant = variant.with_switches(move_limit=str(given.plies), move_limit_unit="plies")
    try:
        sides = [_side(name, variant) for name in (given.one, given.other)]
    except ValueError as error:
        options.error(str(error))
    print(f"{given.one} against {given.other}, {variant.name}, seed {given.seed}")
    starts = _starts(options, variant, given.pairs, given.seed, given.openings)
    rows: list[Row] = []
    with interrupts.caught(lambda: ["interrupted"]) as caught:
        for depth in depths:
            key = f"match {given.seed} {depth}"
            rows.append(_play(variant, sides, depth, starts, key, given.jobs or cores()))
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
    from hnefi.engine.evaluators import NETWORKS, is_file
    from hnefi.engine.evaluators.files import EvaluatorError, peek

    file = NETWORKS.get(name, name)
    try:
        return peek(file).variant if is_file(file) else ""
    except EvaluatorError:
        return ""


def _side(name: str, variant: Variant) -> Any:
    """The parameters of an evaluator, None for Random; ValueError if there is none of that name."""
    import numpy as np

    from hnefi.engine.evaluators import NETWORKS, files, network

    if name == "random":
        return None
    if name in BY_HAND:
        hand_set = network.parse(name)
        return hand_set.record(variant, hand_set.join(variant, hand_set.module.default(variant)))
    if name in WORDS:
        return network.parse(name).record(variant, np.zeros(0))
    if name not in NETWORKS and not name.endswith(".safetensors"):
        raise ValueError(f"{name[:80]!r}: expected a .safetensors file, or one of {', '.join(WORDS)}")
    evaluator = files.load(NETWORKS.get(name, name), variant, any_rules=True)
    if evaluator.network.has_policy or evaluator.network.record_kind != "loaded":
        raise ValueError(
            f"{name[:80]!r}: {evaluator.network.text}: expected a network that is no nnue and has no policy; this one "
            "meets others in `hnefi arena`, as in --engine player=default,option.Evaluator=FILE"
        )
    return files.record(evaluator, variant)


def _plies(text: str) -> tuple[int, int]:
    """The argument of `--openings`."""
    found = re.fullmatch(r"([0-9]{1,2})(?:-([0-9]{1,2}))?", text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not low <= high or (high and not low):
        raise ArgumentTypeError(f"{shorten(text)}: expected plies, as 2-8, or 0 for the variant's start")
    return low, high


def _starts(
    options: ArgumentParser, variant: Variant, pairs: int, seed: int, plies: tuple[int, int]
) -> list[Position | None]:
    """The position that each pair begins with; None is the variant's start. An error where there are not enough."""
    from hnefi.engine.openings import generate

    if plies == (0, 0):
        return [None] * pairs
    found: list[Position | None] = list(generate(variant, pairs, seed, plies=plies))
    if len(found) < pairs:
        options.error(
            f"--pairs {pairs}: {variant.name} has {len(found)} different openings of {plies[0]} to {plies[1]} plies: "
            "expected fewer pairs, or longer --openings"
        )
    return found


def _play(
    variant: Variant, sides: Sequence[Any], depth: int, starts: Sequence[Position | None], key: str, jobs: int
) -> Row:
    import numpy as np

    from hnefi.engine.selfplay.match import Contestant

    from ..common.live import Live, Pace
    from ..common.matches import count, play_games
    from ..common.workers import in_threads

    ours, theirs = (
        Contestant("random") if params is None else Contestant("minimax", depth, params) for params in sides
    )
    pieces = [
        partial(play_games, variant, ours, theirs, starts[first : first + CHUNK], key, first)
        for first in range(0, len(starts), CHUNK)
    ]
    live, pace = Live(sys.stderr), Pace(len(pieces))
    done: dict[int, Any] = {}
    for number, played in in_threads(pieces, jobs):
        done[number] = played
        pace.add()
        live.step(lambda: f"{depth} plies: {100 * pace.done // pace.total} %{pace.eta()}")
    live.close()
    games = np.concatenate([done[number] for number in sorted(done)])
    begun = np.repeat(np.arange(len(starts)) if any(starts) else np.zeros(len(starts), int), 2)
    different = len(set(zip(begun.tolist(), games["moves_hash"].tolist(), strict=True)))
    return Row(depth, count(games), different)
