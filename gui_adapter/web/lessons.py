"""Lessons for pages: the first steps in a variant, found by the worker from the rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hnefi.engine.games.base_variant import VariantError

from . import frames, records
from .frames import FrameError
from .helper import Helper


async def taught(frame: Mapping[str, Any], helper: Helper) -> dict[str, Any]:
    """The `lesson` in answer to a `lesson`: the steps for `variant`. FrameError or RequestError."""
    ident = frame.get("id")
    try:
        variant = records.variant_named(frame)
    except VariantError as error:
        raise FrameError("unknown_variant", str(error), ident) from None
    answer = await helper.ask(lesson=variant.name, rules=frames.text(frame, "rules", records.WORDS))
    return {"t": "lesson", "id": ident, "variant": variant.name, **answer}
