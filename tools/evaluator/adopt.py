"""`hnefi evaluator adopt`: an evaluator for other rules on the same board."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.exit_codes import USAGE

from ..common.arguments import add_variant_path, find_variant, parser


def main(argv: list[str]) -> int:
    """Write a copy that is for other rules; 0, or 2 if that cannot be done."""
    from hnefi.engine.evaluators import SUFFIX, file_of, files, is_file

    options = parser(
        "evaluator adopt",
        "Writes a copy of an evaluator for other rules on a board of the same size. The weights stay "
        "as they are, so it plays by what it learned under its own rules; hnefi train can take it as a first teacher.",
        ["net-copenhagen-2 --variant fetlar --out for-fetlar.safetensors"],
    )
    options.add_argument("file", metavar="FILE", help="a .safetensors file, or a network that ships")
    options.add_argument("--variant", metavar="V", required=True, help="the rules that the copy is for")
    options.add_argument("-o", "--out", metavar="FILE", required=True, help="where to write the copy")
    options.add_argument("--force", action="store_true", help="replace the file if it exists")
    add_variant_path(options)
    given = options.parse_args(argv)
    if not is_file(given.out):
        options.error(f"--out {shorten(given.out)}: expected a file whose name ends in {SUFFIX}")
    if Path(given.out).exists() and not given.force:
        options.error(f"--out {shorten(given.out)}: already exists: expected --force to replace it")
    variant = find_variant(options, given.variant, given.path)
    try:
        own = files.load(file_of(given.file), variant, any_rules=True)
        document = {key: value for key, value in own.document.items() if key in ("output", "licence")}
        document |= {
            "parents": [{"variant": own.variant, "rules_hash": own.rules_hash, "sha256": own.sha256}]
        }
        files.save(given.out, replace(own, variant=variant.name, rules_hash=variant.hash, document=document))
    except (ValueError, OSError) as error:
        print(f"hnefi evaluator adopt: {error}", file=sys.stderr)
        return USAGE
    print(
        f"{given.out}: the weights of {given.file}, made for {own.variant}, as an evaluator for {variant.name}"
    )
    return 0
