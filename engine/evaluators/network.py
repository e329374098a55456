"""A network by name and sizes, `hingston2007:hidden=20` or `mlp:64,32`: its arrays, genome and record for kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from ..games.base_variant import AnyVariant
from ..wording import shorten

FOLDER = Path(__file__).with_name("networks")
NAMES = tuple(sorted(path.stem.replace("_", "-") for path in FOLDER.glob("[!_]*.py")))
"""The architectures that a file may ask for: nothing else is ever imported."""
MOST_UNITS = 512


@cache
def _module(name: str) -> Any:
    return import_module(f".networks.{name.replace('-', '_')}", __package__)


@dataclass(frozen=True, slots=True)
class Network:
    """An architecture with its sizes; which arrays it has depends on the variant's board too."""

    name: str
    options: Mapping[str, int] = field(default_factory=dict)

    @property
    def module(self) -> Any:
        """The architecture's file in `networks`."""
        return _module(self.name)

    @property
    def sizes(self) -> dict[str, int]:
        """All of its sizes, defaults included."""
        return {**self.module.OPTIONS, **self.options}

    @property
    def text(self) -> str:
        """The network as text that `parse` reads: sizes other than the defaults, layers in order."""
        sizes, usual = self.sizes, self.module.OPTIONS
        layers = _layers(self.module)
        words = [str(sizes[name]) for name in layers if sizes[name]]
        named = {pair: word for word, pair in _words(self.module).items()}
        for pair in sizes.items():
            name, number = pair
            if name not in layers and number != usual[name]:
                words.append(named.get(pair, f"{name}={number}"))
        return f"{self.name}:{','.join(words)}" if words else self.name

    @property
    def encoding(self) -> str:
        """The name of the network's inputs; another number stands for other inputs."""
        return str(getattr(self.module, "ENCODING", f"{self.name}-1"))

    @property
    def output(self) -> dict[str, Any]:
        """What its value means unless a file says otherwise."""
        meaning = getattr(self.module, "OUTPUT", "logit")
        return {"side": "a", "meaning": meaning, "scale": self.module.SCALE}

    def shapes(self, variant: AnyVariant) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the arrays, in the order of the genome; ValueError for a game it does not know."""
        if variant.game not in self.module.GAMES:
            expected = " or ".join(self.module.GAMES)
            raise ValueError(f"network {self.name}: expected a variant of {expected}, not {variant.game}")
        shapes: dict[str, tuple[int, ...]] = self.module.shapes(variant, self.sizes)
        return shapes

    def count(self, variant: AnyVariant) -> int:
        """The number of weights in a genome."""
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

    @property
    def has_policy(self) -> bool:
        """Whether it also has a policy."""
        return self.record_kind == "policy"

    @property
    def record_kind(self) -> str:
        """Which record its kernels work on: "loaded", "policy", or "nnue"."""
        return str(getattr(self.module, "RECORD", "loaded"))

    @property
    def types(self) -> Mapping[str, tuple[str, ...]]:
        """The types that each of its arrays may have; empty where all may be float32 or float64."""
        return {name: (kind,) for name, kind in getattr(self.module, "TYPES", {}).items()}

    @property
    def most_weights(self) -> int:
        """The most weights that its record can hold."""
        return int(self._record_type["weights"].shape[0])

    @property
    def _record_type(self) -> Any:
        if self.has_policy:
            from .policy_networks import POLICY_NET

            return POLICY_NET
        if self.record_kind == "nnue":
            from .nnue_network import NNUE

            return NNUE
        from .loaded import LOADED

        return LOADED

    def record(self, variant: AnyVariant, genome: Any, scale: float | None = None) -> Any:
        """The parameters for kernels, in a one-element array of dtype `loaded.LOADED`, of
        `policy_networks.POLICY_NET` with a policy, or of `nnue_network.NNUE`.

        ValueError if their number is not that of the network there, or too large.
        """
        if self.record_kind == "nnue":
            from .nnue_network import record as nnue_record

            return nnue_record(self, variant, genome, scale)
        return self.records(variant, (genome,), scale)

    def records(self, variant: AnyVariant, genomes: Sequence[Any], scale: float | None = None) -> Any:
        """The same for several genomes of real weights, an element each."""
        from ..compile import structs

        most = self.most_weights
        count = self.count(variant)
        if count > most:
            fitting = self._fitting(variant, most)
            raise ValueError(
                f"network {self.text}: {count} weights on this board: expected at most {most}{fitting}"
            )
        if wrong := [len(genome) for genome in genomes if len(genome) != count]:
            raise ValueError(f"network {self.text}: {wrong[0]} weights: expected {count} on this board")
        records = structs.zeros(self._record_type, len(genomes))
        layout = self.module.layout(variant, self.sizes)
        records["architecture"] = self.module.NUMBER
        records["scale"] = self.module.SCALE if scale is None else scale
        records["shape"][:, : len(layout)] = layout
        for record, genome in zip(records["weights"], genomes, strict=True):
            record[:count] = genome
        if not self.has_policy:
            records["used"] = count
        return records

    def _fitting(self, variant: AnyVariant, most: int) -> str:
        """The same network with its layers halved until it fits, to be named after a refusal; nothing if none does."""
        layers, sizes = _layers(self.module), self.sizes
        while any(sizes[name] > 1 for name in layers):
            sizes |= {name: (sizes[name] + 1) // 2 for name in layers}
            smaller = Network(self.name, dict(sizes))
            if smaller.count(variant) <= most:
                return f", as in {smaller.text}"
        return ""

    def naive(self, variant: AnyVariant, arrays: Mapping[str, Any], position: Any) -> float:
        """The value for side `a`, slow and obvious."""
        return float(self.module.naive(variant, self.sizes, arrays, position))


def parse(text: str) -> Network:
    """The network described by a name and sizes, as `hingston2007:hidden=20`; ValueError saying what was expected.

    An architecture with layers has numbers instead, their sizes in order (`mlp:64,32`); where it has words, each
    stands for a choice (`mlp:25,5,tanh`).
    """
    name, _, rest = text.partition(":")
    if name not in NAMES:
        raise ValueError(f"network {shorten(name, 40)}: expected one of {', '.join(NAMES)}")
    module = Network(name).module
    layers, words = _layers(module), _words(module)
    given: dict[str, int] = {}
    for word in filter(None, rest.split(",", 16)):
        key, equals, digits = word.partition("=")
        if equals:
            size = _size(digits) if key in _keys(module) else 0
        elif word in words:
            key, size = words[word]
        else:
            key, size = next((layer for layer in layers if layer not in given), ""), _size(word)
        if key not in module.OPTIONS or key in given or not (size or word in words):
            expected = _expected(module)
            raise ValueError(f"network {shorten(text)}: {shorten(word, 40)}: expected {expected}")
        given[key] = size
    if not given.keys().isdisjoint(layers):
        given = {**dict.fromkeys(layers, 0), **given}
    return Network(name, {**module.OPTIONS, **given})


def _layers(module: Any) -> tuple[str, ...]:
    """Sizes that are named by their place."""
    return getattr(module, "LAYERS", ())


def _words(module: Any) -> Mapping[str, tuple[str, int]]:
    """Words that stand for an option and its value."""
    return getattr(module, "WORDS", {})


def _keys(module: Any) -> list[str]:
    """Sizes that are named."""
    chosen = {key for key, _ in _words(module).values()}
    return [key for key in module.OPTIONS if key not in chosen and key not in _layers(module)]


def _size(text: str) -> int:
    """A size, or 0 if the text is not one."""
    digits = text.isascii() and text.isdigit() and len(text) <= 4
    return int(text) if digits and 1 <= int(text) <= MOST_UNITS else 0


def _expected(module: Any) -> str:
    layers = _layers(module)
    said = [f"at most {len(layers)} sizes from 1 to {MOST_UNITS}"] if layers else []
    said += [f"{key}=1 to {MOST_UNITS}" for key in _keys(module)]
    said += [", ".join(_words(module))] if _words(module) else []
    return " or ".join(said) or "no sizes"
