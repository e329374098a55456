"""One game under the arena's referee: what engines are told, what is believed, how time counts, how games end."""

from __future__ import annotations

import asyncio
import re
import select
import statistics
import time
from dataclasses import replace
from typing import Any

import pytest
from arena_parts import START, VARIANT, by_heart, collect, leftovers, pair, spec
from patience import PROMPTLY

from hnefi.engine import games, squares
from hnefi.engine.sides import Side
from hnefi.protocol import process
from hnefi.protocol.answers import Option
from hnefi.protocol.client import own_command
from hnefi.tools.arena.adjudication import Adjudication, Scores
from hnefi.tools.arena.engine_slot import EngineSlot, EngineSlots, within
from hnefi.tools.arena.referee import Clock, Game
from hnefi.tools.arena.slots import play
from hnefi.tools.arena.values import EngineSpec, GameResult, GameTask, Opening, SideLimits, from_json, to_json

Line = tuple[int, str, str]


def heard(
    tasks: list[GameTask], specs: list[EngineSpec], **manner: Any
) -> tuple[list[GameResult], list[Line]]:
    """The results, and every line: side, arrow, text."""
    lines: list[Line] = []

    def watch(_: GameTask, side: int, __: float, arrow: str, line: bytes) -> None:
        lines.append((side, arrow, line.decode()))

    return collect(tasks, specs, on_traffic=watch, **manner), lines


def one(*specs: EngineSpec, opening: Opening = START, **manner: Any) -> GameResult:
    """The first game of a pair."""
    (result,) = collect(pair(opening=opening)[:1], specs or [spec(), spec()], **manner)
    return result


def sent(lines: list[Line], side: int) -> list[str]:
    """What one side was told before the game."""
    told = [line for where, arrow, line in lines if where == side and arrow == ">"]
    return told[next((number for number, line in enumerate(told) if line.startswith("position ")), 0) :]


# A whole game


@pytest.mark.process
def test_a_game_as_the_rules_see_it() -> None:
    position = games.initial(games.find(VARIANT))
    captures = []
    for text in by_heart():
        position = position.play(position.parse_move(text))
        captures.append(tuple(map(squares.name, position.last_captures)))
    assert position.outcome is not None
    result = one()
    assert (result.winner, result.reason) == (position.outcome.result, position.outcome.reason)
    assert [ply.move for ply in result.plies] == list(by_heart())
    assert [ply.captures for ply in result.plies] == captures
    assert any(captures)
    assert (result.captured, result.final) == (position.taken, position.fen())
    assert (result.ids, result.rules_hash) == (("Parrot", "Parrot"), games.find(VARIANT).hash)
    assert {(ply.cp, ply.mate, ply.depth, ply.seldepth, ply.nodes, ply.nps) for ply in result.plies} == {
        (20, None, 3, 4, 7, 70)
    }
    assert all(ply.time is not None and ply.time == ply.latency and ply.clock is None for ply in result.plies)
    assert (result.fault, result.advisories, result.stray) == (None, (), 0)
    assert from_json(to_json(result)).plies == result.plies


@pytest.mark.process
def test_nobody_is_asked_about_a_finished_game() -> None:
    _, lines = heard(pair()[:1], [spec(), spec()])
    asked = [line for _, arrow, line in lines if arrow == ">" and line.startswith("go")]
    assert asked == ["go nodes 10"] * len(by_heart())
    finished = Opening(moves=by_heart())
    result, lines = heard([replace(pair()[0], opening=finished)], [spec(), spec()])
    assert result[0].plies == ()
    assert result[0].winner in ("a", "d")
    assert not any(line.startswith("go") for _, _, line in lines)


@pytest.mark.process
def test_the_whole_game_is_sent_with_every_question() -> None:
    _, lines = heard(pair()[:1], [spec(), spec()])
    assert sent(lines, 0)[:4] == [
        "position startpos",
        "go nodes 10",
        f"position startpos moves {' '.join(by_heart()[:2])}",
        "go nodes 10",
    ]
    assert sent(lines, 1)[0] == f"position startpos moves {by_heart()[0]}"


