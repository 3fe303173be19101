"""The newest snapshot of a view, rendered once per version however many readers ask."""

from __future__ import annotations

import asyncio
import secrets

from anyio import to_thread

from hubbub_aggregator.web.documents import RenderedSnapshot
from hubbub_aggregator.web.view import View


class SnapshotCache:
    """A cache of one rendered snapshot, the newest; its readers call it an edition."""

    def __init__(self, view: View) -> None:
        self._view = view
        # A restarted process may reach the same version over other counts: this tells them apart.
        self._process = secrets.token_hex(4)
        self._version: int | None = None
        self._edition: RenderedSnapshot | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> RenderedSnapshot:
        """Return the rendered snapshot of the view's version."""
        if self._edition is None or self._view.version() != self._version:
            async with self._lock:
                # The version is read before the snapshot: a change in between is shown again, never missed.
                version = self._view.version()
                if self._edition is None or version != self._version:
                    edition = await to_thread.run_sync(self._render, version)
                    self._version, self._edition = version, edition
        return self._edition

    def _render(self, version: int) -> RenderedSnapshot:
        edition = RenderedSnapshot(token=f"{self._process}-{version}", snapshot=self._view.snapshot())
        edition.live  # noqa: B018 - rendered here, in the thread, not later in the event loop
        return edition
