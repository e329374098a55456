"""`hnefi evolve`: evaluators that learn by playing against each other, from the command line."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine import catalogue
from hnefi.engine.wording import counted, shorten
from hnefi.protocol.flags import Parser, filled, warn_renamed
from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE, code_of

from ..common import arguments, interrupts
from . import options
from .options import OptionError

if TYPE_CHECKING:
    from .contestants import Executor
    from .folder import Folder
    from .progress import Progress
    from .run import Checkpoint, Plan, Step

WAVE_SECONDS = 1.5
"""Seconds that a process works on its runs before it returns them."""
EXAMPLES = {
    options.ES: (
        "es --variant hingston-original --seed 1 --out first",
        "es --variant brandubh --seeds 5 --jobs 2 --generations 100",
        "es --variant copenhagen --mu 20 --lambda 20 --set opponent=both --set average=0.05 --set hall=16",
        "es --network hingston2007:hidden=20 --symmetric tied --save-player mine",
    ),
    options.CMA: ("cma --variant hingston-alternative --lambda 20 --generations 500 --out cma-1",),
    options.ZERO: (
        "zero --variant hexapawn:3x3 --seed 1 --out pawns",
        "zero --variant hexapawn:4x4 --iterations 20 --set augment=yes --seeds 10 --jobs 2",
        "zero --variant hex:5 --simulations 32 --games 64 --window 8 --batch 64 --epochs 4 --noise 0.25",
    ),
    options.TORUS: (
        "torus --variant hex:11 --seed 1 --out hex",
        "torus --variant hex:5 --selection exponential --seeds 6 --jobs 2",
        "torus --variant brandubh --network hingston2007 --sigma 0.1 --generations 100",
    ),
    options.TD: (
        "td --variant tablut-herr-7 --side defenders --opponent random-coded --seed 1 --out white",
        "td --variant brandubh --network linear --opponent self --lambda 0.7 --generations 20",
        "td --variant hexapawn:4x4 --network mlp:20 --seeds 5 --jobs 2",
    ),
    options.TDLEAF: ("tdleaf --variant brandubh --depth 3 --generations 20 --out leaf",),
    options.TREESTRAP: (
        "treestrap --variant brandubh --generations 20 --out strap --save-player mine",
        "treestrap --variant tablut-linnaeus --network mlp:16 --depth 2 --seeds 5",
    ),
    "rank": ("rank first", "rank first --pairs 100 --depth 2", "rank first --survivors"),
    "curves": ("curves first",),
    "compare": ("compare first second", "compare es-* cma-1 --by games --column best --out versus.svg"),
    "resume": ("resume first", "resume first --generations 600 --jobs 2 --save-player mine"),
}

OTHERS = {
    "resume": "continue a run exactly where it stopped",
    "rank": "find a run's best champion against fixed opponents",
    "curves": "draw the progress of a run, even while it is running",
    "compare": "compare runs of several folders in one picture and one table",
}
"""Subcommands that do not start a run."""


def main(argv: list[str]) -> int:
    """Run one command; returns the exit code."""
    word = argv[0] if argv else "--help"
    if word in ("-h", "--help"):
        print(_overview())
        return 0
    if word not in (*OTHERS, *options.ALGORITHMS):
        expected = ", ".join([*options.ALGORITHMS, *OTHERS])
        print(f"hnefi evolve: error: {shorten(word)}: expected one of {expected}", file=sys.stderr)
        return USAGE
    others = {"resume": _resume, "rank": _rank, "curves": _curves, "compare": _compare}
    return _guarded(lambda: others[word](argv[1:]) if word in others else _evolve(word, argv[1:]))


def _overview() -> str:
    lines = ["usage: hnefi evolve COMMAND [...]   (hnefi evolve COMMAND --help for details)", ""]
    lines += [f"  {name:<9}  {sentence}" for name, sentence in options.ALGORITHMS.items()]
    lines += [f"  {name:<9}  {sentence}" for name, sentence in OTHERS.items()] + ["", "examples:"]
    lines += [f"  hnefi evolve {example}" for examples in EXAMPLES.values() for example in examples]
    return filled("\n".join(lines))


def _guarded(action: Callable[[], int]) -> int:
    """Turn errors into a sentence on standard error and an exit code."""
    try:
        return action()
    except OptionError as error:
        print(f"hnefi evolve: {error}", file=sys.stderr)
    except Exception as error:
        from ..common.workers import WorkerFailed
        from .folder import FolderError

        if not isinstance(error, (FolderError, WorkerFailed)):
            raise
        print(f"hnefi evolve: {error}", file=sys.stderr)
        return code_of(error)
    return USAGE


# The command lines


def _parser(command: str, description: str) -> Parser:
    made = arguments.parser("evolve", description, EXAMPLES[command])
    made.prog = f"hnefi evolve {command}"
    return made


def _add_common(to: argparse.ArgumentParser) -> None:
    """Options that do not affect a run's results."""
    _add_hands(to)
    to.add_argument(
        "--save-player", metavar="NAME", help="write the champion as NAME.toml and NAME.safetensors"
    )
    to.add_argument("--quiet", action="store_true", help="show only errors and how to continue")
    arguments.add_plain(to)


