"""Evaluators: what a position is worth. The rest of the engine gets them here, by name or by file.

`default` picks by the rules: a network where one ships that is stronger, elsewhere what is written by hand, one file a
game with its parameters' record, kernels and names of terms. Its versioned name is for players that are measured with
it. The others are data: networks that ship and architectures without weights go by their names, all others are files
(`files.py`) whose names end in `.safetensors`. Importing this module is cheap.
"""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalogue import GAMES
from ..games.base_position import Position
from ..games.base_variant import AnyVariant
from ..score import MAX_EVAL

if TYPE_CHECKING:
    from .files import Evaluator

BARE = {"simple": ("tafl",), "uniform": tuple(GAMES), "zero": tuple(GAMES)}
"""Architectures that need no file, and the games they know."""
HAND = "default-2026.3"
"""The newest complete set of weights of the evaluator that is written by hand."""
BY_HAND = {
    HAND: "",
    "hand-alea-1": "alea-1",
    "hand-copenhagen-org-13-1": "copenhagen-org-13-1",
    "default-2026.2": "2026.2",
    "default-2026.1": "2026.1",
}
"""Names of the hand-written evaluator, each with the set of weights of tafl that is meant: a folder of `weights/`, or
the newest complete set, which lies beside the folders."""
NETWORKS = {
    name: str(Path(__file__).with_name("weights") / f"{name}.safetensors")
    for name in (
        "net-brandubh-2",
        "net-copenhagen-2",
        "net-copenhagen-3",
        "net-copenhagen-4",
        "net-copenhagen-5",
        "net-copenhagen-6",
        "net-copenhagen-7",
        "net-fetlar-1",
        "net-fetlar-2",
        "net-fetlar-3",
        "net-fetlar-4",
        "net-fetlar-5",
        "net-foteviken-1",
        "net-historical-serif-1",
        "net-magpie-1",
        "net-sea-battle-9-1",
        "net-sea-battle-9-2",
        "net-sea-battle-9-3",
        "net-simple-11-1",
        "net-tablut-bologna-1",
        "net-tablut-bologna-2",
        "net-tablut-linnaeus-1",
        "net-tawlbwrdd-1",
    )
}
"""Networks that ship with the engine, and their files."""
PICKED = {
    "dac5c446d3806110804b848f11f9249316138525d6c8f9908f60c8d03d9d64f4": "net-copenhagen-7",  # copenhagen
    "7e28aa655d7c71f1118b3c64c34aec9fb61a04486c28e1e4407960ae65e53876": "net-copenhagen-5",  # copenhagen-org
    "4675629b5175f8be0dd5e92e74372c98e5275e3616e51d7f1999c53c66907b57": "net-copenhagen-5",  # copenhagen-relaxed
    "edf4e2cd057c3b0142823ede809cd2b646d83600f15c607b1f40dfb1ae344e29": "net-copenhagen-5",  # hingston-original
    "5aa3ee91a4030e51a643eadb5afc1ed7a153f2cb13c0a95cd97773749343b3f9": "net-copenhagen-5",  # hingston-original-block
    "fd1acb9448f7cc44753c5bba833e51fd4aa903e97828d1380de747fd15658817": "net-fetlar-5",  # fetlar
    "d142ca9d81e0aaa09f5739c0e0f6b63ee68dadc467f092a82aa84fafc1ca766d": "net-fetlar-5",  # fetlar-2013
    "6bc739948322ceffa96f6c7fa599e324c8aaa9a8b1449ffb2fc390b4ec6c19c2": "net-fetlar-5",  # fetlar-computer
    "10733c6f3fd3af396080b7985c45b9680e5c740fcd1e4bb7ff761325bf94e453": "net-tablut-bologna-2",  # tablut-bologna
    "f082d4a58581391a6aa3de9fe601799ef19d8bc15c49797146e518cba76af254": "net-tablut-bologna-2",  # tablut-ashton
    "8e1f9d6e71243b0927f1aaa2b6ee6ebacc506ef0c254e7d994ba31c3c731b290": "net-tablut-linnaeus-1",  # tablut-linnaeus
    "65d93ea6e904d7c6e6ec1248d8d9818da2e085f1d7ee5f52ec1477a6d668a9c3": "net-tablut-linnaeus-1",  # tablut-saami
    "c7a0c67a7282b2e8eb1e1ec4784bd1147f030d8eb976b90692bf2847165a6cd7": "net-sea-battle-9-3",  # sea-battle-9
    "cc9ab4e205ba0ee73af010eff3ff8fa959b98f1a87e5683d5cab1e9329335dda": "net-sea-battle-9-3",  # sea-battle-9-circle
    "9c43d0c86b5af964822e890caf6330753a438dc584064029555d9a91a6b3c2f8": "net-sea-battle-9-3",  # tablut-brainking
    "94a5650f0c1fa8acf18d9b310906e0b06420fe6405daebaeb75a388c41ea7ad7": "net-foteviken-1",  # foteviken
    "0ecefc06ea3e5e9f43bf312ad04a5cec5d5597c8df02a494363397c97e501871": "net-tawlbwrdd-1",  # tawlbwrdd
    "0e240934c92d6d68ce713ca88aef8ef34118430d77f532f001b3beb244bd2528": "net-historical-serif-1",  # historical-serif
    "566f2aa89654eb7d4b39eb92f458bf6bb6089cd4f8012fcf02e730468ddf76d2": "net-historical-serif-1",  # historical-lewis
    "275ff755936a371f1fbc81fd6d8cbfcf0e9f4f2007ead1b497ee61a50116249a": "net-historical-serif-1",  # historical-11
    "b044182cf8e3627e65b58d62eaeb68bb50b891ca8f6bb38da0a3f3b46127d481": "net-simple-11-1",  # simple-11
    "63d2407c73c835413b6bd47dce97009fce3e65bd3c7efc5e3f8e44202fc5c447": "net-brandubh-2",  # brandubh
    "59e8f3c8103db854335dd278fd48c2de01b9ff6f6fbac60815d97ecacc7e40a4": "net-brandubh-2",  # brandubh-walker
    "b7bd7eeb89dda92f8c759191b4721e580fc04541ccaa12138e798ec3ec8e1095": "net-brandubh-2",  # brandubh-wtf3
    "9f070c320c5cd616623c2694522cc1c6acbf0c0e90ebd0a3381e6189f144aa55": "net-magpie-1",  # magpie
    "abc3466fd923a12235565a711c40022153733dd07148dbecd26a612c1b294b24": "net-magpie-1",  # magpie-b3
    "7f57c174ca1f9712d3472e18a1620ae7111166580be8a42055bfdcf73b52ec65": "hand-alea-1",  # alea-evangelii
    "c8793dcf35112e68f7a88043b89f90314e340cba8b7646febd0a451f64700792": "hand-copenhagen-org-13-1",
}
"""What `default` is, by the hash of the rules: a network, or weights of their own, that lost to `HAND` on neither side
(MEASUREMENTS.md). Rules that share a board may share a network."""
NEWEST = "default-2026.4"
"""The versioned name of `default`: it keeps its choice when other networks come."""
PICKING = ("default", NEWEST)
"""Names that pick an evaluator by the rules."""
NAMES = (*PICKING, *BY_HAND, *NETWORKS, *BARE)
SUFFIX = ".safetensors"
KEPT = 16
INFLUENCES = 8

