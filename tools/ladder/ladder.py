"""A ladder as data: the fixed players that are its rungs, the variants, and the openings.

    name = "ladder-2026.3"
    variants = ["brandubh", "copenhagen"]
    pairs = 100                  # pairs of games of neighbours, for each variant
    others = 5                   # pairs of games of any other two rungs
    max_plies = 300              # a longer game is a draw
    openings = "openings-2026.1.jsonl"

    [anchor]
    name = "simple"
    elo = 1000

    [model]                      # how ratings are fitted (`tools/common/rating.py`); optional
    slope = true                 # the advantage of a side depends on strength
    prior = 1.0                  # virtual draws of each player ...
    prior_against = "met"        # ... against those that it met, or against the mean

    [[rung]]                     # from the weakest to the strongest
    player = "simple"            # a shipped player; name = "..." to give it another name
    [[rung]]
    name = "default-400"
    player = "default"
    nodes = 400                  # nodes or depth, never time; the player's own limits also apply
    options = { Evaluator = "default-2026.1", Features = "default-2026.1", Hash = 4 }

Everything else that affects play is frozen beside this file, in `NAME.frozen.json` (`frozen`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hnefi.engine.regular import read_regular

from ..common.rating import Model

FOLDER = Path(__file__).parent
SUFFIX = ".toml"
CURRENT = "ladder-2026.3"
_KEYS = ("name", "variants", "pairs", "others", "max_plies", "openings", "anchor", "model", "rung")
_MODEL = ("slope", "prior", "prior_against")
_RUNG = ("name", "player", "nodes", "depth", "options")
_LIMIT = 10**9
MOST_PRIOR = 100
UNLIMITED = _LIMIT
"""A number of nodes that is no limit, for players whose own limits end every move."""


class LadderError(ValueError):
    """A ladder, a pool or a player is unusable; the message says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class LimitedPlayer:
    """A named player with its limits (nodes or depth) and options."""

    name: str
    player: str
    nodes: int | None = None
    depth: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def engine(self) -> dict[str, Any]:
        """The arena's table for this engine."""
        limits = {key: value for key in ("nodes", "depth") if (value := getattr(self, key)) is not None}
        return {"name": self.name, "player": self.player, "options": dict(self.options), **limits}


