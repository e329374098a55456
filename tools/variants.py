"""`hnefi variants`: the rule sets there are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .common.arguments import add_variant_path, parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hnefi.engine.games.base_variant import AnyVariant


def main(argv: list[str]) -> int:
    """List every variant, as a table or as JSON."""
    options = parser(
        "variants",
        "Lists the rule sets. To add one, write a TOML file; see engine/variants for examples.",
        ["", "--json", "--path my-variants/"],
    )
    add_variant_path(options)
    options.add_argument("--json", action="store_true", help="everything known about each, as a JSON list")
    arguments = options.parse_args(argv)

    from hnefi.engine.games import everything
    from hnefi.engine.games.base_variant import VariantError

    try:
        found = everything(arguments.path)
    except VariantError as error:
        options.error(str(error))
    if arguments.json:
        print(json.dumps([as_json(variant) for variant in found], indent=2, ensure_ascii=False))
    else:
        print("\n".join(table(found)))
    return 0


def table(found: Sequence[AnyVariant]) -> list[str]:
    """One line per variant under a headline, small boards first, other games last; then where to read more."""
    width = max(len(variant.name) for variant in found)
    lines = [f"{'name':<{width}}    a : d    first  also called"]
    boards: dict[tuple[bool, int, int], list[AnyVariant]] = {}
    for variant in found:
        place = (variant.game != "tafl", variant.files, variant.ranks)
        boards.setdefault(place, []).append(variant)
    for (foreign, files, ranks), group in sorted(boards.items()):
        lines += ["", f"{files} x {ranks}" + (f", {group[0].game}" if foreign else "")]
        for variant in group:
            men = f"{variant.attackers}:{variant.defenders}" + ("" if foreign else "+K")
            row = f"{variant.name:<{width}}  {men:>7}    {variant.first}    {', '.join(variant.aliases)}"
            lines.append(row.rstrip())
    return [
        *lines,
        "",
        f"{found[0].name} is played if nothing else is chosen.",
        "hnefi rules NAME explains one, hnefi rules diff NAME NAME compares two.",
    ]


def as_json(variant: AnyVariant) -> dict[str, object]:
    """What programs want to know; `rules_hash` is equal exactly for equal games."""
    return {
        "name": variant.name,
        "aliases": list(variant.aliases),
        "game": variant.game,
        "files": variant.files,
        "ranks": variant.ranks,
        "attackers": variant.attackers,
        "defenders": variant.defenders,
        "first": variant.first,
        "startpos": variant.startpos,
        "description": variant.description,
        "source": variant.source,
        "rules_hash": variant.hash,
    }
