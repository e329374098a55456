"""Mutated command lines, 30,000 or under `make fuzz` a million: the process survives, answers pings, keeps its state.

Lines are drawn from a fixed seed: commands from a small grammar, most of them then mutated by words or by bytes. What
would honestly keep the engine busy for hours, or end it (`quit`, deep `perft`, huge tables), is left out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from random import Random

import pytest
from conversation import Conversation

from hnefi.engine.games.tafl.variant import names

LONG = float(os.environ.get("HNEFI_FUZZ_SECONDS", "0")) > 60
LINES = 1_000_000 if LONG else 30_000
BATCH = 100
PING_LIMIT = 60.0
"""Seconds within which `isready` is answered, behind a whole batch of lines."""

SEED = 20260
FAULT = "fault of the engine"

TEMPLATES = """
    position startpos
    position startpos moves {move}
    position startpos moves a4a2 d3a3 {move} {move}
    position fen {fen}
    position fen {fen} moves {move} {move}
    position otn {fen} moves {move}
    position fern {fen}
    go {limit} {number} movetime 1
    go {limit} {number} {limit} {number}
    go {limit} {small} depth 1
    go searchmoves {move} {move} nodes 50
    go infinite
    go ponder {limit} {small}
    stop
    stop
    stop
    stop
    stop
    ponderhit
    play {move}
    undo
    variant {variant}
    setoption name Variant value {variant}
    setoption name {option} value {number}
    setoption name Rules value dim:7 name:x {otn} start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/
    rules
    rules opentafl {otn} {otn} {otn} start:{fen}
    query {question}
    query {question}
    moves
    moves verbose
    d
    eval
    variants
    help
    license
    uti
    uci
    ugi
    ucinewgame
    debug on
    debug off
    perft 1
    genfens 1 seed {number} plies 1-2
    joho \u265b {move}
