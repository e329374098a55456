"""The hand-written evaluator of tafl against a slow and obvious form of itself, and its files of weights."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from typing import Any

import numpy as np
import pytest

from hnefi.engine import evaluators, games
from hnefi.engine.catalogue import names
from hnefi.engine.evaluators import tafl, tafl_weights
from hnefi.engine.evaluators.tafl_features import FEATURE_NAMES
from hnefi.engine.evaluators.tafl_siege import COUNT_NAMES, PROGRESS_NAMES, WEIGHT_NAMES, progress
from hnefi.engine.games import interface as verbs
from hnefi.engine.games.base_position import Position
from hnefi.engine.games.tafl.codes import KING, PIECE_CODES
from hnefi.engine.games.tafl.variant import Variant
from hnefi.engine.squares import DIRECTIONS, file_of, rank_of, squares
from hnefi.tools.bench.siege import SHIPPED, read

TAFL = [name for name in names() if isinstance(games.find(name), Variant)]


def wander(name: str, seed: int, plies: int) -> Position:
    """An undecided position after at most so many random plies."""
    draw = random.Random(f"{name} {seed}")
    position = games.initial(games.find(name))
    for _ in range(plies):
        after = position.play(draw.choice(position.legal_moves()))
        if after.outcome is not None:
            break
        position = after
    return position


class Twin:
    """What there is to count in a position, by sets of squares."""

    def __init__(self, position: Position) -> None:
        self.variant: Any = position.variant
        self.state = position.new_record()[0]
        self.pieces = dict(position.pieces())
        self.size = self.variant.size
        self.king = next(sq for sq, letter in self.pieces.items() if letter == "K")
        self.attackers = {sq for sq, letter in self.pieces.items() if letter.islower()}
        self.defenders = set(self.pieces) - self.attackers - {self.king}

    def may_stop(self, letter: str) -> set[int]:
        """Squares of the board where a piece that comes from an ordinary square may end its move."""
        bit = 1 << PIECE_CODES[letter]
        stop, enter, region = (self.state[name] for name in ("stop", "enter", "region"))
        return {
            sq
            for sq in squares(self.size)
            if int(stop[sq]) & bit and (region[sq] == 0 or int(enter[sq]) & bit)
        }

    def moves(self, starts: set[int], free: set[int], letter: str) -> set[int]:
        """Squares that pieces on `starts` could go to over squares of `free` alone."""
        return self.slides(starts, free, letter, DIRECTIONS)

    def slides(self, starts: set[int], free: set[int], letter: str, directions: tuple[int, ...]) -> set[int]:
        reach = int(self.state["reach"][PIECE_CODES[letter]])
        found = set()
        for start in starts:
            for d in directions:
                sq, steps = start + d, 1
                while sq in free and steps <= reach:
                    found.add(sq)
                    sq, steps = sq + d, steps + 1
        return found

    def reach(self, starts: set[int], free: set[int], letter: str) -> int:
        """Squares in reach along rows, and once more those along columns."""
        return sum(len(self.slides(starts, free, letter, (d, -d))) for d in DIRECTIONS[:2])

    def counts(self) -> dict[str, int]:
        state, king, size = self.state, self.king, self.size
        cells = size * size
        inside = self.may_stop("K")
        goals = {sq for sq in inside if state["goal"][sq]}
        empty = inside - set(self.pieces)
        one = self.moves({king}, empty, "K")
        goalward = self.moves(goals, empty, "K") - goals
        roads = len(one & goals)
        one -= goals
        two = self.moves(one, empty, "K") if roads == 0 else set()
        net, border = {king} | one, {king} | one
        while border:
            border = {sq + d for sq in border for d in DIRECTIONS} & (inside - self.attackers) - net
            net |= border
        corner = self.variant.rules.escape == "corner"
        caught = len(net & goals)
        near = {king + a + b for a in (-1, 0, 1) for b in (-21, 0, 21)} - {king}
        far = {king + a + b * 21 for a in range(-2, 3) for b in range(-2, 3)} - near - {king}
        beside = {king + d for d in DIRECTIONS}
        # Two columns beside the edge of the mailbox there is the next row: no square of it is meant.
        far = {sq for sq in far if abs(sq % 21 - king % 21) <= 2}
        sides = [
            sum(rank_of(sq) > rank_of(king) for sq in self.attackers),
            sum(rank_of(sq) < rank_of(king) for sq in self.attackers),
            sum(file_of(sq) > file_of(king) for sq in self.attackers),
            sum(file_of(sq) < file_of(king) for sq in self.attackers),
        ]
        free = self.may_stop("t") - set(self.pieces)
        return {
            "attackers_lost": self.variant.attackers - len(self.attackers),
            "defenders_lost": self.variant.defenders - len(self.defenders),
            "escapes_in_1": min(roads, 3),
            "escapes_in_2": min(len(one & goalward), 5) if roads == 0 else 0,
            "escapes_in_3": min(len((two - one) & goalward), 16),
            "goals": min(caught, 4) if corner else 4 * bool(caught),
            "edges": 0 if corner else 32 * caught // max(len(goals), 1),
            "region": 32 * len(net) // cells,
            "room": min(len(one), 14),
            "pressure": sum(int(state["hostile"][int(state["board"][sq])]) >> KING & 1 for sq in beside),
            "near_attackers": len(self.attackers & near - beside),
            "far_attackers": len(self.attackers & far),
            "beside_defenders": len(self.defenders & beside),
            "near_defenders": len(self.defenders & near - beside),
            "far_defenders": len(self.defenders & far),
            "thin": min(*sides, 8),
            "empty": sides.count(0),
            "attackers_reach": 32 * self.reach(self.attackers, free, "t") // cells,
            "defenders_reach": 32 * self.reach(self.defenders | {king}, free, "T") // cells,
            "to_move": int(self.state["side"]),
        }

    def terms(self) -> list[int]:
        """The terms in the order of `tafl.TERMS`, from the files of weights alone."""
        w = tafl_weights.weights_for(self.variant)
        seen = self.counts()
        side = seen["to_move"]
        material = 0
        for k, (lost, start) in enumerate(
            (("attackers_lost", self.variant.attackers), ("defenders_lost", self.variant.defenders))
        ):
            for man in range(abs(seen[lost])):
                material += w["lost"][k][man >= start // 2] * (1 if seen[lost] > 0 else -1)
        kind = {sq: self.kind(sq) for sq in squares(self.size)}
        posts = sum(w["post"][0][kind[sq]] for sq in self.attackers)
        posts += sum(w["post"][1][kind[sq]] for sq in self.defenders)
        roads = w["road"][side][seen["escapes_in_1"]]
        if seen["escapes_in_2"]:
            roads += w["way"][side][0] + w["way"][side][1] * (seen["escapes_in_2"] - 1)
        if seen["escapes_in_3"]:
            roads += w["far_way"][side][0] + w["far_way"][side][1] * seen["escapes_in_3"]
        around = ("near_attackers", "far_attackers", "beside_defenders", "near_defenders", "far_defenders")
        sums = (
            material,
            posts,
            w["king"][kind[self.king]],
            roads,
            w["goal"][seen["goals"]] + w["edge"] * seen["edges"] + w["region"] * seen["region"],
            w["pressure"][seen["pressure"]],
            sum(weight * seen[name] for weight, name in zip(w["near"], around, strict=True)),
            w["thin"] * seen["thin"] + w["empty"] * seen["empty"],
            w["room"] * seen["room"]
            + w["reach"][0] * seen["attackers_reach"]
            + w["reach"][1] * seen["defenders_reach"],
            w["level"] + (-w["tempo"] if side else w["tempo"]),
        )
        found = [total // 16 for total in sums]
        return [*found, self.siege(found, seen["goals"])]

    def siege(self, found: list[int], corners: int) -> int:
        """The term of that name; a king who is cut off makes the posts among the others 0."""
        w = tafl_weights.endgame_weights_for(self.variant, "siege")
        if not w or len(self.defenders) > w["men"]:
            return 0
        if corners == 0:
            found[tafl.TERMS.index("posts")] = 0
        total = w["level"] + w["corners"] * corners
        return max((total + sum(w[name] * count for name, count in self.siege_counts().items())) // 16, 0)

    def flood(self, starts: set[int], free: set[int]) -> set[int]:
        """The squares of `free` that can be walked to from `starts`, those included that are free themselves."""
        found, border = set(starts), set(starts)
        while border:
            border = {sq + d for sq in border for d in DIRECTIONS} & free - found
            found |= border
        return found & (free | starts)

    def gaps(self, free: set[int]) -> set[int]:
        """Free squares around which the others, the edge included, lie in several pieces."""
        ring = (-22, -21, -20, 1, 22, 21, 20, -1)
        found = set()
        for sq in free:
            left = {sq + d for d in ring} - free
            pieces = 0
            while left:
                pieces += 1
                piece = {left.pop()}
                while more := {one for one in left if any(one - other in ring for other in piece)}:
                    piece |= more
                    left -= more
            if pieces > 1:
                found.add(sq)
        return found

    def siege_counts(self) -> dict[str, int]:
        inside = self.may_stop("K")
        goals = {sq for sq in inside if self.state["goal"][sq]}
        region = self.flood({self.king}, inside - self.attackers)
        two_steps = [a + b for a in DIRECTIONS for b in DIRECTIONS if a != -b]
        free = inside - self.attackers - goals
        gaps = self.gaps(free)
        tight = self.flood({self.king}, free - gaps)
        beside = {sq + d for sq in tight for d in DIRECTIONS}
        one = self.moves({self.king}, free - self.defenders - {self.king}, "K")
        two = self.moves(one, free - self.defenders - {self.king}, "K")
        free_to_men = self.may_stop("T") - self.attackers - {self.king}
        shut = self.gaps(free_to_men) - self.defenders
        empty = free_to_men - self.defenders
        lines = 0
        for step in DIRECTIONS[:2]:
            seen = set()
            for d in (step, -step):
                for man in self.defenders:
                    sq = man + d
                    while sq in empty:
                        seen.add(sq)
                        sq += d
            lines += len(seen)

        def near(steps: int) -> int:
            return sum(
                any(
                    max(abs(file_of(a) - file_of(d)), abs(rank_of(a) - rank_of(d))) <= steps
                    for d in self.defenders
                )
                for a in self.attackers
            )

        return {
            "region": len(region - goals),
            "tight": len(tight),
            "gaps": len(beside & gaps),
            "guards": len({sq + d for sq in region & goals for d in two_steps} & region),
            "two_moves": len(one | two),
            "men_region": len(self.flood(self.defenders, free_to_men)),
            "men_tight": len(self.flood(self.defenders, free_to_men - shut)),
            "men_moves": lines,
            "men_near": near(2),
            "men_far": near(4),
        }

    def progress(self) -> int:
        """In sixteenths of a centipawn."""
        w = tafl_weights.read_endgame("copenhagen", "progress")
        counts = self.siege_counts()
        file, rank = file_of(self.king), rank_of(self.king)
        near = sum(abs(file_of(a) - file) <= 2 and abs(rank_of(a) - rank) <= 2 for a in self.attackers)
        edge = min(file, rank, self.size - 1 - file, self.size - 1 - rank)
        rooms = w["two_moves"] * counts["two_moves"] + w["men_moves"] * counts["men_moves"]
        return w["level"] + rooms + w["king_near"] * near + w["edge"] * edge

    def kind(self, sq: int) -> int:
        """The kind of a square by its two distances from the edges: (0 0), (0 1), (1 1), (0 2) and so on."""
        distances = [min(at, self.size - 1 - at, 4) for at in (file_of(sq), rank_of(sq))]
        pairs = [(near, far) for far in range(5) for near in range(far + 1)]
        return pairs.index((min(distances), max(distances)))


@pytest.mark.parametrize("name", TAFL)
def test_kernel_equals_the_slow_form(name: str) -> None:
    params = tafl.parameters(games.find(name))[0]
    for seed in range(6):
        position = wander(name, seed, 3 + 9 * seed)
        state = position.new_record()[0]
        total = int(tafl.terms(params, state))
        twin = Twin(position)
        seen = dict(zip(FEATURE_NAMES, params["features"].tolist(), strict=True))
        assert seen == twin.counts(), position.fen()
        assert list(params["terms"].tolist()) == twin.terms(), position.fen()
        assert total == sum(twin.terms())


def bare(name: str, seed: int) -> Position | None:
    """The king with at most three men among attackers anywhere; None if such a position cannot be set up."""
    draw = random.Random(f"bare {name} {seed}")
    game = games.find(name)
    size = game.size
    free = [(x, y) for x in range(size) for y in range(size) if (x % (size - 1)) + (y % (size - 1))]
    draw.shuffle(free)
    board = [["1"] * size for _ in range(size)]
    # Half of the men stand around one place, so that regions are shut and gaps are narrow.
    x, y = free[0]
    close = [at for at in free[1:] if max(abs(at[0] - x), abs(at[1] - y)) <= 3]
    board[y][x] = "K"
    for i in range(draw.randrange(4)):
        at = free[-1 - i]
        board[at[1]][at[0]] = "T"
    for at in close[: draw.randrange(9)] + free[1 : 1 + draw.randrange(size)]:
        if board[at[1]][at[0]] == "1":
            board[at[1]][at[0]] = "t"
    try:
        rows = (re.sub("1+", lambda run: str(len(run[0])), "".join(row)) for row in board)
        position = games.from_fen(game, "/".join(rows) + " d")
    except ValueError:
        return None
    return position if position.outcome is None else None


@pytest.mark.parametrize(
    "name", ["copenhagen", "fetlar", "berserk", "brandubh", "copenhagen-13", "alea-walker"]
)
def test_siege_equals_the_slow_form(name: str) -> None:
    """On every board that a set has room for, whether or not its weights have a siege."""
    params = tafl.parameters(games.find(name))[0]
    begins = int(params["besieged"])
    seen: dict[str, set[int]] = {count: set() for count in COUNT_NAMES}
    for position in (bare(name, seed) for seed in range(30)):
        if position is None:
            continue
        state = position.new_record()[0]
        twin = Twin(position)
        params["besieged"] = begins
        assert int(tafl.terms(params, state)) == sum(twin.terms()), position.fen()
        assert list(params["terms"].tolist()) == twin.terms(), position.fen()
        params["besieged"] = 4
        tafl.terms(params, state)
        counts = dict(zip(COUNT_NAMES, params["siege"].tolist(), strict=True))
        assert counts == twin.siege_counts(), position.fen()
        for count, value in counts.items():
            seen[count].add(value)
    assert {count for count, values in seen.items() if len(values) < 2} == set()


@pytest.mark.parametrize("name", ["copenhagen", "fetlar"])
def test_progress_equals_the_slow_form(name: str) -> None:
    """Counted the more the surer the network is of the attackers."""
    params = evaluators.parameters("default", games.find(name))[0]
    few, scale = int(params["few"]), float(params["scale"])
    assert few == tafl_weights.read_endgame("copenhagen", "siege")["men"] + 1
    shares: list[float] = []
    least = 0
    real = [games.from_fen(games.find(name), one.fen) for one in read(SHIPPED) if one.variant == name]
    for position in [*real, *(bare(name, seed) for seed in range(60))]:
        if position is None:
            continue
        state, twin = position.new_record()[0], Twin(position)
        params["few"] = few
        value = verbs.value(params, state)
        params["few"] = len(twin.defenders)
        alone = verbs.value(params, state)
        shares.append(1 / (1 + math.exp(1.5 * (1.5 - alone))))
        least += twin.progress() < 0
        added = shares[-1] * (max(twin.progress(), 0) // 16) / scale
        assert value == pytest.approx(alone + added, abs=1e-9), position.fen()
    assert sum(share < 0.1 for share in shares) > 5
    assert sum(0.1 < share < 0.9 for share in shares) > 5
    assert sum(share > 0.9 for share in shares) > 5
    assert least > 0


@pytest.mark.parametrize("name", ["copenhagen-13", "alea-walker"])
def test_progress_knows_larger_boards(name: str) -> None:
    """No network ships for them yet; sets have other words there. The king has so much room that the sum needs more."""
    params = tafl.parameters(games.find(name))[0]
    for word, weight in tafl_weights.read_endgame("copenhagen", "progress").items():
        params["progress_weights"][word] = weight
    more = 32_000
    params["progress_weights"]["level"] += more
    seen = set()
    for position in (bare(name, seed) for seed in range(20)):
        if position is not None:
            seen.add(progress(params, position.new_record()[0]))
            assert (
                progress(params, position.new_record()[0]) == max(Twin(position).progress() + more, 0) // 16
            )
    assert len(seen) > 5


def test_a_siege_begins_with_the_last_men() -> None:
    """Three of them are few enough; and it is never worth less than nothing, however open the corners are."""
    game = games.find("copenhagen")
    shut = "2t5t2/1t7t1/t9t/11/3T7/3TK6/{}/11/t9t/1t7t1/2t5t2 d"
    open_ = "11/11/3t7/11/3T7/3TK6/{}/11/11/11/2t5t2 d"
    for rows, row, at_work in ((shut, "2T7T", False), (shut, "10T", True), (open_, "10T", False)):
        position = games.from_fen(game, rows.format(row))
        assert (dict(evaluators.terms(evaluators.HAND, position))["siege"] > 0) == at_work
        assert dict(evaluators.terms("default-2026.2", position))["siege"] == 0


def test_posts_are_left_when_the_king_is_cut_off() -> None:
    """Guards of corners that he cannot reach any more cost nothing when they go to hunt his last man."""
    game = games.find("copenhagen")
    rows = "2t5t2/1t7t1/t9t/11/1T9/11/11/11/t9t/1ttttt3t1/2tKt6 a"
    for fen, cut_off in ((rows, True), (rows.replace("2tKt6", "3Kt6"), False)):
        found = dict(evaluators.terms(evaluators.HAND, games.from_fen(game, fen)))
        assert (found["posts"] == 0) == cut_off


def test_every_count_is_seen_to_change() -> None:
    """The positions of the test above tell something: no count is the same everywhere."""
    seen: dict[str, set[int]] = {name: set() for name in FEATURE_NAMES}
    for name in ("copenhagen", "brandubh", "tablut-linnaeus", "ard-ri-step"):
        for seed in range(40):
            for count, value in Twin(wander(name, seed, 10 + 2 * seed)).counts().items():
                seen[count].add(value)
    assert {name for name, values in seen.items() if len(values) < 2} == set()
    assert {0, 1, 2} <= seen["escapes_in_1"]


def test_a_shut_net_is_seen() -> None:
    game = games.find("brandubh")
    shut = games.from_fen(game, "7/2ttt2/2t1t2/2tK1t1/2t1t2/3t3/7 d")
    open_ = games.from_fen(game, "7/2ttt2/2t1t2/2tK1t1/2t1t2/7/7 d")
    for position, goals in ((shut, 0), (open_, 4)):
        state = position.new_record()[0]
        params = tafl.parameters(game)[0]
        tafl.terms(params, state)
        assert int(params["features"]["goals"]) == goals == Twin(position).counts()["goals"]


def test_terms_have_names() -> None:
    position = wander("copenhagen", 1, 12)
    found = evaluators.terms(evaluators.HAND, position)
    assert [name for name, _ in found] == [*tafl.TERMS, "total"]


FROZEN = {
    "copenhagen-org-13-1": "a804eaf007de4daea01e4bcc031d7251583b6baa037d9f0e092a507e7e685ac0",
    "alea-1": "3dff07b7631d9101a5029ce21e389edd96cf632ff7f3e907f78b888a5f38e0b6",
    "2026.1": "49f894d8284f2ce34f44672f9fc1e1a50eb4c9b64ab640af95457220997ef783",
    "2026.2": "3c24712a8bc29e4ae3780c98de32bcb0d28732ae5d9bce9c8928a63c67fb14f0",
}
SETS = sorted(set(evaluators.BY_HAND.values()))


@pytest.mark.parametrize(
    ("name", "weights"),
    [(name, weights) for weights in SETS for name in sorted(tafl_weights.fitted(weights))],
)
def test_files_of_weights_are_whole(name: str, weights: str) -> None:
    family = tafl_weights.family(games.find(name))  # type: ignore[arg-type]
    assert tafl_weights.fitted(weights)[name] == family, name
    found = tafl_weights.read(name, weights)
    assert list(found) == [weight for weight, _ in tafl.WEIGHTS]
    for weight, shape in tafl.WEIGHTS:
        values = np.array(found[weight])
        assert values.shape == shape
        assert values.dtype == np.int64
        assert np.abs(values).max() <= 32000
    siege = tafl_weights.read_endgame(name, "siege", weights)
    assert set(siege) in (set(), set(WEIGHT_NAMES))
    assert all(isinstance(value, int) and abs(value) <= 32000 for value in siege.values())
    nearness = tafl_weights.read_endgame(name, "progress", weights)
    assert set(nearness) == (set(PROGRESS_NAMES) if siege else set())
    assert all(isinstance(value, int) and abs(value) <= 32000 for value in nearness.values())


def test_every_set_of_weights_has_a_name() -> None:
    folders = {folder.name for folder in tafl_weights.FOLDER.iterdir() if folder.is_dir()}
    assert {"", *folders} == set(SETS)
    game = games.find("brandubh")
    now, then = (evaluators.parameters(name, game)[0] for name in (evaluators.HAND, "default-2026.1"))
    assert now["lost"].tolist() == tafl_weights.read("brandubh")["lost"]
    assert then["lost"].tolist() == tafl_weights.read("brandubh", "2026.1")["lost"]
    assert evaluators.misfit("default", games.find("hex:4")) is None
    # Not byte by byte: what lies between the fields of a record is anything.
    assert evaluators.parameters(evaluators.NEWEST, game) == evaluators.parameters("default", game)
    start = games.initial(games.find("fetlar-2013"))
    assert evaluators.remarks(evaluators.HAND, start) == [f"evaluator {evaluators.HAND} weights copenhagen"]
    assert evaluators.remarks("default-2026.1", start) == ["evaluator default-2026.1 weights copenhagen"]
    assert evaluators.remarks("default", games.initial(games.find("hex:4"))) == []
    said = evaluators.misfit("default-2026.1", games.find("hex:4"))
    assert said == "evaluator default-2026.1: expected a variant of tafl, not hex"
    with pytest.raises(ValueError, match="expected a variant of tafl"):
        evaluators.parameters("default-2026.1", games.find("hexapawn:4x4"))


@pytest.mark.parametrize("weights", FROZEN)
def test_sets_of_weights_never_change(weights: str) -> None:
    """Ratings and openings were measured with them. What counts is which variants take which weights, not the text."""
    families = tafl_weights.fitted(weights)
    said = {name: [*family, dict(tafl_weights.read(name, weights))] for name, family in families.items()}
    assert hashlib.sha256(json.dumps(said).encode()).hexdigest() == FROZEN[weights]
    assert not any(tafl_weights.read_endgame(name, "siege", weights) for name in families)


def test_relatives_share_weights() -> None:
    assert tafl_weights.file_for(games.find("copenhagen")) == "copenhagen"  # type: ignore[arg-type]
    assert tafl_weights.file_for(games.find("copenhagen-relaxed")) == "copenhagen"  # type: ignore[arg-type]
    game = games.find("brandubh")
    assert isinstance(game, Variant)
    # A name alone is not enough: with other rules it is another game.
    assert tafl_weights.file_for(game) == "brandubh"
    assert tafl_weights.fitted()[tafl_weights.file_for(game.with_switches(escape="edge"))][0] == 1
