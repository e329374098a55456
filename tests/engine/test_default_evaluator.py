"""What `default` stands for: a network where one ships for the rules, else what is written by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hnefi.engine import bench, evaluators, games, warmup
from hnefi.engine.evaluators import files, tafl, tafl_weights
from hnefi.engine.evaluators.tafl_siege import CAGE, CAGE_ATTACKERS, king_region
from hnefi.engine.games.tafl.variant import names
from hnefi.engine.search import skill
from hnefi.engine.search.searcher import Searcher
from hnefi.engine.search.types import Info, Limits, Settings
from hnefi.engine.session import Session
from hnefi.tools.bench.siege import SHIPPED, read

PICKED = {
    "alea-evangelii": "hand-alea-1",
    "copenhagen-org-13": "hand-copenhagen-org-13-1",
    "brandubh": "net-brandubh-2",
    "brandubh-walker": "net-brandubh-2",
    "brandubh-wtf3": "net-brandubh-2",
    "copenhagen": "net-copenhagen-7",
    "copenhagen-org": "net-copenhagen-5",
    "copenhagen-relaxed": "net-copenhagen-5",
    "fetlar": "net-fetlar-5",
    "fetlar-2013": "net-fetlar-5",
    "fetlar-computer": "net-fetlar-5",
    "foteviken": "net-foteviken-1",
    "hingston-original": "net-copenhagen-5",
    "hingston-original-block": "net-copenhagen-5",
    "historical-lewis": "net-historical-serif-1",
    "historical-serif": "net-historical-serif-1",
    "magpie": "net-magpie-1",
    "magpie-b3": "net-magpie-1",
    "sea-battle-9": "net-sea-battle-9-3",
    "sea-battle-9-circle": "net-sea-battle-9-3",
    "simple-11": "net-simple-11-1",
    "tablut-ashton": "net-tablut-bologna-2",
    "tablut-bologna": "net-tablut-bologna-2",
    "tablut-brainking": "net-sea-battle-9-3",
    "tablut-linnaeus": "net-tablut-linnaeus-1",
    "tablut-saami": "net-tablut-linnaeus-1",
    "tawlbwrdd": "net-tawlbwrdd-1",
    "tawlbwrdd-historical": "net-historical-serif-1",
}
"""Shipped variants for which `default` is a network, or has weights of its own."""
NETWORKS = {variant: name for variant, name in PICKED.items() if name.startswith("net-")}
SECONDS = 300.0


def lines(
    settings: Settings, limits: Limits, position: Any = None, searcher: Searcher | None = None
) -> list[Any]:
    """What a search of a position, or of Copenhagen's start, reports, without times."""
    infos: list[Info] = []
    searcher = searcher or Searcher(settings)
    searcher.begin()
    searcher.search(position or games.initial(games.find("copenhagen")), limits, infos.append)
    return [(info.depth, info.score, info.nodes, info.pv) for info in infos]


def test_every_shipped_variant_has_the_evaluator_that_it_should() -> None:
    for name in names():
        expected = PICKED.get(name, evaluators.HAND)
        for picking in evaluators.PICKING:
            assert evaluators.resolve(picking, games.find(name)) == expected, name
    assert (
        set(evaluators.PICKED.values()) == set(PICKED.values()) <= {*evaluators.NETWORKS, *evaluators.BY_HAND}
    )
    assert evaluators.resolve("default", games.find("hex:5")) == evaluators.HAND


def test_the_documents_list_what_is_picked() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluators.md").read_text()
    rows = re.findall(r"^\| (`.+`) \| `((?:net|hand)-[a-z0-9-]+)` \|$", page, re.MULTILINE)
    assert {name: net for variants, net in rows for name in re.findall("`(.+?)`", variants)} == PICKED


def test_the_protocol_names_every_evaluator() -> None:
    page = (Path(__file__).parents[2] / "protocol" / "PROTOCOL.md").read_text()
    [row] = re.findall(r"^\| `Evaluator` \| .*$", page, re.MULTILINE)
    assert set(re.findall("`([a-z0-9.-]+)`", row)) - {evaluators.SUFFIX} == set(evaluators.NAMES)


