"""A session for a client of the broker: its owner, and what is published about it."""

from __future__ import annotations

import time
from typing import Any

from hnefi.protocol.hosts.broker.client import Link, Message
from hnefi.protocol.hosts.sessions.engine_process import Policy
from hnefi.protocol.hosts.sessions.recording import Recording
from hnefi.protocol.hosts.sessions.session import Session

from .outgoing import Outgoing
from .requests import Request


class ClientSession(Session[Outgoing]):
    """The session that `request` asks for, published by `link`."""

    def __init__(
        self, request: Request, sid: str, policy: Policy, link: Link, recording: Recording | None = None
    ) -> None:
        super().__init__(
            request.wanted,
            sid,
            policy,
            lambda facts: Outgoing(link, request.user, sid, numbered=request.seq, facts=facts),
            recording,
        )
        self.request = request
        self.user = request.user

    def hear(self, message: Message) -> None:
        """Handle a message from the broker; a retained one is old and ignored."""
        if not message.retain:
            self.receive(message.payload)

    def facts_of(self) -> dict[str, Any]:
        """The entry for the operation `list`."""
        return {
            "sid": self.sid,
            "variant": self.variant.name if self.variant else self.request.variant or None,
            "cid": self.request.cid or None,
            "searching": self.searching,
            "last_in": self.last_in,
            "last_out": self.outgoing.last_out,
            "idle": round(time.monotonic() - self.touched),
        }
