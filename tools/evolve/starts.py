"""Where a run begins when it does not begin at zero."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hnefi.engine.evaluators import files
from hnefi.engine.evaluators.network import Network
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.wording import shorten

from .encoding import Encoding
from .options import OptionError

DEFAULT = "default"
MARK = "#sha256="


def read(text: str, network: Network, variant: AnyVariant, code: Encoding) -> tuple[str, Any]:
    """The weights that `text` stands for, and the text that stands for these very ones.

    `default` is the architecture's own start. All else is a file; the text is its path as given, since archives are
    published, and its SHA-256. OptionError if there are no weights, if they are not the network's, or if the file is
    no longer the one whose SHA-256 was noted.
    """
    if code.places is not None:
        raise OptionError(f"start: {shorten(text)} with symmetric=tied: expected symmetric=none")
    if text == DEFAULT:
        made = getattr(network.module, "default", None)
        if made is None:
            raise OptionError(
                f"start: 'default' with {network.name}: expected a file, or network linear or linear-threats"
            )
        return text, network.join(variant, made(variant))
    name, _, noted = text.partition(MARK)
    path = Path(name)
    try:
        evaluator = files.load(path, variant, any_rules=True)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (files.EvaluatorError, OSError) as error:
        raise OptionError(f"start: {error}") from None
    if noted and noted != found:
        raise OptionError(
            f"start: {path}: has changed since the run began (SHA-256 {found}, then {shorten(noted)})"
        )
    weights = files.genome(evaluator)
    if evaluator.network != network or len(weights) != network.count(variant):
        raise OptionError(
            f"start: {path}: is {evaluator.network.text}: expected {network.text} on this board"
        )
    return f"{path}{MARK}{found}", weights
