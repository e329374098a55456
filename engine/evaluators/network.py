"""A network by name and sizes, `hingston2007:hidden=20`: its arrays, its genome, its record for the kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import prod
from typing import Any

from ..game import AnyVariant

NAMES = ("simple", "hingston2007")
"""The architectures that a file may ask for: nothing else is ever imported."""


@dataclass(frozen=True, slots=True)
class Network:
    """An architecture with its sizes; which arrays it has depends on the variant's board too."""

    name: str
    options: Mapping[str, int] = field(default_factory=dict)

    @property
    def module(self) -> Any:
        """The architecture's file in `networks`."""
        return import_module(f".networks.{self.name}", __package__)

    def shapes(self, variant: AnyVariant) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the arrays, in the order of the genome."""
        shapes: dict[str, tuple[int, ...]] = self.module.shapes(variant, self.options)
        return shapes

    def count(self, variant: AnyVariant) -> int:
        """How many weights a genome has."""
        return sum(prod(shape) for shape in self.shapes(variant).values())

    def split(self, variant: AnyVariant, genome: Any) -> dict[str, Any]:
        """The arrays of a genome, a float64 vector of `count` weights."""
        arrays, at = {}, 0
        for name, shape in self.shapes(variant).items():
            arrays[name] = genome[at : at + prod(shape)].reshape(shape)
            at += prod(shape)
        return arrays

    def join(self, variant: AnyVariant, arrays: Mapping[str, Any]) -> Any:
        """The genome of the arrays."""
        import numpy as np

        parts = [np.asarray(arrays[name], np.float64).ravel() for name in self.shapes(variant)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def record(self, variant: AnyVariant, genome: Any, scale: float | None = None) -> Any:
        """The parameters for kernels, in a one-element recarray of dtype `loaded.LOADED`."""
        import numpy as np

        from .loaded import LOADED

        record = np.zeros(1, LOADED).view(np.recarray)
        layout = self.module.layout(variant, self.options)
        record[0]["architecture"] = self.module.NUMBER
        record[0]["scale"] = self.module.SCALE if scale is None else scale
        record[0]["shape"][: len(layout)] = layout
        record[0]["weights"][: len(genome)] = genome
        return record


def parse(text: str) -> Network:
    """The network described by a name and sizes, as `hingston2007:hidden=20`; ValueError saying what was expected."""
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise ValueError(f"network {name[:40]!r}: expected one of {', '.join(NAMES)}")
    network = Network(name)
    options = dict(network.module.OPTIONS)
    for word in filter(None, rest.split(",")):
        key, _, number = word.partition("=")
        if key not in options or not (number.isascii() and number.isdigit()) or not 1 <= int(number) <= 512:
            expected = ", ".join(f"{key}=1 to 512" for key in options) or "no sizes"
            raise ValueError(f"network {text[:80]!r}: {word[:40]!r}: expected {expected}")
        options[key] = int(number)
    return Network(name, options)
