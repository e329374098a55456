"""Parts of tests of ladders: a tiny ladder of players that move in no time, and pools that were never played."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hnefi.tools.arena.values import Winner
from hnefi.tools.ladder import frozen
from hnefi.tools.ladder.ladder import CURRENT, Ladder, LimitedPlayer, load
from hnefi.tools.ladder.pool import Game, Pool, Source

TINY = """
name = "tiny"
variants = ["brandubh"]
pairs = {pairs}
others = 1
max_plies = 60
openings = "tiny.jsonl"
anchor = {{ name = "simple", elo = 1000 }}
rung = [{{ player = "random-blind" }}, {{ player = "random-terminal" }}, {{ player = "simple" }}]
"""
OPENINGS = 8


def tiny(folder: Path, pairs: int = 2) -> Path:
    """A frozen ladder of three rungs; its file."""
    lines = load(CURRENT).openings.read_text().splitlines()
    chosen = [line for line in lines if line.startswith('["brandubh"')][:OPENINGS]
    (folder / "tiny.jsonl").write_text("\n".join(chosen) + "\n")
    file = folder / "tiny.toml"
    file.write_text(TINY.format(pairs=pairs))
    frozen.freeze(load(str(file)))
    return file


def ladder(folder: Path, pairs: int = 2) -> Ladder:
    return load(str(tiny(folder, pairs)))


def made_up(results: Iterable[tuple[str, str, Winner, int]], variant: str = "brandubh") -> Pool:
    """A pool of pairs: `results` are who is named first, its opponent, who won (a: the one named first won both games,
    d: lost both, draw: each side won once) and how many such pairs."""
    games: list[Game] = []
    names = set()
    pair = 0
    for one, two, who, count in results:
        names |= {one, two}
        for _ in range(count):
            pair += 1
            for game in (1, 2):
                attackers, defenders = (one, two) if game == 1 else (two, one)
                winner = "a" if who == "draw" else {1: who, 2: {"a": "d", "d": "a"}[who]}[game]
                games.append(
                    Game(
                        0,
                        pair,
                        game,
                        variant,
                        1,
                        attackers,
                        defenders,
                        winner,
                        "king_captured",
                        (0, 0),
                        ("a1a2",),
                    )
                )
    players = {name: LimitedPlayer(name, "random-blind", 1) for name in sorted(names)}
    return Pool("tiny", (Source("tiny seed 1", 1, "00", True),), players, tuple(games))
