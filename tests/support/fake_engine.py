"""An engine that plays nothing and misbehaves on demand: ``python fake_engine.py [proto=P] [FAULT]...``.

Run as a script with ``-I -S`` so that it starts fast. Without a fault it greets, is ready, and answers every `go` with
`bestmove a1a2 ponder a2a1` after two reports. The faults are those of `engine_faults.py` and the names of the branches
below.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120 - pathlib costs more; `-I` leaves the folder out

from engine_faults import hang, misbehave, say, write

FAULTS = frozenset(sys.argv[1:])
PROTO = next((fault.removeprefix("proto=") for fault in FAULTS if fault.startswith("proto=")), "uti")
NAME = "Fake 1.0"


def greet(word: str) -> None:
    if "no-greeting" in FAULTS:
        return
    if word != PROTO and PROTO != "any":
        say(f"info string unknown command: {word}")
        return
    say(f"id name {NAME}", "id author nobody at all")
    say("option name Hash type spin default 16 min 1 max 64", "option name Ponder type check default false")
    say("option name Style type combo default calm var calm var wild goose", "option name Clear type button")
    say(
        "option name Log type string default <empty>",
        "option name UCI_Variant type combo default x var x var y",
    )
    say(f"{word}ok")
    if "late-option" in FAULTS:
        say("option name Late type spin default 1 min -5 max 5")


COMPILERS = {"compiles", "compiles-on", "compiler-dies", "chatters"}


def compile_slowly() -> None:
    """Twelve parts, a second in all, told as our engine tells it; without an end, or in other words."""
    if not FAULTS & COMPILERS:
        return
    for part in range(12) if "compiles" in FAULTS else itertools.cycle(range(12)):
        if FAULTS & {"compiles", "compiles-on"}:
            say(f"info string compiling {part}/12 the rules ({part} s, about {12 - part} s left)")
        elif "compiler-dies" in FAULTS and part < 3:
            say(f"info string compiling {part}/12 the rules ({part} s)")
        elif "compiler-dies" in FAULTS:
            hang()
        elif "chatters" in FAULTS:
            say(f"info string compiled {part}/12 the rules ({part} s)", "info depth 1 nodes 1")
        time.sleep(0.08)


def ready() -> None:
    if "no-ready" in FAULTS:
        return
    if "unready" in FAULTS:
        say("info string error isready: EOFError Ran out of input: this is a fault of the engine")
        return
    compile_slowly()
    say("readyok")


def search() -> None:
    """Answer a `go`, or do what the faults say instead."""
    compile_slowly()
    if "no-search" in FAULTS:
        say(
            "info string error search failed: OSError no memory: this is a fault of the engine",
            "bestmove (none)",
        )
        return
    misbehave(FAULTS)
    if "deaf" in FAULTS:
        hang()
    if "escape" in FAULTS:
        # Out of our group, each the parent of the next; the last one says that all are there.
        program = (
            "import os, subprocess, sys, time; more = int(sys.argv[1]) - 1; print(os.getpid(), flush=True)\n"
            "if more: subprocess.Popen([*sys.orig_argv[:5], str(more)], start_new_session=True)\n"
            "time.sleep(600)"
        )
        words = [sys.executable, "-I", "-S", "-c", program, "3"]
        with subprocess.Popen(words, start_new_session=True, stdout=subprocess.PIPE) as first:
            for _ in range(3):
                write(b"info string escaped " + first.stdout.readline())
            os._exit(5)
    if "late" in FAULTS:
        sys.stdin.buffer.readline()
    say(
        "info depth 1 multipv 1 score cp 12 nodes 20 nps 1000 hashfull 0 time 1 pv a1a2 a2a1",
        "info depth 2 seldepth 3 multipv 1 score mate -2 wdl 0 0 1000 nodes 40 time 2 pv a1a2",
        "info string thinking aloud",
        "bestmove resign" if "resign" in FAULTS else "bestmove a1a2 ponder a2a1",
    )
    if "twice" in FAULTS:
        say("bestmove a1a3")
    if "exit-after-answer" in FAULTS:
        os._exit(0)


def main() -> None:
    if "no-term" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "early" in FAULTS:
        say("bestmove a1a9")
    thinking = False
    for raw in sys.stdin.buffer:
        word, _, rest = raw.decode("utf-8", "replace").strip().partition(" ")
        if word in ("uti", "uci", "ugi"):
            greet(word)
        elif word == "isready":
            ready()
        elif word == "go" and ("infinite" in rest or "ponder" in rest or "forever" in FAULTS):
            thinking = True
            say("info depth 1 score cp 5 pv a1a2")
        elif word == "go":
            search()
        elif word in ("stop", "ponderhit") and thinking:
            thinking = False
            say("bestmove b1b2")
        elif word == "setoption" and "refuse" in FAULTS:
            say(f"info string error {rest}: expected something else")
        elif word == "variant":
            say(
                f"info string variant {rest} files 7 ranks 7 attackers 8 defenders 4 first a startpos 7/7 a 0 1"
            )
        elif word == "echo":
            say(*rest.split("|"))
        elif word == "many":
            say(*("line" for _ in range(int(rest))))
        elif word == "environment":
            say(f"{rest}={os.environ.get(rest)}", f"cwd={Path.cwd()}")
        elif word == "quit" and "no-quit" not in FAULTS:
            return
    if "no-quit" in FAULTS:
        hang()


main()
