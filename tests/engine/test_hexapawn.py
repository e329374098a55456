"""Hexapawn of any size: solved boards, counted games, and agreement with a slow reading of the rules."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
import twin_hexapawn as slow
from conversation import Conversation
from twin_hexapawn import Twin

from hnefi.engine import count, evaluators, games
from hnefi.engine.compile.jit import kernel
from hnefi.engine.games.base_position import IllegalMove, Position, PositionError
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.interface import generate, generate_noisy, make, order_score, undo
from hnefi.engine.perft import perft
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.squares import NO_MOVE, SWAP, move_name

# Rows, columns; what white does with best play, in how many plies; different games, where they were counted.
SOLVED = [
    (3, 3, "loses", 6, 134),
    (4, 3, "loses", 8, 5_022),
    (5, 3, "wins", 11, 153_612),
    (3, 4, "wins", 5, 3_610),
    (4, 4, "wins", 11, 2_330_356),
    (3, 5, "wins", 7, 141_000),
    (3, 6, "loses", 8, 7_675_682),
    (4, 5, "loses", 14, None),
    (3, 7, "wins", 9, None),
]
PERFT = {
    "3x3": (3, 10, 28, 56, 70, 64),
    "4x3": (3, 9, 28, 88, 256, 650),
    "5x3": (3, 9, 27, 82, 250, 752),
    "3x4": (4, 18, 76, 252, 660, 1_232),
    "4x4": (4, 16, 66, 280, 1_170, 4_548),
    "3x5": (5, 28, 154, 700, 2_826, 8_872),
}


def start(size: str) -> Position:
    return games.initial(games.find(f"hexapawn:{size}"))


def board(size: str, fen: str) -> Position:
    return games.from_fen(games.find(f"hexapawn:{size}"), fen)


def solve(position: Position, searcher: Searcher) -> Info:
    """The last report of a search that goes on until the game is solved."""
    reports: list[Info] = []
    searcher.clear()
    searcher.begin()
    searcher.search(position, Limits(depth=60), reports.append)
    return reports[-1]


@kernel
def finished_games(state: Any, top: int) -> int:
    """The number of ways to a finished game."""
    if state.outcome:
        return 1
    found = 0
    end = generate(state, top)
    for i in range(top, end):
        make(state, int(state.moves[i]))
        found += finished_games(state, end)
        undo(state)
    return found


@pytest.mark.parametrize(("rows", "columns", "white", "plies"), [row[:4] for row in SOLVED])
def test_the_search_solves_it(rows: int, columns: int, white: str, plies: int) -> None:
    """The winner, and the exact length: the score counts the winner's moves, the line is played to its end."""
    position = start(f"{rows}x{columns}")
    report = solve(position, Searcher(Settings(hash_mib=4)))
    assert report.score.mate == ((plies + 1) // 2 if white == "wins" else -(plies // 2))
    assert len(report.pv) == plies
    for m in report.pv:
        assert position.outcome is None
        position = position.play(m)
    assert position.outcome is not None
    assert position.outcome.winner == (0 if white == "wins" else 1)


@pytest.mark.parametrize(("rows", "columns", "white", "plies", "number"), SOLVED[:6])
def test_the_twin_solves_and_counts_it(rows: int, columns: int, white: str, plies: int, number: int) -> None:
    twin = Twin.start(rows, columns)
    assert slow.solve(twin) == (white == "wins", plies)
    assert slow.games(twin) == number


@pytest.mark.parametrize(
    ("rows", "columns", "number"), [(row[0], row[1], row[4]) for row in SOLVED if row[4]]
)
def test_different_games(rows: int, columns: int, number: int) -> None:
    top = 0
    assert finished_games(start(f"{rows}x{columns}").new_record()[0], top) == number


@pytest.mark.parametrize("size", PERFT)
def test_perft(size: str) -> None:
    for bulk in (False, True):
        counted = tuple(perft(start(size), depth, bulk).nodes for depth in range(1, 7))
        assert counted == PERFT[size]


def test_perft_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    perft(start("3x4"), 3, progress=lambda *so_far: told.append(so_far))
    whole = len(start("3x4").legal_moves())
    assert told == [(done, whole) for done in range(whole + 1)]


def test_all_positions_of_the_smallest_board() -> None:
    """78 undecided by pawns alone, 8 of them blocked; of the other 70 the side to move wins 55 and can err in 27."""
    twins = {twin.fen(): twin for twin in slow.reachable(Twin.start(3, 3))}
    found = {" ".join(start("3x3").fen().split()[:2]): start("3x3")}
    for position in (waiting := list(found.values())):
        for m in position.legal_moves():
            after = position.play(m)
            fen = " ".join(after.fen().split()[:2])
            if fen not in found:
                found[fen] = after
                waiting.append(after)
    assert found.keys() == twins.keys()

    searcher = Searcher(Settings(hash_mib=1))
    blocked = open_ = ended = won = 0
    critical = [0, 0]
    for fen, position in found.items():
        outcome = position.outcome
        text = twins[fen].outcome()
        assert (outcome is None) == (text is None)
        if outcome is not None:
            assert outcome.text == "{} {}".format(*text or ())
            blocked += outcome.reason == "no_legal_move"
            ended += outcome.reason != "no_legal_move"
            continue
        open_ += 1
        mate = solve(position, searcher).score.mate or 0
        wins, plies = slow.solve(twins[fen])
        assert mate == ((plies + 1) // 2 if wins else -(plies // 2)), fen
        won += mate > 0
        losing = [child for child in twins[fen].children() if slow.solve(child)[0]]
        critical[position.side] += mate > 0 and len(losing) > 0
    assert (open_ + blocked, blocked, open_, ended) == (78, 8, 70, 57)
    assert won == 55
    assert critical == [8, 19]


def test_random_players_on_the_smallest_board() -> None:
    """White wins 259 of 432 random games; the kernel's games agree within four standard errors."""
    exact = slow.white_wins(Twin.start(3, 3))
    assert round(float(exact), 5) == 0.59954
    state = start("3x3").new_record()[0]
    state["random"] = 2024
    number = 100_000
    count.playouts(state, number, 100)
    _, white, black, drawn, unfinished = (int(n) for n in state["tally"][:5])
    assert (drawn, unfinished, white + black) == (0, 0, number)
    assert abs(white / number - exact) < 4 * float(exact * (1 - exact) / number) ** 0.5


def compare(position: Position, twin: Twin) -> None:
    """Every answer of both about one position."""
    outcome = twin.outcome()
    assert (position.outcome and position.outcome.text) == (outcome and " ".join(outcome)), position.fen()
    assert position.fen().startswith(twin.fen() + " ")
    steps = [] if outcome else twin.moves()
    taking = {twin.name(step) for step in steps if step[1] in twin.white | twin.black}
    found = position.legal_moves_with_captures()
    assert sorted(move_name(m) for m, _ in found) == sorted(map(twin.name, steps)), position.fen()
    assert {move_name(m) for m, taken in found if taken} == taking
    assert all(taken in ((), (m >> 9,)) for m, taken in found)
    assert position.taken == (twin.columns - len(twin.black), twin.columns - len(twin.white))


@pytest.mark.slow
def test_random_games_agree_with_the_twin() -> None:
    """All sizes; every node of a game in every answer, and the noisy moves are the captures and the arrivals."""
    draw = random.Random(4)
    nodes = 0
    reasons = set()
    for _ in range(150):
        rows, columns = draw.randint(3, draw.choice((5, 19))), draw.randint(1, draw.choice((5, 19)))
        position, twin = start(f"{rows}x{columns}"), Twin.start(rows, columns)
        plies = quiet = 0
        while True:
            compare(position, twin)
            assert (position.quiet, position.ply, position.move_number) == (quiet, plies, plies // 2 + 1)
            nodes += 1
            if position.outcome is not None:
                reasons.add(position.outcome.reason)
                break
            state = position.new_record()[0] if draw.random() < 0.1 else None
            steps = {twin.name(step): step for step in twin.moves()}
            if state is not None:
                noisy = {int(m) for m in state["moves"][: generate_noisy(state, 0)]}
                far = 0 if twin.white_moves else rows - 1
                pawns = twin.white | twin.black
                wanted = {name for name, (_, to) in steps.items() if to in pawns or to[0] == far}
                assert {move_name(m) for m in noisy} == wanted
                assert {m for m in position.legal_moves() if order_score(state, m)} == noisy
            step = steps[draw.choice(sorted(steps))]
            pawns_before = len(twin.white) + len(twin.black)
            position = position.play(position.parse_move(twin.name(step)))
            twin = twin.play(step)
            took = len(twin.white) + len(twin.black) < pawns_before
            assert position.last_captures == ((position.moves[-1] >> 9,) if took else ())
            plies, quiet = plies + 1, 0 if took else quiet + 1
    assert nodes > 5_000
    assert {str(reason) for reason in reasons} == {"far_row", "all_captured", "no_legal_move"}


def test_positions_set_up_by_hand_agree_with_the_twin() -> None:
    """Pawns anywhere, finished positions among them; those that no game can have are refused."""
    draw = random.Random(8)
    refused = stood = 0
    for _ in range(2_500):
        rows, columns = draw.randint(3, 6), draw.randint(1, 6)
        cells = [(r, c) for r in range(rows) for c in range(columns)]
        draw.shuffle(cells)
        white, black = draw.randint(0, columns), draw.randint(0, columns)
        twin = Twin(
            rows,
            columns,
            frozenset(cells[:white]),
            frozenset(cells[white : white + black]),
            draw.random() < 0.5,
        )
        arrived = sum(r == 0 for r, _ in twin.white) + sum(r == rows - 1 for r, _ in twin.black)
        if arrived > 1 or white + black == 0:
            refused += 1
            with pytest.raises(PositionError):
                board(f"{rows}x{columns}", twin.fen())
        else:
            stood += 1
            compare(board(f"{rows}x{columns}", twin.fen()), twin)
    assert stood > 1_000
    assert refused > 100


@pytest.mark.parametrize(
    ("size", "fen", "move", "outcome"),
    [
        # The last pawn taken on the far row is an arrival; taken before it, no matter of lacking moves.
        ("3x3", "1p1/P2/3 a", "a2b3", "a far_row"),
        ("4x2", "2/1p/P1/2 a", "a2b3", "a all_captured"),
        ("3x3", "p2/3/P2 a", "a1a2", "a no_legal_move"),
        ("3x3", "p1p/P2/2P d", "c3c2", "d no_legal_move"),
    ],
)
def test_the_order_of_ends(size: str, fen: str, move: str, outcome: str) -> None:
    position = board(size, fen)
    position = position.play(position.parse_move(move))
    assert position.outcome is not None
    assert position.outcome.text == outcome


def test_a_decided_position_by_hand() -> None:
    won = board("3x3", "P2/3/3 d")
    assert won.outcome is not None
    assert won.outcome.text == "a far_row"
    assert won.legal_moves() == ()


BAD_SIZES = ["2x3", "20x3", "3x20", "3x0", "0x3", "03x3", "3x03", "3", "x3", "3x", "3x3x3", "+3x3", "-3x3"]
BAD_SIZES += ["", "3 x3", "3x3 ", "3×3", "٣x3", "3x1e1", "9" * 5000 + "x3"]


@pytest.mark.parametrize("size", BAD_SIZES)
def test_sizes_that_cannot_be(size: str) -> None:
    with pytest.raises(
        VariantError, match=r"expected hexapawn:MxN with M rows from 3 to 19 and N columns from 1"
    ):
        games.find(f"hexapawn:{size}")


def test_names_and_hashes() -> None:
    usual = games.find("Hexapawn")
    assert (usual.name, usual.aliases) == ("hexapawn:3x3", ("hexapawn",))
    assert games.find("hexapawn:3X3") == usual
    every = [games.find(f"hexapawn:{m}x{n}") for m in range(3, 20) for n in range(1, 20)]
    assert len({variant.hash for variant in every}) == len(every)
    assert all(games.initial(variant).outcome is None for variant in every)
    assert (every[-1].files, every[-1].ranks, every[-1].attackers, every[-1].defenders) == (19, 19, 19, 19)
    assert games.find("hexapawn:4x3").startpos == "ppp/3/3/PPP a 0 1"


@pytest.mark.parametrize(
    ("fen", "message"),
    [
        ("", "board '': 1 row: expected 3"),
        ("ppp/3", "board 'ppp/3': 2 rows: expected 3"),
        ("/PPP/3/ppp", "4 rows: expected 3"),
        ("ppp/2/PPP", "row '2' has 2 squares: expected 3"),
        ("pppp/3/PPP", "row 'pppp' has 4 squares: expected 3"),
        ("ppp/03/PPP", "row '03': '03' is no number of empty squares"),
        ("ppp/" + "3" * 4000 + "/PPP", "is no number of empty squares"),
        ("ppp/3/PPx", "row 'PPx': 'x' is no piece: expected letters out of Pp"),
        ("ppp/٣/PPP", "is no piece"),
        ("ppp/p2/PPP", "4 black pawns: expected at most 3"),
        ("3/3/3", "an empty board: expected pawns"),
        ("P2/3/p2", "white on a3 and black on a1: expected one pawn on its far row"),
        ("ppp/3/PPP w", "side 'w': expected a or d"),
        ("ppp/3/PPP a -1", "plies since the last capture '-1': expected a whole number from 0"),
        ("ppp/3/PPP a 0 0", "move number '0': expected a whole number from 1"),
        ("ppp/3/PPP a 0 1 x", "'x' after the move number: expected nothing more"),
        ("p" * 5000, "expected at most 4096 characters"),
    ],
)
def test_fens_that_cannot_be(fen: str, message: str) -> None:
    with pytest.raises(PositionError) as caught:
        board("3x3", fen)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


def test_missing_fields_of_a_fen() -> None:
    assert board("3x3", "ppp/3/PPP").fen() == "ppp/3/PPP a 0 1"
    assert board("3x3", "ppp/P2/1PP d").fen() == "ppp/P2/1PP d 0 1"
    late = board("3x3", " ppp/P2/1PP  d 5 7 ")
    assert (late.fen(), late.start_fen) == ("ppp/P2/1PP d 5 7", "ppp/P2/1PP d 5 7")
    assert late.play(late.parse_move("c3c2")).fen() == "pp1/P1p/1PP a 6 8"
    assert late.play(late.parse_move("b3a2")).fen() == "p1p/p2/1PP a 0 8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a move: expected origin and target such as a1a2"),
        ("a1", "not a move"),
        ("a1a2a3", "not a move"),
        ("swap", "not a move"),
        ("0000", "not a move"),
        ("a1a2" * 1000, "not a move"),
        ("a¹a2", "not a move"),
        ("a1d1", "no square d1 on this 4x3 board"),
        ("a5a6", "no square a5 on this 4x3 board"),
        ("a0a1", "no square a0 on this 4x3 board"),
        ("a01a2", "no square a01 on this 4x3 board"),
        ("a3a4", "nothing stands on a3"),
        ("a4a3", "that is a black pawn, white is to move"),
        ("a1a1", "origin and target are the same"),
        ("b2b3", "blocked at b3"),
        ("b2a3", "nothing to take on a3"),
        ("b2a1", "a pawn goes one square forward, or takes one square diagonally forward"),
        ("a1a3", "a pawn goes one square forward"),
    ],
)
def test_why_a_move_is_illegal(text: str, message: str) -> None:
    position = board("4x3", "p1p/1p1/1P1/P1P a")
    with pytest.raises(IllegalMove) as caught:
        position.parse_move(text)
    assert str(caught.value).startswith(message)


