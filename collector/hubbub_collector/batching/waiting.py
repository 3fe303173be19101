"""The ways of waiting for the answer to an upload: by a coroutine, or with nothing between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hubbub_collector.errors import NotDurable


class Waiting(Protocol):
    """A wait for the answer to an upload, ended once by one of two methods, which do not raise."""

    @property
    def began_s(self) -> float:
        """When the upload came, by the boot clock."""

    @property
    def has_given_up(self) -> bool:
        """True if nobody will read the answer: the sender hung up, or the process stops."""

    def answer(self, outcomes: bytes) -> None:
        """Say that it is durable, and give its encoded outcomes."""

    def refuse(self, error: NotDurable) -> None:
        """Say that nothing was stored."""


@dataclass(slots=True, eq=False)
class WaitingCoroutine:
    """A coroutine that waits for the answer to an upload.

    Attributes:
        future: The answer.
        began_s: When the upload came, by the boot clock.
        is_gone: Return whether the sender hung up.
    """

    future: asyncio.Future[bytes]
    began_s: float
    is_gone: Callable[[], bool]

    @property
    def has_given_up(self) -> bool:
        """True if nobody will read the answer."""
        return self.future.done() or self.is_gone()

    def answer(self, outcomes: bytes) -> None:
        """Return its outcomes to it, unless it was cancelled."""
        if not self.future.done():
            self.future.set_result(outcomes)

    def refuse(self, error: NotDurable) -> None:
        """Raise an error in it, unless it was cancelled."""
        if not self.future.done():
            self.future.set_exception(error)
