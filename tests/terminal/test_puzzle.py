"""Puzzles: what is right is what is proven, wrong moves are answered, results are rated once and kept."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from terminal_screen import CONTROL_C, CONTROL_D, ENTER, TAB, Terminal

from hnefi.engine.games import find
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.solving.proof import Prover
from hnefi.engine.squares import move_name
from hnefi.gui_adapter.terminal import puzzle
from hnefi.gui_adapter.terminal.puzzle import Desk, piped
from hnefi.protocol.hosts.puzzles import exercise as exercises
from hnefi.protocol.hosts.puzzles import scores
from hnefi.protocol.hosts.puzzles.exercise import Exercise, theme, usable
from hnefi.protocol.hosts.puzzles.glicko import LEAST, Rating, expected, updated
from hnefi.protocol.hosts.puzzles.scores import Scores, ScoresError
from hnefi.protocol.hosts.puzzles.suite import SHIPPED, Entry, SuiteError, read

SUITE = [entry for entry in read(SHIPPED) if entry.variant == "brandubh" and usable(entry)]


@pytest.fixture(scope="module")
def prover() -> Prover:
    variant = find("brandubh")
    assert isinstance(variant, Variant)
    return Prover(variant, 1 << 12)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def of(kind: str, plies: int) -> Entry:
    return next(entry for entry in SUITE if (entry.kind, entry.plies) == (kind, plies))


# Ratings


def test_the_example_of_the_paper() -> None:
    """Glickman's: a player of 1500 (200) beats 1400 (30), loses to 1550 (100) and 1700 (300)."""
    met = [(Rating(1400, 30), 1.0), (Rating(1550, 100), 0.0), (Rating(1700, 300), 0.0)]
    found = updated(Rating(1500, 200), met)
    assert (round(found.value), round(found.deviation, 1)) == (1464, 151.4)
    assert [round(expected(Rating(1500, 200), other), 3) for other, _ in met] == [0.639, 0.432, 0.303]


def test_ratings_move_towards_results_and_get_surer() -> None:
    even = Rating(1500, 100)
    up, down = updated(even, [(even, 1.0)]), updated(even, [(even, 0.0)])
    assert up.value - 1500 == pytest.approx(1500 - down.value)
    assert up.value > 1500
    assert up.deviation < 100
    assert updated(even, []) == even
    assert updated(Rating(1500, LEAST), [(even, 1.0)]).deviation == LEAST


# Exercises


