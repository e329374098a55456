"""Which rule sets have exact values that do not depend on the history, and the value of endless play under them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..games.tafl.variant import Variant
from .numbering import LARGEST, MOST_MEN

Endless = Literal["draw", "attackers", "defenders", "open"]
"""The value of positions in which neither side can force an end: a draw, a win, or dependent on the history."""

ENDLESS: dict[str, Endless] = {
    "ignore": "draw",
    "draw": "draw",
    "attackers_lose": "defenders",
    "defenders_lose": "attackers",
    "mover_loses": "open",
    "mover_wins": "open",
    "forbidden": "open",
    "forbidden_to_attackers": "open",
    "forbidden_to_defenders": "open",
}


class NotSolvable(ValueError):
    """Rules under which values depend on the history, or boards that cannot be numbered."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A variant to solve: `played` is the variant without rules on the history, `endless` replaces them."""

    variant: Variant
    played: Variant
    endless: Endless

    @property
    def assumption(self) -> str:
        """The sentence that states the value of endless play."""
        return assumption(self.variant)


def refusal(variant: Variant, switch: str, why: str) -> NotSolvable:
    """The error that names the switch which prevents solving."""
    return NotSolvable(f"{variant.name}: {switch} = {variant.rules.switch_text(switch)}: {why}")


def endless_play(variant: Variant) -> Endless:
    """The value of positions in which neither side can force an end; NotSolvable if a shortest win may repeat."""
    rules = variant.rules
    if rules.repetition != "ignore" and rules.repetition_compare == "board" and rules.repetition_count == 2:
        raise refusal(
            variant, "repetition_compare", "expected position, or a repetition_count of 3: the shortest win may "
            "come to the same board with the other side to move",
        )  # fmt: skip
    return ENDLESS[rules.repetition]


def drawing_switch(variant: Variant) -> str | None:
    """A switch by which the game may be drawn without a repetition or a limit."""
    rules = variant.rules
    if rules.no_move == "draw" or rules.opentafl:
        return "no_move"
    return None if rules.material_draw is None else "material_draw"


def assumption(variant: Variant) -> str:
    """The sentence that states the value of endless play."""
    rule = f"repetition = {variant.rules.repetition}"
    endless = endless_play(variant)
    match endless:
        case "draw":
            return f"{rule}: where neither side can force an end, the game is a draw."
        case "open":
            return (
                f"{rule}: a forced win never repeats a position, so wins are exact; "
                "where neither side can force one, the result depends on the history, and the position is left open."
            )
        case _:
            return f"{rule}: where neither side can force an end, the {endless} win by repetition."


def without_limits(variant: Variant) -> Variant:
    """The same variant without the rules that count plies or arrangements."""
    return variant.with_switches(move_limit=0, quiet_limit=0, draw_fort="no")


def reading(variant: Variant) -> Reading:
    """How a variant is solved; NotSolvable with a sentence that says why it cannot be."""
    rules = variant.rules

    def refuse(switch: str, why: str) -> NotSolvable:
        return refusal(variant, switch, why)

    if variant.size > LARGEST:
        raise refuse("size", f"expected a board of at most {LARGEST} x {LARGEST} squares")
    strange = sorted({letter for _, letter in variant.start.pieces} - set("tTK"))
    if strange:
        raise NotSolvable(
            f"{variant.name}: {strange[0]}: expected soldiers and a king only; other pieces are not numbered"
        )
    if max(variant.attackers, variant.defenders) > MOST_MEN:
        raise NotSolvable(f"{variant.name}: expected at most {MOST_MEN} men of a side")
    if rules.berserk != "off":
        raise refuse("berserk", "expected off; positions inside a turn are not numbered")
    if rules.king_jump != "none" and rules.encirclement != "off":
        raise refuse("king_jump", "expected none where encirclement ends the game: a jump may cross a ring")
    for switch in ("move_limit", "quiet_limit"):
        if getattr(rules, switch):
            raise refuse(
                switch,
                "values would depend on the plies played; expected 0 (`hnefi solve VARIANT --without-limits`)",
            )
    if rules.draw_fort and variant.defenders >= 4:
        raise refuse(
            "draw_fort",
            "values would depend on the history; expected no (`hnefi solve VARIANT --without-limits`)",
        )
    endless = endless_play(variant)
    drawing = drawing_switch(variant)
    if endless in ("attackers", "defenders") and drawing is not None:
        raise refuse(
            drawing, f"cannot be solved together with repetition = {rules.repetition}: draws by this "
            "rule and wins by repetition would have to be told apart",
        )  # fmt: skip
    played = without_limits(variant).with_switches(repetition="ignore")
    return Reading(variant, played, endless)
