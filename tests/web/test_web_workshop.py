"""Rules that people make up: what a page is told of them, where it shows that they cannot be, and how fair they are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hnefi.engine.games.base_variant import VariantError
from hnefi.engine.games.tafl import variant as variants
from hnefi.engine.games.tafl.rules import SWITCHES
from hnefi.engine.games.tafl.variant import as_toml, as_words, find, from_words, parse
from hnefi.gui_adapter.web import fairness, records, workshop
from hnefi.gui_adapter.web.frames import FrameError
from hnefi.protocol.hosts.filter import Filter
from hnefi.protocol.hosts.sessions.engine_process import RequestError

START = find("brandubh").rows


@pytest.mark.parametrize("name", variants.names())
def test_a_variant_survives_its_text(name: str) -> None:
    variant = find(name)
    assert parse(as_toml(variant), "here") == variant
    line = as_words(variant)
    assert from_words(line).hash == variant.hash
    # It passes to the engine as any stranger's line may.
    assert Filter().refusal(f"rules switches {line}") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "start"),
        ("king_sides=4", "start"),
        (f"start={START} king_side=4", "king_sides"),
        (f"start={START} king_sides=4 king_sides=2", "once"),
        (f"start={START} king_sides", "switch=value"),
        (f"start={START} king_sides=5", "one of 4, 2"),
        (f"start={START} name=../x", "letters"),
        ("start=9999999999", "start"),
    ],
)
def test_words_that_are_no_rules_are_refused(text: str, reason: str) -> None:
    with pytest.raises(VariantError, match=reason):
        from_words(text)


def test_every_switch_has_a_control_once() -> None:
    shown = [switch["name"] for group in workshop.offer()["groups"] for switch in group["switches"]]
    assert shown == [switch.name for switch in SWITCHES if switch.name != "size"]


def made(**frame: Any) -> dict[str, Any]:
    return workshop.made({"t": "rules", "id": 7, **frame})


def test_rules_are_told_in_sentences_and_compared() -> None:
    told = made(name="mine", start=START, switches={"escape": "edge", "king_sides": "2"}, beside="brandubh")
    assert told["variant"]["words"].startswith(f"name=mine start={START}")
    assert told["said"]["escape"] == "Defenders win when the king reaches the edge of the board."
    assert told["said"].keys() == told["values"].keys() == {switch.name for switch in SWITCHES}
    assert "escape" in [subject for subject, _, _ in told["diff"]]
    assert told["same"] == []
    assert made(toml=told["toml"])["variant"]["words"] == told["variant"]["words"]
    assert made(words=told["variant"]["words"])["changes"] == told["changes"]
    assert made(variant="brandubh", beside="brandubh")["diff"] == []
    same = made(name="again", start=START, switches=find("brandubh").rules.changes())
    assert "brandubh" in same["same"]


@pytest.mark.parametrize(
    ("frame", "control", "reason"),
    [
        ({"switches": {"king_sides": "3"}}, "king_sides", "one of 4, 2"),
        ({"switches": {"throne": "a1"}}, "corners", "one terrain on each square"),
        ({"switches": {"corners": "z9"}}, "corners", "squares such as"),
        ({"switches": {"repetition_count": "1"}}, "repetition_count", "from 2"),
        ({"switches": {"<img>": "1"}}, "<img>", "rule switch"),
        ({"start": "7/7/7/7/7/7/7"}, "start", "exactly one K"),
        ({"start": "7/7/7"}, "start", ""),
        ({"start": "K6/7/7/3t3/7/7/7"}, "start", "no t on the throne"),
        ({"name": "a b"}, "name", "letters"),
        ({"name": "brandubh", "switches": {"escape": "edge"}}, "name", "another name"),
        ({"beside": "chess"}, "", "name of a variant"),
        ({"toml": "name = 5"}, "", "expected a name"),
        ({"toml": "x" * 40_000}, "", "not TOML"),
        ({"words": "start=K"}, "", "start"),
        ({"variant": "hex:5"}, "", "tafl"),
    ],
)
def test_what_cannot_be_is_refused_at_its_control(frame: dict[str, Any], control: str, reason: str) -> None:
    told = made(**{"name": "mine", "start": START, **frame})
    assert "variant" not in told
    assert told["control"] == control
    assert reason in told["reason"]
    assert len(told["reason"]) < 600


@pytest.mark.parametrize(
    "frame",
    [{}, {"name": "x"}, {"start": START, "switches": []}, {"start": START, "switches": {"first": 1}}, {"start": 5},
     {"toml": "x" * 60_000}, {"words": "x" * 9_000}, {"words": "a\nb"}],
)  # fmt: skip
def test_frames_that_ask_for_nothing(frame: dict[str, Any]) -> None:
    with pytest.raises(FrameError):
        made(**frame)


def test_a_game_by_rules_of_ones_own_goes_out_and_comes_back() -> None:
    words = f"name=mine start={START} escape=edge"
    sent = {"t": "export", "id": 1, "variant": "mine", "rules": words, "moves": ["a4a2"], "format": "tafl"}
    text = records.exported(sent)["text"]
    back = records.imported({"t": "import", "id": 2, "text": text})
    assert (back["variant"], back["moves"]) == ("mine", ["a4a2"])
    assert from_words(back["rules"]).hash == from_words(words).hash


@pytest.mark.process
@pytest.mark.slow
def test_a_study_counts_its_games_and_is_the_same_again() -> None:
    async def study(**more: Any) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        frame = {"t": "fair", "id": 3, "rules": f"name=mine start={START} escape=edge", "nodes": 20, **more}
        await fairness.Studies().run(frame, told.append)
        return told

    async def scene() -> None:
        first, second = await study(games=6), await study(games=6)
        assert first == second
        assert [told["a"] + told["d"] + told["draw"] for told in first] == [1, 2, 3, 4, 5, 6, 6]
        assert [told["done"] for told in first] == [False] * 6 + [True]
        assert first[-1]["plies"] >= 6 * fairness.OPENING
        with pytest.raises(FrameError):
            await study(games=1, rules="start=K")

    asyncio.run(scene())


def test_studies_are_few_and_end_with_their_page() -> None:
    async def scene() -> None:
        studies = fairness.Studies()
        studies.running = fairness.STUDIES
        with pytest.raises(RequestError, match="try again later"):
            await studies.run({"variant": "brandubh", "games": 1}, print)
        begun, ended = asyncio.Event(), asyncio.Event()

        class Endless(fairness.Studies):
            async def run(self, frame: Any, tell: Any) -> None:
                del frame, tell
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()

        study = fairness.Study(Endless(), print, print)
        study.begin({"games": 5})
        await begun.wait()
        study.begin({"games": 0})
        await ended.wait()

    asyncio.run(asyncio.wait_for(scene(), 60))
