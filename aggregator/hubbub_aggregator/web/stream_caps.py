"""The most streams of changes that a server of the page keeps open."""

from __future__ import annotations

from dataclasses import dataclass

MAX_STREAMS = 256
"""Streams open at once. Each costs a connection and a poll; further pages are told to poll instead."""
MAX_CLIENT_STREAMS = 32
"""Streams of one client, an eighth of all: enough for a room full of pages behind one address. Behind a
reverse proxy all pages are one client; those past the bound poll."""


@dataclass(frozen=True, slots=True)
class StreamCaps:
    """The most streams open at once; a page past them polls.

    Attributes:
        total: Of all clients together, >= 1.
        client: Of one client, an IPv4 address or an IPv6 network of 64 bits, >= 1.

    Raises:
        ValueError: A cap is below 1.
    """

    total: int = MAX_STREAMS
    client: int = MAX_CLIENT_STREAMS

    def __post_init__(self) -> None:
        for name, value in (("total", self.total), ("client", self.client)):
            if value < 1:
                raise ValueError(f"streams ({name}) must be at least 1, got {value}")
