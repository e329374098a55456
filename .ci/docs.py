"""What the documentation site has beside docs/: hooks of mkdocs (mkdocs.yml).

- The entries by reader and the order of the pages come from the headings and tables of docs/README.md.
- Documents outside docs/ (README.md, protocol/PROTOCOL.md, ...) become pages too; a file that a page links to travels
  along under files/.
- Each command gets a page with its `--help` and that of its verbs, each variant one with its board and its rules.

Anything that does not fit is a warning, and `strict` in mkdocs.yml makes each warning an error.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import io
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant

    # mkdocs calls the hooks; only their names are needed here.
    Config = Any
    Files = Any
    Page = Any

ROOT: Final = Path(__file__).resolve().parent.parent
BY_READER: Final = "docs/README.md"
HOME: Final = "README.md"
OUTSIDE: Final = {
    "index.md": HOME,
    "protocol.md": "protocol/PROTOCOL.md",
    "engine.md": "engine/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "measurements.md": "MEASUREMENTS.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
"""Pages of the site that lie outside docs/ in the repository; docs/README.md is spread over its sections."""
VARIANTS: Final = "engine/variants"
HELP_COLUMNS: Final = "80"
LINK: Final = re.compile(r"(\]\()([^)\s]+)(\))")
NAMED: Final = re.compile(r"\[([\w/.-]+\.md)\]\(([^)#\s]+)\)")
FENCE: Final = re.compile(r"^(```.*?^```$)", re.DOTALL | re.MULTILINE)
STYLE: Final = """
.boards { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: 1rem; }
.boards figure { margin: 0; width: 100%; text-align: center; }
.boards img { width: 100%; }
.md-grid { max-width: 76rem; }
.md-typeset img { background: white; }
.md-typeset table:not([class]) td { min-width: 5em; }
.md-typeset thead:not(:has(th:not(:empty))) { display: none; }
"""


# Hooks of mkdocs


def on_config(config: Config) -> Config:
    """The order of the pages: an entry for each reader, then the commands, then the rules."""
    nav: list[Any] = [{"Start": "index.md"}]
    for section in sections():
        pages = [page_of(target) for target in section.targets]
        nav.append({section.title: [section.page, *(page for page in pages if page is not None)]})
    verbs = [f"commands/{command}.md" for command in commands()]
    boards = [f"rules/{slug(variant.name)}.md" for variant in variants()]
    nav.append({"Commands": ["commands/index.md", *verbs]})
    nav.append({"Rules": ["rules/index.md", *boards]})
    nav.append({"Releases": ["changelog.md", "security.md"]})
    config.nav = nav
    return config


def on_files(files: Files, config: Config) -> Files:
    """Add the pages that are made here, and the files outside docs/ that a page links to."""
    from mkdocs.structure.files import File

    def add(uri: str, content: str | bytes) -> None:
        files.append(File.generated(config, uri, content=content))

    files.remove(files.get_file_from_path("README.md"))
    for uri, source in OUTSIDE.items():
        add(uri, (ROOT / source).read_text("utf-8"))
    for section in sections():
        add(section.page, section.text)
    for made in (command_pages(), variant_pages()):
        for uri, text in made:
            add(uri, text)
    add("site.css", STYLE)
    for source in sorted(carried()):
        add(f"files/{source}", (ROOT / source).read_bytes())
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Lead the links of a document to the pages of the site."""
    uri = page.file.src_uri
    parts = FENCE.split(markdown)
    parts[::2] = [
        LINK.sub(lambda found: found[1] + relinked(found[2], uri) + found[3], part) for part in parts[::2]
    ]
    # Lists of documents name files, for readers of the repository; here they name pages.
    return re.sub(
        r"^\|.*",
        lambda row: NAMED.sub(lambda found: f"[{title_of(found[2], uri) or found[1]}]({found[2]})", row[0]),
        "".join(parts),
        flags=re.MULTILINE,
    )


def on_post_build(config: Config) -> None:
    """Look through what was built: a page that would ask another host for something ends the build."""
    from mkdocs.exceptions import Abort

    asked = list(foreign(Path(config.site_dir)))
    if asked:
        raise Abort("a page would ask another host: " + "; ".join(asked[:5]))


# Where things lie


def source_of(uri: str) -> str:
    """The document that a page of the site is made of."""
    if uri in OUTSIDE:
        return OUTSIDE[uri]
    return BY_READER if any(uri == section.page for section in sections()) else f"docs/{uri}"


def page_of(source: str) -> str | None:
    """The page of the site that a file of the repository is; None where it is none."""
    for uri, outside in OUTSIDE.items():
        if source == outside:
            return uri
    if source == VARIANTS:
        return "rules/index.md"
    if source == BY_READER:
        return "index.md"
    return source.removeprefix("docs/") if source.startswith("docs/") else None