@pytest.mark.parametrize("name", evaluators.NETWORKS)
def test_shipped_networks_are_for_the_rules_that_pick_them(name: str) -> None:
    """Them, or a newer one of the same series."""
    evaluator = files.peek(evaluators.NETWORKS[name])
    assert evaluator.document["name"] == name
    series, number = name.rsplit("-", 1)
    picked, newest = evaluators.PICKED[evaluator.rules_hash].rsplit("-", 1)
    assert picked == series
    assert int(newest) >= int(number)
    assert games.find(evaluator.variant).hash == evaluator.rules_hash


def test_a_network_on_loan_plays_on_boards_of_its_size() -> None:
    """It is loaded by both names, and refused elsewhere; what is kept belongs to the rules."""
    lent = [name for name, net in NETWORKS.items() if files.peek(evaluators.NETWORKS[net]).variant != name]
    assert lent
    for name in lent:
        variant = games.find(name)
        own = games.find(files.peek(evaluators.NETWORKS[NETWORKS[name]]).variant)
        assert variant.rules.size == own.rules.size
        for word in ("default", NETWORKS[name]):
            assert evaluators.misfit(word, variant) is None
            assert evaluators.record_kind(word, variant) == "nnue"
        ours = evaluators.parameters("default", variant)[0]["by_hand"]
        assert ours == evaluators.parameters(evaluators.HAND, variant)[0]
        for other in set(evaluators.NETWORKS) - {NETWORKS[name]}:
            assert "made for" in str(evaluators.misfit(other, variant))


def test_other_rules_on_the_same_board_are_evaluated_by_hand() -> None:
    variant = games.find("copenhagen").with_switches(repetition="draw")
    assert evaluators.resolve("default", variant) == evaluators.HAND
    assert evaluators.misfit("default", variant) is None
    assert "made for copenhagen" in str(evaluators.misfit("net-copenhagen-7", variant))
    assert warmup.kind(variant, Settings()) == ("tafl", "alphabeta", "default")


@pytest.mark.parametrize(
    ("name", "weights"), [("alea-evangelii", "alea-1"), ("copenhagen-org-13", "copenhagen-org-13-1")]
)
def test_weights_of_their_own_are_those_of_the_picked_set(name: str, weights: str) -> None:
    """The evaluator written by hand keeps the weights that it had for these rules, for what was measured with them."""
    variant = games.find(name)
    chosen = ("default", f"hand-{weights}", evaluators.HAND)
    sets = [evaluators.parameters(evaluator, variant)[0] for evaluator in chosen]
    expected = [tafl_weights.weights_for(variant, folder)["lost"] for folder in (weights, weights, "")]
    assert [found["lost"].tolist() for found in sets] == expected
    assert expected[0] != expected[2] == tafl_weights.read("copenhagen-13")["lost"]
    assert warmup.kind(variant, Settings()) == ("tafl", "alphabeta", "default")


def test_default_searches_with_what_it_picks() -> None:
    limits = Limits(depth=5)
    default = lines(Settings(hash_mib=1), limits)
    assert default == lines(Settings(hash_mib=1, evaluator="net-copenhagen-7"), limits)
    assert default != lines(Settings(hash_mib=1, evaluator=evaluators.HAND), limits)


def attackers(position: Any) -> int:
    return sum(letter.islower() for _, letter in position.pieces())


def siege(men: str, side: str) -> Any:
    """A position of Copenhagen with a king, two men and `men` against twelve attackers, or one fewer for an `!`."""
    guards = "9t1" if men.endswith("!") else "1t7t1"
    fen = f"2t5t2/{guards}/t9t/11/3T7/3TK6/{men.rstrip('!')}/11/t9t/1t7t1/2t5t2 {side}"
    return games.from_fen(games.find("copenhagen"), fen)


@pytest.mark.parametrize(
    ("men", "by_hand"), [("3T3T3", False), ("3T7", True), ("11", True), ("1T1T3T3!", False)]
)
@pytest.mark.parametrize("side", ["a", "d"])
def test_a_siege_is_evaluated_by_hand(men: str, side: str, by_hand: bool) -> None:
    """With three men left besides the king, or fewer, and no corner that he can reach: by searches and by `eval`."""
    position = siege(men, side)
    picked, other = [evaluators.HAND, "net-copenhagen-7"][:: 1 if by_hand else -1]
    # Deeper, few enough men are left for the network to have `progress`.
    limits = Limits(depth=4 if by_hand else 2)
    default = lines(Settings(hash_mib=1), limits, position)
    assert default == lines(Settings(hash_mib=1, evaluator=picked), limits, position)
    assert default != lines(Settings(hash_mib=1, evaluator=other), limits, position)
    for ask in (evaluators.terms, evaluators.remarks):
        assert ask("default", position) == ask(picked, position) != ask(other, position)