@pytest.mark.process
def test_openings_count_as_played() -> None:
    opening = Opening(moves=by_heart()[:4])
    result, lines = heard([replace(pair()[0], opening=opening)], [spec(), spec()])
    assert sent(lines, 0)[0] == f"position startpos moves {' '.join(by_heart()[:4])}"
    assert [ply.move for ply in result[0].plies] == list(by_heart()[4:])
    position = games.initial(games.find(VARIANT))
    for text in by_heart()[:4]:
        position = position.play(position.parse_move(text))
    moves = by_heart()[4:]
    there = Opening(start=position.fen(), moves=moves[:1])
    engines = [spec(moves=moves), spec(moves=moves, letters="adk")]
    result, lines = heard([replace(pair()[0], opening=there)], engines)
    board, _, rest = position.fen().partition(" ")
    letters = board.replace("t", "a").replace("T", "d").replace("K", "k")
    assert sent(lines, 1)[0] == f"position fen {letters} {rest} moves {moves[0]}"
    assert sent(lines, 0)[0] == f"position fen {position.fen()} moves {' '.join(moves[:2])}"
    assert result[0].winner in ("a", "d")


def test_an_opening_that_cannot_be_played_is_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="blocked"):
        one(opening=Opening(moves=("a4c4",)))


def test_a_seed_is_one_that_the_engine_allows() -> None:
    """Else an engine with few seeds could not start a single game."""
    few = Option("Seed", "spin", minimum=5, maximum=9)
    assert [within(few, seed) for seed in (5, 9, 10, 4_294_967_295)] == [5, 9, 5, 5 + 4_294_967_295 % 5]
    assert within(Option("Seed", "spin", minimum=0, maximum=4_294_967_295), 4_294_967_295) == 4_294_967_295
    assert within(Option("Seed", "string"), 12) == 12


@pytest.mark.process
def test_what_is_told_before_the_first_move() -> None:
    lines: list[bytes] = []

    async def run() -> None:
        slots = EngineSlots([spec()])
        (slot, _) = slots.take((0, 0))
        for seed in (7, 8):
            await slot.prepare(VARIANT, 1, seed)
        lines.extend(line for _, arrow, line in slot.process.transcript if arrow == ">")
        assert slot.knows_start
        await slots.close()

    asyncio.run(run())
    told = [line.decode() for line in lines if line != b"isready"]
    assert told[:2] == ["uti", "variant brandubh"]
    again = ["setoption name Side value d", "setoption name Seed value 7", "utinewgame"]
    assert told[2:] == [*again, again[0], "setoption name Seed value 8", again[2]]
    assert lines[-1] == b"isready"


@pytest.mark.process
def test_our_own_engines_play_a_pair() -> None:
    """Two real processes, in two dialects, each told its seed: the game can be played again."""
    clock = SideLimits(time=60_000, increment=100)
    specs = [
        EngineSpec(
            proto, tuple(own_command("--player", "random-blind")), proto=proto, limits=limits, ready=200.0
        )
        for proto, limits in (("uti", (clock, clock)), ("ugi", (SideLimits(nodes=1),) * 2))
    ]
    first, second = pair()
    played = collect([first, second, replace(first, pair=2)], specs)
    assert [result.fault for result in played] == [None] * 3
    assert [result.advisories for result in played] == [()] * 3
    assert played[0].plies != played[1].plies
    assert [ply.move for ply in played[0].plies] == [ply.move for ply in played[2].plies]
    assert all(ply.latency is not None and ply.latency >= 0 for ply in played[0].plies)
    assert played[0].ids[0].startswith("hnefi ")


# Limits and clocks


