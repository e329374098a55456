"""Custom rule sets: every switch as a control, checks by the rules, and the notation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hnefi import players
from hnefi.engine.games import everything
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.explain import compare, present_pieces, sentence
from hnefi.engine.games.tafl.fen import SetupError, rows_to_pieces, split_rows
from hnefi.engine.games.tafl.rules import SWITCHES, Rules
from hnefi.engine.games.tafl.switches import PIECE_WORDS, RulesError
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.wording import shorten
from hnefi.protocol.hosts.rulebook import special_squares

from . import catalogue, frames, records
from .frames import FrameError

GROUPS: Final = {
    "size": "The board",
    "throne_pass": "How pieces move",
    "throne_hostile_empty": "How men are taken",
    "king_armed": "The king",
    "escape": "How the game is won",
    "repetition": "Draws",
}
"""The first switch of each group of controls, in the order of `SWITCHES`."""
TOML: Final = 48 * 1024


@cache
def offer() -> dict[str, Any]:
    """The controls, by group."""
    groups: list[dict[str, Any]] = []
    for switch in SWITCHES:
        if switch.name in GROUPS:
            groups.append({"title": GROUPS[switch.name], "switches": []})
        if switch.kind == "size":
            continue  # this follows from the board that is drawn
        words = list(PIECE_WORDS) if switch.kind == "pieces" else list(switch.words)
        groups[-1]["switches"].append(
            {
                "name": switch.name,
                "kind": switch.kind,
                "words": words,
                "meaning": switch.meaning,
                "default": switch.default,
                "expected": switch.expected,
            }
        )
    return {"t": "workshop", "groups": groups}


class Wrong(ValueError):
    """Impossible rules: the control that is wrong, and the reason."""

    def __init__(self, control: str, reason: str) -> None:
        super().__init__(reason)
        self.control = control


def made(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The `rules` frame in answer to a `rules` frame, which gives a `variant` by name, or rules as `words`, as `toml`,
    or as `name`, `start` and `switches`.

    For impossible rules the answer has the `control` that is wrong and the reason. FrameError if the frame has
    no rules.
    """
    ident = frame.get("id")
    try:
        variant = _read(frame)
        beside = frames.text(frame, "beside", 64)
        other = records.find()(beside) if beside else None
    except Wrong as error:
        return {"t": "rules", "id": ident, "control": error.control, "reason": str(error)}
    except VariantError as error:
        return {"t": "rules", "id": ident, "control": "", "reason": str(error)}
    rules, present = variant.rules, present_pieces(variant)
    return {
        "t": "rules",
        "id": ident,
        "variant": own(variant),
        "values": {switch.name: rules.switch_text(switch.name) for switch in SWITCHES},
        "changes": list(rules.changes()),
        "said": {switch.name: sentence(rules, switch.name, present) for switch in SWITCHES},
        "special": special_squares(variant.rules_lines()),
        "toml": variants.as_toml(variant),
        "same": [
            known.name for known in everything() if known.hash == variant.hash and known.name != variant.name
        ],
        "diff": [[found.subject, found.first, found.second] for found in compare(other, variant)]
        if isinstance(other, Variant)
        else [],
    }


def own(variant: Variant) -> dict[str, Any]:
    """What the page has to know about a variant that is not shipped; `words` are its rules for the engine."""
    return {**catalogue.described(variant, players.everything()), "words": variants.as_words(variant)}


def _read(frame: Mapping[str, Any]) -> Variant:
    if shipped := frames.text(frame, "variant", 64):
        found = records.find()(shipped)
        if not isinstance(found, Variant):
            raise VariantError(f"{shipped}: expected a variant of tafl")
        return found
    if words := frames.text(frame, "words", records.WORDS):
        variant = variants.from_words(words)
    elif toml := frames.text(frame, "toml", TOML, lines=True):
        variant = variants.parse(toml, "rules")
    else:
        variant = _built(frame)
    if known := next((known for known in everything() if variant.name in (known.name, *known.aliases)), None):
        if known.hash != variant.hash:
            raise Wrong("name", f"{variant.name} has other rules: expected another name")
    elif not variants.is_name(variant.name):
        raise Wrong("name", f"{shorten(variant.name)}: expected letters, digits, - _ or .")
    return variant


def _built(frame: Mapping[str, Any]) -> Variant:
    name, start = frames.text(frame, "name", 64), frames.text(frame, "start", 512)
    switches = frame.get("switches", {})
    if not isinstance(switches, dict) or not all(isinstance(value, str) for value in switches.values()):
        raise FrameError("bad_frame", "switches: expected an object of names and texts", frame.get("id"))
    if not start:
        raise FrameError("bad_frame", "expected words, toml, or name, start and switches", frame.get("id"))
    if not variants.is_name(name):
        raise Wrong("name", f"{shorten(name)}: expected a name of letters, digits, - _ or .")
    try:
        size, _ = rows_to_pieces(split_rows(start))
        Rules.from_mapping(switches, size)
    except RulesError as error:
        raise Wrong(error.switch, f"{shorten(error.value)}: expected {error.expected}") from None
    except SetupError as error:
        raise Wrong("start", str(error)) from None
    try:
        return Variant.build(name, start, switches)
    except VariantError as error:
        raise Wrong("start", str(error).removeprefix(f"{name}: start: ")) from None
