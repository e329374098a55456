"""The efficiently updatable network: sums that follow games and searches against a network that starts from nothing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_games import positions

from hnefi.engine import evaluators, games
from hnefi.engine.evaluators import files, network
from hnefi.engine.evaluators.networks import nnue
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import Position
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings

CASES = (
    ("nnue:32", "brandubh"),
    ("nnue:64,rings=1", "brandubh"),
    ("nnue:64", "tablut-linnaeus"),
    ("nnue:96,rings=3", "copenhagen"),
    ("nnue:32,rings=6", "tablut-15"),
    ("nnue:32", "alea-evangelii"),
    ("nnue:32", "berserk"),
    ("nnue:32,rings=2", "mini-four"),
)


def arrays_of(net: network.Network, variant: Any, spread: int = 60) -> dict[str, Any]:
    """Weights so large that many units are cut off on either side."""
    draw = np.random.default_rng(3)
    limits = {"king": spread, "men": spread, "output": 127, "output_bias": 1_000_000}
    return {
        name: draw.integers(-limits[name], limits[name], shape, endpoint=True).astype(nnue.TYPES[name])
        for name, shape in net.shapes(variant).items()
    }


def evaluator_of(text: str, variant: Any, spread: int = 60) -> files.Evaluator:
    net = network.parse(text)
    return files.Evaluator(
        net, variant.name, variant.hash, variant.game, arrays_of(net, variant, spread), {"output": net.output}
    )


def twin(evaluator: files.Evaluator, position: Position) -> int:
    """The output in whole numbers, unit by unit and piece by piece, from the FEN alone: no code of the network's."""
    variant: Any = position.variant
    size, rings = variant.size, evaluator.network.sizes["rings"]
    kept = [t for t in range(8) if keeps_rules(variant, t)]
    rows = position.fen().split()[0].split("/")
    pieces: dict[tuple[int, int], str] = {}
    for i, row in enumerate(rows):
        file, digits = 0, ""
        for letter in [*row, ""]:
            if letter.isdigit():
                digits += letter
                continue
            file += int(digits or 0)
            digits = ""
            if letter:
                pieces[file, size - 1 - i] = letter
                file += 1
    king = next(at for at, letter in pieces.items() if letter == "K")
    best = min(kept, key=lambda t: (turned(king, t, size), kept.index(t)))
    most = min(rings, (size + 1) // 2) - 1
    near, far = sorted(min(x, size - 1 - x, most) for x in king)
    bucket = sum(range(far + 1)) + near
    arrays = evaluator.arrays
    special = sorted(
        {letter for row in variant.start.rows for letter in row if letter.isalpha()} - set("tTK")
    )
    if "m" in special or "M" in special:
        special = sorted({*special, "m", "M"})
    kinds = ["t", "T", *special]
    total = 0
    side = int(position.side)
    head = 8 * side + min(7, (len(pieces) - 1) * 8 // (variant.attackers + variant.defenders + 1))
    total = int(arrays["output_bias"][head])
    for unit in range(evaluator.network.sizes["units"]):
        x, y = turned(king, best, size)
        number = int(arrays["king"][y * size + x, unit])
        for at, letter in pieces.items():
            if letter != "K":
                x, y = turned(at, best, size)
                kind = kinds.index(letter if letter in kinds else "T" if letter.isupper() else "t")
                number += int(arrays["men"][bucket, kind, y * size + x, unit])
        number = (number + 32768) % 65536 - 32768
        clipped = min(max(number, 0), 255)
        total += clipped * clipped * int(arrays["output"][head, unit])
    return total


def turned(at: tuple[int, int], turn: int, size: int) -> tuple[int, int]:
    x, y = at
    x, y = (size - 1 - x if turn & 1 else x), (size - 1 - y if turn & 2 else y)
    return (y, x) if turn & 4 else (x, y)


def keeps_rules(variant: Any, turn: int) -> bool:
    from hnefi.engine.games.tafl.symmetry import symmetries

    return turn in symmetries(variant.rules)


@pytest.mark.parametrize(("text", "name"), CASES)
def test_sums_follow_a_walk_up_and_down_the_tree(text: str, name: str) -> None:
    """Moves, captures and moves taken back in any order, asked for a value now and then."""
    variant = games.find(name)
    evaluator = evaluator_of(text, variant)
    params = files.record(evaluator, variant)[0]
    draw = random.Random(5)
    values = []
    for position in positions(variant, 40)[::8]:
        state = position.new_record()[0]
        line = [position]
        for _ in range(40):
            if draw.random() < 0.2 and len(line) > 1:
                verbs.undo(state)
                line.pop()
            else:
                moves = line[-1].legal_moves_with_captures()
                taking = [move for move, taken in moves if taken]
                move = draw.choice(taking or [move for move, _ in moves])
                after = line[-1].play(move)
                if after.outcome is not None or not after.legal_moves():
                    continue
                verbs.make(state, move)
                line.append(after)
            if draw.random() < 0.6:
                expected = twin(evaluator, line[-1])
                value = verbs.value(params, state)
                assert value == expected / nnue.LOGIT
                assert evaluator.network.naive(variant, evaluator.arrays, line[-1]) == value
                cp = int(min(max(value * nnue.SCALE, -9000), 9000))
                assert verbs.evaluate(params, state) == (-cp if line[-1].side else cp)
                values.append(expected)
    assert len(set(values)) > len(values) // 3 > 10


@pytest.mark.parametrize("name", ["brandubh", "berserk"])
def test_sums_follow_the_game_past_passes(name: str) -> None:
    """A search lets a side pass and goes on below; nothing was taken where it passed."""
    variant = games.find(name)
    evaluator = evaluator_of("nnue:32", variant)
    params, fresh = files.record(evaluator, variant)[0], files.record(evaluator, variant)[0]
    draw = random.Random(11)
    passes = carried = 0
    for position in positions(variant, 60)[::6]:
        state = position.new_record()[0]
        verbs.value(params, state)
        taken_back: list[bool] = []
        for _ in range(60):
            if len(taken_back) > 4 or (taken_back and draw.random() < 0.25):
                (verbs.unmake_null if taken_back.pop() else verbs.undo)(state)
            elif draw.random() < 0.3 and verbs.make_null(state):
                passes += 1
                taken_back.append(True)
            else:
                end = int(verbs.generate(state, 0))
                if not end:
                    continue
                moves = sorted(
                    state["moves"][:end].tolist(), key=lambda move: -verbs.order_score(state, move)
                )
                verbs.make(state, moves[0] if draw.random() < 0.5 else draw.choice(moves))
                taken_back.append(False)
                if state["outcome"]:
                    verbs.undo(state)
                    taken_back.pop()
            if draw.random() < 0.5:
                fresh["keys"] = 0
                expected = verbs.value(fresh, state)
                carried += 1
                assert verbs.value(params, state) == expected
    assert passes > 20
    assert carried > 100


def test_a_value_without_anything_kept_is_the_same() -> None:
    """What the walk compares with, compared with the twin."""
    variant = games.find("copenhagen")
    evaluator = evaluator_of("nnue:32", variant)
    params = files.record(evaluator, variant)[0]
    for position in positions(variant, 30)[::5]:
        params["keys"] = 0
        assert verbs.value(params, position.new_record()[0]) * nnue.LOGIT == twin(evaluator, position)


@pytest.mark.slow
def test_a_search_asks_the_network(tmp_path: Path) -> None:
    """Full width, two plies, against a search in Python with the twin's values."""
    variant = games.find("brandubh")
    evaluator = evaluator_of("nnue:32", variant, spread=40)
    file = str(tmp_path / "net.safetensors")
    files.save(file, evaluator)
    position = positions(variant, 30)[25]

    def best(here: Position, depth: int) -> float:
        if here.outcome is not None:
            return -30_000 + here.ply if here.outcome.winner is not None else 0
        if depth == 0:
            cp = int(min(max(twin(evaluator, here) / nnue.LOGIT * nnue.SCALE, -9000), 9000))
            return -cp if here.side else cp
        return max(-best(here.play(move), depth - 1) for move in here.legal_moves())

    searcher = Searcher(Settings(algorithm="minimax", evaluator=file))
    infos: list[Info] = []
    searcher.begin()
    searcher.search(position, Limits(depth=2), infos.append)
    assert infos[-1].score.cp == best(position, 2)


def test_files_hold_whole_numbers(tmp_path: Path) -> None:
    variant = games.find("brandubh")
    evaluator = evaluator_of("nnue:32,rings=4", variant)
    path = tmp_path / "net.safetensors"
    files.save(path, evaluator)
    again = files.load(path, variant)
    assert again.network.text == "nnue:32,rings=4"
    for name, array in evaluator.arrays.items():
        assert again.arrays[name].dtype == array.dtype == nnue.TYPES[name]
        assert np.array_equal(again.arrays[name], array)
    assert again.sha256 == evaluator.sha256
    made = files.make(evaluator.network, variant, files.genome(evaluator), {"output": evaluator.output})
    files.save(tmp_path / "made.safetensors", made)
    assert (tmp_path / "made.safetensors").read_bytes() == path.read_bytes()
    real = {**evaluator.arrays, "output": evaluator.arrays["output"].astype(np.float32)}
    files.save(path, files.Evaluator(evaluator.network, variant.name, variant.hash, "tafl", real))
    with pytest.raises(files.EvaluatorError, match="output: type F32: expected I8 for nnue:32,rings=4"):
        files.load(path, variant)


def test_weights_that_do_not_fit_are_refused() -> None:
    variant = games.find("brandubh")
    net = network.parse("nnue:32")
    genome = np.zeros(net.count(variant))
    for at, number in ((0, 0.5), (0, 40_000.0), (-20, 128.0)):
        wrong = genome.copy()
        wrong[at] = number
        with pytest.raises(ValueError, match="expected whole numbers from"):
            net.record(variant, wrong)
    with pytest.raises(ValueError, match="1 weights: expected"):
        net.record(variant, np.zeros(1))
    for text in ("nnue:48", "nnue:288"):
        with pytest.raises(ValueError, match="expected a multiple of 32 up to 256"):
            network.parse(text).shapes(variant)
    large = network.parse("nnue:256,rings=9")
    with pytest.raises(ValueError, match="expected at most 524288"):
        large.record(games.find("copenhagen"), np.zeros(0))


def test_what_a_man_is_worth_is_the_value_without_him(tmp_path: Path) -> None:
    variant = games.find("brandubh")
    file = str(tmp_path / "net.safetensors")
    files.save(file, evaluator_of("nnue:32", variant))
    position = games.from_fen(variant, "3t3/3t3/3T3/tt1K1tt/3T3/3t3/3t3 a 0 1")
    (line,) = [said for said in evaluators.remarks(file, position) if said.startswith("network pieces a ")]
    words = line.removeprefix("network pieces a ").split()
    worth = dict(zip(words[::2], words[1::2], strict=True))
    params = evaluators.parameters(file, variant)[0]

    def value(fen: str) -> float:
        return float(verbs.value(params, games.from_fen(variant, fen).new_record()[0]))

    whole = value(position.fen())
    for name, fen in (
        ("td7", "7/3t3/3T3/tt1K1tt/3T3/3t3/3t3 a 0 1"),
        ("Td5", "3t3/3t3/7/tt1K1tt/3T3/3t3/3t3 a 0 1"),
    ):
        if name in worth:
            assert int(worth[name]) == round((whole - value(fen)) * nnue.SCALE)
    assert {"td7", "Td5"} & worth.keys()
