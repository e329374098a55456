"""Which variants ship, by file name alone: light enough to be asked before anything else is loaded."""

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
SIZED = {"hex": "11", "hex-swap": "11", "hexapawn": "3x3"}
"""Games that are no tafl and come in sizes, named behind a colon (`hex:11`), with the size that is meant by none."""


def stems(folder: str) -> list[str]:
    """The names of the variant files in `folder`, sorted; OSError if it cannot be read."""
    return sorted(name.removesuffix(SUFFIX) for name in os.listdir(folder) if name.endswith(SUFFIX))


def names() -> list[str]:
    """The names of the shipped variants, the default first, the rest in alphabetical order."""
    found = stems(FOLDER)
    return sorted(found, key=lambda name: (name != DEFAULT, name))


def listed() -> list[str]:
    """What lists show: the variants, and each game with a size in its usual one."""
    return [*names(), *(f"{family}:{size}" for family, size in SIZED.items())]
