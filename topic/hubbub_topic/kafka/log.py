"""A log in a Kafka topic: durable when the brokers say so, produced once, read by plain consumers.

No transactions: they would put records of their own between ours, and offsets would have holes. So an append
to several partitions may be stored in some of them and still fail; its devices repeat themselves, and the
reader drops what it has. What others write in transactions is read as it lies, committed or not. Nothing here
commits offsets; whoever reads keeps its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, Self

from hubbub.wire import PartitionMap
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.consumer import Reader, consumer, end_offsets, offset_of
from hubbub_topic.kafka.producer import DELIVERY_TIMEOUT_S, RecordProducer
from hubbub_topic.kafka.topic import Topic, check_topic, describe_topic, metadata_topic

_LOG = logging.getLogger("hubbub.collector")

# Open rounds and the time it takes somebody to notice: a week.
DEFAULT_REBUILD_S: Final = 7 * 86_400
# A topic that was made again lacks the surveys that were announced: so long may reports go unknown.
DEFAULT_IDENTITY_S: Final = 10.0
# One read returns at most this much (and at least one record), so that a reader's memory is bounded.
MAX_READ_BYTES: Final = 8 * 2**20
# Keys in the metadata topic begin with this, after the identity.
_SURVEY: Final = b"survey/"
_OTHER: Final = b"note/"
_MAX_OFFSET: Final = 2**63
_MAX_LIMIT: Final = 2**31


class KafkaLog:
    """A Log in one topic; any number of processes append and read at once.

    Args:
        bootstrap: Brokers, as host:port,host:port.
        topic: The topic of reports, made by `topic.create_topic`.
        partitions: How many it must have; None for as many as it has.
        rebuild_s: Seconds of records that its retention must keep.
        check: The questions to the broker at the start: "settings" reads them all; "identity" alone is for
            brokers that do not show settings.
        describe: Return the description of a topic (bootstrap, name). Another one is only for brokers that
            cannot describe topics, such as librdkafka's mock in tests: a topic that was made again then goes
            unnoticed.
        delivery_timeout_s: Seconds after which an append that no broker confirmed has failed.
        identity_s: Seconds between two looks whether it is still the same topic.
        clock: Seconds since 1970; records bear its minute.

    Raises:
        LogError: If the topic is not there, has another number of partitions, or settings that lose records.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int | None = None,
        *,
        rebuild_s: int = DEFAULT_REBUILD_S,
        check: Literal["settings", "identity"] = "settings",
        describe: Callable[[str, str], Topic] = describe_topic,
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
        identity_s: float = DEFAULT_IDENTITY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bootstrap, self._topic, self._clock, self._describe = bootstrap, topic, clock, describe
        found: Topic
        if check == "settings":
            found = check_topic(bootstrap, topic, rebuild_s=rebuild_s)
        else:
            found = describe(bootstrap, topic)
        if partitions not in (None, found.partitions):
            raise LogError(
                f"topic {topic} has {found.partitions} partitions, which never changes; got {partitions}"
            )
        self._identity, self._partitions = found.identity, found.partitions
        # The number of partitions, once it was warned of.
        self._ignored = 0
        # The metadata topic may have served a topic of this name before.
        self._prefix = self._identity.encode() + b"/"
        self._identity_s, self._identified = identity_s, time.monotonic()
        self._sender = RecordProducer(bootstrap, delivery_timeout_s)
        self._lock = threading.Lock()
        self._readers: dict[int, Reader] = {}
        # Its questions go through a connection of their own: a broker answers one connection's requests in
        # order, and a fetch at the end of a partition waits for news.
        self._asker = consumer(bootstrap)
        self._companion: Reader | None = None
        self._noted: dict[bytes, bytes] = {}
        self._noted_to = 0
        self._noting = threading.Lock()
        self._closed = False

    def keep_to(self, partitions: int) -> None:
        """Use only the first partitions of the topic: those it had when reports were first placed there.

        Reports are placed by their id modulo that number. With another one the copies of a report would meet
        in no partition, and partitions that were added later hold no survey.

        Raises:
            LogError: If the topic has fewer.
        """
        found, self._partitions = self._partitions, partitions
        self._check_partitions(found)

    def _check_partitions(self, found: int) -> None:
        """Log a warning once of partitions that were added.

        Raises:
            LogError: If there are too few.
        """
        if found < self._partitions:
            raise LogError(f"topic {self._topic} must have {self._partitions} partitions, got {found}")
        if found > self._partitions and found != self._ignored:
            self._ignored = found
            _LOG.warning(
                "topic %s has %d partitions, and %d of them are used, as it was noted when it began: "
                "`hubbub add-partitions` is the way to more, the others stay empty",
                self._topic,
                found,
                self._partitions,
            )

    @property
    def identity(self) -> str:
        """The topic's id, which the broker drew when it was made."""
        return self._identity

    @property
    def partitions(self) -> int:
        """The number of the used partitions of the topic."""
        return self._partitions

    @property
    def partition_map(self) -> PartitionMap:
        """This topic alone."""
        return PartitionMap.of(self._partitions, topic=self._topic, identity=self._identity)

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Produce all records, once each, and wait until all copies in sync have them; see Log.append.

        A failure between brokers may leave some partitions with their records and others without.
        """
        records = []
        for partition, bodies in batches.items():
            self._check_partition(partition)
            for body in bodies:
                if not isinstance(body, bytes):
                    raise LogError(f"a record must be bytes, got {type(body).__name__}")
                records.append((self._topic, partition, None, body))
        stored: dict[int, int] = {}
        for (_, partition, _, _), offset in zip(records, self._send(records), strict=True):
            stored.setdefault(partition, offset)
        return stored

    def publish_survey(self, key: bytes, record: bytes) -> bool:
        """Append `record` to every partition unless the metadata topic holds `key`; see Log.publish_survey.

        A crash between the two, or two processes at once, repeat the record.
        """
        if key in self.surveys_by_key():
            return False
        self.append(dict.fromkeys(range(self._partitions), (record,)))
        self._note(_SURVEY + key, record)
        return True

    def published_surveys(self) -> list[bytes]:
        """Return every survey record that was published in this topic, whatever retention has deleted.

        Raises:
            LogError: If they cannot be read.
        """
        return list(self.surveys_by_key().values())

    def surveys_by_key(self) -> dict[bytes, bytes]:
        """Return the records of published surveys by key."""
        return {
            key.removeprefix(_SURVEY): value
            for key, value in self._notes().items()
            if key.startswith(_SURVEY)
        }

    def note(self, key: bytes, value: bytes) -> None:
        """Keep `value` in the metadata topic for good; the last one of a key counts.

        Raises:
            LogError: If it is not known to be stored.
        """
        self._note(_OTHER + key, value)

    def notes(self) -> dict[bytes, bytes]:
        """Return the values that `note` has kept.

        Raises:
            LogError: If it cannot be read.
        """
        return {
            key.removeprefix(_OTHER): value for key, value in self._notes().items() if key.startswith(_OTHER)
        }

    def _note(self, key: bytes, value: bytes) -> None:
        self._send([(metadata_topic(self._topic), 0, self._prefix + key, value)])

    def _send(self, records: Sequence[tuple[str, int, bytes | None, bytes]]) -> list[int]:
        self._check_open()
        self._check_identity()
        return self._sender.send(records, minute_ms=60_000 * int(self._clock() // 60))

    def _notes(self) -> dict[bytes, bytes]:
        """Return the last value of every key of this topic in its metadata topic.

        Only what is new there is read.
        """
        self._check_open()
        name = metadata_topic(self._topic)
        with self._noting:
            begin, end = end_offsets(self._asker, name, 0)
            start = max(begin, self._noted_to)
            if start < end:
                if self._companion is None:
                    self._companion = Reader(self._bootstrap, name, 0)
                for message in self._companion.messages(start, end - start, _MAX_LIMIT):
                    key = message.key() or b""
                    if key.startswith(self._prefix):
                        self._noted[key.removeprefix(self._prefix)] = message.value() or b""
                self._noted_to = end
            return dict(self._noted)

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to `limit` records, and no more than about MAX_READ_BYTES, from `offset` on.

        See Log.read.

        Raises:
            LogError: Also if records from `offset` on were there once and retention has taken them.
        """
        self._check_partition(partition)
        if not 0 <= offset < _MAX_OFFSET:
            raise LogError(f"offset must be in [0, {_MAX_OFFSET}), got {offset}")
        if not 0 < limit < _MAX_LIMIT:
            raise LogError(f"limit must be in [1, {_MAX_LIMIT}), got {limit}")
        self._check_open()
        with self._lock:
            reader = self._readers.get(partition)
            if reader is None:
                reader = self._readers[partition] = Reader(self._bootstrap, self._topic, partition)
        count = min(limit, self.end(partition) - offset)
        found = reader.messages(offset, count, MAX_READ_BYTES)
        return [(offset_of(message), message.value() or b"") for message in found]

    def begin(self, partition: int) -> int:
        """Return the first offset that retention has left; the end where it has left none."""
        self._check_partition(partition)
        self._check_open()
        return end_offsets(self._asker, self._topic, partition)[0]

    def end(self, partition: int) -> int:
        """Return the offset after the last record that all copies in sync have."""
        self._check_partition(partition)
        self._check_open()
        self._check_identity()
        return end_offsets(self._asker, self._topic, partition)[1]

    def close(self) -> None:
        """Wait for appends under way, and close every connection; closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            readers, self._readers = list(self._readers.values()), {}
        self._sender.close()
        if self._companion is not None:
            readers.append(self._companion)
        for reader in readers:
            reader.close()
        self._asker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_partition(self, partition: int) -> None:
        if not 0 <= partition < self._partitions:
            raise LogError(f"partition must be in [0, {self._partitions}), got {partition}")

    def _check_identity(self) -> None:
        """Ask now and then whether the topic is still the one that this log was opened on."""
        if time.monotonic() - self._identified < self._identity_s:
            return
        found = self._describe(self._bootstrap, self._topic)
        if found.identity != self._identity:
            raise LogError(
                f"topic {self._topic} must be {self._identity} with {self._partitions} partitions, got "
                f"{found.identity} with {found.partitions}"
            )
        self._check_partitions(found.partitions)
        self._identified = time.monotonic()

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"log {self._topic} must be open, got a closed one")
