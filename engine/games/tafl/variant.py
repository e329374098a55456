"""Variants: a rule set, a start position and a name, each one TOML file in `variants/`.

    name = "brandubh"
    aliases = []
    source = "where the rules come from, and what is disputed"
    description = "One sentence."
    start = [           # top rank first; or one string with the rows joined by /
        "3t3", "3t3", "3T3", "ttTKTtt", "3T3", "3t3", "3t3",
    ]
    [rules]             # only the switches that differ from their defaults
    king_sides = 2

The size of the board is that of `start`. Files of the same form anywhere else may be added by path; they never
replace a shipped name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from ... import catalogue
from ...regular import open_regular
from ...sides import Side
from ...wording import nearest, shorten
from ..base_variant import UnknownVariant, VariantError, rules_hash
from .fen import Setup, SetupError, check_setup, format_fen, rows_to_pieces, split_rows
from .rules import SWITCH, Rules
from .switches import RulesError, SwitchValue

_NAME_LIMIT = 64
_FILE_LIMIT = 64 * 1024
_FILES_LIMIT = 1000
_KEYS = ("name", "aliases", "source", "description", "start", "rules")


__all__ = [
    "Variant",
    "VariantError",
    "as_toml",
    "as_words",
    "everything",
    "find",
    "from_words",
    "is_name",
    "load",
    "names",
    "parse",
]


@dataclass(frozen=True)
class Variant:
    """One game of the tafl family: its rules, its start position (exactly one king, side to move set) and what people
    call it.

    `name` is one word of letters, digits and `- _ .`. Raises VariantError if rules and start do not fit together.
    """

    name: str
    aliases: tuple[str, ...]
    rules: Rules
    start: Setup
    source: str = ""
    description: str = ""
    game: ClassVar[str] = "tafl"

    def __post_init__(self) -> None:
        for key, word in (("name", self.name), *(("aliases", alias) for alias in self.aliases)):
            if not is_name(word):
                raise VariantError(
                    f"{shorten(self.name)[1:-1] or 'variant'}: {key}: {shorten(word)}: "
                    f"expected at most {_NAME_LIMIT} letters, digits, - _ or ."
                )
        try:
            check_setup(self.rules, self.start)
        except SetupError as error:
            raise VariantError(f"{self.name}: start: {error}") from None
        if self.start.count("K") != 1:
            raise VariantError(f"{self.name}: start: {'/'.join(self.start.rows)!r}: expected exactly one K")
        if self.start.side != Side.of(self.rules.first):
            raise VariantError(
                f"{self.name}: start: {format_fen(self.start)!r}: expected {self.rules.first} to move"
            )

    @classmethod
    def build(
        cls,
        name: str,
        start: str | Sequence[str],
        switches: Mapping[str, SwitchValue] | None = None,
        *,
        aliases: Iterable[str] = (),
        source: str = "",
        description: str = "",
    ) -> Variant:
        """A variant from rows (top rank first, or joined by `/`) and the switches that differ from their defaults."""
        try:
            size, pieces = rows_to_pieces(split_rows(start) if isinstance(start, str) else start)
        except SetupError as error:
            raise VariantError(f"{name}: start: {error}") from None
        try:
            rules = Rules.from_mapping(switches or {}, size)
        except RulesError as error:
            raise VariantError(f"{name}: {error}") from None
        return cls(
            name, tuple(aliases), rules, Setup(size, pieces, Side.of(rules.first)), source, description
        )

    def with_switches(self, **switches: SwitchValue) -> Variant:
        """The same game with some switches changed; VariantError if they are wrong."""
        try:
            rules = self.rules.replace(**switches)
        except RulesError as error:
            raise VariantError(f"{self.name}: {error}") from None
        return replace(self, rules=rules, start=replace(self.start, side=Side.of(rules.first)))

    @property
    def size(self) -> int:
        """The number of files, and of ranks."""
        return self.rules.size

    @property
    def files(self) -> int:
        """Columns of the board."""
        return self.rules.size

    @property
    def ranks(self) -> int:
        """Rows of the board."""
        return self.rules.size

    @property
    def first(self) -> str:
        """The side that makes the first move, `a` or `d`."""
        return self.rules.first

    @cached_property
    def attackers(self) -> int:
        """The number of attackers at the start."""
        return self.start.count("tcnmg")

    @cached_property
    def defenders(self) -> int:
        """The number of defenders at the start, without the king."""
        return self.start.count("TCNMG")

    @property
    def rows(self) -> str:
        """The start position's rows, top rank first, joined by `/`."""
        return "/".join(self.start.rows)

    @cached_property
    def startpos(self) -> str:
        """The start position as a FEN."""
        return format_fen(self.start)

    def rules_lines(self) -> tuple[tuple[str, str], ...]:
        """Every switch with its value as text, in the order of the table of switches."""
        return self.rules.lines()

    @cached_property
    def hash(self) -> str:
        """The rules hash: equal hashes mean the same game, whatever it is called."""
        return rules_hash(self.rules.hashed_lines(), self.rows)


