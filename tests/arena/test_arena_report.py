"""Tables of a run: what they say, how wide they are, and that the summary has every number."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import fake_arena
import pytest
from arena_results import counts_of, facts, game, new_run, pairs, summary

from hnefi.protocol.hosts import text_table
from hnefi.tools.arena import report_command
from hnefi.tools.arena.report import block, final, standings
from hnefi.tools.arena.run import load_openings
from hnefi.tools.arena.store import Store, StoreError
from hnefi.tools.arena.summary import Advisory, State, document, limits_text, summarize
from hnefi.tools.arena.values import EngineSpec, Fault, GameResult, SideLimits
from hnefi.tools.common.rating import Model
from hnefi.tools.common.sprt import Sprt

MIXED = "aa ad ad dd da == a= =d ad aa ad a."
CRASH = Fault(1, "crash", "exit code 3")

HOSTILE = (
    "mine",
    "a" * 300,
    "日本語の名前" * 20,
    "x\x1b[31m\r\nevil\u202e\u2028",
    "é\u0301\ud800 $x$ %s {0}",
)


def tournament(names: tuple[str, ...] = HOSTILE, rounds: int = 2) -> Iterator[GameResult]:
    """Everybody meets everybody in two variants; some games are lost by faults."""
    number = 0
    for turn in range(rounds):
        for engines in combinations(range(len(names)), 2):
            number += 1
            variant = ("brandubh", "tablut")[turn % 2]
            winners = (("a", "d"), ("a", "a"), ("draw", "d"), ("d", "a"))[number % 4]
            yield game(number, 1, winners[0], names, engines, variant=variant, plies=number + 10)  # type: ignore[arg-type]
            fault = CRASH if number % 5 == 0 else None
            winner = "a" if fault else winners[1]
            yield game(number, 2, winner, names, engines, variant=variant, plies=40 - number, fault=fault)  # type: ignore[arg-type]


def shown(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def test_the_block_of_two_engines() -> None:
    assert (
        shown(block(summary(pairs(MIXED), test=Sprt(0, 10))))
        == """\
cup: mine – simple · match
brandubh · nodes 2000 · openings random, 2-8 plies · seed 7 · 2 slots
pairs 11/400 · games 23 · 1 game of open pairs
Elo        +132.40 ± 157.49
nElo       +147.31 ± 145.18
LOS        97.66 %
score      68.18 % ± 17.92
games      +14 =4 -5 of 23 games
pairs      [1, 0, 3|1, 2, 4]  LL, LD, same side|DD, WD, WW
matches    6 won, 4 drawn, 1 lost; 0.0 % decided by captures
attackers  56.5 % (36.8-74.4) of 23 games
test       normalized [0, 10], alpha 0.05, beta 0.05
LLR        +0.2139, 7 % of H1; bounds -2.9444 and +2.9444
faults     0
lateness   0.1 ms at most
"""
    )


def test_the_final_tables_of_two_engines() -> None:
    games = [
        *pairs("aa ad ad dd == ad a= ad"),
        game(9, 1, "a", fault=CRASH, plies=7),
        game(9, 2, "d", captured=(1, 4)),
    ]
    state = State(
        "complete",
        surplus=3,
        withdrawn=(("simple", "9.1"),),
        forced=("seed: was '1', is '2'",),
        advisories=(Advisory("mine", "pv", "3.1", "mine: pv a1a2: no such move (ply 7)"),),
    )
    assert (
        shown(final(summary(games, state, test=Sprt(0, 10))))
        == """\
cup: mine – simple · match
brandubh · nodes 2000 · openings random, 2-8 plies · seed 7 · 2 slots
pairs 9/400 · games 18
Elo        +246.92 ± 209.74
nElo       +327.72 ± 160.50
LOS        100.00 %
score      80.56 % ± 14.97
games      +13 =3 -2 of 18 games
pairs      [0, 0, 2|1, 1, 5]  LL, LD, same side|DD, WD, WW
matches    6 won, 3 drawn, 0 lost; 0.0 % decided by captures
attackers  52.8 % (31.3-73.2) of 18 games
test       normalized [0, 10], alpha 0.05, beta 0.05
LLR        +0.2795, 9 % of H1; bounds -2.9444 and +2.9444
faults     1: simple (crash 1)
lateness   0.1 ms at most

