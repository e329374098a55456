"""OpenTafl notation: the meaning of every key, OpenTafl's own reading, and what is lost on the way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hnefi.engine import squares as board
from hnefi.engine.games.tafl import otn, variant
from hnefi.engine.games.tafl.fen import SetupError
from hnefi.engine.games.tafl.rules import SWITCHES, Rules
from hnefi.engine.games.tafl.switches import ATTACKER_PIECES, DEFENDER_PIECES, PIECES
from hnefi.engine.games.tafl.variant import Variant

# Rank 1 first, and no two ranks alike.
LOPSIDED = "start:/2t4/7/3T3/t2K3/4T2/7/1t5/"
ROWS = "1t5/7/4T2/t2K3/3T3/7/2t4"


def read(keys: str, opentafl: bool = False) -> tuple[dict[str, str], list[str]]:
    """The switches that a rules string on the lopsided board changes, and its problems."""
    found, problems = otn.import_rules(f"dim:7 {keys} {LOPSIDED}", opentafl)
    return found.rules.changes(), problems


def changes(keys: str, opentafl: bool = False) -> dict[str, str]:
    found, problems = read(keys, opentafl)
    assert problems == []
    return found


def test_an_empty_string_has_our_defaults() -> None:
    assert changes("") == {}


def test_start_begins_with_rank_1_and_starti_with_the_top_rank() -> None:
    bottom, _ = otn.import_rules(f"dim:7 {LOPSIDED}")
    top, _ = otn.import_rules(f"dim:7 starti:/{ROWS}/")
    assert bottom.rows == top.rows == ROWS
    assert dict(bottom.start.pieces)[board.parse("c1", 7)] == "t"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("esc:e", {"escape": "edge"}),
        ("surf:n", {"encirclement": "off"}),
        ("atkf:n", {"first": "d"}),
        ("tfr:i", {"repetition": "ignore"}),
        ("tfr:w", {"repetition": "mover_wins"}),
        ("tfr:l", {"repetition": "mover_loses"}),
        ("ka:h", {"king_armed": "moving"}),
        ("ka:a", {"king_armed": "standing"}),
        ("ka:n", {"king_armed": "no"}),
        ("ks:s", {}),
        ("ks:y", {}),
        ("ks:c", {"king_sides": "2"}),
        ("ks:m", {"king_on_edge": "enclosed"}),
        ("ks:w", {"king_sides": "2", "king_sides_on_throne": "2", "king_sides_beside_throne": "2"}),
        ("ks:n", {"king_sides": "2", "king_sides_on_throne": "2", "king_sides_beside_throne": "2"}),
        (
            "kj:r nj:n cj:c mj:j gj:c",
            {
                "king_jump": "restricted",
                "knight_jump": "none",
                "commander_jump": "capture",
                "mercenary_jump": "over",
                "guard_jump": "capture",
            },
        ),
        ("spd:1", {"speed": ",".join(f"{letter}:1" for letter in PIECES)}),
        ("spd:-1", {}),
        ("spd:-1,2", {"speed": "T:2,C:2,N:2,M:2,G:2,K:2"}),
        ("spd:1,2,3,4,5,6,7,8", {"speed": "t:1,c:2,n:3,T:5,C:6,N:7,K:8"}),
        ("spd:1,2,3,4,5,6,7,8,9,10", {"speed": "t:1,c:2,n:3,m:5,T:6,C:7,N:8,M:10,K:9"}),
        ("spd:-1,-1,-1,-1,-1,-1,-1,-1,-1,1,-1,3,", {"speed": "G:3,K:1"}),
        ("cor: cen:", {"corners": "none", "throne": "none"}),
        ("cor:a1,b2, cen:c3", {"corners": "a1,b2", "throne": "c3"}),
        ("cor:default cen:default", {}),
        ("afor:a3,a4", {"attacker_camps": "a3,a4", "camp_range": "kind"}),
        ("dfor:g3", {"defender_camps": "g3", "camp_range": "kind"}),
        (
            "corh: cenhe:tcnkm cenh:K aforh:t dforh:T",
            {
                "corner_hostile": "none",
                "throne_hostile_empty": "tcnm",
                "throne_hostile_held": "K",
                "attacker_camp_hostile": "t",
                "defender_camp_hostile": "T",
            },
        ),
        (
            "corp: cenp:K aforp:t dforp:T",
            {
                "corner_pass": "none",
                "throne_pass": "K",
                "attacker_camp_pass": "t",
                "defender_camp_pass": "T",
            },
        ),
        (
            "cors:TK cens: afors:t dfors:T",
            {
                "corner_stop": "TK",
                "throne_stop": "none",
                "attacker_camp_stop": "t",
                "defender_camp_stop": "T",
            },
        ),
        (
            "corre: cenre:K aforre:t dforre:T",
            {
                "corner_enter": "none",
                "throne_enter": "K",
                "attacker_camp_enter": "t",
                "defender_camp_enter": "T",
            },
        ),
        ("sw:w swf:n", {"shieldwall": "men", "shieldwall_closer": "any"}),
        (
            "sw:s efe:y linc:y ber:m",
            {"shieldwall": "corner", "linnaean": "yes", "berserk": "any", "exit_fort": "yes"},
        ),
        ("ber:c", {"berserk": "capture"}),
    ],
)
def test_what_a_key_means(keys: str, expected: dict[str, str]) -> None:
    assert changes(keys) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", {}),
        ("tfr:w", {"repetition": "mover_loses"}),
        ("tfr:l", {"repetition": "mover_wins"}),
        ("tfr:i", {}),
        ("cenhe:K", {"throne_hostile_empty": "none"}),
        ("cenhe:tK", {"throne_hostile_empty": "tcnmg"}),
        ("corh:T", {"corner_hostile": "TCNMGK"}),
        ("cenp:", {"throne_pass": "none", "throne_stop": "none"}),
        ("corre: aforre: dforre:", {}),
        (
            "cenre:K",
            dict.fromkeys(("corner_enter", "attacker_camp_enter", "defender_camp_enter"), "none")
            | {"throne_enter": "K"},
        ),
        ("spd:1,2", {}),
        ("spd:1,1,1,1,1,1,1,1,1,1", {}),
        ("spd:1", {"speed": ",".join(f"{letter}:1" for letter in PIECES)}),
        ("dforp:T", {"defender_camp_pass": "T", "defender_camp_stop": "T"}),
    ],
)
def test_how_opentafl_reads_a_key(keys: str, expected: dict[str, str]) -> None:
    found = changes(keys, opentafl=True)
    assert found.pop("opentafl") == "yes"
    if "dforp" not in keys:
        assert found.pop("defender_camp_pass") == PIECES, "that program lets everybody cross defender camps"
    assert found == expected


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("foo:1", "'foo:1': expected a known key"),
        ("hello", "'hello': expected key:value"),
        ("esc:q", "'esc:q': expected one of c, e"),
        ("esc:e esc:c", "'esc:c': esc was given before"),
        ("cor:z9", "'cor:z9': 'z9' is not a square"),
        ("cor:h1", "'cor:h1': no square h1 on this 7x7 board"),
        ("corh:tX", "'corh:tX': no piece has the letter X"),
        ("spd:1,2,3", "'spd:1,2,3': expected 1, 2, 8, 10, 12 numbers"),
        ("spd:²", "'spd:²': '²' is not a number from -1 to 99"),
        ("spd:1000", "'spd:1000': '1000' is not a number"),
        ("name:a/b", "'name:a/b': expected letters, digits"),
        ("cen:a1", "corners: 'a1,a7,g1,g7': expected one terrain on each square, but a1 is in throne too"),
        ("afor:d4", "attacker_camps: 'd4': expected one terrain on each square"),
        ("x" * 10_000, "'" + "x" * 80 + "…': expected key:value"),
        ("cor:" + "a" * 10_000, "expected at most 4096 characters"),
    ],
)
def test_what_is_not_understood_is_reported_and_the_rest_is_used(keys: str, problem: str) -> None:
    found, problems = read(f"{keys} efe:y")
    assert len(problems) == 1
    assert problem in problems[0]
    assert len(problems[0]) < 300
    assert found["exit_fort"] == "yes"


def test_a_wrong_or_missing_dim_is_reported() -> None:
    for dim in ("", "dim:9", "dim:x"):
        found, problems = otn.import_rules(f"{dim} {LOPSIDED}")
        assert found.size == 7
        assert len(problems) == 1
        assert "dim" in problems[0]


def test_many_problems_are_counted_not_listed() -> None:
    _, problems = read(" ".join(f"word{number}" for number in range(3000)))
    assert len(problems) == 51
    assert problems[-1] == "2950 more words: not understood"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dim:7",
        "dim:7 start:",
        "dim:7 start:/7/7/",
        "dim:7 start:/7/7/7/7/7/7/7/",
        f"dim:7 start:/{'7/' * 6}t2K3/",
        "start:" + "t" * 60_000,
    ],
)
def test_without_a_board_there_is_no_game(text: str) -> None:
    with pytest.raises(otn.OtnError) as caught:
        otn.import_rules(text)
    assert len(str(caught.value)) < 300


def test_the_name_is_one_word() -> None:
    named, _ = otn.import_rules(f"dim:7 name:Sea_Battle {LOPSIDED}")
    assert named.name == "Sea_Battle"
    assert otn.import_rules(f"dim:7 {LOPSIDED}")[0].name == "custom"


# What OTN cannot say of each preset; not named: nothing is lost.
LOST = {
    "ard-ri": "repetition",
    "brandubh": "king_sides_beside_throne repetition",
    "brandubh-org": "king_sides_beside_throne encirclement sealed repetition repetition_count repetition_compare "
    "move_limit",
    "brandubh-wtf3": "repetition",
    "copenhagen": "repetition",
    "copenhagen-13": "repetition",
    "copenhagen-org": "encirclement sealed repetition repetition_count repetition_compare move_limit",
    "copenhagen-org-13": "encirclement sealed repetition repetition_count repetition_compare move_limit",
    "copenhagen-relaxed": "repetition",
    "fetlar": "king_on_edge",
    "fetlar-2013": "no_move",
    "hingston-alternative": "move_limit",
    "hingston-original": "move_limit",
    "hingston-original-block": "move_limit",
    "historical-13": "repetition",
    "historical-15": "repetition",
    "historical-lewis": "repetition",
    "historical-serif": "repetition",
    "parlett-13": "repetition",
    "sea-battle-11": "repetition",
    "sea-battle-9": "repetition",
    "sea-battle-9-circle": "repetition",
    "simple-11": "repetition",
    "tablut-ashton": "camp_range",
    "tablut-bologna": "camp_range camp_soft capture_all repetition_count repetition_start",
    "tablut-herr-7": "king_sides_on_throne move_limit move_limit_unit",
    "tablut-herr-7-coded": "capture_run king_sides_on_throne no_move move_limit move_limit_unit",
    "tablut-herr-9": "king_sides_on_throne move_limit move_limit_unit",
    "tablut-linnaeus": "no_move",
    "tablut-saami": "repetition",
    "tawlbwrdd-historical": "repetition",
}


@pytest.mark.parametrize("name", variant.names())
def test_what_presets_lose_and_keep(name: str) -> None:
    found = variant.find(name)
    text, lost = otn.export_rules(found)
    assert lost == LOST.get(name, "").split()
    back, problems = otn.import_rules(text)
    assert problems == []
    assert back.rows == found.rows
    if not lost:
        assert back.rules == found.rules
        assert back.hash == found.hash
    plain = dict(Rules.from_mapping({}, found.size).lines())
    kept = dict(found.rules_lines()) | {switch: back.rules.switch_text(switch) for switch in lost}
    assert dict(back.rules_lines()) == kept
    for switch in lost:
        # Several switches share one key: what it can say is kept as near as it comes.
        assert kept[switch] == plain[switch] or switch == "camp_range" or switch.startswith("king_sides")


def test_the_exact_text_of_an_export() -> None:
    text, _ = otn.export_rules(variant.find("copenhagen"))
    assert text == (
        "dim:11 name:copenhagen atkf:y sw:s efe:y "
        "start:/3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3/"
    )
    found = Variant.build("lopsided", ROWS, {"first": "d", "throne_hostile_held": "none", "corners": "a1,b6"})
    assert otn.export_rules(found) == (f"dim:7 name:lopsided atkf:n cor:a1,b6 cenh: {LOPSIDED}", [])


# What OTN can say, and so must bring back: a strategy for each switch.
_SETS = st.sets(st.sampled_from(PIECES)).map(lambda letters: "".join(x for x in PIECES if x in letters))
_SIDES_SETS = st.sampled_from(["", ATTACKER_PIECES, DEFENDER_PIECES, PIECES])
_KINGS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"king_sides": 2},
        {"king_on_edge": "enclosed"},
        {"king_sides": 2, "king_sides_on_throne": 2, "king_sides_beside_throne": 2},
    ]
)
_CHOSEN = {
    "first": ["a", "d"],
    "escape": ["corner", "edge"],
    "encirclement": ["off", "apart"],
    "king_armed": ["yes", "moving", "standing", "no"],
    "king_jump": ["none", "restricted", "over", "capture"],
    "knight_jump": ["none", "restricted", "over", "capture"],
    "commander_jump": ["none", "restricted", "over", "capture"],
    "mercenary_jump": ["none", "restricted", "over", "capture"],
    "guard_jump": ["none", "restricted", "over", "capture"],
    "shieldwall": ["off", "men", "corner"],
    "shieldwall_closer": ["end", "any"],
    "exit_fort": ["yes", "no"],
    "linnaean": ["yes", "no"],
    "berserk": ["off", "capture", "any"],
}


@st.composite
def sayable(draw: st.DrawFn, opentafl: bool = False) -> dict[str, Any]:
    """Switches on the lopsided board, all of which OTN can say."""
    switches: dict[str, Any] = {name: draw(st.sampled_from(words)) for name, words in _CHOSEN.items()}
    switches |= draw(_KINGS)
    switches["opentafl"] = opentafl
    results = ["draw", "mover_wins", "mover_loses"] + ([] if opentafl else ["ignore"])
    switches["repetition"] = draw(st.sampled_from(results))
    # The men of the board stand on none of these squares.
    free = draw(st.permutations(["d4", "a1", "a7", "g1", "g7", "b2", "c3", "f6", "g4", "d7"]))
    for number, name in enumerate(("throne", "corners", "attacker_camps", "defender_camps")):
        switches[name] = free[number * 2 : number * 2 + draw(st.integers(0, 2))]
    if switches["attacker_camps"] or switches["defender_camps"]:
        switches["camp_range"] = "kind"
    for terrain in ("throne", "corner", "attacker_camp", "defender_camp"):
        crossing = draw(_SETS)
        stopping = draw(_SETS)
        if opentafl:
            stopping = "".join(letter for letter in stopping if letter in crossing)
        switches |= {
            f"{terrain}_pass": crossing,
            f"{terrain}_stop": stopping,
            f"{terrain}_enter": draw(_SETS),
        }
    for name in (
        "throne_hostile_empty",
        "throne_hostile_held",
        "corner_hostile",
        "attacker_camp_hostile",
        "defender_camp_hostile",
    ):
        switches[name] = draw(_SIDES_SETS if opentafl else _SETS)
    switches["speed"] = tuple(
        (letter, most)
        for letter, most in zip(
            PIECES, draw(st.lists(st.integers(0, 99), min_size=11, max_size=11)), strict=True
        )
        if most
    )
    return switches


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.data(), st.booleans())
def test_everything_that_can_be_said_comes_back(data: st.DataObject, opentafl: bool) -> None:
    found = Variant.build("any", ROWS, data.draw(sayable(opentafl)))
    text, lost = otn.export_rules(found)
    back, problems = otn.import_rules(text, opentafl)
    assert (lost, problems) == ([], [])
    assert back.rules == found.rules
    assert back.rows == found.rows
    assert back.hash == found.hash


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"defender_camp_pass": "defenders"}, "dforp:TCNMGK"),
        ({"defender_camp_pass": "all"}, ""),
        ({"defender_camp_pass": "all", "speed": "defenders:2"}, "spd:-1,-1,-1,-1,-1,-1,2,2,2,2,2,2"),
        ({"defender_camp_pass": "all", "repetition": "mover_loses"}, "tfr:w"),
        (
            {"defender_camp_pass": "all", "corner_enter": "none"},
            f"corre: cenre:{PIECES} aforre:{PIECES} dforre:{PIECES}",
        ),
    ],
)
def test_strings_for_opentafl_say_what_that_program_will_read(switches: dict[str, str], words: str) -> None:
    text, lost = otn.export_rules(Variant.build("any", ROWS, {**switches, "opentafl": "yes"}))
    assert lost == []
    assert text == " ".join(f"dim:7 name:any atkf:y {words} {LOPSIDED}".split())


_SAYABLE = {
    *_CHOSEN,
    *(switch.name for switch in SWITCHES if switch.kind in ("pieces", "size", "speed")),
    *("king_sides", "opentafl", "camp_range", "camp_soft"),
    *("throne", "corners", "attacker_camps", "defender_camps"),
}
_UNSAYABLE = {
    **{
        switch.name: [word for word in switch.words if word != switch.default] or ["5"]
        for switch in SWITCHES
        if switch.name not in _SAYABLE
    },
    "repetition": [
        "attackers_lose",
        "defenders_lose",
        "forbidden",
        "forbidden_to_attackers",
        "forbidden_to_defenders",
    ],
    "encirclement": ["ring"],
    "king_on_edge": ["last"],
    "material_draw": ["1 1"],
    "edge_hostile": ["all"],
    "zones": ["c5:K:stop"],
    "escape": ["none"],
}
"""Switches and values that OTN has no words for."""


@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name, words in _UNSAYABLE.items() for word in words]
)
def test_what_cannot_be_said_is_named(name: str, word: str) -> None:
    found = Variant.build("any", ROWS, {name: word})
    text, lost = otn.export_rules(found)
    assert lost == [name]
    back, problems = otn.import_rules(text)
    assert problems == []
    assert back.rules == found.rules.replace(**{name: dict(Rules.from_mapping({}, 7).lines())[name]})


def test_camps_of_their_own_and_soft_squares_are_lost() -> None:
    found = Variant.build("any", ROWS, {"attacker_camps": "a3,b3", "camp_soft": "b3"})
    assert otn.export_rules(found)[1] == ["camp_range", "camp_soft"]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("escorhtfrdimnap:,/-0123456789KTt²"), max_size=12), max_size=8),
    st.booleans(),
)
def test_noise_never_hurts(tokens: list[str], opentafl: bool) -> None:
    tokens = [token for token in tokens if not token.startswith("start")]
    found, _ = otn.import_rules(f"{' '.join(tokens)} {LOPSIDED}", opentafl)
    assert found.size == 7


def test_board_records_run_from_rank_1_up() -> None:
    setup = otn.parse_board("/2t4/7/3T3/t2K3/4T2/7/1t5/", 7)
    assert "/".join(setup.rows) == ROWS
    assert otn.parse_board("2t4/7/3T3/t2K3/4T2/7/1t5 d 3 4").rows == setup.rows
    assert otn.format_board(setup) == "/2t4/7/3T3/t2K3/4T2/7/1t5/"
    with pytest.raises(SetupError, match="7 rows: expected 9"):
        otn.parse_board("/2t4/7/3T3/t2K3/4T2/7/1t5/", 9)


def test_move_records() -> None:
    def sq(name: str) -> int:
        return board.parse(name, 11)

    move = board.move(sq("d1"), sq("d3"))
    assert otn.format_move(move) == "d1-d3"
    assert otn.format_move(move, (sq("b6"), sq("c10"))) == "d1-d3xb6/c10"
