"""Published ratings as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hnefi.protocol.hosts.text_table import aligned, table


def rating(entry: Mapping[str, Any]) -> str:
    """`1180 ± 25`; the anchor, whose rating is fixed, has no error."""
    error = entry["error"]
    return f"{entry['elo']:.0f}" + (f" ± {error:.0f}" if error else "")


def scale(document: Mapping[str, Any]) -> list[str]:
    """All players by rating, rungs with a star; a narrow terminal does not show every variant."""
    head = ("", "player", "rating", *_variants(document), "games")
    rows = []
    for name, entry in document["players"].items():
        alone = [
            rating(entry["variants"][variant]) if variant in entry["variants"] else "-"
            for variant in _variants(document)
        ]
        rows.append(("*" if entry["rung"] else "", name, rating(entry), *alone, f"{entry['games']:,}"))
    anchor = document["anchor"]
    return [
        *table(head, rows, left=(0, 1), free=1, spare=range(len(head) - 2, 2, -1)),
        "",
        f"{document['ladder']}, {document['games']:,} games; {anchor['name']} = {anchor['elo']:g}; * are rungs.",
        "For more: hnefi ladder show WHO.",
    ]


def profile(entry: Mapping[str, Any]) -> list[str]:
    """One player's ratings, and its score against every rung."""
    facts = [("rating", f"{rating(entry)}, {entry['games']:,} games")]
    facts += [
        (variant, f"{rating(found)}, {found['games']:,} games")
        for variant, found in entry["variants"].items()
    ]
    variants = list(entry["variants"])
    rows: list[Sequence[str]] = [("against", "score%", "95 %", "expected", "games", *variants)]
    for rung, cell in entry["profile"].items():
        alone = [
            f"{100 * cell['variants'][variant][1]:.0f}" if variant in cell["variants"] else "-"
            for variant in variants
        ]
        rows.append(
            (
                rung,
                f"{100 * cell['score']:.0f}",
                f"{100 * cell['low']:.0f}-{100 * cell['high']:.0f}",
                f"{100 * cell['expected']:.0f}",
                str(cell["games"]),
                *alone,
            )
        )
    return [f"  {line}".rstrip() for line in (*aligned(facts), "", *aligned(rows, left=(0,)))]


def _variants(document: Mapping[str, Any]) -> list[str]:
    return list(document["sides"])
