"""JSON objects from strangers: read within limits of size and depth, refused with a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hnefi.engine.wording import shorten

PAYLOAD_LIMIT = 64 * 1024
DEPTH_LIMIT = 8

_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.DOTALL)


def encode(document: Mapping[str, Any]) -> bytes:
    """A JSON object as a payload."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def decode(payload: bytes, limit: int = PAYLOAD_LIMIT) -> dict[str, Any]:
    """The JSON object in a payload, within the limits; ValueError with a sentence otherwise."""
    if len(payload) > limit:
        raise ValueError(f"{len(payload)} bytes: expected at most {limit}")
    if _too_deep(payload):
        raise ValueError(f"nested deeper than {DEPTH_LIMIT} levels")
    try:
        document = json.loads(payload.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("expected UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at column {error.pos + 1}") from None
    except ValueError as error:
        raise ValueError(shorten(str(error))) from None
    if not isinstance(document, dict):
        raise ValueError(f"{shorten(document)}: expected an object")
    return document


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _too_deep(payload: bytes) -> bool:
    """Whether brackets outside strings nest deeper than the limit."""
    if payload.count(b"[") + payload.count(b"{") <= DEPTH_LIMIT:
        return False
    depth = 0
    for bracket in re.findall(rb"[\[\]{}]", _STRINGS.sub(b"", payload)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_LIMIT:
            return True
    return False