""".strip().splitlines()

WORDS: dict[str, Sequence[str]] = {
    "move": [
        "d1d3",
        "a4a2",
        "d3a3",
        "a1a2",
        "k11k1",
        "z9z9",
        "d4d4",
        "e4e1",
        "d2c2",
        "h11i11",
        "d1-d3xd4/e3",
        "swap",
    ],
    "fen": [
        "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1",
        "3t3/3t3/3T3/1tTKTtt/T6/3t3/3t3 d 7 21 caps=1,2",
        "3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3 a 0 1",
        "4K2/7/7/7/t6/7/7 d 0 30",
        "7/7/7/7/7/7/7 a 0 1",
        "KKKKKKK/7/7/7/7/7/7",
        "/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/",
        "99999999999999999999/1",
        "tTK",
    ],
    "number": [
        "0",
        "1",
        "2",
        "-1",
        "-99999",
        "1e3",
        "99999999999999999999",
        "0x10",
        "\u0663",
        "nan",
        "1.5",
        "true",
    ],
    "small": ["-5", "0", "1", "2"],
    "limit": ["wtime", "btime", "atime", "dinc", "p1time", "movestogo", "depth", "nodes", "mate", "movetime"],
    "option": [
        "MultiPV",
        "Ponder",
        "Seed",
        "MoveOverhead",
        "Algorithm",
        "Evaluator",
        "Player",
        "ClearHash",
        "Nope",
    ],
    "otn": [
        "dim:7",
        "ks:s",
        "ks:w",
        "esc:c",
        "esc:e",
        "cor:",
        "spd:-1",
        "tfr:w",
        "sw:n",
        "berserk:y",
        "foo:bar",
        ":",
    ],
    "question": [
        "fen",
        "turn",
        "outcome",
        "reason",
        "captures",
        "history",
        "result",
        "gameover",
        "p1turn",
        "what",
    ],
    "variant": [*names(), "chess", "hex:11", "hnefatafl"],
}
SPECIAL_BYTES = [
    b"\x00",
    b"\xff\xfe",
    b"\r",
    b"\t",
    b"\x1b[2J",
    b"\xc3\x28",
    b"\xf0\x9f\x91\x91",
    b"#",
    b"\x7f",
    b" ",
]
UNWELCOME = {
    b"quit", b"isready", b"bench", b"perft", b"genfens", b"hash", b"threads", b"debuglogfile", b"variantpath",
}  # fmt: skip


def command(random: Random) -> bytes:
    """One command of the protocol, right or nearly so."""
    template = random.choice(TEMPLATES).strip()
    return re.sub(r"\{(\w+)\}", lambda name: random.choice(WORDS[name[1]]), template).encode()


def mutate(random: Random, line: bytes) -> bytes:
    """Change a line a little: drop, repeat, swap or cut words, or put bytes where none belong."""
    for _ in range(random.randint(1, 3)):
        parts = line.split(b" ")
        at = random.randrange(len(parts))
        match random.randrange(7):
            case 0:
                del parts[at]
                line = b" ".join(parts)
            case 1:
                line = b" ".join([*parts[:at], parts[at], *parts[at:]])
            case 2:
                random.shuffle(parts)
                line = b" ".join(parts)
            case 3:
                line = line[: random.randint(0, len(line))]
            case 4:
                cut = random.randint(0, len(line))
                line = line[:cut] + random.choice(SPECIAL_BYTES) + line[cut:]
            case 5:
                cut = random.randint(0, max(0, len(line) - 1))
                line = line[:cut] + random.randbytes(1) + line[cut + 1 :]
            case 6:
                line = b" ".join([*parts, random.choice(WORDS["number"]).encode()])
    return line.replace(b"\n", b" ")


def draw(random: Random) -> bytes:
    """The next line to send. What mutation must not turn a line into is drawn again."""
    kind = random.randrange(1000)
    if kind == 0:
        return random.choice([b"position fen ", b"play ", b"", b"go "]) + b"x" * random.randint(
            60_000, 140_000
        )
    if kind < 200:
        return command(random)
    while True:
        if kind < 230:
            line = random.randbytes(random.randint(0, 200)).replace(b"\n", b"\r")
        else:
            line = mutate(random, command(random))
        if not set(line.lower().split()) & UNWELCOME:
            return line


def ping(engine: Conversation) -> float:
    """Seconds until everything sent so far has been dealt with."""
    began = time.monotonic()
    engine.send("isready")
    answers = engine.until("readyok", PING_LIMIT)
    seconds = time.monotonic() - began
    assert not [line for line in answers if FAULT in line], [line for line in answers if FAULT in line]
    return seconds


@pytest.fixture(scope="module")
def engine() -> Iterator[Conversation]:
    """One engine for all tests, warm at first; that it ends in peace, without a word on stderr, is asserted too."""
    with Conversation() as started:
        started.send("isready")
        started.until("readyok")
        yield started


@pytest.mark.process
def test_mutated_lines(engine: Conversation) -> None:
    random = Random(SEED)
    slowest = 0.0
    sent = 0
    while sent < LINES:
        engine.send(*(draw(random) for _ in range(BATCH)))
        sent += BATCH
        slowest = max(slowest, ping(engine))
        assert engine.process.poll() is None
    engine.send("stop")
    assert slowest < PING_LIMIT, f"isready took {slowest:.2f} s"


def bad_lines(random: Random) -> bytes:
    """A line that must be refused, or understood as nothing: whatever happens, the game stands as before."""
    junk = random.choice(SPECIAL_BYTES[:-1]) + random.randbytes(random.randint(0, 20)).replace(b"\n", b"")
    illegal = random.choice([b"d1d1", b"a1a2", b"d2d7", b"d5d6", b"z1z2", b"(none)", b"0000"])
    return random.choice(
        [
            b"play " + illegal,
            b"position startpos moves a4a2 d3a3 " + illegal,
            b"position fen 3t3/3t3 a 0 1",
            b"position fen ttTKTtt",
            b"position fen " + b"7/" * random.randint(7, 90) + b"7 a",
            b"position",
            b"position startpos moves " + b"x" * random.randint(1, 100_000),
            b"variant no-such-game",
            b"rules no:such rule",
            b"setoption name Hash value -5",
            b"setoption name NoSuchThing value 1",
            b"setoption name MultiPV value 0",
            b"query " + illegal,
            b"# " + junk.replace(b"\r", b""),
            b"x" * random.randint(65_537, 100_000),
            b"\xff\xfe play d2d3",
        ]
    )


@pytest.mark.process
def test_bad_lines_change_nothing(engine: Conversation) -> None:
    random = Random(SEED)
    ping(engine)
    engine.ask("stop")
    engine.ask("variant brandubh", "setoption name MultiPV value 1", "position startpos moves a4a2 d3a3")
    state = engine.ask("query fen", "query history", "query captures", "moves verbose", "d")
    assert state[0] == "response 3t3/3t3/3T3/1tTKTtt/T6/3t3/3t3 a 0 2"
    for _ in range(50):
        engine.send(*(bad_lines(random) for _ in range(40)))
        assert ping(engine) < PING_LIMIT
        assert engine.ask("query fen", "query history", "query captures", "moves verbose", "d") == state
