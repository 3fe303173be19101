"""The connections of the server: accepted many at a time, bounded each and all together, written at once."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_collector.http.acceptor import Acceptor
    from hubbub_collector.http.connection import SENDER, Connection
    from hubbub_collector.http.connections import Connections, connections_to_be_had

__all__ = ["SENDER", "Acceptor", "Connection", "Connections", "connections_to_be_had"]

attach(
    __name__,
    {
        "hubbub_collector.http.acceptor": ("Acceptor",),
        "hubbub_collector.http.connection": ("SENDER", "Connection"),
        "hubbub_collector.http.connections": ("Connections", "connections_to_be_had"),
    },
)