@pytest.mark.slow
@pytest.mark.parametrize("entry", SUITE[::32], ids=lambda entry: entry.id)
def test_right_is_what_the_suite_has_proven(
    entry: Entry, prover: Prover, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite's own lists come from other code: its finder, and minimax."""
    monkeypatch.setattr(exercises, "NODES", 50)
    right = set()
    for move in prover.position(entry.fen).legal_moves():
        exercise = Exercise(entry, prover)
        answer = exercise.play(move_name(move))
        if answer.right:
            right.add(move_name(move))
        else:
            assert exercise.position.fen() == prover.position(entry.fen).fen(), "a wrong move is taken back"
    assert right == set(entry.moves) | set(entry.later if entry.kind == "win" else ())


@pytest.mark.parametrize("plies", [3, 5])
def test_a_win_to_its_end(plies: int, prover: Prover) -> None:
    entry = of("win", plies)
    exercise = Exercise(entry, prover)
    own = 0
    while True:
        left = prover.shortest(exercise.position.fen(), exercise.side, plies)
        assert left is not None
        (move, *_) = prover.winning(exercise.position.fen(), exercise.side, left)
        answer = exercise.play(move_name(move))
        own += 1
        assert answer.right
        if answer.solved:
            break
    assert own == (plies + 1) // 2, "the defence holds out as long as it can"
    assert "win" in answer.text
    outcome = exercise.position.outcome
    assert outcome is not None
    assert outcome.winner == exercise.side


def test_the_solution_is_as_long_as_the_proof(prover: Prover) -> None:
    for entry in (of("win", 3), of("win", 5)):
        exercise = Exercise(entry, prover)
        text = exercise.solution()
        assert len(text.partition(":")[0].split()) == entry.plies
        assert exercise.position.outcome is not None
    only = of("only", 4)
    assert Exercise(only, prover).solution().startswith(only.moves[0])


def test_hints_tell_a_little_then_more(prover: Prover) -> None:
    entry = of("win", 3)
    exercise = Exercise(entry, prover)
    assert exercise.hint(False) == f"Look at {entry.moves[0][:2]}."
    assert exercise.hint(True) == f"The move is {entry.moves[0]}."


def test_wrong_moves_are_answered(prover: Prover) -> None:
    entry = of("only", 4)
    legal = [move_name(move) for move in prover.position(entry.fen).legal_moves()]
    wrong = next(move for move in legal if move not in entry.moves)
    said = Exercise(entry, prover).play(wrong).text
    assert said.startswith(wrong)
    assert " loses: " in said
    entry = of("win", 3)
    legal = [move_name(move) for move in prover.position(entry.fen).legal_moves()]
    wrong = next(move for move in legal if move not in (*entry.moves, *entry.later))
    said = Exercise(entry, prover).play(wrong).text
    assert said.startswith((f"{wrong}: no. The ", f"{wrong}: too slow. The "))
    assert " answer " in said
    quick = next(entry for entry in SUITE if entry.id == "brandubh-026")
    assert "too slow" in Exercise(quick, prover).play("b3b2").text, "a win, but a longer one"


def test_themes() -> None:
    assert theme(of("only", 4)) == "defence"
    assert {theme(entry) for entry in SUITE} == {"attack", "breakout", "defence"}


# At the desk


def sit(lines: str | bytes, entry: Entry, known: Scores | None = None) -> int:
    data = lines if isinstance(lines, bytes) else lines.encode()
    return Desk(SUITE, known or Scores(), piped(io.BytesIO(data))).run(entry)


def test_solved_at_the_first_try(capsys: pytest.CaptureFixture[str]) -> None:
    entry, known = of("only", 4), Scores()
    assert sit(f"{entry.moves[0]}\n{entry.moves[0]}\nhint\nretry\n{entry.moves[0]}\n", entry, known) == 0
    said = capsys.readouterr().out
    assert f"{entry.id} (brandubh, rated 1300): " in said
    assert "Solved.\nYour rating: " in said
    assert said.count("It is solved: `next` shows another one") == 2
    assert said.count("Your rating:") == 1, "the first result counts"
    assert (known.solved, known.failed) == (1, 0)
    assert known.player.value > 1500
    assert known.puzzle(entry).value < 1300
    assert said.splitlines()[-1] == known.words()


@pytest.mark.parametrize("help_", ["hint", "solution", "wrong"])
def test_help_and_wrong_moves_count_once(help_: str, capsys: pytest.CaptureFixture[str]) -> None:
    entry, known = of("only", 4), Scores()
    position = Prover(find("brandubh"), 16).position(entry.fen)  # type: ignore[arg-type]
    wrong = next(name for name in map(move_name, position.legal_moves()) if name not in entry.moves)
    sit(f"{wrong if help_ == 'wrong' else help_}\nhint\nretry\n{entry.moves[0]}\nquit\nhint\n", entry, known)
    said = capsys.readouterr().out
    assert "Solved, with help." in said
    assert (known.solved, known.failed) == (0, 1)
    assert known.player.value < 1500


def test_the_board_marks_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    entry = of("win", 3)
    sit(f"{entry.moves[0]}\n", entry)
    said = capsys.readouterr().out
    before, after = said.split(
        "The defenders answer" if entry.fen.split()[1] == "a" else "The attackers answer"
    )
    reply = after.split()[0].partition("x")[0].rstrip(".")
    assert "[" not in before, "no move has led to the first position"
    (row,) = (line for line in after.splitlines() if "[" in line)
    assert row.split()[0] == reply[3]
    assert (row.index("[") + 1) // 2 == "abcdefg".index(reply[2]) + 1


def test_in_a_pipe_the_board_is_plain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"quit\n")))
    assert puzzle.main(["--puzzle", "brandubh-026", "--no-record"]) == 0
    said = capsys.readouterr().out
    assert "7 x . . . . . x 7" in said
    assert said.partition("rating 1500")[0].isascii()


