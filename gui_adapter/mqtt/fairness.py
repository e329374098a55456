"""How much one user may send, so that a flood delays nobody else, and how often the user is notified.

Decided before a message is handled, from its topic and size alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hnefi.protocol.hosts.broker import topics

BURST = 2.0
"""Seconds of the rate that may come at once."""
UNIT = 4096
"""So many bytes of a message count as one message more."""
REQUEST = 5
"""So many messages a request counts for: each is answered, and nobody has many."""
USERS = 1024
"""Of more users than this, those who have been quiet are forgotten."""
MUTE = 1.0
"""Seconds for which a session that floods is not listened to, so that the broker throws its lines away, not we."""


class Rates:
    """`rate` messages a second of each user, and `BURST` seconds of that at once."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._clock = clock
        self._most = max(1.0, BURST * rate)
        self._users: dict[str, tuple[float, float]] = {}

    def admit(self, topic: str, size: int) -> bool:
        """Whether the owner of `topic` may send another message of `size` bytes there now."""
        user = topics.owner(topic)
        if not user:
            return True
        now = self._clock()
        left, then = self._users.get(user, (self._most, now))
        left = min(self._most, left + (now - then) * self.rate)
        cost = min(self._most, (1 + size // UNIT) * (REQUEST if "/req/" in topic else 1))
        if left < cost:
            # What is refused costs nothing: who goes on flooding is heard again as soon as they pause.
            return False
        if user not in self._users and len(self._users) >= USERS:
            self._forget(now)
        self._users[user] = (left - cost, now)
        return True

    def _forget(self, now: float) -> None:
        """Who could send a whole burst is as good as unknown; if that is nobody, the one heard of longest ago."""
        full = [
            user
            for user, (left, then) in self._users.items()
            if left + (now - then) * self.rate >= self._most
        ]
        for user in full or [min(self._users, key=lambda user: self._users[user][1])]:
            del self._users[user]


class Spaced:
    """Says of each user when it is time to complain again: a flood is not answered by a flood."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: dict[str, float] = {}

    def due(self, user: str) -> bool:
        """Whether `user` has heard nothing for so many seconds; from now on they have."""
        now = self._clock()
        then = self._last.get(user)
        if then is not None and now - then < self._seconds:
            return False
        if then is None and len(self._last) >= USERS:
            self._last.clear()
        self._last[user] = now
        return True
