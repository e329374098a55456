"""`hnefi convert` from outside: what it writes, what it says is lost, and that bad input never shows a traceback."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from records_parts import HOSTILE, SHORT, SHORT_TEXT, from_text

from hnefi.engine.games.tafl import variant
from hnefi.engine.records.replay import replay_file
from hnefi.tools import convert

RUN = "import sys; from hnefi.tools import cli; sys.exit(cli.main(['convert', *sys.argv[1:]]))"
CSV = "a4-a2 d3-a3xa2,0,1,White\nd2-c2 d4-d3 timeout,0,0,White\n"

Convert = Callable[..., tuple[object, str, str]]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Convert:
    """Runs the command in an empty folder, in this process: its status, what it printed, what it complained of."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: bytes = b"") -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        try:
            status: object = convert.main(list(arguments))
        except SystemExit as ended:
            status = ended.code
        sys.stdout.flush()
        written = capfdbinary.readouterr()
        return status, written.out.decode(), written.err.decode()

    return run


def files(folder: Path | None = None) -> list[str]:
    """What lies in a folder, hidden files included."""
    return sorted(path.name for path in (folder or Path.cwd()).iterdir())


def test_games_go_from_format_to_format(call: Convert) -> None:
    Path("games.csv").write_text(CSV)
    assert call("games.csv", "games.tafl", "--variant", "brandubh") == (0, "", "")
    text = Path("games.tafl").read_text("utf-8")
    assert "1. a4a2 d3a3xa2 d\n" in text
    assert '[Result "d time"]' in text
    assert call("games.tafl", "games.jsonl") == (0, "", "")
    assert call("games.jsonl", "again.tafl") == (0, "", "")
    assert Path("again.tafl").read_text("utf-8") == text
    status, out, lost = call("games.jsonl", "again.csv")
    assert (status, out) == (0, "")
    assert lost == "lost: rules that are no shipped variant: 2\nlost: the variant: 2\n"
    assert Path("again.csv").read_text() == CSV
    status, _, lost = call("games.tafl", "games.otg")
    assert status == 0
    assert "lost: the rule switch king_sides_beside_throne: 2\n" in lost
    assert call("games.otg", "-", "--to", "csv")[:2] == (0, CSV)


def test_standard_input_and_output(call: Convert) -> None:
    given = SHORT_TEXT.encode()
    assert call("-", "-", "--from", "tafl", "--to", "tafl", given=given) == (0, SHORT_TEXT, "")
    status, out, _ = call("-", "-", "--from", "tafl", "--to", "jsonl", "--strict", given=given)
    assert status == 0
    assert from_text(out, "jsonl") == [SHORT]
    bad = SHORT_TEXT.replace("d3a3xa2", "d3a3xb2").encode()
    status, out, said = call("-", "-", "--from", "tafl", "--to", "tafl", "--strict", given=given + bad)
    assert (status, out) == (1, ""), "all or nothing"
    assert said == (
        "-:20: game 2 ply 2 d3a3: d3a3xa2 by the rules, d3a3xb2 recorded\n"
        "games that disagree with their rules: 1\n"
    )


def test_games_may_be_checked_alone(call: Convert) -> None:
    Path("one.tafl").write_text(SHORT_TEXT, "utf-8")
    assert call("one.tafl", "--strict") == (0, "", "games that agree with their rules: 1\n")
    Path("one.tafl").write_text(SHORT_TEXT.replace("d7c7", "d7d5"), "utf-8")
    status, out, said = call("one.tafl", "--strict")
    assert (status, out) == (1, "")
    assert said.startswith("one.tafl:10: game 1 ply 3 d7d5: is illegal: ")
    Path("two.csv").write_text("d1-a1 " * 1 + ",0,0,White\n" + CSV)
    status, _, said = call("two.csv", "two.tafl", "--variant", "brandubh", "--strict")
    assert status == 1
    assert said.startswith("two.csv:1: game 1 ply 1 d1a1: is illegal: ")
    assert not Path("two.tafl").exists()


@pytest.mark.parametrize("row", ["a4-a2 d3-a3xa2 timeout,0,1,", "a4-a2 d3-a3xa2,0,1,"])
def test_where_no_result_is_recorded_nothing_disagrees(call: Convert, row: str) -> None:
    Path("x.csv").write_text(f"{row}\n")
    words = ("x.csv", "x.tafl", "--variant", "brandubh", "--strict")
    assert call(*words) == (0, "", "games that agree with their rules: 1\n")
    assert call("x.tafl", "-", "--to", "csv")[1] == f"{row}\n"
    assert replay_file("x.csv", variant.find("brandubh")).agrees