def relinked(target: str, uri: str) -> str:
    """A link of the page `uri`, as the site needs it."""
    if urlsplit(target).scheme or target.startswith("#") or uri.startswith(("commands/", "rules/")):
        return target
    path, hash_, anchor = target.partition("#")
    source = posixpath.normpath(posixpath.join(posixpath.dirname(source_of(uri)), path))
    page = page_of(source) or f"files/{source}"
    return posixpath.relpath(page, posixpath.dirname(uri) or ".") + hash_ + anchor


def title_of(target: str, uri: str) -> str | None:
    """The first heading of the document that a link of the site leads to."""
    source = source_of(posixpath.normpath(posixpath.join(posixpath.dirname(uri), target)))
    if not (ROOT / source).is_file():
        return None
    return next(
        (line[2:] for line in (ROOT / source).read_text("utf-8").splitlines() if line.startswith("# ")), None
    )


def carried() -> set[str]:
    """Files outside docs/ that some document links to and that are no pages."""
    found = set()
    for document in [*(ROOT / "docs").rglob("*.md"), *(ROOT / source for source in OUTSIDE.values())]:
        here = document.relative_to(ROOT).as_posix()
        for part in FENCE.split(document.read_text("utf-8"))[::2]:
            for _, target, _ in LINK.findall(part):
                path = target.partition("#")[0]
                if not path or urlsplit(target).scheme:
                    continue
                source = posixpath.normpath(posixpath.join(posixpath.dirname(here), path))
                if page_of(source) is None and (ROOT / source).is_file():
                    found.add(source)
    return found


# Entries by reader


class Section:
    """A heading of docs/README.md with what stands below it."""

    def __init__(self, title: str, body: str) -> None:
        self.title = title
        self.page = f"{slug(title)}/index.md"
        self.text = f"# {title}\n{body}"
        found = (
            posixpath.normpath(f"docs/{target.partition('#')[0]}") for _, target, _ in LINK.findall(body)
        )
        self.targets = list(dict.fromkeys(target for target in found if target.endswith(".md")))


def sections() -> list[Section]:
    """The readers, in the order of docs/README.md; a document that two want stands with the first."""
    _, *parts = re.split(r"^## (.+)$", (ROOT / BY_READER).read_text("utf-8"), flags=re.MULTILINE)
    made = [Section(title, body) for title, body in zip(parts[::2], parts[1::2], strict=True)]
    seen: set[str] = set()
    for section in made:
        section.targets = [target for target in section.targets if target not in seen]
        seen.update(section.targets)
    return made


def slug(title: str) -> str:
    """A title as part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


# Commands


def commands() -> dict[str, str]:
    """The subcommands with a sentence each."""
    from hnefi.tools.cli import COMMANDS

    return {name: sentence for name, (_, sentence) in COMMANDS.items()}


def help_of(words: list[str]) -> tuple[str, list[str]]:
    """What `hnefi WORDS --help` prints for a user who has set nothing, and words that may be verbs."""
    from hnefi.protocol.flags import Parser
    from hnefi.tools.cli import main
    from hnefi.tools.completion import verbs

    asked: list[argparse.ArgumentParser] = []
    said = io.StringIO()
    before = dict(os.environ)
    os.environ.update(COLUMNS=HELP_COLUMNS, XDG_CONFIG_HOME="~/.config", XDG_DATA_HOME="~/.local/share")
    Parser.ask_instead = asked.append
    try:
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        Parser.ask_instead = None
        os.environ.clear()
        os.environ.update(before)
    text = said.getvalue().rstrip("\n")
    prog = f"hnefi {' '.join(words)}"
    found = verbs(prog, text) + re.findall(rf"^  {prog} ([a-z][a-z-]*)", text, re.MULTILINE)
    for parser in asked:
        if parser.prog == prog:
            words_of = (
                action.choices for action in parser._actions if not action.option_strings and action.choices
            )
            found += [str(verb) for choices in words_of for verb in choices]
    return text, list(dict.fromkeys(found))


def command_pages() -> Iterator[tuple[str, str]]:
    """The address and the text of each command's page, and of their list."""
    rows = [f"| [`hnefi {name}`]({name}.md) | {sentence} |" for name, sentence in commands().items()]
    yield "commands/index.md", "\n".join(["# Commands", "", "| command | |", "|---|---|", *rows, ""])
    for name, sentence in commands().items():
        lines = [f"# hnefi {name}", "", f"{sentence[0].upper()}{sentence[1:]}.", ""]
        for words, text in helps([name]):
            if len(words) > 1:
                lines += [f"## hnefi {' '.join(words)}", ""]
            lines += ["```text", text, "```", ""]
        yield f"commands/{name}.md", "\n".join(lines)


