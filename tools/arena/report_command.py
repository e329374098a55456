"""`hnefi arena report` and `hnefi arena rate`: what a stored run says, as tables, JSON, records, pictures or a page."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hnefi.engine.wording import nearest, shorten
from hnefi.protocol.hosts.argument_types import whole
from hnefi.protocol.hosts.exit_codes import code_of, unwritten
from hnefi.protocol.hosts.text_table import encodable, safe

from ..common.arguments import add_html, add_plain, parser
from ..common.rating import Model
from ..common.sprt import MODELS, Sprt, parse
from ..common.statistics import check_counts, estimate
from .report import Stored, final, progress, strength
from .summary import Counts, ReportError, RunFacts, Summary, document, summarize


def main_report(argv: list[str]) -> int:
    """`hnefi arena report`: the tables of a run, made from its log."""
    options = parser(
        "arena report",
        "Prints the tables of a run, made again from its log, even while the run is in progress.",
        ["cup", "cup --json", "cup --records cup.tafl --plots", "cup --html cup.html", "cup --game 17.2"],
    )
    options.add_argument("run", metavar="RUN", help="the run's folder")
    options.add_argument("--json", action="store_true", help="only the summary, as JSON")
    options.add_argument(
        "--records", metavar="FILE", help="write the games that count as records; FILE is replaced"
    )
    options.add_argument(
        "--plots", action="store_true", help="draw ratings, cross table and scores into RUN/plots"
    )
    add_html(options, "tables, ratings and all games on a board")
    options.add_argument("--game", metavar="ID", help="only the record of one game, such as 17.2")
    add_plain(options)
    arguments = options.parse_args(argv)

    def report() -> int:
        if arguments.plots:
            from . import plots

            plots.expect_library()
        stored = Stored(Path(arguments.run).absolute())
        if arguments.game is not None:
            return _show_game(stored, arguments.game)
        summary = stored.summary()
        _print_summary(summary, arguments.json, plain=arguments.plain)
        if arguments.records is not None:
            _write_records(stored, Path(arguments.records))
        if arguments.plots:
            series = plots.score_series(stored.progress.games(), stored.facts.engines)
            for path in plots.draw(summary, series, stored.store.folder / "plots"):
                print(path, file=sys.stderr)
        if arguments.html is not None:
            _write_html(stored, summary, Path(arguments.html), plain=arguments.plain)
        return 0

    return _guarded("arena report", report)


def main_rate(argv: list[str]) -> int:
    """`hnefi arena rate`: one table of several runs."""
    options = parser(
        "arena rate",
        "Makes one rating table from the games of several runs. Engines with the same name count as the same engine; "
        "a pair that repeats one of another run is left out.",
        ["cup-2025 cup-2026", "cup-* --anchor simple=1500 --json"],
    )
    options.add_argument("runs", metavar="RUN", nargs="+", help="folders of runs")
    options.add_argument("--anchor", metavar="NAME=ELO", help="a known rating (without one, the mean is 0)")
    options.add_argument("--no-side", action="store_true", help="do not fit an advantage of the attackers")
    options.add_argument(
        "--bootstrap", metavar="N", type=whole(0, 999_999), default=1000, help="resamplings for the errors"
    )
    options.add_argument("--seed", metavar="N", type=whole(0, 999_999), default=1, help="their seed")
    options.add_argument("--json", action="store_true", help="the summary as JSON")
    add_plain(options)
    arguments = options.parse_args(argv)

    def rate() -> int:
        folders = dict.fromkeys(Path(run).absolute() for run in arguments.runs)
        joined, counts = joined_runs([Stored(folder) for folder in folders])
        anchor = _anchor(arguments.anchor, joined.engines) if arguments.anchor is not None else None
        model = Model(anchor, side=not arguments.no_side, bootstrap=arguments.bootstrap, seed=arguments.seed)
        _print_summary(summarize(replace(joined, model=model), counts), arguments.json, plain=arguments.plain)
        return 0

    return _guarded("arena rate", rate)


def joined_runs(runs: Sequence[Stored]) -> tuple[RunFacts, Counts]:
    """Several runs as one: their pairs are numbered one run after the other."""
    counts, offset = Counts(), 0
    for stored in runs:
        for row in stored.progress.counted:
            game = stored.progress.played(row)
            counts.add(replace(game, pair=offset + game.pair), row.fault, row.lateness, row.seconds)
        offset += len(stored.run.schedule)
    facts = [stored.facts for stored in runs]
    limits, openings = ({fact.limits for fact in facts}, {fact.openings for fact in facts})
    return RunFacts(
        name=" + ".join(fact.name for fact in facts),
        format="joined" if len(facts) > 1 else facts[0].format,
        engines=tuple(dict.fromkeys(name for fact in facts for name in fact.engines)),
        variants=tuple(dict.fromkeys(name for fact in facts for name in fact.variants)),
        limits=limits.pop() if len(limits) == 1 else "various limits",
        openings=openings.pop() if len(openings) == 1 else "various",
        seed=facts[0].seed,
        slots=max(fact.slots for fact in facts),
        pairs=offset,
        swap=all(fact.swap for fact in facts),
    ), counts


def _anchor(text: str, engines: Sequence[str]) -> tuple[str, float]:
    """`NAME=ELO`; ReportError says what is wrong."""
    name, sign, number = text.rpartition("=")
    try:
        elo = float(number)
    except ValueError:
        elo = math.nan
    if not sign or not abs(elo) <= 10_000:
        raise ReportError(f"anchor {shorten(text)}: expected NAME=ELO, ELO from -10000 to 10000")
    if name not in engines:
        known = ", ".join(map(safe, engines))
        raise ReportError(f"anchor {shorten(name)}: expected one of {known}{nearest(name, engines)}")
    return name, elo


def _print_summary(summary: Summary, as_json: bool, *, plain: bool) -> None:
    if as_json:
        print(json.dumps(document(summary), indent=1))
        return
    for line in final(summary):
        print(encodable(line, "ascii" if plain else sys.stdout.encoding))


def _write_records(stored: Stored, path: Path) -> None:
    """All records at once, or none."""
    from . import records
    from .store import Export

    maker = records.Maker(stored.facts.name, stored.run.specs)
    stored.store.rebuild(Export("records", path.absolute(), maker.tafl))


def _write_html(stored: Stored, summary: Summary, path: Path, *, plain: bool) -> None:
    """The page, whole or not at all; on a terminal with its progress, since every game is played through."""
    from hnefi.engine import durable
    from hnefi.engine.regular import replaceable

    from ..common.live import Live
    from .html import page

    replaceable(path.absolute())
    live = Live(sys.stderr, plain=plain)
    whole = len(stored.progress.counted)

    def progress(done: int) -> None:
        live.show(lambda: [f"games {done:,}/{whole:,}"])

    text = page(summary, stored.games(), stored.run.specs, progress)
    live.close()
    durable.put(path.absolute(), text)
    print(path, file=sys.stderr)


def _show_game(stored: Stored, word: str) -> int:
    """One game as a record, with the last lines of the loser's process."""
    from . import records
    from .logs import TRAFFIC

    pair, _, game = word.partition(".")
    place = (int(pair), int(game)) if pair.isdecimal() and game in ("1", "2") and len(pair) < 12 else (0, 0)
    row = stored.store.rows.get(place)
    if row is None:
        raise ReportError(f"game {shorten(word)}: expected the id of a game of this run, such as 17.2")
    result = stored.store.result(row)
    lines = stored.store.folder / TRAFFIC / f"{result.task.id}.txt.gz"
    if lines.is_file():
        print(f"all its lines: zcat {shlex.quote(str(lines))}", file=sys.stderr)
    sys.stdout.write(records.Maker(stored.facts.name, stored.run.specs).tafl(result).decode())
    tail = str(result.extra.get("stderr", ""))
    for line in tail.splitlines():
        print(safe(line), file=sys.stderr)
    return 0


