"""Which games there are and which variants ship: light enough to be asked before anything else is loaded."""

# pathlib costs more than everything else here together.
# ruff: noqa: PTH100, PTH118, PTH120, PTH208

from __future__ import annotations

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variants")
SUFFIX = ".toml"
DEFAULT = "copenhagen"
MEASURED = (
    "copenhagen",
    "fetlar",
    "brandubh",
    "tablut-linnaeus",
    "tablut-bologna",
    "hingston-original",
    "hingston-alternative",
)
"""What benchmarks play where no variant is named: every family of rules that people play, in its usual reading."""


class Game:
    """What can be known about a game without loading its kernels; its name is that of its package in `games`."""

    __slots__ = ("example", "letters", "sides", "sizes", "small")

    def __init__(
        self,
        small: str,
        sizes: dict[str, str],
        sides: tuple[str, str],
        letters: tuple[str, str],
        example: str,
    ) -> None:
        self.small = small
        """A small variant, by which its kernels are compiled and tried."""
        self.sizes = sizes
        """The names before the colon of variants with a size (`hex:11`), each with its usual size."""
        self.sides = sides
        """What people call the two sides, that of side `a` first."""
        self.letters = letters
        """The letters of the two sides' men."""
        self.example = example
        """A move as people type it."""


GAMES = {
    "tafl": Game("brandubh", {}, ("attackers", "defenders"), ("tcnmg", "TCNMGK"), "d1d3"),
    "hex": Game("hex:3", {"hex": "11", "hex-swap": "11"}, ("x", "o"), ("x", "o"), "c3"),
    "hexapawn": Game("hexapawn:3x3", {"hexapawn": "3x3"}, ("white", "black"), ("P", "p"), "a1a2"),
}
SIZED = {family: size for game in GAMES.values() for family, size in game.sizes.items()}
"""All names of games with a size, each with its usual one."""


def stems(folder: str) -> list[str]:
    """The names of the variant files in `folder`, sorted; OSError if it cannot be read."""
    return sorted(name.removesuffix(SUFFIX) for name in os.listdir(folder) if name.endswith(SUFFIX))


def names() -> list[str]:
    """The names of the shipped variants, the default first, the rest in alphabetical order."""
    found = stems(FOLDER)
    return sorted(found, key=lambda name: (name != DEFAULT, name))


def listed() -> list[str]:
    """What lists show: the variants, and the other games in their usual size."""
    return [*names(), *(f"{family}:{size}" for family, size in SIZED.items())]
