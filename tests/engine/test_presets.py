"""The presets that records know, stated a second time and apart from their files, and what all presets must be able to
do."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hnefi.engine.games.tafl import variant
from hnefi.engine.games.tafl.fen import parse_fen
from hnefi.engine.games.tafl.position import Position
from hnefi.engine.games.tafl.rules import SWITCHES
from hnefi.engine.games.tafl.variant import Variant, find
from hnefi.engine.perft import perft

# Layout, men of both sides without the king, rows from the top rank down; `=` repeats those above the middle one.
LAYOUTS = """
brandubh     8v4    3t3/3t3/3T3/ttTKTtt/=
ard-ri       16v8   2ttt2/3t3/t1TTT1t/ttTKTtt/=
ballinderry  8v4    3t3/1t3t1/3T3/t1TKT1t/=
herr         12v4   2ttt2/7/t2T2t/t1TKT1t/=
tablut       16v8   3ttt3/4t4/4T4/t3T3t/ttTTKTTtt/=
circle       16v8   3ttt3/1t5t1/4T4/t3T3t/t1TTKTT1t/=
diamond      24v12  3ttttt3/5t5/11/t4T4t/t3TTT3t/tt1TTKTT1tt/=
berserk      24v12  3ttttt3/5c5/11/t4T4t/t3TTT3t/tc1TTKTT1ct/t3NTT3t/t4T4t/11/5c5/3ttttt3
bell         24v12  4ttt4/4t1t4/5t5/5T5/tt2TTT2tt/t1tTTKTTt1t/=
lewis        24v12  4ttt4/4ttt4/5T5/5T5/tt3T3tt/ttTTTKTTTtt/=
serif-11     24v12  3ttttt3/5t5/5T5/t4T4t/t4T4t/ttTTTKTTTtt/=
gokstad      32v16  3ttttttt3/6t6/13/t5T5t/t5T5t/t4TTT4t/tt1TTTKTTT1tt/=
parlett      32v16  4ttttt4/5t1t5/6t6/6T6/t3T3T3t/tt3TTT3tt/t1tT1TKT1Tt1t/=
coppergate   40v20  5ttttt5/6ttt6/7t7/7t7/7T7/t5TTT5t/tt3T1T1T3tt/ttttTTTKTTTtttt/=
alea         48v24  2t2t7t2t2/19/t4t7t4t/7t1t1t7/6t1T1T1t6/t1t2t7t2t1t/4t4T4t4/3t4T1T4t3/4T2T1T1T2T4/3t2T1TKT1T2t3/=
alea-ludii   48v24  2t2t7t2t2/19/t4t7t4t/7t1T1t7/6t1t1t1t6/t1t2T7T2t1t/4t4T4t4/3t4T1T4t3/4t2T1T1T2t4/3T2T1TKT1T2T3/=
mini-cross   4v4    2t2/2T2/tTKTt/=
mini-eight   8v4    1t1t1/t1T1t/1TKT1/=
mini-four    4v2    2t2/2T2/t1K1t/=
mini-six     6v2    1t1t1/2T2/t1K1t/=
"""

# Several switches under one word; of two values for one switch the later holds.
BUNDLES = {
    "EDGE": "escape=edge corners=none",
    "COP": "shieldwall=corner exit_fort=yes repetition=defenders_lose",
    "HIST": "EDGE king_sides=2 repetition=defenders_lose",
    "SEA": "EDGE throne=none king_armed=no repetition=defenders_lose",
    "WEAK": "king_sides=2 king_sides_on_throne=2 king_sides_beside_throne=2",
    "HING": "encirclement=off repetition=ignore move_limit=100",
    "CAMPS": "attacker_camps=a4,a5,a6,b5,d1,e1,f1,e2,i4,i5,i6,h5,d9,e9,f9,e8 attacker_camp_enter=none",
    "BASE": "EDGE CAMPS first=d throne_stop=none throne_pass=none throne_hostile_held=all attacker_camp_hostile=all "
    "king_sides=2 encirclement=off",
    "ORG": "shieldwall=corner encirclement=ring repetition=forbidden_to_defenders repetition_count=2 "
    "repetition_compare=board move_limit=134 sealed=org",
    "FORTS": "corners=a1,a2,b1,b2,a18,a19,b18,b19,r1,r2,s1,s2,r18,r19,s18,s19",
    "HERR": "WEAK first=d king_sides_on_throne=0 throne_hostile_empty=none throne_hostile_held=none encirclement=off "
    "repetition=ignore move_limit=150 move_limit_unit=each",
}

# Name, first 16 digits of its hash (records name it: it must stay), layout, switches, aliases.
PRESETS = """
copenhagen              | dac5c446d3806110 | diamond     | COP | hnefatafl
copenhagen-relaxed      | 4675629b5175f8be | diamond     | COP shieldwall_closer=any |
copenhagen-13           | 3544df8405bdccad | gokstad     | COP |
copenhagen-org          | 7e28aa655d7c71f1 | diamond     | ORG exit_fort=yes |
copenhagen-org-13       | c8793dcf35112e68 | gokstad     | ORG exit_fort=yes |
fetlar                  | fd1acb9448f7cc44 | diamond     | king_on_edge=last |
fetlar-2013             | d142ca9d81e0aaa0 | diamond     | encirclement=off no_move=draw |
fetlar-computer         | 6bc739948322ceff | diamond     | repetition=mover_loses | computer-fetlar
hingston-original       | edf4e2cd057c3b01 | diamond     | HING king_on_edge=enclosed | hingston
hingston-original-block | 5aa3ee91a4030e51 | diamond     | HING king_on_edge=enclosed throne_pass=king |
hingston-alternative    | 2707d08efaca5dc3 | diamond     | HING WEAK king_armed=no |
simple-11               | b044182cf8e3627e | diamond     | EDGE throne=none king_sides=2
    repetition=defenders_lose | simple-tafl
