"""`hnefi analyze`: what an engine thinks of a position, or of every move of recorded games."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.argument_types import number, setting
from hnefi.protocol.hosts.exit_codes import INTERRUPTED

from ..common import interrupts
from ..common.arguments import add_out, add_plain, add_variant_path, parser, positive

if TYPE_CHECKING:
    from hnefi.protocol.hosts.assessment.verdicts import Thresholds

    from .analyser import Source

NODES = 500_000
"""How far each position is searched where nothing limits it: fixed nodes repeat."""
FORMATS = ("tafl", "otg", "csv", "jsonl")
OF_GAMES = (
    "game", "all", "output", "force", "fresh", "chart", "full", "thresholds", "backward", "read_as", "adjudicate",
    "opentafl", "quiet",
)  # fmt: skip
"""Options that say nothing about a position."""
seconds = number(0.001, 1_000_000, "seconds")


def main(argv: list[str]) -> int:
    """Analyse a position or games; 0 done, 1 interrupted, 2 called wrongly or a bad file, 3 or 4 the engine failed,
    4 also where a file could not be written."""
    options = _parser()
    arguments = options.parse_args(argv)
    target = " ".join(arguments.what)
    path = _recorded(options, target, arguments)
    source = _source(options, arguments, 3 if path is None and arguments.mate is None else 1)
    # Said only where there was no time to say what is known.
    goes_on = "; the same command continues" if arguments.output else ""
    with interrupts.caught(lambda: [f"hnefi analyze: interrupted{goes_on}"]):
        if path is None:
            from .single import analyse_position

            _expect_none(options, arguments, "position", *OF_GAMES)
            return analyse_position(options, arguments, target, source)
        from .recorded import analyse_games

        _expect_none(options, arguments, "recorded game", "moves", "mate")
        return analyse_games(options, arguments, path, source)
    return INTERRUPTED


def _recorded(options: argparse.ArgumentParser, target: str, arguments: argparse.Namespace) -> Path | None:
    """The file of games that is meant, None where a position is; an error where it is neither."""
    from hnefi.engine.wording import shorten

    path = Path(target)
    if target == "startpos":
        return None
    try:
        there = path.is_file()
        folder = path.is_dir()
    except (OSError, ValueError):
        there = folder = False
    if folder:
        options.error(f"{shorten(target)}: a folder: expected startpos, a FEN, or a file of recorded games")
    if there or arguments.read_as:
        return path
    if path.suffix.lower().removeprefix(".") in FORMATS:
        options.error(f"{shorten(target)}: no such file: expected recorded games")
    if "/" not in target:
        options.error(
            f"{shorten(target)}: expected startpos, a FEN, or a file ending in .{', .'.join(FORMATS)} that is there"
        )
    return None


def _expect_none(options: argparse.ArgumentParser, given: argparse.Namespace, what: str, *names: str) -> None:
    """An error if an option was given that does not apply to this kind of analysis."""
    for name in names:
        value = getattr(given, name)
        if value not in (None, False, []):
            flag = {"read_as": "from", "output": "out"}.get(name, name)
            options.error(f"--{flag}: not allowed with a {what}")


def _source(options: argparse.ArgumentParser, arguments: argparse.Namespace, lines: int) -> Source:
    """Which engine is asked, and how; `lines` is the default number of lines."""
    from hnefi.engine.search.types import Limits
    from hnefi.protocol.hosts import registry

    from .analyser import Source

    command = None
    preset: list[tuple[str, str]] = []
    letters = ""
    if arguments.engine is not None:
        try:
            engine = registry.engine_of(arguments.engine)
        except ValueError as error:
            options.error(f"--engine: {error}")
        command, preset, letters = engine.words, [*engine.options.items()], engine.letters
    limits = Limits(arguments.depth, arguments.nodes, arguments.mate, arguments.movetime)
    if not limits.bounded:
        limits = Limits(nodes=NODES)
    named = (
        ("Threads", arguments.threads),
        ("Hash", arguments.hash),
        ("Algorithm", arguments.algorithm),
        ("Evaluator", arguments.evaluator),
    )
    settings = [(name, str(value)) for name, value in named if value is not None]
    if arguments.mate is not None and arguments.algorithm not in (None, "alphabeta", "minimax"):
        options.error(
            f"--algorithm {arguments.algorithm}: expected alphabeta or minimax with --mate: it refutes nothing"
        )
    return Source(
        limits,
        arguments.lines or lines,
        command,
        arguments.proto,
        (*preset, *settings, *arguments.option),
        arguments.patience,
        arguments.independent,
        letters,
    )


# The command line


def thresholds(text: str) -> Thresholds:
    """`5,10,20`, as the type of an argument."""
    from hnefi.protocol.hosts.assessment.verdicts import read_thresholds

    try:
        return read_thresholds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: {error}") from None


def _parser() -> argparse.ArgumentParser:
    options = parser(
        "analyze",
        "Analyses positions and games with an engine. For a position: the best lines, the evaluation term by term,\n"
        "and with --mate whether there is a win in that many moves. For recorded games: every position, how good\n"
        "each move was, accuracy and turning points, also as an annotated game (-o) and as a chart (--chart).",
        [
            "startpos --variant brandubh --lines 3",
            "4K2/7/7/7/t6/7/7 d 0 30 --variant brandubh --mate 1",
            "game.tafl -o annotated.tafl --chart game.svg",
            "games.csv --variant copenhagen --game 17 --movetime 500",
            "cup.tafl --all --nodes 100000 -o cup-annotated.tafl",
            "game.tafl --engine 'my-engine --fast' --depth 6",
        ],
    )
    options.usage = "hnefi analyze FEN|startpos|FILE [flags]"
    options.add_argument(
        "what",
        nargs="+",
        metavar="FEN|startpos|FILE",
        help="a position in any supported notation, or a file of games",
    )
    options.add_argument(
        "--variant", metavar="V", help="the rules; most games name theirs (positions: copenhagen)"
    )
    add_variant_path(options)
    options.add_argument(
        "--json", action="store_true", help="one JSON object instead of text; for games, one per line"
    )
    add_plain(options)

    limits = options.add_argument_group("how far (the first limit reached ends a search)")
    limits.add_argument(
        "--nodes", type=positive, metavar="N", help=f"positions (without any limit: {NODES:,})"
    )
    limits.add_argument("--depth", type=positive, metavar="N", help="plies")
    limits.add_argument("--movetime", type=positive, metavar="MS", help="milliseconds for each position")
    options.renamed("--time", "--movetime", lambda text: str(max(1, round(1000 * seconds(text)))))
    limits.add_argument(
        "--patience",
        type=seconds,
        default=3600.0,
        metavar="S",
        help="without a time limit, an engine that takes longer has failed (3600)",
    )

    engine = options.add_argument_group("the engine")
    engine.add_argument("--lines", type=positive, metavar="N", help="best lines (a position: 3, games: 1)")
    engine.add_argument("--threads", type=positive, metavar="N", help="threads; 1 repeats to the node")
    engine.add_argument("--hash", type=positive, metavar="MIB", help="memory of its table")
    engine.add_argument("--algorithm", metavar="A", help="alphabeta, mcts, puct, minimax")
    engine.add_argument("--evaluator", metavar="E", help="a name, or a .safetensors file")
    engine.add_argument("--engine", metavar="CMD", help="another program, or one of `hnefi engines`")
    engine.add_argument(
        "--proto", choices=("auto", "uti", "uci", "ugi"), default="auto", help="its dialect (auto)"
    )
    engine.add_argument(
        "--option",
        type=setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any option of it; repeatable",
    )
    engine.add_argument(
        "--independent", action="store_true", help="clear the engine's memory before every position"
    )

    one = options.add_argument_group("a position")
    one.add_argument("--moves", nargs="+", metavar="M", help="moves played from there")
    one.add_argument(
        "--mate",
        type=positive,
        metavar="N",
        help="look for a win in N moves, without a limit unless one is given",
    )

    games = options.add_argument_group("recorded games")
    which = games.add_mutually_exclusive_group()
    which.add_argument("--game", type=positive, metavar="N", help="the N-th game of the file (1)")
    which.add_argument("--all", action="store_true", help="every game of the file, and a summary")
    add_out(
        games,
        "FILE",
        "write the annotated game there, as .tafl; an interrupted analysis continues there",
        dest="output",
    )
    options.renamed("--output", "--out")
    games.add_argument("--force", action="store_true", help="replace FILE if it exists")
    games.add_argument("--fresh", action="store_true", help="start over, and ignore an interrupted analysis")
    games.add_argument(
        "--chart",
        metavar="FILE",
        help="draw the chances, as .svg or .png (with --all one picture for each game)",
    )
    games.add_argument("--full", action="store_true", help="list every move, not only the mistakes")
    games.add_argument(
        "--thresholds",
        type=thresholds,
        metavar="I,M,B",
        help="lost percentage points that make a move an inaccuracy, a mistake, a blunder (5,10,20)",
    )
    games.add_argument(
        "--backward",
        action="store_true",
        help="begin at the end: the hash table then helps with earlier positions",
    )
    games.add_argument(
        "--from", dest="read_as", choices=FORMATS, help="the format of the file, whatever its name"
    )
    games.add_argument(
        "--adjudicate",
        action="store_true",
        help="CSV games were ended by repetition and limits, as the variant says",
    )
    games.add_argument("--opentafl", action="store_true", help="read OTN rules as the program OpenTafl does")
    games.add_argument("--quiet", action="store_true", help="say nothing about progress")
    return options