def test_no_wrapping_round_the_edge() -> None:
    """The h file's neighbour is not the a file, and black moves down."""
    position = board("4x3", "p1p/1p1/1P1/P1P a").play(start("4x3").parse_move("a1a2"))
    assert [move_name(m) for m in position.legal_moves()] == ["a4a3", "b3a2", "c4c3"]


@pytest.mark.parametrize("text", ["a2b3", "a2-b3", "a2xb3", "a2b3xb3", "a2-b3xb3", "A2B3", "A2xB3"])
def test_moves_in_every_spelling(text: str) -> None:
    position = board("4x3", "p1p/1p1/P2/1PP a")
    assert move_name(position.parse_move(text)) == "a2b3"


@pytest.mark.parametrize("number", [NO_MOVE, SWAP, -1, 1 << 17, 1 << 70, 22 | 511 << 9])
def test_numbers_that_are_no_moves(number: int) -> None:
    with pytest.raises(IllegalMove, match="is not a move on this 3x3 board"):
        start("3x3").play(number)


def test_after_the_end_nothing_is_legal() -> None:
    position = board("3x3", "P2/2p/3 d")
    for attempt in (lambda: position.parse_move("c2c1"), lambda: position.play(45 | 24 << 9)):
        with pytest.raises(IllegalMove, match="the game is over: a far_row"):
            attempt()


