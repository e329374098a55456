"""Our own engine with a compiler that takes its time: ``python slow_engine.py WARM [GAME]``, seconds of each.

What `isready` waits for lasts WARM seconds, and a game that is not tafl GAME; meanwhile, and once at least, it is told
like real compilation. `gate=FILE` lets the first last until the file is there, `game-gate=FILE` the other. `fail=N`
lets the first N warm-ups end in an error, `no-search` every search. A compiler is a thread that holds on to the
interpreter for a tenth of a second at a time, and rests as long.
"""

from __future__ import annotations

import errno
import sys
import threading
import time
from pathlib import Path

from hnefi.engine import warmup
from hnefi.engine.compile import progress
from hnefi.engine.compile.progress import Progress
from hnefi.engine.games.base_variant import AnyVariant
from hnefi.engine.search.types import Settings
from hnefi.protocol import server

WORDS = [word for word in sys.argv[1:] if not word[0].isdigit()]
SECONDS = [float(word) for word in sys.argv[1:] if word[0].isdigit()]
FAILING = [int(word.removeprefix("fail=")) for word in WORDS if word.startswith("fail=")]
GATES = [Path(word.removeprefix("gate=")) for word in WORDS if word.startswith("gate=")]
GAME_GATES = [Path(word.removeprefix("game-gate=")) for word in WORDS if word.startswith("game-gate=")]
INTERVAL = 0.1


def tell(report: Progress) -> None:
    for listener in list(progress._listeners):
        listener(report)


def compile_for(seconds: float, part: str) -> None:
    """Like the real one: work in this thread, words from another."""
    began = time.monotonic()
    done, told = threading.Event(), threading.Event()

    def tick() -> None:
        while not done.wait(INTERVAL):
            elapsed = time.monotonic() - began
            tell(Progress(int(elapsed), int(seconds) + 1, part, elapsed, max(0.0, seconds - elapsed)))
            told.set()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        while time.monotonic() < began + seconds or (seconds and not told.is_set()):
            until = time.monotonic() + INTERVAL
            while time.monotonic() < until:
                sum(range(1000))
            time.sleep(INTERVAL)
    finally:
        done.set()
        ticker.join()


def warm(*_: object) -> float:
    compile_for(SECONDS[0], "search")
    while not all(gate.exists() for gate in GATES):
        compile_for(INTERVAL, "search")
    if FAILING and FAILING[0] > 0:
        FAILING[0] -= 1
        raise EOFError("Ran out of input")
    return SECONDS[0]


READY = {("tafl", Settings().algorithm)}
"""Games and algorithms that need nothing more: what `warm` has made ready, and what `prepare` has."""


def prepare(variant: AnyVariant, settings: Settings) -> None:
    kind = variant.game, settings.algorithm
    if kind not in READY:
        compile_for(SECONDS[1], "another game")
        while not all(gate.exists() for gate in GAME_GATES):
            compile_for(INTERVAL, "another game")
        READY.add(kind)


def no_search(*_: object) -> None:
    raise OSError(errno.ENOMEM, "Cannot allocate memory")


if "no-search" in WORDS:
    from hnefi.engine.search import searcher

    searcher.Searcher.search = no_search  # type: ignore[assignment]
warmup.load = warm  # type: ignore[assignment]
warmup.prepare = prepare  # type: ignore[assignment]
server.main([])