@dataclass(frozen=True, slots=True)
class Ladder:
    """A ladder. `rungs` go from the weakest to the strongest; `anchor` is a rung and its rating, `model` says how
    ratings are fitted; `file` contains all this."""

    name: str
    variants: tuple[str, ...]
    rungs: tuple[LimitedPlayer, ...]
    pairs: int
    others: int
    max_plies: int
    anchor: tuple[str, float]
    model: Model
    openings: Path
    file: Path

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rungs, in their order."""
        return tuple(rung.name for rung in self.rungs)

    def rung(self, name: str) -> LimitedPlayer | None:
        """The rung of that name."""
        return next((rung for rung in self.rungs if rung.name == name), None)


def load(word: str = CURRENT) -> Ladder:
    """The shipped ladder of that name, or the one in a file whose name ends in .toml; LadderError otherwise."""
    if word.endswith(SUFFIX):
        return read(Path(word))
    known = sorted(file.stem for file in FOLDER.glob(f"ladder-*{SUFFIX}"))
    if word not in known:
        raise LadderError(f"no ladder {word[:80]!r}: expected one of {', '.join(known)}, or a .toml file")
    return read(FOLDER / f"{word}{SUFFIX}")


def read(file: Path) -> Ladder:
    """The ladder in a file."""
    from hnefi.engine.games import find
    from hnefi.engine.games.base_variant import VariantError
    from hnefi.engine.toml_text import read_toml

    try:
        table = read_toml(read_regular(file).decode())
    except OSError as error:
        raise LadderError(f"{file}: {error.strerror or error}: expected a readable file") from None
    except ValueError as error:
        raise LadderError(f"{file}: {error}") from None
    _expect_keys(file, table, _KEYS)
    variants = table.get("variants")
    if not (isinstance(variants, list) and variants and all(isinstance(name, str) for name in variants)):
        raise LadderError(f"{file}: variants: {variants!r:.80}: expected names of variants")
    try:
        named = tuple(find(name).name for name in variants)
    except VariantError as error:
        raise LadderError(f"{file}: variants: {error}") from None
    rungs = tuple(
        _rung(file, number, rung) for number, rung in enumerate(_tables(file, table.get("rung")), 1)
    )
    names = [rung.name for rung in rungs]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise LadderError(f"{file}: rung {doubled!r}: expected each name once")
    anchor = table.get("anchor")
    if not (
        isinstance(anchor, dict)
        and set(anchor) == {"name", "elo"}
        and anchor["name"] in names
        and type(anchor["elo"]) in (int, float)
    ):
        raise LadderError(
            f"{file}: anchor: {anchor!r:.80}: expected elo and the name of one of {', '.join(names)}"
        )
    pairs, others = _whole(file, table, "pairs", 1), _whole(file, table, "others", 0)
    if others > pairs:
        raise LadderError(f"{file}: others: {others}: expected at most the {pairs} pairs of neighbours")
    return Ladder(
        name=_text(file, table, "name"),
        variants=named,
        rungs=rungs,
        pairs=pairs,
        others=others,
        max_plies=_whole(file, table, "max_plies", 1),
        anchor=(anchor["name"], float(anchor["elo"])),
        model=_model(file, table.get("model", {}), (anchor["name"], float(anchor["elo"]))),
        openings=file.parent / _text(file, table, "openings"),
        file=file,
    )


def _model(file: Path, table: Any, anchor: tuple[str, float]) -> Model:
    if not isinstance(table, dict):
        raise LadderError(f"{file}: model: {table!r:.80}: expected a table [model]")
    _expect_keys(Path(f"{file}: model"), table, _MODEL)
    found = Model(anchor=anchor, **table)
    if type(found.slope) is not bool:
        raise LadderError(f"{file}: model: slope: {found.slope!r:.80}: expected true or false")
    if type(found.prior) not in (int, float) or not 0 <= found.prior <= MOST_PRIOR:
        raise LadderError(
            f"{file}: model: prior: {found.prior!r:.80}: expected a number from 0 to {MOST_PRIOR}"
        )
    if found.prior_against not in ("mean", "met"):
        raise LadderError(f"{file}: model: prior_against: {found.prior_against!r:.80}: expected mean or met")
    return found


def _expect_keys(file: Path, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key, value in table.items():
        if key not in known:
            raise LadderError(f"{file}: {key}: {value!r:.80}: expected one of {', '.join(known)}")


def _text(file: Path, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise LadderError(f"{file}: {key}: {value!r:.80}: expected text")
    return value


def _whole(file: Path, table: Mapping[str, Any], key: str, low: int) -> int:
    value = table.get(key)
    if type(value) is not int or not low <= value <= _LIMIT:
        raise LadderError(f"{file}: {key}: {value!r:.80}: expected a whole number from {low} on")
    return value


def _tables(file: Path, value: Any) -> list[Mapping[str, Any]]:
    if not (isinstance(value, list) and len(value) > 1 and all(isinstance(rung, dict) for rung in value)):
        raise LadderError(f"{file}: rung: {value!r:.80}: expected at least two tables [[rung]]")
    return value


def _rung(file: Path, number: int, table: Mapping[str, Any]) -> LimitedPlayer:
    where = f"{file}: rung {number}"
    _expect_keys(Path(where), table, _RUNG)
    options = table.get("options", {})
    if not isinstance(options, dict):
        raise LadderError(f"{where}: options: {options!r:.80}: expected a table")
    limits = {key: _whole(Path(where), table, key, 1) if key in table else None for key in ("nodes", "depth")}
    player = _text(Path(where), table, "player")
    name = _text(Path(where), table, "name") if "name" in table else player
    try:
        return limited(name, player, limits, {key: _word(value) for key, value in options.items()})
    except LadderError as error:
        raise LadderError(f"{where}: {error}") from None


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def limited(
    name: str, player: str, limits: Mapping[str, int | None], options: Mapping[str, str]
) -> LimitedPlayer:
    """A player whose moves are all limited by nodes or depth; LadderError if nothing limits them."""
    from hnefi import players

    try:
        known = players.load(player)
    except players.PlayerError as error:
        raise LadderError(str(error)) from None
    nodes, depth = limits.get("nodes"), limits.get("depth")
    own = known.limits
    if nodes is None and depth is None:
        if known.algorithm.startswith("random"):
            nodes = 1
        elif own.depth is not None or own.nodes is not None:
            nodes, depth = own.nodes, own.depth
        elif {"SkillLevel", "UCI_LimitStrength"} & set(options):
            nodes = UNLIMITED
        else:
            raise LadderError(
                f"player {player}: it has no limit: expected nodes or depth, as in {player}:1600"
            )
    if own.movetime is not None:
        raise LadderError(f"player {player}: movetime {own.movetime}: expected fixed nodes or depth")
    return LimitedPlayer(name, player, nodes, depth, dict(options))


def parse_player(word: str, ladder: Ladder) -> LimitedPlayer:
    """The player named by a word: a rung, `PLAYER`, `PLAYER:NODES`, `PLAYER+EVALUATOR:NODES`, `level-N`, `elo-N`.

    LadderError for a player that does not exist, or whose moves have no limit.
    """
    rung = ladder.rung(word)
    if rung is not None:
        return rung
    kind, _, number = word.partition("-")
    if kind in ("level", "elo") and number.isascii() and number.isdigit():
        options = {"SkillLevel": number}
        if kind == "elo":
            options = {"UCI_LimitStrength": "true", "UCI_Elo": number}
        return limited(word, "default", {}, options)
    head, colon, tail = word.rpartition(":")
    player, nodes = (head, tail) if colon else (word, "")
    if colon and not (nodes.isascii() and nodes.isdigit() and 0 < int(nodes) <= _LIMIT):
        raise LadderError(f"{word[:80]!r}: expected PLAYER:NODES")
    # A run's folder stores these words, and a relative path would be resolved there.
    player, plus, evaluator = player.partition("+")
    player = str(Path(player).absolute()) if player.endswith(SUFFIX) else player
    evaluator = str(Path(evaluator).absolute()) if evaluator.endswith(".safetensors") else evaluator
    name = Path(word).stem if word.endswith(SUFFIX) else word
    options = {"Evaluator": evaluator} if plus else {}
    return limited(name, player, {"nodes": int(nodes)} if nodes else {}, options)


def playable(one: LimitedPlayer, ladder: Ladder) -> tuple[str, ...]:
    """The variants of the ladder that a player can play; LadderError if there are none."""
    from hnefi import players
    from hnefi.engine.evaluators import misfit
    from hnefi.engine.games import find

    known = players.load(one.player)
    evaluator = one.options.get("Evaluator", known.evaluator)
    makers = [known]
    if evaluator in players.names():
        makers.append(players.load(evaluator))
        evaluator = makers[-1].evaluator
    found, reasons = [], []
    for name in ladder.variants:
        variant = find(name)
        # If a player's evaluator is replaced, only the variant of the player matters.
        reason = next((text for maker in makers if (text := maker.misfit(variant))), None)
        reason = reason or misfit(evaluator, variant)
        if reason:
            reasons.append(reason)
        else:
            found.append(name)
    if not found:
        raise LadderError(f"{one.name}: {reasons[0]}: expected a player of {', '.join(ladder.variants)}")
    return tuple(found)
