"""Complete games between two engine processes through the client, in every shipped variant."""

from __future__ import annotations

import asyncio

import pytest

from hnefi.engine.catalogue import MEASURED
from hnefi.protocol.client import Answer, Engine, Limits, own_command

NODES = 300
PLY_CAP = 2000


async def play(variant: str) -> tuple[list[str], list[str], Answer]:
    """One game; the moves, the position after each as the engine to move sees it, and the last answer."""
    moves: list[str] = []
    positions: list[str] = []
    async with (
        await Engine.start(own_command(), "uti") as attackers,
        await Engine.start(own_command(), "ugi") as defenders,
    ):
        for engine, seed in ((attackers, 1), (defenders, 2)):
            line = await engine.set_variant(variant)
            assert line is not None
            assert line.name == variant
            await engine.set_option("Hash", 1)
            await engine.set_option("Seed", seed)
            await engine.new_game()
        turn = line.first
        while True:
            engine = attackers if turn == "a" else defenders
            engine.position(moves=moves)
            answer = await (await engine.go(Limits(nodes=NODES)))
            assert engine.stray_answers == 0
            if answer.move is None:
                break
            assert answer.info is not None
            assert answer.info.score is not None
            assert answer.info.pv[0] == answer.move
            moves.append(answer.move)
            assert len(moves) < PLY_CAP, "no end in sight"
            other = defenders if engine is attackers else attackers
            other.position(moves=moves)
            (turn_line,) = await other.ask("query turn")
            (fen_line,) = await other.ask("query fen")
            turn = turn_line.removeprefix("response ")
            positions.append(fen_line.removeprefix("response "))
        for engine in (attackers, defenders):
            engine.position(moves=moves)
            (outcome,) = await engine.ask("query outcome")
            (reason,) = await engine.ask("query reason")
            said = f"info string outcome {outcome.split()[1]} {reason.split()[1]}"
            assert said in answer.strings
            assert outcome.split()[1] in ("a", "d", "draw")
    return moves, positions, answer


@pytest.mark.process
@pytest.mark.parametrize("variant", MEASURED)
def test_a_whole_game(variant: str) -> None:
    moves, positions, answer = asyncio.run(asyncio.wait_for(play(variant), 240))
    assert len(moves) == len(positions) > 5
    assert answer.ponder is None