historical-lewis        | 566f2aa89654eb7d | lewis       | HIST |
historical-serif        | 0e240934c92d6d68 | serif-11    | HIST |
historical-13           | bd4065da6a62d694 | parlett     | HIST |
historical-15           | 71ae46f3a7a668f3 | coppergate  | HIST |
tawlbwrdd               | 0ecefc06ea3e5e9f | bell        | EDGE throne=none king_sides=2 |
tawlbwrdd-historical    | 275ff755936a371f | bell        | HIST | historical-11
sea-battle-9            | c7a0c67a7282b2e8 | tablut      | SEA | sea-battle
sea-battle-9-circle     | cc9ab4e205ba0ee7 | circle      | SEA |
sea-battle-11           | 0a17d44d7daac8b0 | serif-11    | SEA |
parlett-13              | 6ed05338bf45a164 | parlett     | SEA | sea-battle-13 parlett
berserk                 | c8311ed271e498ec | berserk     | king_jump=restricted berserk=capture
    encirclement=off | berserk-hnefatafl
berserk-opentafl        | f1897eac023a8653 | berserk     | king_jump=restricted berserk=capture
    encirclement=off first=d repetition=mover_wins |
tablut-linnaeus         | 8e1f9d6e71243b09 | tablut      | EDGE throne_stop=none king_sides=2 linnaean=yes
    encirclement=off no_move=draw | tablut
tablut-saami            | 65d93ea6e904d7c6 | tablut      | HIST | historical-9
tablut-bologna          | 10733c6f3fd3af39 | tablut      | BASE camp_soft=a5,e1,i5,e9 capture_all=no
    repetition_count=2 repetition_start=no | ashton-bologna
tablut-ashton           | f082d4a58581391a | tablut      | BASE | ashton
foteviken               | 94a5650f0c1fa8ac | tablut      | EDGE CAMPS throne_stop=none throne_enter=none
    throne_hostile_empty=king throne_hostile_held=none attacker_camp_hostile=king camp_range=kind |
    foteviken-tablut
tablut-brainking        | 9c43d0c86b5af964 | tablut      | EDGE first=d throne_stop=none
    throne_hostile_empty=king throne_hostile_held=none king_armed=no encirclement=off | rachunek
tablut-herr-7           | 22947bbcc4c8d04e | herr        | HERR |
tablut-herr-9           | 28854e931b6211ce | tablut      | HERR |
tablut-herr-7-coded     | a819e7861d68d79a | herr        | HERR capture_run=line no_move=d |
tablut-15               | 870f00e2c1509088 | coppergate  | EDGE throne_stop=none throne_hostile_held=none
    king_sides=2 |
brandubh                | 63d2407c73c83541 | brandubh    | king_sides=2 king_sides_beside_throne=2
    throne_hostile_empty=men repetition=defenders_lose |
brandubh-wtf3           | b7bd7eeb89dda92f | brandubh    | king_sides=2 repetition=defenders_lose |
brandubh-walker         | 59e8f3c8103db854 | brandubh    | WEAK throne_hostile_empty=none
    throne_hostile_held=none encirclement=off | brandub
brandubh-org            | 4756a4b792323988 | brandubh    | ORG first=d king_sides=2
    king_sides_beside_throne=2 throne_hostile_empty=men corner_hostile=men throne_pass=king |
ard-ri                  | ff5fb5234ebca64a | ard-ri      | EDGE throne=none king_sides=2
    repetition=defenders_lose | ardri
