"""One word for a thing: old spellings work and say what is new, and no command has a word of its own for what others
call otherwise."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hnefi.protocol import flags as flags_module
from hnefi.protocol.flags import Parser
from hnefi.tools.analyze import command as analyze
from hnefi.tools.arena import option_reader
from hnefi.tools.balance import command as balance
from hnefi.tools.bench import arena as bench_arena
from hnefi.tools.common import arguments
from hnefi.tools.evolve import command as evolve
from hnefi.tools.ladder import command as ladder

ROOT = Path(__file__).resolve().parents[2]
HELPS = (
    "analyze", "arena", "arena resume", "arena openings", "arena report", "arena check", "balance", "balance resume",
    "balance report", "bench arena", "bench mcts", "bench oneply", "bench random", "bench scale", "bench search",
    "bench speed", "convert", "evaluator match", "evaluator verify", "evolve es", "evolve cma", "evolve rank",
    "evolve curves", "evolve compare", "evolve resume", "experiments", "arena rate", "ladder show",
    "ladder place", "ladder run", "ladder report", "ladder publish", "ladder games",
    "book build", "book show", "completion", "engines", "engines add", "engines check",
    "perft", "play", "players", "puzzle", "puzzle make", "rules",
    "solve", "solve agreement", "solve layouts", "solve puzzles",
    "solve prove", "solve query", "solve show", "solve verify",
    "tactics run", "tactics find", "tactics verify", "tune games", "verify",
    "tune fit", "web", "mqtt serve", "mqtt connect", "mqtt watch", "htp", "otep", "tablut", "hnefatafl-org", "engine",
)  # fmt: skip


def made() -> Parser:
    parser = arguments.parser("x", "")
    parser.add_argument("--out", required=True)
    parser.add_argument("--movetime", type=int)
    parser.add_argument("--moves", nargs="*")
    parser.add_argument("rest", nargs="*")
    parser.renamed("--output", "--out")
    parser.renamed("--time", "--movetime", lambda text: str(round(1000 * float(text))))
    return parser


def test_an_old_spelling_works_and_says_what_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the unit is another, with the value as it is written today."""
    for words in (["--output", "a b", "--time", "0.5"], ["--output=a b", "--time=0.5"]):
        given = made().parse_args(words)
        assert (given.out, given.movetime) == ("a b", 500)
        assert capsys.readouterr().err == (
            "hnefi x: --output is now called --out; the next release removes the old spelling\n"
            "hnefi x: --time 0.5 is now called --movetime 500; the next release removes the old spelling\n"
        )
    assert made().parse_args(["--out", "c", "--movetime", "7"]).movetime == 7
    assert capsys.readouterr().err == ""
    assert "--output" not in made().format_help()


def test_what_stands_behind_a_double_dash_is_no_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert made().parse_args(["--out", "c", "--", "--output", "x"]).rest == ["--output", "x"]
    assert capsys.readouterr().err == ""


def test_an_old_flag_without_its_value_is_still_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        made().parse_args(["--output"])
    assert ended.value.code == 2
    assert "expected one argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["4", "--variant", "brandubh"], ("brandubh", "4")),
        (["--variant=brandubh", "--fen", "x", "4"], ("brandubh", "4")),
        (["brandubh", "4"], ("brandubh", "4")),
    ],
)
def test_a_variant_may_be_a_flag_wherever_it_is_a_word(words: list[str], expected: tuple[str, str]) -> None:
    parser = arguments.parser("x", "")
    parser.add_argument("variant")
    parser.add_argument("depth")
    parser.add_argument("--fen")
    parser.takes_variant()
    given = parser.parse_args(words)
    assert (given.variant, given.depth) == expected


def test_several_variants_stand_behind_what_comes_first() -> None:
    parser = arguments.parser("x", "")
    parser.add_argument("folder")
    parser.add_argument("variants", nargs="*")
    parser.add_argument("--blend")
    parser.takes_variant(behind=1)
    given = parser.parse_args(["runs", "--blend", "1", "--variant", "a,b"])
    assert (given.folder, given.variants) == ("runs", ["a", "b"])


# The spellings of before, each command


def test_analyze(capsys: pytest.CaptureFixture[str]) -> None:
    given = analyze._parser().parse_args(["game.tafl", "--time", "0.5", "--output", "x.tafl"])
    assert (given.movetime, given.output) == (500, "x.tafl")
    said = capsys.readouterr().err
    assert "--time 0.5 is now called --movetime 500" in said
    assert "--output is now called --out" in said
    with pytest.raises(SystemExit):
        analyze._parser().parse_args(["game.tafl", "--time", "soon"])
    assert "argument --time: 'soon': expected seconds from 0.001 to 1000000" in capsys.readouterr().err


