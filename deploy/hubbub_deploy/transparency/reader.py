"""A log as a stranger reads it: every entry, under a checkpoint that enough witnesses saw."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from hubbub.errors import WireError
from hubbub.transparency import (
    HASH_BYTES,
    LOG_PATH,
    TILE,
    Entry,
    LogPolicy,
    NotLoggedError,
    Witnessed,
    entries_of,
    leaf_hash,
    nodes_of,
    root_of,
    tile_path,
)
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.stores import TRANSPARENCY_FILE, TransparencyLog
from hubbub_client import TransportError
from hubbub_client.upload import HttpTransport
from hubbub_deploy.errors import DeployError

_READ_S: Final = 30.0

Bundles: TypeAlias = Callable[[int, int], bytes | None]
"""The bundle of entries of a number and a width."""


class SeenLog:
    """The entries of a log, whose hashes lead to its checkpoint.

    Args:
        witnessed: The checkpoint.
        entries: The bytes of all its entries.

    Attributes:
        witnessed: The checkpoint.
        entries: Each entry, None of one that is in no encoding of ours.
        faults: What an honest log has not: entries that cannot be read, and second ones of a key.

    Raises:
        NotLoggedError: If the entries are not those of the checkpoint.
    """

    def __init__(self, witnessed: Witnessed, entries: Sequence[bytes]) -> None:
        self.witnessed, self._nodes = witnessed, nodes_of(map(leaf_hash, entries))
        if self.root(len(entries)) != witnessed.checkpoint.root:
            raise NotLoggedError("unlogged", "a log's entries must be those of its checkpoint, got others")
        self.entries = [_decoded(data) for data in entries]
        self._first: dict[bytes, int] = {}
        self.faults: list[str] = []
        for place, entry in enumerate(self.entries):
            if entry is None:
                self.faults.append(f"entry {place} cannot be read")
            elif (first := self._first.setdefault(entry.key, place)) != place:
                self.faults.append(f"entry {place} is a second {entry.kind} of what entry {first} is about")

    def root(self, size: int) -> bytes:
        """Return the root over the first `size` entries."""
        return root_of(lambda *where: self._nodes[where], size)

    def of_key(self, entry: Entry) -> tuple[int, Entry] | None:
        """Return the place and the first entry of the same key, None without one."""
        place = self._first.get(entry.key)
        found = None if place is None else self.entries[place]
        return None if place is None or found is None else (place, found)

    def counted(self, digest: bytes, number: int) -> tuple[int, int] | None:
        """Return the place of the entry of a round's counted reports and their number, None without one."""
        found = self.of_key(Entry("counted", (digest, number, 0, 0, bytes(HASH_BYTES), bytes(HASH_BYTES))))
        n = None if found is None else found[1].fields[2]
        return None if found is None or not isinstance(n, int) else (found[0], n)


def _decoded(data: bytes) -> Entry | None:
    try:
        return Entry.decode(data)
    except WireError:
        return None


def read_log(source: str, policy: LogPolicy) -> SeenLog:
    """Return the log of a server, by its address, or of a folder.

    Raises:
        NotLoggedError: If its checkpoint or its entries are not what the policy asks for.
        DeployError: If it cannot be read.
    """
    try:
        with contextlib.ExitStack() as stack:
            if source.startswith(("http://", "https://")):
                way = HttpTransport(source, timeout_s=_READ_S, plain_http="anywhere")
                stack.callback(way.close)
                note, bundle = _got(way, "checkpoint"), _bundles(way)
            else:
                if not (path := Path(source) / TRANSPARENCY_FILE).is_file():
                    raise DeployError(f"{source} must be a folder with {TRANSPARENCY_FILE}, got none")
                log = stack.enter_context(contextlib.closing(TransparencyLog(path)))
                note, bundle = (log.published() or "").encode(), log.entries
            witnessed = policy.opened(note)
            return SeenLog(witnessed, list(_entries(bundle, witnessed.checkpoint.size)))
    except (AggregatorError, TransportError) as error:
        raise DeployError(f"{source}: {error}") from error


def _entries(bundle: Bundles, size: int) -> Iterator[bytes]:
    for number in range(-(-size // TILE)):
        width = min(TILE, size - number * TILE)
        try:
            found = entries_of(bundle(number, width) or b"")
        except WireError as error:
            raise NotLoggedError("unlogged", str(error)) from None
        if len(found) != width:
            raise NotLoggedError("unlogged", f"a log must have the {size:,} entries of its checkpoint")
        yield from found


def _bundles(way: HttpTransport) -> Bundles:
    return lambda number, width: _got(way, tile_path("entries", number, width))


def _got(way: HttpTransport, path: str) -> bytes:
    answer = way.get(f"{LOG_PATH}/{path}")
    if answer.status != 200:
        raise DeployError(f"a server must have its log's {path}, answered {answer.status}")
    return answer.body
