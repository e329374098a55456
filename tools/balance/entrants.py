"""Rule sets to judge: variants by name, variants with changed switches, and named sets of them.

copenhagen                         a shipped variant
my-own.toml                        a file
copenhagen+shieldwall=off          with changed switches, each after a plus
copenhagen+start=ROWS              with another start position, which also sets the size of the board
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hnefi.engine import games
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.rules import SWITCH
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.wording import nearest, shorten

from ..rules import different_lines

POINTS = Path(__file__).with_name("points.toml")
START = "start"


class BalanceError(ValueError):
    """A command line or a folder is wrong; the message says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A rule set and its label in tables and logs.

    `base` is the label of the rule set that it is compared with, whose openings are used here if they can be played.
    """

    label: str
    variant: Variant
    base: str = ""
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """The whole rule set, so that a folder needs no other file."""
        return {
            "label": self.label,
            "name": self.variant.name,
            "start": self.variant.rows,
            "rules": self.variant.rules.changes(),
            "hash": self.variant.hash,
            "base": self.base,
            "note": self.note,
        }

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Entrant:
        """The entrant that `as_json` wrote; KeyError, TypeError or ValueError if it is not one, or if its rules
        have changed since."""
        variant = Variant.build(read["name"], read["start"], read["rules"])
        if variant.hash != read["hash"]:
            raise ValueError(
                f"{read['label']}: expected rules with the hash {read['hash']}, not {variant.hash}"
            )
        return cls(str(read["label"]), variant, str(read["base"]), str(read["note"]))


def parse(word: str, path: str | None = None) -> Entrant:
    """The rule set that a word names; BalanceError otherwise."""
    name, *changes = word.split("+")
    try:
        found = games.named(name, path)
    except VariantError as error:
        raise BalanceError(str(error)) from None
    if not isinstance(found, Variant):
        raise BalanceError(f"{name}: expected a tafl variant, not {found.game}")
    return Entrant("+".join([found.name, *changes]), changed(found, changes))


def changed(variant: Variant, changes: Iterable[str]) -> Variant:
    """A variant with each change `switch=value` applied; BalanceError for an impossible one."""
    rows, switches = variant.rows, dict(variant.rules.changes())
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or (name not in SWITCH and name != START):
            wanted = "the name of a rule switch before =" if equals else "SWITCH=VALUE"
            raise BalanceError(
                f"{variant.name}: {shorten(change)}: expected {wanted}{nearest(name, [*SWITCH, START])}"
            )
        if name == START:
            rows = value
        else:
            switches[name] = value
    try:
        return Variant.build(variant.name, rows, switches)
    except VariantError as error:
        raise BalanceError(str(error)) from None


def is_change(word: str) -> bool:
    """Whether a word of the command line is `SWITCH=VALUE`, or several of these joined by plus signs."""
    return "=" in word.partition("+")[0]


def differences(first: Variant, second: Variant) -> list[tuple[str, str, str]]:
    """Every switch (and `start`) in which two rule sets differ, with both values."""
    return different_lines(first, second)


def compared(base: Entrant, words: Sequence[str], path: str | None = None) -> list[Entrant]:
    """The base and the rule sets to compare with it: changed switches, or other variants."""
    found = [base]
    for word in words:
        if is_change(word):
            changes = word.split("+")
            entrant = Entrant("+".join([base.label, *changes]), changed(base.variant, changes))
        else:
            entrant = parse(word, path)
        if entrant.variant.hash == base.variant.hash:
            raise BalanceError(f"{shorten(word)}: expected rules that differ from those of {base.label}")
        found.append(Entrant(entrant.label, entrant.variant, base.label))
    return distinct(found)


def points() -> list[Entrant]:
    """The points in which rule sets differ according to the paper of 2007, each changed alone in its original rules."""
    table = tomllib.loads(POINTS.read_text())
    base = parse(table["base"])
    found = [base]
    for point in table["point"]:
        variant = changed(base.variant, point["changes"])
        found.append(Entrant(point["label"], variant, base.label, point["says"]))
    return found


def everything(path: str | None = None) -> list[Entrant]:
    """Every tafl variant that ships, and those of `path`."""
    return [
        Entrant(variant.name, variant) for variant in games.everything(path) if isinstance(variant, Variant)
    ]


def distinct(entrants: Sequence[Entrant]) -> list[Entrant]:
    """The rule sets as a list; BalanceError if one comes twice."""
    labels = [entrant.label for entrant in entrants]
    for label in labels:
        if labels.count(label) > 1:
            raise BalanceError(f"{label}: expected each rule set once")
    return list(entrants)
