"""One configuration from files, flags and defaults, and the engines that it describes.

What holds for an engine is, in this order: a flag, what `--engine` or `[[engine]]` says, `--each` or `[each]`,
`[limits]` and `[margins]` of the file, the default.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hnefi.engine.wording import nearest, shorten

from .options import ENGINE, GROUPS, LIMITS, MARGIN, NODES, Config, ConfigError, Document, keys, parse_tc

if TYPE_CHECKING:
    from hnefi.engine.games.base_variant import AnyVariant
    from hnefi.protocol.hosts.registry import RegisteredEngine

    from .values import EngineSpec, SideLimits

ELO_BOUND = 200


def resolve(base: Document, flags: Document) -> Config:
    """One configuration of a file's tables and a command line's flags; ConfigError if it cannot be played."""
    notes: list[str] = []
    tables = {
        group: {key: option.default for key, option in keys(group).items()}
        | base.get(group, {})
        | flags.get(group, {})
        for group in GROUPS
        if group not in ENGINE
    }
    if "sprt" not in base and "sprt" not in flags:
        tables["sprt"] = {}
    general = over(base.get("limits", {}), base.get("margins", {}))
    each = over(general, base.get("each", {}))
    flagged = over(over(flags.get("engine", {}), flags.get("limits", {})), flags.get("margins", {}))
    if "name" in each:
        raise ConfigError(f"each.name {shorten(each['name'])}: expected a name in each engine's own table")
    given = [over(over(each, engine), flagged) for engine in base.get("engine", [])]
    registered = [_registered(engine) for engine in given]
    engines = [_engine(_as_command(engine, by)) for engine, by in zip(given, registered, strict=True)]
    unnamed = tuple(
        index
        for index, engine in enumerate(engines)
        if "cmd" in engine and not engine.get("name") and registered[index] is None
    )
    unlimited: list[str] = []
    for engine in engines:
        if not any(engine.get(key) for key in (*LIMITS, "limits_a", "limits_d")):
            own = _own_limits(engine)
            engine |= own or {"nodes": NODES}
            if not own:
                unlimited.append(engine.get("name") or engine.get("player") or engine["cmd"])
    if unlimited:
        who = ", ".join(dict.fromkeys(map(shorten, unlimited)))
        notes.append(
            f"no limit was given for {who}: nodes = {NODES} for every move, because fixed nodes repeat"
        )
    _name(engines, registered)
    if not 2 <= len(engines) <= 1000:
        raise ConfigError(
            f"engines: {len(engines)} given: expected at least two (players by name, or --engine)"
        )
    run = tables["run"]
    run["format"] = run["format"] or ("match" if len(engines) == 2 else "round-robin")
    if run["format"] == "ladder" and run["others"] is None:
        run["others"] = 1
    _settle_variants(run, engines, registered)
    _judge_whole(tables, engines)
    if tables["openings"]["seed"] is None:
        tables["openings"]["seed"] = run["seed"]
    return Config(tables, tuple(engines), unnamed, tuple(notes))


def over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`; tables inside are merged key by key."""
    merged = dict(below)
    for key, value in above.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


def _registered(given: Mapping[str, Any]) -> RegisteredEngine | None:
    """The user's own engine that a table names as its player, if it does."""
    from hnefi.protocol.hosts import registry

    try:
        return registry.find(given["player"]) if "player" in given else None
    except ValueError as error:
        raise ConfigError(f"player {shorten(given['player'])}: {error}") from None


def _as_command(given: dict[str, Any], engine: RegisteredEngine | None) -> dict[str, Any]:
    """The table with the command and the options of a registered engine where it named one."""
    if engine is None:
        return given
    table = {key: value for key, value in given.items() if key != "player"}
    program, *arguments = engine.words
    table |= {"cmd": program, "args": [*arguments, *given.get("args", ())]}
    table = {key: text for key in ("clock", "letters") if (text := getattr(engine, key))} | table
    return table | {"options": {**engine.options, **given.get("options", {})}}


def _engine(given: dict[str, Any]) -> dict[str, Any]:
    """An engine's table with every default in its place; ConfigError if it could not be started."""
    said = given.get("name") or given.get("player") or given.get("cmd")
    if ("player" in given) == ("cmd" in given):
        raise ConfigError(f"engine {shorten(said)}: expected player or cmd, one of them")
    if "player" in given and given.get("args"):
        raise ConfigError(
            f"engine {shorten(said)}: args {shorten(given['args'])}: expected none with a player"
        )
    if "cmd" in given:
        given = _split(given)
    defaults = {key: option.default for key, option in keys(*ENGINE).items() if option.default is not None}
    engine = defaults | given
    if "player" in engine:
        _judge_player(engine)
    else:
        _judge_command(engine)
    return engine


