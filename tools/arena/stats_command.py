"""`hnefi arena stats`: what bare counts say, without a run."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from hnefi.engine.wording import shorten

from ..common.arguments import parser
from ..common.sprt import MODELS, Sprt, parse
from ..common.statistics import Estimate, check_counts, estimate

PAIRS = "LL,LD,WL+DD,WD,WW"
WDL = "W,D,L"


def main(argv: list[str]) -> int:
    """Print what the counts say; the exit status is 2 for counts or a test that are none."""
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
        print("\n".join(block(counts, split, test)))
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


def block(counts: tuple[int, ...], split: tuple[int, int] | None, test: Sprt | None) -> list[str]:
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


def strength(said: Estimate, unit: str) -> list[tuple[str, str]]:
    """Score, Elo, nElo and LOS in words, each with its name."""
    if said.score is None:
        return [("score", f"undefined: no {unit}")]
    lines = [("score", f"{100 * said.score:.2f} %" + _error(said.score_error, 100, 2))]
    if said.elo is None or said.elo_low is None or said.elo_high is None or said.los is None:
        return [*lines, ("Elo", f"undefined: fewer than two {unit}")]
    if math.isinf(said.elo):
        least, bound = ("at least", said.elo_low) if said.elo > 0 else ("at most", said.elo_high)
        lines.append(("Elo", f"{said.elo:+}, {least} {bound:+.1f} (95 %, one-sided)"))
    else:
        lines.append(("Elo", f"{said.elo:+.2f}{_error(said.elo_error, 1, 2)}"))
    if said.nelo is None:
        lines.append(("nElo", f"undefined: all {unit} ended alike"))
    else:
        lines.append(("nElo", f"{said.nelo:+.2f}{_error(said.nelo_error, 1, 2)}"))
    return [*lines, ("LOS", f"{100 * said.los:.2f} %")]


def progress(
    test: Sprt, llr: float | None, unit: str, bounds: tuple[float, float] | None = None
) -> list[tuple[str, str]]:
    """The test, its ratio between the bounds (the test's own if not given), and how long it should take, each with its
    name."""
    lower, upper = bounds or test.bounds
    lines = [
        ("test", f"{test.model} [{test.elo0:g}, {test.elo1:g}], alpha {test.alpha:g}, beta {test.beta:g}"),
    ]
    if llr is None:
        lines.append(("LLR", f"undefined; bounds {lower:+.4f} and {upper:+.4f}"))
    else:
        hypothesis, share = test.share(llr, bounds)
        lines.append(
            ("LLR", f"{llr:+.4f}, {100 * share:.0f} % of {hypothesis}; bounds {lower:+.4f} and {upper:+.4f}")
        )
    if test.expected:
        h0, h1, midway = (f"{math.ceil(number):,}" for number in test.expected)
        lines.append(("expect", f"{h0} {unit} if H0 is true, {h1} if H1 is, {midway} midway"))
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


def _error(error: float | None, scale: float, digits: int) -> str:
    return "" if error is None else f" ± {scale * error:.{digits}f}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
