"""The connections of the server: accepted many at a time, bounded each and all together, written at once."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_collector.http.acceptor import Acceptor
    from hubbub_collector.http.connection import Connection
    from hubbub_collector.http.connections import Connections, connections_to_be_had
    from hubbub_collector.http.door import Door, DoorConnection
    from hubbub_collector.http.exchange import Exchange
    from hubbub_collector.http.outcome_headers import outcome_head, outcome_headers
    from hubbub_collector.http.sender import SENDER, Sender

__all__ = [
    "SENDER",
    "Acceptor",
    "Connection",
    "Connections",
    "Door",
    "DoorConnection",
    "Exchange",
    "Sender",
    "connections_to_be_had",
    "outcome_head",
    "outcome_headers",
]

attach(
    __name__,
    {
        "hubbub_collector.http.acceptor": ("Acceptor",),
        "hubbub_collector.http.connection": ("Connection",),
        "hubbub_collector.http.connections": ("Connections", "connections_to_be_had"),
        "hubbub_collector.http.door": ("Door", "DoorConnection"),
        "hubbub_collector.http.exchange": ("Exchange",),
        "hubbub_collector.http.outcome_headers": ("outcome_head", "outcome_headers"),
        "hubbub_collector.http.sender": ("SENDER", "Sender"),
    },
)
