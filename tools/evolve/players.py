"""A champion as a player: a TOML file, and the evaluator file beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .folder import replace
from .options import OptionError
from .run import Plan


def expect_name(name: str) -> Path:
    """Where the player called `name` would lie: a file name, perhaps behind a folder; OptionError if it cannot be."""
    path = Path(name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", path.name) or path.suffix in (
        ".toml",
        ".safetensors",
    ):
        raise OptionError(
            f"--save-player {name[:80]!r}: expected letters, digits, - _ or ., without a suffix"
        )
    if not path.parent.is_dir():
        raise OptionError(f"--save-player {name[:80]!r}: expected a folder that is there")
    return path


def save(name: str, plan: Plan, champion: Path, generation: int) -> Path:
    """Write the player; the path of its TOML file."""
    path = expect_name(name)
    evaluator, file = path.with_name(f"{path.name}.safetensors"), path.with_name(f"{path.name}.toml")
    how = f"Evolved ({plan.algorithm}) on {plan.variant.name}, seed {plan.seed}, generation {generation}."
    text = (
        f"description = {json.dumps(how)}\n"
        'algorithm = "minimax"\n'
        f"evaluator = {json.dumps(evaluator.name)}\n"
        f"variant = {json.dumps(plan.variant.name)}\n"
        f"\n[limits]\ndepth = {plan.values['depth']}\n"
    )
    replace(evaluator, champion.read_bytes())
    replace(file, text.encode())
    return file
