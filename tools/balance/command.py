"""`hnefi balance`: rule sets played by equal players of rising strength; compared switch by switch; made fairer."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.exit_codes import INTERRUPTED, USAGE, code_of

from ..common import arguments, interrupts
from ..common.live import duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..common.live import Live
    from .entrants import Entrant
    from .folder import Plan
    from .run import Runner
    from .searching import Found

"""Minimum seconds between two plain lines."""
GAMES = {"table": 200, "diff": 600, "search": 0}
"""Games of each rule set and player by default."""
SEARCHER = "default-2026.1@400"
"""The player of a search by default."""
EXAMPLES = (
    "brandubh tablut-linnaeus --games 100 --out fair",
    "all --players random-terminal,simple,default-2026.1@400 --jobs 2 --out everything",
    "people --games 300 --strongest 1100 --out people",
    "points --players simple-d3,default-2026.1@1600 --games 400 --out points",
    "--diff copenhagen shieldwall=off fetlar --players default-2026.1@400 --out walls",
    "--diff brandubh king_sides=4+king_sides_beside_throne=4",
    "--search sea-battle-9 --players default-2026.1@400 --doubles 6 --out fairer",
    "resume people",
    "report people",
)
DESCRIPTION = """\
Plays rule sets with the same player on both sides, from distinct random openings, and says which side they favour:
score, wins and draws with intervals, lengths, captures, ends. RULES are variants, files, variants with switches
changed (copenhagen+shieldwall=off), or a set:

  all      every tafl variant
  people   those whose results among people are known
  points   the differences between rule sets that a paper names, each changed alone

  hnefi balance resume DIR   continue a run
  hnefi balance report DIR   write its report again, even during the run