@pytest.mark.process
def test_at_a_terminal(tmp_path: Path) -> None:
    entry = of("win", 3)
    command = [sys.executable, "-m", "hnefi.tools.cli", "puzzle", "--puzzle", entry.id]
    with Terminal(command, tmp_path) as terminal:
        terminal.wait(lambda: f"{entry.id} (brandubh" in terminal.text and terminal.cursor_line == ">")
        assert terminal.coloured()
        terminal.type(f"sol{TAB}")
        terminal.wait(lambda: terminal.typed == "solution")
        terminal.type(ENTER)
        terminal.wait(lambda: "Your rating: " in terminal.text and terminal.cursor_line == ">")
        terminal.type("zzz")
        terminal.wait(lambda: terminal.typed == "zzz")
        terminal.type(CONTROL_C)
        terminal.wait(lambda: terminal.cursor_line == ">")
        terminal.type(f"sc{TAB}")
        terminal.wait(lambda: terminal.typed == "score")
        terminal.type(f"{ENTER}{CONTROL_D}")
        assert terminal.end() == 0


def test_the_next_one_is_new_and_near(capsys: pytest.CaptureFixture[str]) -> None:
    known = Scores(player=Rating(1200, 50))
    first = of("win", 3)
    sit("next\n" * (len(SUITE) + 1), first, known)
    shown = [line.split(" ")[0] for line in capsys.readouterr().out.splitlines() if ", rated " in line]
    assert shown[0] == first.id
    assert len(set(shown[: len(SUITE)])) == len(SUITE), "each once before any comes again"
    assert {entry.id: entry for entry in SUITE}[shown[1]].plies == 3, "near the player's rating"
    assert (known.solved, known.failed) == (0, 0), "what is passed over does not count"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a1a2", "'a1a2': nothing stands on a1"),
        ("nonsense", "'nonsense': not a move"),
        ("z99z98", "'z99z98': "),
        ("s", "'s': not a move"),
        ("\x1b[2Jd1d3", "not a move"),
        ("# a remark", ""),
        ("", ""),
    ],
)
def test_odd_lines_are_answered_and_nothing_counts(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = Scores()
    assert sit(f"{line}\n", of("win", 3), known) == 0
    out = capsys.readouterr().out
    assert said in out
    assert "\x1b" not in out
    assert (known.solved, known.failed) == (0, 0)


def test_bytes_and_endless_lines_are_survived(capsys: pytest.CaptureFixture[str]) -> None:
    assert sit(b"\xff\xfe\n" + b"x" * 100_000 + b"\nquit", of("win", 3)) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_other_rules_are_refused() -> None:
    with pytest.raises(SuiteError, match="has different rules now"):
        sit("", replace(of("win", 3), rules="0" * 12))
    with pytest.raises(SuiteError, match="nowhere"):
        sit("", replace(of("win", 3), variant="nowhere"))


# What is kept


def test_scores_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "puzzles.json"
    known, entry = scores.load(path), of("win", 3)
    known.take(entry, True)
    known.take(entry, False)
    again = scores.load(path)
    assert (again.solved, again.failed, again.tries) == (1, 1, {entry.id: 2})
    assert again.player.value == pytest.approx(known.player.value, abs=0.01)
    assert again.puzzle(entry).deviation == pytest.approx(known.puzzle(entry).deviation, abs=0.01)


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "null", '{"format": 2}', "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        '{"format": 1, "player": {"rating": "x", "deviation": 1, "solved": 0, "failed": 0}, "puzzles": {}}',
        '{"format": 1, "player": {"rating": NaN, "deviation": 1, "solved": 0, "failed": 0}, "puzzles": {}}',
        '{"format": 1, "player": {"rating": 1, "deviation": 0, "solved": 0, "failed": 0}, "puzzles": {}}',
        '{"format": 1, "player": {"rating": 1, "deviation": 1, "solved": -1, "failed": 0}, "puzzles": {}}',
        "[" * 5000,
    ],
)  # fmt: skip
def test_other_files_are_refused_and_stay(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = scores.place()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ScoresError, match="expected the scores that hnefi puzzle writes"):
        scores.load(path)
    assert puzzle.main(["--list"]) == 2
    assert f"hnefi puzzle: {path}: " in capsys.readouterr().err
    assert path.read_text() == text
    assert puzzle.main(["--list", "--no-record"]) == 0


