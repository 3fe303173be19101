"""The publication gates of a log in Redis, and the lease of the process that may change them.

Three keys share the hash tag ``{<namespace>:steps}``, so that one script may touch them together::

    {..}:<log>           hash: digest and round -> the gate
    {..}:<log>:kept      how many gates there are, so that a loss of some is noticed
    {..}:<log>:lease     the token of the holder, gone LEASE_S after it was last taken
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final, cast

import redis

from hubbub.errors import HubbubError
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.errors import CorruptStoreError, LeaseLostError, StoreConflictError
from hubbub_aggregator.release.provisional import PublicationGate
from hubbub_aggregator.stores import redis_scripts, redis_values
from hubbub_aggregator.stores.redis_connection import as_store_error

# A publisher looks four times a second; past this another one may take over.
LEASE_S: Final = 10.0


class RedisGates:
    """The publication gates of one log's open rounds, and the lease on sealing, releasing and showing.

    Args:
        client: A connection that gives bytes back and does not retry.
        log_identity: The log whose rounds they are of.
        namespace: The beginning of all keys.

    Attributes:
        holds_lease: Whether this object took the lease; another process may have it by now.
    """

    def __init__(
        self, client: redis.Redis | redis.RedisCluster, *, log_identity: str, namespace: str
    ) -> None:
        # Its answers are typed as either of sync and async; here they are always sync.
        self._redis = cast(Any, client)
        self._gates = f"{{{namespace}:steps}}:{log_identity}"
        self._kept, self._lease_key = f"{self._gates}:kept", f"{self._gates}:lease"
        self._known: int | None = None  # as many as this process read or wrote; none before it did
        self._token = secrets.token_hex(8)
        self.holds_lease = False
        self._lease = self._redis.register_script(redis_scripts.LEASE)
        self._save = self._redis.register_script(redis_scripts.SAVE_GATES)

    def hold_lease(self) -> None:
        """Take or keep the lease for LEASE_S.

        Raises:
            LeaseLostError: If another object holds it.
            StoreError: If Redis did not answer.
        """
        with as_store_error():
            held = self._lease(keys=[self._lease_key], args=[self._token, int(1000 * LEASE_S)])
        if not held:
            raise LeaseLostError("the lease on sealing and releasing must be free, another process holds it")
        self.holds_lease = True

    def release_lease(self) -> None:
        """Release the lease, so that another process can begin at once.

        Raises:
            StoreError: If Redis did not answer.
        """
        with as_store_error():
            self._lease(keys=[self._lease_key], args=[self._token, 0])

    def load(self) -> dict[RoundKey, PublicationGate]:
        """Return the gates of all open rounds.

        Raises:
            CorruptStoreError: If what is kept there are no gates, or some of them have gone.
            StoreError: If Redis did not answer.
        """
        with as_store_error(), self._redis.pipeline() as together:
            found, kept = together.hgetall(self._gates).get(self._kept).execute()
        if kept is not None and kept != b"%d" % len(found):
            raise self._are_gone()
        self._known = len(found)
        try:
            return {
                redis_values.round_of(field): redis_values.unpack_gate(data) for field, data in found.items()
            }
        except (HubbubError, ValueError, TypeError) as error:
            raise CorruptStoreError(f"{self._gates}: {error!r}") from error

    def save(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Keep the gates of some rounds; None forgets a round's.

        Raises:
            LeaseLostError: If another process holds the lease.
            StoreConflictError: If there are others than this process knows of, all that were kept then: Redis
                came back older, or another process wrote.
            CorruptStoreError: If some of those kept before have gone.
            StoreError: If Redis did not answer.
        """
        if not changed:
            return
        words: list[bytes] = []
        for key, gate in changed.items():
            words += redis_values.field_of(key), b"" if gate is None else redis_values.pack_gate(gate)
        with as_store_error():
            keys = [self._gates, self._lease_key, self._kept]
            known = "" if self._known is None else self._known
            verdict, there = self._save(keys=keys, args=[self._token, known, *words])
        if verdict == -1:
            raise LeaseLostError("steps must be saved by who holds the lease, another process does")
        if verdict == -3:
            raise StoreConflictError(
                f"{self._gates}: steps must be {known}, got {there}: Redis came back older, or another "
                "process was at work"
            )
        if verdict < 0:
            raise self._are_gone()
        self._known = there

    def _are_gone(self) -> CorruptStoreError:
        return CorruptStoreError(
            f"{self._gates} must hold as many steps as {self._kept} says: what open rounds showed is "
            "not known any more; if both keys are deleted, they show themselves anew"
        )
