"""Numbers of positions: each position one, images the same, and moves taken back by them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from random_variants import random_variant
from solve_parts import positions, tiny

from hnefi.engine import games
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl.fen import Setup
from hnefi.engine.games.tafl.position import new_state
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.solving import retrograde
from hnefi.engine.solving.index import Index, least_image, number_from, place_number
from hnefi.engine.solving.readings import NotSolvable, reading
from hnefi.tools.solve.report import fen_of


@pytest.mark.parametrize(
    "switches",
    [{}, {"throne": "b3"}, {"corners": "none", "escape": "edge", "throne": "b3,c3", "throne_stop": "all"}],
)
def test_every_position_has_one_number_that_its_images_share(switches: dict[str, str]) -> None:
    """By enumeration: boards that are images have the same least number, others have not."""
    variant = tiny(**switches)
    index = Index(variant, 1, 1)
    record = new_state(variant, "tTK")
    by_number: dict[int, set[object]] = {}
    found = positions(variant, 1, 1)
    for position in found:
        number = index.number(position)
        assert 0 <= number < index.entries
        material = next(m for m in index.materials if m.first <= number < m.end)
        men = "".join(letter for _, letter in position.pieces())
        assert (material.attackers, material.defenders) == (men.count("t"), men.count("T"))
        place_number(record[0], index.record, material.attackers, material.defenders, number)
        assert number_from(record[0], index.record) == number
        least = int(least_image(record[0], index.record))
        assert index.canonical(number) == least <= number
        by_number.setdefault(least, set()).add(position.canonical())
    assert len(found) == index.positions
    assert all(len(images) == 1 for images in by_number.values())
    assert len(set.union(*by_number.values())) == len(by_number)


def test_codes_of_images_are_left_out_and_come_back() -> None:
    """In pieces that do not end where a material does."""
    index = Index(tiny(), 2, 1)
    canonical = [index.canonical(number) for number in range(index.entries)]
    images = [number for number, least in enumerate(canonical) if least < number]
    assert len(images) > index.entries / 5
    codes = np.random.default_rng(1).integers(0, 250, index.entries).astype(np.uint8)[canonical]
    thin = np.concatenate([index.thinned(codes[at : at + 777], at) for at in range(0, index.entries, 777)])
    assert [at for at in range(index.entries) if canonical[at] == at and thin[at] != codes[at]] == []
    borders = {*range(0, index.entries, 777), *(material.first for material in index.materials)}
    assert all(thin[at] == (0 if at in borders else thin[at - 1]) for at in images)
    index.restore(thin)
    assert np.array_equal(thin, codes)


@pytest.mark.parametrize(
    ("name", "men", "expected"),
    [
        ("mini-four", (4, 2), 27_005_690),
        ("mini-six", (6, 2), 188_123_258),
        ("mini-cross", (4, 4), 457_009_130),
        ("mini-eight", (8, 4), 6_170_535_458),
        ("brandubh", (1, 1), 2 * (44 + 44 * 43 + 44 * 43 + 44 * 43 * 42)),
    ],
)
def test_how_many_positions_there_are(name: str, men: tuple[int, int], expected: int) -> None:
    variant = games.find(name)
    assert isinstance(variant, Variant)
    assert Index(variant, *men).positions == expected


def solvable(rng: random.Random) -> Variant:
    """Random rules with soldiers and a king, such as can be solved once their limits are left out."""
    while True:
        drawn = random_variant(rng, rng.choice((5, 5, 6, 7)))
        pieces = tuple((sq, "K" if p == "K" else "t" if p.islower() else "T") for sq, p in drawn.start.pieces)
        try:
            variant = Variant(
                "random", (), drawn.rules, Setup(drawn.size, pieces, drawn.start.side)
            ).with_switches(berserk="off", move_limit=0, quiet_limit=0, draw_fort="no", repetition="ignore")
            return reading(variant).played
        except (VariantError, NotSolvable):
            continue


@pytest.mark.slow
def test_moves_and_moves_taken_back_are_the_same_edges() -> None:
    """Positions of random rule sets: each quiet move that leads to a position is among those taken back from it, and
    whatever is taken back has a quiet move that leads there."""
    rng = random.Random(5)
    edges = 0
    for _ in range(25):
        variant = solvable(rng)
        index = Index(variant, min(3, variant.attackers), min(2, variant.defenders))
        backwards = Backwards(index)
        for _ in range(5):
            position = standing(index, rng.randrange(index.entries))
            if position is None or position.outcome is not None:
                continue
            mine = backwards.least(index.number(position))
            for child in quiet(position):
                edges += 1
                assert mine in backwards.parents(index.number(child)), position.fen()
            for parent in backwards.parents(index.number(position)):
                before = standing(index, parent)
                if before is None:
                    continue
                assert mine in {backwards.least(index.number(child)) for child in quiet(before)}, (
                    position.fen()
                )
    assert edges > 1000


def standing(index: Index, number: int) -> Position | None:
    """A position, None where a man stands on a square that only the other side's men may hold."""
    try:
        return games.from_fen(index.variant, fen_of(index, number))
    except ValueError:
        return None


def quiet(position: Position) -> list[Position]:
    """What quiet moves lead to, where the game goes on."""
    after = [position.play(move) for move, taken in position.legal_moves_with_captures() if not taken]
    return [child for child in after if child.outcome is None or child.outcome.reason == "no_legal_move"]


class Backwards:
    """The kernel that takes moves back, for positions by their numbers."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.record = new_state(index.variant, "tTK")

    def _place(self, number: int) -> Any:
        material = next(m for m in self.index.materials if m.first <= number < m.end)
        place_number(self.record[0], self.index.record, material.attackers, material.defenders, number)
        return self.record[0]

    def least(self, number: int) -> int:
        return int(least_image(self._place(number), self.index.record))

    def parents(self, number: int) -> set[int]:
        found = np.zeros(512, np.int64)
        return set(found[: retrograde.parents(self._place(number), self.index.record, found)].tolist())
