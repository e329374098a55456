"""Hashes of a ladder's rungs: a player that plays differently is no longer that rung.

Three things are frozen beside a ladder, in `NAME.frozen.json`:

- for every rung its definition (player, limits, options, the bytes of its player file and of its evaluator's file) and
  its answers: the moves it chooses, by a fixed seed, from the first openings of every variant;
- the source that all searches are made of, which may change as long as the answers do not;
- the lists of openings, variant by variant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from .ladder import Ladder, LadderError, LimitedPlayer

ASKED = 4
"""Openings of every variant in which every rung is asked for a move."""
SEED = 2026
SOURCES = ("search", "evaluators", "games")
"""Packages of the engine that affect the choice of moves."""


def file_of(ladder: Ladder) -> Path:
    """The file with the hashes of a ladder."""
    return ladder.file.with_name(f"{ladder.file.stem}.frozen.json")


def openings(ladder: Ladder) -> dict[str, tuple[Any, ...]]:
    """The openings of every variant; LadderError for an unusable file."""
    from ..arena.openings import from_lines

    try:
        lists = from_lines(ladder.openings.read_text(encoding="utf-8"))
    except OSError as error:
        raise LadderError(
            f"{ladder.openings}: {error.strerror or error}: expected the ladder's openings"
        ) from None
    except (ValueError, TypeError) as error:
        raise LadderError(f"{ladder.openings}: {error}: expected lines as hnefi wrote them") from None
    for name in ladder.variants:
        if len(lists.get(name, ())) < ladder.pairs:
            found = len(lists.get(name, ()))
            raise LadderError(
                f"{ladder.openings}: {found} openings of {name}: expected at least {ladder.pairs}"
            )
    return lists


def measure(ladder: Ladder) -> dict[str, Any]:
    """The current hashes; takes a second or two."""
    from hnefi.engine.games import find

    from ..arena.openings import list_hash

    lists = openings(ladder)
    return {
        "ladder": ladder.name,
        "openings": {name: list_hash(lists[name]) for name in ladder.variants},
        "rules": {name: find(name).hash for name in ladder.variants},
        "source": source(),
        "rungs": {
            rung.name: {"definition": definition(rung), "answers": answers(rung, ladder, lists)}
            for rung in ladder.rungs
        },
    }


def freeze(ladder: Ladder) -> Path:
    """Write the current hashes of the ladder; returns the file."""
    path = file_of(ladder)
    path.write_text(json.dumps(measure(ladder), indent=1) + "\n", encoding="utf-8")
    return path


def read(ladder: Ladder) -> dict[str, Any]:
    """The frozen hashes; LadderError if there are none."""
    path = file_of(ladder)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise LadderError(
            f"{path}: not found: expected a frozen ladder (hnefi ladder check --freeze makes it one)"
        ) from None
    except (ValueError, RecursionError) as error:
        raise LadderError(f"{path}: {error}: expected JSON as hnefi wrote it") from None
    if not isinstance(found, dict):
        raise LadderError(f"{path}: {found!r:.60}: expected hashes as hnefi wrote them")
    return found


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Sentences about differences that make it another ladder, and about changes without visible effect."""
    unlike = []
    for group in ("openings", "rules"):
        old = was.get(group, {})
        unlike += [
            f"{group} of {name}: not the frozen ones"
            for name in {**old, **now[group]}
            if old.get(name) != now[group].get(name)
        ]
    old, new = was.get("rungs", {}), now["rungs"]
    if list(old) != list(new):
        unlike.append(f"rungs {', '.join(new)}: frozen were {', '.join(old)}")
    for name in new:
        if name in old:
            unlike += [
                f"rung {name}: other {part} than the frozen rung has"
                for part in ("definition", "answers")
                if old[name].get(part) != new[name][part]
            ]
    harmless = []
    if was.get("source") != now["source"]:
        same = "" if unlike else ", but every rung still chooses the frozen moves"
        harmless.append(f"the source of the search differs from the frozen one{same}")
    return unlike, harmless


def definition(one: LimitedPlayer) -> str:
    """SHA-256 over the definition of a contestant: names, limits, options, and the bytes of its files."""
    from hnefi import players

    player = players.load(one.player)
    told: dict[str, Any] = {"nodes": one.nodes, "depth": one.depth, "options": sorted(one.options.items())}
    if player.file is not None:
        told["player"] = sha256(player.file.read_bytes()).hexdigest()
    evaluator = one.options.get("Evaluator", player.evaluator)
    told["evaluator"] = evaluator
    if evaluator.endswith(".safetensors"):
        told["evaluator"] = sha256(Path(evaluator).read_bytes()).hexdigest()
    return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def answers(one: LimitedPlayer, ladder: Ladder, lists: Mapping[str, Any]) -> str:
    """SHA-256 over the moves that a contestant chooses in the first openings of every variant."""
    from hnefi.engine import squares

    from ..arena.in_process import InProcessEngine
    from ..arena.values import EngineSpec, SideLimits, find_variant

    limits = SideLimits(nodes=one.nodes, depth=one.depth)
    engine = InProcessEngine(
        EngineSpec(one.name, (), one.player, options=tuple(one.options.items()), limits=(limits, limits))
    )
    said = []
    for name in ladder.variants:
        for number, opening in enumerate(lists[name][:ASKED]):
            engine.new_game(name, SEED + number)
            move, _ = engine.move(opening.position(find_variant(name)))
            said.append(f"{name} {number} {squares.move_name(move)}")
    return sha256("\n".join(said).encode()).hexdigest()


def source() -> str:
    """SHA-256 over the packages of the engine that affect the choice of moves."""
    from hnefi.engine import about

    engine = Path(about.__file__).resolve().parent
    digest = sha256()
    for room in SOURCES:
        for path in sorted((engine / room).rglob("*")):
            if path.suffix in (".py", ".toml") and path.is_file():
                digest.update(str(path.relative_to(engine)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
