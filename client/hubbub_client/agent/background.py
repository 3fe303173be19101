"""A daemon thread that takes one step after another and never raises into its host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hubbub_client.errors import ClientError, LedgerError

_PATIENCE_S: Final = 2.0
"""The seconds that `stop` grants the thread: enough for any answer, and no host waits longer to exit."""

MAX_POLL_S: Final = 7 * 86_400.0
"""The longest time between two steps: a week. A thread cannot wait for times that are much longer."""


class Background:
    """A daemon thread that takes steps.

    Args:
        step: One step; returns the seconds until the next one is useful, or None if it does not matter.

    Attributes:
        thread: The thread, None before `start` and after `stop`.
        errors: How many steps failed.
        last_error: The kind of the last failure, without its message, which might quote a value.
    """

    def __init__(self, step: Callable[[], float | None]) -> None:
        self._step = step
        self._stop = threading.Event()
        self.thread: threading.Thread | None = None
        self.errors = 0
        self.last_error: str | None = None

    def start(self, poll_s: float) -> None:
        """Start the thread, unless it runs; steps are at most `poll_s` seconds apart.

        Raises:
            ClientError: `poll_s` is no time to wait. It is checked here, because an error in the thread would
                reach nobody.
        """
        if not (isinstance(poll_s, int | float) and 0 < poll_s <= MAX_POLL_S):
            raise ClientError(
                f"poll_s must be above 0 and at most {MAX_POLL_S:g} seconds, got {poll_s!r:.40}"
            )
        if self.thread is None:
            self._stop.clear()
            self.thread = threading.Thread(target=self._run, args=(poll_s,), name="hubbub-agent", daemon=True)
            self.thread.start()

    def stop(self) -> None:
        """End the thread, and wait a few seconds at most for the step under way."""
        self._stop.set()
        thread, self.thread = self.thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE_S)

    def _run(self, poll_s: float) -> None:
        while not self._stop.is_set():
            delay_s = poll_s
            try:
                wish_s = self._step()
                if wish_s is not None:
                    delay_s = min(poll_s, wish_s)
            except Exception as error:  # whatever it is, it is not the host's to handle
                self.errors += 1
                self.last_error = type(error).__name__
                if isinstance(error, LedgerError):
                    return  # it must be opened again, by the host
            self._stop.wait(delay_s)