def test_adjudication_is_asked_for(call: Convert) -> None:
    Path("x.csv").write_text(CSV)
    call("x.csv", "as-played.tafl", "--variant", "brandubh")
    call("x.csv", "as-it-stands.tafl", "--variant", "brandubh", "--adjudicate")
    assert '[Rule "repetition ignore"]' in Path("as-played.tafl").read_text()
    assert '[Rule "' not in Path("as-it-stands.tafl").read_text()


def test_a_variant_of_ones_own(call: Convert) -> None:
    Path("own.toml").write_text(
        'name = "own"\nstart = "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3"\nrules = { escape = "edge" }\n'
    )
    Path("x.csv").write_text("a4-a2,0,0,\n")
    assert call("x.csv", "x.tafl", "--variant", "own.toml")[0] == 0
    Path("own.toml").unlink()
    assert call("x.tafl", "--strict") == (0, "", "games that agree with their rules: 1\n"), (
        "the record needs no file"
    )
    assert '[Variant "own"]' in Path("x.tafl").read_text()
    assert '[Rule "escape edge"]' in Path("x.tafl").read_text()


def test_nothing_is_replaced_unasked(call: Convert) -> None:
    Path("a.tafl").write_text(SHORT_TEXT, "utf-8")
    Path("b.jsonl").write_text("mine")
    status, _, said = call("a.tafl", "b.jsonl")
    assert status == 2
    assert "b.jsonl: already exists: expected --force to replace it" in said
    assert Path("b.jsonl").read_text() == "mine"
    assert call("a.tafl", "b.jsonl", "--force") == (0, "", "")
    assert json.loads(Path("b.jsonl").read_text())["variant"] == "brandubh"
    assert call("a.tafl", "a.tafl", "--force") == (0, "", "")
    assert Path("a.tafl").read_text("utf-8") == SHORT_TEXT
    Path("a.tafl").write_text(SHORT_TEXT + "torn", "utf-8")
    assert call("a.tafl", "b.jsonl", "--force")[0] == 2
    assert len(Path("b.jsonl").read_text().splitlines()) == 1, "what was there is still there"
    assert files() == ["a.tafl", "b.jsonl"], "and nothing lies about"


def test_files_get_the_usual_permissions(call: Convert) -> None:
    Path("a.tafl").write_text(SHORT_TEXT, "utf-8")
    call("a.tafl", "b.tafl")
    assert Path("b.tafl").stat().st_mode == Path("a.tafl").stat().st_mode


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.tafl"], "expected OUT, or --strict to check the games alone"),
        (["a.tafl", "b.pgn"], "b.pgn: expected a file ending in .tafl, .otg, .csv, .jsonl, or --to"),
        (["a.pgn", "b.tafl"], "a.pgn: expected a file ending in .tafl, .otg, .csv, .jsonl, or --from"),
        (["-", "b.tafl"], "- has no ending: expected --from with one of tafl, otg, csv, jsonl"),
        (["a.tafl", "-"], "- has no ending: expected --to with one of tafl, otg, csv, jsonl"),
        (["a.csv", "b.tafl"], "CSV names no variant: expected --variant"),
        (
            ["a.csv", "b.tafl", "--variant", "brandubhh"],
            "'brandubhh': expected the name of a variant (did you mean",
        ),
        (["a.tafl", "b.tafl", "--from", "pgn"], "invalid choice: 'pgn'"),
        (
            ["no.tafl", "b.tafl"],
            "hnefi convert: no.tafl: No such file or directory: expected a readable file",
        ),
        (
            ["a.tafl", "no/b.tafl"],
            "no/b.tafl: No such file or directory: expected a file that can be written",
        ),
        ([".", "b.tafl", "--from", "tafl"], "hnefi convert: .: Is a directory"),
        (
            ["a.tafl", "b.otg"],
            "hnefi convert: a.tafl:1: game 1: OTN contains the rules, and these are unknown: 'glima'",
        ),
        (["a.jsonl", "b.tafl"], "hnefi convert: a.jsonl:1: variant: expected the name of one"),
    ],
)
def test_wrong_calls_and_files_are_named(call: Convert, arguments: list[str], message: str) -> None:
    Path("a.tafl").write_text('[Variant "glima"]\n1. a1a2 *\n')
    Path("a.csv").write_text(CSV)
    Path("a.jsonl").write_text('{"moves": "a1a2"}\n')
    before = files()
    status, out, said = call(*arguments)
    assert (status, out) == (2, "")
    assert message in said
    assert files() == before