_files: OrderedDict[str, Evaluator] = OrderedDict()
_made: dict[str, Any] = {}
"""Parameters of networks in `PICKED`, by the hash of the rules."""


def is_file(name: str) -> bool:
    """Whether an evaluator's name is a file name."""
    return name.endswith(SUFFIX)


def file_of(word: str) -> str:
    """The file that a word means: its own name, or a network that ships; ValueError if it can be neither."""
    if word in NETWORKS:
        return NETWORKS[word]
    if is_file(word) or Path(word).exists():
        return word
    raise ValueError(
        f"{word[:200]!r}: expected a {SUFFIX} file, or a network that ships: {', '.join(NETWORKS)}"
    )


def read(path: str, variant: AnyVariant | None = None, variants: str | None = None) -> Evaluator:
    """Reads a file again and caches it under its path; EvaluatorError if anything is wrong with it.

    It need not be for `variant`: then its own must be among those that ship or lie in `variants`.
    """
    from . import files

    evaluator = files.load_anywhere(path, variant, variants)
    _files[path] = evaluator
    _files.move_to_end(path)
    while len(_files) > KEPT:
        _files.popitem(last=False)
    return evaluator


def stamp(name: str) -> str:
    """A text that changes whenever the name stands for another evaluator."""
    known = _files.get(name)
    return name if known is None else f"{name} {known.sha256}"