@pytest.mark.process
@pytest.mark.parametrize(
    ("proto", "words"),
    [
        ("uti", "go atime 200000 dtime 300000 ainc 10 dinc 20 movestogo 40"),
        ("uci", "go wtime 200000 btime 300000 winc 10 binc 20 movestogo 40"),
        ("ugi", "go p1time 200000 p2time 300000 p1inc 10 p2inc 20 movestogo 40"),
    ],
)
def test_clocks_in_the_words_of_each_dialect(proto: str, words: str) -> None:
    slow = SideLimits(time=200_000, increment=10, moves=40)
    fast = SideLimits(time=300_000, increment=20, depth=9)
    first = spec("first", f"proto={proto}", proto=proto, limits=(slow, slow))
    _, lines = heard(pair()[:1], [first, spec(limits=(fast, fast))])
    assert sent(lines, 0)[1] == words
    assert re.fullmatch(r"go atime [12]\d{5} dtime 300000 ainc 10 dinc 20 depth 9", sent(lines, 1)[1])


@pytest.mark.process
def test_an_engine_without_a_clock_is_told_a_time() -> None:
    limits = SideLimits(time=2600, increment=100)
    foreign = spec("foreign", limits=(limits, limits), clock="movetime")
    _, lines = heard(pair()[:1], [foreign, spec()])
    assert sent(lines, 0)[1] == "go movetime 180"
    assert sent(lines, 1)[1] == "go nodes 10"


def test_the_increment_comes_after_the_move() -> None:
    clock = Clock(spec(limits=(SideLimits(time=1000, increment=100),) * 2), 0)
    clock.charge(1040.0)  # as a margin may allow
    assert clock.left == 100
    clock.charge(30.25)
    assert (clock.left, clock.budget, clock.allowed) == (169, 169.75, 169.75)


def test_periods_and_margin() -> None:
    clock = Clock(spec(limits=(SideLimits(time=1000, moves=2),) * 2, margin=50), 0)
    assert (clock.to_go, clock.allowed) == (2, 1050.0)
    clock.charge(1020.0)
    assert (clock.to_go, clock.left) == (1, 0)
    clock.charge(10.0)
    assert (clock.to_go, clock.left) == (2, 1000)


def test_the_strictest_time_counts() -> None:
    clock = Clock(spec(limits=(SideLimits(time=1000, movetime=300),) * 2, margin=50), 0)
    assert clock.allowed == 350.0
    clock.charge(300.0)
    clock.charge(300.0)
    clock.charge(300.0)
    assert clock.allowed == 150.0
    assert not Clock(spec(), 0).timed
    assert Clock(spec(move_timeout=7.0), 0).allowed == 7000.0


def test_a_told_time_never_overruns_the_clock() -> None:
    limits = SideLimits(time=1000, moves=1)
    assert Clock(spec(limits=(limits, limits)), 0).movetime() == 500
    tight = SideLimits(time=60)
    assert Clock(spec(limits=(tight, tight)), 0).movetime() == 2
    none = SideLimits(time=10)
    assert Clock(spec(limits=(none, none)), 0).movetime() == 1


@pytest.mark.process
def test_the_margin_decides() -> None:
    limits = (SideLimits(movetime=20),) * 2
    slow = spec("slow", "delay=0.1", limits=limits, margin=100_000)
    assert one(slow, spec()).fault is None
    result = one(replace(slow, margin=10), spec())
    assert result.fault is not None
    assert (result.reason, result.winner, result.fault.side) == ("time", "d", 0)
    over = re.fullmatch(
        r"over by (\d+) ms: no answer within 20 ms and a margin of 10 ms(; .* late)?", result.fault.text
    )
    assert over is not None
    assert int(over[1]) >= 10


@pytest.mark.process
def test_what_a_clock_shows() -> None:
    limits = SideLimits(time=100_000, increment=50)
    result = one(spec("slow", "delay=0.1", limits=(limits, limits)), spec())
    mine = result.plies[::2]
    # The time begins when our write has returned: this process may have been held up until then, now and again.
    assert statistics.median(ply.time or 0.0 for ply in mine) > 10
    spent = 0.0
    for number, ply in enumerate(mine, start=1):
        spent += ply.time or 0.0
        assert ply.clock == pytest.approx(100_000 - spent + 50 * number, abs=1.1)
    assert all(ply.clock is None for ply in result.plies[1::2])


