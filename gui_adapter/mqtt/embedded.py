"""amqtt's broker, with its faults mended that cost clients a message or a connection (seen with 0.12.1).

- A client that connects is told the retained messages of everybody's filters, one after the other. If another client
  subscribes or leaves meanwhile, that fails, and the new one is acknowledged everything but heard no more.
- What a client has published before it leaves, or before its connection breaks, is dropped if the broker is behind.
- A goodbye that comes before the broker waits for one is taken for a death, and the will is published.
- Of two clients with the same identifier both stay, and the older hears nothing more. Neither does one that has
  published to a topic of the broker (`$…`), as no client may.
- Who puts an older one out waits for ever if that one is saying something just then, or has only just come.

It knows amqtt by names that are not part of its interface; the tests of `embedded` say if one has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from amqtt.broker import Broker
from amqtt.mqtt.protocol.broker_handler import BrokerProtocolHandler

from .fairness import Rates

if TYPE_CHECKING:
    from _collections_abc import dict_items

QUEUED = 10_000
"""Messages that may wait from each client."""
PACE = 0.02
"""Seconds between two checks whether a flooding client may continue, or whether one that left has been heard out."""


class Snapshots(dict[str, Any]):
    """A dictionary that may change while somebody who waits in between goes through it."""

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(super().keys()))

    def items(self) -> dict_items[str, Any]:
        """The items as they are now."""
        return dict(super().items()).items()


class Handler(BrokerProtocolHandler):  # type: ignore[misc]
    """One client's connection: remembers its goodbye, and hears it out before it ends."""

    goodbye: Any = None
    """The packet with which the client has left."""
    reader: Any
    """Where its packets come from; None once it is stopped."""

    async def handle_disconnect(self, disconnect: Any) -> None:
        """The client leaves, or (None) the connection has broken."""
        self.goodbye = self.goodbye or disconnect
        await super().handle_disconnect(disconnect)

    async def wait_disconnect(self) -> Any:
        """Returns the goodbye, None if there was none, when all that came before it has been passed on."""
        session = self.session
        if not self.goodbye and self.reader is not None:
            await super().wait_disconnect()
        while session is not None and not session.delivered_message_queue.empty():
            await asyncio.sleep(PACE)
        return self.goodbye

    async def stop(self) -> None:
        """Ends the connection, and the reading in any case.

        amqtt cancels the reading once and waits until it says that it has ended. Before Python 3.12 `asyncio.wait_for`
        drops a cancellation that comes together with a packet; without a reader it goes no further than that packet.
        What is cancelled before it has begun says nothing at all, so it may begin.
        """
        self.reader = None
        if self._reader_ready is not None:
            await self._reader_ready.wait()
        await super().stop()


class Embedded(Broker):  # type: ignore[misc]
    """amqtt's broker, mended. With `rates` it slows down flooding clients: each has its own task, which waits, while
    messages of others pass. Otherwise all that was received would be passed on in one go, at a millisecond or two each.
    """

    def __init__(self, config: dict[str, Any], rates: Rates | None = None) -> None:
        super().__init__(config)
        self._subscriptions = Snapshots()
        self._rates = rates

    async def _initialize_client_session(self, *arguments: Any) -> tuple[Handler, Any]:
        _, session = await super()._initialize_client_session(*arguments)
        return Handler(self.plugins_manager), session

    async def _delete_session(self, client_id: str) -> None:
        _, older = self._sessions.get(client_id, (None, None))
        await super()._delete_session(client_id)
        if older is not None:
            await older.handle_connection_closed()
            await older.stop()

    async def _client_message_loop(self, client_session: Any, handler: Handler) -> None:
        await super()._client_message_loop(client_session, handler)
        if client_session.transitions.is_connected():
            # It has published what no client may, and would be acknowledged on and not be heard.
            await handler.stop()
            client_session.transitions.disconnect()

    async def _publish_retained_messages_for_subscription(self, subscription: Any, session: Any) -> None:
        # At each connection amqtt goes through all filters; a client's own are meant.
        owners = self._subscriptions.get(subscription[0], ())
        if any(owner.client_id == session.client_id for owner, _ in owners):
            await super()._publish_retained_messages_for_subscription(subscription, session)

    async def _handle_message_delivery(
        self, client_session: Any, handler: Any, wait_deliver: asyncio.Future[Any]
    ) -> bool:
        message = wait_deliver.result()
        topic = (message and message.topic) or ""
        if self._rates is not None and (topic.endswith("/in") or "/req/" in topic):
            while not self._rates.admit(topic, len(message.data or b"")):
                if client_session.delivered_message_queue.qsize() > QUEUED:
                    # Messages are acknowledged as soon as they are read, so waiting alone would stop nobody.
                    return True
                await asyncio.sleep(PACE)
        return bool(await super()._handle_message_delivery(client_session, handler, wait_deliver))
