"""The file that a word of the command line means: its own name, or a network that ships."""

from __future__ import annotations

from pathlib import Path

from hnefi.engine.evaluators import NETWORKS, is_file


def file_of(word: str) -> str:
    """The file; ValueError if the word can be neither."""
    if word in NETWORKS:
        return NETWORKS[word]
    if is_file(word) or Path(word).exists():
        return word
    raise ValueError(
        f"{word[:200]!r}: expected a .safetensors file, or a network that ships: {', '.join(NETWORKS)}"
    )