def _evolve_parser(algorithm: str) -> Parser:
    made = _parser(algorithm, f"Evolve an evaluator by {options.ALGORITHMS[algorithm]}.")
    made.add_argument(
        "--variant", default=catalogue.DEFAULT, metavar="V", help=f"what is played ({catalogue.DEFAULT})"
    )
    arguments.add_variant_path(made)
    made.add_argument(
        "--seed", type=arguments.natural, default=1, metavar="S", help="seed of the (first) run (1)"
    )
    made.add_argument(
        "--seeds",
        type=arguments.positive,
        default=1,
        metavar="K",
        help="number of runs, with seeds S, S+1, …",
    )
    arguments.add_out(made, "DIR", "the run's folder; an existing run is continued")
    made.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any option below")
    _add_common(made)
    group = made.add_argument_group("options of the run")
    for option in options.of(algorithm).values():
        default = "" if option.default in (None, "") else f" ({option.default})"
        flags = [f"--{option.name.replace('_', '-')}"]
        if algorithm == options.ZERO and option.name == "generations":
            flags.insert(0, "--iterations")
        group.add_argument(
            *flags,
            dest=f"option {option.name}",
            metavar="|".join(option.words)
            if option.words
            else {int: "N", float: "X", str: "TEXT"}[option.kind],
            help=f"{option.help}{default}",
        )
    return made


def _add_hands(to: argparse.ArgumentParser) -> None:
    """Options for the workers that play the games."""
    to.add_argument(
        "--jobs", type=arguments.positive, metavar="J", help="threads or processes (as many as cores)"
    )
    arguments.add_backend(to)


def _evolve(algorithm: str, argv: Sequence[str]) -> int:
    ranking = _old_rank(algorithm, argv)
    if ranking is not None:
        return _rank(ranking)
    parser = _evolve_parser(algorithm)
    given = parser.parse_args(argv)
    said = options.read_settings(algorithm, given.set)
    for name, option in options.of(algorithm).items():
        text = getattr(given, f"option {name}")
        if text is not None:
            said[name] = option.read(text)
    variant = arguments.find_variant(parser, given.variant, given.path)
    word = str(Path(given.variant).absolute()) if given.variant.endswith(".toml") else variant.name
    path = str(Path(given.path).absolute()) if given.path else ""
    from .run import plan

    seeds = range(given.seed, given.seed + given.seeds)
    plans = {seed: plan(algorithm, variant, seed, said) for seed in seeds}
    many = given.seeds > 1
    name = f"evolve-{algorithm}-{variant.name.replace(':', '-')}-seed{'s' if many else ''}-{given.seed}"
    out = Path(given.out or (f"{name}-{seeds[-1]}" if many else name))
    folders = {seed: out / f"seed-{seed}" if many else out for seed in seeds}
    return _run(given, out, folders, plans, word, path)


def _resume(argv: Sequence[str]) -> int:
    parser = _parser("resume", "Continue a run, or all runs in a folder, exactly where they stopped.")
    parser.add_argument("folder", metavar="DIR", help="the run's folder")
    parser.add_argument(
        "--generations", type=arguments.positive, metavar="N", help="a new number of generations"
    )
    _add_common(parser)
    given = parser.parse_args(argv)
    out = Path(given.folder)
    loaded = [(path, *_planned(parser, path, given.generations)) for path in _runs_in(out)]
    plans = {plan.seed: plan for _, plan, _ in loaded}
    if len(plans) < len(loaded):
        raise OptionError(f"{out}: expected runs of different seeds")
    word, path = loaded[0][2]
    return _run(given, out, {plan.seed: folder for folder, plan, _ in loaded}, plans, word, path)


