"""A report as one HTML file: no network, no third-party script; only our own few lines of script can run.

    page = Page("cup", ["mine – simple", "12 games"])
    page.section("Standings", table(("engine", "score"), [("mine", "58.3")]))
    durable.put(path, page.render())

All text is escaped when it is added, and only this module's functions return `Markup`. A Content-Security-Policy allows
the one style sheet and the one script by their hashes and forbids everything else, so that even a name that slipped
through unescaped could not run. The same page gives the same bytes.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from hnefi.engine.about import NAME, VERSION
from hnefi.protocol.hosts.text_table import safe

from .svg_chart import steps

_LOOK, _SCRIPT = "html_page.css", "html_page.js"
_TENTHS = 10


class Markup(str):
    """Text that is already HTML; all other text is escaped."""

    __slots__ = ()


def escaped(value: object) -> str:
    """A value as HTML: markup unchanged, anything else as its text with only harmless characters."""
    return value if isinstance(value, Markup) else html.escape(safe(str(value)))


def element(name: str, *inside: object, **attributes: object) -> Markup:
    """An element with children; `_` in names of attributes becomes `-`, and a trailing `_` is dropped."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(safe(str(value)))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{said}>{''.join(map(escaped, inside))}</{name}>")


def paragraph(text: object, kind: str = "") -> Markup:
    """A paragraph; `kind` is its class."""
    return element("p", text, class_=kind) if kind else element("p", text)


def bullets(items: Iterable[object]) -> Markup:
    """A list."""
    return element("ul", *(element("li", item) for item in items))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, left: Sequence[int] = (0,)) -> Markup:
    """A table that scrolls on its own if the screen is too narrow. Columns in `left` are aligned left; the first of
    them stays visible."""
    kept = min(left, default=-1)

    def cell(kind: str, at: int, value: object) -> Markup:
        words = [word for word, wanted in (("text", at in left), ("kept", at == kept)) if wanted]
        if isinstance(value, Tinted):
            words.append(f"tenth{value.tenth}")
        return element(kind, value.text if isinstance(value, Tinted) else value, **_classes(words))

    return element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(cell("th", at, value) for at, value in enumerate(head)))),
            element(
                "tbody",
                *(element("tr", *(cell("td", at, value) for at, value in enumerate(row))) for row in rows),
            ),
        ),
        class_="wide",
        tabindex=0,
    )


def _classes(words: Sequence[str]) -> dict[str, str]:
    return {"class_": " ".join(words)} if words else {}


@dataclass(frozen=True, slots=True)
class Tinted:
    """A cell of a table with a background that is stronger for larger shares, from 0 to 1."""

    text: str
    share: float

    @property
    def tenth(self) -> int:
        """The share in tenths, 0 to 10; the style sheet has a class for each."""
        return round(_TENTHS * min(1.0, max(0.0, self.share)))


@dataclass(frozen=True, slots=True)
class Bar:
    """A number with its interval (None if unknown) and its text."""

    name: str
    value: float
    low: float | None
    high: float | None
    said: str