def is_name(word: object) -> bool:
    """Whether `word` can name a variant: one short word that no command or path could take for something else."""
    return (
        isinstance(word, str)
        and 0 < len(word) <= _NAME_LIMIT
        and word.isascii()
        and word.replace("-", "a").replace("_", "a").replace(".", "a").isalnum()
        and word[0].isalnum()
    )


def parse(text: str, where: str, stem: str | None = None) -> Variant:
    """The variant that a TOML text describes; `where` begins every error, `stem` is the name it must have."""
    from ...toml_text import read_toml

    try:
        table = read_toml(text)
    except ValueError as error:
        raise VariantError(f"{where}: {error}") from None
    for key, value in table.items():
        if key not in _KEYS:
            raise VariantError(
                f"{where}: {shorten(key)[1:-1]}: {shorten(value)}: "
                f"expected one of {', '.join(_KEYS)}{nearest(key, _KEYS)}"
            )
    name = _entry(table, "name", str, where, "a name")
    if stem is not None and name != stem:
        raise VariantError(f"{where}: name: {shorten(name)}: expected {stem!r}, the name of the file")
    aliases = _entry(table, "aliases", list, where, "a list of names", [])
    start = table.get("start")
    if not (
        isinstance(start, str) or (isinstance(start, list) and all(isinstance(row, str) for row in start))
    ):
        raise VariantError(
            f"{where}: start: {shorten(start)}: expected rows joined by / or a list of rows, top first"
        )
    switches = _entry(table, "rules", dict, where, "a table of switches", {})
    source = _entry(table, "source", str, where, "text", "")
    description = _entry(table, "description", str, where, "text", "")
    if not is_name(name) or not all(is_name(alias) for alias in aliases):
        raise VariantError(
            f"{where}: name and aliases: {shorten([name, *aliases])}: expected letters, digits, - _ or ., "
            f"at most {_NAME_LIMIT} each"
        )
    try:
        return Variant.build(name, start, switches, aliases=aliases, source=source, description=description)
    except VariantError as error:
        raise VariantError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from None


def as_toml(variant: Variant) -> str:
    """The variant as the text of its file, which `parse` reads."""

    def text(value: str) -> str:
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    rows = "".join(f"    {text(row)},\n" for row in variant.start.rows)
    head = {"source": variant.source, "description": variant.description}
    return (
        f"name = {text(variant.name)}\n"
        + (f"aliases = [{', '.join(map(text, variant.aliases))}]\n" if variant.aliases else "")
        + "".join(f"{key} = {text(value)}\n" for key, value in head.items() if value)
        + f"start = [\n{rows}]\n\n[rules]\n"
        + "".join(f"{name} = {text(value)}\n" for name, value in variant.rules.changes().items())
    )


def from_words(text: str) -> Variant:
    """The variant that one line of `name=…`, `start=…` and `switch=value` describes, as `as_words` writes it."""
    values: dict[str, str] = {}
    for word in text.split():
        key, sign, value = word.partition("=")
        if not sign or key in values or not (key in SWITCH or key in ("name", "start")):
            what = (
                "each switch once"
                if key in values
                else f"name=…, start=… or switch=value{nearest(key, SWITCH)}"
            )
            raise VariantError(f"{shorten(word)}: expected {what}")
        values[key] = value
    if "start" not in values:
        raise VariantError("start: expected start=ROWS, the rows joined by /")
    return Variant.build(values.pop("name", "custom"), values.pop("start"), values)


def as_words(variant: Variant) -> str:
    """A variant in one line without blanks in its values; aliases, source and description are left out."""
    changes = {name: text.replace(" ", ",") for name, text in variant.rules.changes().items()}
    return " ".join(
        f"{key}={text}" for key, text in {"name": variant.name, "start": variant.rows, **changes}.items()
    )


