"""An engine that plays a game by heart and goes wrong where it is told to.

    python -I -S fault_engine.py MOVES [FAULT] [KEY=VALUE]...

MOVES are those of one whole game, with commas: whatever position is sent, it answers with the move of that ply. FAULT
is one of `engine_faults.py` or of the branches below and strikes at the second `go` (`at=N`: the N-th; `plies=N,N`: at
any `go` in a position after so many plies). Further keys: `proto`, `name`,
`score` (`cp 20`, `mate 3`; `none` for no score), `pv` (moves with commas), `talk` (a number to be told), `delay` in
seconds before each answer, `asked` (a file that it makes at each `go`), `gate` (no answer before there is such a
file; with `held=N` only that of ply N waits).
"""

from __future__ import annotations

import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120 - pathlib costs more; `-I` leaves the folder out

from engine_faults import hang, misbehave, say

MOVES = sys.argv[1].split(",")
WORDS = dict(word.partition("=")[::2] for word in sys.argv[2:])
AT = int(WORDS.get("at", 2))
PLIES = WORDS.get("plies", "").split(",")


def greet(word: str) -> None:
    if word != WORDS.get("proto", "uti") or "no-greeting" in WORDS:
        return
    say(f"id name {WORDS.get('name', 'Parrot')}", "option name Seed type spin default 1 min 0 max 1000000")
    say(
        "option name Side type combo default a var a var d",
        "option name Hash type spin default 1 min 1 max 64",
    )
    say("option name Button type button", "option name Variant type combo default brandubh var brandubh")
    say(f"{word}ok")


def answer(ply: int) -> None:
    """The move of this ply, with one report before it."""
    time.sleep(float(WORDS.get("delay", 0)))
    if WORDS.get("held", str(ply)) == str(ply):
        while "gate" in WORDS and not os.path.exists(WORDS["gate"]):  # noqa: PTH110 - as above
            time.sleep(0.01)
    if "talk" in WORDS:
        say(f"info string number {WORDS['talk']}", "info string something else")
    score = WORDS.get("score", "cp 20")
    report = f"info depth 3 seldepth 4 score {score} nodes 7 nps 70 time 0 pv {pv(ply)}"
    # In one write: who sees the first line in the pipe finds the second there, too.
    say(*([] if score == "none" else [report]), f"bestmove {MOVES[ply]}")


def pv(ply: int) -> str:
    return WORDS.get("pv", MOVES[ply]).replace(",", " ")


def go_wrong(ply: int) -> None:
    """The fault of this process, before an answer that may follow."""
    misbehave(WORDS)
    if "illegal" in WORDS:
        say("bestmove " + WORDS["illegal"])
        hang()
    if "no-search" in WORDS:
        say("info string error search failed: OSError no memory", "bestmove (none)")
    if "late" in WORDS:
        time.sleep(float(WORDS["late"]))
    if "twice" in WORDS:
        say(f"bestmove {MOVES[ply]}", "bestmove a1a3", "bestmove a1a4")
    if "resign" in WORDS:
        say("bestmove resign")


def main() -> None:
    if "stubborn" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asked = 0
    ply = 0
    for raw in sys.stdin.buffer:
        words = raw.decode().split()
        word = words[0] if words else ""
        if word in ("uti", "uci", "ugi"):
            greet(word)
        elif word == "isready" and "unready" in WORDS:
            say("info string error isready: EOFError no input")
        elif word == "isready" and "no-ready" not in WORDS:
            say("readyok")
        elif word == "variant":
            say(
                f"info string variant {words[1]} files 7 ranks 7 attackers 8 defenders 4 first a startpos {START}"
            )
        elif word.endswith("newgame"):
            if "idle-exit" in WORDS and asked:
                os._exit(0)
            if "early" in WORDS:
                say("bestmove a1a9")
        elif word == "position":
            ply = len(words) - words.index("moves") - 1 if "moves" in words else 0
        elif word == "go":
            asked += 1
            if "asked" in WORDS:
                open(WORDS["asked"], "w").close()  # noqa: PTH123 - as above
            strikes = str(ply) in PLIES if "plies" in WORDS else asked == AT
            if strikes:
                go_wrong(ply)
            if not (strikes and WORDS.keys() & {"twice", "resign", "no-search"}):
                answer(ply)
            if strikes and "deaf" in WORDS:
                hang()
        elif word == "quit" and "stubborn" not in WORDS:
            return
    if "stubborn" in WORDS:
        hang()


START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"

main()
