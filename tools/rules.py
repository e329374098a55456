"""`hnefi rules`: one variant's rules, for people in sentences, for programs switch by switch."""

from __future__ import annotations

import json
import sys

from .arguments import add_variant_path, find_tafl_variant, parser


def main(argv: list[str]) -> int:
    """Print the rules of one variant in the form that was asked for."""
    options = parser(
        "rules",
        "The rules of one variant: the board and plain sentences, or every switch, or the OTN string, or the hash.",
        ["copenhagen", "brandubh --switches", "tablut-linnaeus --otn", "my-own.toml --hash"],
    )
    options.add_argument("variant", metavar="VARIANT", help="name or alias of a variant, or a TOML file")
    form = options.add_mutually_exclusive_group()
    form.add_argument("--switches", action="store_true", help="every switch with its value")
    form.add_argument("--otn", action="store_true", help="the OTN rules string; on stderr what it cannot say")
    form.add_argument("--hash", action="store_true", help="the rules hash: equal exactly for equal games")
    form.add_argument("--json", action="store_true", help="all of it as one JSON object")
    add_variant_path(options)
    arguments = options.parse_args(argv)
    variant = find_tafl_variant(options, arguments.variant, arguments.path)

    if arguments.hash:
        print(variant.hash)
    elif arguments.switches:
        width = max(len(switch) for switch, _ in variant.rules_lines())
        print("\n".join(f"{switch:<{width}}  {value}" for switch, value in variant.rules_lines()))
    elif arguments.otn:
        from hnefi.engine.otn import export_rules

        text, lost = export_rules(variant)
        print(text)
        if lost:
            print(f"OTN cannot say: {' '.join(lost)}", file=sys.stderr)
    elif arguments.json:
        from hnefi.engine.otn import export_rules

        from .variants import as_json

        text, lost = export_rules(variant)
        whole = {**as_json(variant), "rules": dict(variant.rules_lines()), "otn": text, "otn_lost": lost}
        print(json.dumps(whole, indent=2, ensure_ascii=False))
    else:
        from hnefi.engine.diagram import diagram
        from hnefi.engine.explain import explain

        print(variant.name)
        print()
        print(diagram(variant.rules, dict(variant.start.pieces)))
        print()
        print("\n".join(explain(variant)))
    return 0
