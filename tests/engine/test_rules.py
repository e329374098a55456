"""Switches: defaults, every accepted spelling of a value, and errors that name key, value and expectation."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from hnefi.engine import squares as board
from hnefi.engine.games.tafl.rules import SWITCHES, Rules
from hnefi.engine.games.tafl.switches import PIECES, RulesError, Zone


def squares(*names: str) -> tuple[int, ...]:
    return tuple(board.parse(name, 19) for name in names)


def make(size: int = 7, /, **switches: Any) -> Rules:
    return Rules.from_mapping(switches, size)


DEFAULTS = """
size 7
first a
throne d4
corners a1,a7,g1,g7
attacker_camps none
defender_camps none
zones none
throne_pass tcnmgTCNMGK
corner_pass K
attacker_camp_pass tcnmgTCNMGK
defender_camp_pass TCNMGK
throne_stop K
corner_stop K
attacker_camp_stop tcnmgTCNMGK
defender_camp_stop TCNMGK
throne_enter tcnmgTCNMGK
corner_enter tcnmgTCNMGK
attacker_camp_enter tcnmgTCNMGK
defender_camp_enter tcnmgTCNMGK
camp_range own
speed none
king_jump none
knight_jump capture
commander_jump over
mercenary_jump none
guard_jump none
throne_hostile_empty tcnmgTCNMGK
throne_hostile_held tcnmg
corner_hostile tcnmgTCNMGK
attacker_camp_hostile TCNMGK
defender_camp_hostile tcnmg
camp_soft none
edge_hostile none
capture_run one
shieldwall off
shieldwall_closer end
linnaean no
berserk off
king_armed yes
king_sides 4
king_sides_on_throne 4
king_sides_beside_throne 4
king_on_edge safe
king_with_one no
commander_pair yes
escape corner
exit_fort no
encirclement apart
capture_all yes
sealed off
no_move lose
repetition draw
repetition_count 3
repetition_start yes
repetition_compare position
draw_fort no
move_limit 0
move_limit_unit plies
quiet_limit 0
material_draw none
agreed_draw yes
opentafl no
"""


def test_the_first_switches_keep_their_order_and_defaults() -> None:
    """Hashes are made of them."""
    assert "\n".join(f"{name} {text}" for name, text in make().hashed_lines()) == DEFAULTS.strip()


def test_every_switch_is_a_field_of_the_same_name_in_the_same_order() -> None:
    assert [switch.name for switch in SWITCHES] == [field.name for field in fields(Rules)]
    assert all(switch.meaning.endswith(".") for switch in SWITCHES)


def test_centre_and_four_follow_the_size() -> None:
    assert make(11).throne == squares("f6")
    assert make(11).corners == squares("a1", "a11", "k1", "k11")
    assert make(8).throne == (), "an even board has no middle square"
    assert make(8, throne="centre", corners=["four", "b2"]).corners == squares("a1", "a8", "b2", "h1", "h8")


@pytest.mark.parametrize(
    ("switch", "spellings", "value", "text"),
    [
        (
            "corners",
            ["a10 a2,b1", ["b1", "a10", "a2"], "b1,a2,a10,a2"],
            squares("a2", "a10", "b1"),
            "a2,a10,b1",
        ),
        ("corners", ["none", [], ""], (), "none"),
        ("throne_pass", ["king", "K", ["K"]], "K", "K"),
        ("throne_pass", ["none", "", []], "", "none"),
        ("throne_pass", ["Kt", "tK", "t,king", ["t", "K"]], "tK", "tK"),
        ("corner_hostile", ["men", "tcnmgTCNMG"], "tcnmgTCNMG", "tcnmgTCNMG"),
        ("corner_hostile", ["defenders"], "TCNMGK", "TCNMGK"),
        ("exit_fort", ["yes", True], True, "yes"),
        ("king_armed", ["no", False], "no", "no"),
        ("king_sides", ["2", 2], 2, "2"),
        ("repetition_count", ["2", 2], 2, "2"),
        ("speed", ["K:1,t:2", ["t:2", "K:1"], "t:2 K:1 c:0"], (("t", 2), ("K", 1)), "t:2,K:1"),
        ("speed", ["all:1"], tuple((letter, 1) for letter in PIECES), ",".join(f"{p}:1" for p in PIECES)),
        ("speed", ["none", ""], (), "none"),
        ("material_draw", ["2 1", "2,1", [2, 1], ["2", "1"]], (2, 1), "2 1"),
        ("material_draw", ["none"], None, "none"),
        (
            "zones",
            ["c5:K:stop; a1,b1:t:both", ["c5:K:stop", "b1 a1:t:both"]],
            (Zone(squares("a1", "b1"), "t", "both"), Zone(squares("c5"), "K", "stop")),
            "a1,b1:t:both;c5:K:stop",
        ),
    ],
)
def test_spellings_mean_the_same(switch: str, spellings: list[Any], value: Any, text: str) -> None:
    for spelling in spellings:
        rules = make(11, **{switch: spelling})
        assert getattr(rules, switch) == value, spelling
        assert rules.switch_text(switch) == text
        assert rules.replace(**{switch: text}) == rules, "what is printed can be read"
        assert rules.replace(**{switch: value}) == rules, "what is held can be given"


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        (
            {"kings_sides": 2},
            r"kings_sides: 2: expected the name of a rule switch \(did you mean king_sides\?\)",
        ),
        ({"king_sides": 3}, r"king_sides: 3: expected one of 4, 2$"),
        ({"king_sides": True}, r"king_sides: True: expected one of 4, 2$"),
        ({"exit_fort": "maybe"}, r"exit_fort: 'maybe': expected yes or no"),
        ({"exit_fort": 1}, r"exit_fort: 1: expected yes or no"),
        ({"shieldwall": True}, r"shieldwall: True: expected one of off, men, corner"),
        ({"throne_pass": "Kx"}, r"throne_pass: 'Kx': expected piece letters .*no piece has the letter x"),
        ({"throne": "h1"}, r"throne: 'h1': expected squares .*no square h1 on this 7x7 board"),
        ({"throne": ["d4", 7]}, r"throne: \['d4', 7\]: expected squares"),
        ({"throne": (1,)}, r"throne: \(1,\): expected squares .*not on this 7x7 board"),
        ({"repetition_count": 1}, r"repetition_count: 1: expected a whole number from 2 to 1000000"),
        ({"repetition_count": "²"}, r"repetition_count: '²': expected a whole number"),
        ({"move_limit": 10**5000}, r"move_limit: a huge number: expected a whole number from 0 to 1000000"),
        ({"move_limit": True}, r"move_limit: True: expected a whole number"),
        ({"move_limit": "٣"}, r"move_limit: '٣': expected a whole number"),
        ({"move_limit": 1.5}, r"move_limit: 1.5: expected a whole number"),
        ({"speed": "t:2,t:3"}, r"speed: 't:2,t:3': expected .*'t' is named twice"),
        ({"speed": "t2"}, r"speed: 't2': expected letter:squares"),
        ({"speed": "t:100"}, r"speed: 't:100': expected letter:squares"),
        ({"zones": "c5:K"}, r"zones: 'c5:K': expected .*'c5:K' is not a zone"),
        ({"zones": "c5:K:jump"}, r"zones: 'c5:K:jump': .*\('jump' is not pass, stop or both\)"),
        ({"zones": "none:K:stop"}, r"zones: 'none:K:stop': .*\(a zone has squares and pieces\)"),
        ({"zones": "c5::stop"}, r"zones: 'c5::stop': .*\(a zone has squares and pieces\)"),
        ({"zones": "h8:K:stop"}, r"zones: 'h8:K:stop': .*\(no square h8 on this 7x7 board\)"),
        ({"material_draw": "2"}, r"material_draw: '2': expected two whole numbers"),
        ({"throne_pass": "\u202e"}, r"throne_pass: '\\u202e': .*no piece has the letter \\u202e"),
        ({"size": 9}, r"size: 9: expected 7, the size of the board"),
        (
            {"throne": "a1"},
            r"corners: 'a1,a7,g1,g7': expected one terrain on each square, but a1 is in throne too",
        ),
        ({"attacker_camps": "d4"}, r"attacker_camps: 'd4': expected one terrain on each square"),
        ({"camp_soft": "d3"}, r"camp_soft: 'd3': expected camp squares, but d3 is in no camp"),
        ({"first": "x" * 5000}, r"first: 'x{80}…': expected one of a, d"),
    ],
)
def test_errors_name_the_switch_the_value_and_the_expectation(switches: dict[str, Any], message: str) -> None:
    with pytest.raises(RulesError, match="^" + message) as caught:
        make(**switches)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"throne": "a1"}, "corners: .*expected one terrain on each square, but a1 is in throne too"),
        (
            {"attacker_camps": "b2", "defender_camps": "b2"},
            "defender_camps: 'b2': expected one terrain on each square, but b2 is in attacker_camps too",
        ),
        ({"camp_soft": "d3"}, "camp_soft: 'd3': expected camp squares, but d3 is in no camp"),
        ({"attacker_camps": "d3", "camp_soft": "d4"}, "camp_soft: 'd4': .* but d4 is in no camp"),
        ({"throne": "none,d4"}, r"throne: 'none,d4': .*\(none stands alone\)"),
        ({"corner_stop": ["none", "K"]}, r"corner_stop: \['none', 'K'\]: .*\(none stands alone\)"),
        ({"speed": "none,t:1"}, r"speed: 'none,t:1': .*\(none stands alone\)"),
        ({"zones": "none;c5:K:stop"}, "zones: 'none;c5:K:stop': .*'none' is not a zone"),
        ({"material_draw": "50 1"}, "material_draw: '50 1': .*no more than the board has squares"),
        ({"material_draw": "none 1"}, "material_draw: 'none 1': expected two whole numbers"),
    ],
)
def test_switches_that_contradict_themselves_or_each_other(switches: dict[str, Any], message: str) -> None:
    with pytest.raises(RulesError, match="^" + message):
        make(**switches)


@pytest.mark.parametrize(
    "switches",
    [
        {"corners": "none"},
        {"corner_stop": "none"},
        {"escape": "none", "capture_all": "no", "no_move": "draw"},
        {"throne": "none", "king_sides_on_throne": 0, "linnaean": "yes", "throne_hostile_held": "all"},
        {"shieldwall": "corner", "corners": "none"},
        {"shieldwall_closer": "any", "move_limit_unit": "each", "camp_range": "kind", "repetition_count": 9},
        {"repetition": "ignore", "repetition_start": "no", "repetition_compare": "board"},
        {"escape": "edge", "exit_fort": "yes"},
        {"sealed": "org", "corners": "d1"},
        {"opentafl": "yes", "guard_jump": "capture", "sealed": "org", "encirclement": "ring"},
        {"material_draw": "49 49"},
    ],
)
def test_rules_that_never_apply_are_no_contradiction(switches: dict[str, Any]) -> None:
    """Whoever removes the corners need not take back all that is said about corners."""
    assert make(**switches)


@pytest.mark.parametrize("size", [2, 20, True, "7"])
def test_sizes_out_of_range(size: Any) -> None:
    with pytest.raises(RulesError, match=r"size: .*expected a whole number from 3 to 19"):
        Rules.from_mapping({}, size)


def test_camps_and_soft_squares_fit_together() -> None:
    rules = make(9, attacker_camps="a4,a5,a6,b5", camp_soft="a5")
    assert rules.camp_soft == squares("a5")
    with pytest.raises(RulesError, match="camp_soft"):
        rules.replace(attacker_camps="none")


def test_no_goal_squares_are_allowed() -> None:
    """A corner escape without corners is odd but well defined: the king then has no goal."""
    assert make(throne="none", corners="none").escape == "corner"


def test_changes_name_only_what_differs() -> None:
    assert make(exit_fort="no").changes() == {}
    assert make(corners="none", king_sides=2).changes() == {"corners": "none", "king_sides": "2"}


def test_equal_rules_are_equal_and_hash_equal() -> None:
    one, other = make(king_sides="2"), make(king_sides=2)
    assert one == other
    assert hash(one) == hash(other)
    assert one != make()
    with pytest.raises(AttributeError):
        one.king_sides = 4  # type: ignore[misc]


def test_speed_of_a_letter() -> None:
    rules = make(speed="all:3,K:1")
    assert rules.speed_of("K") == 1
    assert rules.speed_of("t") == 3
    assert make().speed_of("t") == 0


def test_every_word_of_every_switch_can_be_said() -> None:
    for switch in SWITCHES:
        for word in switch.words:
            rules = make(**{switch.name: word})
            assert rules.switch_text(switch.name) == word
    assert not re.search(r"\bNone\b|True|False", "\n".join(text for _, text in make().lines()))
