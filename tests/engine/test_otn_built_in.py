"""The rule sets that are built into OpenTafl: which preset each is, and what OTN cannot say of it."""

from __future__ import annotations

import pytest

from hnefi.engine.games.tafl import otn, variant
from hnefi.engine.games.tafl.rules import SWITCHES
from hnefi.engine.games.tafl.variant import Variant

# is meant to be read, the string, and every switch in which it then differs from the preset.
_DIAMOND = "start:/3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/t3TTT3t/t4T4t/11/5t5/3ttttt3/"
_TABLUT = "start:/3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/t3T3t/4T4/4t4/3ttt3/"
_BRANDUBH = "start:/3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3/"
BUILT_IN: list[tuple[int, str, bool, str, dict[str, str]]] = [
    (
        1,
        "sea-battle-9",
        True,
        f"dim:9 name:Sea_Battle esc:e atkf:y ka:n nj:n cj:n cor: cen: {_TABLUT}",
        {"repetition": "draw"},
    ),
    (2, "fetlar", True, f"dim:11 name:Fetlar atkf:y nj:n cj:n {_DIAMOND}", {"king_on_edge": "safe"}),
    (
        3,
        "copenhagen",
        True,
        f"dim:11 name:Copenhagen atkf:y tfr:w sw:s efe:y {_DIAMOND}",
        {"repetition": "mover_loses"},
    ),
    (
        4,
        "copenhagen-relaxed",
        True,
        f"dim:11 name:Copenhagen atkf:y tfr:w sw:s swf:n efe:y {_DIAMOND}",
        {"repetition": "mover_loses"},
    ),
    (
        5,
        "berserk-opentafl",
        True,
        (
            "dim:11 name:Berserk surf:n atkf:n tfr:l kj:r ber:c "
            "start:/3ttttt3/5c5/11/t4T4t/t3NTT3t/tc1TTKTT1ct/t3TTT3t/t4T4t/11/5c5/3ttttt3/"
        ),
        {},
    ),
    (
        6,
        "brandubh-walker",
        True,
        f"dim:7 name:Brandub surf:n atkf:y ks:w nj:n cj:n cenh: cenhe: {_BRANDUBH}",
        {},
    ),
    (
        7,
        "tawlbwrdd",
        True,
        (
            "dim:11 name:Tawlbwrdd esc:e atkf:y ks:w nj:n cj:n cor: cen: "
            "start:/4ttt4/4t1t4/5t5/5T5/tt2TTT2tt/t1tTTKTTt1t/tt2TTT2tt/5T5/5t5/4t1t4/4ttt4/"
        ),
        {"king_sides_on_throne": "2", "king_sides_beside_throne": "2"},
    ),
    (
        8,
        "tablut-linnaeus",
        True,
        f"dim:9 name:Tablut esc:e atkf:y ks:c nj:n cor: cens: cenh: linc:y {_TABLUT}",
        {"encirclement": "apart", "no_move": "lose", "throne_hostile_held": "none"},
    ),
    (
        9,
        "foteviken",
        False,  # the program does not play what this string means
        (
            "dim:9 name:Foteviken_Tablut esc:e atkf:y nj:n cor: afor:a4,a5,a6,b5,d1,e1,f1,e2,i4,i5,i6,h5,d9,e9,f9,e8, "
            f"cens: cenh: cenhe:K aforh:K cenre: aforre: {_TABLUT}"
        ),
        {},
    ),
    (10, "magpie", True, f"dim:7 name:Magpie surf:n atkf:y ks:m spd:-1,-1,-1,-1,-1,-1,-1,1, {_BRANDUBH}", {}),
    (11, "fetlar-computer", True, f"dim:11 name:Computer_Fetlar tfr:w {_DIAMOND}", {}),
    (
        12,
        "tablut-15",
        True,
        (
            "dim:15 name:Tablut esc:e atkf:y ks:c nj:n cor: cens: cenh: start:/5ttttt5/6ttt6/7t7/7t7/7T7/t5TTT5t/"
            "tt3T1T1T3tt/ttttTTTKTTTtttt/tt3T1T1T3tt/t5TTT5t/7T7/7t7/7t7/6ttt6/5ttttt5/"
        ),
        {},
    ),
    (
        13,
        "parlett-13",
        True,
        (
            "dim:13 name:Parlett esc:e atkf:y ka:n nj:n cj:n cor: cen: start:/4ttttt4/5t1t5/6t6/6T6/t3T3T3t/tt3TTT3tt/"
            "t1tT1TKT1Tt1t/tt3TTT3tt/t3T3T3t/6T6/6t6/5t1t5/4ttttt4/"
        ),
        {"repetition": "draw"},
    ),
    (
        14,
        "alea-evangelii",
        True,
        (
            "dim:19 name:Alea_Evangelii esc:c atkf:y cor:a1,a2,b1,b2,a18,b18,a19,b19,r1,r2,s1,s2,r18,r19,s18,s19, "
            "cens: cenp:tcnkTCNK cenh: cenhe:tcnkTCNK tfr:w "
            "start:/2t2t7t2t2/19/t4t7t4t/7t1t1t7/6t1T1T1t6/t1t2t7t2t1t/4t4T4t4/"
            "3t4T1T4t3/4T2T1T1T2T4/3t2T1TKT1T2t3/4T2T1T1T2T4/3t4T1T4t3/4t4T4t4/t1t2t7t2t1t/6t1T1T1t6/7t1t1t7/t4t7t4t/19/"
            "2t2t7t2t2/"
        ),
        {},
    ),
]


def on_this_board(found: Variant) -> dict[str, str]:
    """The switches with what cannot matter left out: letters of pieces, and jumps of pieces, that are not there."""
    present = {letter for _, letter in found.start.pieces}
    said = dict(found.rules_lines())
    for switch in SWITCHES:
        value = getattr(found.rules, switch.name)
        if switch.kind == "pieces":
            said[switch.name] = "".join(letter for letter in value if letter in present) or "none"
        if switch.kind == "speed":
            said[switch.name] = str([limit for limit in value if limit[0] in present])
    for piece, letters in (("knight", "nN"), ("commander", "cC"), ("mercenary", "mM"), ("guard", "gG")):
        if present.isdisjoint(letters):
            del said[f"{piece}_jump"]
    return said


@pytest.mark.parametrize(
    ("number", "name", "as_played", "text", "differing"), BUILT_IN, ids=[str(row[0]) for row in BUILT_IN]
)
def test_what_is_built_into_opentafl(
    number: int, name: str, as_played: bool, text: str, differing: dict[str, str]
) -> None:
    preset = variant.find(name)
    found, problems = otn.import_rules(text, as_played)
    assert problems == []
    assert found.rows == preset.rows
    said, wanted = on_this_board(found), on_this_board(preset)
    assert said.pop("opentafl") == ("yes" if as_played else "no")
    if as_played:
        # The program lets everybody cross defenders' camps, of which no board here has one.
        said["defender_camp_pass"] = wanted["defender_camp_pass"]
    del wanted["opentafl"]
    assert {switch: value for switch, value in said.items() if value != wanted[switch]} == differing
    if number != 13:
        assert f"no. {number}" in preset.source or name == "tablut-linnaeus"
    assert [row[0] for row in BUILT_IN] == list(range(1, 15))