@pytest.mark.process
def test_our_own_lateness_is_not_charged() -> None:
    """The loop stands still while the answer arrives and the deadline passes."""
    limits = SideLimits(time=200)

    def stand_still() -> None:
        time.sleep(0.6)
        select.select([one._stdout for one in process._started if one._stdout is not None], [], [], PROMPTLY)

    async def run() -> GameResult:
        def block(event: str, facts: dict[str, Any]) -> None:
            if event == "ply" and facts["number"] == 1:
                asyncio.get_running_loop().call_later(0.01, stand_still)

        specs = [spec(), spec("ours", "delay=0.15", limits=(limits, limits))]
        games_ = play(iter(pair()[:1]), specs, on_event=block, adjudication=Adjudication(max_plies=2))
        (result,) = [result async for result in games_]
        return result

    result = asyncio.run(run())
    assert result.fault is None
    assert (result.plies[1].time, result.plies[1].clock) == (200.0, 0)
    assert 300 < result.lateness < 1000 * PROMPTLY


@pytest.mark.process
def test_a_forfeit_seen_late_says_so_and_blames_nobody_for_that() -> None:
    """The loop stands still while the deadline passes, and there is no answer afterwards."""

    async def run() -> GameResult:
        def block(event: str, facts: dict[str, Any]) -> None:
            if event == "ply" and facts["number"] == 1:
                asyncio.get_running_loop().call_later(0.01, time.sleep, 1.0)

        silent = spec("silent", "delay=600", limits=(SideLimits(movetime=200),) * 2)
        games_ = play(iter(pair()[:1]), [spec(), silent], on_event=block)
        (result,) = [result async for result in games_]
        return result

    result = asyncio.run(run())
    assert result.fault is not None
    said = re.fullmatch(
        r"over by (\d+) ms: no answer within 200 ms; the arena looked (\d+) ms late", result.fault.text
    )
    assert said is not None
    over, late = map(int, said.groups())
    # It stood still for a second, of which at least a part came before the deadline.
    assert over < 100
    assert late > 700
    assert result.lateness == pytest.approx(late, abs=1)


# Ends


@pytest.mark.process
def test_resignation() -> None:
    result = one(spec(), spec("meek", "resign"))
    assert (result.winner, result.reason, result.fault, len(result.plies)) == ("a", "resignation", None, 3)


@pytest.mark.process
def test_the_ply_cap_counts_the_opening() -> None:
    result = one(opening=Opening(moves=by_heart()[:3]), adjudication=Adjudication(max_plies=8))
    assert (result.winner, result.reason, len(result.plies)) == ("draw", "ply_cap", 5)


@pytest.mark.process
def test_both_sides_must_agree_on_a_resignation() -> None:
    rule = Adjudication(resign_cp=500, resign_moves=3)
    agreed = one(spec("up", "score=cp 600"), spec("down", "score=mate -4"), adjudication=rule)
    assert (agreed.winner, agreed.reason, len(agreed.plies)) == ("a", "adjudicated", 6)
    alone = one(spec("up", "score=cp 600"), spec("calm", "score=cp -100"), adjudication=rule)
    assert len(alone.plies) == len(by_heart())


@pytest.mark.process
def test_a_drawn_game_is_adjudicated_no_sooner_than_asked() -> None:
    rule = Adjudication(draw_cp=20, draw_moves=2, draw_after=7)
    result = one(adjudication=rule)
    assert (result.winner, result.reason, len(result.plies)) == ("draw", "adjudicated", 7)


@pytest.mark.process
def test_the_same_win_announced_by_both() -> None:
    rule = Adjudication(mates=True)
    result = one(spec("lost", "score=mate -2"), spec("won", "score=mate 3"), adjudication=rule)
    assert (result.winner, result.reason, len(result.plies)) == ("d", "adjudicated", 2)


def scored(
    rule: Adjudication, *said: tuple[int | None, int | None], plies: int = 100, quiet: int = 100
) -> Any:
    """The verdict after both sides said these (cp, mate) in turn, the attackers first."""
    scores = Scores(rule)
    for index, (cp, mate) in enumerate(said):
        scores.add(index % 2, cp, mate)
    return scores.verdict(plies, quiet)


