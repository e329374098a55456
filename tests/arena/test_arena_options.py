"""The arena's options: one table, flags and TOML, who overrides whom, and sentences for what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hnefi.tools.arena import command, option_reader, options, run
from hnefi.tools.arena.option_reader import from_arguments, read_file, to_toml
from hnefi.tools.arena.options import Config, ConfigError, parse_tc
from hnefi.tools.arena.resolve import named, resolve, specs
from hnefi.tools.arena.values import SideLimits
from hnefi.tools.common.sprt import Sprt


def parse(*words: str) -> Config:
    return from_arguments(words)


def written(folder: Path, text: str) -> str:
    file = folder / "cup.toml"
    file.write_text(text)
    return str(file)


CUP = """
run = { format = "round-robin", variants = ["copenhagen", "brandubh"], pairs = 100, seed = 7 }
each = { nodes = 5000, options = { Hash = 16 } }
limits = { depth = 9, nodes = 1 }
openings = { source = "random", plies = "2-8" }
engine = [
  { player = "default" },
  { name = "mine", cmd = "./mybot", proto = "uci", env = { LEVEL = "3" }, nodes = 20000 },
]
"""


@pytest.fixture
def cup(tmp_path: Path) -> str:
    bot = tmp_path / "mybot"
    bot.write_text("#!/bin/sh\n")
    bot.chmod(0o755)
    return written(tmp_path, CUP)


def test_flags_override_engines_override_each_override_the_file(cup: str) -> None:
    told = parse("--config", cup)
    default, mine = told.engines
    assert (default["nodes"], default["depth"], default["options"]) == (5000, 9, {"Hash": "16"})
    assert (mine["nodes"], mine["depth"], mine["options"]) == (20000, 9, {"Hash": "16"})
    assert (told["run.pairs"], told["run.seed"], told["openings.seed"]) == (100, 7, 7)
    each = parse("--config", cup, "--each", "nodes=30,option.MultiPV=2")
    assert [engine["nodes"] for engine in each.engines] == [30, 20000]
    assert each.engines[0]["options"] == {"Hash": "16", "MultiPV": "2"}
    flag = parse("--config", cup, "--each", "nodes=30", "--nodes", "4", "--pairs", "3")
    assert [engine["nodes"] for engine in flag.engines] == [4, 4]
    assert flag["run.pairs"] == 3


def test_engines_of_the_command_line_replace_those_of_the_file(cup: str) -> None:
    told = parse("default", "--config", cup, "--engine", "player=random-blind,name=x")
    assert told.names == ("default", "x")


def test_engines_keep_the_order_of_the_command_line() -> None:
    one, two, three = (
        "--engine=player=default,name=one",
        "player=random-blind,name=two",
        "player=default,name=three",
    )
    for words, names in (
        ((one, "random-blind"), ("one", "random-blind")),
        (("random-blind", one), ("random-blind", "one")),
        (("--nodes", "5", one, "random-blind", "--engine", two, "default"), ("one", "random-blind", "two", "default")),
        (("default", "--nodes", "5", "random-blind"), ("default", "random-blind")),
        (("default", "--engine", two, one, "--pairs", "3", "random-blind", "--engine", three),
         ("default", "two", "one", "random-blind", "three")),
    ):  # fmt: skip
        told = parse(*words)
        assert told.names == names
        assert told["run.pairs"] in (3, 100)


def test_a_program_named_without_its_key(cup: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(cup).parent)
    for word in ("./mybot", "mybot"):
        with pytest.raises(ConfigError, match=r"expected key=value,... such as cmd=\./mybot$"):
            parse("default", "--engine", word)
        with pytest.raises(ConfigError, match=r"a file: expected a player, or --engine cmd=\./mybot$"):
            parse("default", word)


def test_a_command_that_is_written_wrongly(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["chek", "./mybot"], "'chek': no command and no player (did you mean check?)"),
        (["resum", "cup"], "'resum': no command and no player (did you mean resume?)"),
        (["defalt", "default"], "(did you mean default?)"),
    ):
        assert command.main(words) == 2
        assert said in capsys.readouterr().err


def test_who_goes_on_is_offered_only_what_may_be_different(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["resume", "--help"])
    text = capsys.readouterr().out
    assert "(default" not in text
    offered = {
        option for option in options.TABLE if option.flag and f"{option.flag} " in text.replace("[no-]", "")
    }
    keys = {(option.group, option.key) for option in offered}
    assert {("run", "pairs"), ("sprt", "max_pairs"), ("output", "jsonl"), ("control", "force")} <= keys
    assert not {key for group, key in keys if group == "run"} & {*run.RUN_KEYS, "out"}
    assert {key for group, key in keys if group == "sprt"} == {"max_pairs"}
    for flag in ("--dry-run", "--out=x"):
        assert command.main(["resume", "cup", flag]) == 2
        assert f"'{flag}': expected only when a run begins" in capsys.readouterr().err


def test_paths_of_a_file_are_seen_from_its_folder(cup: str, tmp_path: Path) -> None:
    told = parse("--config", cup)
    assert told.engines[1]["cmd"] == str(tmp_path / "mybot")


def test_the_resolved_configuration_reads_back_as_itself(cup: str, tmp_path: Path) -> None:
    everything = [
        ("--config", cup),
        ("default", "default", "--tc", "40/60+0.6", "--limits-a", "nodes=7", "--sprt", "elo1=20"),
        (
            "default",
            "random-blind",
            "--each",
            "env.A=x\\,y,option.Hash=8",
            "--adjudicate-draw",
            "cp=5,moves=8",
        ),
        ("default", "random-blind", "--no-swap", "--name", 'a "name"\\ with\ttab and \x7f ÄÖ', "--live"),
        (
            "default",
            "random-blind",
            "--adjudicate-oracle",
            "/solved.jsonl",
            "--cross-check",
            "3",
            "--traffic",
            "--rating",
            "anchor.name=default,anchor.elo=100.5",
            "--keep-lines",
            "eval .*",
        ),
    ]
    for words in everything:
        told = parse(*words)
        text = to_toml(told)
        again = resolve(read_file(Path(written(tmp_path, text))), {})
        assert again == told
        assert to_toml(again).splitlines()[-5:] == text.splitlines()[-5:]


def test_what_is_not_limited_at_all_gets_fixed_nodes_and_a_note() -> None:
    told = parse("default", "random-blind")
    assert [engine["nodes"] for engine in told.engines] == [2000, 2000]
    assert told.notes == (
        "no limit was given for 'default', 'random-blind': nodes = 2000 for every move, because fixed nodes repeat",
    )
    assert parse("default", "random-blind", "--depth", "3").notes == ()
    assert "nodes" not in parse("default", "random-blind", "--limits-d", "movetime=5").engines[0]


def test_a_player_with_limits_of_its_own_keeps_them_where_nothing_is_said() -> None:
    told = parse("simple-d3", "brandubh-zero", "--variant", "brandubh", "--inside")
    assert [(engine.get("depth"), engine.get("nodes")) for engine in told.engines] == [(3, None), (None, 200)]
    assert told.notes == ()
    mixed = parse("simple-d3", "default")
    assert [(engine.get("depth"), engine.get("nodes")) for engine in mixed.engines] == [
        (3, None),
        (None, 2000),
    ]
    assert [note.partition(":")[0] for note in mixed.notes] == ["no limit was given for 'default'"]
    assert parse("simple-d3", "default", "--nodes", "50").engines[0].get("depth") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("40/60+0.6", (60_000, 600, 40)),
        ("1+0.01", (1000, 10, 0)),
        ("2:30+1", (150_000, 1000, 0)),
        ("0.5", (500, 0, 0)),
        ("40/1:00", (60_000, 0, 40)),
    ],
)
def test_a_clock(text: str, expected: tuple[int, int, int]) -> None:
    assert parse_tc(text) == expected


@pytest.mark.parametrize(
    "text", ["", "0", "x", "1+", "/1", "0/5", "1:", "-1", "1e3", "99999999999", "1+0.01+2"]
)
def test_no_clock(text: str) -> None:
    with pytest.raises(ValueError, match="expected moves/time"):
        parse_tc(text)


def test_limits_of_a_side_and_margins() -> None:
    told = parse("default", "random-blind", "--tc", "10+0.1", "--limits-a", "nodes=5")
    spec = specs(told)[0]
    assert spec.limits == (SideLimits(10_000, 100, 0, None, None, 5), SideLimits(10_000, 100))
    assert spec.margin == 0
    by_move = specs(parse("default", "random-blind", "--movetime", "20"))[0]
    assert (by_move.margin, by_move.limits[0].movetime) == (50, 20)
    assert specs(parse("default", "default", "--movetime", "20", "--margin", "3"))[0].margin == 3
    slow = specs(told, scale=2.5)[0]
    assert (slow.limits[0].time, slow.limits[0].increment, slow.limits[0].nodes) == (25_000, 250, 5)


def test_a_shipped_player_is_a_process_of_our_own_engine() -> None:
    spec = specs(parse("random-blind", "default"))[0]
    assert spec.command[-3:] == ("hnefi.protocol", "--player", "random-blind")
    assert spec.player == "random-blind"


def test_engines_are_called_by_names_of_their_own() -> None:
    told = parse("default", "default", "--engine", f"cmd={sys.executable}")
    assert told.names == ("default", "default 2", Path(sys.executable).name)
    assert named(told, ("a", "b", "Bot 1\n")).names == ("default", "default 2", "Bot 1")
    assert named(told, ("a", "b", "default")).names == ("default", "default 2", "default 3")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["default", "defalt"], r"player: no player 'defalt' \(did you mean default\?\): expected a name"),
        (["default", "nobody"], r"or a \.toml file; `hnefi engines add` registers a program$"),
        (["default", "nobody.toml"], r"No such file or directory: expected a readable file$"),
        (["default"], "engines: 1 given: expected at least two"),
        (["default", "default", "--pair", "3"], r"'--pair': no such flag \(did you mean --pairs\?\)"),
        (["default", "default", "--output-jsonl", "x"], r"'--output-jsonl': .*did you mean --jsonl\?"),
        (["default", "default", "--plies", "3"], r"'--plies': .*did you mean --openings-plies\?"),
        (["default", "default", "--elo1", "3"], r"'--elo1': .*did you mean --sprt-elo1\?"),
        (
            ["default", "--engine", "default"],
            r"--engine: 'default': expected key=value,... such as player=default$",
        ),
        (["default", "--engine", "mybot"], r"--engine: 'mybot': expected key=value$"),
        (
            ["default", __file__],
            rf"player '{__file__}': a file: expected a player, or --engine cmd={__file__}$",
        ),
        (["default", "default", "--nodes", "-1"], "--nodes '-1': expected a whole number of at least 1"),
        (["default", "default", "--nodes", "9" * 5000], "--nodes '9+…': expected a whole number"),
        (
            ["default", "default", "--format", "cup"],
            "--format 'cup': expected one of match, round-robin, gauntlet",
        ),
        (
            ["default", "default", "--each", "option.Hahs=3"],
            r"option 'Hahs' '3': expected one of .*did you mean hash",
        ),
        (["default", "default", "--each", "option.Hash=0"], "option Hash '0': expected 1 to 65536"),
        (
            ["default", "default", "--each", "nodse=3"],
            r"--each.nodse '3': expected one of .*did you mean nodes\?",
        ),
        (["default", "default", "--each", "nodes"], "--each: 'nodes': expected key=value"),
        (
            ["default", "default", "--each", "limits_a.foo=3"],
            "--each limits_a.foo='3': expected one of tc, movetime",
        ),
        (["default", "default", "--variant", "copenhaagen"], r"'copenhaagen'.*did you mean copenhagen\?"),
        (["default", "default", "--sprt", "elo1=-3"], "sprt.elo0 0: expected less than elo1, -3.0"),
        (["default", "default", "--sprt", "elo0=-1500,elo1=-500"], "sprt.elo0 -1500.0: expected -200 to 200"),
        (["default", "default", "--sprt", "alpha=0.6,beta=0.5"], r"expected alpha \+ beta below 1"),
        (["default", "default", "--sprt-alpha", "0"], "--sprt-alpha '0': expected a number between 0 and 1"),
        (["default", "default", "default", "--sprt"], "sprt: 3 engines given: expected two"),
        (["default", "default", "default", "--format", "match"], "'match': 3 engines given: expected two"),
        (
            ["default", "default", "--openings-source", "file"],
            "openings.file None: expected a file if",
        ),
        (
            ["default", "default", "--format", "gauntlet", "--challengers", "2"],
            "expected fewer than the 2 engines",
        ),
        (["default", "default", "--keep-lines", "("], r"--keep-lines '\(': expected a regular expression"),
        (["default", "--engine", "cmd=./no-such"], "cmd '.*no-such': no such file"),
        (["default", "--engine", f"cmd={__file__}"], "the file is not executable"),
        (["default", "--engine", "cmd=no-such-program"], "expected a program on the search path"),
        (["default", "--engine", "cmd=sh,player=default"], "expected player or cmd, one of them"),
        (["--engine", "player=default,name=x", "--engine", "player=default,name=x"], "'x': given 2 times"),
        (["default", "default", "--rules", "dim:x"], "run.rules 'dim:x': "),
        (
            ["default", "default", "--openings-eval-by", "defalt"],
            r"openings.eval_by: no player 'defalt' \(did you mean default\?\)",
        ),
        (["default", "default", "--log", "loud"], "--log 'loud': expected one of off, error, warning"),
        (["default", "default", "--cross-check", "0"], "--cross-check '0': expected a whole number"),
        (["default", "default", "--traffic", "--backend", "loky"], "output.traffic: expected no backend"),
        (
            ["default", "default", "--rating", "anchor.name=x,anchor.elo=1"],
            "rating.anchor .*expected elo and the name",
        ),
        (["default", "default", "--config", "/no/such.toml"], "/no/such.toml: No such file"),
    ],
)
def test_errors_name_key_value_and_what_is_meant(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(*words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run = { pears = 3 }", r"run.pears 3: expected one of .*did you mean pairs\?"),
        ("run = { nodes = 3 }", r"run.nodes 3: .*did you mean nodes in \[limits\]\?"),
        ("nodes = 3", r"nodes 3: expected one of .*did you mean nodes in \[limits\]\?"),
        ("run = { pairs = true }", "run.pairs True: expected a whole number"),
        ("run = { pairs = '3' }", "run.pairs '3': expected a whole number"),
        ("run = 3", "run: 3: expected a table"),
        ("engine = [3]", "engine 1: 3: expected a table"),
        ("engine = {}", "engine {}: expected a list of tables"),
        ("each = { options = { Hash = [1] } }", r"each.options .*Hash \[1\]: expected text, a number"),
        ("sprt = { alpha = nan }", "sprt.alpha nan: expected a number"),
        ("each = { name = 'x' }", "each.name 'x': expected a name in each engine's own table"),
        ("run = {", "not TOML"),
        ("a = " + "[" * 5000, "not TOML"),
    ],
)
def test_errors_in_a_file_name_it(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        parse("default", "default", "--config", file)
    assert file in str(caught.value) or message.startswith("each.name")


def test_every_option_is_in_the_help() -> None:
    text = option_reader.parser().format_help()
    for option in options.TABLE:
        assert not option.flag or option.flag in text.replace("--[no-]", "--")
        assert option.key.replace("_", "-") in text.replace("_", "-")
    assert "examples:" in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.process
def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from hnefi.tools.arena import command; command.main(['default', 'default', '--dry-run', '--pairs',"
        " '2', '--openings-source', 'start', '--openings-repeat', '2']);"
        " heavy = {'numpy', 'numba', 'asyncio', 'joblib'} & set(sys.modules); print(sorted(heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] in ("[]", "['asyncio']")
    helped = "import sys; from hnefi.tools.arena import option_reader; option_reader.parser().format_help()"
    helped += "; print(len(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", helped], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) < 150


def test_a_test_is_corrected_only_if_that_is_asked_for() -> None:
    for flag, expected in (("--sprt-siegmund", True), ("--sprt", False)):
        assert parse("default", "default", flag).test == Sprt(siegmund=expected)


def test_a_command_line_is_a_program_and_its_arguments(tmp_path: Path) -> None:
    program = tmp_path / "my bot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    engines = [{"cmd": "sh -c 'a b' --wrap ./x", "args": ["last"]}, {"cmd": str(program)}]
    wrapped, whole = resolve({"engine": engines}, {}).engines
    assert (wrapped["cmd"], wrapped["args"]) == ("sh", ["-c", "a b", "--wrap", "./x", "last"])
    assert (whole["cmd"], whole["args"]) == (str(program), [])
    (tmp_path / "cup.toml").write_text('engine = [{ cmd = "sh -c ./x" }, { cmd = "./mybot --fast" }]\n')
    (tmp_path / "mybot").write_text("#!/bin/sh\n")
    (tmp_path / "mybot").chmod(0o755)
    first, second = parse("--config", str(tmp_path / "cup.toml")).engines
    assert (first["cmd"], first["args"]) == ("sh", ["-c", "./x"])
    assert (second["cmd"], second["args"]) == (str(tmp_path / "mybot"), ["--fast"])
    with pytest.raises(ConfigError, match="No closing quotation: expected a program and its arguments"):
        resolve({"engine": [{"cmd": "sh 'x"}, {"player": "simple"}]}, {})
