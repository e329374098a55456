"""Games inside of the arena's process: the same games as with engine processes, and what cannot be played so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hnefi.engine.catalogue import FOLDER
from hnefi.engine.evaluators import NETWORKS
from hnefi.tools.arena import command, run, schedule
from hnefi.tools.arena.options import ConfigError
from hnefi.tools.arena.report import Stored
from hnefi.tools.arena.resolve import resolve
from hnefi.tools.arena.schedule import Schedule
from hnefi.tools.arena.store import run_digest

ENGINES = [
    {"player": "random-blind", "nodes": 1},
    # Its own limit is the one that counts.
    {"player": "simple", "nodes": 1_000_000},
    {"player": "default", "name": "level", "nodes": 300, "options": {"SkillLevel": "3", "Hash": "1"}},
]


def played(folder: Path, name: str, **run_options: object) -> str:
    """The digest of a short run."""
    config = resolve(
        {
            "run": {
                "variants": ["brandubh"],
                "pairs": 1,
                "seed": 5,
                "concurrency": 1,
                "out": str(folder / name),
                **run_options,
            },
            "openings": {"plies": "2-4"},
            "adjudicate": {"max_plies": 50},
            "output": {"quiet": True, "plain": True},
            "engine": ENGINES,
        },
        {},
    )
    assert command.play(config) == 0
    return run_digest(Stored(folder / name).progress.counted)


@pytest.mark.process
def test_the_same_games_as_with_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digest = played(tmp_path, "processes")
    assert played(tmp_path, "inside", inside=True) == digest
    assert played(tmp_path, "two", inside=True, concurrency=2) == digest
    assert digest in capsys.readouterr().out
    one, two = (list(Stored(tmp_path / name).games()) for name in ("processes", "inside"))
    for with_processes, inside in zip(one, two, strict=True):
        assert inside.ids == with_processes.ids
        assert inside.captured == with_processes.captured
        assert inside.final == with_processes.final
        assert inside.rules_hash == with_processes.rules_hash
        told = [(ply.captures, ply.cp, ply.mate, ply.depth, ply.nodes) for ply in inside.plies]
        assert told == [
            (ply.captures, ply.cp, ply.mate, ply.depth, ply.nodes) for ply in with_processes.plies
        ]


@pytest.mark.process
def test_another_seed_gives_other_games(tmp_path: Path) -> None:
    assert played(tmp_path, "one", inside=True) != played(tmp_path, "two", inside=True, seed=6)


@pytest.mark.parametrize(
    ("engine", "tables", "said"),
    [
        (
            {"cmd": "/bin/true", "name": "other", "nodes": 1},
            {},
            "engine 'other' is a program: expected players only",
        ),
        (
            {"player": "simple", "movetime": 10},
            {},
            "engine 'simple': movetime: expected fixed nodes or depth",
        ),
        (
            {"player": "simple", "depth": 1, "limits_a": {"tc": "1+1"}},
            {},
            "tc: expected fixed nodes or depth",
        ),
        ({"player": "simple", "depth": 1, "init": ["x"]}, {}, "init: expected only with engine processes"),
        (
            {"player": "simple", "depth": 1},
            {"output": {"traffic": True}},
            "output.traffic: expected only with engine",
        ),
        (
            {"player": "simple", "depth": 1},
            {"control": {"cross_check": "final"}},
            "control.cross_check: expected only",
        ),
    ],
)
def test_what_cannot_be_played_inside(
    engine: dict[str, object], tables: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        resolve({"run": {"inside": True}, "engine": [ENGINES[0], engine], **tables}, {})
    assert said in str(refused.value)


def test_options_are_judged_before_the_first_game() -> None:
    engines = [ENGINES[0], {"player": "simple", "depth": 1, "options": {"TablePath": "nothing"}}]
    config = resolve({"run": {"inside": True}, "engine": engines}, {})
    with pytest.raises(ConfigError, match="simple: setoption TablePath: nothing: "):
        run.prepare(config)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"Evaluator": "net-brandubh-2"}, "net-brandubh-2: made for brandubh"),
        ({"evaluator": "net.safetensors"}, "net.safetensors: No such file or directory"),
        ({"Evaluator": "net-magpie-1", "evaluator": "default"}, "net-magpie-1: made for magpie"),
        ({"Player": "net-brandubh-2"}, "net-brandubh-2: made for brandubh"),
        ({"Evaluator": "nobody's"}, 'option Evaluator "nobody\'s": expected a file'),
    ],
)
def test_an_evaluator_of_other_rules_is_refused(inside: bool, options: dict[str, str], said: str) -> None:
    engines = [ENGINES[0], {"player": "default", "name": "other", "options": options}]
    one = {"inside": inside, "variants": ["brandubh", "tablut-linnaeus"]}
    with pytest.raises(
        ConfigError, match=r"run.variants '(brandubh|tablut-linnaeus)': engine 'other'"
    ) as refused:
        resolve({"run": one, "engine": engines}, {})
    assert said in str(refused.value)


def test_a_file_is_looked_for_where_the_engine_runs(tmp_path: Path) -> None:
    shutil.copy(NETWORKS["net-brandubh-2"], tmp_path / "net.safetensors")
    other = {"player": "default", "options": {"Evaluator": "net.safetensors"}, "cwd": str(tmp_path)}
    resolve({"run": {"variants": ["brandubh"]}, "engine": [ENGINES[0], other]}, {})


# The format "ladder"


def test_neighbours_first_and_oftener() -> None:
    config = resolve(
        {
            "run": {"format": "ladder", "pairs": 3, "others": 1, "variants": ["brandubh", "tablut-linnaeus"]},
            "engine": [{"player": "simple", "name": name, "depth": 1} for name in "ABCD"],
        },
        {},
    )
    plan = schedule.make(config)
    pairs = [plan.pair(number) for number in range(1, len(plan) + 1)]
    assert [pair.number for pair in pairs] == list(range(1, len(plan) + 1))
    assert (
        len({(pair.engines, pair.variant, pair.opening) for pair in pairs}) == len(pairs) == (6 + 3 + 3) * 2
    )
    for one in range(4):
        for two in range(one + 1, 4):
            met = [pair for pair in pairs if pair.engines == (one, two)]
            expected = [0, 1, 2] if two == one + 1 else [0]
            for variant in plan.variants:
                assert [pair.opening for pair in met if pair.variant == variant] == expected
    assert plan.openings == 3
    with pytest.raises(IndexError):
        plan.pair(len(plan) + 1)


def test_more_pairs_of_neighbours_only_append() -> None:
    meetings = schedule.meetings("ladder", 4)
    assert meetings == ((0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3))
    short = Schedule(meetings, ("v",), rounds=3, seed=1, often=3, seldom=2)
    long = Schedule(meetings, ("v",), rounds=9, seed=1, often=3, seldom=2)
    assert len(short) == 6 + 6 + 3
    assert [short.pair(number) for number in range(1, 16)] == [long.pair(number) for number in range(1, 16)]


def test_more_pairs_of_others_than_of_neighbours_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"run.others 5: expected at most the 4 pairs of neighbours"):
        resolve({"run": {"format": "ladder", "pairs": 4, "others": 5}, "engine": ENGINES}, {})


@pytest.mark.process
def test_games_inside_may_be_by_own_rules(tmp_path: Path) -> None:
    text = Path(FOLDER, "brandubh.toml").read_text().replace('name = "brandubh"', 'name = "mine"')
    (tmp_path / "mine.toml").write_text(text)
    file = str(tmp_path / "mine.toml")
    assert played(tmp_path, "own", variants=[file], inside=True)
    table = {"variants": [file], "inside": False}
    with pytest.raises(ConfigError, match="expected a variant"):
        resolve({"run": table, "engine": ENGINES}, {})
