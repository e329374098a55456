"""What strangers may send."""

from __future__ import annotations

import pytest

from hnefi.protocol.hosts.filter import Filter

LONG = "x" * 9000


@pytest.mark.parametrize(
    "line",
    [
        "uti",
        "isready",
        "go depth 3",
        "go infinite",
        "stop",
        "position startpos moves d1d3",
        "position otn /3/3/3/",
        f"position startpos moves {'d1d3 ' * 2000}",
        "rules dim:7",
        "setoption name Hash value 256",
        "setoption name Hash value many",
        "setoption name Player value random-blind",
        "setoption name Evaluator value default",
        "setoption name TablePath value shipped",
        "setoption name TablePath value",
        "setoption name Unheard value of",
        "setoption",
        "help perft",
        "# quit",
        "nothing known",
        "",
        b"quit \xff",
    ],
)
def test_allowed(line: str | bytes) -> None:
    assert Filter().refusal(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "quit",
        "please quit",
        "\tquit\r",
        "debug on",
        "bench",
        "perft 3",
        "go perft 3",
        "go  perft 3",
        "genfens 3",
        "setoption name DebugLogFile value /tmp/x",
        "setoption name debuglogfile",
        "setoption name VariantPath value /tmp",
        "setoption name TablePath value /tmp",
        "setoption name TablePath value shipped:/tmp",
        "setoption name tablepath value mini-four",
        "setoption name BookFile value /tmp/x",
        "setoption name Player value ../x.toml",
        "setoption name Evaluator value /etc/passwd",
        "joho setoption  name EVALUATOR value a.b",
        "setoption name Hash value 257",
        "setoption name Hash value 99999999999999999999999999",
        "setoption name threads value 2",
        f"rules {LONG}",
        f"setoption name Rules value {LONG}",
        f"position otn {LONG}",
    ],
)
def test_refused(line: str) -> None:
    refusal = Filter().refusal(line)
    assert refusal is not None
    assert refusal.startswith("info string error ")
    assert refusal.endswith(": not allowed here")


def test_heavy_commands_can_be_opened() -> None:
    generous = Filter(allow_heavy=True, hash_mib=1024, threads=8)
    for line in ("bench", "perft 3", "go perft 3", "genfens 3", "setoption name Hash value 1024"):
        assert generous.refusal(line) is None
    assert generous.refusal("debug on") is not None