def test_mirror_images_are_one() -> None:
    left, right = board("3x4", "p1pp/1P2/P1PP a"), board("3x4", "pp1p/2P1/PP1P a")
    assert left.canonical() == right.canonical()
    assert left.canonical() != board("3x4", "p1pp/1P2/P1PP d").canonical()
    # Upside down is another game: white moves up.
    assert board("4x3", "3/1p1/P2/3 a").canonical() != board("4x3", "3/P2/1p1/3 a").canonical()


def test_evaluation_terms() -> None:
    """White is a pawn up, has gone a row further, has a passed pawn two steps from the far row, and moves."""
    position = board("5x3", "1pp/3/P2/3/1PP a")
    assert evaluators.terms("default", position) == [
        ("material", 100),
        ("advancement", 8),
        ("passed", 0),
        ("tempo", 10),
        ("total", 118),
    ]
    passed = evaluators.terms("default", board("5x3", "2p/3/P2/3/1P1 d"))
    assert passed == [("material", 100), ("advancement", 8), ("passed", 150), ("tempo", -10), ("total", 248)]


def test_evaluation_of_exchanged_colours() -> None:
    """Turned upside down with colours exchanged, a position is worth the negative; terms stay small."""
    draw = random.Random(3)
    for _ in range(60):
        position = start(f"{draw.randint(3, 19)}x{draw.randint(1, 19)}")
        for _ in range(draw.randint(0, 200)):
            if position.outcome is not None:
                break
            position = position.play(draw.choice(position.legal_moves()))
        rows, side, *_ = position.fen().split()
        turned = "/".join(reversed(rows.swapcase().split("/"))) + (" d" if side == "a" else " a")
        other = games.from_fen(position.variant, turned)
        ours, theirs = (evaluators.terms("default", each) for each in (position, other))
        assert ours == [(name, -value) for name, value in theirs]
        assert abs(ours[-1][1]) < 9_000