def resolve(name: str, variant: AnyVariant) -> str:
    """The name of the evaluator that is meant by `name` for a variant: `default` picks one, others are themselves.

    Where it picks a network, sieges are still evaluated by hand (`is_siege`), and where few defenders are left
    `progress` of `tafl_siege.py` is added.
    """
    return PICKED.get(variant.hash, HAND) if name in PICKING else name


def misfit(name: str, variant: AnyVariant) -> str | None:
    """Why an evaluator cannot be used for a variant; None if it can."""
    try:
        # The module itself is not imported: this question must not load kernels.
        if name in PICKING:
            return None
        if name in BY_HAND:
            _demand_weights(name, variant)
        else:
            _loaded(name, variant)
    except ValueError as error:
        return str(error)
    return None


def knows_moves(name: str, variant: AnyVariant) -> bool:
    """Whether the evaluator `name` has a policy; ValueError if it is unknown or not for this variant."""
    name = resolve(name, variant)
    return name not in BY_HAND and _loaded(name, variant).network.has_policy


def record_kind(name: str, variant: AnyVariant) -> str:
    """Which record of parameters an evaluator has: "default" if it is written by hand, else that of its network
    (`Network.record_kind`); ValueError as `knows_moves`."""
    name = resolve(name, variant)
    return "default" if name in BY_HAND else _loaded(name, variant).network.record_kind


def parameters(name: str, variant: AnyVariant) -> Any:
    """The parameters of the evaluator `name` for a variant, in a one-element array; ValueError if unknown."""
    picked = resolve(name, variant)
    if picked in BY_HAND:
        weights = BY_HAND[picked]
        module = _by_hand(picked, variant)
        return module.parameters(variant, weights) if weights else module.parameters(variant)
    if name in PICKING:
        return _with_endgames(picked, variant).copy()
    from .files import record

    return record(_loaded(picked, variant), variant)


def _with_endgames(name: str, variant: AnyVariant) -> Any:
    """The parameters of a network with those of the hand-written evaluator, for sieges and for `progress`: kept, as
    copies cost little."""
    if variant.hash not in _made:
        _made[variant.hash] = parameters(name, variant)
        by_hand = _made[variant.hash][0]["by_hand"] = parameters(HAND, variant)[0]
        _made[variant.hash][0]["few"] = by_hand["besieged"]
    return _made[variant.hash]


def is_siege(name: str, position: Position) -> bool:
    """Whether searches of a position are to evaluate by hand, although `name` picks a network for its rules.

    The king is caged, or the defenders have few men left and he is shut off from the goals: the network does not know
    how to win then.
    """
    from ..games.tafl.variant import Variant

    variant = position.variant
    if name not in PICKING or resolve(name, variant) in BY_HAND or not isinstance(variant, Variant):
        return False
    from .tafl_siege import CAGE, CAGE_ATTACKERS, king_region

    by_hand = _with_endgames(resolve(name, variant), variant)[0]["by_hand"]
    defenders = _defenders(position)
    few = defenders <= by_hand["besieged"]
    many_attackers = len(position.pieces()) - defenders >= CAGE_ATTACKERS
    if not by_hand["besieged"] or not (few or many_attackers):
        return False
    # Asked before every search: with many men only whether it is a cage matters.
    squares, has_goal = king_region(by_hand, position) if few else king_region(by_hand, position, CAGE)
    return (many_attackers and 0 <= squares <= CAGE) or (few and not has_goal)


