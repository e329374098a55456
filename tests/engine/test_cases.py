"""Every written case, played by the slow twin and by the kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Protocol

import pytest
from cases import FOLDER, Case, CaseError, read, read_all
from twin import IllegalPly, Twin

from hnefi.engine.games.tafl.rules import SWITCHES
from hnefi.engine.games.tafl.switches import Switch
from hnefi.engine.sides import Outcome, Side
from hnefi.engine.squares import move_name, name, origin, target

CASES = read_all()
NEVER_SEEN = ("size", "agreed_draw")
"""The board's size is in every case, and to agree on a draw is the players' business."""


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

        variant, setup = case.variant(), case.setup()
        return cls(Position.initial(variant) if setup is None else Position.from_setup(variant, setup))

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


def observed(case: Case) -> list[object]:
    """What the twin sees happen in a case: the targets asked for, or the course of the moves as far as it goes."""
    twin = Twin(case.variant(), case.setup())
    if case.expected.targets is not None:
        square = case.first_square()
        return [{name(target(move)) for move in twin.legal_moves() if name(origin(move)) == square}]
    seen: list[object] = [twin.outcome]
    for move in case.plies():
        if not twin.is_legal(move):
            return [*seen, "illegal"]
        twin = twin.play(move)
        seen.append((twin.last_captures, twin.must_go_on, twin.outcome))
    return seen


def matters(case: Case, switch: str, value: str) -> bool:
    """Whether the case would come out otherwise if this one switch had the other value."""
    try:
        other = replace(case, switches={**case.switches, switch: value})
        return observed(other) != observed(case)
    except ValueError:
        return False  # the board does not fit those rules


@cache
def texts(case: Case) -> dict[str, str]:
    """Every switch of a case as text."""
    return dict(case.rules().lines())


@cache
def values_on(base: str, pieces: tuple[tuple[str, str], ...], switch: str) -> frozenset[str]:
    """The values that cases on this board give a switch."""
    return frozenset(texts(case)[switch] for case in CASES if (case.base, case.pieces) == (base, pieces))


def is_shown(switch: Switch, value: str) -> bool:
    """Whether some case shows a value at work: with the default, or another value that is tried on the same board,
    it would come out otherwise."""
    return any(
        matters(case, switch.name, other)
        for case in CASES
        if texts(case)[switch.name] == value
        for other in {switch.default, *values_on(case.base, case.pieces, switch.name)} - {value}
    )


WORDS = [(switch, word) for switch in SWITCHES for word in switch.words if switch.name not in NEVER_SEEN]
LISTS = [switch for switch in SWITCHES if not switch.words and switch.name not in NEVER_SEEN]


@pytest.mark.parametrize(("switch", "word"), WORDS, ids=[f"{s.name}={word}" for s, word in WORDS])
def test_every_word_of_every_switch_is_shown_by_a_case(switch: Switch, word: str) -> None:
    assert is_shown(switch, word), f"no case would come out otherwise without {switch.name}={word}"


@pytest.mark.parametrize("switch", LISTS, ids=[switch.name for switch in LISTS])
def test_every_other_switch_is_shown_by_a_case(switch: Switch) -> None:
    values = {texts(case)[switch.name] for case in CASES if switch.name in case.switches}
    assert any(is_shown(switch, value) for value in values), (
        f"no case would come out otherwise by {switch.name}"
    )


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