def _own_limits(engine: Mapping[str, Any]) -> dict[str, int]:
    """The limits in the file of an engine's player, of those that a match can have. Nodes that nobody asked for must
    not cut three plies short: they did with `simple-d3`, in a fifth of its moves."""
    from hnefi.protocol.hosts import registry

    if "player" not in engine:
        return {}
    limits = registry.player_of(engine["player"]).limits
    return {key: value for key in LIMITS if (value := getattr(limits, key, None)) is not None}


def _split(given: dict[str, Any]) -> dict[str, Any]:
    """The table with the words behind the program, where `cmd` is a command line, among its arguments."""
    command = given["cmd"]
    if " " not in command or Path(command).is_file():
        return given
    try:
        program, *arguments = shlex.split(command) or [""]
    except ValueError as error:
        raise ConfigError(f"cmd {shorten(command)}: {error}: expected a program and its arguments") from None
    return given | {"cmd": program, "args": [*arguments, *given.get("args", ())]}


def _judge_player(engine: Mapping[str, Any]) -> None:
    from hnefi.engine import options
    from hnefi.protocol.hosts import registry

    word = engine["player"]
    expect_player("player", word, registry.player_of)
    known = [option.name for option in options.TABLE]
    for name, value in engine["options"].items():
        option = options.find(name)
        if option is None:
            raise ConfigError(
                f"player {word}: option {shorten(name)} {shorten(value)}: expected one of {', '.join(known)}"
                + nearest(name, map(str.lower, known))
            )
        try:
            option.read(value)
        except ValueError as error:
            raise ConfigError(f"player {word}: option {option.name} {shorten(value)}: {error}") from None


def expect_player(where: str, word: str, find: Callable[[str], object] | None = None) -> None:
    """ConfigError unless there is a player of that name, or in that file; PlayerError of `find` says what it may be."""
    from hnefi import players

    try:
        (find or players.load)(word)
    except players.PlayerError as error:
        raise ConfigError(f"{where}: {error}") from None


def _judge_command(engine: Mapping[str, Any]) -> None:
    command = engine["cmd"]
    place = Path(command)
    if os.sep not in command:
        if shutil.which(command) is None:
            raise ConfigError(
                f"cmd {shorten(command)}: expected a program on the search path, or a path to one"
            )
    elif not place.is_file():
        raise ConfigError(f"cmd {shorten(command)}: no such file: expected a program")
    elif not os.access(place, os.X_OK):
        raise ConfigError(f"cmd {shorten(command)}: the file is not executable: expected a program")
    cwd = engine.get("cwd")
    if cwd and not Path(cwd).is_dir():
        raise ConfigError(f"cwd {shorten(cwd)}: expected a folder")


def _name(engines: list[dict[str, Any]], registered: Sequence[RegisteredEngine | None]) -> None:
    """Give every engine a unique name; those that chose one keep it."""
    chosen = [engine["name"] for engine in engines if engine.get("name")]
    for name in chosen:
        if chosen.count(name) > 1:
            raise ConfigError(
                f"engine name {shorten(name)}: given {chosen.count(name)} times: expected unique names"
            )
        if not name.isprintable() or len(name) > 60:
            raise ConfigError(f"engine name {shorten(name)}: expected at most 60 printable characters")
    taken = set(chosen)
    for engine, by in zip(engines, registered, strict=True):
        if not engine.get("name"):
            usual = Path(engine.get("player") or engine["cmd"]).name.removesuffix(".toml")
            engine["name"] = unique(usual if by is None else by.name, taken)
            taken.add(engine["name"])


def unique(name: str, taken: Iterable[str]) -> str:
    """`name`, or `name 2`, `name 3` and so on if others are called so."""
    known = set(taken)
    number = 1
    while (tried := name if number == 1 else f"{name} {number}") in known:
        number += 1
    return tried


