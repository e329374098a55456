"""`hnefi variants`: the rule sets there are."""

from __future__ import annotations

import json

from hnefi.engine.variant import Variant, VariantError, everything

from .arguments import add_variant_path, parser


def main(argv: list[str]) -> int:
    """List every variant, as a table or as JSON."""
    options = parser(
        "variants",
        "The rule sets there are. Adding one is writing one TOML file; see engine/variants for examples.",
        ["", "--json", "--path my-variants/"],
    )
    add_variant_path(options)
    options.add_argument("--json", action="store_true", help="everything known about each, as a JSON list")
    arguments = options.parse_args(argv)
    try:
        found = everything(arguments.path)
    except VariantError as error:
        options.error(str(error))
    if arguments.json:
        print(json.dumps([as_json(variant) for variant in found], indent=2, ensure_ascii=False))
    else:
        print("\n".join(table(found)))
    return 0


def table(found: list[Variant]) -> list[str]:
    """One line per variant under a headline, then where to read more."""
    width = max(len(variant.name) for variant in found)
    lines = [f"{'name':<{width}}  board  a : d  first  also called"]
    for variant in found:
        board = f"{variant.size} x {variant.size}"
        men = f"{variant.attackers}:{variant.defenders}+K"
        aliases = ", ".join(variant.aliases) or "-"
        lines.append(f"{variant.name:<{width}}  {board:>7} {men:>7} {variant.rules.first:^5}  {aliases}")
    return [*lines, "", "hnefi rules NAME explains one of them."]


def as_json(variant: Variant) -> dict[str, object]:
    """What programs want to know; `rules_hash` is equal exactly for equal games."""
    return {
        "name": variant.name,
        "aliases": list(variant.aliases),
        "files": variant.size,
        "ranks": variant.size,
        "attackers": variant.attackers,
        "defenders": variant.defenders,
        "first": variant.rules.first,
        "startpos": variant.startpos,
        "description": variant.description,
        "source": variant.source,
        "rules_hash": variant.hash,
    }