def _runs_in(out: Path) -> list[Path]:
    """The folders of runs: the folder itself, or those inside it."""
    many = sorted(path.parent for path in out.glob("seed-*/config.toml"))
    return many or [out]


def _planned(
    parser: argparse.ArgumentParser, folder: Path, generations: int | None = None
) -> tuple[Plan, tuple[str, str]]:
    """The plan of a run's folder, and the name by which its variant was given."""
    from .folder import read_config
    from .run import plan

    config = read_config(folder)
    word, path = config["variant"], config["path"]
    variant = arguments.find_variant(parser, word, path or None)
    said = {name: config[name] for name in options.of(config["algorithm"])}
    if generations is not None:
        said["generations"] = generations
    return plan(config["algorithm"], variant, config["seed"], said), (word, path)


# Runs


def _run(
    given: argparse.Namespace,
    out: Path,
    paths: Mapping[int, Path],
    plans: Mapping[int, Plan],
    word: str,
    variant_path: str,
) -> int:
    """Evolve until every run is complete; exit code 1 if interrupted."""
    from ..common.workers import cores
    from . import curves
    from .folder import Folder, config_of, expect_player
    from .progress import Progress

    if given.save_player:
        expect_player(given.save_player)
        if len(plans) > 1:
            raise OptionError(f"--save-player with {len(plans)} runs: expected one run")
    jobs = given.jobs or cores()
    first = next(iter(plans.values()))
    learner = first.build()
    with ExitStack() as stack:
        folders = {
            seed: stack.enter_context(Folder(paths[seed], plan, config_of(plan, word, variant_path)))
            for seed, plan in plans.items()
        }
        start = {seed: folder.checkpoint.generation for seed, folder in folders.items()}
        progress = Progress(
            sys.stdout,
            start,
            first.generations,
            describe=learner.describe,
            quiet=given.quiet,
            plain=given.plain,
        )
        progress.say(_heading(first, len(plans), out, min(start.values()) if any(start.values()) else None))
        if all(start[seed] >= plan.generations for seed, plan in plans.items()):
            progress.say(f"nothing to evolve: generation {min(start.values())} is finished; for more:")
            progress.say(f"  hnefi evolve resume {shlex.quote(str(out))} --generations N")

        def words() -> list[str]:
            progress.end()
            finished = min(folder.checkpoint.generation for folder in folders.values())
            return [
                f"interrupted: {finished} of {first.generations} generations are kept; to continue:",
                f"  hnefi evolve resume {shlex.quote(str(out))}",
            ]

        with interrupts.caught(words) as caught:
            try:
                redrawn = curves.Redrawn(out, list(paths.values()))
                _evolve_all(plans, folders, progress, redrawn.tick, jobs, given.backend)
            except interrupts.Interrupted:
                progress.end()
                raise
        if caught.ended:
            return INTERRUPTED
        progress.end()
        for seed, folder in folders.items():
            progress.say(
                f"seed {seed}: generation {folder.checkpoint.generation}: {folder.path / 'champion.safetensors'}"
            )
        if any(folder.checkpoint.generation for folder in folders.values()):
            drawn, _ = curves.write(out, list(paths.values()))
            progress.say(f"curves {drawn}")
        if given.save_player:
            from .folder import CHAMPION, save_player

            (folder,) = folders.values()
            made = save_player(given.save_player, first, folder.path / CHAMPION, folder.checkpoint.generation)
            progress.say(f"player {made}")
    return 0


def _heading(plan: Plan, runs: int, out: Path, after: int | None) -> str:
    """A line about what evolves, and where; `after` is the generation after which it continues, the earliest of several
    runs."""
    weights = f"{plan.encoding.size:,} weights"
    count = plan.network.count(plan.variant)
    if count != plan.encoding.size:
        weights = f"{plan.encoding.size:,} free of {count:,} weights"
    seeds = f"seed {plan.seed}" if runs == 1 else f"{runs} seeds from {plan.seed}"
    what = f"{plan.algorithm} on {plan.variant.name}, {plan.values['network']} ({weights}), {seeds}"
    if after is None:
        return f"{what}, into {out}"
    found = "the run" if runs == 1 else "the runs"
    return f"continuing {found} in {out} after generation {after}: {what}"


