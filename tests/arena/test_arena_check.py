"""The check of engines: ours passes, a foreign one passes, and every fault is found by the steps that are about it."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from client_parts import Clock
from patience import PROMPTLY

from hnefi.engine.compile.progress import Progress
from hnefi.protocol.answers import parse_compiling
from hnefi.tools.conformance import engine_under_test, transport
from hnefi.tools.conformance.command import all_steps, main
from hnefi.tools.conformance.transport import Patience, group_members

STEPS = all_steps()

pytestmark = pytest.mark.process

SUPPORT = Path(__file__).parents[1] / "support"
PYTHON = [sys.executable, "-I", "-S"]
WAIT = 60.0
"""Seconds for each step of an engine that is as it should be."""
SILENT = 15.0
"""Where some steps are not answered, and others have to be."""
SHORT = 5.0
"""Seconds for steps that an engine fails by its silence."""
FAKE = [*PYTHON, str(SUPPORT / "fake_engine.py")]
HEX = [*PYTHON, str(SUPPORT / "hex_engine.py")]


def check(
    capsys: pytest.CaptureFixture[str], *arguments: str, timeout: float = WAIT, only: tuple[str, ...] = ()
) -> tuple[int, dict[str, Any]]:
    """Exit status and the object of `--json`."""
    chosen = [word for name in only for word in ("--only", name)]
    status = main(["--json", "--timeout", str(timeout), *chosen, *arguments])
    captured = capsys.readouterr()
    assert captured.err == ""
    document = json.loads(captured.out)
    assert document["ok"] == (status == 0)
    return status, document


def named(document: dict[str, Any], *statuses: str) -> set[str]:
    return {step["name"] for step in document["steps"] if step["status"] in statuses}


def foreign(*faults: str) -> list[str]:
    return ["--proto", "uci", "--variant", "hex:4", *HEX, *faults]


def be_patient_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine needs more than two seconds for the end of a process."""
    monkeypatch.setattr(transport, "Patience", lambda *given: Patience(*given[:3], end=WAIT))


# Engines that behave


@pytest.mark.process
def test_our_own_engine_passes_every_required_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient_at_the_end(monkeypatch)
    status, document = check(capsys, "--player", "default")
    slow = sorted(document["steps"], key=lambda step: -step["seconds"])[:5]
    print("slowest:", ", ".join(f"{step['name']} {step['seconds']:.1f} s" for step in slow))
    assert status == 0, [step for step in document["steps"] if step["status"] == "fail"]
    assert (document["proto"], document["variant"]) == ("uti", "brandubh")
    assert named(document, "skipped") == set()
    targets = {step.name for step in STEPS if step.name.endswith(("-time", "-kept", "-rate"))}
    assert named(document, "advisory") <= targets
    assert len(document["steps"]) == len(STEPS) > 40


@pytest.mark.process
def test_a_foreign_engine_passes_what_it_offers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient_at_the_end(monkeypatch)
    status, document = check(capsys, *foreign(), timeout=SILENT)
    assert status == 0, [step for step in document["steps"] if step["status"] == "fail"]
    assert (document["name"], document["proto"], document["variant"]) == ("Small Hex", "uci", "hex:4")
    assert named(document, "skipped") == {
        "multipv", "wdl", "variants", "variant", "variant-option", "variant-unknown", "fen-short", "long-game",
        "repetition", "query", "query-search", "query-time", "moves", "play-undo", "ponder", "searchmoves-illegal",
    }  # fmt: skip
    advisory = named(document, "advisory")
    assert {"searchmoves", "go-bare", "leading-words"} <= advisory
    assert all(step["required"] is False for step in document["steps"] if step["name"] in advisory)
    reasons = {step["name"]: step["text"] for step in document["steps"]}
    assert reasons["variants"] == "only after uti"
    assert reasons["multipv"] == "it has no option MultiPV"
    assert reasons["searchmoves-illegal"] == "it needs searchmoves"


@pytest.mark.process
def test_a_step_alone_knows_the_game_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    status, document = check(capsys, "--player", "default", only=("query-search",))
    assert status == 0
    assert named(document, "pass") == {"query-search"}


