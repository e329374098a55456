"""The choices on a page: variants with their rules in sentences, players, levels."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from hnefi import players
from hnefi.engine.catalogue import GAMES
from hnefi.engine.games import everything, find
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.games.tafl.explain import chapters, explain
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.options import SHIPPED_TABLES
from hnefi.engine.search.skill import weakness

SIZES: Final = {
    "hex": ("5", "7", "9", "13", "15", "19"),
    "hex-swap": ("5", "7", "9", "13", "15", "19"),
    "hexapawn": ("4x4", "5x5", "6x6"),
}
"""Additional sizes of games that can have any size."""


@cache
def offer() -> dict[str, Any]:
    """The part of `welcome` that is the same for every page."""
    known = players.everything()
    return {
        "variants": [described(variant, known) for variant in (*everything(), *_other_sizes())],
        "players": [
            {
                "name": player.name,
                "text": player.description,
                "elo": None if player.rating is None else round(player.rating.elo),
            }
            for player in known
        ],
        "levels": [None if (weak := weakness(level)) is None else weak.nodes for level in range(11)],
    }


def _other_sizes() -> list[AnyVariant]:
    return [find(f"{family}:{size}") for family, sizes in SIZES.items() for size in sizes]


@cache
def _solved() -> frozenset[str]:
    """Hashes of the rules with a shipped table or proof."""
    from hnefi.engine.solving.tables import find as tables
    from hnefi.engine.solving.tables import open_file

    found = set()
    for path in tables(SHIPPED_TABLES):
        with open_file(path) as table:
            found.add(table.variant.hash)
    return frozenset(found)


def described(variant: AnyVariant, known: list[players.Player]) -> dict[str, Any]:
    """What the page has to know about a variant; `known` are the players that may be offered for it."""
    game = GAMES[variant.game]
    return {
        "name": variant.name,
        "aliases": list(variant.aliases),
        "game": variant.game,
        "files": variant.files,
        "ranks": variant.ranks,
        "men": [variant.attackers, variant.defenders],
        "first": variant.first,
        "startpos": variant.startpos,
        "description": variant.description,
        "source": variant.source,
        "sides": list(game.sides),
        "letters": list(game.letters),
        "aim": chapters(variant)["aim"][:2] if isinstance(variant, Variant) else [],
        "rules": explain(variant) if isinstance(variant, Variant) else [],
        "solved": variant.hash in _solved(),
        "players": [player.name for player in known if player.misfit(variant) is None],
    }
