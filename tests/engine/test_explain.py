"""Rules in sentences: every switch is said, and says what it does; two variants side by side."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from hnefi.engine.games.tafl import explain, variant
from hnefi.engine.games.tafl.rules import SWITCH, SWITCHES, Rules
from hnefi.engine.games.tafl.variant import Variant, find

# Every kind of piece and of square, so that every switch has something to say.
BASE = Variant.build(
    "full",
    "9/1tcnmg3/9/2TCNMG2/4K4/9/9/9/9",
    {
        "corners": "a1,a2,a9,i1,i9",
        "attacker_camps": "a4,a5",
        "defender_camps": "i4,i5",
        "shieldwall": "men",
        "move_limit": 100,
    },
)
SETS = ("none", "all", "men", "attackers", "defenders", "king", "tT", "tcnTCNK", "CNMK")
VALUES: dict[str, tuple[str, ...]] = {
    "throne": ("centre", "none", "e5,h3", "b2"),
    "corners": ("a1,a2", "none", "four", "h8"),
    "attacker_camps": ("none", "a4", "a4,a5"),
    "defender_camps": ("none", "i4", "i4,i5"),
    "camp_soft": ("none", "a5", "a4,a5,i4"),
    "zones": (
        "none",
        "c5:K:stop",
        "c5:K:pass",
        "c5:K:both",
        "c5:all:stop",
        "c6:K:stop",
        "c5:K:stop;c6:tT:both",
    ),
    "speed": ("none", "K:1", "K:2", "all:1", "t:2,K:1", "attackers:1", "tT:1,cC:2,K:3"),
    **{switch.name: ("0", "1", "100") for switch in SWITCHES if switch.kind == "count"},
    "repetition_count": ("2", "3", "4", "5", "11"),
    "material_draw": ("none", "2 1", "2 2", "1 2"),
    **{switch.name: switch.words for switch in SWITCHES if switch.words},
    **{switch.name: SETS for switch in SWITCHES if switch.kind == "pieces"},
}


def test_every_switch_is_tried() -> None:
    assert set(VALUES) | {"size"} == set(SWITCH)


@pytest.mark.parametrize("switch", VALUES)
def test_no_two_values_are_explained_alike(switch: str) -> None:
    """A rule that players cannot read about is a rule that surprises them."""
    told: dict[tuple[str, ...], str] = {}
    said: dict[str, str] = {}
    for value in VALUES[switch]:
        changed = BASE.with_switches(**{switch: value})
        text = tuple(explain.explain(changed))
        assert text not in told, f"{switch}: {value} reads like {told.get(text)}"
        told[text] = value
        sentence = explain.sentence(changed.rules, switch)
        assert sentence not in said, f"{switch}: {value} reads like {said.get(sentence)}: {sentence}"
        said[sentence] = value


@pytest.mark.parametrize("switch", VALUES)
def test_what_differs_from_the_default_is_said(switch: str) -> None:
    """The explanation holds the switch's own sentence, or its words where sentences are joined."""
    for value in VALUES[switch]:
        changed = BASE.with_switches(**{switch: value})
        if value == SWITCH[switch].default or changed.rules == BASE.rules:
            continue
        wanted = explain.sentence(changed.rules, switch)
        whole = " ".join(explain.explain(changed))
        if SWITCH[switch].kind == "squares" and switch != "camp_soft":
            # Named with what holds there; where there are none, nothing is said of them.
            words = wanted.partition(":")[0]
            assert (f"{words} (" in whole) == bool(getattr(changed.rules, switch)), (switch, value)
        elif switch.endswith(("_pass", "_stop", "_enter")):
            wanted = wanted.partition(": ")[2].rstrip(".")
            # That everybody may come in goes without saying.
            assert (wanted in whole) == (not switch.endswith("_enter") or value != "all"), (switch, value)
        elif switch == "repetition_count":
            assert {"2": "second", "3": "third", "4": "fourth"}.get(value, f"{value}th") in whole
        elif switch == "move_limit_unit":
            assert "100 moves of each side" in whole
        elif value not in ("none", "off", "0"):
            assert wanted in whole, (switch, value, wanted)