@pytest.mark.process
def test_an_engine_whose_game_is_unknown_is_asked_for_less(capsys: pytest.CaptureFixture[str]) -> None:
    status, document = check(capsys, "--proto", "uci", *HEX, only=("go", "bestmove-legal", "pv-legal"))
    assert status == 0
    assert named(document, "skipped") == {"bestmove-legal", "pv-legal"}
    assert "name it with --variant" in document["steps"][1]["text"]
    unjudged = (
        "skipped: 2 steps that need the rules; the engine does not say which game it\n"
        "plays: name it with --variant\n"
    )
    assert main(["--proto", "uci", "--only", "go", "--only", "*-legal", *HEX]) == 0
    assert f"{unjudged}Small Hex (uci) follows the protocol" in capsys.readouterr().out
    # After a failure, the command that repeats the step still comes right after the sentence that announces it.
    only = [word for step in ("go-infinite", "*-legal") for word in ("--only", step)]
    assert main(["--proto", "uci", "--timeout", str(SHORT), *only, *HEX, "hasty"]) == 1
    said = capsys.readouterr().out
    assert unjudged in said
    assert "step:\n  hnefi arena check " in said


# Faults, each with the steps that find it and others that do not


@pytest.mark.process
@pytest.mark.parametrize(
    ("fault", "found", "passed"),
    [
        ("illegal", {"bestmove-legal"}, {"go", "stop-idle"}),
        ("stutters", {"pv-legal"}, {"bestmove-legal", "info-numbers"}),
        ("fractions", {"info-numbers"}, {"pv-legal"}),
        ("plays-on", {"finished-game"}, {"bestmove-legal"}),
        ("hasty", {"go-infinite", "isready-search"}, {"go-depth"}),
        ("busy", {"isready-search"}, {"go-infinite"}),
        ("answers-twice", {"stop-idle", "stop-crossing"}, {"go-infinite"}),
        ("counts-on", {"go-negative-clock"}, {"go-zero-clock"}),
        ("fen-crash", {"bad-fen"}, {"fen"}),
        ("utf8-crash", {"bad-bytes"}, {"long-lines", "garbage"}),
        ("two-hashes", {"options-unique"}, {"options-form"}),
        ("far-default", {"options-defaults"}, {"options-unique"}),
        ("bad-quit", {"quit-idle", "quit-search"}, {"end-of-input"}),
        ("lingers", {"end-of-input", "end-of-input-search"}, {"quit-idle"}),
    ],
)
def test_a_fault_is_found_by_the_steps_about_it(
    fault: str, found: set[str], passed: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = check(capsys, *foreign(fault), only=tuple(passed))
    assert (status, named(document, "pass")) == (0, passed)
    status, document = check(capsys, *foreign(fault), only=tuple(found), timeout=SHORT)
    assert (status, named(document, "fail")) == (1, found)
    for step in document["steps"]:
        assert bool(step["transcript"]) == (step["status"] == "fail")


@pytest.mark.process
def test_after_uti_refusals_and_answers_are_demanded(capsys: pytest.CaptureFixture[str]) -> None:
    silent = {"setoption-unknown", "setoption-range", "setoption-search", "variants", "variant-unknown", "bad-fen",
              "unknown-word", "leading-words", "double-go"}  # fmt: skip
    passed = {"go", "go-infinite", "stop", "stop-idle", "blank-lines", "newgame", "ponder", "isready-often"}
    status, document = check(capsys, *FAKE, only=(*silent, *passed), timeout=SILENT)
    assert status == 1
    assert (named(document, "fail"), named(document, "pass")) == (silent, passed)


@pytest.mark.process
@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("slow-greeting", "greeting-time"),
        ("chatty", "errors-quiet"),
        ("moody", "reproducible"),
        ("orphan", "no-orphans"),
    ],
)
def test_an_advisory_step_decides_nothing(fault: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    if found == "no-orphans" and group_members(0) is None:
        pytest.skip("this system does not tell which processes belong together")
    status, document = check(capsys, *foreign(fault), only=("go", found))
    assert status == 0
    assert named(document, "advisory") == {found}


@pytest.mark.process
@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("hang", "no bestmove within 5 s"),
        ("exit", "it ended (exit status 3) before bestmove"),
        ("segv", "it ended (killed by SIGSEGV) before bestmove"),
        ("close-stdout", "it closed its output before bestmove"),
        ("twice", "`bestmove a1a3` after the first one"),
        ("endless", "no bestmove within 5 s"),
        ("sigstop", "no bestmove within 5 s"),
    ],
)
def test_an_engine_that_cannot_answer_fails_one_step_and_the_walk_goes_on(
    fault: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    only = ("isready", "go", "go-depth", "stop", "blank-lines")
    status, document = check(capsys, "--proto", "uci", *FAKE, "proto=uci", fault, only=only, timeout=SHORT)
    assert status == 1
    steps = {step["name"]: step for step in document["steps"]}
    assert {name: step["status"] for name, step in steps.items()} == {
        "isready": "pass",
        "go": "fail",
        "go-depth": "skipped",
        "stop": "skipped",
        "blank-lines": "pass",
    }
    assert steps["go"]["text"] == text
    said = [f"{arrow} {line}" for _, arrow, line in steps["go"]["transcript"]]
    assert "> go depth 1" in said
    assert steps["go-depth"]["text"] == steps["stop"]["text"] == "it needs go"


@pytest.mark.process
@pytest.mark.parametrize(("fault", "failed"), [("no-greeting", "greeting"), ("no-ready", "isready")])
def test_without_a_greeting_nothing_else_is_waited_for(
    fault: str, failed: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "Patience", lambda start, *_: Patience(start, SHORT))
    began = time.monotonic()
    status, document = check(capsys, *FAKE, fault, timeout=SHORT if failed == "greeting" else WAIT)
    assert status == 1
    assert named(document, "fail") == {failed}
    assert {step["text"] for step in document["steps"] if step["status"] == "skipped"} == {
        f"it needs {failed}"
    }
    # A wait of five seconds for each step would be minutes.
    assert time.monotonic() - began < 6 * SHORT + WAIT


def test_the_greetings_share_the_time_to_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that knows only a later one is asked it in time, however long it is silent after the first."""
    asked = []

    def share(left: float, others: int) -> float:
        asked.append((left, others))
        return 0.1 if others else left

    monkeypatch.setattr(engine_under_test, "greeting_wait", share)
    status, document = check(capsys, "--variant", "hex:4", *HEX, only=("greeting",))
    assert (status, document["proto"]) == (0, "uci")
    # Its answer may come only after the next greeting.
    assert [others for _, others in asked] in ([2, 1], [2, 1, 0])
    assert WAIT >= asked[0][0] > asked[-1][0] > 0


def test_steps_that_need_a_failed_one_are_one_line_and_say_the_right_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--timeout", "0.5", "--proto", "uti", "/bin/cat"]) == 1
    lines = capsys.readouterr().out.splitlines()
    said = " ".join(" ".join(lines).split())
    assert "expected: The ok word (`utiok`, `uciok` or `ugiok`) comes within 0.5 s." in said
    assert "10 s" not in said
    skipped = [line for line in lines if " skipped  " in line]
    assert skipped == [f" 2 skipped   to {len(STEPS)}: {len(STEPS) - 1} steps that need greeting"]


def test_an_engine_that_compiles_is_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For much longer than it is given, in which it is never silent for that long."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)

    def parse(line: str) -> Progress | None:
        progress = parse_compiling(line)
        if progress is not None:
            clock.leap(WAIT)  # less than a step may take in all, and all of them are more than it is given
        return progress

    # Where lines arrive: a busy machine reads several at once, and a leap for each of them later is one silence.
    monkeypatch.setattr(engine_under_test, "parse_compiling", parse)
    status, document = check(capsys, *FAKE, "compiles", only=("isready",))
    assert (status, named(document, "pass")) == (0, {"isready"})


# What people see


@pytest.mark.process
def test_a_failed_step_shows_expectation_and_transcript_in_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = main(["--only", "go", "--only", "info-numbers", *foreign("fractions")])
    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert lines[0].endswith("hex_engine.py fractions: 2 steps")
    assert lines[1] == " 1 pass      go                    a1"
    assert lines[2].startswith(" 2 FAIL      info-numbers          score cp 1.5: `info depth 1 ")
    assert any(
        line.startswith("             expected: Numbers in `info` lines are integers") for line in lines
    )
    assert any(line.endswith("> go depth 4") and float(line.split()[0]) < 5000 for line in lines)
    assert any("< info depth 1 score cp 1.5 nodes 16 time 0 pv a1" in line for line in lines)
    assert any(line.startswith("1 passed, 1 failed in ") for line in lines)
    assert "does not follow the protocol: info-numbers. To repeat one step:" in " ".join(lines)
    assert max(map(len, lines[1:-1])) <= 80
    command = shlex.split(lines[-1])
    assert command[:5] == ["hnefi", "arena", "check", "--only", "info-numbers"]
    assert command[5:] == foreign("fractions")
    assert main(command[3:]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == lines[-1]


@pytest.mark.process
def test_a_first_step_s_time_begins_behind_the_greeting(capsys: pytest.CaptureFixture[str]) -> None:
    """Even where the greeting is found by trying."""
    status = main(["--only", "go", "--timeout", "5", *FAKE, "proto=uci", "exit"])
    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    (asked,) = (line for line in lines if line.endswith("> go depth 1"))
    assert float(asked.split()[0]) < 3000
    assert shlex.split(lines[-1])[3 : -len(FAKE) - 2] == ["--only", "go", "--proto", "uci", "--timeout", "5"]


def test_list_shows_every_step_and_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    text = capsys.readouterr().out
    for step in STEPS:
        assert f"\n{step.name} " in f"\n{text}"
    assert max(map(len, text.splitlines())) <= 80
    assert main(["--list", "--only", "go-*clock"]) == 0
    assert len([line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]) == 6


def test_every_step_can_be_read_and_needs_an_earlier_one() -> None:
    seen = {""}
    for step in STEPS:
        assert step.expected.endswith(".")
        assert step.needs in seen
        assert step.name not in seen
        seen.add(step.name)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "expected the program of an engine, or --player NAME"),
        (
            ["no-such-engine"],
            "'no-such-engine': no such program in the PATH: expected an executable program\n",
        ),
        (["/etc"], "'/etc': a folder: expected an executable program\n"),
        (["default"], "did you mean --player default?"),
        (["--player", "nobody"], "no player 'nobody': expected a name that"),
        (["--player", "default", "./mybot"], "expected the program of an engine, or --player NAME"),
        (["--only", "go-dpeth", "cat"], "--only go-dpeth: no such step (did you mean go-depth?)"),
        (["--variant", "no-such-game", "cat"], "no-such-game"),
        (["--timeout", "-1", "cat"], "expected seconds from 0.05 to 3600"),
    ],
)
def test_wrong_calls_say_what_was_expected(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    assert ending.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.process
def test_options_behind_the_engine_are_the_engine_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "greeting", "--proto", "uci", *HEX, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "note: --json comes after ENGINE, so it is passed to the engine\n"
    assert "hex_engine.py --json: 1 step\n" in captured.out


@pytest.mark.process
def test_a_whole_command_line_may_be_one_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "greeting", "--proto", "uci", shlex.join(HEX)]) == 0
    assert "hex_engine.py: 1 step\n" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_leaves_no_process(number: int) -> None:
    command = [sys.executable, "-m", "hnefi.tools.arena.command", "check", "--only", "go", "--proto", "uti"]
    checker = subprocess.Popen(
        [*command, *FAKE, "hang"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert checker.stdout is not None
    assert "1 step\n" in checker.stdout.readline()
    engine = child_of(checker.pid)
    checker.send_signal(number)
    assert checker.wait(60) == 1
    checker.stdout.close()
    deadline = time.monotonic() + PROMPTLY
    while runs(engine):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether the process lives; whoever inherited it may still have to reap it."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return state.stdout.strip()[:1] not in ("", "Z")


def child_of(pid: int) -> int:
    """The first child that a process has, once it has one."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False
        )
        if found.stdout.split():
            return int(found.stdout.split()[0])
        time.sleep(0.02)
    raise AssertionError("no engine was started")