def _entry(table: Mapping[str, Any], key: str, kind: type, where: str, what: str, default: Any = None) -> Any:
    value = table.get(key, default)
    if not isinstance(value, kind):
        raise VariantError(f"{where}: {key}: {shorten(value)}: expected {what}")
    return value


def load(path: str | os.PathLike[str]) -> Variant:
    """The variant in a TOML file, whose name must be the file's; VariantError if it cannot be read."""
    file = Path(path)
    try:
        with open_regular(file) as stream:
            data = stream.read(_FILE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise VariantError(
            f"{file}: {getattr(error, 'strerror', None) or error}: expected a readable file"
        ) from None
    if len(data) > _FILE_LIMIT:
        raise VariantError(f"{file}: expected at most {_FILE_LIMIT} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise VariantError(f"{file}: byte {error.start}: expected UTF-8") from None
    return parse(text, str(file), file.name.removesuffix(catalogue.SUFFIX))


@cache
def _shipped(name: str) -> Variant:
    return load(Path(catalogue.FOLDER, name + catalogue.SUFFIX))


def _added(path: str | os.PathLike[str] | None) -> dict[str, Path]:
    """The variant files that `path`, a file or a folder, adds: name to file; VariantError if a name is taken."""
    if not path:
        return {}
    where = Path(path)
    shown = shorten(str(where))[1:-1]
    try:
        if where.is_dir():
            found = {stem: where / (stem + catalogue.SUFFIX) for stem in catalogue.stems(str(where))}
        elif where.is_file():
            found = {where.name.removesuffix(catalogue.SUFFIX): where}
        else:
            raise VariantError(f"{shown}: no such file or folder: expected variant files")
        if len(found) > _FILES_LIMIT:
            raise VariantError(f"{shown}: {len(found)} variants: expected at most {_FILES_LIMIT}")
        shipped = catalogue.names()
        for stem, file in found.items():
            if stem.lower() in catalogue.SIZED:
                raise VariantError(f"{file}: name: {stem!r}: expected a name that no other game has")
            if stem.lower() in shipped and not file.samefile(Path(catalogue.FOLDER, stem + catalogue.SUFFIX)):
                raise VariantError(f"{file}: name: {stem!r}: expected a name that no shipped variant has")
    except OSError as error:
        raise VariantError(f"{shown}: {error.strerror or error}: expected readable variant files") from None
    return found


def names(path: str | os.PathLike[str] | None = None) -> list[str]:
    """The names of all variants, the default first, then the rest in alphabetical order; parses no file."""
    shipped = catalogue.names()
    return shipped + [name for name in _added(path) if name not in shipped]


def find(name: str, path: str | os.PathLike[str] | None = None, others: Iterable[str] = ()) -> Variant:
    """The variant of this name or alias, in any case, shipped or added by `path`; VariantError if there is none.

    `others` are names that mean something elsewhere, which the error may suggest.
    """
    wanted = name.lower()
    added = _added(path)
    if wanted in catalogue.names():
        return _shipped(wanted)
    for stem, file in added.items():
        if stem.lower() == wanted:
            return _checked(load(file), file)
    matches = [variant for variant in everything(path) if wanted in map(str.lower, variant.aliases)]
    if len(matches) > 1:
        raise VariantError(
            f"{shorten(name)}: expected one variant, but {matches[0].name} and {matches[1].name} have this alias"
        )
    if not matches:
        known = [word for variant in everything(path) for word in (variant.name, *variant.aliases)]
        known += others
        near = nearest(name, known)
        hint = near or " (`variants` lists them)"
        raise UnknownVariant(f"{shorten(name)}: expected the name of a variant{hint}", near)
    return matches[0]


def everything(path: str | os.PathLike[str] | None = None) -> list[Variant]:
    """Every variant in the order of `names`; VariantError at the first file that cannot be read."""
    found = [_shipped(name) for name in catalogue.names()]
    taken = {variant.name for variant in found}
    return found + [_checked(load(file), file) for stem, file in _added(path).items() if stem not in taken]


def _checked(variant: Variant, file: Path) -> Variant:
    """`variant`, unless one of its names is the name of a shipped one."""
    shipped = set(catalogue.names())
    for alias in variant.aliases:
        if alias.lower() in shipped:
            raise VariantError(f"{file}: aliases: {alias!r}: expected a name that no shipped variant has")
    return variant