def helps(words: list[str]) -> Iterator[tuple[list[str], str]]:
    """The help of a command, then that of each of its verbs that has one of its own."""
    text, verbs = help_of(words)
    yield words, text
    for verb in verbs:
        if help_of([*words, verb])[0].startswith(f"usage: hnefi {' '.join([*words, verb])} "):
            yield from helps([*words, verb])


# Variants


def variants() -> list[AnyVariant]:
    """All of them, small boards first, other games last."""
    from hnefi.engine.games import everything

    return sorted(everything(None), key=lambda found: (found.game != "tafl", found.files))


def variant_pages() -> Iterator[tuple[str, str]]:
    """The address and the text of each variant's page, of its board, and of the list of all."""
    from hnefi.engine import games
    from hnefi.engine.games.tafl.explain import explain
    from hnefi.engine.games.tafl.otn import export_rules
    from hnefi.engine.games.tafl.variant import Variant
    from hnefi.engine.svg import svg

    boards: dict[str, list[str]] = {}
    for variant in variants():
        name = slug(variant.name)
        kind = f"{variant.files} x {variant.ranks}" + ("" if variant.game == "tafl" else f", {variant.game}")
        if not isinstance(variant, Variant):
            board = ["```text", games.initial(variant).diagram(), "```"]
            switches = [f"| {name} | {value} |" for name, value in variant.rules_lines()]
            lines = [
                f"# {variant.name}",
                "",
                *board,
                "",
                plain(variant.description),
                "",
                "| | |",
                "|---|---|",
                *switches,
                "",
            ]
            yield f"rules/{name}.md", "\n".join(lines)
            boards.setdefault(kind, []).append(f'<figure><a href="{name}.html">{variant.name}</a></figure>')
            continue
        yield (
            f"rules/{name}.svg",
            svg(variant.rules, dict(variant.start.pieces), title=f"{variant.name}: start"),
        )
        boards.setdefault(kind, []).append(
            f'<figure><a href="{name}.html"><img src="{name}.svg" alt="the start of {variant.name}" loading="lazy">'
            f"<br>{variant.name}</a></figure>"
        )
        lines = [f"# {variant.name}", ""]
        if variant.aliases:
            lines += [f"Also called {', '.join(f'`{alias}`' for alias in variant.aliases)}.", ""]
        lines += [f'![The start position of {variant.name}]({name}.svg){{ width="420" }}', ""]
        lines += [f"- {plain(sentence)}" for sentence in explain(variant)]
        lines += ["", f"Play it: `hnefi play --variant {variant.name}`.", ""]
        if variant.source:
            lines += ["## Where the rules come from", "", plain(variant.source), ""]
        text, lost = export_rules(variant)
        lines += ["## For programs", "", "| | |", "|---|---|", f"| rules hash | `{variant.hash}` |"]
        lines += [f"| start position | `{variant.startpos}` |", f"| OTN | `{text}` |"]
        lines += [f"| not said by OTN | {' '.join(f'`{word}`' for word in lost)} |"] if lost else []
        toml = f"{VARIANTS}/{variant.name}.toml"
        yield f"rules/{name}.toml", (ROOT / toml).read_text("utf-8")
        lines += [f"| file | [{variant.name}.toml]({name}.toml) |", ""]
        yield f"rules/{name}.md", "\n".join(lines)
    lines = [
        "# Rules of all variants",
        "",
        "Each board leads to its rules; [variants](../variants.md) tells families apart.",
    ]
    for kind, figures in boards.items():
        lines += ["", f"## {kind}", "", '<div class="boards">', *figures, "</div>"]
    yield "rules/index.md", "\n".join([*lines, ""])


def plain(text: str) -> str:
    """Text in which no character is Markdown."""
    return html.escape(re.sub(r"([\\`*_\[\]|])", r"\\\1", text), quote=False)


# What was built


def foreign(site: Path) -> Iterator[str]:
    """Everything in the built pages that a browser would fetch from another host by itself."""
    fetched = re.compile(
        r"""<(?:script|img|iframe|source|audio|video|embed|input)\b[^>]*?\ssrc=["']?((?:https?:)?//[^\s"'>]+)"""
        r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*?\shref=["']?((?:https?:)?//[^\s"'>]+)"""
        r"""|(?:@import\s+|url\()["']?((?:https?:)?//[^\s"')]+)""",
        re.IGNORECASE,
    )
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".css"):
            for found in fetched.finditer(file.read_text("utf-8")):
                yield f"{file.relative_to(site)}: {next(filter(None, found.groups()))}"
