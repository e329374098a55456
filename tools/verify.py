"""`hnefi verify`: do the rules agree with games that were really played?"""

from __future__ import annotations

import json
import time

from hnefi.engine.records.corpus import CorpusError
from hnefi.engine.records.replay import Report, replay_file
from hnefi.engine.sides import Reason
from hnefi.engine.wording import counted

from .common.arguments import add_variant_path, find_tafl_variant, let_interrupt_end_us, parser


def main(argv: list[str]) -> int:
    """Replay a file of games; 1 if anything in it disagrees with the rules, 2 if it cannot be read."""
    options = parser(
        "verify",
        "Replays every game of FILE and reports each point where the rules and the record disagree: an illegal move, "
        "other captures, a move after the end, another result, a refused move that is legal.",
        ["games.csv --variant copenhagen", "games.jsonl --variant tablut-bologna --json"],
    )
    options.add_argument("file", metavar="FILE", help="recorded games: .csv or .jsonl")
    options.add_argument("--variant", required=True, metavar="V", help="the rules they were played by")
    options.add_argument(
        "--adjudicate",
        action="store_true",
        help="also end CSV games by repetition, limits, draw forts and hopeless positions, as the variant says",
    )
    options.add_argument("--json", action="store_true", help="the report as one JSON object")
    add_variant_path(options)
    arguments = options.parse_args(argv)
    let_interrupt_end_us()
    variant = find_tafl_variant(options, arguments.variant, arguments.path)
    began = time.perf_counter()
    try:
        report = replay_file(arguments.file, variant, adjudicate=arguments.adjudicate)
    except CorpusError as error:
        options.error(str(error))
    seconds = time.perf_counter() - began
    if arguments.json:
        print(json.dumps(as_json(report, variant.name, seconds), indent=2))
    else:
        print("\n".join(text(report, variant.name, seconds)))
    return 0 if report.agrees else 1


def text(report: Report, variant: str, seconds: float) -> list[str]:
    """One line per disagreement, then the totals."""
    ends = ", ".join(f"{reason.words} {count}" for reason, count in in_order(report)) or "none"
    return [
        *map(str, report.disagreements),
        f"{counted(report.games, 'game')}, {counted(report.plies, 'ply', 'plies')} of {variant} in {seconds:.2f} s",
        f"ended by the rules: {ends}",
        f"refused moves tried: {report.refused}",
        f"disagreements: {len(report.disagreements)}",
    ]


def as_json(report: Report, variant: str, seconds: float) -> dict[str, object]:
    """The report for programs; `seconds` is what it took."""
    return {
        "variant": variant,
        "games": report.games,
        "plies": report.plies,
        "ends": dict(in_order(report)),
        "refused": report.refused,
        "disagreements": [
            {"line": found.line, "ply": found.ply, "text": found.text} for found in report.disagreements
        ],
        "seconds": round(seconds, 3),
    }


def in_order(report: Report) -> list[tuple[Reason, int]]:
    """The declared ends by reason, in the order in which a move is judged."""
    return sorted(report.ends.items(), key=lambda end: end[0].code)
