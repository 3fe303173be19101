"""A store in Redis, one hash slot per partition, at a cost that follows what is new.

Keys of partition p, all with the hash tag ``{<namespace>:p}``, so that a cluster keeps them on one node and
one script may touch them together::

    {..}:head                    hash: identity, offset, unknown, dead, and totals as below
    {..}:surveys                 hash: digest -> canonical bytes
    {..}:rounds                  hash: digest and round -> outputs, 0 until the first report is accepted,
                                 then its issuers, a line each; "archived" once its release is kept elsewhere
    {..}:seals                   hash: digest and round -> offset of the seal
    {..}:past                    seven integers as below: the tallies of archived rounds
    {..}:lost                    list: first, end and time of every range that was given up
    {..}:round:<digest>:<round>  string of big-endian 64-bit integers: the seven tallies up to the seal, the
                                 seven after it, the counts per symbol, and for each issuer three tallies
                                 and its counts
    {..}:ids:<digest>:<round>    list of blocks of 8-byte keys; gone once the round is sealed

Publication gates and the lease lie apart (`redis_gates`).

A save is one script: it compares the stored offset, then adds. Redis does not undo a script that fails
half-way; such a partition is marked broken, and never loaded again.

A key that leaves Redis must not give a wrong release. Redis must not evict (`noeviction`), which is checked
every few seconds. A save says of each round whether it is new or known, and writes nothing where a known one
has lost its field, its integers or its ids. The head has totals beside the offset - accepted, attempts,
rounds, seals, surveys, lost - and the offset that they are of: an older release moves the offset alone, and
the next load gives the partition its totals again. They are compared in every save, as far as that costs no
search, and in every load, so before a release. Where they differ, the partition's keys must be deleted, and
all of it is counted again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self, cast

import numpy as np
import redis

from hubbub.errors import HubbubError
from hubbub.survey import Survey, number_of_round
from hubbub.wire import PartitionMap
from hubbub_aggregator.counting.dedup import IdTable, KeySet
from hubbub_aggregator.counting.lost_offsets import LostRange
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundKey
from hubbub_aggregator.errors import CorruptStoreError, ForeignStoreError, StoreConflictError, StoreError
from hubbub_aggregator.release.provisional import PublicationGate
from hubbub_aggregator.stores import redis_scripts, redis_values
from hubbub_aggregator.stores.redis_connection import as_store_error, clocks, connected, disconnect, policies
from hubbub_aggregator.stores.redis_gates import RedisGates
from hubbub_aggregator.stores.store import check

SCHEMA_VERSION: Final = 1
_ARCHIVED: Final = b"archived"
# Elements of a list of ids per read on load: 40 MB.
_BLOCKS: Final = 256
# A load that other writers keep overtaking gives up: there should be none.
_LOAD_ATTEMPTS: Final = 3


class RedisStore:
    """A store of one log's counts in Redis; any number of processes, one writer per partition.

    Args:
        client: A connection that gives bytes back and does not retry; see `connect`.
        log_identity: The log that the counts are of.
        partitions: How many partitions that log has.
        partition_map: The topics that the log consists of; one if absent.
        namespace: What all keys begin with: several logs may share a Redis.
        id_table: Makes the sets of ids of the states that are loaded.

    Raises:
        ForeignStoreError: If the namespace holds another log's counts, another number of partitions, or
            another schema version.
        StoreError: If Redis cannot be reached, or may evict keys.
    """

    def __init__(
        self,
        client: redis.Redis | redis.RedisCluster,
        *,
        log_identity: str,
        partitions: int,
        partition_map: PartitionMap | None = None,
        namespace: str = "hubbub",
        id_table: Callable[[], KeySet] = IdTable,
    ) -> None:
        if not namespace or set("{}") & set(namespace):
            raise ForeignStoreError(f"namespace must be a name without braces, got {namespace!r}")
        # Its answers are typed as either of sync and async; here they are always sync.
        self._redis = cast(Any, client)
        self._partitions, self._namespace, self._id_table = partitions, namespace, id_table
        self._partition_map = partition_map or PartitionMap.of(partitions, identity=log_identity)
        self._gates = RedisGates(client, log_identity=log_identity, namespace=namespace)
        self._compiled: dict[bytes, Survey] = {}
        self.verify()
        with as_store_error():
            self._save = self._redis.register_script(redis_scripts.SAVE)
            self._forget = self._redis.register_script(redis_scripts.FORGET)
            self._load = self._redis.register_script(redis_scripts.READ)
            self._set_totals = self._redis.register_script(redis_scripts.SET_TOTALS)
            for partition in range(partitions):
                found = self._redis.hget(self._key(partition, "head"), "identity")
                expected = self._identity(partition)
                if found not in (None, expected):
                    raise ForeignStoreError(
                        f"namespace {namespace} must be the store of {expected.decode()}, "
                        f"got {found.decode()}"
                    )

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        log_identity: str,
        partitions: int,
        partition_map: PartitionMap | None = None,
        namespace: str = "hubbub",
        id_table: Callable[[], KeySet] = IdTable,
    ) -> Self:
        """Return a store on the Redis at `url`: redis://host:6379/0, or redis+cluster://host:6379.

        Raises:
            ForeignStoreError: As for the class.
            StoreError: As for the class.
        """
        client = connected(url)
        try:
            return cls(
                client,
                log_identity=log_identity,
                partitions=partitions,
                partition_map=partition_map,
                namespace=namespace,
                id_table=id_table,
            )
        except BaseException:
            disconnect(client)
            raise

    def verify(self) -> None:
        """Check that no server evicts keys when its memory is full.

        Raises:
            StoreError: If one may, or does not answer.
        """
        with as_store_error():
            for policy in policies(self._redis):
                if policy != "noeviction":
                    raise StoreError(f"maxmemory-policy must be noeviction, got {policy}")

    def close(self) -> None:
        """Release the lease if it is held, and close the connections."""
        if self._gates.holds_lease:
            with suppress(StoreError):
                self.release_lease()
        disconnect(self._redis)

    def _identity(self, partition: int) -> bytes:
        """Return the identity of a partition's counts: its topic, that topic's growth, and the schema."""
        period = self._partition_map.periods[self._partition_map.place(partition)[0]]
        identity = {"log": period.identity, "partitions": period.partitions, "schema": SCHEMA_VERSION}
        return json.dumps(identity, sort_keys=True).encode()

    def _key(self, partition: int, *parts: str) -> str:
        return ":".join((f"{{{self._namespace}:{partition}}}", *parts))

    def _round_keys(self, partition: int, key: RoundKey) -> tuple[str, str]:
        """Return the names of a round's integers and of its ids."""
        names = key[0].hex(), str(key[1])
        return self._key(partition, "round", *names), self._key(partition, "ids", *names)

    def offset(self, partition: int) -> int:
        """Return the next offset that is stored, without loading anything else."""
        self._check_partition(partition)
        with as_store_error():
            return int(self._redis.hget(self._key(partition, "head"), "offset") or 0)

    def load(self, partition: int) -> PartitionState:
        """Return the state that was saved last, its id tables built anew.

        Raises:
            CorruptStoreError: If ids loaded, accepted reports and counts differ in any round, or keys
                contradict.
            StoreConflictError: If another writer kept moving the partition meanwhile.
        """
        state, totals = self._consistent(partition, with_ids=True)
        check(partition, state)
        if totals is None and state.offset:
            # An older release saved last. Whoever moved the partition since saved no totals either.
            words = [word for pair in redis_values.totals_of(state).items() for word in pair]
            with as_store_error():
                self._set_totals(keys=[self._key(partition, "head")], args=[state.offset, *words])
        return state

    def load_counts(self, partition: int) -> PartitionState:
        """Return the state without ids: enough to release and to show, not to count on.

        Raises:
            CorruptStoreError: If keys contradict each other.
            StoreConflictError: If another writer kept moving the partition meanwhile.
        """
        return self._consistent(partition, with_ids=False)[0]

    def _consistent(self, partition: int, *, with_ids: bool) -> tuple[PartitionState, dict[str, int] | None]:
        """Return the state, and its totals, None where an older release saved last."""
        self._check_partition(partition)
        for _ in range(_LOAD_ATTEMPTS):
            try:
                with as_store_error():
                    found = self._read(partition, with_ids=with_ids)
            except (HubbubError, ValueError, TypeError, KeyError) as error:
                raise CorruptStoreError(f"partition {partition}: {error!r}") from error
            if found is not None:
                return found
        raise StoreConflictError(
            f"partition {partition} must stand still to be loaded; another writer moves it"
        )

    def _read(self, partition: int, *, with_ids: bool) -> tuple[PartitionState, dict[str, int] | None] | None:
        """Return the state and its totals, or None if it moved while it was read."""
        # Names first: a script must be told the keys that it reads.
        fields = self._redis.hkeys(self._key(partition, "rounds"))
        keys = [self._key(partition, name) for name in ("head", "surveys", "rounds", "seals", "lost", "past")]
        keys += [self._round_keys(partition, redis_values.round_of(field))[0] for field in fields]
        *hashes, lost, past, found = self._load(keys=keys)
        head, surveys, rounds, seals = (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in hashes)
        if set(rounds) != set(fields):
            return None
        integers = dict(zip(fields, found, strict=True))
        if b"broken" in head:
            raise ValueError(f"a save failed half-way: {head[b'broken']!r}")
        if not head and (surveys or rounds or seals or past or lost):
            raise ValueError("there are rounds or surveys but no head")
        if head and head.get(b"identity") != self._identity(partition):
            raise ForeignStoreError(
                f"partition {partition} must be of {self._identity(partition)!r}, got {head}"
            )
        state = PartitionState(
            offset=int(head.get(b"offset", 0)),
            surveys={digest: self._survey(canonical) for digest, canonical in surveys.items()},
            unknown=int(head.get(b"unknown", 0)),
            dead=int(head.get(b"dead", 0)),
            past=redis_values.past_of(past),
            lost=tuple(LostRange(*map(int, entry.split())) for entry in lost),
            id_set=self._id_table,
        )
        if not state.past.holds:
            raise ValueError(f"attempts of archived rounds must be the sum of the verdicts, got {state.past}")
        if any(survey.digest != digest for digest, survey in state.surveys.items()):
            raise ValueError("a survey must lie under its own digest")
        if seals.keys() - rounds.keys():
            raise ValueError("every seal must be of a round")
        for field, outputs in rounds.items():
            key, data = redis_values.round_of(field), integers[field]
            if outputs == _ARCHIVED:
                known = redis_values.round_state(data or b"", b"0")
                known.sealed_at, known.is_archived = int(seals[field]), True
                state.rounds[key] = known
                continue
            if data is None:
                raise ValueError(
                    f"round {number_of_round(key[1])} of {key[0].hex()} must have its integers, got none"
                )
            known = redis_values.round_state(data, outputs)
            known.sealed_at = int(seals[field]) if field in seals else None
            if with_ids:
                known.seen = self._table(self._round_keys(partition, key)[1])
            state.rounds[key] = known
        totals = redis_values.saved_totals(head)
        if totals is not None and totals != (here := redis_values.totals_of(state)):
            raise ValueError(f"totals must be as they were saved, {totals}, got {here}")
        # Ids come in pieces, one after another.
        is_still = not with_ids or self.offset(partition) == state.offset
        return (state, totals) if is_still else None

    def _survey(self, canonical: bytes) -> Survey:
        """Return the survey, compiled once: a publisher loads every partition several times a second."""
        found = self._compiled.get(canonical)
        if found is None:
            found = self._compiled[canonical] = Survey.from_canonical(canonical)
        return found

    def _table(self, name: str) -> KeySet | None:
        table, start = self._id_table(), 0
        while blocks := self._redis.lrange(name, start, start + _BLOCKS - 1):
            keys = np.frombuffer(b"".join(blocks), dtype=redis_values.KEY).astype(np.uint64)
            fresh = table.fresh_keys(keys)
            if fresh.mask is not None or not keys.all():
                raise ValueError("ids of one round must all differ")
            table.add(fresh)
            start += len(blocks)
        return table if start else None

    def save(self, partition: int, change: Change) -> None:
        """Make a change durable as far as Redis is: by its append-only file, within a second.

        What Redis forgets in a crash is read from the log again.

        Raises:
            StoreConflictError: If the stored offset is not `change.previous`: another writer was here, or
                Redis came back older.
            CorruptStoreError: If a key has gone since it was loaded or saved; then nothing is written.
            StoreError: If Redis did not answer, or refused; the change may have been made.
        """
        self._check_partition(partition)
        keys, words = redis_values.command(change, partial(self._key, partition))
        with as_store_error():
            verdict, found = self._save(keys=keys, args=[self._identity(partition), *words])
        if verdict == b"conflict":
            raise StoreConflictError(
                f"partition {partition}: offset must be {change.previous}, got {found.decode()}"
            )
        if verdict == b"foreign":
            raise ForeignStoreError(
                f"partition {partition} must be of {self._identity(partition)!r}, got {found!r}"
            )
        if verdict == b"changed":
            raise CorruptStoreError(
                f"partition {partition}: must be as it was loaded and saved; {found.decode()}"
            )
        if verdict != b"saved":
            raise StoreError(f"partition {partition}: Redis refused a save: {found.decode()}")

    def forget(self, partition: int, key: RoundKey) -> None:
        """Free the counts of a sealed round whose release is archived; to repeat it is harmless.

        Its tallies are added to a sum. Its seal stays, in some hundred bytes, so that late reports stay late.

        Raises:
            CorruptStoreError: If they are gone already.
            StoreError: If Redis did not answer.
        """
        self._check_partition(partition)
        numbers, _ = self._round_keys(partition, key)
        keys = [
            self._key(partition, "rounds"),
            self._key(partition, "seals"),
            numbers,
            self._key(partition, "past"),
        ]
        with as_store_error():
            done = self._forget(keys=keys, args=[redis_values.field_of(key), redis_values.TALLIES])
        if done < 0:
            raise CorruptStoreError(
                f"partition {partition}: round {number_of_round(key[1])} of {key[0].hex()} must have "
                "integers to let go of"
            )

    def clocks(self) -> list[float]:
        """Return what each server of Redis says that the time is, seconds since 1970.

        Raises:
            StoreError: If Redis did not answer.
        """
        with as_store_error():
            return clocks(self._redis)

    def hold_lease(self) -> None:
        """Take or keep the lease on sealing, releasing and showing; see `RedisGates.hold_lease`."""
        self._gates.hold_lease()

    def release_lease(self) -> None:
        """Release the lease, so that another process can begin at once."""
        self._gates.release_lease()

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        """Return the publication gates of all open rounds; see `RedisGates.load`."""
        return self._gates.load()

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Keep the gates of some rounds before anybody sees what they let through; see `RedisGates.save`."""
        self._gates.save(changed)

    def _check_partition(self, partition: int) -> None:
        if not 0 <= partition < self._partitions:
            raise ForeignStoreError(f"partition must be in [0, {self._partitions}), got {partition}")
