"""Charts of our own: sound XML, words that find room, the same file every time, and PNG only where it can be drawn."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hnefi.tools import cli
from hnefi.tools.common import arguments, svg_chart
from hnefi.tools.common.svg_chart import (
    SHAPES,
    Panel,
    Scale,
    Sheet,
    Word,
    curve_of,
    grey,
    steps,
    width_of,
    wrapped,
)

SVG = "{http://www.w3.org/2000/svg}"
LONG = "copenhagen+king_sides=4+king_sides_beside_throne=4+shieldwall=off+repetition=ignore against everybody, twice"


def chart(title: tuple[str, ...] = ("title", "below")) -> str:
    sheet, height = drawn(title)
    return sheet.svg(height)


def drawn(title: tuple[str, ...] = ("title",)) -> tuple[Sheet, float]:
    sheet = Sheet(400, title)
    panel = Panel(sheet, 60, sheet.top + 10, 320, 200, Scale(1, 1000, log=True), Scale(0, 100))
    panel.ground("#eeeeee")
    panel.unknown(1, 10)
    panel.bar(100, 50, 0, 30)
    panel.area([(1, 10), (10, 60), (100, 40)], 0, "#cccccc")
    panel.level(50, dash="4 3")
    looks = [curve_of(shape, number) for number, shape in enumerate(SHAPES)]
    for number, look in enumerate(looks):
        panel.curve([(1, 10 * number), (1000, 90)], look, [(0, 20), (80, 100)])
    panel.ticks_left([(y, f"{y:g}") for y in steps(0, 100)])
    below = panel.ticks_below([(1, "one"), (1000, "a <thousand>")], turn=60, grid=True)
    below = panel.called_below("what it is & why", below)
    panel.called_left("how much", 20)
    panel.frame()
    return sheet, sheet.legend_below(looks, below)


def words(text: str) -> list[ET.Element]:
    return list(ET.fromstring(text).iter(f"{SVG}text"))


def test_a_chart_is_xml_of_elements_that_every_renderer_knows() -> None:
    text = chart()
    root = ET.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg", "title", "rect", "path", "text", "circle"
    }  # fmt: skip
    assert not re.search("style=|url\\(|href|clip|pattern", text)
    assert text == chart()
    assert {"a <thousand>", "what it is & why"} <= {word.text for word in words(text)}
    assert "NaN" not in text.title()


@pytest.mark.parametrize(
    "title", [LONG, "x" * 300, "balance\x1b[31m of \ud800 \uffff 中文" * 9, "word " * 60]
)
def test_a_title_is_broken_and_never_clipped(title: str) -> None:
    text = chart((title, title))
    shown = [word for word in words(text) if word.get("x") == str(svg_chart.MARGIN)]
    for word in shown:
        size = float(word.get("font-size", svg_chart.SIZE))
        assert svg_chart.MARGIN + width_of(word.text or "", size) <= 400
    heights = [float(word.get("y", 0)) for word in shown]
    assert heights == sorted(set(heights)), "one below the other"


@pytest.mark.parametrize("text", [LONG, "a", "", "x" * 99, "one two  three"])
@pytest.mark.parametrize("width", [5, 40, 200])
def test_wrapped_lines_lose_nothing(text: str, width: float) -> None:
    lines = wrapped(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) == 1 or width_of(line) <= width for line in lines if line)


def test_every_word_of_a_chart_lies_on_the_sheet() -> None:
    text = chart()
    height = float(ET.fromstring(text).get("height", 0))
    for word in words(text):
        x, y = float(word.get("x", 0)), float(word.get("y", 0))
        wide = width_of(word.text or "", float(word.get("font-size", svg_chart.SIZE)))
        assert 0 <= y <= height
        if word.get("transform") is None:
            left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[word.get("text-anchor", "")]
            assert left >= 0
            assert left + wide <= 400


def test_numbers_can_be_read_on_every_grey() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for percent in range(101):
        dark, bright = sorted(map(light, grey(percent / 100)))
        assert (bright + 0.05) / (dark + 0.05) >= 3.4


def test_a_png_is_the_same_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sheet, height = drawn(("$x^2$",))
    sheet.add(Word(10, 10, "turned", turn=-45))
    data = sheet.png(height)
    vector, raster = sheet.save(tmp_path / "x.svg", height, png=True)
    assert (vector.read_bytes(), raster.read_bytes()) == (sheet.svg(height).encode(), data)
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 400 * svg_chart.PNG_SCALE


def test_a_png_is_refused_at_once_where_it_cannot_be_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = arguments.parser("x", "")
    arguments.add_png(parser)
    assert not parser.parse_args([]).png
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--png"])
    assert ended.value.code == 2
    assert (
        "--png: a PNG needs matplotlib, which is not installed: pip install 'hnefi[plots]'"
        in capsys.readouterr().err
    )


@pytest.fixture
def _our_own_signals() -> Iterator[None]:
    """Commands give signals back to the system; this process wants its own way again."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_our_own_signals")
@pytest.mark.parametrize(
    "words",
    [
        "balance brandubh --png --out made",
        "balance report made --png",
        "experiments hingston --quick --png --out made",
        "arena report made --plots",
        "bench search --chart x.png",
    ],
)
def test_what_cannot_be_drawn_is_said_before_anything_is_done(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "made").mkdir()
    try:
        status: object = cli.main(words.split())
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    said = capsys.readouterr()
    assert "matplotlib" in said.err
    assert said.out == ""
    assert list((tmp_path / "made").iterdir()) == []


@pytest.mark.process
def test_drawing_loads_nothing_heavy() -> None:
    code = (
        "import sys; from hnefi.tools.common import svg_chart as s; s.Sheet(100, ('t',)).svg(50); "
        "sys.exit([m for m in ('numpy', 'matplotlib', 'numba') if m in sys.modules] or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