@pytest.mark.slow
def test_hostile_files_end_in_one_sentence(call: Convert) -> None:
    for number, (form, data, _) in enumerate(HOSTILE):
        Path("bad").write_bytes(data.encode() if isinstance(data, str) else data)
        arguments = ["bad", f"out{number}", "--from", form, "--to", "tafl"]
        status, out, said = call(*arguments, *([] if form in ("tafl", "otg") else ["--variant", "brandubh"]))
        assert (status, out) == (2, ""), (form, data[:80])
        assert re.fullmatch(r"hnefi convert: bad:\d+.*\n", said), said
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", said)
    assert files() == ["bad"]


@pytest.mark.process
def test_converting_needs_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "games.csv").write_text(CSV)
    program = (
        "import sys; from hnefi.tools import convert\n"
        "for out in ('x.tafl', 'x.otg', 'x.jsonl', 'x.csv'):\n"
        "    assert convert.main(['games.csv', out, '--variant', 'brandubh']) == 0\n"
        "    if out != 'x.csv': assert convert.main([out, out + '.tafl']) == 0\n"
        "assert not {'numba', 'numpy'} & set(sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_no_half_written_file(tmp_path: Path, number: int) -> None:
    """Games come and come through a pipe; nothing is left of them when somebody has had enough."""
    out = tmp_path / "out.tafl"
    running = subprocess.Popen(
        [sys.executable, "-c", RUN, "-", str(out), "--from", "tafl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert running.stdin is not None
    for _ in range(3):
        running.stdin.write(SHORT_TEXT.encode() * 200)
        running.stdin.flush()
    deadline = time.monotonic() + 60
    while not files(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [name for name in files(tmp_path) if name.startswith(".out.tafl.")]
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert said == b""
    assert files(tmp_path) == []


@pytest.mark.process
def test_whoever_stops_reading_ends_it_quietly() -> None:
    text = SHORT_TEXT.encode() * 3000
    ran = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" - - --from tafl --to tafl | head -n 1', sys.executable, RUN],
        input=text,
        capture_output=True,
        timeout=240,
        check=False,
    )
    assert ran.stdout == b'[Variant "brandubh"]\n'
    assert ran.stderr == b""


def test_a_terminal_sees_how_far_it_is(call: Convert, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Path("a.tafl").write_text(SHORT_TEXT * 2, "utf-8")
    status, out, said = call("a.tafl", "b.tafl")
    assert (status, out) == (0, "")
    assert "1 games" in said
    assert said.endswith("\r\x1b[J")


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_long_files_pass_in_little_memory(tmp_path: Path) -> None:
    """The process stays as small as it is with a short file."""
    source = tmp_path / "long.tafl"
    program = (
        "import re, sys; from pathlib import Path; from hnefi.tools import convert\n"
        "status = convert.main([*sys.argv[1:], '--force'])\n"
        "print(status, re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    peaks = []
    for size in (1, 4000):
        source.write_text(SHORT_TEXT * size, "utf-8")
        ran = subprocess.run(
            [sys.executable, "-c", program, str(source), str(tmp_path / "long.jsonl")],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        status, kilobytes = map(int, ran.stdout.split())
        assert status == 0
        peaks.append(kilobytes)
    assert (tmp_path / "long.jsonl").stat().st_size > 1_500_000
    assert peaks[1] < peaks[0] + 1000


def test_a_disk_that_takes_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "game.csv", tmp_path / "game.tafl"
    source.write_text("a4-a2 d3-a3xa2,0,1,Ongoing\n")

    def full(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert convert.main([str(source), str(target), "--variant", "brandubh"]) == 4
    reason = f"{os.strerror(errno.EDQUOT)}: expected a file that can be written"
    assert capsys.readouterr().err == f"hnefi convert: {target}: {reason}\n"
    assert sorted(tmp_path.iterdir()) == [source]
    assert convert.main([str(source), str(target), "--variant", "brandubh"]) == 0
    assert convert.main([str(tmp_path / "none.csv"), str(target), "--variant", "brandubh", "--force"]) == 2