ard-ri-hh               | d43d45c93b08cc88 | brandubh    | EDGE throne=none king_sides=2 |
ard-ri-step             | c3d1811871f76b19 | ard-ri      | EDGE speed=all:1 throne_hostile_empty=none
    throne_hostile_held=none encirclement=off |
magpie                  | 9f070c320c5cd616 | brandubh    | king_on_edge=enclosed speed=K:1 encirclement=off |
magpie-b3               | abc3466fd923a122 | ballinderry | king_on_edge=enclosed speed=K:1 encirclement=off
    throne_pass=king |
alea-evangelii          | 7f57c174ca1f9712 | alea        | FORTS throne_stop=none throne_hostile_held=none
    repetition=mover_loses | alea
alea-walker             | 4d710a713ffb30a3 | alea        | FORTS first=d king_on_edge=enclosed
    encirclement=off |
alea-ludii              | 508ff1c2dfd87247 | alea-ludii  | FORTS throne_stop=none king_sides=2 king_armed=no
    encirclement=off |
mini-cross              | b3f12cdc7724e904 | mini-cross  | king_sides=2 |
mini-eight              | e277a798cf73950e | mini-eight  | king_sides=2 |
mini-four               | ca8bcb0f76810018 | mini-four   | king_sides=2 |
mini-six                | 4e191066b5342b07 | mini-six    | king_sides=2 |
mini-edge               | ef23239de228bc0b | mini-eight  | EDGE throne=none king_sides=2 |
"""


def rows_of(text: str) -> list[list[str]]:
    """The cells of a table with a line per row; lines that begin with blanks go on with the row before."""
    lines = text.strip().replace("\n    ", " ").splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def layouts() -> dict[str, tuple[str, list[str]]]:
    """Name to men and rows."""
    found = {}
    for line in LAYOUTS.strip().splitlines():
        name, men, text = line.split()
        rows = text.split("/")
        if rows[-1] == "=":
            rows = rows[:-1] + rows[-3::-1]
        found[name] = (men, rows)
    return found


def switches(text: str) -> dict[str, str]:
    """The switches that a list of words sets, bundles opened."""
    found: dict[str, str] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        found.update({name: value} if equals else switches(BUNDLES[word]))
    return found


STATED = {row[0]: row[1:] for row in rows_of(PRESETS)}
LAYOUT = layouts()


def test_all_of_these_are_shipped() -> None:
    assert variant.names() == ["copenhagen", *sorted(set(variant.names()) - {"copenhagen"})]
    assert set(STATED) <= set(variant.names())


@pytest.mark.parametrize("name", STATED)
def test_a_preset_is_what_it_is_meant_to_be(name: str) -> None:
    found = find(name)
    start, layout, words, aliases = STATED[name]
    men, rows = LAYOUT[layout]
    assert found.rows == "/".join(rows)
    assert f"{found.attackers}v{found.defenders}" == men
    wanted = Variant.build("stated", rows, switches(words)).rules
    assert found.rules.changes() == wanted.changes()
    assert found.hash.startswith(start)
    assert len(start) == 16
    assert list(found.aliases) == aliases.split()
    assert found.startpos == f"{found.rows} {switches(words).get('first', 'a')} 0 1"


def test_what_is_stated_is_stated_once() -> None:
    """Every word of the tables says something: no switch is set to its default, no layout stands there for nobody."""
    for name, (_, _, words, _) in STATED.items():
        assert set(switches(words)) == set(find(name).rules.changes()), name
    assert set(LAYOUT) == {layout for _, layout, _, _ in STATED.values()}


def test_a_bare_family_name_means_its_default() -> None:
    wanted = {
        "hnefatafl": "copenhagen",
        "tablut": "tablut-linnaeus",
        "hingston": "hingston-original",
        "sea-battle": "sea-battle-9",
        "alea": "alea-evangelii",
        "brandub": "brandubh-walker",
        "ashton-bologna": "tablut-bologna",
        "historical-9": "tablut-saami",
        "historical-11": "tawlbwrdd-historical",
        "sea-battle-13": "parlett-13",
        "simple-tafl": "simple-11",
        "rachunek": "tablut-brainking",
    }
    assert {word: find(word).name for word in wanted} == wanted
    for name in ("copenhagen", "fetlar", "brandubh", "tawlbwrdd", "berserk", "ard-ri", "magpie"):
        assert find(name).name == name


def test_every_file_says_where_it_comes_from() -> None:
    for name in variant.names():
        found = find(name)
        assert len(found.source) >= 8, name
        assert found.source.endswith("."), name
        assert found.description.endswith("."), name
        assert len(found.description) <= 130, name
        assert all(word == word.lower() for word in (found.name, *found.aliases))
    assert len({find(name).description for name in variant.names()}) == len(variant.names())


@pytest.mark.parametrize("name", variant.names())
def test_a_preset_can_be_played_and_written_down(name: str) -> None:
    """Twenty random plies; what FEN says of the last position is the position, move for move."""
    game = find(name)
    draw = random.Random(f"presets {name}")
    position = Position.initial(game)
    for _ in range(20):
        if position.outcome is not None:
            break
        position = position.play(draw.choice(position.legal_moves()))
    fen = position.fen()
    again = Position.from_setup(game, parse_fen(fen))
    assert again.fen() == fen
    assert again.pieces() == position.pieces()
    if position.outcome is None and not game.rules.repetition.startswith("forbidden"):
        assert again.legal_moves() == position.legal_moves()


# Leaves, and leaves reached by a capture.
PERFT = [
    ("brandubh-wtf3", (40, 960, 39_512, 1_007_392), (0, 16, 568, 47_104)),
    ("sea-battle-9", (80, 4_400, 353_200), (0, 24, 4_640)),
    ("tawlbwrdd", (136, 7_620), None),
    ("tawlbwrdd-historical", (136, 7_620), None),
]


@pytest.mark.parametrize(("name", "leaves", "captures"), PERFT, ids=[row[0] for row in PERFT])
def test_perft(name: str, leaves: tuple[int, ...], captures: tuple[int, ...] | None) -> None:
    position = Position.initial(find(name))
    found = [perft(position, depth) for depth in range(1, len(leaves) + 1)]
    assert tuple(result.nodes for result in found) == leaves
    if captures is not None:
        assert tuple(result.captures for result in found) == captures


def test_who_begins_in_bologna_matters() -> None:
    game = find("tablut-bologna").with_switches(first="a")
    assert perft(Position.initial(game), 1).nodes == 80


def test_the_smallest_games_are_not_decided_at_once() -> None:
    """They are there to be solved: nobody can be beaten within five plies of their start."""
    from hnefi.engine.search.searcher import Searcher
    from hnefi.engine.search.types import Limits, Settings

    for name in (name for name in variant.names() if name.startswith("mini-")):
        searcher = Searcher(Settings(hash_mib=4))
        searcher.begin()
        scores = []
        searcher.search(
            Position.initial(find(name)), Limits(depth=5), lambda info, to=scores: to.append(info.score)
        )
        assert scores[-1].mate is None, name


@pytest.mark.process
def test_finding_a_variant_stays_quick() -> None:
    """A name costs one file, an alias all of them: fifty small files must not be felt."""
    program = (
        "import time; from hnefi.engine.games.tafl.variant import find; begun = time.process_time(); find('ardri'); "
        "print(time.process_time() - begun)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert float(done.stdout) < 1.0


# The catalogue for people says what the files say.

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "variants.md"


def table_rows(first: str) -> list[list[str]]:
    """The cells of all rows of all tables whose first column has this name."""
    found = []
    inside = False
    for line in DOCUMENT.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[0] == first:
            inside = True
        elif inside and cells and not cells[0].startswith("---"):
            found.append(cells)
        inside = inside and bool(cells)
    return found


def test_the_catalogue_lists_every_preset_once() -> None:
    rows = table_rows("variant")
    listed = [row[0].strip("`") for row in rows]
    assert set(STATED) <= set(listed) <= set(variant.names())
    assert len(set(listed)) == len(listed)
    for name, aliases, board, what in rows:
        found = find(name.strip("`"))
        assert aliases == ", ".join(f"`{alias}`" for alias in found.aliases)
        assert board == f"{found.size} x {found.size}, {found.attackers}:{found.defenders}"
        assert what


def test_the_catalogue_marks_the_defaults() -> None:
    """What a family's bare name selects."""
    marked = {row[0].strip("`") for row in table_rows("variant") if row[3].endswith("default")}
    families = [
        "copenhagen",
        "fetlar",
        "hingston",
        "tawlbwrdd",
        "sea-battle",
        "berserk",
        "tablut",
        "brandubh",
        "ard-ri",
        "magpie",
        "alea",
    ]
    assert marked == {find(family).name for family in families}


def test_the_catalogue_lists_every_switch() -> None:
    rows = table_rows("switch")
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (f"`{switch.name}`", switch.default, switch.meaning) for switch in SWITCHES
    ]
    for row, switch in zip(rows, SWITCHES, strict=True):
        if switch.words:
            assert row[1].split() == list(switch.words)


def test_the_catalogues_own_variant_can_be_played() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    own = variant.parse(text, "docs/variants.md")
    changes = find("copenhagen").rules.changes() | {"draw_fort": "yes"}
    assert (own.rows, own.rules.changes()) == (find("copenhagen").rows, changes)
    assert f"{own.name}.toml" in DOCUMENT.read_text("utf-8")
