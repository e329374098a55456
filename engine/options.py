"""Every option of the engine in one table, light enough for the greeting: no dataclasses, nothing computed.

`Option.read` turns text into a value; `session` carries values out, or the protocol for the
two options that are about lines (`UCI_ShowWDL`, `DebugLogFile`).
"""

from __future__ import annotations

from . import catalogue
from .search import elo_table, features

MOST_CONTEMPT = 1000
"""Centipawns: ten times what a strong side has in hand, and far from the values of won games."""
SHIPPED_TABLES = "shipped"
"""What `TablePath` calls the solved tables that ship."""
SHIPPED_BOOKS = "shipped"
"""What `BookFile` calls the opening books that ship."""
EMPTY = "<empty>"
"""How an empty string is written in option lines."""


class Option:
    """One option: its name, its UCI type, its default, and what values it takes.

    `setting` is the field of `Settings` that it sets, if it does no more than that.
    """

    __slots__ = ("default", "high", "low", "name", "setting", "type", "words")

    def __init__(
        self,
        name: str,
        type: str,  # noqa: A002 - the protocol's word
        default: str = "",
        *,
        low: int = 0,
        high: int = 0,
        words: tuple[str, ...] = (),
        setting: str = "",
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.low = low
        self.high = high
        self.words = words
        self.setting = setting

    def read(self, text: str | None) -> str | int | bool:
        """The value meant by `text`; ValueError saying what was expected."""
        if self.type == "button":
            if text:
                raise ValueError("expected no value, this is a button")
            return ""
        if text is None:
            raise ValueError("expected a value")
        if self.type == "check":
            if text.lower() not in ("true", "false"):
                raise ValueError("expected true or false")
            return text.lower() == "true"
        if self.type == "spin":
            digits = text.removeprefix("-")
            if len(digits) > 20 or not (digits.isascii() and digits.isdigit()):
                raise ValueError(f"expected a whole number from {self.low} to {self.high}")
            if not self.low <= int(text) <= self.high:
                raise ValueError(f"expected {self.low} to {self.high}")
            return int(text)
        if self.type == "combo" and self.words:
            for word in self.words:
                if word.lower() == text.lower():
                    return word
            raise ValueError(f"expected one of {', '.join(self.words)}")
        text = "" if text == EMPTY else text
        if self.setting == "features":
            features.read(text)
        return text

    def line(self) -> str:
        """The option as the greeting announces it."""
        words = ["option name", self.name, "type", self.type]
        if self.type != "button":
            words += ["default", self.default or EMPTY]
        if self.type == "spin":
            words += ["min", str(self.low), "max", str(self.high)]
        for word in self.words or (catalogue.listed() if self.name == "Variant" else ()):
            words += ["var", word]
        return " ".join(words)


TABLE = (
    # Which names Variant takes depends on VariantPath too; it is resolved where variants are known.
    Option("Variant", "combo", catalogue.DEFAULT),
    Option("VariantPath", "string"),
    Option("Rules", "string"),
    Option(
        "Algorithm",
        "combo",
        "alphabeta",
        words=("alphabeta", "mcts", "puct", "minimax", "random", "random-coded"),
        setting="algorithm",
    ),
    Option("Evaluator", "string", "default"),
    Option("Player", "string", "default"),
    Option("Hash", "spin", "64", low=1, high=65_536, setting="hash_mib"),
    Option("Threads", "spin", "1", low=1, high=256, setting="threads"),
    Option("MultiPV", "spin", "1", low=1, high=256, setting="multipv"),
    Option("Ponder", "check", "false", setting="ponder"),
    Option("MoveOverhead", "spin", "10", low=0, high=10_000, setting="move_overhead"),
    Option("Contempt", "spin", "0", low=-MOST_CONTEMPT, high=MOST_CONTEMPT, setting="contempt"),
    Option("Seed", "spin", "1", low=0, high=2**32 - 1, setting="seed"),
    Option("Wins", "combo", "near", words=("near", "flat", "unseen"), setting="wins"),
    Option("MCTSLeaf", "combo", "auto", words=("auto", "playout", "evaluator"), setting="mcts_leaf"),
    Option("Exploration", "spin", "100", low=0, high=1000, setting="exploration"),
    Option("SkillLevel", "spin", "10", low=0, high=10, setting="skill"),
    Option("MoveTemperature", "spin", "0", low=0, high=10_000, setting="temperature"),
    Option("MoveChoices", "spin", "6", low=1, high=256, setting="choices"),
    Option("RandomMoves", "spin", "0", low=0, high=1000, setting="at_random"),
    Option("UCI_LimitStrength", "check", "false"),
    Option("UCI_Elo", "spin", str(elo_table.HIGHEST), low=elo_table.LOWEST, high=elo_table.HIGHEST),
    Option("Features", "string", "default", setting="features"),
    Option("TablePath", "string", setting="tables"),
    Option("OwnBook", "check", "false"),
    Option("BookFile", "string", SHIPPED_BOOKS),
    Option("UCI_ShowWDL", "check", "false"),
    Option("ClearHash", "button"),
    Option("DebugLogFile", "string"),
)

ALIASES = {"uci_variant": "Variant"}
"""Other names of options, in lower case."""

_BY_NAME = {option.name.lower(): option for option in TABLE}


def find(name: str) -> Option | None:
    """The option called `name`, in any case, or by an alias."""
    lower = name.lower()
    return _BY_NAME.get(ALIASES.get(lower, lower).lower())
