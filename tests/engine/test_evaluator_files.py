"""Evaluator files: what is saved is loaded, and whatever else somebody hands us is refused, quickly and in words."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import resource
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conversation import Conversation
from patience import PROMPTLY
from safetensors.numpy import load_file

from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import files, network
from hnefi.engine.evaluators.files import Evaluator, EvaluatorError
from hnefi.engine.games import interface as verbs
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Limits, SearchResult, Settings
from hnefi.engine.session import Session, SessionError

DOCUMENT = {
    "name": "an example",
    "trainer": {"name": "none", "sigma": 0.25, "nested": {"list": [1, 2.5, None, True, "é"]}},
    "seed": 7,
    "generation": 12,
    "opponents": ["random"],
    "parents": ["0" * 64],
    "licence": "MIT",
    "results": {"simple": [1, 2, 3]},
    "fitness": 2.5,
}
FILES = [
    ("hingston2007", "brandubh"),
    ("linear", "copenhagen"),
    ("linear-tablut", "tablut-herr-7"),
    ("linear-threats", "tablut-linnaeus"),
    ("mlp:6,4,tanh", "hexapawn:4x3"),
    ("mlp:5", "hex:4"),
    ("simple", "brandubh"),
]
MEMORY = 24 * 1024 * 1024


def made(text: str, variant_name: str, *, single: bool = False) -> Evaluator:
    net, variant = network.parse(text), games.find(variant_name)
    genome = np.random.default_rng(5).normal(0, 0.3, net.count(variant))
    evaluator = files.make(net, variant, genome, DOCUMENT)
    if not single:
        return evaluator
    arrays = {name: array.astype(np.float32) for name, array in evaluator.arrays.items()}
    return Evaluator(net, variant.name, variant.hash, variant.game, arrays, DOCUMENT)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A network for brandubh."""
    files.save(tmp_path / "good.safetensors", made("hingston2007", "brandubh"))
    return tmp_path / "good.safetensors"


