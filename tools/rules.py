"""`hnefi rules`: one variant's rules, for people in sentences, for programs switch by switch; `rules diff` for two."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hnefi.protocol.hosts.exit_codes import code_of
from hnefi.protocol.hosts.text_table import aligned

from .common.arguments import add_variant_path, find_variant, parser

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.engine.games.tafl.variant import Variant


def main(argv: list[str]) -> int:
    """Print the rules of one variant in the form that was asked for, or how two variants differ."""
    if argv[:1] == ["diff"]:
        return diff(argv[1:])
    options = parser(
        "rules",
        "Shows the rules of one variant: the board and plain sentences, or every switch, or the OTN string, or the "
        "hash, or a drawing. `hnefi rules diff A B` shows how two variants differ.",
        [
            "copenhagen",
            "brandubh --switches",
            "tablut-linnaeus --otn",
            "my-own.toml --hash",
            "berserk --svg board.svg",
            "diff copenhagen fetlar",
        ],
    )
    options.add_argument(
        "variant", metavar="VARIANT", help="name or alias of a variant, or a TOML file; also as --variant"
    )
    options.takes_variant()
    form = options.add_mutually_exclusive_group()
    form.add_argument("--switches", action="store_true", help="every switch with its value")
    form.add_argument(
        "--otn", action="store_true", help="the OTN rules string; what it cannot express goes to stderr"
    )
    form.add_argument("--hash", action="store_true", help="the rules hash: equal exactly for equal games")
    form.add_argument("--json", action="store_true", help="all of it as one JSON object")
    form.add_argument(
        "--svg",
        metavar="FILE",
        nargs="?",
        const="-",
        type=svg_file,
        help="draw the start position into FILE (ending in .svg), or print the drawing",
    )
    add_variant_path(options)
    arguments = options.parse_args(argv)
    variant = find_variant(options, arguments.variant, arguments.path)

    if arguments.hash:
        print(variant.hash)
    elif arguments.switches:
        print("\n".join(aligned(variant.rules_lines())))
    elif arguments.otn:
        from hnefi.engine.games.tafl.otn import export_rules

        text, lost = export_rules(tafl(options, variant, "--otn"))
        print(text)
        if lost:
            print(f"OTN cannot express: {' '.join(lost)}", file=sys.stderr)
    elif arguments.svg is not None:
        draw(tafl(options, variant, "--svg"), arguments.svg)
    elif arguments.json:
        print(json.dumps(whole(variant), indent=2, ensure_ascii=False))
    else:
        print("\n".join(shown(variant)))
    return 0


def svg_file(text: str) -> str:
    """A file that a drawing may replace, or `-`; anything else may be a slip that would cost a file."""
    if text == "-" or text.endswith(".svg"):
        return text
    raise argparse.ArgumentTypeError(f"{text[:80]!r}: expected a file name ending in .svg, or -")


def tafl(options: argparse.ArgumentParser, variant: AnyVariant, asked: str) -> Variant:
    """`variant` if it has the rule switches of tafl; otherwise the program ends with the reason."""
    from hnefi.engine.games.tafl.variant import Variant

    if not isinstance(variant, Variant):
        options.error(f"{asked}: {variant.name}: expected a tafl variant, not {variant.game}")
    return variant


def draw(variant: Variant, file: str) -> None:
    """Write the start position's drawing."""
    from hnefi.engine.svg import svg

    drawing = svg(variant.rules, dict(variant.start.pieces), title=f"{variant.name}: start position")
    if file == "-":
        print(drawing, end="")
        return
    try:
        Path(file).write_text(drawing, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        print(
            f"hnefi rules: --svg: {file[:200]!r}: {reason}: expected a file that can be written",
            file=sys.stderr,
        )
        raise SystemExit(code_of(error)) from None


def whole(variant: AnyVariant) -> dict[str, object]:
    """Everything about a variant for programs; the OTN string is null for games that have none."""
    from hnefi.engine.games.tafl.otn import export_rules
    from hnefi.engine.games.tafl.variant import Variant

    from .variants import as_json

    text, lost = export_rules(variant) if isinstance(variant, Variant) else (None, [])
    return {**as_json(variant), "rules": dict(variant.rules_lines()), "otn": text, "otn_lost": lost}


def shown(variant: AnyVariant) -> list[str]:
    """Name, start position and rules, for people."""
    from hnefi.engine.games.tafl.variant import Variant

    source = ["", f"Source: {variant.source}"] if variant.source else []
    if isinstance(variant, Variant):
        from hnefi.engine.games.tafl.diagram import LEGEND, diagram
        from hnefi.engine.games.tafl.explain import explain

        board = diagram(variant.rules, dict(variant.start.pieces))
        legend = ["", LEGEND] if any(sign in board for sign in "+x:;") else []
        return [variant.name, "", board, *legend, "", *explain(variant), *source]

    from hnefi.engine import games

    described = [variant.description] if variant.description else []
    return [
        variant.name,
        "",
        games.initial(variant).diagram(),
        "",
        *described,
        *aligned(variant.rules_lines()),
        *source,
    ]


def diff(argv: list[str]) -> int:
    """Print where two variants differ and what each of them does there."""
    options = parser(
        "rules diff",
        "Shows how two variants differ: board, men and start position, then every rule switch, with a sentence for "
        "each.",
        ["copenhagen fetlar", "brandubh my-own.toml", "tablut tablut-saami --switches"],
    )
    options.add_argument("first", metavar="A", help="name or alias of a variant, or a TOML file")
    options.add_argument("second", metavar="B", help="another one")
    form = options.add_mutually_exclusive_group()
    form.add_argument("--switches", action="store_true", help="the switches' values instead of sentences")
    form.add_argument("--json", action="store_true", help="both as one JSON object")
    add_variant_path(options)
    arguments = options.parse_args(argv)
    first, second = (
        tafl(options, find_variant(options, word, arguments.path), "diff")
        for word in (arguments.first, arguments.second)
    )

    if arguments.json:
        print(json.dumps(differences(first, second), indent=2, ensure_ascii=False))
    elif first.hash == second.hash:
        print(f"{first.name} and {second.name} are the same game.")
    elif arguments.switches:
        print("\n".join(side_by_side(first, second)))
    else:
        from hnefi.engine.games.tafl.explain import compare

        width = max(len(first.name), len(second.name))
        print(
            "\n\n".join(
                f"{found.subject}\n  {first.name:<{width}}  {found.first}\n  {second.name:<{width}}  {found.second}"
                for found in compare(first, second)
            )
        )
    return 0


def different_lines(first: Variant, second: Variant) -> list[tuple[str, str, str]]:
    """Every switch, and the start position at the end, with both values where these differ."""
    lines = zip(
        (*first.rules_lines(), ("start", first.rows)),
        (*second.rules_lines(), ("start", second.rows)),
        strict=True,
    )
    return [(name, one, other) for (name, one), (_, other) in lines if one != other]


def side_by_side(first: Variant, second: Variant) -> list[str]:
    """A table with a column for each variant; long values wrap nothing, they come last."""
    rows = [("", first.name, second.name), *different_lines(first, second)]
    widths = [max(len(row[column]) for row in rows if len(row[column]) <= 40) for column in (0, 1)]
    return [f"{name:<{widths[0]}}  {one:<{widths[1]}}  {other}" for name, one, other in rows]


def differences(first: Variant, second: Variant) -> dict[str, object]:
    """What `rules diff` says, for programs."""
    from hnefi.engine.games.tafl.explain import compare

    return {
        "variants": [first.name, second.name],
        "same": first.hash == second.hash,
        "differences": [
            {"subject": found.subject, "says": [found.first, found.second]}
            for found in compare(first, second)
        ],
        "switches": {name: [one, other] for name, one, other in different_lines(first, second)},
    }