# What one value says, word for word.
SAID = [
    ("first", "d", "Defenders begin."),
    ("throne_stop", "none", "Throne: nobody may stop there."),
    ("throne_pass", "king", "Throne: only the king may slide across when it is empty."),
    ("throne_enter", "none", "Throne: nobody may come in from outside."),
    ("corner_stop", "defenders", "Corner squares: only defenders may stop there."),
    ("attacker_camp_enter", "none", "Attackers' camps: nobody may come in from outside."),
    ("defender_camp_pass", "all", "Defenders' camps: all pieces may slide across when it is empty."),
    (
        "camp_range",
        "kind",
        "A piece in a camp is inside all camps of that kind, and may go from one to another.",
    ),
    ("zones", "c5,c6:attackers:stop", "Forbidden to attackers: to stop on c5, c6."),
    ("speed", "K:1", "Limited to 1 square in one move: the king."),
    ("speed", "all:2", "Limited to 2 squares in one move: all pieces."),
    ("throne_hostile_empty", "men", "The empty throne counts as an enemy of all men."),
    ("throne_hostile_held", "none", "The throne with somebody on it does not help to capture."),
    ("corner_hostile", "king", "A corner square counts as an enemy of the king."),
    ("attacker_camp_hostile", "all", "A square of an attackers' camp counts as an enemy of all pieces."),
    ("camp_soft", "a5", "The camp squares a5 never help to capture pieces of the camp's own side."),
    ("edge_hostile", "men", "The rim of the board counts as an enemy of all men."),
    ("king_armed", "no", "The king does not help to capture."),
    ("king_sides", "2", "The king is taken from two opposite sides, like a man."),
    ("king_sides_on_throne", "0", "On his throne he cannot be taken."),
    ("king_sides_beside_throne", "2", "Beside his throne he is taken from two opposite sides."),
    ("escape", "edge", "Defenders win when the king reaches the edge of the board."),
    ("encirclement", "ring", "Attackers also win when one unbroken ring holds the king and all defenders."),
    ("capture_all", "no", "Taking the last attacker does not win by itself."),
    ("no_move", "draw", "The game is drawn when the side to move has no legal move."),
    (
        "repetition",
        "forbidden_to_defenders",
        "The third occurrence of a position is forbidden to the defenders.",
    ),
    ("repetition", "ignore", "Repeating a position has no effect."),
    ("repetition_start", "no", "The start position itself is not counted."),
    ("quiet_limit", "50", "The game is drawn after 50 moves of both sides together without a capture."),
    (
        "material_draw",
        "2 1",
        "The game is drawn when at most 2 attackers and at most 1 men of the king's side are left.",
    ),
    ("agreed_draw", "no", "Players may not agree to a draw."),
]


@pytest.mark.parametrize(("switch", "value", "text"), SAID)
def test_what_a_value_says(switch: str, value: str, text: str) -> None:
    assert explain.sentence(BASE.with_switches(**{switch: value}).rules, switch) == text


@pytest.mark.parametrize("name", variant.names())
def test_explanations_are_sentences(name: str) -> None:
    told = explain.explain(find(name))
    assert len(told) == len(set(told))
    for sentence in told:
        assert sentence[0].isupper() or sentence[0].isdigit(), sentence
        assert sentence.endswith("."), sentence
        for slip in ("None", "_", "..", "  ", "nobody counts", "of nobody", "()", "to only"):
            assert slip not in sentence, sentence
    for switch in SWITCH:
        sentence = explain.sentence(find(name).rules, switch)
        assert sentence.endswith("."), sentence
        assert "_" not in sentence, sentence


def test_a_whole_explanation() -> None:
    assert explain.explain(find("brandubh")) == [
        "Brandubh: the small Irish game with corner escape and a king taken from two sides.",
        "7 x 7 squares, 8 attackers against 4 defenders and the king. Attackers begin.",
        "Defenders win when the king reaches a corner square.",
        "Attackers win by taking the king.",
        "Defenders also win by taking the last attacker.",
        "Attackers also win when no defender can reach the edge any more.",
        "Pieces slide any distance along files and ranks over empty squares and never past a piece.",
        "Throne (d4): only the king may stop there; all pieces may slide across when it is empty.",
        "Corner squares (a1, a7, g1, g7): only the king may stop there.",
        "A man is taken when an enemy moves so that he stands between two enemies on a file or rank.",
        "The empty throne counts as an enemy of all men.",
        "The throne with somebody on it counts as an enemy of attackers.",
        "A corner square counts as an enemy of all pieces.",
        "The king helps to capture.",
        "The king is taken from two opposite sides, like a man.",
        "On his throne he is taken from four sides.",
        "Beside his throne he is taken from two opposite sides.",
        "A side without a legal move loses.",
        "The third occurrence of a position loses for the defenders.",
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ard-ri-step", "Beside his throne he cannot be taken: the throne is not hostile to him."),
        ("ard-ri-step", "Limited to 1 square in one move: all pieces."),
        ("tablut-herr-7", "The game is drawn after 150 moves of each side."),
        ("copenhagen-org", "The game is drawn after 134 moves of both sides together."),
        ("berserk", "After each capture the same piece must capture again if it can."),
        ("foteviken", "A square of an attackers' camp counts as an enemy of the king."),
        ("alea-walker", "Defenders win when the king reaches a corner square."),
    ],
)
def test_what_players_of_a_variant_must_know(name: str, sentence: str) -> None:
    assert sentence in explain.explain(find(name))