def taken_apart(whole: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Header, document and arrays of a file."""
    (length,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["hnefi"]), whole[8 + length :]


def put_together(header: dict[str, Any], document: dict[str, Any], data: bytes) -> bytes:
    """A file whose hashes are right, whatever else is wrong with it."""
    document = {**document, "sha256": hashlib.sha256(data).hexdigest()}
    document.pop("document_sha256", None)
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    document["document_sha256"] = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()
    text = json.dumps({**header, "__metadata__": {"hnefi": json.dumps(document)}}).encode()
    return struct.pack("<Q", len(text)) + text + data


# Saving and loading


@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
@pytest.mark.parametrize(("text", "variant_name"), FILES)
def test_what_is_saved_is_loaded(tmp_path: Path, text: str, variant_name: str, single: bool) -> None:
    saved, path = made(text, variant_name, single=single), tmp_path / "file.safetensors"
    digest = files.save(path, saved)
    loaded = files.load(path)
    assert digest == loaded.sha256 == saved.sha256
    assert (loaded.network, loaded.variant, loaded.rules_hash, loaded.game) == (
        saved.network,
        saved.variant,
        saved.rules_hash,
        saved.game,
    )
    assert list(loaded.arrays) == list(saved.arrays)
    assert {key: loaded.document[key] for key in DOCUMENT} == DOCUMENT
    assert np.array_equal(files.genome(loaded), files.genome(saved))
    assert files.genome(loaded).dtype == np.float64
    again = tmp_path / "again.safetensors"
    files.save(again, loaded)
    assert again.read_bytes() == path.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["again.safetensors", "file.safetensors"]
    # Others read the same arrays.
    others = load_file(path)
    assert {name: array.shape for name, array in others.items()} == loaded.network.shapes(
        games.find(variant_name)
    )
    assert all(np.array_equal(others[name], loaded.arrays[name]) for name in others)


def test_a_record_has_the_weights_and_the_scale_of_the_file(good: Path) -> None:
    variant, plain = games.find("brandubh"), files.load(good)
    scaled = Evaluator(
        plain.network, plain.variant, plain.rules_hash, plain.game, plain.arrays,
        {"output": {"scale": 250.0}},
    )  # fmt: skip
    files.save(good, scaled)
    loaded = files.load(good, variant)
    assert loaded.output == {"side": "a", "meaning": "logit", "scale": 250.0}
    state = games.initial(variant).new_record()[0]
    params = files.record(loaded, variant)[0]
    value = verbs.value(params, state)
    assert value == pytest.approx(
        loaded.network.naive(variant, loaded.arrays, games.initial(variant)), abs=1e-12
    )
    assert verbs.evaluate(params, state) == int(value * 250)


def test_other_rules_are_refused_unless_told_otherwise(good: Path) -> None:
    other = games.find("brandubh").with_switches(king_armed="no")  # type: ignore[attr-defined]
    with pytest.raises(
        EvaluatorError, match=r"good\.safetensors: made for brandubh .*: expected an evaluator for"
    ):
        files.load(good, other)
    assert files.load(good, other, any_rules=True).rules_hash == games.find("brandubh").hash
    for wrong in ("copenhagen", "hex:7"):
        with pytest.raises(EvaluatorError, match="expected"):
            files.load(good, games.find(wrong), any_rules=True)


def test_an_evaluator_for_rules_of_ones_own(tmp_path: Path) -> None:
    own = games.find("brandubh").with_switches(king_armed="no")  # type: ignore[attr-defined]
    net = network.parse("linear-tablut")
    path = tmp_path / "own.safetensors"
    files.save(path, files.make(net, own, np.ones(14)))
    assert files.load(path, own).rules_hash == own.hash
    assert files.load_anywhere(path, own).rules_hash == own.hash
    with pytest.raises(EvaluatorError, match="expected"):
        files.load(path)


@pytest.mark.parametrize(
    "document",
    [{"trainer": {"sigma": float("nan")}}, {"results": {"x": object()}}, {"seed": [1]}, {"a b": 1}],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "file.safetensors"
    path.write_bytes(b"before")
    net, variant = network.parse("linear"), games.find("brandubh")
    with pytest.raises(EvaluatorError, match="expected"):
        files.save(path, files.make(net, variant, np.zeros(16), document))
    with pytest.raises(EvaluatorError, match="finite"):
        files.save(path, files.make(net, variant, np.full(16, np.inf)))
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"before"]


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="expected a file that can be written"):
        files.save(tmp_path / "none" / "file.safetensors", made("linear", "brandubh"))


# Hostile files: one fault each, all hashes right

Fault = Callable[[dict[str, Any], dict[str, Any], bytearray], None]


def _set(name: str, key: str, value: Any) -> Fault:
    def act(header: dict[str, Any], _: dict[str, Any], __: bytearray) -> None:
        header[name][key] = value

    return act


def _say(key: str, value: Any) -> Fault:
    def act(_: dict[str, Any], document: dict[str, Any], __: bytearray) -> None:
        document[key] = value

    return act


def _put(number: float) -> Fault:
    def act(_: dict[str, Any], __: dict[str, Any], data: bytearray) -> None:
        data[80:88] = struct.pack("<d", number)

    return act


def _overlap(header: dict[str, Any], _: dict[str, Any], __: bytearray) -> None:
    header["output_bias"]["data_offsets"] = [0, 8]


def _gap(header: dict[str, Any], _: dict[str, Any], data: bytearray) -> None:
    header["output_bias"]["data_offsets"] = [n + 8 for n in header["output_bias"]["data_offsets"]]
    data += b"\0" * 8


def _extra(header: dict[str, Any], _: dict[str, Any], data: bytearray) -> None:
    header["secret"] = {"dtype": "F64", "shape": [1], "data_offsets": [len(data), len(data) + 8]}
    data += b"\0" * 8


def _many(header: dict[str, Any], _: dict[str, Any], __: bytearray) -> None:
    header.update({f"a{i}": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for i in range(1000)})


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


FAULTS: list[tuple[str, Fault, str]] = [
    ("nan", _put(float("nan")), "vertical[0, 3, 1] is nan: expected finite numbers"),
    ("infinity", _put(float("-inf")), "is -inf: expected finite numbers"),
    ("huge weight", _put(1e7), "is 10000000.0: expected finite numbers up to 1e+06"),
    ("transposed", _set("vertical", "shape", [7, 5, 3]), "vertical: shape [7, 5, 3]: expected [5, 7, 3]"),
    ("flat", _set("vertical", "shape", [105]), "vertical: shape [105]: expected [5, 7, 3]"),
    ("five sizes", _set("vertical", "shape", [5, 7, 3, 1, 1]), "expected at most four sizes"),
    ("huge shape", _set("vertical", "shape", [2**40]), "expected at most four sizes"),
    ("negative shape", _set("vertical", "shape", [-5, -7, 3]), "expected at most four sizes"),
    ("shape of truth", _set("output_bias", "shape", [True]), "expected at most four sizes"),
    ("shape of words", _set("vertical", "shape", "5, 7, 3"), "expected at most four sizes"),
    ("overflowing shape", _set("vertical", "shape", [2**16] * 4), "840 bytes for the shape"),
    ("negative offsets", _set("vertical", "data_offsets", [-840, 0]), "expected the first byte"),
    ("offsets reversed", _set("vertical", "data_offsets", [840, 0]), "-840 bytes for the shape"),
    ("huge offsets", _set("vertical", "data_offsets", [2**62, 2**62 + 840]), "expected the first byte"),
    ("three offsets", _set("vertical", "data_offsets", [0, 840, 840]), "expected the first byte"),
    ("no offsets", _set("vertical", "data_offsets", None), "expected the first byte"),
    ("overlap", _overlap, "begins at byte 0: expected 8"),
    ("gap", _gap, "expected 6960, where the array before it ends"),
    ("pickle", _set("vertical", "dtype", "O"), "type 'O': expected F32 or F64"),
    ("whole numbers", _set("vertical", "dtype", "I64"), "type 'I64': expected F32 or F64"),
    ("type of nothing", _set("vertical", "dtype", None), "type None: expected F32 or F64"),
    ("one key more", _set("vertical", "more", 1), "expected dtype, shape and data_offsets"),
    ("an array more", _extra, "an array secret: expected only vertical"),
    ("many arrays", _many, "arrays: expected at most 64"),
    ("no array", lambda header, _, __: header.pop("vertical"), "begins at byte 840: expected 0"),
    (
        "wrong name",
        lambda header, _, __: header.update(vert=header.pop("vertical")),
        "an array vert: expected only",
    ),
    ("path as name", lambda h, _, __: h.update({"../x": h.pop("vertical")}), "expected small letters"),
    ("no object", lambda h, _, __: h.update(vertical=[1, 2]), "expected dtype, shape and data_offsets"),
    ("unknown network", _say("architecture", "os"), "network 'os': expected one of hingston2007"),
    ("module as network", _say("architecture", "..session"), "expected one of hingston2007"),
    ("other network", _say("architecture", "linear"), "encoding 'hingston2007-1': expected linear-1"),
    ("other size", _say("architecture", "hingston2007:hidden=9"), "hidden: shape [10, 38]: expected [9, 38]"),
    ("huge size", _say("architecture", "hingston2007:hidden=100000"), "expected hidden=1 to 512"),
    ("size of words", _say("architecture", ["hingston2007"]), "expected the name of a network"),
    ("endless name", _say("architecture", "x" * 30000), "expected the name of a network"),
    ("other encoding", _say("encoding", "hingston2007-2"), "expected hingston2007-1"),
    ("other game", _say("game", "hex"), "an evaluator for 'hex': expected tafl"),
    ("no game", lambda _, document, __: document.pop("game"), "game None: expected a game"),
    ("unknown variant", _say("variant", "nowhere"), "made for nowhere: expected a variant that is known"),
    ("huge variant", _say("variant", "hex:99999999999"), "expected a variant that is known"),
    ("path as variant", _say("variant", "../../etc/passwd"), "expected the name of a variant"),
    ("other variant", _say("variant", "copenhagen"), "made for copenhagen"),
    ("wrong rules hash", _say("rules_hash", "0" * 64), "made for brandubh (rules hash 000000000000…)"),
    ("no rules hash", _say("rules_hash", "brandubh"), "expected 64 hex digits"),
    ("format 2", _say("format", 2), "format 2: expected 1"),
    ("true format", _say("format", True), "format True: expected 1"),
    ("no output", _say("output", None), "expected side, meaning and scale"),
    ("output for d", _say("output", {"side": "d", "meaning": "logit", "scale": 1}), "for side a"),
    (
        "scale 0",
        _say("output", {"side": "a", "meaning": "logit", "scale": 0}),
        "scale 0: expected more than 0",
    ),
    (
        "scale of truth",
        _say("output", {"side": "a", "meaning": "logit", "scale": True}),
        "expected more than 0",
    ),
    ("seed as list", _say("seed", [1]), "seed [1]: expected a whole number or text"),
    ("trainer as text", _say("trainer", "me"), "trainer 'me': expected an object"),
    ("strange key", _say("A key", 1), "a key 'A key': expected small letters"),
    ("many keys", lambda _, d, __: d.update({f"k{i}": i for i in range(100)}), "keys: expected at most 64"),
    ("deep document", _say("trainer", {"x": _deep(50)}), "more than 16 levels of nesting"),
    ("deeper document", _say("trainer", {"x": _deep(300)}), "more than 16 levels of nesting"),
    ("long document", _say("description", "x" * 40000), "a document of 4"),
    ("half a sign", _say("description", "\ud800"), "half a surrogate pair"),
]


@pytest.mark.parametrize(("fault", "expected"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_a_file_with_one_fault_is_refused_in_words(good: Path, fault: Fault, expected: str) -> None:
    header, document, data = taken_apart(good.read_bytes())
    changed = bytearray(data)
    fault(header, document, changed)
    header.pop("__metadata__")
    good.write_bytes(put_together(header, document, bytes(changed)))
    with pytest.raises(EvaluatorError) as refused:
        files.load(good)
    message = str(refused.value)
    assert expected in message
    assert message.startswith(str(good)[:199])
    assert len(message) < 900


def raw(text: str | bytes, data: bytes = b"") -> bytes:
    """A file with this header."""
    header = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(header)) + header + data


WHOLE: list[tuple[str, bytes, str]] = [
    ("empty", b"", "0 bytes: expected a .safetensors file"),
    ("seven bytes", b"\0" * 7, "7 bytes: expected"),
    ("a header of nothing", raw(""), "expected an object in JSON"),
    ("endless header", b"\xff" * 8 + b"{}", "a header of 18446744073709551615 bytes"),
    ("longer header", struct.pack("<Q", 100) + b"{}", "a header of 100 bytes in a file of 10"),
    ("zeros", b"\0" * 1000, "invalid JSON"),
    ("a list", raw("[]"), "expected an object in JSON"),
    ("a million bytes", b"\0" * 1_100_000, "expected at most 1048576 bytes"),
    ("deep lists", raw("[" * 60_000), "more than 16 levels of nesting"),
    ("deep objects", raw('{"a":' * 10_000 + "1" + "}" * 10_000), "more than 16 levels of nesting"),
    ("quotes", raw('{"' + '\\"' * 30_000), "invalid JSON"),
    ("backslash", raw('{"a\\'), "invalid JSON"),
    ("long number", raw('{"a":' + "1" * 60_000 + "}"), "more than 20 digits"),
    ("long fraction", raw('{"a":0.' + "1" * 60_000 + "}"), "the number"),
    ("overflow", raw('{"a":1e999}'), "the number '1e999'"),
    ("nan", raw('{"a":NaN}'), "NaN"),
    ("twice", raw('{"a":1,"b":2,"a":3}'), "'a' twice"),
    ("twice many", raw("{" + ",".join(f'"{i}":1' for i in range(6000)) + ',"5999":1}'), "'5999' twice"),
    ("not UTF-8", raw(b'{"\xff":1}'), "not UTF-8"),
    ("no metadata", raw("{}"), "__metadata__ None"),
    ("more metadata", raw('{"__metadata__":{"hnefi":"{}","code":"import os"}}'), "an object with one text, hnefi"),
    ("numbers as metadata", raw('{"__metadata__":{"hnefi":1}}'), "an object with one text, hnefi"),
    ("empty document", raw('{"__metadata__":{"hnefi":""}}'), "document: invalid JSON"),
    ("void document", raw('{"__metadata__":{"hnefi":"{}"}}'), "format None: expected 1"),
    ("half a sign", raw('{"__metadata__":{"hnefi":"\\ud800"}}'), "half a surrogate pair"),
    ("pickle", b"\x80\x04\x95" + b"c__builtin__\neval\n" * 20, "a header of"),
    ("zip", b"PK\x03\x04" + b"\0" * 100, "a header of"),
]  # fmt: skip


@pytest.mark.parametrize(("whole", "expected"), [row[1:] for row in WHOLE], ids=[row[0] for row in WHOLE])
def test_a_file_that_is_none_is_refused_in_words(tmp_path: Path, whole: bytes, expected: str) -> None:
    path = tmp_path / "file.safetensors"
    path.write_bytes(whole)
    tracemalloc.start()
    begun = time.process_time()
    with pytest.raises(EvaluatorError, match=re.escape(expected)):
        files.load(path)
    assert time.process_time() - begun < PROMPTLY
    assert tracemalloc.get_traced_memory()[1] < MEMORY
    tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    (tmp_path / "folder.safetensors").mkdir()
    for path in (pipe, tmp_path / "folder.safetensors", tmp_path / "none", "/dev/zero", "a\0b", "x" * 10_000):
        with pytest.raises(EvaluatorError, match="expected"):
            files.load(path)


def corrupted(draw: random.Random, whole: bytes) -> bytes:
    """A file in which something was changed that cannot be meant."""
    (length,) = struct.unpack("<Q", whole[:8])
    changed = bytearray(whole)
    match draw.randrange(8):
        case 0 | 1:  # bits
            for _ in range(draw.choice((1, 1, 1, 2, 30))):
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        case 2:  # bits of the header
            changed[draw.randrange(8 + length)] ^= 1 << draw.randrange(8)
        case 3:  # cut
            del changed[draw.randrange(len(changed)) :]
        case 4:  # something more
            at = draw.choice((draw.randrange(len(changed)), len(changed)))
            changed[at:at] = draw.randbytes(draw.randrange(1, 3000))
        case 5:  # another length
            changed[:8] = struct.pack(
                "<Q", draw.choice((draw.getrandbits(64), draw.randrange(2 * len(whole))))
            )
        case 6:  # another number somewhere in the header
            places = list(re.finditer(rb"\d+", bytes(changed[8 : 8 + length])))
            found = draw.choice(places)
            changed[8 + found.start() : 8 + found.end()] = str(
                draw.getrandbits(draw.choice((4, 20, 70)))
            ).encode()
            changed[:8] = struct.pack("<Q", length + len(changed) - len(whole))
        case _:  # a part out of its place
            a, b = sorted(draw.randrange(len(changed)) for _ in range(2))
            part = changed[a:b]
            del changed[a:b]
            at = draw.randrange(len(changed) + 1)
            changed[at:at] = part
    return bytes(changed)


def refusal(path: Path) -> str:
    """Why a file is refused; "" if it is not."""
    try:
        files.load(path)
    except EvaluatorError as error:
        return str(error)
    return ""


def test_a_thousand_corrupted_files_are_refused(tmp_path: Path) -> None:
    """With the seed fixed, every one of them: no flipped bit of arrays, header or document goes unseen."""
    path, draw = tmp_path / "file.safetensors", random.Random(2007)
    originals = []
    for text, variant_name in FILES:
        files.save(path, made(text, variant_name))
        originals.append(path.read_bytes())
        files.load(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest, refused, bad = 0.0, 0, []
    while refused + len(bad) < 1000:
        original = draw.choice(originals)
        whole = corrupted(draw, original)
        if whole == original:
            continue
        path.write_bytes(whole)
        begun = time.process_time()
        message = refusal(path)
        seconds = time.process_time() - begun
        if message:
            refused += 1
            assert str(path) in message
            assert "expected" in message
            assert len(message) < 1200
        else:
            bad.append(whole)
        slowest = max(slowest, seconds)
    print(f"the slowest took {1000 * slowest:.1f} ms")
    assert bad == []
    assert slowest < PROMPTLY
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MEMORY // 1024


# Session and protocol


class Results(list[tuple[Any, SearchResult]]):
    def __call__(self, position: Any, result: SearchResult) -> None:
        self.append((position, result))


def test_a_session_searches_by_a_file(good: Path) -> None:
    results = Results()
    session = Session(on_result=results)
    session.set_variant("brandubh")
    session.set_option("Evaluator", str(good))
    assert session.settings.evaluator == str(good)
    assert session.misfit is None
    terms, expected = session.evaluate(), evaluators.terms(str(good), session.position)
    assert terms == expected
    assert [name for name, _ in terms] == ["network", "total"]
    remarks = session.remarks()
    assert re.fullmatch(r"network hingston2007 a logit \S+ probability 0\.\d{6}", remarks[0])
    assert re.fullmatch(r"network pieces a( [tTK][a-g][1-7] [+-]\d+){8}", remarks[1])
    session.go(Limits(depth=2))
    assert session.wait(60)
    # The file is changed: it is read when it is set, not before.
    weaker = files.make(network.parse("linear-tablut"), games.find("brandubh"), np.zeros(14))
    files.save(good, weaker)
    assert session.evaluate() == terms
    session.set_option("Evaluator", str(good))
    assert session.evaluate()[-1] == ("total", 0)
    good.unlink()
    session.go(Limits(depth=1))
    assert session.wait(60)
    assert len(results) == 2
    assert all(result.move for _, result in results)


def test_searches_by_a_file_reckon_its_hash_once(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network's weights may be a megabyte, and a small search takes no longer than hashing them."""
    sums = 0

    def counted(array: Any, ours: Callable[[Any], bytes] = files._bytes) -> bytes:
        nonlocal sums
        sums += 1
        return ours(array)

    evaluators.read(str(good))
    monkeypatch.setattr(files, "_bytes", counted)
    position = games.initial(games.find("brandubh"))
    searcher = Searcher(Settings(hash_mib=1, evaluator=str(good)))
    for _ in range(3):
        searcher.begin()
        assert searcher.search(position, Limits(depth=1), lambda _: None).move
    assert sums == len(files.peek(str(good)).arrays)


def test_a_refused_evaluator_leaves_the_old_one(good: Path) -> None:
    session = Session()
    session.set_variant("brandubh")
    session.set_option("Evaluator", "simple")
    good.write_bytes(good.read_bytes()[:-1])
    for wrong, expected in (
        (str(good), "good.safetensors: 6"),
        ("nowhere.safetensors", "nowhere.safetensors: No such file"),
        (
            "nobody",
            "expected a file whose name ends in .safetensors, the name of a player (its evaluator is used), or one of "
            + ", ".join(evaluators.NAMES),
        ),
    ):
        with pytest.raises(SessionError, match=re.escape(expected)):
            session.set_option("Evaluator", wrong)
        assert session.option("Evaluator") == session.settings.evaluator == "simple"


@pytest.mark.process
def test_rules_that_do_not_fit_are_told_and_lose_no_game(good: Path) -> None:
    with Conversation() as engine:
        engine.send("uti", f"setoption name Evaluator value {good}")
        engine.send("isready")
        lines = engine.until("readyok")
        assert any(line.startswith("info string note ") and "made for brandubh" in line for line in lines)
        engine.send("variant brandubh", "eval", "variant tablut", "eval", "go depth 1")
        lines = engine.until("bestmove")
        errors = [line for line in lines if line.startswith("info string error ")]
        assert [line.split()[3] for line in errors] == ["variant:", "eval:", "go:"]
        assert all(
            "made for brandubh" in line and "expected an evaluator for tablut" in line for line in errors
        )
        assert any(re.match(r"info string eval total a -?\d+ stm", line) for line in lines)
        assert lines[-1] != "bestmove (none)"
