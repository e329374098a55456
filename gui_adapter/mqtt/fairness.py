"""How much one user may send, so that a flood delays nobody else, and how often the user is notified.

This is decided before a message is handled, only from its topic and size.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hnefi.protocol.hosts.broker import topics

BURST = 2.0
"""Seconds of the rate that may come at once."""
UNIT = 4096
"""Bytes of a message that count as one additional message."""
REQUEST = 5
"""Messages that a request counts as: each needs an answer, and nobody sends many."""
USERS = 1024
"""Users to remember; beyond that, quiet ones are forgotten."""
MUTE = 1.0
"""Seconds for which we unsubscribe from a flooding session, so that the broker drops its lines instead of us."""


class Rates:
    """Allows `rate` messages a second from each user, and `BURST` seconds of that at once."""

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
            # Rejected messages cost nothing, so even a flooding user is heard again after a pause.
            return False
        if user not in self._users and len(self._users) >= USERS:
            self._forget(now)
        self._users[user] = (left - cost, now)
        return True

    def _forget(self, now: float) -> None:
        """Forget users who could send a whole burst, because they are treated like new ones; if there are none, the
        one that has been quiet longest."""
        full = [
            user
            for user, (left, then) in self._users.items()
            if left + (now - then) * self.rate >= self._most
        ]
        for user in full or [min(self._users, key=lambda user: self._users[user][1])]:
            del self._users[user]


class Spaced:
    """Decides when to complain to a user again: a flood is not answered with a flood."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: dict[str, float] = {}

    def due(self, user: str) -> bool:
        """Whether `user` has had no complaint for the given seconds; if so, one counts as sent now."""
        now = self._clock()
        then = self._last.get(user)
        if then is not None and now - then < self._seconds:
            return False
        if then is None and len(self._last) >= USERS:
            self._last.clear()
        self._last[user] = now
        return True
