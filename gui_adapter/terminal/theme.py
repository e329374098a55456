"""Colours and characters: what every part of the screen looks like, and whether there are colours at all.

A fragment is a pair (style, text). Its style names classes (`class:board class:attacker`); later ones win, part by
part. The same classes serve prompt_toolkit's styles and the pictures of `screenshot`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .settings import Settings

if TYPE_CHECKING:
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.styles import Style

Fragment = tuple[str, str]
"""A style (classes, or nothing) and the text that has it."""


@dataclass(frozen=True, slots=True)
class Ink:
    """Colours as `#rrggbb`; what is empty shows what lies below."""

    fore: str = ""
    back: str = ""
    bold: bool = False

    def over(self, below: Ink) -> Ink:
        """This ink on top of another."""
        return Ink(self.fore or below.fore, self.back or below.back, self.bold or below.bold)


THEMES: Final[Mapping[str, Mapping[str, Ink]]] = {
    "dark": {
        "screen": Ink("#d8d2c4", "#191714"),
        "board": Ink("#8a8172", "#2a2621"),
        "grid": Ink("#5c5548"),
        "label": Ink("#a39a89"),
        "attacker": Ink("#ff8a73", bold=True),
        "defender": Ink("#e9f2ff", bold=True),
        "king": Ink("#ffd54a", bold=True),
        "throne": Ink("#d9b36c"),
        "corner": Ink("#d9b36c"),
        "camp": Ink("#c08a7d"),
        "fort": Ink("#8fb0d0"),
        "source": Ink(back="#2f3b22"),
        "last": Ink(back="#413f18"),
        "taken": Ink(back="#5a2530"),
        "chosen": Ink(back="#17444f"),
        "target": Ink(back="#1d3f4d"),
        "prize": Ink(back="#5c2840"),
        "title": Ink("#ffffff", bold=True),
        "dim": Ink("#a39a89"),
        "error": Ink("#ff9a9a", bold=True),
        "news": Ink("#9fd0ff"),
        "reply": Ink("#d8d2c4"),
        "running": Ink("#191714", "#ffd54a", bold=True),
        "current": Ink("#191714", "#d8d2c4", bold=True),
        "bar-a": Ink("#ff8a73"),
        "bar-d": Ink("#7fa8d8"),
        "prompt": Ink("#ffd54a", bold=True),
        "status": Ink("#191714", "#b9ae98"),
    },
    "light": {
        "screen": Ink("#2a2621", "#fbf8f1"),
        "board": Ink("#7a6c52", "#f3e8d2"),
        "grid": Ink("#b9a98a"),
        "label": Ink("#6b5f4a"),
        "attacker": Ink("#8c1c0c", bold=True),
        "defender": Ink("#0b4a8f", bold=True),
        "king": Ink("#7a4800", bold=True),
        "throne": Ink("#7a5410"),
        "corner": Ink("#7a5410"),
        "camp": Ink("#8c4a3c"),
        "fort": Ink("#2f5d8a"),
        "source": Ink(back="#dfe6b8"),
        "last": Ink(back="#f0e28c"),
        "taken": Ink(back="#f6cfc9"),
        "chosen": Ink(back="#a9dbe8"),
        "target": Ink(back="#d3ecf2"),
        "prize": Ink(back="#f7cfe2"),
        "title": Ink("#000000", bold=True),
        "dim": Ink("#6b5f4a"),
        "error": Ink("#a00000", bold=True),
        "news": Ink("#0b4a8f"),
        "reply": Ink("#2a2621"),
        "running": Ink("#ffffff", "#7a4800", bold=True),
        "current": Ink("#ffffff", "#2a2621", bold=True),
        "bar-a": Ink("#8c1c0c"),
        "bar-d": Ink("#0b4a8f"),
        "prompt": Ink("#7a4800", bold=True),
        "status": Ink("#ffffff", "#5a4f3c"),
    },
    "contrast": {
        "screen": Ink("#ffffff", "#000000"),
        "board": Ink("#c0c0c0", "#000000"),
        "grid": Ink("#909090"),
        "label": Ink("#ffffff"),
        "attacker": Ink("#ff9f6b", bold=True),
        "defender": Ink("#ffffff", bold=True),
        "king": Ink("#ffff00", bold=True),
        "throne": Ink("#ffff00"),
        "corner": Ink("#ffff00"),
        "camp": Ink("#ff9f6b"),
        "fort": Ink("#9fd0ff"),
        "source": Ink(back="#004000"),
        "last": Ink(back="#005000"),
        "taken": Ink(back="#6a0000"),
        "chosen": Ink(back="#00407a"),
        "target": Ink(back="#003050"),
        "prize": Ink(back="#5a005a"),
        "title": Ink("#ffffff", bold=True),
        "dim": Ink("#d0d0d0"),
        "error": Ink("#ff9f9f", bold=True),
        "news": Ink("#9fd0ff"),
        "reply": Ink("#ffffff"),
        "running": Ink("#000000", "#ffff00", bold=True),
        "current": Ink("#000000", "#ffffff", bold=True),
        "bar-a": Ink("#ff9f6b"),
        "bar-d": Ink("#9fd0ff"),
        "prompt": Ink("#ffff00", bold=True),
        "status": Ink("#000000", "#ffffff"),
    },
}


def style(settings: Settings) -> dict[str, str]:
    """The classes as prompt_toolkit's styles are written."""
    made = {}
    for name, ink in THEMES[settings.theme].items():
        words = [ink.fore, f"bg:{ink.back}" if ink.back else "", "bold" if ink.bold else ""]
        made[name] = " ".join(word for word in words if word)
    return made