def attune(params: Any, name: str, position: Position) -> None:
    """Let parameters of the evaluator `name` suit searches of a position: in a siege all is evaluated by hand, and the
    term `siege` counts in all that follows from it, with however many men.

    The record stays the same, so that a search on a short clock needs neither another one nor other kernels.
    """
    if name in PICKING and resolve(name, position.variant) in NETWORKS:
        params[0]["siege"] = is_siege(name, position)
        if params[0]["siege"]:
            params[0]["by_hand"]["besieged"] = _defenders(position)


def in_siege(params: Any) -> bool:
    """Whether `attune` found a siege: values of such searches are on another scale than those of the network."""
    return "few" in params.dtype.names and bool(params["siege"])


def _defenders(position: Position) -> int:
    """How many pieces the defenders have, king included."""
    return sum(letter.isupper() for _, letter in position.pieces())


def terms(name: str, position: Position) -> list[tuple[str, int]]:
    """What the evaluator `name` sees in a position, in centipawns for side `a`; the last is `total`.

    An evaluator that is no sum of named terms has one, `network`, and where few defenders are left `progress`.
    """
    meant = _deciding(name, position)
    if meant in BY_HAND:
        module = _by_hand(meant, position.variant)
        params = parameters(meant, position.variant)
        if is_siege(name, position):
            params[0]["besieged"] = _defenders(position)
        total = int(module.terms(params[0], position.new_record()[0]))
        return [*zip(module.TERMS, params[0]["terms"].tolist(), strict=True), ("total", total)]
    evaluator = _loaded(meant, position.variant)
    params, state = parameters(name, position.variant)[0], position.new_record()[0]
    value, scale = _value(params, state), float(params["scale"])
    split = getattr(evaluator.network.module, "terms", None)
    total = _centipawns(value, scale)
    if split is None:
        alone = _centipawns(_value(_network_alone(name, position.variant), state), scale)
        added = [("progress", total - alone)] if alone != total else []
        return [("network", alone), *added, ("total", total)]
    parts = split(evaluator.network.sizes, params, state)
    return [*((term, round(part * scale)) for term, part in parts), ("total", total)]


def remarks(name: str, position: Position) -> list[str]:
    """Information about the evaluation besides its terms: whose weights a shipped evaluator of tafl uses, and for
    networks the output and the most influential pieces.

    The influence of a piece is how much higher the value is, in centipawns for side `a`, than without it.
    """
    meant = _deciding(name, position)
    if meant in BY_HAND:
        return _weights_taken(meant, position.variant)
    evaluator = _loaded(meant, position.variant)
    taken = [f"evaluator {meant} weights {evaluator.variant}"] if meant in NETWORKS else []
    params, state = _network_alone(name, position.variant), position.new_record()[0]
    if hasattr(evaluator.network.module, "terms") or not evaluator.arrays:
        return []
    from ..squares import name as square_name

    value, scale = _value(params, state), float(params["scale"])
    said = f"value {value:.6g}"
    if evaluator.output["meaning"] == "logit":
        said = f"logit {value:.6g} probability {1 / (1 + exp(-value)) if value > -700 else 0.0:.6f}"
    influences = []
    for sq, letter in position.pieces():
        if evaluator.network.record_kind == "nnue":
            if letter == "K":
                continue  # what men are worth depends on where he stands
            without = _value_without(params, position, sq, letter)
        else:
            cell = state["board"][sq].copy()
            state["board"][sq] = cell & 0xFFF0 if position.variant.game == "tafl" else 0
            without = _value(params, state)
            state["board"][sq] = cell
        influences.append((round((value - without) * scale), square_name(sq), letter))
    influences.sort(key=lambda found: (-abs(found[0]), found[1]))
    pieces = " ".join(f"{letter}{sq} {cp:+d}" for cp, sq, letter in influences[:INFLUENCES])
    lines = [*taken, f"network {evaluator.network.text} a {said}"]
    if evaluator.network.has_policy and (best := _best_moves(params, position)):
        lines.append(f"network policy {best}")
    return [*lines, *([f"network pieces a {pieces}"] if pieces else [])]


