"""`hnefi evaluator`: files of evaluators, looked at, checked, compared, played, asked, copied."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts.exit_codes import USAGE
from hnefi.protocol.hosts.text_table import aligned

from ..common.arguments import add_variant_path, find_variant, parser, positive, subcommand

if TYPE_CHECKING:
    from hnefi.engine.evaluators.files import Evaluator
    from hnefi.engine.games.base_variant import AnyVariant

FILE = "a .safetensors file, or a network that ships with the engine"
SHADES = " .:-=+*#%@"
TOLERANCE = 1e-9
SINGLE_TOLERANCE = 1e-4
"""The same for networks with a policy, whose kernels compute in float32."""
"""So far a kernel may be from the slow form, in units of the largest weight, of the value, or of 1."""


def main(argv: list[str]) -> int:
    """Run one of the subcommands."""
    commands = {"show": show, "verify": verify, "diff": diff, "match": match, "loss": loss, "adopt": adopt}
    options = parser(
        "evaluator",
        "Evaluators are files: arrays of weights in the .safetensors format, with a document that says what they are. "
        "show prints what is in them, verify checks them and compares the kernel with the slow form of the same "
        "network, diff compares two, match lets two play each other, loss measures how well they predict the results "
        "of recorded games, adopt writes a copy for other rules.",
        [
            "show best.safetensors",
            "show best.safetensors --picture",
            "verify *.safetensors --positions 2000",
            "diff gen-0000.safetensors gen-0300.safetensors",
            "match gen-0300.safetensors simple --depths 1,2,3 --pairs 200",
            "loss games.csv default best.safetensors --variant brandubh",
            "adopt net-copenhagen-2 --variant fetlar --out for-fetlar.safetensors",
        ],
    )
    return subcommand(options, commands, argv)


def match(argv: list[str]) -> int:
    """Play games between evaluators."""
    from .match import main as play

    return play(argv)


def loss(argv: list[str]) -> int:
    """Measure how well evaluators foretell results."""
    from .loss import main as measure

    return measure(argv)


def adopt(argv: list[str]) -> int:
    """Copy an evaluator for other rules."""
    from .adopt import main as copy

    return copy(argv)


# show


def show(argv: list[str]) -> int:
    """Print what is in evaluator files."""
    options = parser(
        "evaluator show",
        "Prints what is in evaluator files: architecture, rules, origin, and statistics of every array.",
        [
            "best.safetensors",
            "best.safetensors --picture",
            "gen-*.safetensors --json",
            "net-copenhagen-2",
        ],
    )
    options.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help=FILE,
    )
    form = options.add_mutually_exclusive_group()
    form.add_argument(
        "--picture", action="store_true", help="show the mean size of the weights as shades, cell by cell"
    )
    form.add_argument("--json", action="store_true", help="one JSON object per file, each on a line")
    add_variant_path(options)
    arguments = options.parse_args(argv)
    status = 0
    for word in arguments.files:
        found = _read(word)
        if found is None:
            status = USAGE
            continue
        file, evaluator = found
        if arguments.json:
            print(json.dumps({"file": file, **_whole(evaluator)}))
        else:
            print("\n".join([file, *_described(file, evaluator, arguments.path)]))
            if arguments.picture:
                print("\n".join(_pictures(evaluator)))
    return status


def _read(word: str) -> tuple[str, Evaluator] | None:
    """The file that is meant, and what is in it; None after a complaint."""
    from hnefi.engine.evaluators import file_of
    from hnefi.engine.evaluators.files import peek

    try:
        return (file := file_of(word)), peek(file)
    except ValueError as error:
        print(f"hnefi evaluator: {error}", file=sys.stderr)
        return None


def _whole(evaluator: Evaluator) -> dict[str, Any]:
    """Everything but the weights."""
    return {
        "architecture": evaluator.network.text,
        "source": evaluator.network.module.SOURCE,
        "encoding": evaluator.network.encoding,
        "game": evaluator.game,
        "variant": evaluator.variant,
        "rules_hash": evaluator.rules_hash,
        "sha256": evaluator.sha256,
        **evaluator.document,
        "output": evaluator.output,
        "arrays": {
            name: {"dtype": str(array.dtype), "shape": list(array.shape)}
            for name, array in evaluator.arrays.items()
        },
    }


def _described(file: str, evaluator: Evaluator, path: str | None) -> Iterator[str]:
    output = evaluator.output
    count = sum(array.size for array in evaluator.arrays.values())
    facts = {
        "architecture": evaluator.network.text,
        "source": evaluator.network.module.SOURCE,
        "inputs": evaluator.network.encoding,
        "output": f"{output['meaning']} for the attackers, {output['scale']:g} centipawns per unit",
        "rules": f"{evaluator.variant} ({evaluator.game}), {_known(evaluator, path)}",
        "weights": f"{count}, SHA-256 {evaluator.sha256}",
        "players": ", ".join(_players(file)) or "no shipped player uses this file",
        **{
            key: value if isinstance(value, str) and value.isprintable() else json.dumps(value)
            for key, value in evaluator.document.items()
            if key != "output"
        },
    }
    yield from (f"  {line}" for line in aligned([*facts.items()]))
    if evaluator.arrays:
        yield f"  {'array':<18}{'shape':<16}{'mean':>11}{'deviation':>11}{'least':>11}{'most':>11}"
    for name, array in evaluator.arrays.items():
        shape = " x ".join(map(str, array.shape))
        numbers = (array.mean(), array.std(), array.min(), array.max()) if array.size else ()
        yield f"  {name:<18}{shape:<16}" + "".join(f"{float(number):>11.4g}" for number in numbers)


def _known(evaluator: Evaluator, path: str | None) -> str:
    """Whether the rules that an evaluator is for are those that their name has here."""
    from hnefi.engine.games import find
    from hnefi.engine.games.base_variant import VariantError

    try:
        same = find(evaluator.variant, path).hash == evaluator.rules_hash
    except VariantError:
        return f"unknown here, hash {evaluator.rules_hash}"
    return "as they are here" if same else f"but by other rules than here: hash {evaluator.rules_hash}"


def _players(file: str) -> list[str]:
    """The shipped players whose evaluator is this file."""
    from hnefi import players
    from hnefi.engine.evaluators import NETWORKS

    target = Path(file)
    found = []
    for name in players.names():
        word = players.load(name).evaluator
        evaluator = Path(NETWORKS.get(word, word))
        if evaluator.suffix == ".safetensors" and evaluator.is_file() and evaluator.samefile(target):
            found.append(name)
    return found


def _pictures(evaluator: Evaluator) -> Iterator[str]:
    """The mean size of the weights of each array of at least two dimensions, by what they look at."""
    import numpy as np

    for name, array in evaluator.arrays.items():
        if array.ndim < 2 or not array.size:
            continue
        sizes = np.abs(array).mean(axis=0)
        if sizes.ndim == 1:
            sizes = _rows(evaluator, sizes)
        most = float(sizes.max()) or 1.0
        yield f"{name}: {SHADES[1]} to {SHADES[-1]} are sizes up to {most:.4g}, the mean over {array.shape[0]}"
        for row in sizes.reshape(-1, sizes.shape[-1]):
            yield "  " + " ".join(SHADES[min(9, int(10 * float(size) / most))] for size in row)


def _rows(evaluator: Evaluator, sizes: Any) -> Any:
    """Weights of one unit in rows: those of the cells of a board as the board, others in a row."""
    from hnefi.engine.games import find
    from hnefi.engine.games.base_variant import VariantError

    try:
        variant = find(evaluator.variant)
    except VariantError:
        return sizes[None, :]
    cells = variant.files * variant.ranks
    boards = len(sizes) // cells
    on_boards = boards > 0 and len(sizes) - boards * cells <= 3
    return sizes[: boards * cells].reshape(-1, variant.files) if on_boards else sizes[None, :]


# verify


def verify(argv: list[str]) -> int:
    """Check evaluator files and compare kernels with their slow forms; 1 if a file fails."""
    options = parser(
        "evaluator verify",
        "Checks evaluator files completely, and compares the compiled kernel with the slow, obvious form of the same "
        "network in positions of random games. The exit status is 1 if a file fails.",
        [
            "best.safetensors",
            "*.safetensors --positions 5000 --seed 7",
            "mine.safetensors --variant mine.toml",
            "other.safetensors --variant brandubh --any-rules",
            "net-copenhagen-2",
        ],
    )
    options.add_argument("files", metavar="FILE", nargs="+", help=FILE)
    options.add_argument(
        "--positions", metavar="N", type=positive, default=1000, help="how many positions (default 1000)"
    )
    options.add_argument(
        "--seed", metavar="S", type=positive, default=1, help="seed of the random games (default 1)"
    )
    options.add_argument(
        "--variant", metavar="V", help="the rules that a file must be for (default: those it names)"
    )
    options.add_argument(
        "--any-rules", action="store_true", help="the rules of V need only have the same board"
    )
    add_variant_path(options)
    arguments = options.parse_args(argv)
    from hnefi.engine.evaluators import file_of

    if arguments.any_rules and not arguments.variant:
        options.error("--any-rules: expected --variant with it")
    variant = find_variant(options, arguments.variant, arguments.path) if arguments.variant else None
    status = 0
    for word in arguments.files:
        try:
            file = file_of(word)
            print(f"{file}: {verified(file, variant, arguments)}")
        except ValueError as error:
            print(f"hnefi evaluator: {error}", file=sys.stderr)
            status = 1
    return status


def verified(file: str, variant: AnyVariant | None, arguments: argparse.Namespace) -> str:
    """What a correct file contains; ValueError if it is not."""
    from hnefi.engine.evaluators import files
    from hnefi.engine.games import find

    if variant is None:
        evaluator = files.load_anywhere(file, None, arguments.path)
        variant = find(evaluator.variant, arguments.path)
    else:
        evaluator = files.load(file, variant, any_rules=arguments.any_rules)
    worst, far = 0.0, ""
    tolerance = SINGLE_TOLERANCE if evaluator.network.has_policy else TOLERANCE
    largest = max((float(abs(array).max()) for array in evaluator.arrays.values() if array.size), default=1.0)
    for fen, kernel, naive in _compared(evaluator, variant, arguments.positions, arguments.seed):
        worst = max(worst, abs(kernel - naive))
        if not abs(kernel - naive) <= tolerance * max(1.0, largest, abs(naive)):
            far = (
                far or f"{file}: {fen}: the kernel says {kernel!r}: expected {naive!r}, as the slow form says"
            )
    if far:
        raise ValueError(far)
    return (
        f"all right: {evaluator.network.text} for {evaluator.variant}, kernel and slow form differ by at most "
        f"{worst:.2g} in {arguments.positions} positions"
    )


def _compared(
    evaluator: Evaluator, variant: AnyVariant, number: int, seed: int
) -> Iterator[tuple[str, float, float]]:
    """Positions of random games: FEN, what the kernel says, and the slow form."""
    import random

    from hnefi.engine import games
    from hnefi.engine.evaluators import files
    from hnefi.engine.games import interface as verbs

    draw = random.Random(seed)
    params = files.record(evaluator, variant)[0]
    position = games.initial(variant)
    for _ in range(number):
        kernel = float(verbs.value(params, position.new_record()[0]))
        yield position.fen(), kernel, evaluator.network.naive(variant, evaluator.arrays, position)
        position = position.play(draw.choice(position.legal_moves()))
        if position.outcome is not None or not position.legal_moves() or position.ply > 400:
            position = games.initial(variant)


# diff


def diff(argv: list[str]) -> int:
    """Print how two evaluator files differ."""
    options = parser(
        "evaluator diff",
        "Shows how two evaluator files differ: their documents key by key, their arrays by statistics.",
        ["gen-0000.safetensors gen-0300.safetensors", "mine.safetensors best.safetensors --json"],
    )
    options.add_argument("first", metavar="A", help=FILE)
    options.add_argument("second", metavar="B", help="another one")
    options.add_argument("--json", action="store_true", help="one JSON object")
    arguments = options.parse_args(argv)
    first, second = _read(arguments.first), _read(arguments.second)
    if first is None or second is None:
        return USAGE
    one, other = first[1], second[1]
    documents = _changed(_whole(one), _whole(other))
    arrays = {
        name: _distances(one.arrays[name], other.arrays[name])
        for name in one.arrays
        if name in other.arrays and one.arrays[name].shape == other.arrays[name].shape
    }
    if arguments.json:
        print(json.dumps({"document": documents, "arrays": arrays}))
        return 0
    for key, values in documents.items():
        print(f"{key}\n  A  {json.dumps(values[0])}\n  B  {json.dumps(values[1])}")
    if arrays:
        print(f"{'array':<20}{'largest':>12}{'mean':>12}{'distance':>12}{'cosine':>12}")
    for name, found in arrays.items():
        print(f"{name:<20}" + "".join(f"{number:>12.4g}" for number in found.values()))
    if not documents and not any(found["largest"] for found in arrays.values()):
        print("no difference")
    return 0


def _changed(first: dict[str, Any], second: dict[str, Any]) -> dict[str, list[Any]]:
    """The keys whose values differ, with both values."""
    keys = [*first, *(key for key in second if key not in first)]
    return {key: [first.get(key), second.get(key)] for key in keys if first.get(key) != second.get(key)}


def _distances(one: Any, other: Any) -> dict[str, float]:
    """Largest and mean difference of two arrays of one shape, their Euclidean distance and the cosine between them."""
    import numpy as np

    a, b = one.astype(float).ravel(), other.astype(float).ravel()
    apart = np.abs(a - b)
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return {
        "largest": float(apart.max()) if apart.size else 0.0,
        "mean": float(apart.mean()) if apart.size else 0.0,
        "distance": float(np.linalg.norm(a - b)),
        "cosine": float(a @ b) / norms if norms else 1.0,
    }
