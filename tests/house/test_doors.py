"""Made-up input at every door through which text of strangers comes: refused in words, or read, and nothing else.

`tests/corpus/DOOR/` holds good examples and every input that once failed. Each is read by itself, then hypothesis
changes them for some seconds (`HNEFI_FUZZ_SECONDS`, for all doors together; `make fuzz` takes an hour). It shrinks what
fails, and the shortest is kept in the corpus, where from then on it is a case like any other. hypothesis changes
examples blindly; `make guided` (guided.py) is led by the code that an input reaches, and adds what reaches more.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hnefi import players
from hnefi.engine.evaluators import files
from hnefi.engine.games.tafl import otn, variant
from hnefi.engine.games.tafl.fen import SetupError, parse_fen
from hnefi.engine.records import formats, rule_sets
from hnefi.engine.records.text import Losses, RecordError
from hnefi.engine.session import SessionError
from hnefi.gui_adapter.hnefatafl_org import game
from hnefi.gui_adapter.htp import lines as htp
from hnefi.gui_adapter.mqtt import requests
from hnefi.gui_adapter.otep import lines
from hnefi.gui_adapter.tablut import frames
from hnefi.protocol import answers, messages
from hnefi.protocol.commands import TABLE
from hnefi.protocol.hosts import journal
from hnefi.protocol.hosts.broker.values import Message
from hnefi.protocol.hosts.filter import Filter
from hnefi.protocol.hosts.hnefatafl_org_notation import NotationError

CORPUS = Path(__file__).parents[1] / "corpus"
SECONDS = float(os.environ.get("HNEFI_FUZZ_SECONDS", "15"))
ROUND = 200
"""Examples between two looks at the clock."""
LONGEST = 1_000_000


@dataclass(frozen=True)
class Door:
    """How one kind of input is read, and by which errors it may be refused."""

    read: Callable[[bytes, Path], object]
    refuses: tuple[type[Exception], ...] = ()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode()


def _records(form: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, _: Path) -> object:
        how = formats.Reading(rule_sets.finder(), variant.find("brandubh"))
        return list(formats.read(io.BytesIO(data), "file", form, how, Losses()))

    return read


def _file(load: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    def read(data: bytes, folder: Path) -> object:
        path = folder / "input"
        path.write_bytes(data)
        return load(path)

    return read


def _commands(data: bytes, _: Path) -> object:
    """A line of the protocol as far as it is only understood; what the engine then does, test_fuzz.py tries."""
    refusal = Filter().refusal(data)
    words = messages.command_of(messages.words_of(data), TABLE)
    parse = PARSERS.get(words[0]) if words else None
    return parse(words) if parse else refusal


PARSERS: dict[str, Callable[[list[str]], object]] = {
    "go": messages.parse_go,
    "position": messages.parse_position,
    "setoption": messages.parse_setoption,
    "genfens": messages.parse_genfens,
}


def _answers(data: bytes, _: Path) -> object:
    line = _text(data)
    return (
        answers.parse_option(line),
        answers.parse_info(line),
        answers.parse_bestmove(line),
        answers.parse_variant(line),
        answers.parse_compiling(line),
    )


def _frames(data: bytes, _: Path) -> object:
    """A message of a Tablut server or bot: read as a state, as an action and as a name."""
    frames.read_name(data)
    if b'"from"' in data:
        return frames.read_action(data)
    return frames.read_state(data)


def _otep(data: bytes, _: Path) -> object:
    """A line of OpenTafl's protocol, from either side."""
    word, _, rest = lines.without_dump(_text(data)).strip().partition(" ")
    readers: dict[str, Callable[[str], object]] = {
        "clock": lines.parse_clock, "opponent-move": lines.parse_played, "play": lines.parse_side,
        "move": lines.parse_move, "position": lines.parse_rows, "analysis": lines.parse_analysis,
    }  # fmt: skip
    return readers.get(word, lines.parse_number)(rest)


def _htp(data: bytes, _: Path) -> object:
    """A line of the Hnefatafl Text Protocol, and what may stand behind its commands."""
    words = htp.words_of(data)
    if words[:1] == ["play"]:
        return htp.read_play(words, 7)
    if words[:1] == ["time_settings"]:
        return htp.read_clock(words[1:])
    return htp.read_size(words[1:])