def plain_style() -> dict[str, str]:
    """The same classes without colours: what must stand out is shown in reverse."""
    reverse = ("status", "running", "current", "completion-menu.completion.current")
    plain_menu = {"completion-menu.completion": "noreverse", "completion-menu": "noreverse"}
    return {**plain_menu, **dict.fromkeys(reverse, "reverse"), "title": "bold", "prompt": "bold"}


def prompt_style(settings: Settings) -> tuple[Style, ColorDepth | None]:
    """What prompt_toolkit needs to draw the classes, in colours or without."""
    from prompt_toolkit.output import ColorDepth
    from prompt_toolkit.styles import Style

    if colourful(settings):
        return Style.from_dict(style(settings)), None
    return Style.from_dict(plain_style()), ColorDepth.DEPTH_1_BIT


def print_styled(fragments: list[Fragment], settings: Settings) -> None:
    """Print fragments above whatever is typed."""
    from prompt_toolkit import print_formatted_text
    from prompt_toolkit.formatted_text import FormattedText

    style, depth = prompt_style(settings)
    print_formatted_text(FormattedText(fragments), end="", style=style, color_depth=depth, flush=True)


def inked(classes: str, theme: str) -> Ink:
    """What `class:board class:attacker` looks like on the screen of a theme."""
    inks = THEMES[theme]
    made = inks["screen"]
    for word in classes.split():
        made = inks.get(word.removeprefix("class:"), Ink()).over(made)
    return made


def colourful(settings: Settings, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether to use colours: what the settings say, or whether nothing speaks against it."""
    if settings.colour != "auto":
        return settings.colour == "yes"
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


# Signs


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One column each: men by their letter, special squares by their kind, and the lines of the grid."""

    men: Mapping[str, str]
    squares: Mapping[str, str]
    empty: str
    across: str
    down: str
    corners: tuple[str, str, str]
    """Joints of the grid: top row, middle rows, bottom row; left, middle and right each."""
    full: str
    rest: str
    """The bar's two halves."""
    between: str
    """What stands between parts of a line."""
    more: str
    arrow: str


UNICODE: Final = Glyphs(
    men={"t": "●", "T": "○", "K": "♚", "x": "●", "o": "○", "P": "●", "p": "○"},
    squares={"throne": "◇", "corner": "╳", "camp": "░", "fort": "▒"},
    empty="·",
    across="─",
    down="│",
    corners=("┌┬┐", "├┼┤", "└┴┘"),
    full="█",
    rest="░",
    between=" · ",
    more="…",
    arrow="▶",
)
ASCII: Final = Glyphs(
    men={},
    squares={"throne": "+", "corner": "x", "camp": ":", "fort": ";"},
    empty=".",
    across="-",
    down="|",
    corners=("+++", "+++", "+++"),
    full="#",
    rest="-",
    between=" | ",
    more="~",
    arrow=">",
)


def glyphs(settings: Settings, environment: Mapping[str, str] = os.environ, encoding: str = "") -> Glyphs:
    """The characters to draw with.

    `auto` takes those outside ASCII where the output can carry them (`encoding`: of standard output) and counts them
    as one column: not on the Linux console, and not where the language makes them two columns wide.
    """
    if settings.glyphs != "auto":
        return UNICODE if settings.glyphs == "unicode" else ASCII
    encoding = (encoding or getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    language = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG") or ""
    plain = environment.get("TERM") in ("linux", "dumb") or language[:2] in ("zh", "ja", "ko")
    return UNICODE if encoding == "utf8" and not plain else ASCII


def role(letter: str) -> str:
    """The class of a man: `attacker`, `defender` or `king`. A stone `x` and a pawn `P` belong to side `a`."""
    if letter == "K":
        return "king"
    if letter in "oxPp":
        return "attacker" if letter in "xP" else "defender"
    return "attacker" if letter.islower() else "defender"


# Text that comes from outside


def plain(fragments: Iterable[Fragment]) -> str:
    """The text alone."""
    return "".join(text for _, text in fragments)
