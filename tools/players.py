"""`hnefi players`: who can play, by name."""

from __future__ import annotations

import json
import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hnefi.protocol.hosts import registry
from hnefi.protocol.hosts.text_table import aligned, room

from .common.arguments import find_variant, parser
from .ladder import published, showing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.players import Player, Rating

ROOM = 40
"""Columns that a description needs beside the rest; where there are fewer, it stands below."""
WHOLE = 10_000
"""Columns where the output is not a terminal: one line per player."""
LINE = 100
"""Columns of prose at most."""


def main(argv: list[str]) -> int:
    """List all players, or show everything about one, as text or as JSON."""
    options = parser(
        "players",
        "Lists the players. A name can be used wherever an opponent is expected; to add a player, write one TOML file.",
        ["", "simple", "--variant brandubh", "--json", "--path my-players/", "my-players/mine.toml"],
    )
    options.add_argument(
        "name", nargs="?", metavar="NAME", help="show everything about this player: a name, or its file"
    )
    options.add_argument("--variant", metavar="V", help="only those who can play this variant")
    options.add_argument("--path", metavar="PATH", help="a file or folder of further players (TOML)")
    options.add_argument("--json", action="store_true", help="everything known about each, as JSON")
    arguments = options.parse_args(argv)

    from hnefi import players

    variant = find_variant(options, arguments.variant) if arguments.variant else None
    try:
        found = players.everything(arguments.path)
        engines = _registered(variant)
        if arguments.name is not None:
            named = [player for player in found if player.name == arguments.name]
            found = named or [players.load(arguments.name)]
        if variant is not None:
            reasons = [player.misfit(variant) for player in found]
            if arguments.name is not None and reasons[0]:
                options.error(f"{arguments.name}: {reasons[0]}")
            found = [player for player, reason in zip(found, reasons, strict=True) if not reason]
        if arguments.name is None:
            shown: Any = [as_json(player) for player in found]
        else:
            shown = as_json(found[0]) | {"provenance": provenance(found[0])}
    except ValueError as error:
        options.error(str(error))
    if arguments.json:
        print(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        print("\n".join(table(found) if arguments.name is None else described(found[0], shown["provenance"])))
        if arguments.name is None and engines:
            print(
                "\n".join(
                    ["", "Your own engines (hnefi engines), which can be named in the same places:", *engines]
                )
            )
    return 0


def table(found: Sequence[Player]) -> list[str]:
    """One line per player under a headline; then where to read more."""
    rows = [("name", "plays", "rating", "")]
    rows += [
        (player.name, _plays(player) or "all", _rating(rating_of(player)) or "-", player.description)
        for player in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    wide = room(piped=WHOLE)
    start = sum(widths) + 2 * len(widths)
    lines: list[str] = []
    for row in rows:
        line = "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3]])
        if len(line) <= wide:
            lines.append(line.rstrip())
        elif wide - start >= ROOM:
            lines += wrap(line, wide, subsequent_indent=" " * start, break_on_hyphens=False)
        else:
            lines.append(line[:start].rstrip())
            lines += wrap(row[3], wide - 4, initial_indent="    ", subsequent_indent="    ")
    end = (
        "For more: hnefi players NAME. Ratings are shown where they were measured, with NAME also how. They are for "
        "tafl; hnefi ladder show prints the whole scale, with the engine at fixed nodes and its levels."
    )
    return [*lines, "", *wrap(end, min(wide, LINE))]


def _registered(variant: AnyVariant | None) -> list[str]:
    """One line per engine that the user has added, if it plays the variant. What is wrong with their file is told."""
    try:
        engines, complaints = registry.read()
    except registry.RegistryError as error:
        engines, complaints = {}, {"": str(error)}
    for complaint in complaints.values():
        print(complaint, file=sys.stderr)
    known = list(engines.values())
    if variant is not None:
        known_as = (variant.name, *variant.aliases)
        known = [engine for engine in known if not engine.misfit(known_as)]
    return [f"  {line}" for line in aligned([(one.name, one.description or one.command) for one in known])]


def described(player: Player, provenance: Mapping[str, Any]) -> list[str]:
    """Everything about one player, a line each."""
    limits = as_json(player)["limits"]
    rating = rating_of(player)
    facts = [
        ("plays", _plays(player) or "every variant of every game"),
        ("algorithm", player.algorithm),
        ("limits", ", ".join(f"{name} {value}" for name, value in limits.items()) or "none of its own"),
        ("options", ", ".join(f"{name} {value}" for name, value in player.options.items()) or "as they come"),
        ("rating", _rating(rating) or "not measured"),
    ]
    if rating is not None:
        facts.append(("rated by", rating.source))
    facts.append(("evaluator", "none" if player.algorithm.startswith("random") else player.evaluator))
    facts += [
        (name, value if isinstance(value, str) else json.dumps(value)) for name, value in provenance.items()
    ]
    facts.append(("file", str(player.file)))
    lines = [player.name, player.description, "", *(f"  {line}" for line in aligned(facts))]
    for name, entry in _measured(player).items():
        lines += ["", f"{name} on {published.CURRENT}:", *showing.profile(entry)]
    return lines


def as_json(player: Player) -> dict[str, Any]:
    """What programs want to know; `limits` are in the words of `go`."""
    limits = {name: getattr(player.limits, name) for name in ("depth", "nodes", "mate", "movetime")}
    rating = rating_of(player)
    return {
        "name": player.name,
        "description": player.description,
        "game": player.game,
        "variant": player.variant,
        "variants": list(player.variants),
        "algorithm": player.algorithm,
        "evaluator": player.evaluator,
        "limits": {name: value for name, value in limits.items() if value is not None},
        "options": dict(player.options),
        "rating": rating and {"elo": rating.elo, "error": rating.error, "source": rating.source},
        "ladder": _measured(player),
        "file": str(player.file),
    }


def rating_of(player: Player) -> Rating | None:
    """What the player's file says of its strength; of a shipped one, else what the published ladder says."""
    from hnefi.players import Rating

    entry = _measured(player).get(player.name)
    if player.rating is not None or entry is None:
        return player.rating
    source = f"{published.CURRENT}, {entry['games']:,} games (hnefi ladder show {player.name})"
    return Rating(round(entry["elo"]), round(entry["error"] or 0) or None, source)


def _measured(player: Player) -> dict[str, dict[str, Any]]:
    """The entries of a shipped player on the published ladder, by their names there."""
    from hnefi import players

    if player.file is None or player.file.parent != players.FOLDER:
        return {}
    return published.measured(player.name)


def provenance(player: Player) -> dict[str, Any]:
    """Where the player's evaluator comes from; ValueError if it is a file that cannot be read."""
    from hnefi.engine.evaluators import BY_HAND, NETWORKS, PICKING, is_file

    if player.algorithm.startswith("random") or player.evaluator in (*PICKING, *BY_HAND):
        return {}
    from hnefi.engine.evaluators import network

    file = NETWORKS.get(player.evaluator, player.evaluator)
    if not is_file(file):
        return {"source": network.parse(player.evaluator).module.SOURCE}
    from hnefi.engine.evaluators import files

    evaluator = files.load(file)
    return {
        "architecture": evaluator.network.text,
        "variant": evaluator.variant,
        "rules_hash": evaluator.rules_hash,
        "sha256": evaluator.sha256,
        **evaluator.document,
    }


def _plays(player: Player) -> str | None:
    """The variants or the game that a player plays, if it does not play all."""
    return ", ".join(player.variants) or player.game


def _rating(rating: Rating | None) -> str | None:
    if rating is None:
        return None
    error = "" if rating.error is None else f" ± {rating.error:g}"
    return f"{rating.elo:g}{error}"