def _guarded(command: str, action: Any) -> int:
    """Errors are one sentence on standard error, and 2; 4 for a file that cannot be written."""
    from .options import ConfigError
    from .store import StoreError

    try:
        code: int = action()
    except (ConfigError, StoreError, ReportError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        text = str(error)
        if isinstance(error, OSError):
            text = (
                f"{unwritten(error)}: expected a {'file' if error.filename else 'place'} that can be written"
            )
        print(f"hnefi {command}: {safe(text)}", file=sys.stderr)
        return code_of(error)
    return code


# Bare counts


PAIRS = "LL,LD,WL+DD,WD,WW"
WDL = "W,D,L"


def main_stats(argv: list[str]) -> int:
    """Print what the counts say; the exit status is 2 for counts or a test that make no sense."""
    options = parser(
        "arena stats",
        "Elo, normalized Elo, likelihood of superiority (LOS) and the state of a\n"
        "sequential test of engine A against engine B, from counts alone: games that A\n"
        "won, drew and lost, or pairs (two games, sides swapped) by A's two results. The\n"
        "middle count may be given split: pairs that one side won twice + two draws.",
        [
            "--pairs 13,37,50,25,3 --sprt normalized,0,4",
            "--pairs 13,37,41+9,25,3 --json",
            "--wdl 136,111,96 --sprt logistic,0,5,0.05,0.05",
        ],
    )
    counts_of = options.add_mutually_exclusive_group(required=True)
    counts_of.add_argument("--pairs", metavar=PAIRS, help="pairs, from two losses of A to two wins")
    counts_of.add_argument("--wdl", metavar=WDL, help="single games of A")
    options.add_argument(
        "--sprt",
        metavar="MODEL,ELO0,ELO1[,ALPHA,BETA]",
        help="a sequential test of ELO0 (H0) against ELO1 (H1), error rates 0.05 if not given; MODEL is "
        f"{', '.join(MODELS)} (the bayesian ones for --wdl only)",
    )
    options.add_argument(
        "--json", action="store_true", help="the same as one JSON object, undefined numbers null"
    )
    arguments = options.parse_args(argv)
    try:
        if arguments.pairs is not None:
            counts, split = parse_pairs(arguments.pairs)
        else:
            counts, split = parse_wdl(arguments.wdl), None
        test = parse(arguments.sprt, "pair" if len(counts) == 5 else "game") if arguments.sprt else None
    except ValueError as error:
        options.error(str(error))
    if arguments.json:
        print(json.dumps(as_json(counts, split, test), indent=2))
    else:
        print("\n".join(stats_block(counts, split, test)))
    return 0


def parse_pairs(text: str) -> tuple[tuple[int, ...], tuple[int, int] | None]:
    """The five counts, and the middle one's two parts if it was given split; ValueError says what is wrong."""
    parts = text.split(",")
    if len(parts) != 5:
        raise ValueError(f"{shorten(text)}: expected five counts {PAIRS}")
    middle = [_count(part) for part in parts[2].split("+", 2)]
    if len(middle) > 2:
        raise ValueError(f"{shorten(parts[2])}: expected one count, or two joined by +")
    counts = (_count(parts[0]), _count(parts[1]), sum(middle), _count(parts[3]), _count(parts[4]))
    check_counts(counts)
    return counts, (middle[0], middle[1]) if len(middle) == 2 else None


def parse_wdl(text: str) -> tuple[int, ...]:
    """Losses, draws and wins from `W,D,L`; ValueError says what is wrong."""
    parts = text.split(",")
    if len(parts) != 3:
        raise ValueError(f"{shorten(text)}: expected three counts {WDL}")
    counts = tuple(_count(part) for part in reversed(parts))
    check_counts(counts)
    return counts


def _count(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise ValueError(f"{shorten(text)}: expected a whole number from 0 on")
    return int(text)


def stats_block(counts: tuple[int, ...], split: tuple[int, int] | None, test: Sprt | None) -> list[str]:
    """The lines for people: counts, score, Elo, nElo and LOS, then the test with its verdict."""
    pairs = len(counts) == 5
    unit = "pairs" if pairs else "games"
    said = estimate(counts)
    lines = [f"{unit:<8}{said.n:,}: {_counts(counts)}"]
    if split:
        lines.append(f"{'':<8}in the middle: same side won twice {split[0]:,}, two draws {split[1]:,}")
    lines += [f"{name:<8}{text}" for name, text in strength(said, unit)]
    if test:
        lines += [f"{name:<8}{text}" for name, text in progress(test, test.llr(counts), unit)]
        lines.append(test.sentence(test.llr(counts), "A", "B", f"{said.n:,} {unit}"))
    return lines


def as_json(counts: tuple[int, ...], split: tuple[int, int] | None, test: Sprt | None) -> dict[str, Any]:
    """The same for programs: counts first, undefined (and infinite) numbers None."""
    pairs = len(counts) == 5
    document: dict[str, Any] = {
        "pairs": list(counts) if pairs else None,
        "middle": {"same_side_twice": split[0], "two_draws": split[1]} if split else None,
        "wdl": None if pairs else list(reversed(counts)),
        **{name: _finite(value) for name, value in asdict(estimate(counts)).items()},
        "sprt": None,
    }
    if test:
        llr = test.llr(counts)
        lower, upper = test.bounds
        document["sprt"] = {
            **asdict(test),
            "lower": lower,
            "upper": upper,
            "llr": llr,
            "accepted": test.accepts(llr),
            "expected": dict(zip(("h0", "h1", "midway"), test.expected, strict=True))
            if test.expected
            else None,
        }
    return document


def _counts(counts: tuple[int, ...]) -> str:
    if len(counts) == 5:
        return "  ".join(f"{name} {count:,}" for name, count in zip(PAIRS.split(","), counts, strict=True))
    return "  ".join(
        f"{name} {count:,}" for name, count in zip(("W", "D", "L"), reversed(counts), strict=True)
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