def intervals(bars: Sequence[Bar], unit: str, *, level: float | None = None) -> Markup:
    """Numbers with error bars below each other on one axis; `level` is a reference line.

    Drawn in percentages of the width instead of the units of a picture, so that text keeps its size on a phone.
    """
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high, level) if end is not None]
    low, high = min(ends), max(ends)
    pad = 0.06 * (high - low) or 10.0
    low, high = low - pad, high + pad

    def at(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    marks = steps(low, high, 5)
    grid = [_line(at(mark), at(mark), "0", "100%", "rule") for mark in marks]
    if level is not None:
        grid.append(_line(at(level), at(level), "0", "100%", "level"))
    rows = []
    for bar in bars:
        drawn = list(grid)
        if bar.low is not None and bar.high is not None:
            drawn.append(_line(at(bar.low), at(bar.high), "50%", "50%", "reach"))
            drawn += [_line(at(end), at(end), "25%", "75%", "reach") for end in (bar.low, bar.high)]
        drawn.append(element("circle", cx=at(bar.value), cy="50%", r=5))
        names = element("span", bar.name, class_="name") + element("span", bar.said, class_="said")
        rows.append(
            element("div", Markup(names), element("svg", *drawn, aria_hidden="true"), class_="interval")
        )
    words = [
        element("text", f"{mark:g}", x=at(mark), y=14, text_anchor="middle")
        for mark in marks
        if 4 < 100 * (mark - low) / (high - low) < 96
    ]
    rows.append(element("div", element("svg", *words, aria_hidden="true"), class_="axis"))
    return element("figure", *rows, element("figcaption", unit))


def _line(left: str, right: str, top: str, bottom: str, kind: str) -> Markup:
    return element("line", x1=left, x2=right, y1=top, y2=bottom, class_=kind)


def chart(svg: str, *, shaded: bool = False) -> Markup:
    """A drawing of `svg_chart`. Its colours follow the page's theme unless its cells are `shaded`: then it keeps its
    white paper."""
    kind = "chart shaded" if shaded else "chart"
    return element("figure", Markup(svg.strip()), class_=kind, tabindex=0)


_BOLD: Final = re.compile(r"\*\*(.+?)\*\*|`(.+?)`")
_PICTURE: Final = re.compile(r"!\[([^\]]*)\]\([^)]*\)")


def from_markdown(lines: Iterable[str], charts: Mapping[str, Markup]) -> Iterator[tuple[str, list[Markup]]]:
    """Our own Markdown reports as sections: heading (empty before the first one) and blocks.

    Handles headings, tables, bullets, fenced blocks, paragraphs, and pictures, which are looked up in `charts` by name;
    a picture that is not there is left out.
    """
    heading, blocks = "", list[Markup]()
    part: list[str] = []

    def finish() -> None:
        if part:
            blocks.append(_block(part))
            part.clear()

    fenced = False
    for line in lines:
        picture = _PICTURE.fullmatch(line)
        if fenced or line.startswith("```"):
            if not fenced:
                finish()
            part.append(line)
            fenced = not line.startswith("```") if len(part) > 1 else True
            if not fenced:
                finish()
        elif line.startswith("#"):
            finish()
            if heading or blocks:
                yield heading, blocks
            heading, blocks = line.lstrip("# "), []
        elif picture is not None:
            finish()
            if picture[1] in charts:
                blocks.append(charts[picture[1]])
        elif not line:
            finish()
        else:
            if part and (line[0] == "|") != (part[-1][0] == "|"):
                finish()
            part.append(line)
    finish()
    if heading or blocks:
        yield heading, blocks


def _block(lines: Sequence[str]) -> Markup:
    if lines[0].startswith("```"):
        return element(
            "pre", Markup("\n".join(escaped(line) for line in lines if not line.startswith("```")))
        )
    if lines[0].startswith("|"):
        rows = [[_inline(cell.strip()) for cell in line.strip("|").split("|")] for line in lines]
        worded = [at for at in range(len(rows[0])) if any(_is_word(row[at]) for row in rows[2:])]
        return table(rows[0], rows[2:], left=worded)
    if lines[0].startswith("- "):
        return bullets(_inline(line[2:]) for line in lines)
    return paragraph(_inline(" ".join(lines)))


def _is_word(cell: str) -> bool:
    """Whether a cell holds words rather than a number."""
    return cell[:1].isalpha() or cell.startswith("<")


def _inline(text: str) -> Markup:
    """Bold words and code; everything else is text."""
    made, place = "", 0
    for found in _BOLD.finditer(text):
        made += escaped(text[place : found.start()])
        made += element("strong", found[1]) if found[1] else element("code", found[2])
        place = found.end()
    return Markup(made + escaped(text[place:]))


class Page:
    """A page: a title, what it is about, sections one after another, and data for the script."""

    def __init__(self, title: str, about: Iterable[object] = ()) -> None:
        self._title = title
        self._about = [element("p", line) for line in about if line]
        self._sections: list[Markup] = []
        self._data: list[Markup] = []

    def section(self, heading: str, *blocks: Markup) -> None:
        """A section with its heading; nothing without blocks."""
        if blocks:
            head = [element("h2", heading)] if heading else []
            self._sections.append(element("section", *head, *blocks))

    def data(self, name: str, document: Any) -> None:
        """A value that the script finds as JSON under `name`."""
        text = json.dumps(document, separators=(",", ":"))
        for sign in "<>&":
            # So that no name can close the script element that contains it.
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        self._data.append(element("script", Markup(text), type="application/json", id=name))

    def render(self) -> bytes:
        """The file."""
        look, script = (files(__package__).joinpath(name).read_text("utf-8") for name in (_LOOK, _SCRIPT))
        script = script if self._data else ""
        allowed = _hash(script) if script else "'none'"
        policy = (
            f"default-src 'none'; style-src {_hash(look)}; script-src {allowed};"
            " base-uri 'none'; form-action 'none'"
        )
        title = html.escape(safe(self._title))
        lines = [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{title}</title>",
            f"<style>{look}</style>",
            "</head>",
            "<body>",
            element("header", element("h1", self._title), *self._about),
            element("main", *self._sections),
            element("footer", paragraph(f"{NAME} {VERSION}")),
            *self._data,
            *([f"<script>{script}</script>"] if script else []),
            "</body>",
            "</html>",
            "",
        ]
        return "\n".join(lines).encode("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