def named(config: Config, ids: Sequence[str]) -> Config:
    """The configuration with every unnamed engine called what it calls itself, numbered."""
    engines = [dict(engine) for engine in config.engines]
    taken = {engine["name"] for index, engine in enumerate(engines) if index not in config.unnamed}
    for index in config.unnamed:
        called = "".join(letter for letter in ids[index] if letter.isprintable())[:50].strip()
        engines[index]["name"] = unique(called or engines[index]["name"], taken)
        taken.add(engines[index]["name"])
    return Config(config.tables, tuple(engines), (), config.notes)


def _settle_variants(
    run: dict[str, Any],
    engines: Sequence[Mapping[str, Any]],
    registered: Sequence[RegisteredEngine | None],
) -> None:
    """Which rule sets are played: those that were named, else what the players are made for."""
    from hnefi import players
    from hnefi.engine.catalogue import DEFAULT, SUFFIX
    from hnefi.engine.games import find, named
    from hnefi.engine.games.base_variant import VariantError

    own: list[str] = []
    usual: list[str] = []
    for engine, by in zip(engines, registered, strict=True):
        player = players.load(engine["player"]) if "player" in engine else None
        variant = player.variant if player else None
        own += [variant] if variant else by.variants if by else ()
        if player and player.game not in (None, find(DEFAULT).game):
            usual.append(str(player.game))
    if run["rules"]:
        if run["variants"]:
            raise ConfigError(f"run.rules {shorten(run['rules'])}: expected rules or variants, not both")
        from hnefi.engine.games.tafl.otn import OtnError, import_rules

        try:
            custom, problems = import_rules(run["rules"])
        except OtnError as error:
            raise ConfigError(f"run.rules {shorten(run['rules'])}: {error}") from None
        if problems:
            raise ConfigError(f"run.rules: {problems[0]}")
        _demand_fit(engines, registered, custom)
        run["variants"] = []
        return
    if not run["variants"]:
        run["variants"] = list(dict.fromkeys(own or usual)) or [DEFAULT]
    try:
        # Engine processes are told a name, which must be one that they know.
        found = [(name, named(name, files=run["inside"])) for name in run["variants"]]
    except VariantError as error:
        raise ConfigError(f"run.variants {shorten(run['variants'])}: {error}") from None
    words = [str(Path(name).absolute()) if name.endswith(SUFFIX) else played.name for name, played in found]
    run["variants"] = list(dict.fromkeys(words))
    for _, played in found:
        _demand_fit(engines, registered, played)


def _demand_fit(
    engines: Sequence[Mapping[str, Any]], registered: Sequence[RegisteredEngine | None], variant: AnyVariant
) -> None:
    """ConfigError if an engine cannot play the variant: its file, or its evaluator, is for something else."""
    from hnefi import players

    for engine, by in zip(engines, registered, strict=True):
        reason = by.misfit((variant.name, *variant.aliases)) if by else None
        if "player" in engine:
            # Its process runs in `cwd`, and finds files from there.
            at = engine.get("cwd") or ""
            given = [
                (name, str(Path(at, value)) if value.endswith(".safetensors") else value)
                for name, value in engine["options"].items()
            ]
            reason = players.unfit(players.load(engine["player"]), given, variant)
        if reason:
            raise ConfigError(
                f"run.variants {shorten(variant.name)}: engine {shorten(engine['name'])}: {reason}"
            )


def _judge_whole(tables: Mapping[str, Mapping[str, Any]], engines: Sequence[Mapping[str, Any]]) -> None:
    """What one option says about another."""
    run, sprt, openings = tables["run"], tables["sprt"], tables["openings"]
    if run["format"] == "match" and len(engines) != 2:
        raise ConfigError(f"run.format 'match': {len(engines)} engines given: expected two")
    if run["cluster"] and run["backend"] not in ("dask", "ray"):
        raise ConfigError(f"run.cluster {shorten(run['cluster'])}: expected only with backend dask or ray")
    if run["format"] == "gauntlet" and run["challengers"] >= len(engines):
        raise ConfigError(
            f"run.challengers {run['challengers']}: expected fewer than the {len(engines)} engines"
        )
    if run["format"] == "ladder" and run["others"] > run["pairs"]:
        raise ConfigError(
            f"run.others {run['others']}: expected at most the {run['pairs']} pairs of neighbours"
        )
    if run["inside"]:
        from .in_process import expect_own

        expect_own(tables, engines)
    if sprt:
        _judge_test(run, sprt, len(engines))
    if (openings["source"] == "file") != bool(openings["file"]):
        raise ConfigError(f"openings.file {openings['file']!r}: expected a file if source is file, else none")
    if openings["engine"] > len(engines):
        raise ConfigError(f"openings.engine {openings['engine']}: expected at most {len(engines)}")
    expect_player("openings.eval_by", openings["eval_by"])
    if tables["output"]["traffic"] and run["backend"]:
        raise ConfigError(
            f"output.traffic: expected no backend ({run['backend']}): other processes cannot return the engines' lines"
        )
    anchor = tables["rating"]["anchor"]
    names = [engine["name"] for engine in engines]
    if anchor and (set(anchor) != {"name", "elo"} or anchor["name"] not in names):
        raise ConfigError(
            f"rating.anchor {shorten(anchor)}: expected elo and the name of one of {', '.join(names)}"
        )
    for name, needed in (("resign", ("cp", "moves")), ("draw", ("cp", "moves"))):
        rule = tables["adjudicate"][name]
        if rule and not all(key in rule for key in needed):
            raise ConfigError(f"adjudicate.{name} {shorten(rule)}: expected {' and '.join(needed)}")


