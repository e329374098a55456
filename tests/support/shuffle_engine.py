"""An engine without any rules that plays brandubh: it moves a few men to and fro where nothing can happen to them.

Run as a script with ``-I -S`` so that it starts fast. Which man goes where depends on `Seed` and ply alone.
"""

import sys

START = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a 0 1"
MEN = (
    (("a4", "a3", "a2"), ("g4", "g3", "g2"), ("d1", "c1", "b1")),
    (("d3", "c3"), ("d5", "c5"), ("d5", "e5")),
)


def choose(seed, moves):
    """A move after `moves` from the start."""
    at = {lane: lane[0] for side in MEN for lane in side}
    for move in moves:
        lane = next((lane for lane, square in at.items() if square == move[:2] and move[2:] in lane), None)
        if lane:
            at[lane] = move[2:]
    ply = len(moves)
    number = (seed * 2654435761 + ply * 40503) >> 7
    lanes = [lane for lane in MEN[ply % 2] if lane[0] != "d5" or at[lane] != "d5" or _home(at)]
    lane = lanes[number % len(lanes)]
    others = [square for square in lane if square != at[lane]]
    return at[lane] + others[number // 8 % len(others)]


def _home(at):
    """The man of d5 belongs to two lanes: he leaves it only when he is there."""
    return all(at[lane] == "d5" for lane in at if lane[0] == "d5")


def main():
    seed, moves = 1, []
    for line in sys.stdin:
        words = line.split() or [""]
        if words[0] == "uti":
            print("id name Shuffler\noption name Seed type spin default 1 min 0 max 4294967295")
            print("option name Variant type combo default brandubh var brandubh\nutiok")
        elif words[0] == "isready":
            print("readyok")
        elif words[0] == "variant":
            print(
                f"info string variant brandubh files 7 ranks 7 attackers 8 defenders 4 first a startpos {START}"
            )
        elif words[0] == "setoption" and words[2] == "Seed":
            seed = int(words[4])
        elif words[0] == "position":
            moves = words[words.index("moves") + 1 :] if "moves" in words else []
        elif words[0] == "go":
            print(f"info depth 1 score cp 0 nodes 1\nbestmove {choose(seed, moves)}")
        elif words[0] == "quit":
            return
        sys.stdout.flush()


main()