def _deciding(name: str, position: Position) -> str:
    """The name of the evaluator that `name` stands for in a position: as `resolve`, but by hand in a siege."""
    return HAND if is_siege(name, position) else resolve(name, position.variant)


def _network_alone(name: str, variant: AnyVariant) -> Any:
    """Parameters as `parameters` has them, with which a network's value is its own, without `progress`."""
    params = parameters(name, variant)[0]
    if "few" in params.dtype.names:
        params["few"] = 0
    return params


def _value_without(params: Any, position: Position, sq: int, letter: str) -> float:
    """The value without a man, for kernels that read the lists of pieces and the key."""
    state = position.new_record()[0]
    side = int(letter.isupper())
    last = int(state["count"][side]) - 1
    state["pieces"][side][int(state["slot"][sq])] = state["pieces"][side][last]
    state["count"][side] = last
    state["key"] ^= state["zobrist"][int(state["board"][sq]) & 15, sq]
    return _value(params, state)


def _best_moves(params: Any, position: Position) -> str:
    """The moves that a policy prefers, with their probabilities among all legal moves."""
    import numpy as np

    from ..games import interface as verbs
    from ..squares import move_name

    state, moves = position.new_record()[0], position.legal_moves()
    end = len(moves)
    # Not `verbs.generate`: as a kernel that only other kernels call it would be compiled at each start.
    state["moves"][:end] = moves
    priors = np.zeros(end)
    if end:
        # Not `verbs.policy`: that also knows evaluators without a policy, once a search has been imported.
        verbs.KERNELS["policy", params.dtype, state.dtype](params, state, end, priors)
    shares = priors / max(priors.sum(), 1e-300)
    best = np.argsort(-shares, kind="stable")[:INFLUENCES]
    return " ".join(f"{move_name(moves[i])} {shares[i]:.3f}" for i in best)


def _weights_taken(name: str, variant: AnyVariant) -> list[str]:
    """The versioned name of a hand-written evaluator and the variant whose weights it takes, in tafl."""
    from ..games.tafl.variant import Variant
    from .tafl_weights import file_for

    if not isinstance(variant, Variant):
        return []
    return [f"evaluator {name} weights {file_for(variant, BY_HAND[name])}"]


def _value(params: Any, state: Any) -> float:
    from ..games import interface as verbs

    return float(verbs.value(params, state))


def _centipawns(value: float, scale: float) -> int:
    return int(min(max(value * scale, -MAX_EVAL), MAX_EVAL))


def _demand_weights(name: str, variant: AnyVariant) -> None:
    """ValueError if the hand-written evaluator of a variant's game has no such set of weights."""
    if BY_HAND[name] and variant.game != "tafl":
        raise ValueError(f"evaluator {name}: expected a variant of tafl, not {variant.game}")


def _by_hand(name: str, variant: AnyVariant) -> Any:
    """The module of the hand-written evaluator of a variant's game; ValueError if it has no such set of weights."""
    _demand_weights(name, variant)
    return import_module(f".{variant.game}", __package__)


def _loaded(name: str, variant: AnyVariant) -> Evaluator:
    """The evaluator behind a name that is not in `BY_HAND`; ValueError if it is unknown or not for this variant."""
    from . import files

    if is_file(path := NETWORKS.get(name, name)):
        evaluator = _files.get(path) or read(path, variant)
        if PICKED.get(variant.hash) != name:
            files.demand_rules(evaluator, variant, name)
        return evaluator
    if name not in BARE:
        raise ValueError(
            f"evaluator {name[:80]!r}: expected a file whose name ends in {SUFFIX}, or one of {', '.join(NAMES)}"
        )
    if variant.game not in BARE[name]:
        raise ValueError(
            f"evaluator {name}: expected a variant of {' or '.join(BARE[name])}, not {variant.game}"
        )
    return files.bare(name, variant)
