"""Evaluator files: arrays in the `.safetensors` format, with one JSON document that says what they are.

A file is eight bytes with the length of the header, the header (JSON: name, type, shape and place of every array, and
the document as a string under `__metadata__`, `hnefi`), then the arrays' bytes. Anybody may have written it: it can
make us import nothing but one of the architectures in `network.NAMES`, and nothing is allocated before sizes, names,
shapes and types are found to be exactly those of that architecture on that board.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import durable
from ..games.base_variant import AnyVariant, VariantError
from ..wording import shorten
from . import network as networks
from .network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
FILE_LIMIT = 1024 * 1024
HEADER_LIMIT = 64 * 1024
DOCUMENT_LIMIT = 32 * 1024
DEPTH_LIMIT = 16
ARRAYS_LIMIT = 64
KEYS_LIMIT = 64
LARGEST_WEIGHT = 1e6
"""Larger weights are refused: sums of products of these can neither overflow nor lose all precision."""
LARGEST_SCALE = 1e6

_TYPES = {"F32": "float32", "F64": "float64", "I8": "int8", "I16": "int16", "I32": "int32"}
"""Types of arrays by their names in files, and numpy's names for them."""
_TYPE_NAMES = {kind: name for name, kind in _TYPES.items()}
_WIDTHS = {"F32": 4, "F64": 8, "I8": 1, "I16": 2, "I32": 4}
_FLOATS = ("float32", "float64")
_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
_KEY = re.compile("[a-z][a-z0-9_-]{0,39}")
_VARIANT = re.compile("[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_DIGEST = re.compile("[0-9a-f]{64}")
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
_OWN = ("format", "architecture", "encoding", "game", "variant", "rules_hash", "sha256", "document_sha256")
"""Keys of the document that `Evaluator` has as fields or that are computed."""
_PROVENANCE = {
    "name": (str,),
    "description": (str,),
    "trainer": (dict,),
    "seed": (int, str),
    "generation": (int,),
    "opponents": (list,),
    "parents": (list,),
    "licence": (str,),
    "results": (dict, list),
}
_WORDS = {str: "text", dict: "an object", int: "a whole number", list: "a list"}


class EvaluatorError(ValueError):
    """Not an evaluator, or not one for these rules; the message names the file and what was found and expected."""


@dataclass(frozen=True)
class Evaluator:
    """An architecture with its arrays, its rules and its origin.

    `arrays` are in the order of the genome. `document` is everything else that the file says: `output` (`side` for
    which the value is, `meaning` `logit` or `value`, `scale` in centipawns per unit), `trainer`, `seed`, `generation`,
    `opponents`, `parents`, `licence`, `results` and whatever a trainer adds.
    """

    network: Network
    variant: str
    rules_hash: str
    game: str
    arrays: Mapping[str, Any]
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> dict[str, Any]:
        """What the value means."""
        return {**self.network.output, **self.document.get("output", {})}

    @cached_property
    def sha256(self) -> str:
        """64 hex digits: the hash of the arrays' bytes as a file holds them.

        Every search asks for it, to see whether its parameters are still those of the file; reckoning it for a megabyte
        each time once took more of a training's games than their searches.
        """
        return hashlib.sha256(b"".join(_bytes(array) for array in self.arrays.values())).hexdigest()


def make(
    network: Network, variant: AnyVariant, genome: Any, document: Mapping[str, Any] | None = None
) -> Evaluator:
    """The evaluator with these weights for a variant; ValueError if their number is not that of the network there."""
    network.record(variant, genome)
    arrays = network.split(variant, genome)
    # `record` has refused values that do not fit these types.
    arrays = {
        name: array.astype(network.types.get(name, (str(array.dtype),))[0]) for name, array in arrays.items()
    }
    return Evaluator(network, variant.name, variant.hash, variant.game, arrays, dict(document or {}))


def bare(name: str, variant: AnyVariant) -> Evaluator:
    """An architecture without weights."""
    return Evaluator(Network(name), variant.name, variant.hash, variant.game, {})


def genome(evaluator: Evaluator) -> Any:
    """All weights, a float64 vector."""
    import numpy as np

    parts = [np.asarray(array, np.float64).ravel() for array in evaluator.arrays.values()]
    return np.concatenate(parts) if parts else np.zeros(0)


def record(evaluator: Evaluator, variant: AnyVariant) -> Any:
    """The parameters for kernels, in a one-element recarray as `Network.record` makes it."""
    return evaluator.network.record(variant, genome(evaluator), float(evaluator.output["scale"]))


def demand_rules(evaluator: Evaluator, variant: AnyVariant, path: str | os.PathLike[str]) -> None:
    """EvaluatorError if an evaluator is not for the rules of a variant."""
    if evaluator.rules_hash != variant.hash:
        raise EvaluatorError(
            f"{_shown(path)}: made for {evaluator.variant} (rules hash {evaluator.rules_hash[:12]}…): expected an "
            f"evaluator for {variant.name} (rules hash {variant.hash[:12]}…)"
        )


def save(path: str | os.PathLike[str], evaluator: Evaluator) -> str:
    """Writes a file, in one step that replaces an older one, and returns the SHA-256 of the arrays' bytes.

    The same evaluator gives the same bytes everywhere. EvaluatorError if the file could not be loaded again.
    """
    target = Path(path)
    data = b"".join(_bytes(array) for array in evaluator.arrays.values())
    digest = hashlib.sha256(data).hexdigest()
    document = {
        "format": FORMAT,
        "architecture": evaluator.network.text,
        "encoding": evaluator.network.encoding,
        "output": evaluator.output,
        "game": evaluator.game,
        "variant": evaluator.variant,
        "rules_hash": evaluator.rules_hash,
        **{key: value for key, value in evaluator.document.items() if key not in (*_OWN, "output")},
        "sha256": digest,
    }
    try:
        # Values that JSON changes, tuples or numbers as keys, are hashed as they will be read.
        document = json.loads(json.dumps(document, allow_nan=False))
        document["document_sha256"] = _document_digest(document)
    except (TypeError, ValueError, RecursionError) as error:
        raise EvaluatorError(f"{_shown(path)}: document: {error}: expected JSON values") from None
    header: dict[str, Any] = {
        "__metadata__": {"hnefi": json.dumps(document, ensure_ascii=False, allow_nan=False)}
    }
    at = 0
    for name, array in evaluator.arrays.items():
        end = at + len(_bytes(array))
        header[name] = {
            "dtype": _TYPE_NAMES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    whole = struct.pack("<Q", len(text)) + text + data
    _check(_parse(target, whole), None)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        durable.put(target, whole, draft=draft)
    except OSError as error:
        raise EvaluatorError(
            f"{_shown(path)}: {error.strerror or error}: expected a file that can be written"
        ) from None
    return digest


def load(
    path: str | os.PathLike[str], variant: AnyVariant | None = None, *, any_rules: bool = False
) -> Evaluator:
    """The evaluator in a file, fully checked; EvaluatorError if anything is wrong.

    It must be for the rules of `variant`, or for those that its variant's name has here. With `any_rules` only game
    and board have to fit `variant`; the evaluator still says which rules it is for.
    """
    raw = _parse(path, _read(path))
    if variant is None:
        variant = _find(raw, None)
    elif any_rules:
        try:
            return _check(raw, variant)
        except EvaluatorError:
            # Some networks are for boards of any size: only where one is not do sizes say more than shapes of arrays.
            _demand_board(raw, variant)
            raise
    if raw.document["rules_hash"] != variant.hash:
        raise raw.error(
            f"made for {raw.document['variant']} (rules hash {raw.document['rules_hash'][:12]}…)",
            f"an evaluator for {variant.name} (rules hash {variant.hash[:12]}…)",
        )
    return _check(raw, variant)


def load_anywhere(
    path: str | os.PathLike[str], variant: AnyVariant | None = None, variants: str | None = None
) -> Evaluator:
    """As `load`, for the rules it was made for: those of `variant`, of a shipped one, or of one in `variants`."""
    raw = _parse(path, _read(path))
    if variant is None or variant.hash != raw.document["rules_hash"]:
        variant = _find(raw, variants)
        if variant.hash != raw.document["rules_hash"]:
            raise raw.error(
                f"made for {raw.document['variant']} by other rules (hash {raw.document['rules_hash'][:12]}…)",
                f"the rules of {variant.name} (hash {variant.hash[:12]}…), or those being played",
            )
    return _check(raw, variant)


def peek(path: str | os.PathLike[str]) -> Evaluator:
    """As `load`, but without checking names and shapes against the rules: for inspecting a file."""
    return _check(_parse(path, _read(path)), None)


# Reading


@dataclass(frozen=True, slots=True)
class _Raw:
    """A file whose header, document and bytes agree with each other; the arrays are still bytes."""

    path: str | os.PathLike[str]
    document: dict[str, Any]
    entries: dict[str, tuple[str, tuple[int, ...], int, int]]
    """Of every array: type, shape, first byte and the byte behind its last, counted in `data`."""
    data: memoryview

    def error(self, found: str, expected: str) -> EvaluatorError:
        return EvaluatorError(f"{_shown(self.path)}: {found}: expected {expected}")


class _Duplicate(ValueError):
    """A key occurs twice."""


def _shown(path: str | os.PathLike[str]) -> str:
    return shorten(os.fspath(path), 200)[1:-1]


def _read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a regular file of bounded size."""
    try:
        # A pipe or a device could block.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise EvaluatorError(f"{_shown(path)}: no regular file: expected a .safetensors file")
            if status.st_size > FILE_LIMIT:
                raise EvaluatorError(
                    f"{_shown(path)}: {status.st_size} bytes: expected at most {FILE_LIMIT} bytes"
                )
            return stream.read(FILE_LIMIT + 1)[:FILE_LIMIT]
    except OSError as error:
        raise EvaluatorError(f"{_shown(path)}: {error.strerror or error}: expected a readable file") from None
    except EvaluatorError:
        raise
    except ValueError as error:
        raise EvaluatorError(f"{_shown(path)}: {error}: expected the name of a file") from None


def _parse(path: str | os.PathLike[str], whole: bytes) -> _Raw:
    """The parts of a file, after every check that needs neither the architecture nor the rules."""

    def fault(found: str, expected: str) -> EvaluatorError:
        return EvaluatorError(f"{_shown(path)}: {found}: expected {expected}")

    if len(whole) < 8:
        raise fault(f"{len(whole)} bytes", "a .safetensors file, which begins with the length of its header")
    length = int.from_bytes(whole[:8], "little")
    if length > HEADER_LIMIT:
        raise fault(f"a header of {length} bytes", f"one of at most {HEADER_LIMIT}")
    if length > len(whole) - 8:
        raise fault(f"a header of {length} bytes in a file of {len(whole)}", "a whole .safetensors file")
    header = _json(path, "header", whole[8 : 8 + length])
    metadata = header.pop("__metadata__", None)
    if (
        not isinstance(metadata, dict)
        or list(metadata) != ["hnefi"]
        or not isinstance(metadata["hnefi"], str)
    ):
        raise fault(f"__metadata__ {shorten(metadata)}", "an object with one text, hnefi")
    if len(metadata["hnefi"]) > DOCUMENT_LIMIT:
        raise fault(f"a document of {len(metadata['hnefi'])} characters", f"at most {DOCUMENT_LIMIT}")
    document = _json(path, "document", metadata["hnefi"].encode())
    data = memoryview(whole)[8 + length :]
    raw = _Raw(path, document, _entries(fault, header, len(data)), data)
    _check_document(raw)
    digest = hashlib.sha256(data).hexdigest()
    if digest != document["sha256"]:
        raise fault(
            f"arrays with SHA-256 {digest[:12]}…", f"{document['sha256'][:12]}…, as the document says"
        )
    digest = _document_digest(document)
    if digest != document["document_sha256"]:
        raise fault(
            f"a document with SHA-256 {digest[:12]}…", f"{document['document_sha256'][:12]}…, as it says"
        )
    return raw


def _document_digest(document: Mapping[str, Any]) -> str:
    """The SHA-256 of a document without this digest, as JSON with sorted keys and no blanks."""
    rest = {key: value for key, value in document.items() if key != "document_sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _json(path: str | os.PathLike[str], what: str, text: bytes) -> dict[str, Any]:
    """An object from JSON of bounded depth, each key once, every number finite."""

    def fault(found: str, expected: str) -> EvaluatorError:
        return EvaluatorError(f"{_shown(path)}: {what}: {found}: expected {expected}")

    def whole_number(digits: str) -> int:
        if len(digits) > 20:
            raise _Duplicate("a number of more than 20 digits")
        return int(digits)

    def real_number(digits: str) -> float:
        number = float(digits)
        if len(digits) > 64 or not math.isfinite(number):
            raise _Duplicate(f"the number {shorten(digits, 24)}")
        return number

    def no_number(word: str) -> float:
        raise _Duplicate(word)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            if key in made:
                raise _Duplicate(f"{shorten(key, 40)} twice")
            made[key] = value
        return made

    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        raise fault("bytes that are not UTF-8", "JSON") from None
    if _too_deep(decoded):
        raise fault(f"more than {DEPTH_LIMIT} levels of nesting", "fewer")
    try:
        found = json.loads(
            decoded,
            parse_int=whole_number,
            parse_float=real_number,
            parse_constant=no_number,
            object_pairs_hook=once,
        )
    except _Duplicate as error:
        raise fault(str(error), "every key once and finite numbers") from None
    except (ValueError, RecursionError) as error:
        raise fault(f"invalid JSON ({str(error)[:80]})", "an object in JSON") from None
    if not isinstance(found, dict):
        raise fault(shorten(found, 40), "an object in JSON")
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise fault("half a surrogate pair", "text") from None
    return found


def _too_deep(text: str) -> bool:
    """Whether brackets are nested too deeply; text in quotes does not count."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        sign = match[0]
        if sign in "[{":
            depth += 1
            if depth > DEPTH_LIMIT:
                return True
        elif sign in "]}":
            depth -= 1
    return False


def _entries(
    fault: Any, header: dict[str, Any], size: int
) -> dict[str, tuple[str, tuple[int, ...], int, int]]:
    """The arrays of a header: they must be contiguous and fill the rest of the file."""
    if len(header) > ARRAYS_LIMIT:
        raise fault(f"{len(header)} arrays", f"at most {ARRAYS_LIMIT}")
    found = {}
    for name, entry in header.items():
        if not _NAME.fullmatch(name):
            raise fault(f"an array called {shorten(name, 40)}", "small letters, digits and _")
        if not isinstance(entry, dict) or sorted(entry) != ["data_offsets", "dtype", "shape"]:
            raise fault(f"{name}: {shorten(entry, 60)}", "dtype, shape and data_offsets")
        kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(kind, str) or kind not in _TYPES:
            raise fault(f"{name}: type {shorten(kind, 20)}", " or ".join(_TYPES))
        if not _naturals(shape) or len(shape) > 4:
            raise fault(f"{name}: shape {shorten(shape, 60)}", "at most four sizes")
        if not _naturals(offsets) or len(offsets) != 2:
            raise fault(
                f"{name}: data_offsets {shorten(offsets, 60)}", "the first byte and the one after the last"
            )
        if offsets[1] - offsets[0] != math.prod(shape) * _WIDTHS[kind]:
            raise fault(
                f"{name}: {offsets[1] - offsets[0]} bytes for the shape {shorten(shape, 60)}",
                f"{math.prod(shape) * _WIDTHS[kind]}",
            )
        found[name] = (kind, tuple(shape), offsets[0], offsets[1])
    at = 0
    for name, (_, _, begin, end) in sorted(found.items(), key=lambda item: item[1][2:]):
        if begin != at:
            raise fault(f"{name} begins at byte {begin}", f"{at}, where the array before it ends")
        at = end
    if at != size:
        raise fault(f"{size} bytes of arrays", f"{at}, as the header says")
    return found


def _naturals(value: Any) -> bool:
    """Whether it is a list of whole numbers that can be sizes or offsets."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n <= FILE_LIMIT for n in value)


def _check_document(raw: _Raw) -> None:
    """Check the document's keys and types; what the trainer adds is limited in size but not interpreted."""
    document = raw.document
    if len(document) > KEYS_LIMIT:
        raise raw.error(f"a document with {len(document)} keys", f"at most {KEYS_LIMIT}")
    for key in document:
        if not _KEY.fullmatch(key):
            raise raw.error(f"a key {shorten(key, 40)}", "small letters, digits, - and _")
    if document.get("format") != FORMAT or type(document["format"]) is not int:
        raise raw.error(f"format {shorten(document.get('format'), 20)}", f"{FORMAT}")
    for key, pattern, words in (
        ("architecture", None, "the name of a network"),
        ("encoding", None, "the name of its inputs"),
        ("game", None, "a game"),
        ("variant", _VARIANT, "the name of a variant"),
        ("rules_hash", _DIGEST, "64 hex digits"),
        ("sha256", _DIGEST, "64 hex digits"),
        ("document_sha256", _DIGEST, "64 hex digits"),
    ):
        value = document.get(key)
        if not isinstance(value, str) or len(value) > 400 or (pattern and not pattern.fullmatch(value)):
            raise raw.error(f"{key} {shorten(value, 60)}", words)
    output = document.get("output")
    if not isinstance(output, dict) or sorted(output) != ["meaning", "scale", "side"]:
        raise raw.error(f"output {shorten(output, 60)}", "side, meaning and scale")
    if output["side"] != "a" or output["meaning"] not in ("logit", "value"):
        raise raw.error(f"output {shorten(output, 60)}", "a logit or value for side a")
    if type(output["scale"]) not in (int, float) or not 0 < output["scale"] <= LARGEST_SCALE:
        raise raw.error(f"scale {shorten(output['scale'], 40)}", f"more than 0 and at most {LARGEST_SCALE:g}")
    for key, kinds in _PROVENANCE.items():
        if key in document and type(document[key]) not in (*kinds, type(None)):
            words = " or ".join(_WORDS[kind] for kind in kinds)
            raise raw.error(f"{key} {shorten(document[key], 60)}", words)


def _find(raw: _Raw, variants: str | None) -> AnyVariant:
    """The variant that a file names."""
    from .. import games

    try:
        return games.find(raw.document["variant"], variants)
    except VariantError as error:
        raise raw.error(
            f"made for {raw.document['variant']}", f"a variant that is known here ({error})"
        ) from None


def _demand_board(raw: _Raw, variant: AnyVariant) -> None:
    """EvaluatorError if a file is for a variant that is known here, on a board of another size."""
    from .. import games

    try:
        own = games.find(raw.document["variant"])
    except VariantError:
        return
    sizes = [f"{one.files} x {one.ranks} squares" for one in (own, variant)]
    if own.hash == raw.document["rules_hash"] and own.game == variant.game and sizes[0] != sizes[1]:
        raise raw.error(f"made for {own.name}, on {sizes[0]}", f"one for {sizes[1]}, as {variant.name} has")


def _check(raw: _Raw, variant: AnyVariant | None) -> Evaluator:
    """The evaluator of a file: architecture, arrays and weights. `save` does not know the variant's shapes."""
    document = raw.document
    try:
        network = networks.parse(document["architecture"])
        shapes = None if variant is None else network.shapes(variant)
    except ValueError as error:
        raise EvaluatorError(f"{_shown(raw.path)}: {error}") from None
    if document["encoding"] != network.encoding:
        raise raw.error(f"encoding {shorten(document['encoding'], 40)}", network.encoding)
    if variant is not None and document["game"] != variant.game:
        raise raw.error(f"an evaluator for {shorten(document['game'], 40)}", variant.game)
    if shapes is not None:
        _check_shapes(raw, network, shapes)
    arrays = dict(_arrays(raw, list(shapes or raw.entries)))
    own = {key: value for key, value in document.items() if key not in _OWN}
    return Evaluator(network, document["variant"], document["rules_hash"], document["game"], arrays, own)


def _check_shapes(raw: _Raw, network: Network, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name in raw.entries:
        if name not in shapes:
            raise raw.error(f"an array {name}", f"only {', '.join(shapes) or 'none'} for {network.text}")
    for name, shape in shapes.items():
        if name not in raw.entries:
            raise raw.error(f"no array {name}", f"{', '.join(shapes)} for {network.text}")
        kinds = network.types.get(name, _FLOATS)
        if _TYPES[raw.entries[name][0]] not in kinds:
            expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
            raise raw.error(f"{name}: type {raw.entries[name][0]}", f"{expected} for {network.text}")
        if raw.entries[name][1] != shape:
            raise raw.error(
                f"{name}: shape {list(raw.entries[name][1])}", f"{list(shape)} for {network.text} there"
            )
    if (count := sum(map(math.prod, shapes.values()))) > network.most_weights:
        raise raw.error(f"{count} weights", f"at most {network.most_weights}")


def _arrays(raw: _Raw, names: list[str]) -> Iterator[tuple[str, Any]]:
    import numpy as np

    for name in names:
        kind, shape, begin, end = raw.entries[name]
        little = np.dtype(_TYPES[kind]).newbyteorder("<")
        array = np.frombuffer(raw.data[begin:end], little).reshape(shape)
        # The type of whole numbers limits them already.
        bad = ~(np.abs(array) <= LARGEST_WEIGHT) if _TYPES[kind] in _FLOATS else np.zeros(shape, bool)
        if bad.any():
            at = [int(i) for i in np.argwhere(bad)[0]]
            raise raw.error(f"{name}{at} is {array[tuple(at)]}", f"finite numbers up to {LARGEST_WEIGHT:g}")
        native = array.astype(array.dtype.newbyteorder("="), copy=sys.byteorder != "little")
        native.flags.writeable = False
        yield name, native


def _bytes(array: Any) -> bytes:
    """An array as a file holds it: little-endian, in row-major order; EvaluatorError for a type that files
    do not know."""
    kind = str(array.dtype)
    if kind not in _TYPE_NAMES:
        raise EvaluatorError(f"an array of {kind}: expected {', '.join(_TYPE_NAMES)}")
    return bytes(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
