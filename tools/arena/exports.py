"""Which files follow a run's log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .options import Config
from .store import Export
from .values import EngineSpec

POSITIONS = "positions.jsonl"


def of(config: Config, specs: Sequence[EngineSpec], folder: Path) -> tuple[Export, ...]:
    """The exports that a configuration asks for; positions lie in the run's folder."""
    from .records import Maker

    maker = Maker(str(config["run.name"] or folder.name), specs)
    found = [
        Export(name, Path(config[f"output.{name}"]), render)
        for name, render in (("records", maker.tafl), ("jsonl", maker.line))
        if config[f"output.{name}"]
    ]
    every = config["output.positions"]
    if every:
        step = 0 if every == "final" else int(every)
        found.append(Export("positions", folder / POSITIONS, lambda result: maker.positions(result, step)))
    return tuple(found)