DOORS = {
    "command": Door(_commands, (UnicodeDecodeError, SessionError)),
    "answer": Door(_answers),
    "fen": Door(lambda data, _: parse_fen(_text(data)), (SetupError,)),
    "otn": Door(lambda data, _: otn.import_rules(_text(data)), (otn.OtnError,)),
    "variant": Door(_file(variant.load), (variant.VariantError,)),
    "player": Door(_file(players.read), (players.PlayerError,)),
    "evaluator": Door(_file(files.peek), (files.EvaluatorError,)),
    "request": Door(lambda data, _: requests.read(Message("engine/x/do", data), "alice")),
    "hnefatafl-org": Door(lambda data, _: game.read_game(_text(data)), (game.GameError,)),
    "otep": Door(_otep, (lines.LineError,)),
    "htp": Door(_htp, (NotationError,)),
    "tablut": Door(_frames, (frames.FrameError,)),
    "journal": Door(_file(lambda path: list(journal.read(path))), (RecordError,)),
    **{form: Door(_records(form), (RecordError,)) for form in formats.FORMATS},
}

PIECES = [
    b"\x00", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xd9\xa3", b"\xe2\x80\xae", b"\xef\xbb\xbf", b"\x1b[2J",
    b"\r", b"\n", b"\t", b" ", b'"', b"'", b"\\", b"{", b"}", b"[", b"]", b"[[", b"(", b")", b"<", b">", b"#", b"=",
    b":", b";", b",", b".", b"/", b"-", b"../", b"%s", b"[" * 200, b"{" * 200,
    b"-1", b"0", b"1e999", b"NaN", b"inf", b"1" * 25, b"true", b"null", b"a1", b"k11", b"z9", b"x",
]  # fmt: skip


def corpus(door: str) -> list[Path]:
    return sorted((CORPUS / door).iterdir())


@st.composite
def changed(draw: st.DrawFn, examples: list[bytes]) -> bytes:
    """An example with some bytes cut, repeated, replaced or put in, or crossed with another; sometimes mere bytes."""
    data = draw(st.sampled_from(examples))
    if draw(st.integers(0, 30)) == 30:
        return draw(st.binary(max_size=200))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        match draw(st.integers(0, 5)):
            case 0:
                data = data[:start] + data[end:]
            case 1:
                data = data[:end] + data[start:end] * draw(st.sampled_from([1, 2, 50])) + data[end:]
            case 2:
                data = data[:start] + draw(st.sampled_from(PIECES)) + data[end:]
            case 3:
                data = data[:start] + draw(st.binary(min_size=1, max_size=4)) + data[end:]
            case 4:
                other = draw(st.sampled_from(examples))
                data = data[:start] + other[draw(st.integers(0, len(other))) :]
            case _:
                data = data[:start]
    return data[:LONGEST]


def enter(door: str, data: bytes, folder: Path) -> None:
    """Read an input; anything but a result or a refusal in words is an error."""
    how = DOORS[door]
    with contextlib.suppress(*how.refuses):
        how.read(data, folder)


CASES = [(door, path.name) for door in DOORS for path in corpus(door)]


@pytest.mark.parametrize(("door", "name"), CASES, ids=["-".join(case) for case in CASES])
def test_every_case_of_the_corpus(door: str, name: str, tmp_path: Path) -> None:
    enter(door, (CORPUS / door / name).read_bytes(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_made_up_input(door: str, tmp_path: Path) -> None:
    """Half a minute over all doors draws the same inputs everywhere, as many as there is time for; longer, others."""
    examples = [path.read_bytes() for path in corpus(door)]
    failing: list[bytes] = []

    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=changed(examples))
    def attempt(data: bytes) -> None:
        try:
            enter(door, data, tmp_path)
        except BaseException:
            failing.append(data)
            raise

    until = time.monotonic() + SECONDS / len(DOORS)
    number = 0
    try:
        while number == 0 or time.monotonic() < until:
            number += 1
            seed(number if SECONDS <= 60 else int.from_bytes(os.urandom(6), "big"))(attempt)()
    finally:
        if failing:
            shortest = failing[-1]
            file = CORPUS / door / f"found-{hashlib.sha256(shortest).hexdigest()[:12]}"
            file.write_bytes(shortest)
            print(f"kept as {file}: {shortest[:200]!r}")


def test_the_corpus_is_small_and_complete() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(DOORS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 1_000_000


def test_good_examples_are_read(tmp_path: Path) -> None:
    """What is changed is right at first, or changes would end at the first test of every reader."""
    for door, how in DOORS.items():
        good = [path for path in corpus(door) if path.name.startswith("good")]
        assert good, door
        for path in good:
            result = how.read(path.read_bytes(), tmp_path)
            assert not isinstance(result, requests.Rejected), path
            if door == "answer":
                assert isinstance(result, tuple)
                assert any(result), path
            if door in formats.FORMATS:
                assert result, path
            if door == "request":
                assert json.loads(path.read_bytes())