def test_scores_that_end_a_game() -> None:
    resign = Adjudication(resign_cp=500, resign_moves=2)
    won, lost, none = (500, None), (-500, None), (None, None)
    assert scored(resign, won, lost, won, lost) == "a"
    assert scored(resign, lost, won, lost, won) == "d"
    assert scored(resign, won, lost, won, (-499, None)) is None
    assert scored(resign, won, lost, won) is None
    assert scored(resign, won, lost, none, lost, won, lost) is None
    assert scored(resign, won, lost, none, lost, won, lost, won, lost) == "a"
    draw = Adjudication(draw_cp=5, draw_moves=2, draw_after=10, draw_no_capture=4)
    even = [(5, None), (-5, None)] * 2
    assert scored(draw, *even) == "draw"
    assert scored(draw, *even, plies=9) is None
    assert scored(draw, *even, quiet=3) is None
    assert scored(draw, *even, (6, None)) is None
    assert scored(draw, *even, none) is None
    mates = Adjudication(mates=True)
    assert scored(mates, (None, 3), (None, -3)) == "a"
    assert scored(mates, (None, 3), (None, 3)) is None
    assert scored(mates, (None, 3), (-9999, None)) is None
    assert scored(Adjudication(), *even, won, lost) is None


# Oddities


@pytest.mark.process
def test_oddities_are_reported_once_per_kind() -> None:
    odd = spec("odd", "pv=a4a2,a4a3", "score=mate 2")
    result = one(odd, spec("mute", "score=none"))
    assert result.fault is None
    assert len(result.plies) == len(by_heart())
    assert [re.sub(r"\d+", "N", text) for text in result.advisories if text.startswith("mute")] == [
        "mute: no score before bestmove (ply N)"
    ]
    mine = [text for text in result.advisories if text.startswith("odd")]
    assert len(mine) == 3
    assert mine[0] == "odd: mate 2 with a pv of 2 moves: expected 3 (ply 1)"
    assert re.fullmatch(r"odd: bestmove \w+ is not the first of pv a4a2 a4a3 \(ply \d+\)", mine[1])
    assert re.fullmatch(r"odd: pv a4a2( a4a3)?: .+ \(ply \d+\)", mine[2])


@pytest.mark.process
def test_a_line_that_goes_on_after_the_end() -> None:
    last = by_heart()[-1]
    engines = [spec("proud", f"pv={last},a1a2", "score=cp 5")] * 2
    result = one(*engines, opening=Opening(moves=by_heart()[:-1]))
    assert result.advisories == (
        f"proud: pv {last} a1a2: the game is over: {result.winner} {result.reason} (ply {len(by_heart())})",
    )


@pytest.mark.process
def test_both_announce_a_win() -> None:
    result = one(spec("one", "score=mate 1"), spec("two", "score=mate 1"))
    assert "two: both sides announce a win: mate 1, then mate 1 (ply 2)" in result.advisories


@pytest.mark.process
def test_lines_that_are_kept() -> None:
    result = one(spec("talker", "long-line"), spec(), keep=re.compile("nothing"))
    assert {ply.lines for ply in result.plies} == {()}
    result = one(spec("chatty", "talk=7"), spec(), keep=re.compile("number [7]"))
    assert result.plies[0].lines == ("info string number 7",)


# Interruption


@pytest.mark.process
def test_a_cancelled_game_says_how_far_it_came() -> None:
    async def run() -> GameResult:
        slots = (EngineSlot(spec("slow", "hang", move_timeout=600.0)), EngineSlot(spec()))
        game = Game(pair()[0], slots)
        playing = asyncio.ensure_future(game.play())
        while len(game.plies) < 2:
            await asyncio.sleep(0.01)
        playing.cancel()
        await asyncio.wait({playing})
        result = game.interrupted()
        for slot in slots:
            ending = slot.release()
            assert ending is not None
            await ending
        assert leftovers([slot.spec for slot in slots]) == []
        return result

    result = asyncio.run(run())
    assert (result.winner, result.reason, result.counts, len(result.plies)) == (None, "interrupted", False, 2)
    assert result.final.split()[1] == Side.ATTACKERS.letter