#  engine  rating     ±    nElo      ±  games  score%  draw%  att.%  def.%
1  mine    +114.4  87.8  +327.7  160.5     18    80.6   16.7   83.3   77.8
2  simple  -114.4  87.8  -327.7  160.5     18    19.4   16.7   22.2   16.7

#  pairs   LL  LD  same  DD  WD  WW  match+  =  -  capt.%
1  mine     0   0     2   1   1   5       6  3  0     0.0
2  simple   5   1     2   1   0   0       0  3  6     0.0

#  points against       1        2
1  mine                 ·  14.5/18
2  simple          3.5/18        ·

#  faults  crashes  stalls  disconnects  time losses  illegal
1  mine          0       0            0            0        0
2  simple        1       0            0            0        0

attackers in  games  won  drawn  lost  score%       95 %   side      ±  plies
brandubh         18    8      3     7    52.8  31.3-73.2  +22.3  139.6   27.7

attackers won 8: king captured 7, crash 1
defenders won 7: king escaped 7
drawn 3: repetition 3

shortest game 9.1: 7 plies
longest game 8.2: 38 plies

3 games beyond what counts are kept
simple was withdrawn after its faults up to game 9.1
continued despite a difference: seed: was '1', is '2'
game 3.1, mine: pv a1a2: no such move (ply 7)

inconclusive: LLR 0.28 within [-2.94, 2.94] of the test [0, 10] after 9 pairs
"""
    )


def test_a_tournament() -> None:
    names = ("mine", "simple", "hingston-original")
    assert (
        shown(
            final(
                summary(
                    tournament(names, 4),
                    engines=names,
                    format="round-robin",
                    pairs=12,
                    variants=("brandubh", "tablut"),
                )
            )
        )
        == """\
cup: 3 engines · round-robin
brandubh, tablut · nodes 2000 · openings random, 2-8 plies · seed 7 · 2 slots
pairs 12/12 · games 24

#  engine             rating      ±   nElo      ±  games  score%  draw%  att.%  def.%
1  simple              +27.6  127.8  +41.5  170.2     16    56.2   12.5   68.8   43.8
2  mine                 +0.1  132.3   +0.0  170.2     16    50.0   12.5   62.5   37.5
3  hingston-original   -27.7  121.8  -41.5  170.2     16    43.8   12.5   50.0   37.5

#  pairs              LL  LD  same  DD  WD  WW  match+  =  -  capt.%
1  simple              2   0     2   0   2   2       4  2  2     0.0
2  mine                2   1     2   0   1   2       3  2  3     0.0
3  hingston-original   2   2     2   0   0   2       2  2  4     0.0

#  points against         1      2      3
1  simple                 ·  4.5/8  4.5/8
2  mine               3.5/8      ·  4.5/8
3  hingston-original  3.5/8  3.5/8      ·

#  faults             crashes  stalls  disconnects  time losses  illegal
1  simple                   0       0            0            0        0
2  mine                     2       0            0            0        0
3  hingston-original        0       0            0            0        0

attackers in  games  won  drawn  lost  score%       95 %   side      ±  plies
brandubh         12    7      1     4    62.5  35.4-83.5  +71.1  163.1   25.0
tablut           12    6      2     4    58.3  32.0-80.7  +47.1  160.4   25.0
all              24   13      3     8    60.4  40.8-77.2      –      –   25.0

brandubh: attackers won 7: king captured 7
brandubh: defenders won 4: king escaped 4
brandubh: drawn 1: repetition 1
tablut: attackers won 6: king captured 4, crash 2
tablut: defenders won 4: king escaped 4
tablut: drawn 2: repetition 2

shortest game 1.1: 11 plies
longest game 1.2: 39 plies

