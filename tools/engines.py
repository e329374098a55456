"""`hnefi engines`: the user's own engines by name."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from hnefi.protocol.hosts import registry
from hnefi.protocol.hosts.argument_types import setting
from hnefi.protocol.hosts.exit_codes import DONE, STORAGE, unwritten
from hnefi.protocol.hosts.text_table import aligned

from .common.arguments import find_variant, parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hnefi.protocol.flags import Parser


def main(argv: list[str]) -> int:
    """List, add, check or remove engines; 0 done, 2 called wrongly, 4 the file could not be written."""
    actions = {"list": show, "add": add, "check": check, "remove": remove}
    if argv and argv[0] in actions:
        return actions[argv[0]](argv[1:])
    options = parser(
        "engines",
        "Other programs as engines, under names of your own. A name can be used wherever an engine is expected: "
        "`hnefi arena NAME default`, `hnefi play --against NAME`, `hnefi analyze --engine NAME`. "
        f"They are kept in {registry.path()}.",
        ["", *_ADD, "check mybot", "remove mybot", "list --json"],
    )
    options.add_argument(
        "action",
        nargs="?",
        choices=actions,
        metavar="COMMAND",
        default="list",
        help="list, add, check or remove (list); each has its own --help",
    )
    return show([]) if options.parse_args(argv).action == "list" else DONE


_ADD = (
    "add mybot --cmd './mybot --fast' --variant brandubh",
    "add rival --cmd 'java -jar rival.jar' --option Hash=64 --description 'A rival of ours.'",
)


def show(argv: list[str]) -> int:
    """All engines, a line each."""
    options = parser("engines list", "Lists the engines that have been added.", ["", "--json"])
    options.add_argument("--json", action="store_true", help="everything known about each, as JSON")
    arguments = options.parse_args(argv)
    try:
        engines, complaints = registry.read()
    except registry.RegistryError as error:
        options.error(str(error))
    known = list(engines.values())
    for complaint in complaints.values():
        print(complaint, file=sys.stderr)
    if arguments.json:
        print(json.dumps([asdict(engine) for engine in known], indent=2, ensure_ascii=False))
    elif known:
        print("\n".join(table(known)))
    elif not complaints:
        print("no engines yet: hnefi engines add NAME --cmd 'PROGRAM ARGUMENTS'")
    return DONE


def table(known: Sequence[registry.RegisteredEngine]) -> list[str]:
    """One line an engine under a headline."""
    rows = [("name", "plays", "command")]
    rows += [(engine.name, ", ".join(engine.variants) or "all", _described(engine)) for engine in known]
    return aligned(rows)


def _described(engine: registry.RegisteredEngine) -> str:
    options = "".join(f"  {name}={value}" for name, value in engine.options.items())
    return f"{engine.command}{options}" + (f"  ({engine.description})" if engine.description else "")


def add(argv: list[str]) -> int:
    """Give an engine a name."""
    options = parser(
        "engines add",
        "Gives an engine a name. The program must exist; `hnefi engines check NAME` then tests whether it follows the "
        "protocol.",
        [example.removeprefix("add ") for example in _ADD],
    )
    options.add_argument("name", metavar="NAME", help="letters, digits and . _ + -")
    options.add_argument(
        "--cmd",
        metavar="CMD",
        required=True,
        help="its command line; it speaks uti, uci or ugi on standard input and output",
    )
    options.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="V",
        help="a variant that it plays (all, if none is given); repeatable",
    )
    options.add_argument(
        "--option",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="an option of the engine, set at every start; repeatable",
    )
    options.add_argument(
        "--clock",
        choices=registry.CLOCKS[1:],
        default="",
        help="movetime: it does not understand clocks and is sent a time for each move",
    )
    options.add_argument(
        "--letters",
        choices=registry.LETTERS[1:],
        default="",
        help="its FENs call the men a and d, the king k",
    )
    options.add_argument("--description", default="", metavar="TEXT", help="one sentence about it")
    options.add_argument("--force", action="store_true", help="replace an engine of that name")
    arguments = options.parse_args(argv)
    variants = tuple(find_variant(options, name).name for name in arguments.variant)
    engine = registry.RegisteredEngine(
        arguments.name,
        arguments.cmd,
        variants,
        arguments.description,
        arguments.clock,
        arguments.letters,
        dict(arguments.option),
    )
    try:
        file = registry.add(engine, force=arguments.force)
    except registry.RegistryError as error:
        options.error(str(error))
    except OSError as error:
        return _not_written(error)
    print(f"{arguments.name} added to {file}; next: hnefi engines check {arguments.name}")
    return DONE


def check(argv: list[str]) -> int:
    """Whether an engine follows the protocol: `hnefi arena check` of its command."""
    options = parser(
        "engines check",
        "Checks step by step that an engine follows the protocol: `hnefi arena check` of its command. Further "
        "arguments are passed on to it.",
        ["mybot", "mybot --only 'beginning*'"],
    )
    options.add_argument("name", metavar="NAME", help="one of `hnefi engines`")
    options.usage = "hnefi engines check NAME [FLAG ...]"
    # Not as a positional argument: argparse would call the flags required.
    arguments, flags = options.parse_known_args(argv)
    _expect(options, arguments.name)
    from .conformance.command import main as conformance

    return conformance([*flags, arguments.name])


def remove(argv: list[str]) -> int:
    """Forget an engine; its program stays."""
    options = parser(
        "engines remove", "Removes an engine from the list. Its program is not touched.", ["mybot"]
    )
    options.add_argument("name", metavar="NAME", help="one of `hnefi engines`")
    arguments = options.parse_args(argv)
    try:
        file = registry.remove(arguments.name)
    except registry.RegistryError as error:
        options.error(str(error))
    except OSError as error:
        return _not_written(error)
    print(f"{arguments.name} removed from {file}")
    return DONE


def _expect(options: Parser, name: str) -> None:
    try:
        known, complaints = registry.read()
    except registry.RegistryError as error:
        options.error(str(error))
    if name not in known:
        options.error(complaints.get(name) or registry.no_such(name, known))


def _not_written(error: OSError) -> int:
    what = "file" if error.filename == str(registry.path()) else "folder"
    print(f"hnefi engines: {unwritten(error)}: expected a {what} that can be written", file=sys.stderr)
    return STORAGE
