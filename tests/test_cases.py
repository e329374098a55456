"""Every written case, played by the slow twin and by the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pytest
from cases import FOLDER, Case, CaseError, NotShipped, read, read_all
from twin import IllegalPly, Twin

from hnefi.engine.sides import Outcome, Side
from hnefi.engine.squares import move_name, name, origin, target

CASES = read_all()


class Player(Protocol):
    """What both implementations are asked in a case."""

    @property
    def side(self) -> Side: ...
    @property
    def outcome(self) -> Outcome | None: ...
    def legal(self) -> list[int]: ...
    def play(self, move: int) -> Player: ...
    def taken(self) -> frozenset[str]: ...
    def going_on(self) -> int | None: ...


class TwinPlayer:
    def __init__(self, twin: Twin) -> None:
        self.twin = twin

    @classmethod
    def start(cls, case: Case) -> Player:
        return cls(Twin(case.variant(), case.setup()))

    @property
    def side(self) -> Side:
        return self.twin.side

    @property
    def outcome(self) -> Outcome | None:
        return self.twin.outcome

    def legal(self) -> list[int]:
        return self.twin.legal_moves()

    def play(self, move: int) -> Player:
        return type(self)(self.twin.play(move))

    def taken(self) -> frozenset[str]:
        return frozenset(map(name, self.twin.last_captures))

    def going_on(self) -> int | None:
        return self.twin.must_go_on


class KernelPlayer:
    def __init__(self, position) -> None:  # type: ignore[no-untyped-def]
        self.position = position

    @classmethod
    def start(cls, case: Case) -> Player:
        from hnefi.engine.games.tafl.position import Position
        from hnefi.engine.position import PositionError

        variant, setup = case.variant(), case.setup()
        try:
            return cls(Position.initial(variant) if setup is None else Position.from_setup(variant, setup))
        except PositionError as error:
            if "not supported" in str(error):
                pytest.skip(f"the kernels do not play this rule yet: {error}")
            raise

    @property
    def side(self) -> Side:
        return self.position.side

    @property
    def outcome(self) -> Outcome | None:
        return self.position.outcome

    def legal(self) -> list[int]:
        return list(self.position.legal_moves())

    def play(self, move: int) -> Player:
        return type(self)(self.position.play(move))

    def taken(self) -> frozenset[str]:
        return frozenset(map(name, self.position.last_captures))

    def going_on(self) -> int | None:
        return self.position.berserk


@pytest.mark.parametrize("start", [TwinPlayer.start, KernelPlayer.start], ids=["twin", "kernel"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.where)
def test_case(case: Case, start: Callable[[Case], Player]) -> None:
    try:
        case.rules()
    except NotShipped as missing:
        pytest.skip(str(missing))
    player = start(case)
    expected = case.expected
    assert player.outcome is None, f"{case.text}: over before the first move: {player.outcome}"

    if expected.targets is not None:
        square = case.first_square()
        found = {name(target(move)) for move in player.legal() if name(origin(move)) == square}
        assert found == expected.targets, case.text
        return

    plies = case.plies()
    last = expected.ply or len(plies)
    for ply, move in enumerate(plies[:last], start=1):
        here = f"{case.text}: ply {ply}, {move_name(move)}"
        if expected.illegal and ply == last:
            assert move not in player.legal(), f"{here} is legal"
            with pytest.raises(ValueError):
                player.play(move)
            return
        assert move in player.legal(), f"{here} is illegal"
        side = player.side
        player = player.play(move)
        wanted = expected.captures[ply - 1] if ply <= len(expected.captures) else frozenset()
        assert player.taken() == wanted, here
        goes_on = player.side is side and player.outcome is None
        assert goes_on == (player.going_on() is not None), here
        assert goes_on == (ply in expected.again), f"{here}: the same piece goes on: {goes_on}"
        if ply < last or expected.result is None:
            assert player.outcome is None, f"{here} ends the game: {player.outcome}"
    if expected.result is not None:
        outcome = player.outcome
        assert outcome is not None, f"{case.text}: the game goes on"
        assert (outcome.result, outcome.reason.words) == (expected.result, expected.reason), case.text


def test_there_are_cases_for_every_subject() -> None:
    assert len(list(FOLDER.glob("*.txt"))) >= 8
    assert len(CASES) >= 180
    assert len({case.where for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    "line",
    [
        "7 | K f6",
        "7 | K f6 | => -",
        "7 | f6 | f6f5 => -",
        "7 | K f6 T f6 | f6f5 => -",
        "7 | K f6 | f6f5 {speed => -",
        "7 | K f6 | f6f5 {speed} => -",
        "7 | K f6 | f6f5 => maybe",
        "7 | K f6 | f6f5 => a king captured @2",
    ],
)
def test_a_broken_case_names_file_line_and_text(line: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "broken.txt"
    path.write_text(f"# a remark\n{line}\n", encoding="utf-8")
    with pytest.raises(CaseError, match=r"broken\.txt, line 2: '7 \| "):
        read(path)


def test_the_twin_refuses_what_is_not_legal() -> None:
    twin = Twin(next(case for case in CASES if case.base == "7").variant())
    with pytest.raises(IllegalPly, match="is not legal"):
        twin.play(0)