attackers  60.4 % (40.8-77.2) of 24 games
faults     2: mine (crash 2)
lateness   0.1 ms at most
"""
    )


@pytest.mark.parametrize(
    ("games", "expected"),
    [
        ("", ["score      undefined: no pairs", "games      +0 =0 -0 of 0 games", "attackers  no games"]),
        ("", ["matches    none", "faults     0"]),
        ("a.", ["games      +1 =0 -0 of 1 game", "attackers  100.0 % (20.7-100.0) of 1 game"]),
        ("ad", ["Elo        undefined: fewer than two pairs", "score      100.00 %"]),
        (
            "ad " * 5,
            ["Elo        +inf, at least +34.4 (95 %, one-sided)", "nElo       undefined: all pairs ended alike"],
        ),
        ("da " * 5, ["Elo        -inf, at most -34.4 (95 %, one-sided)", "LOS        0.00 %"]),
        ("== " * 5, ["Elo        +0.00 ± 0.00", "nElo       undefined: all pairs ended alike", "LOS        50.00 %"]),
    ],
)  # fmt: skip
def test_edges(games: str, expected: list[str]) -> None:
    for fit in (False, True):
        lines = final(summary(pairs(games), fit=fit))
        assert [line for line in expected if line not in lines] == []
        assert not [line for line in lines if "nan" in line]
        json.dumps(document(summary(pairs(games), fit=fit)), allow_nan=False)


def test_without_swapped_sides_games_are_counted() -> None:
    lines = final(
        summary([game(n, 1, "a" if n % 3 else "d", plies=20 + n) for n in range(1, 10)], swap=False, pairs=20)
    )
    assert lines[2] == "games 9/20"
    assert "games      +6 =0 -3 of 9 games" in lines
    assert any(line.startswith("Elo        +120.41 ± ") for line in lines)
    assert not [line for line in lines if line.startswith(("pairs", "matches", "#  pairs"))]


def test_captures_that_decide_matches_are_told() -> None:
    games = [game(1, 1, "a", captured=(5, 1)), game(1, 2, "a", captured=(2, 3)), *pairs("da")]
    assert any(
        "1 won, 0 drawn, 0 lost; 100.0 % decided by captures" in line for line in block(summary(games))
    )


def test_repeated_pairs_and_repeated_results_count_once() -> None:
    first = [game(1, 1, "a"), game(1, 2, "d")]
    again = [replace(result, task=replace(result.task, pair=2)) for result in first]
    found = summary([*first, *again, *first])
    assert (found.pairs, found.games, found.duplicates) == (1, 2, 1)
    assert block(found)[2] == "pairs 1/400 · games 2 · 1 repeated pair left out"


def test_late_arenas_are_told() -> None:
    assert block(summary([game(1, 1, "a", lateness=7.26)]))[-1] == (
        "lateness   7.3 ms at most: 5 ms and more may have cost somebody a game on time"
    )


def test_a_finished_test_ends_in_a_sentence() -> None:
    assert final(summary(pairs("ad ad a= " * 60), test=Sprt(0, 100)))[-1] == (
        "H1 accepted: mine is stronger than simple by the test [0, 100] after 11 pairs"
    )


def test_engines_that_never_met_have_tables_of_their_own() -> None:
    names = ("a1", "a2", "b1", "b2")
    games = [
        *pairs("ad ad aa", names=names),
        *[game(n, g, "a", names, (2, 3)) for n in (7, 8) for g in (1, 2)],
    ]  # type: ignore[arg-type]
    lines = final(summary(games, engines=names))
    assert sum(line.startswith("#  engine") for line in lines) == 2
    assert "Engines of different tables never met: their numbers cannot be compared." in lines


def test_an_anchor_that_has_not_played_holds_nothing() -> None:
    names = ("mine", "simple", "late")
    model = Model(anchor=("late", 1500.0), bootstrap=0)
    assert summary(pairs("ad ad"), engines=names, model=model).engine("mine").rating is not None
    held = (
        summary(pairs("ad ad"), model=Model(anchor=("simple", 1500.0), bootstrap=0)).engine("simple").rating
    )
    assert held is not None
    assert held.value == pytest.approx(1500)


def test_on_a_narrow_terminal_names_stay_whole_and_figures_for_experts_give_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("mine", "simple", "hingston-original")
    engines = summary(tournament(names), engines=names, pairs=12, variants=("brandubh", "tablut")).engines
    monkeypatch.setenv("COLUMNS", "80")
    head, *rows = standings(engines)
    assert head.split() == [
        "#",
        "engine",
        "rating",
        "±",
        "nElo",
        "games",
        "score%",
        "draw%",
        "att.%",
        "def.%",
    ]
    assert {row.split()[1] for row in rows} == set(names)
    assert "nElo" not in standings(engines, 72)[0]
    for room in (60, 70, 79):
        assert max(map(len, standings(engines, room))) <= room


# What holds for every table


def hostile() -> list[str]:
    about = {"name": "n\x07" * 90, "limits": "l" * 200, "openings": "o\x1b" * 90, "command": "c"}
    found = tournament()
    state = State("faults", "0" * 64, 2, ((HOSTILE[3], "3.1"),), ("x\n" * 200,))
    known = summary(
        found, state, engines=HOSTILE, pairs=10, variants=("brandubh", "tablut", "v\x00" * 50), **about
    )
    duel = summary(pairs(MIXED, names=HOSTILE[2:4]), engines=HOSTILE[2:4], test=Sprt(0, 10), **about)
    return [*final(known), *block(known), *final(duel), *block(duel)]


def test_lines_fit_into_80_columns_and_have_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for line in hostile():
        assert text_table.width(line) <= 80, line
        assert not [sign for sign in line if unicodedata.category(sign)[0] == "C"], repr(line)
        assert not re.search("[\u2028\u2029]", line)


def numbers_in(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, (int, float)):
        yield float(value)
    elif isinstance(value, str):
        yield from (float(number) for number in re.findall(r"\d+(?:\.\d+)?", value))


def test_every_number_of_the_tables_is_in_the_summary() -> None:
    names = ("mine", "simple", "third")
    for known in (
        summary(tournament(names, 4), engines=names, pairs=12, variants=("brandubh", "tablut")),
        summary(pairs(MIXED), test=Sprt(0, 10)),
    ):
        have = set()
        for number in numbers_in(json.loads(json.dumps(document(known)))):
            have |= {f"{abs(scale * number):.{digits}f}" for scale in (1, 100) for digits in (0, 1, 2, 4)}
        points = {f"{m.record.wins + m.record.draws / 2:g}" for m in known.meetings}
        draws = {f"{100 * line.record.draws / line.record.games:.1f}" for line in known.engines}
        said = {"80", "95", "2", "8", "0", "5"} | points | draws
        for line in final(known):
            missing = [
                number
                for number in re.findall(r"\d+(?:\.\d+)?", line.replace(",", ""))
                if number not in have | said
            ]
            assert not missing, (line, missing)


def test_the_document_has_counts_nulls_and_a_schema() -> None:
    found = document(summary(pairs("ad ad ad")))
    assert found["schema"] == 1
    engine = found["engines"][0]
    assert engine["record"] == {
        "wins": 6, "draws": 0, "losses": 0, "games": 6, "score": 1.0, "score_low": pytest.approx(0.6097, abs=1e-4),
        "score_high": 1.0,
    }  # fmt: skip
    assert engine["pairs"] == {"LL": 0, "LD": 0, "WL": 0, "DD": 0, "WD": 0, "WW": 3}
    assert (engine["strength"]["elo"], engine["strength"]["nelo"], found["test"]) == (None, None, None)
    assert engine["faults"] == {"crash": 0, "stall": 0, "disconnect": 0, "time": 0, "illegal_move": 0}


def test_the_document_is_described() -> None:
    text = (Path(__file__).parents[2] / "docs" / "arena-output.md").read_text(encoding="utf-8")

    def keys(value: object) -> Iterator[str]:
        for key, item in value.items() if isinstance(value, dict) else ():
            yield key
            yield from keys(item)
        for item in value if isinstance(value, list) else ():
            yield from keys(item)

    told = document(summary(pairs(MIXED), test=Sprt(0, 10)))
    # Values of their own: the test's hypotheses, the model of the fit, reasons.
    told["facts"]["test"] = told["facts"]["model"] = told["test"]["test"] = None
    for line in (*told["variants"], told["total"]):
        line["reasons"] = {}
    for line in told["engines"]:
        line["faults"] = {}
    assert {key for key in keys(told) if f"`{key}`" not in text} == set()


def test_order_of_games_makes_no_difference() -> None:
    games = list(tournament())
    one = document(summarize(facts(engines=HOSTILE), counts_of(games)))
    other = document(summarize(facts(engines=HOSTILE), counts_of(reversed(games))))
    assert one == other


def test_limits_in_words() -> None:
    tc = SideLimits(time=60_000, increment=600, moves=40, depth=9)
    nodes = SideLimits(nodes=2000)
    same = [EngineSpec("A", (), limits=(nodes, nodes)), EngineSpec("B", (), limits=(nodes, nodes))]
    assert limits_text(same) == "nodes 2000"
    unlike = [*same[:1], EngineSpec("B", (), limits=(tc, SideLimits(movetime=100)))]
    assert limits_text(unlike) == "A nodes 2000; B tc 40/60+0.6, depth 9 attacking, 100 ms a move defending"


# Columns


@pytest.mark.parametrize(
    ("text", "columns_", "expected"),
    [
        ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本語", 6, "日本語"), ("日本語", 4, "日…"),
        ("a\tb\x00", 9, "a?b?"),
    ],
)  # fmt: skip
def test_clip(text: str, columns_: int, expected: str) -> None:
    assert text_table.clip(text, columns_) == expected
    assert text_table.width(text_table.pad(text, columns_)) == columns_


def test_streams_without_our_signs_get_plain_ones() -> None:
    assert text_table.encodable("a – b · ±3 é", "ascii") == "a - b | +-3 ?"
    assert text_table.encodable("a – b · ±3 é", "utf-8") == "a – b · ±3 é"
    assert text_table.encodable("a – b", "no such encoding") == "a - b"
    assert text_table.encodable("a – b", None) == "a – b"


# From a folder


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A stored run of two players, six pairs, all played."""
    return stored(tmp_path / "my run", 6)