def _judge_test(run: Mapping[str, Any], sprt: Mapping[str, Any], engines: int) -> None:
    if engines != 2:
        raise ConfigError(f"sprt: {engines} engines given: expected two")
    if len(run["variants"]) > 1:
        raise ConfigError(f"sprt: {len(run['variants'])} variants given: expected one")
    if not sprt["elo0"] < sprt["elo1"]:
        raise ConfigError(f"sprt.elo0 {sprt['elo0']}: expected less than elo1, {sprt['elo1']}")
    if sprt["alpha"] + sprt["beta"] >= 1:
        raise ConfigError(
            f"sprt.alpha {sprt['alpha']}: expected alpha + beta below 1, beta is {sprt['beta']}"
        )
    if sprt["model"] == "normalized":
        for key in ("elo0", "elo1"):
            if abs(sprt[key]) > ELO_BOUND:
                raise ConfigError(
                    f"sprt.{key} {sprt[key]}: expected {-ELO_BOUND} to {ELO_BOUND} when normalized"
                )
    if not run["swap"] and sprt["unit"] != "game":
        raise ConfigError(f"sprt.unit {sprt['unit']!r}: expected game, because swap is off")


# Engines


def specs(config: Config, scale: float = 1.0) -> tuple[EngineSpec, ...]:
    """The engines as the slots start them; times are multiplied by `scale`."""
    return tuple(_spec(engine, scale) for engine in config.engines)


def _spec(engine: Mapping[str, Any], scale: float) -> EngineSpec:
    from .values import EngineSpec

    sides = (_limits(engine, "limits_a", scale), _limits(engine, "limits_d", scale))
    margin = engine.get("margin")
    if margin is None:
        by_move = any(side.movetime is not None and side.time is None for side in sides)
        margin = MARGIN if by_move else 0
    if "player" in engine:
        from hnefi.protocol.client import own_command

        command = own_command("--player", engine["player"])
    else:
        command = [engine["cmd"], *engine["args"]]
    return EngineSpec(
        name=engine["name"],
        command=tuple(command),
        player=engine.get("player", ""),
        proto="uti" if "player" in engine else engine["proto"],
        options=tuple(engine["options"].items()),
        init=tuple(engine["init"]),
        limits=sides,
        margin=margin,
        move_timeout=float(engine["move_timeout"]),
        start=float(engine["start"]),
        ready=float(engine["ready"]),
        new_game=float(engine["newgame"]),
        quit=float(engine["quit"]),
        cwd=engine.get("cwd"),
        env=tuple(engine["env"].items()),
        stderr=engine.get("stderr"),
        clock=engine["clock"],
        letters=engine["letters"],
        restart=engine["restart"],
    )


def _limits(engine: Mapping[str, Any], side: str, scale: float) -> SideLimits:
    from .values import SideLimits

    given = {key: engine[key] for key in LIMITS if engine.get(key) is not None} | engine[side]
    time: int | None = None
    increment = moves = 0
    if "tc" in given:
        time, increment, moves = parse_tc(given["tc"])
        time, increment = max(1, round(time * scale)), round(increment * scale)
    movetime = given.get("movetime")
    if movetime is not None:
        movetime = max(1, round(movetime * scale))
    return SideLimits(time, increment, moves, movetime, given.get("depth"), given.get("nodes"))