def test_a_score_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    known = Scores(tmp_path / "file" / "puzzles.json")
    with pytest.raises(ScoresError, match="the score cannot be saved"):
        known.take(of("win", 3), True)


def test_a_sitting_goes_on_where_scores_cannot_be_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(scores.durable, "put", full)
    known = scores.load(tmp_path / "puzzles.json")
    assert sit("solution\nnext\nsolution\n", of("win", 3), known) == 4
    said = capsys.readouterr()
    assert (
        said.err.count("No space left on device: the score cannot be saved; it counts until you leave\n") == 1
    )
    assert said.out.count("Your rating: ") == 2
    assert (known.failed, len(known.tries)) == (2, 2), "each counts once"


def test_the_list_and_the_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert puzzle.main(["--list", "--variant", "brandubh,magpie", "--theme", "breakout", "--plies", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 8
    assert all("breakout" in line and "5 plies" in line and "1500 ± 392" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--variant", "chess"], "--variant 'chess': expected some of ard-ri, "),
        (
            ["--theme", "attack", "--plies", "4"],
            "--plies 4: no such puzzle is that long: expected one of 3, 5, 7",
        ),
        (["--theme", "fort", "--variant", "brandubh"], "--theme fort: no puzzle of these variants has it"),
        (["--puzzle", "brandubh-26"], "no such puzzle (did you mean brandubh-026?)"),
        (["--puzzle", "brandubh-999"], "--puzzle 'brandubh-999': no such puzzle"),
        (["--theme", "x"], "invalid choice"),
    ],
)
def test_what_cannot_be_shown(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        puzzle.main(words)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_the_file_is_json_that_people_can_read(tmp_path: Path) -> None:
    known = scores.load(tmp_path / "puzzles.json")
    known.take(of("only", 4), False)
    found = json.loads((tmp_path / "puzzles.json").read_text())
    assert found["player"]["failed"] == 1
    assert list(found["puzzles"]) == [of("only", 4).id]


def test_two_at_once_lose_no_result(tmp_path: Path) -> None:
    """Each read the file when it began; what the other has written since counts too."""
    path = tmp_path / "puzzles.json"
    one, two = scores.load(path), scores.load(path)
    one.take(of("win", 3), True)
    two.take(of("win", 5), False)
    one.take(of("only", 4), True)
    again = scores.load(path)
    assert (again.solved, again.failed) == (2, 1)
    assert set(again.tries) == {of("win", 3).id, of("win", 5).id, of("only", 4).id}
    assert one.player.value == pytest.approx(again.player.value, abs=0.01)


@pytest.mark.process
def test_many_processes_lose_no_result(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hnefi.protocol.hosts.puzzles import scores, suite\n"
        "known = scores.load(Path(sys.argv[1])); entry = suite.read(suite.SHIPPED)[int(sys.argv[2])]\n"
        "for _ in range(20): known.take(entry, True)"
    )
    path = tmp_path / "puzzles.json"
    started = [subprocess.Popen([sys.executable, "-c", code, str(path), str(k)]) for k in range(3)]
    assert [process.wait(240) for process in started] == [0, 0, 0]
    again = scores.load(path)
    assert again.solved == 60
    assert sorted(again.tries.values()) == [20, 20, 20]