def _evolve_all(
    plans: Mapping[int, Plan],
    folders: Mapping[int, Folder],
    progress: Progress,
    drawn: Callable[[], None],
    jobs: int,
    backend: str,
) -> None:
    """Evolve runs side by side in processes, or one after another with their games in threads."""
    from .contestants import Executor

    if len(plans) == 1 or (jobs == 1 and not backend):
        for seed, plan in plans.items():
            _evolve_one(plan, folders[seed], progress, drawn, Executor(jobs, backend))
        return
    while unfinished := [
        seed for seed in plans if folders[seed].checkpoint.generation < plans[seed].generations
    ]:
        _wave(plans, folders, progress, drawn, unfinished, jobs, backend or "loky")


def _evolve_one(
    plan: Plan, folder: Folder, progress: Progress, drawn: Callable[[], None], hands: Executor
) -> None:
    from .run import steps

    # Disks are slow, so a generation is written while the next one is played. The block ends after the last write.
    with ThreadPoolExecutor(1) as writer:
        written: Future[None] | None = None
        for step in steps(plan, folder.checkpoint, hands):
            if written is not None:
                written.result()
            written = writer.submit(folder.commit, step)
            progress.step(plan.seed, step.report)
            drawn()
    if written is not None:
        written.result()


def _wave(
    plans: Mapping[int, Plan],
    folders: Mapping[int, Folder],
    progress: Progress,
    drawn: Callable[[], None],
    unfinished: Sequence[int],
    jobs: int,
    backend: str,
) -> None:
    """Advance every unfinished run a little: each process gets some runs, and the same total time."""
    from ..common.workers import through_joblib
    from .run import code_version

    groups = _groups(sorted(unfinished, key=lambda seed: folders[seed].checkpoint.generation), jobs)
    work = [
        partial(
            _advance,
            [(plans[seed], folders[seed].checkpoint) for seed in group],
            WAVE_SECONDS / len(group),
            max(1, jobs // len(groups)),
            code_version(),
        )
        for group in groups
    ]
    for number, results in through_joblib(work, backend, min(jobs, len(groups))):
        for seed, steps in zip(groups[number], results, strict=True):
            for step in steps:
                folders[seed].commit(step)
                progress.step(seed, step.report)
        drawn()


def _groups(seeds: Sequence[int], count: int) -> list[list[int]]:
    """Seeds in `count` groups whose sizes differ by at most one, small groups first."""
    count = min(count, len(seeds))
    edges = [len(seeds) * i // count for i in range(count + 1)]
    return [list(seeds[low:high]) for low, high in pairwise(edges)]


def _advance(
    runs: Sequence[tuple[Plan, Checkpoint]], seconds: float, jobs: int, code: str
) -> list[list[Step]]:
    """Job for another process: compute some generations of each of some runs."""
    import socket

    from ..common.workers import WorkerFailed
    from .run import advance, code_version

    if code_version() != code:
        raise WorkerFailed(f"{socket.gethostname()}: code {code_version()}: expected {code}")
    return [advance(plan, checkpoint, seconds, jobs) for plan, checkpoint in runs]


# The curves


def _curves(argv: Sequence[str]) -> int:
    from . import curves

    parser = _parser("curves", "Draw the progress of a run, or of all runs in a folder: fitness and matches.")
    parser.add_argument("folder", metavar="DIR", help="the run's folder; the picture goes there")
    arguments.add_png(parser)
    given = parser.parse_args(argv)
    out = Path(given.folder)
    for path in curves.write(out, _runs_in(out), png=given.png):
        print(path)
    return 0


def _compare(argv: Sequence[str]) -> int:
    from . import compare

    parser = _parser(
        "compare",
        "Compare runs of any algorithms: each folder is a curve, the mean of its runs if it has several. The picture "
        "shows fitness, losses and games per second, as far as all logs have them, or the columns that you name. A "
        "table with every number of the logs is written next to the picture.",
    )
    parser.add_argument("folders", nargs="+", metavar="DIR", help="folders of runs")
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="NAME",
        help="a column to draw, by its name in the table (kinds.simple.matches.0); repeatable",
    )
    parser.add_argument(
        "--by",
        choices=compare.AXES,
        default=compare.AXES[0],
        help="what the curves are drawn over (generation)",
    )
    arguments.add_out(
        parser, "FILE", "the picture; the table goes next to it (compare.svg)", default="compare.svg"
    )
    arguments.add_png(parser)
    given = parser.parse_args(argv)
    out = Path(given.out)
    if out.suffix != ".svg":
        parser.error(f"--out {shorten(given.out)}: expected a name that ends in .svg")
    folders = {str(Path(name)): _runs_in(Path(name)) for name in given.folders}
    for path in compare.write(out, folders, given.column, given.by, png=given.png):
        print(path)
    return 0


# The ranking


def _rank_parser() -> Parser:
    made = _parser("rank", "Find a run's best champion against fixed opponents.")
    made.add_argument("folder", metavar="DIR", help="the run's folder")
    made.add_argument(
        "--survivors",
        action="store_true",
        help="es: rank what survived the last generation, not the champions: are the fittest the best?",
    )
    made.add_argument(
        "--pairs",
        type=arguments.positive,
        default=20,
        metavar="N",
        help="matches of the first round, each a pair of games (20)",
    )
    made.renamed("--matches", "--pairs")
    made.add_argument(
        "--depth", type=arguments.positive, metavar="N", help="plies that players look ahead (as in the run)"
    )
    made.renamed("--rank-depth", "--depth")
    _add_hands(made)
    made.add_argument("--quiet", action="store_true", help="show only errors")
    arguments.add_plain(made)
    return made


def _old_rank(algorithm: str, argv: Sequence[str]) -> list[str] | None:
    """The arguments for `rank` if the command line uses the old flag `--rank` of a run; None if it does not."""
    for place, word in enumerate(argv):
        flag, equals, folder = word.partition("=")
        if flag == "--rank" and (equals or place + 1 < len(argv)):
            warn_renamed(f"hnefi evolve {algorithm}", "--rank DIR", "hnefi evolve rank DIR")
            rest = argv[place + 1 :] if equals else argv[place + 2 :]
            return [folder if equals else argv[place + 1], *argv[:place], *rest]
    return None


def _rank(argv: Sequence[str]) -> int:
    from ..common.workers import cores
    from . import rank
    from .contestants import Executor
    from .folder import Folder, config_of

    parser = _rank_parser()
    given = parser.parse_args(argv)
    out = Path(given.folder)
    if given.depth and given.depth > options.DEEPEST:
        parser.error(f"--depth {given.depth}: expected 1 to {options.DEEPEST}")
    runs = _runs_in(out)
    if runs != [out]:
        raise OptionError(f"{out}: {counted(len(runs), 'run')}: expected one of them, as {runs[0]}")
    plan, named = _planned(parser, out)
    if given.survivors and plan.algorithm != options.ES:
        raise OptionError(f"--survivors: {out}: a run of {plan.algorithm}: expected {options.ES}")
    if plan.algorithm not in options.BOTH:
        raise OptionError(f"{out}: a run of {plan.algorithm}: expected one of {' or '.join(options.BOTH)}")
    hands = Executor(given.jobs or cores(), given.backend)
    say = (lambda _: None) if given.quiet else print
    with Folder(out, plan, config_of(plan, *named)) as folder:
        candidates = (rank.survivors if given.survivors else rank.champions)(folder, plan)
        depth = given.depth or plan.values["depth"]
        with interrupts.caught(lambda: ["interrupted: nothing was written"]) as caught:
            report = rank.rank(folder, plan, candidates, depth, hands, given.pairs, say)
        if caught.ended:
            return INTERRUPTED
    for line in _ranked(report, candidates.word):
        say(line)
    say(f"{out / rank.FOLDER / candidates.best}")
    return 0


def _ranked(report: Mapping[str, Any], word: str) -> list[str]:
    """The lines about the best of a ranking and, if training has compared the candidates, about its fittest."""
    from hnefi.protocol.hosts.text_table import table

    chosen = [(f"{word} {report[word]}", report["confirmed"])]
    if "fittest" in report and report[word] != 1:
        chosen.append((f"{word} 1, the fittest", report["fittest"]["confirmed"]))
    lines = []
    for name, confirmed in chosen:
        rows = [
            (
                opponent,
                *map(str, one["matches"]),
                f"{one['won_95'][0]:.1%} – {one['won_95'][1]:.1%}",
                str(one["by_captures"]),
            )
            for opponent, one in confirmed.items()
        ]
        head = (name, "won", "drawn", "lost", "95 % of won", "by captures")
        lines += table(head, rows, left=(0,), free=0)
    if report.get("correlation") is not None:
        lines.append(
            "rank correlation of the fitness in training with the first round's games:"
            f" {report['correlation']:+.2f}"
        )
    return lines