def test_the_arena(capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--variant", "--variants"):
        config = option_reader.from_arguments(["simple", "random-blind", flag, "brandubh,tablut", "-o", "x"])
        assert config["run.variants"] == ["brandubh", "tablut-linnaeus"]
    assert capsys.readouterr().err.count("--variants is now called --variant") == 1


def test_the_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    given = ladder._parser().parse_args(["place", "simple", "--variants", "brandubh"])
    assert given.variants == "brandubh"
    assert ladder._parser().parse_args(["games", "--to", "x.tafl"]).to == "x.tafl"
    assert ladder._parser().parse_args(["publish", "runs", "-o", "x"]).to == "x"
    said = capsys.readouterr().err
    assert "hnefi ladder place: --variants is now called --variant" in said
    assert "hnefi ladder games: --to is now called --out" in said


def test_ranking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evolve.main(["es", "--rank", str(tmp_path / "no"), "--matches", "4"]) == 2
    said = capsys.readouterr().err
    assert "--rank DIR is now called hnefi evolve rank DIR" in said
    assert "--matches is now called --pairs" in said
    assert str(tmp_path / "no") in said
    assert evolve._rank_parser().parse_args(["x", "--rank-depth", "2"]).depth == 2


def test_balance(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        balance.main(["--variant", "brandubh", "--pairs", "3"])
    said = capsys.readouterr().err
    assert "--pairs is now called --doubles" in said
    assert "--doubles: expected only with --search" in said


def test_the_bench_of_the_arena(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        bench_arena.main(["--slots", "none"])
    assert "--slots is now called --concurrency" in capsys.readouterr().err


# One word for a thing


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """The help of every command at a usual terminal."""
    return helps_at(80)


OVERVIEWS = (
    "",
    "bench",
    "book",
    "evaluator",
    "evolve",
    "ladder",
    "mqtt",
    "tactics",
    "tune",
    "variants",
    "warmup",
)


def helps_at(columns: int) -> dict[str, str]:
    """The help of every command at a terminal so wide."""
    code = (
        "import contextlib, io, json, sys; from hnefi.tools import cli\n"
        "found = {}\n"
        "for words in sys.argv[1:]:\n"
        "    out = io.StringIO()\n"
        "    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):\n"
        "        cli.main([*words.split(), '--help'])\n"
        "    found[words] = out.getvalue()\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *HELPS, *OVERVIEWS], env={**os.environ, "COLUMNS": str(columns)},
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.process
def test_help_is_as_wide_as_the_terminal_and_breaks_no_word(helps: dict[str, str]) -> None:
    words = {name: said(text) for name, text in helps_at(400).items()}
    for columns, found in ((80, helps), (100, helps_at(100))):
        for name, text in found.items():
            assert max(map(len, text.splitlines())) <= columns, name
            assert said(text) == words[name], name


def said(text: str) -> list[str]:
    """The words of a help, without the usage, whose brackets argparse places as it likes."""
    return text.partition("\n\n")[2].replace(" \\\n", " ").split()


def test_a_command_that_is_too_long_can_be_pasted() -> None:
    assert flags_module.filled("examples:\n  hnefi x one --second two --third three four", 32) == (
        "examples:\n  hnefi x one --second two \\\n      --third three four"
    )


def test_prose_is_filled_and_columns_hang() -> None:
    text = "one two\nthree\n\n  word   what it is,\n  other  a long sentence about it"
    assert flags_module.filled(text, 30) == (
        "one two three\n\n  word   what it is,\n  other  a long sentence about\n         it"
    )


def flags(text: str) -> set[str]:
    """The flags that a help lists."""
    return set(re.findall(r"^ +(?:-\w(?: \S+)?, )?(--[\w-]+)", text, re.MULTILINE))


OLD = {"--time", "--variants", "--output", "--matches", "--rank", "--rank-depth", "--slots", "--self-play"}


@pytest.mark.process
@pytest.mark.parametrize("command", HELPS)
def test_no_help_has_an_old_word(command: str, helps: dict[str, str]) -> None:
    text = helps[command]
    assert text.startswith("usage: "), command
    # The time of one proof, not of a move: --movetime, which --time was elsewhere, would be wrong.
    assert not flags(text) & OLD - ({"--time"} if command == "solve prove" else set())
    if "--out" in flags(text):
        assert re.search(r"^ +-o(?: \S+)?, --out ", text, re.MULTILINE), "-o is --out everywhere"
    if "--movetime" in flags(text):
        assert "ms per move" in text or "milliseconds" in text or "--movetime MS" in text
    if "VARIANT" in text.partition("\n\n")[0]:
        assert "--variant" in text


@pytest.mark.process
@pytest.mark.parametrize(
    "command", ["analyze", "arena report", "balance report", "evolve rank", "experiments", "ladder show"]
)
def test_reports_can_be_plain(command: str, helps: dict[str, str]) -> None:
    assert "--plain" in flags(helps[command])


def test_plain_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    assert ladder.main(["show", "simple", "--plain"]) == 0
    assert capsys.readouterr().out.isascii()


def table() -> dict[str, str]:
    """Flags and what they mean, from CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Flags")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(?:-\w, )?(--[\w-]+)[^`]*` \| (.+?) \|$", text, re.MULTILINE))


@pytest.mark.process
def test_the_table_of_flags_is_of_flags_that_are_there(helps: dict[str, str]) -> None:
    there = set().union(*map(flags, helps.values()))
    assert set(table()) <= there
    users = {
        flag: {words.split()[0] for words, text in helps.items() if flag in flags(text)} for flag in there
    }
    shared = {flag for flag, commands in users.items() if len(commands) >= 4}
    assert shared - {"--help"} <= set(table()), "what four commands have stands in CONTRIBUTING.md"


def test_parsers_below_are_of_the_same_kind() -> None:
    parser = arguments.parser("x", "")
    below = parser.add_subparsers().add_parser("y")
    assert isinstance(below, Parser)
    assert isinstance(below, argparse.ArgumentParser)


def test_an_optional_word_may_follow_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="x")
    parser.add_argument("file")
    parser.add_argument("more", nargs="*")
    parser.add_argument("--count", type=int)
    parser.renamed("--number", "--count")
    for words in (
        "f a b --count 3",
        "f --count 3 a b",
        "--count 3 f a b",
        "f a --count 3 b",
        "f --number 3 a b",
    ):
        assert vars(parser.parse_args(words.split())) == {"file": "f", "more": ["a", "b"], "count": 3}
    assert capsys.readouterr().err.count("--number is now called --count") == 1
    assert parser.parse_args(["f", "--count", "3"]).more == []
    with pytest.raises(SystemExit):
        parser.parse_args(["f", "--wrong", "a"])
    assert "unrecognized arguments: --wrong a" in capsys.readouterr().err