def test_a_berserk_turn_as_opentafl_plays_it() -> None:
    game = find("berserk")
    said = explain.explain(replace(game, rules=game.rules.replace(opentafl="yes")))
    assert any(line.endswith("; a move without a capture ends the turn.") for line in said)
    assert explain.sentence(game.rules, "berserk") not in said


def test_what_does_not_matter_is_left_out() -> None:
    told = " ".join(explain.explain(find("tawlbwrdd"))[1:])  # the description names what there is not
    for word in ("hrone", "orner", "amp", "hieldwall", "ommander", "ort "):
        assert word not in told, word
    bare = find("tawlbwrdd").with_switches(escape="corner")
    assert "The king cannot win by escaping: there is no corner square." in explain.explain(bare)
    # Pieces that are not there are not spoken of.
    most = find("brandubh").with_switches(throne_stop="tcnTCNK")
    assert any("all pieces may stop there" in sentence for sentence in explain.explain(most))


def test_a_mercenary_on_one_side_is_one_on_both() -> None:
    rows = "7/7/2m4/2K4/7/5T1/7"
    one = Variant.build("one", rows, {"throne_pass": "M"})
    assert any("only defending mercenaries may slide across" in text for text in explain.explain(one))


@pytest.mark.parametrize(
    ("pieces", "present", "words"),
    [
        ("", "tTK", "nobody"),
        ("tTK", "tTK", "all pieces"),
        ("TCNMGK", "tTK", "only defenders"),
        ("T", "tTK", "only defending men"),
        ("tT", "tTK", "all men"),
        ("K", "tTK", "only the king"),
        ("tK", "tTK", "all pieces but defending soldiers"),
        ("tc", "tcnmgTCNMGK", "only attacking soldiers and attacking commanders"),
        ("tcnmgTCNMG", "tcnmgTCNMGK", "all men"),
    ],
)
def test_piece_sets_in_words(pieces: str, present: str, words: str) -> None:
    assert explain.pieces_in_words(pieces, present) == words


def test_no_sentence_without_a_switch() -> None:
    with pytest.raises((ValueError, AttributeError)):
        explain.sentence(BASE.rules, "king_side")


def test_equal_games_do_not_differ_and_others_do() -> None:
    found = variant.everything()
    for one, other in itertools.combinations(found, 2):
        assert explain.compare(one, other), f"{one.name} and {other.name} look the same"
    for one in found:
        assert explain.compare(one, one) == []


def test_differences_are_the_switches_that_differ() -> None:
    one, other = find("tablut-linnaeus"), find("tablut-saami")
    lines = zip(one.rules_lines(), other.rules_lines(), strict=True)
    assert [found.subject for found in explain.compare(one, other)] == [a[0] for a, b in lines if a != b]
    counted = one.with_switches(repetition_count=4, move_limit_unit="each")
    assert [found.subject for found in explain.compare(one, counted)] == [
        "repetition_count",
        "move_limit_unit",
    ]


def test_boards_of_two_sizes() -> None:
    """The middle of one board is no other throne than the middle of another."""
    found = explain.compare(find("copenhagen"), find("copenhagen-13"))
    assert [difference.subject for difference in found] == ["board", "start"]
    assert found[0].first == "The board has 11 x 11 squares."
    assert found[1].second.startswith("32 attackers against 16 defenders and the king: 3ttttttt3/")
    forts = explain.compare(find("fetlar"), find("alea-walker"))
    (corners,) = (difference for difference in forts if difference.subject == "corners")
    assert corners.first == "Corner squares: the four corners of the board."
    assert corners.second.startswith("Corner squares: a1, a2, a18,")


def test_sentences_are_about_rules_alone() -> None:
    """The smallest and the largest board, and one without a middle."""
    for size in (3, 4, 19):
        for switch in SWITCH:
            assert explain.sentence(Rules.from_mapping({}, size), switch).endswith(".")