PLAYERS are names of `hnefi players` or files, weak ones first; NAME@1600 searches 1600 nodes a move, NAME@d5 five
plies.
"""


def main(argv: list[str]) -> int:
    """Play or report; 0 when done, 1 if interrupted, 2 for anything impossible."""
    from .entrants import BalanceError

    try:
        if argv[:1] == ["resume"]:
            return _resume(argv[1:])
        if argv[:1] == ["report"]:
            return _report(argv[1:])
        return _start(argv)
    except BalanceError as error:
        print(f"hnefi balance: {error}", file=sys.stderr)
        return code_of(error)
    except Exception as error:
        from ..common.workers import WorkerFailed

        if not isinstance(error, WorkerFailed):
            raise
        print(f"hnefi balance: {error}", file=sys.stderr)
        return USAGE


def _start(argv: list[str]) -> int:
    from . import strength
    from .folder import prepare
    from .playing import MOST_PLIES
    from .searching import Terms

    parser = arguments.parser("balance", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "rules", nargs="+", metavar="RULES", help="what is played, as above; also as --variant V,V"
    )
    parser.takes_variant()
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--diff",
        action="store_true",
        help="compare the first RULES with each of the others, which may be SWITCH=VALUE in it",
    )
    form.add_argument(
        "--search", action="store_true", help="look for the smallest changes of switches that make RULES even"
    )
    parser.add_argument(
        "--players",
        metavar="A,B,...",
        help=f"({', '.join(strength.DEFAULT)}; with --search the last one plays, {SEARCHER})",
    )
    parser.add_argument(
        "--games",
        type=arguments.positive,
        metavar="N",
        help="games of each rule set and player (200; --diff: 600)",
    )
    parser.add_argument(
        "--strongest", type=arguments.positive, metavar="N", help="games of the last player (as --games)"
    )
    parser.add_argument(
        "--seed", type=arguments.natural, default=1, metavar="S", help="seed of everything random (1)"
    )
    parser.add_argument(
        "--plies",
        type=arguments.positive,
        default=MOST_PLIES,
        metavar="N",
        help=f"a game still open after N plies is a draw ({MOST_PLIES})",
    )
    terms = asdict(Terms())
    for name, text in {
        "first": "with --search: games of each rule set in the first round",
        "keep": "with --search: rule sets left at the end",
        "confirm": "with --search: fresh games of each of these",
        "pairs": "with --search: also try pairs of the N best changes",
        "most_draws": "with --search: a rule set with more draws than this percentage does not count as even",
    }.items():
        kind = arguments.natural if name in ("pairs", "most_draws") else arguments.positive
        flag = _flag(name)
        parser.add_argument(flag, dest=name, type=kind, metavar="N", help=f"{text} ({terms[name]})")
    _add_common(parser)
    parser.renamed("--pairs", "--doubles")
    arguments.add_out(parser, "DIR", "the run's folder (balance)", default="balance")
    arguments.add_variant_path(parser)
    given = parser.parse_args(argv)
    told = {name: getattr(given, name) for name in terms if getattr(given, name) is not None}
    if told and not given.search:
        parser.error(f"{_flag(next(iter(told)))}: expected only with --search")
    if given.search and (given.games or given.strongest):
        parser.error("--games, --strongest: expected --first and --confirm with --search")
    plan = _plan(given, told)
    folder = Path(given.out)
    prepare(folder, plan)
    return _conduct(folder, plan, given)


def _flag(term: str) -> str:
    """The flag of a term of a search; `pairs` are pairs of switches, while in other commands they are games."""
    return "--doubles" if term == "pairs" else f"--{term.replace('_', '-')}"


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=arguments.positive, metavar="J", help="processes (as many as cores)")
    arguments.add_backend(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments.add_png(parser)
    arguments.add_plain(parser)


def _plan(given: argparse.Namespace, told: Mapping[str, int]) -> Plan:
    """The plan that the command line asks for; BalanceError if it is impossible."""
    from hnefi.engine.wording import shorten

    from . import entrants, strength
    from .entrants import BalanceError
    from .folder import Plan
    from .searching import Terms

    kind = "diff" if given.diff else "search" if given.search else "table"
    alone = next((word for word in given.rules if entrants.is_change(word)), None)
    if kind != "diff" and alone is not None:
        raise BalanceError(f"{shorten(alone)}: expected --diff before, or VARIANT+SWITCH=VALUE")
    if kind == "diff":
        base, *others = given.rules
        if not others:
            raise BalanceError(
                "--diff: expected something to compare with the first: SWITCH=VALUE or a variant"
            )
        chosen = entrants.compared(entrants.parse(base, given.path), others, given.path)
    else:
        chosen = _chosen(given.rules, given.path)
    if kind == "search" and len(chosen) != 1:
        raise BalanceError(f"--search: {len(chosen)} rule sets: expected one")
    players = [player.label for player in strength.several(given.players)] if given.players else None
    if players is None:
        players = [SEARCHER] if kind == "search" else list(strength.DEFAULT)
    if kind == "search":
        players = players[-1:]
        misfit = strength.parse(players[0]).misfit(chosen[0].variant)
        if misfit is not None:
            raise BalanceError(misfit)
    games = given.games or GAMES[kind]
    search = asdict(replace(Terms(), **told)) if kind == "search" else {}
    return Plan(
        kind, tuple(chosen), tuple(players), games, given.strongest or games, given.seed, given.plies, search
    )


def _chosen(words: Sequence[str], path: str | None = None) -> list[Entrant]:
    """The rule sets named on the command line; `all`, `people` and `points` each name several."""
    from . import entrants, people

    sets = {"all": lambda: entrants.everything(path), "people": people.entrants, "points": entrants.points}
    found: list[Entrant] = []
    for word in words:
        more = sets[word]() if word in sets else [entrants.parse(word, path)]
        known = {entrant.label for entrant in found}
        found += [entrant for entrant in more if entrant.label not in known]
    return entrants.distinct(found)


def _resume(argv: list[str]) -> int:
    from .folder import read_plan

    parser = arguments.parser("balance resume", "Continue the run in a folder.", ["people --jobs 2"])
    parser.add_argument("folder", metavar="DIR")
    _add_common(parser)
    given = parser.parse_args(argv)
    folder = Path(given.folder)
    return _conduct(folder, read_plan(folder), given)


def _report(argv: list[str]) -> int:
    from .folder import read_plan
    from .run import Runner, search_results

    parser = arguments.parser(
        "balance report",
        "Write the report of the games that a folder has so far.",
        ["people", "people --json", "people --html people.html"],
    )
    parser.add_argument("folder", metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments.add_html(parser)
    arguments.add_png(parser)
    arguments.add_plain(parser)
    given = parser.parse_args(argv)
    folder = Path(given.folder)
    plan = read_plan(folder)
    runner = Runner(folder, plan, 1, lambda *_: None)
    found = search_results(runner, plan) if plan.kind == "search" else None
    return _tell(folder, plan, runner, found, given)


def _conduct(folder: Path, plan: Plan, given: argparse.Namespace) -> int:
    """Play everything that is missing, then write the report."""
    from ..common.live import Live
    from ..common.workers import cores
    from . import searching
    from .run import Runner, cells, measured, terms_of

    live = Live(sys.stderr if given.json else sys.stdout, plain=given.plain)
    runner = Runner(folder, plan, given.jobs or cores(), _Progress(live), given.backend)
    found = None

    def words() -> list[str]:
        live.close()
        return [
            "interrupted: whatever was finished is kept; to continue:",
            f"  hnefi balance resume {shlex.quote(str(folder))}",
        ]

    with interrupts.caught(words) as caught:
        if plan.kind == "search":
            found = searching.find(plan.entrants[0], terms_of(plan), measured(runner, plan))
        else:
            runner.play(cells(plan))
    if caught.ended:
        return INTERRUPTED
    live.close()
    return _tell(folder, plan, runner, found, given)


def _tell(folder: Path, plan: Plan, runner: Runner, found: Found | None, given: argparse.Namespace) -> int:
    """Write the report and print it."""
    from . import plots, report, showing
    from .entrants import BalanceError
    from .outcome import summarize

    outcome = summarize(plan, runner.results, runner.openings, found, sorted(runner.versions), folder.name)
    try:
        drawn = plots.draw(outcome, folder / "figures", png=given.png)
        path = report.write(folder, outcome, drawn)
    except OSError as error:
        raise BalanceError(f"{folder}: {error.strerror}: expected a folder that can be written") from None
    page = getattr(given, "html", None)
    if page:
        from hnefi.engine import durable

        try:
            durable.put(Path(page).absolute(), report.page(outcome, plots.figures(outcome)))
        except OSError as error:
            raise BalanceError(f"{page}: {error.strerror}: expected a file to write") from error
    if given.json:
        print(json.dumps(report.as_json(outcome), indent=1))
        return 0
    print("\n".join(showing.shown(outcome, plain=given.plain or not _sayable())))
    print(f"report {path}")
    if page:
        print(f"page {page}")
    return 0


def _sayable() -> bool:
    """Whether standard output can encode the characters of a bar."""
    from hnefi.protocol.hosts.text_table import encodable

    from .showing import PLAIN_SIGNS

    signs = "".join(PLAIN_SIGNS)
    return encodable(signs, sys.stdout.encoding) == signs


class _Progress:
    """Progress of a run: a live line on a terminal, else a line now and then."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._began = time.monotonic()
        self._first: tuple[int, float] | None = None

    def __call__(self, done: int, whole: int, share: float, what: str) -> None:
        now = time.monotonic()
        if share == 0.0 or self._first is None:
            self._first = (done, now)
        first, began = self._first
        line = f"{what or 'games'} {done:,}/{whole:,}"
        if now > began and share > 0.0 and done > first:
            left = (now - began) * (1.0 - share) / share
            line += f" · {(done - first) / (now - began):.1f} games/s · ETA {duration(left)}"
        self._live.step(lambda: line, last=done == whole)