@pytest.mark.parametrize("side", ["a", "d"])
def test_few_defenders_and_an_open_corner_add_progress(side: str) -> None:
    """To the network's value, in every position of a search with three men or fewer."""
    rows = "2t5t2/1t4t2t1/7t2t/8t2/{}/5K5/t10/11/tt1t7/1t7t1/2t5t2"
    game = games.find("copenhagen")
    position, more = (games.from_fen(game, f"{rows.format(row)} {side}") for row in ("10T", "7TTTT"))
    network = dict(evaluators.terms("net-copenhagen-7", position))["network"]
    (name, alone), (also, added), (_, total) = evaluators.terms("default", position)
    assert (name, also, alone, total) == ("network", "progress", network, network + added)
    assert added > 0
    assert evaluators.remarks("default", position) == evaluators.remarks("net-copenhagen-7", position)
    assert evaluators.terms("default", more) == evaluators.terms("net-copenhagen-7", more)
    limits = Limits(depth=2)
    default = lines(Settings(hash_mib=1), limits, position)
    for other in ("net-copenhagen-7", evaluators.HAND):
        assert default != lines(Settings(hash_mib=1, evaluator=other), limits, position)


def test_a_search_becomes_a_siege_with_its_root_and_never_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """One searcher for both, as in a game."""
    limits, before, after = Limits(depth=4), siege("3T3T3", "a"), siege("3T7", "d")
    searcher = Searcher(Settings(hash_mib=1))
    for position in (before, after, before):
        searcher.clear()
        assert lines(Settings(hash_mib=1), limits, position, searcher) == lines(
            Settings(hash_mib=1), limits, position
        )
    assert evaluators.is_siege("default", after)
    assert not any(evaluators.is_siege(name, after) for name in ("net-copenhagen-7", evaluators.HAND))
    monkeypatch.setattr(evaluators, "PICKED", {})
    assert not evaluators.is_siege("default", after)


@pytest.mark.parametrize("algorithm", ["minimax", "puct"])
def test_other_algorithms_evaluate_sieges_by_hand_too(algorithm: str) -> None:
    position, limits = siege("3T7", "a"), Limits(nodes=200) if algorithm == "puct" else Limits(depth=2)
    values = {
        name: lines(Settings(algorithm=algorithm, hash_mib=1, evaluator=name), limits, position)[-1][1]
        for name in ("default", evaluators.HAND, "net-copenhagen-7")
    }
    assert values["default"] == values[evaluators.HAND] != values["net-copenhagen-7"]


def test_every_thread_of_a_tree_search_evaluates_a_siege_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    attune = evaluators.attune

    def told(params: Any, *about: Any) -> None:
        attune(params, *about)
        seen.append(int(params[0]["siege"]))

    monkeypatch.setattr(evaluators, "attune", told)
    lines(Settings(algorithm="puct", hash_mib=1, threads=3), Limits(nodes=100), siege("3T7", "a"))
    assert seen == [1, 1, 1]


CAGED = {
    "a corner beside him is open": (
        "copenhagen",
        "3Ttt2T2/1tK1t2tt2/tttt4t1T/2tttt5/2t8/11/11/11/T10/11/8T2",
    ),
    "shut off": ("copenhagen", "4ttKt3/1Tt3t4/T1tt2t3t/4t6/2T3t4/11/7t3/11/5t2t1T/1T6T2/11"),
    "eight men": ("fetlar", "8T2/1T7T1/T7tt1/7t2t/7tttK/6tt1tt/7tt1t/5t5/8t1T/2T6T1/8T2"),
}
"""Rules, and the board after 300 plies of a game of the engine against an older version, drawn by length."""