def stored(folder: Path, count: int, **flags: object) -> Path:
    settings = fake_arena.config(pairs=count, rating__bootstrap=20, **flags)
    ready = fake_arena.prepared(settings)
    with new_run(folder, ready) as store:
        tasks = ready.schedule.all_tasks(ready.openings)
        store.append(
            [fake_arena.result(task, settings.names, "crash" if task.id == "2.1" else "") for task in tasks]
        )
    return folder


def test_report_of_a_folder(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_command.main_report([str(run_folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("my run: random-blind – random-blind")
    assert lines[2] == "pairs 6/6 · games 12"
    assert report_command.main_report([str(run_folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["games"], found["faults"], found["state"]["ending"]) == (12, 1, "complete")
    assert len(found["state"]["digest"]) == 64


def test_records_that_cannot_be_written(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_folder.parent / "plain").write_text("")
    beyond = run_folder.parent / "plain" / "games.tafl"
    assert report_command.main_report([str(run_folder), "--records", str(beyond)]) == 4
    assert f"{beyond}: Not a directory: expected a file that can be written" in capsys.readouterr().err


def test_openings_that_name_no_variant(run_folder: Path) -> None:
    file = run_folder / "openings.jsonl"
    file.write_text(file.read_text().replace("brandubh", "brbndubh", 1))
    with (
        Store.read(run_folder) as opened,
        pytest.raises(StoreError, match=r"openings.jsonl: 'brbndubh': expected the name"),
    ):
        load_openings(opened)


def test_one_game_of_a_folder(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_command.main_report([str(run_folder), "--game", "9.9"]) == 2
    assert capsys.readouterr().err == (
        "hnefi arena report: game '9.9': expected the id of a game of this run, such as 17.2\n"
    )


@pytest.mark.parametrize("words", [["/nowhere"], ["/"]])
def test_what_is_no_run(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for command in (report_command.main_report, report_command.main_rate):
        assert command(words) == 2
        assert "expected the folder of a run" in capsys.readouterr().err


def test_runs_are_rated_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = stored(tmp_path / "one", 4), stored(tmp_path / "two", 5, seed=9)
    assert report_command.main_rate([str(one), str(two), str(one), "--json", "--bootstrap", "5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["games"], found["facts"]["pairs"], found["facts"]["name"]) == (18, 9, "one + two")
    name = found["facts"]["engines"][1]
    assert report_command.main_rate([str(one), "--anchor", f"{name}=1500", "--json", "--bootstrap", "0"]) == 0
    engines = {line["name"]: line for line in json.loads(capsys.readouterr().out)["engines"]}
    assert engines[name]["rating"]["value"] == pytest.approx(1500)
    assert report_command.main_rate([str(one), "--anchor", "nobody=1"]) == 2
    assert "anchor 'nobody': expected one of" in capsys.readouterr().err
    assert report_command.main_rate([str(one), "--anchor", f"{name}=many"]) == 2
    assert "expected NAME=ELO" in capsys.readouterr().err


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for command, flags in (
        (report_command.main_report, ("--json", "--records", "--plots")),
        (report_command.main_rate, ("--anchor",)),
    ):
        with pytest.raises(SystemExit) as ended:
            command(["--help"])
        text = capsys.readouterr().out
        assert ended.value.code == 0
        assert all(flag in text for flag in flags)