def test_threads_do_not_disturb_each_other() -> None:
    """Four threads with boards of different sizes get what one alone gets."""

    def walk(seed: int) -> str:
        draw = random.Random(seed)
        position = start(f"{3 + seed}x{4 + seed}")
        while position.outcome is None:
            position = position.play(draw.choice(position.legal_moves()))
        return f"{position.fen()} {position.outcome.text}"

    alone = [walk(seed) for seed in range(4)]
    found: dict[int, list[str]] = {}

    def work(seed: int) -> None:
        found[seed] = [walk(seed) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {seed: [alone[seed]] * 20 for seed in range(4)}


@pytest.mark.process
def test_a_conversation() -> None:
    words = "hexapawn:4x3 files 3 ranks 4 attackers 3 defenders 3 first a startpos ppp/3/3/PPP a 0 1"
    with Conversation() as engine:
        assert engine.ask("variant hexapawn:4x3") == [f"info string variant {words}"]
        assert engine.ask("position startpos moves a1a2 b4b3", "moves") == ["moves 4 a2a3 a2b3 b1b2 c1c2"]
        assert engine.ask("moves verbose") == ["moves 4 a2a3 a2b3xb3 b1b2 c1c2"]
        picture = engine.ask("d")
        assert picture[:6] == ["   a b c", " 4 p . p 4", " 3 . p . 3", " 2 P . . 2", " 1 . P P 1", "   a b c"]
        assert picture[6] == "fen: p1p/1p1/P2/1PP a 2 2"
        engine.send("position startpos", "perft 2")
        assert engine.until("info string perft")[:4] == ["a1a2: 3", "b1b2: 3", "c1c2: 3", "Nodes searched: 9"]
        assert engine.ask("eval")[-1] == "info string eval total a 10 stm 10"
        rules = engine.ask("rules")
        assert "info string rules rows 4" in rules
        assert any(line.startswith("info string rules hash ") for line in rules)
        engine.send("go depth 3")
        assert engine.until("bestmove")[-1].split()[1] in ("a1a2", "b1b2", "c1c2")
        assert engine.ask("variant hexapawn:2x2")[0].startswith(
            "info string error variant: hexapawn:2x2: expected"
        )
        assert engine.ask("position startpos moves a1b2")[0].startswith(
            "info string error position: move 1 a1b2: nothing to take on b2"
        )
        engine.ask("position fen P2/3/2p/3 d")
        assert engine.ask("query outcome", "query reason", "query result", "query gameover") == [
            "response a",
            "response far_row",
            "response p1win",
            "response true",
        ]
        engine.ask("variant hexapawn:6x6")
        engine.send("genfens 5 seed 1 plies 2-4")
        assert len({engine.until("info string genfens ")[-1] for _ in range(5)}) == 5
        assert engine.ask("position startpos", "query captures") == ["response 0 0"]
        assert engine.ask("play a1a2", "undo") == [
            "info string played a1a2 turn d",
            "info string undone a1a2 turn a",
        ]