@pytest.mark.parametrize(("variant", "board"), CAGED.values(), ids=CAGED)
@pytest.mark.parametrize("side", ["a", "d"])
def test_a_caged_king_is_besieged_however_many_men_he_has(variant: str, board: str, side: str) -> None:
    position = games.from_fen(games.find(variant), f"{board} {side}")
    assert evaluators.is_siege("default", position)
    found, by_hand = (dict(evaluators.terms(name, position)) for name in ("default", evaluators.HAND))
    assert by_hand["siege"] == 0 < found["siege"]
    # Posts no longer count once the king is shut off.
    assert found["siege"] + found["posts"] - by_hand["posts"] == found["total"] - by_hand["total"]
    searcher = Searcher(Settings(hash_mib=1))
    lines(Settings(hash_mib=1), Limits(depth=1), position, searcher)
    men = sum(letter.isupper() for _, letter in position.pieces())
    assert (searcher.params[0]["siege"], searcher.params[0]["by_hand"]["besieged"]) == (1, men)
    best = lines(Settings(hash_mib=1), Limits(depth=1), position)[-1]
    assert best != lines(Settings(hash_mib=1, evaluator=evaluators.HAND), Limits(depth=1), position)[-1]


def test_a_cage_has_few_squares_and_many_attackers() -> None:
    """With a square more or an attacker less the network decides; a corner is open, and he has four men."""
    board = "11/11/{}/1T1T1T1T3/11/11/{}7/{}6/4t6/1K2t6/4t6 a"
    cage, wider, fewer = (
        games.from_fen(games.find("copenhagen"), board.format(*rows))
        for rows in (("ttttt6", "3t", "ttt1t"), ("ttttt6", "2tt", "tt2t"), ("tttt7", "3t", "ttt1t"))
    )
    params = tafl.parameters(cage.variant)[0]
    assert [king_region(params, position) for position in (cage, wider)] == [(CAGE, True), (CAGE + 1, True)]
    assert [attackers(position) for position in (cage, wider, fewer)] == [CAGE_ATTACKERS] * 2 + [
        CAGE_ATTACKERS - 1
    ]
    assert [evaluators.is_siege("default", position) for position in (cage, wider, fewer)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("variant", ["tawlbwrdd", "simple-11", "hingston-original"])
def test_networks_whose_rules_have_no_siege_evaluate_cages_themselves(variant: str) -> None:
    board = CAGED["shut off"][1]
    position = games.from_fen(games.find(variant), f"{board} a")
    assert attackers(position) >= CAGE_ATTACKERS
    assert variant in NETWORKS
    assert not evaluators.is_siege("default", position)
    assert evaluators.terms("default", position)[0][0] == "network"


@pytest.mark.parametrize(
    ("algorithm", "limits", "closing"),
    [("alphabeta", Limits(depth=3), False), ("puct", Limits(nodes=300), True)],
    ids=["alphabeta", "puct"],
)
def test_a_search_knows_no_values_of_the_other_evaluator(
    algorithm: str, limits: Limits, closing: bool
) -> None:
    """The network's are far from those by hand: what it left in the table or the tree once came out as a score."""
    board = "8T2/1T7T1/T7tt1/7t1t1/7tttK/6tt1tt/7tt1t/5t5/8t1T/2T6T1/8T2"
    free = games.from_fen(games.find("fetlar"), f"{board} a")
    caged = free.play(free.parse_move("j8k8"))
    assert [evaluators.is_siege("default", position) for position in (free, caged)] == [False, True]
    first, then = (free, caged) if closing else (caged, free)
    settings = Settings(algorithm=algorithm, hash_mib=4)
    searcher = Searcher(settings)
    lines(settings, Limits(nodes=20_000), first, searcher)
    assert lines(settings, limits, then, searcher)[-1][1] == lines(settings, limits, then)[-1][1]


def test_a_board_without_a_king_is_no_cage() -> None:
    board = CAGED["shut off"][1].replace("K", "1")
    position = games.from_fen(games.find("copenhagen"), f"{board} d")
    assert king_region(tafl.parameters(position.variant)[0], position) == (-1, False)
    assert not evaluators.is_siege("default", position)


def test_counting_the_king_s_region_may_end_early() -> None:
    position = games.initial(games.find("copenhagen"))
    params = tafl.parameters(position.variant)[0]
    all_squares, enough = king_region(params, position)[0], king_region(params, position, CAGE)[0]
    assert CAGE < enough < all_squares


def test_the_start_is_no_cage() -> None:
    """The king cannot move, but his own men stand around him, not the attackers."""
    for name in ("copenhagen", "fetlar"):
        assert not evaluators.is_siege("default", games.initial(games.find(name)))


def test_the_king_s_region_is_that_of_the_evaluator() -> None:
    """Twins: one in Python, the other a kernel. From real sieges, and with an attacker taken away, or a man added."""
    counts = [0, 0]
    for one in read(SHIPPED):
        variant = games.find(one.variant)
        params = tafl.parameters(variant)[0]
        params["besieged"] = variant.defenders + 1
        board, rest = one.fen.split(maxsplit=1)
        squares = re.sub(r"\d+", lambda found: "." * int(found[0]), board)
        for changed in (squares, squares.replace("t", ".", 1), squares.replace("t", "T", 1)):
            board = re.sub(r"\.+", lambda found: str(len(found[0])), changed)
            position = games.from_fen(variant, f"{board} {rest}")
            tafl.value(params, position.new_record()[0])
            region, is_open = king_region(params, position)
            goals = int(params["features"]["goals"])
            assert (region, is_open) == (int(params["siege"]["region"]) + goals - 1, goals > 0), (
                position.fen()
            )
            counts[is_open] += 1
    assert min(counts) > 50


def test_levels_play_by_the_evaluator_that_they_were_measured_with() -> None:
    limits = Limits(nodes=3000)
    level = lines(Settings(hash_mib=1, skill=4), limits)
    assert level == lines(Settings(hash_mib=1, skill=4, evaluator=skill.EVALUATOR), limits)
    assert level != lines(Settings(hash_mib=1, skill=4, evaluator="net-copenhagen-7"), limits)


def test_what_is_compiled_is_what_searches_need() -> None:
    copenhagen, parlett = games.find("copenhagen"), games.find("parlett-13")
    assert warmup.kind(copenhagen, Settings()) == ("tafl", "alphabeta", "nnue")
    assert warmup.kind(copenhagen, Settings(skill=3)) == ("tafl", "alphabeta", "default")
    assert warmup.kind(copenhagen, Settings(algorithm="mcts", skill=3)) == ("tafl", "mcts", "nnue")
    assert warmup.kind(parlett, Settings()) == ("tafl", "alphabeta", "default")
    assert warmup.kind(games.find("hex:5"), Settings()) == ("hex", "alphabeta", "default")


def test_who_moves_at_random_prepares_no_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal asks its rules of such an engine: an empty cache would otherwise have two processes compile."""

    def evaluate(*_: object) -> None:
        raise AssertionError("an evaluator is asked")

    monkeypatch.setattr(Searcher, "evaluate", evaluate)
    warmup.warm_game(games.find("copenhagen"), Settings(algorithm="random"))
    with pytest.raises(AssertionError, match="an evaluator is asked"):
        warmup.warm_game(games.find("copenhagen"), Settings())


def test_an_analysis_at_a_low_level_prepares_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not play down to the level, so it needs the network that the level's moves do without."""
    kinds: list[warmup.Kind] = []

    def prepare(variant: Any, settings: Settings) -> None:
        kinds.append(warmup.kind(variant, settings))

    monkeypatch.setattr(warmup, "prepare", prepare)
    session = Session()
    session.set_option("SkillLevel", "3")
    session.warm()
    assert kinds == [("tafl", "alphabeta", "default")]
    session.go(Limits(nodes=1))
    assert session.wait(SECONDS)
    assert kinds == [("tafl", "alphabeta", "default")]
    session.go(Limits())
    session.stop()
    assert session.wait(SECONDS)
    assert kinds[1:] == [("tafl", "alphabeta", "nnue")]


def test_eval_says_what_was_picked() -> None:
    session = Session()
    assert session.remarks()[0] == "evaluator net-copenhagen-7 weights copenhagen"
    assert session.evaluate()[0][0] == "network"
    session.set_variant("parlett")
    assert session.remarks() == ["evaluator default-2026.3 weights parlett-13"]
    session.set_variant("alea")
    assert session.remarks() == ["evaluator hand-alea-1 weights alea-evangelii"]


def test_the_signature_does_not_depend_on_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    before = bench.bench(depth=3)[0]
    monkeypatch.setattr(evaluators, "PICKED", {})
    assert bench.bench(depth=3)[0] == before
