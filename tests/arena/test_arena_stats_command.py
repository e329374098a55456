"""`hnefi arena stats`: what it prints, as text and as JSON, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hnefi.tools.arena.report_command import main_stats as main
from hnefi.tools.common.statistics import elo


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """Its exit status, and what it wrote."""
    try:
        status: object = main(list(arguments))
    except SystemExit as ended:
        status = ended.code
    written = capsys.readouterr()
    return status, written.out, written.err


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    status, out, err = call(capsys, *arguments)
    assert (status, err) == (0, "")
    assert all(len(line) <= 80 for line in out.splitlines())
    return out


def test_pairs_with_a_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--pairs", "13,37,41+9,25,3", "--sprt", "normalized,0,4") == (
        "pairs   128: LL 13  LD 37  WL+DD 50  WD 25  WW 3\n"
        "        in the middle: same side won twice 41, two draws 9\n"
        "score   43.75 % ± 4.16\n"
        "Elo     -43.66 ± 29.43\n"
        "nElo    -63.97 ± 42.56\n"
        "LOS     0.16 %\n"
        "test    normalized [0, 4], alpha 0.05, beta 0.05\n"
        "LLR     -0.5491, 19 % of H0; bounds -2.9444 and +2.9444\n"
        "expect  19,993 pairs if H0 is true, 19,993 if H1 is, 32,705 midway\n"
        "inconclusive: LLR -0.55 within [-2.94, 2.94] of the test [0, 4] after 128 pairs\n"
    )


def test_games(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--wdl", "136,111,96") == (
        "games   343: W 136  D 111  L 96\nscore   55.83 % ± 4.31\nElo     +40.70 ± 30.43\n"
        "nElo    +49.77 ± 36.77\nLOS     99.60 %\n"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--pairs", "0,0,0,0,50"], "Elo     +inf, at least +483.8 (95 %, one-sided)"),
        (["--pairs", "50,0,0,0,0"], "Elo     -inf, at most -483.8 (95 %, one-sided)"),
        (["--pairs", "0,0,7,0,0"], "nElo    undefined: all pairs ended alike"),
        (["--wdl", "0,0,0"], "score   undefined: no games"),
        (["--wdl", "0,0,1"], "Elo     undefined: fewer than two games"),
        (
            ["--wdl", "0,5,2", "--sprt", "bayesian-openbench,0,5"],
            "LLR     undefined; bounds -2.9444 and +2.9444",
        ),
        (
            ["--pairs", "0,0,0,0,5550", "--sprt", "normalized,0,5"],
            "H1 accepted: A is stronger than B by the test [0, 5] after 5,550 pairs",
        ),
        (
            ["--wdl", "3,1,149", "--sprt", "bayesian-cutechess,0,10,0.01,0.01"],
            "H0 accepted: A is not stronger than B by the test [0, 10] after 153 games",
        ),
    ],
)
def test_lines_at_the_edges(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    assert line in call(capsys, *arguments)[1].splitlines()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, "--json", "--pairs", "13,37,41+9,25,3", "--sprt", "normalized,0,4"))
    assert document["pairs"] == [13, 37, 50, 25, 3]
    assert document["middle"] == {"same_side_twice": 41, "two_draws": 9}
    assert document["wdl"] is None
    assert document["n"] == 128
    assert document["elo"] == pytest.approx(-43.6578, abs=1e-4)
    assert document["los"] == pytest.approx(0.0016, abs=1e-4)
    test = document["sprt"]
    assert test["llr"] == pytest.approx(-0.549125, abs=1e-6)
    assert (test["accepted"], test["model"], test["unit"], test["elo1"]) == (None, "normalized", "pair", 4)
    assert (test["lower"], test["upper"]) == pytest.approx((-2.9444, 2.9444), abs=1e-4)
    assert test["expected"]["midway"] == pytest.approx(32704.2, abs=0.5)


def test_json_has_null_for_what_is_undefined(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, "--json", "--wdl", "0,0,0"))
    assert document.pop("wdl") == [0, 0, 0]
    assert document.pop("n") == 0
    assert set(document.values()) == {None}
    document = json.loads(said(capsys, "--json", "--wdl", "9,0,0", "--sprt", "bayesian-openbench,0,5"))
    assert (document["wdl"], document["elo"], document["elo_high"]) == ([9, 0, 0], None, None)
    assert document["elo_low"] == pytest.approx(elo(0.05 ** (1 / 9)))
    assert (document["sprt"]["llr"], document["sprt"]["expected"]) == (None, None)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "one of the arguments --pairs --wdl is required"),
        (["--pairs", "1,2,3,4,5", "--wdl", "1,2,3"], "not allowed with argument"),
        (["--pairs", "1,2,3"], "'1,2,3': expected five counts LL,LD,WL+DD,WD,WW"),
        (["--wdl", "1,2,3,4,5"], "'1,2,3,4,5': expected three counts W,D,L"),
        (["--wdl", "1,-2,3"], "'-2': expected a whole number from 0 on"),
        (["--wdl", "1,2.5,3"], "'2.5': expected a whole number from 0 on"),
        (["--wdl", "1,²,3"], "'²': expected a whole number from 0 on"),
        (["--wdl", "1,,3"], "'': expected a whole number from 0 on"),
        (["--wdl", "1,2,9999999999"], "expected three or five numbers from 0 to 1,000,000,000"),
        (["--wdl", "1,2," + "9" * 5000], "expected a whole number from 0 on"),
        (["--pairs", "1,2,1+1+1,4,5"], "'1+1+1': expected one count, or two joined by +"),
        (["--pairs", "1+1,2,3,4,5"], "'1+1': expected a whole number from 0 on"),
        (["--wdl", "1,2,3", "--sprt", "normalized,5,0"], "expected elo0 below elo1"),
        (["--pairs", "10,0,0,0,0", "--sprt", "normalized,-1500,-500"], "elo0 -1500: expected -200 to 200"),
        (["--pairs", "1,2,3,4,5", "--sprt", "bayesian-cutechess,0,5"], "knows no pairs"),
        (["--wdl", "1,2,3", "--sprt", "linear,0,5"], "model 'linear': expected one of normalized, logistic"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str) -> None:
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (2, "")
    assert complaint in err
    assert len(err) < 1000


def test_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "--help")
    assert out.startswith("usage: hnefi arena stats")
    assert "bayesian-openbench" in out


@pytest.mark.process
def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; from hnefi.tools.arena.report_command import main_stats; main_stats(['--wdl', '1,2,3']);"
        "print({'numpy', 'numba', 'scipy', 'asyncio'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == "set()"
