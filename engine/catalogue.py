"""Which variants ship, by file name alone: light enough to be asked before anything else is loaded."""

# pathlib costs more than everything else here together.
# ruff: noqa: PTH100, PTH118, PTH120, PTH208

from __future__ import annotations

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "variants")
SUFFIX = ".toml"
DEFAULT = "copenhagen"


def stems(folder: str) -> list[str]:
    """The names of the variant files in `folder`, sorted; OSError if it cannot be read."""
    return sorted(name.removesuffix(SUFFIX) for name in os.listdir(folder) if name.endswith(SUFFIX))


def names() -> list[str]:
    """The names of the shipped variants, the default first, the rest in alphabetical order."""
    found = stems(FOLDER)
    return sorted(found, key=lambda name: (name != DEFAULT, name))
