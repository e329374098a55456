"""The names of all topics, and what may stand in them.

Everything lies below `tafl/v1/`. A level is made of `a-z`, `0-9`, `.` and `-`, 1 to 32 characters. A client's user name
is part of every topic it writes, so that a broker can grant rights by user; receivers read the user from the topic.
"""

from __future__ import annotations

import re

from hnefi.engine.wording import shorten

ROOT = "tafl/v1"
ANY = "+"
"""Stands for one level in a filter."""
SHARE = "$share/engines"
"""Subscribers below it share the messages among themselves, where the broker can do that."""

_LEVEL = re.compile(r"[a-z0-9.-]{1,32}")
_SESSION = re.compile(r"[a-z0-9-]{4,32}")


class TopicError(ValueError):
    """A word cannot be a level of a topic; the text says what was expected."""


def level(word: str, what: str) -> str:
    """`word` if it may be a level; TopicError with `what` it was to be (`user`, `name of the engine`) otherwise."""
    if not _LEVEL.fullmatch(word):
        raise TopicError(f"{what} {shorten(word)}: expected 1 to 32 of a-z, 0-9, '.' and '-'")
    return word


def is_level(word: str) -> bool:
    """Whether `word` may be a level of a topic that we name."""
    return _LEVEL.fullmatch(word) is not None


def is_session(word: str) -> bool:
    """Whether `word` may name a session: 4 to 32 of a-z, 0-9 and '-'."""
    return _SESSION.fullmatch(word) is not None


def slug(text: str) -> str:
    """The level nearest to any text: small letters, other signs as '-'; `x` if nothing is left."""
    return re.sub(r"[^a-z0-9.-]+", "-", text.lower())[:32].strip("-") or "x"


def status(eid: str) -> str:
    """Where an engine host says, retained, whether it is there."""
    return f"{ROOT}/engine/{eid}/status"


def about(eid: str) -> str:
    """Where an engine host describes itself, retained."""
    return f"{ROOT}/engine/{eid}/about"


def requests(eid: str, user: str = ANY) -> str:
    """Where requests to one engine host go, of one user or of all."""
    return f"{ROOT}/engine/{eid}/req/{user}"


def pool_requests(variant: str, user: str = ANY) -> str:
    """Where requests go that any host may take which plays `variant`."""
    return f"{ROOT}/pool/{variant}/req/{user}"


def shared(topic_filter: str) -> str:
    """The filter under which several engines share what matches `topic_filter`."""
    return f"{SHARE}/{topic_filter}"


def reply(user: str, cid: str = "default") -> str:
    """Where replies to one client of a user go."""
    return f"{ROOT}/user/{user}/reply/{cid}"


def presence(user: str = ANY, cid: str = ANY) -> str:
    """Where a client says whether it is there."""
    return f"{ROOT}/user/{user}/presence/{cid}"


def session(user: str, sid: str, leaf: str) -> str:
    """One of a session's topics: `leaf` is `in`, `out`, `info` or `state`."""
    return f"{ROOT}/session/{user}/{sid}/{leaf}"


def arena_meta(run: str) -> str:
    """Where a run of the arena is described."""
    return f"{ROOT}/arena/{run}/meta"


def arena_state(run: str, game: str) -> str:
    """Where one game of a run stands."""
    return f"{ROOT}/arena/{run}/game/{game}/state"


def owner(topic: str) -> str:
    """The user of a request, reply, presence or session topic, empty if there is none."""
    levels = topic.split("/")
    if len(levels) < 5:
        return ""
    match levels[2]:
        case "user" | "session":
            return levels[3]
        case "engine" | "pool" if len(levels) == 6:
            return levels[5]
    return ""


def is_reply_of(topic: str, user: str) -> bool:
    """Whether `topic` is a reply topic of `user`, and nothing else."""
    head = reply(user, "")
    return topic.startswith(head) and is_level(topic[len(head) :])


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a subscription to `topic_filter` (`+` and a final `#` stand for levels) brings `topic`."""
    if topic_filter.startswith("$share/"):
        topic_filter = topic_filter.split("/", 2)[2]
    wanted, given = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted.pop()
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(
        want in (ANY, have) for want, have in zip(wanted, given, strict=True)
    )
