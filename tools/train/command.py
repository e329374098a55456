"""`hnefi train`: teach a network from games of the engine with itself, round by round."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.argument_types import number, whole
from hnefi.protocol.hosts.exit_codes import INTERRUPTED, STORAGE, USAGE

from ..common import arguments, interrupts
from ..common.live import Live
from .config import BOUNDS, DEFAULTS

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

EXAMPLES = (
    "brandubh --out brandubh-net",
    "copenhagen --out net --network nnue:128 --games 20000 --nodes 1000,3000 --backend loky",
    "--resume brandubh-net --rounds 6",
    "copenhagen --out second --seed 2 --teacher net/best.safetensors --also net --network nnue:128",
    "copenhagen --out on --init net-copenhagen-3 --teacher net-copenhagen-3 --strays 3 --rate 2e-4 --epochs 3",
    "tawlbwrdd --out on --init best.safetensors --teacher best.safetensors --openings-file tawlbwrdd-games",
    "copenhagen --out odds --init net-copenhagen-3 --teacher net-copenhagen-3 --nodes-a 2000,4000 --nodes-d 500,1000",
    "tablut-linnaeus --out from-zero --teacher zero --blend 0 --rounds 10",
    "--plots brandubh-net",
)


def main(argv: list[str]) -> int:
    """Train; 0 when all rounds are done, 1 when interrupted."""
    options = _parser()
    given = options.parse_args(argv)
    for name in ("out", "resume", "plots"):
        if getattr(given, name) == "":
            options.error(f"--{name} '': expected a folder")
    if given.plots:
        return _plots(options, Path(given.plots))
    if bool(given.resume) == bool(given.variant):
        options.error("expected a VARIANT and --out, or --resume FOLDER")
    from .config import TrainError
    from .shards import ShardError

    try:
        return _train(options, given)
    except (TrainError, ShardError) as error:
        print(f"hnefi train: {error}", file=sys.stderr)
        return USAGE


def _parser() -> Any:
    options = arguments.parser(
        "train",
        "Trains an efficiently updatable network (docs/train.md). Each round plays games of the best evaluator "
        "against itself, trains a new net on them, measures it on held-out games, and tests it against the best one "
        "in the arena. If it is stronger, it plays the games of the next round. Everything is kept in a folder: the "
        "same command, or --resume, continues after any interruption, kill -9 included.",
        EXAMPLES,
    )
    options.add_argument(
        "variant", metavar="VARIANT", nargs="?", help="a tafl variant, or a file of rules (TOML)"
    )
    options.takes_variant()
    arguments.add_out(options, "FOLDER", "where the training is kept (default: train-VARIANT)")
    options.add_argument(
        "--resume",
        metavar="FOLDER",
        help="continue a training; only --rounds and the flags on who does the work may be given",
    )
    options.add_argument(
        "--plots", metavar="FOLDER", help="draw losses.svg and strength.svg of a training again"
    )
    how = options.add_argument_group("the training")

    def add(name: str, read: Callable[[Any, Any], Any] | None, metavar: str, what: str) -> None:
        usual, bounds = DEFAULTS[name], BOUNDS.get(name, ())
        shown = ",".join(map(str, usual)) if isinstance(usual, list) else usual
        how.add_argument(
            f"--{name.replace('_', '-')}",
            type=read(*bounds) if read else str,
            metavar=metavar,
            dest=name,
            help=f"{what} (default {shown})" if shown != "" else what,
        )

    add("network", None, "NET", "architecture: nnue:UNITS, nnue:UNITS,rings=N")
    add(
        "init",
        None,
        "NET",
        "a shipped network or a file, for these or other rules of the same board, whose weights lessons begin with "
        "(default: random weights); its architecture is the default of --network",
    )
    add("rounds", whole, "N", "rounds in all")
    add("games", whole, "N", "games per round")
    add(
        "openings_file",
        None,
        "FILE",
        "positions that games begin with, as for the arena: one FEN or move list a line; or the folder of another "
        "training, for a position of each of its games (default: random openings)",
    )
    add("nodes", _numbers, "N,N", "nodes per move, drawn for each side of each game")
    for side, name in (("a", "attackers"), ("d", "defenders")):
        add(f"nodes_{side}", _numbers, "N,N", f"the same for the {name} alone (default: as --nodes)")
    add("strays", whole, "N", "positions off the games that are searched for each of theirs")
    add(
        "teacher", None, "E", "the evaluator of the first round, a name or a file; `zero` begins from nothing"
    )
    add(
        "tables",
        None,
        "PATH",
        "solved tables that end games, as for the option TablePath (`shipped`; default none)",
    )
    how.add_argument(
        "--also",
        action="append",
        metavar="FOLDER",
        help="learn as well from the games of another training that begin on the same board; repeatable",
    )
    add("blend", number, "B", "how much of the target is the search's score; the rest is the result")
    add("epochs", whole, "N", "passes through the positions")
    add(
        "rate",
        number,
        "R",
        "learning rate of the first epoch; a tenth of the usual one suits an --init that plays well",
    )
    add("window", whole, "N", "rounds whose games are learned from")
    add("gate_pairs", whole, "N", "pairs of games of each test at most, up to 100,000")
    add("gate_nodes", whole, "N", "nodes per move in tests")
    add("elo0", number, "X", "the test's H0")
    add("elo1", number, "X", "the test's H1; a net is accepted if H1 is")
    add("seed", whole, "S", "seed of everything random")
    hands = options.add_argument_group("who does the work")
    hands.add_argument(
        "--jobs", type=arguments.positive, metavar="J", help="threads or processes (as many as cores)"
    )
    arguments.add_backend(hands, "what the processes of games run on (threads)")
    hands.add_argument(
        "--with",
        dest="library",
        choices=("auto", "numpy", "torch"),
        default="auto",
        help="what computes gradients (auto: torch where it is installed, extra `train`)",
    )
    arguments.add_plain(options)
    return options


def _numbers(low: int, high: int) -> Callable[[str], list[int]]:
    read = whole(low, high)
    return lambda text: [read(word) for word in text.split(",")]


def _train(options: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    from hnefi.engine import games
    from hnefi.engine.catalogue import SUFFIX
    from hnefi.engine.warmup import prepare

    from ..arena.options import ConfigError
    from ..arena.store import StorageFailed, StoreError
    from ..common.compiling import shown_on_stderr
    from ..common.workers import WorkerFailed, cores
    from . import plots
    from .config import GROWS, alone, read_config
    from .run import Hands, Training

    torch = _torch(options, given.library)
    said = {name: value for name in DEFAULTS if (value := getattr(given, name)) is not None}
    if given.resume:
        folder = Path(given.resume)
        if unlike := [name for name in said if name not in GROWS]:
            options.error(f"--resume with --{unlike[0].replace('_', '-')}: expected --rounds only")
        if given.out is not None:
            options.error("--resume with --out: expected one of them")
        stored = read_config(folder)
        variant = arguments.find_tafl_variant(options, stored["variant"])
        said = {**{name: stored[name] for name in DEFAULTS}, **said}
        word = stored["variant"]
    else:
        variant = arguments.find_tafl_variant(options, given.variant)
        word = variant.name
        if given.variant.endswith(SUFFIX):
            # The arena and a later call find an own file at its place, and engines need its name for themselves.
            word = str(Path(given.variant).absolute())
            try:
                games.find(variant.name, word)
            except ValueError as error:
                options.error(str(error))
        folder = Path(given.out or f"train-{variant.name}")
        _make_absolute(options, said, folder)
    _expect_fit(options, said, variant, folder)
    live = Live(sys.stdout, plain=given.plain)
    training: Training | None = None

    def words() -> list[str]:
        done = 0 if training is None else len(training.log)
        rounds = f"{done} of {training.values['rounds']} rounds are done" if training else "nothing is lost"
        return [f"interrupted: {rounds}; to continue:", f"  hnefi train --resume {shlex.quote(str(folder))}"]

    hands = Hands(given.backend or "", given.jobs or cores(), torch)
    with interrupts.caught(words) as caught:
        try:
            with shown_on_stderr(), alone(folder):
                training = Training(folder, variant, word, said, live)
                prepare(variant, _settings(training.best))

                def draw() -> None:
                    assert training is not None
                    live.report(plots.write(folder, variant.name, training.log)[1])

                training.go_on(hands, draw)
        except (ConfigError, StoreError, WorkerFailed) as error:
            if caught.asked.is_set():
                raise
            print(f"hnefi train: {error}", file=sys.stderr)
            return STORAGE if isinstance(error, StorageFailed) else USAGE
        except OSError as error:
            print(f"hnefi train: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
            return STORAGE
    if caught.ended:
        return INTERRUPTED
    assert training is not None
    live.report([f"best: {training.best}", f"curves: {folder / plots.LOSSES}, {folder / plots.STRENGTH}"])
    return 0


def _settings(evaluator: str) -> Any:
    from hnefi.engine.search.types import Settings

    return Settings(evaluator=evaluator)


def _torch(options: argparse.ArgumentParser, library: str) -> bool:
    """Whether torch computes gradients; an error where it is asked for and missing."""
    if library == "numpy":
        return False
    from importlib.util import find_spec

    if find_spec("torch") is not None:
        return True
    if library == "torch":
        options.error("--with torch: the package is missing: expected pip install 'hnefi[train]'")
    return False


def _make_absolute(options: argparse.ArgumentParser, said: dict[str, Any], folder: Path) -> None:
    """Name files by their whole paths, so that a training can be continued from anywhere; an error for a training that
    is to be learned from twice."""
    from hnefi.engine.evaluators import is_file
    from hnefi.engine.solving.tables import ships

    for name in ("init", "teacher"):
        if is_file(said.get(name, "")):
            said[name] = str(Path(said[name]).absolute())
    if said.get("openings_file"):
        said["openings_file"] = str(Path(said["openings_file"]).absolute())
    if "tables" in said:
        parts = said["tables"].split(os.pathsep)
        said["tables"] = os.pathsep.join(
            part
            if part in ("", "shipped") or (ships(part) and Path(part).name == part)
            else str(Path(part).absolute())
            for part in parts
        )
    learned = {folder.resolve(): "is where this training is kept"}
    for other in said.get("also", []):
        if reason := learned.get(Path(other).resolve()):
            options.error(f"--also {shorten(other)}: {reason}: expected each training once")
        learned[Path(other).resolve()] = "is named twice"
    if "also" in said:
        said["also"] = [str(Path(other).absolute()) for other in said["also"]]


def _expect_fit(
    options: argparse.ArgumentParser, said: dict[str, Any], variant: Variant, folder: Path
) -> None:
    """An error for a network, a teacher, openings or tables that cannot be used for the variant, before anything is
    played."""
    import numpy as np

    from hnefi.engine import evaluators
    from hnefi.engine.evaluators import network
    from hnefi.engine.evaluators.networks import nnue

    from .config import CONFIG, rounds_of
    from .run import initial, openings

    init = None
    if name := said.get("init"):
        if not evaluators.is_file(name) and name not in evaluators.NETWORKS:
            options.error(
                f"--init {shorten(name)}: expected {', '.join(evaluators.NETWORKS)}, or a file whose name ends in "
                f"{evaluators.SUFFIX}"
            )
        try:
            init = initial(name, variant).network
        except ValueError as error:
            options.error(f"--init: {error}")
        said.setdefault("network", init.text)
    text = said.get("network", DEFAULTS["network"])
    if text.partition(":")[0] in set(network.NAMES) - {"nnue"}:
        options.error(f"--network {text}: expected nnue:UNITS; `hnefi evolve` teaches other networks")
    try:
        net = network.parse(text)
    except ValueError:
        options.error(
            f"--network {shorten(text)}: expected nnue:UNITS or nnue:UNITS,rings=N, UNITS a multiple of "
            f"{nnue.UNITS_STEP} up to {nnue.MOST_UNITS}, N from 1 to {network.MOST_UNITS}"
        )
    try:
        net.record(variant, np.zeros(net.count(variant)))
        if init and init.text != net.text:
            options.error(f"--network {net.text}: expected {init.text}, as --init has")
    except ValueError as error:
        options.error(f"--network: {error}")
    teacher = said.get("teacher", DEFAULTS["teacher"])
    if reason := evaluators.misfit(teacher, variant):
        options.error(f"--teacher: {reason}")
    if (file := said.get("openings_file")) and not (folder / CONFIG).exists():
        if Path(file).is_dir():
            # Its positions are taken only once, when the training begins: with many games that takes seconds.
            rounds_of(Path(file), variant)
        else:
            openings(file, variant)
    if said.get("elo0", DEFAULTS["elo0"]) >= said.get("elo1", DEFAULTS["elo1"]):
        options.error("--elo0: expected less than --elo1")
    if tables := said.get("tables"):
        from hnefi.engine.solving.tables import find, opened

        try:
            opened(find(tables)).load(variant)
        except OSError as error:
            options.error(f"--tables {error.filename or tables}: {error.strerror}: expected solved tables")
        except (ValueError, MemoryError) as error:
            options.error(f"--tables: {error}")


def _plots(options: argparse.ArgumentParser, folder: Path) -> int:
    """Draw the curves of a training again."""
    from . import plots
    from .config import TrainError, read_config, read_log

    try:
        config, log = read_config(folder), read_log(folder)
        if not log:
            options.error(f"--plots {folder}: expected at least one finished round")
        made, left_out = plots.write(folder, Path(config["variant"]).stem, log)
    except TrainError as error:
        print(f"hnefi train: {error}", file=sys.stderr)
        return USAGE
    except OSError as error:
        print(f"hnefi train: {error.filename or folder}: {error.strerror or error}", file=sys.stderr)
        return STORAGE
    print("\n".join([*map(str, made), *left_out]))
    return 0
