"""A log in a Kafka topic: durable when the brokers say so, produced once, read by plain consumers.

No transactions: they would put records of their own between ours, and offsets would have holes. So an append
to several partitions may be stored in some of them and still fail; its devices repeat themselves, and the
reader drops what it has. Nothing here commits offsets; whoever reads keeps its own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from hubbub_collector.errors import LogError
from hubbub_collector.kafka_topic import MAX_RECORD_BYTES, Topic, check_topic, companion, describe_topic

# A device waits this long for a broker before it hears 503. Below the sealer's grace of 30 s.
DELIVERY_TIMEOUT_S: Final = 10.0
# Open rounds and the time it takes somebody to notice: a week.
DEFAULT_REBUILD_S: Final = 7 * 86_400
# A topic that was made again lacks the surveys that were announced: so long may reports go unknown.
DEFAULT_IDENTITY_S: Final = 10.0
# One read returns at most this much (and at least one record), so that a reader's memory is bounded.
MAX_READ_BYTES: Final = 8 * 2**20
_CHUNK: Final = 64
_ASK_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.1
_RECONNECT_MS: Final = 1000  # a broker that is back should be found before devices give up on the gateway
# What brokers say while a partition is made or changes hands.
_PASSING: Final = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._TRANSPORT,
    }
)
_MAX_OFFSET: Final = 2**63
_MAX_LIMIT: Final = 2**31


class KafkaLog:
    """A Log in one topic; any number of processes append and read at once.

    Args:
        bootstrap: Brokers, as host:port,host:port.
        topic: The topic of reports, made by `kafka_topic.create_topic`.
        partitions: How many it must have; None for as many as it has.
        rebuild_s: Seconds of records that its retention must keep.
        check: What is asked of the broker at the start: "settings" reads them all; "identity" alone is for
            brokers that do not show settings.
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
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
        identity_s: float = DEFAULT_IDENTITY_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._bootstrap, self._topic, self._clock = bootstrap, topic, clock
        found: Topic
        if check == "settings":
            found = check_topic(bootstrap, topic, rebuild_s=rebuild_s)
        else:
            found = describe_topic(bootstrap, topic)
        if partitions not in (None, found.partitions):
            raise LogError(
                f"topic {topic} has {found.partitions} partitions, which never changes; got {partitions}"
            )
        self._identity, self._partitions = found.identity, found.partitions
        self._identity_s, self._identified = identity_s, time.monotonic()
        self._sender = _Sender(bootstrap, delivery_timeout_s)
        self._lock = threading.Lock()
        self._readers: dict[int, _Reader] = {}
        # Its questions go through a connection of their own: a broker answers one connection's requests in
        # order, and a fetch at the end of a partition waits for news.
        self._asker = _consumer(bootstrap)
        self._closed = False

    @property
    def identity(self) -> str:
        """The topic's id, which the broker drew when it was made."""
        return self._identity

    @property
    def partitions(self) -> int:
        """How many partitions the topic has."""
        return self._partitions

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Produces all records, once each, and waits until all copies in sync have them; see Log.append.

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

    def announce(self, key: bytes, record: bytes) -> bool:
        """Appends `record` to every partition unless the companion topic holds `key`; see Log.announce.

        A crash between the two, or two processes at once, repeat the record.
        """
        if key in self._announced():
            return False
        self.append(dict.fromkeys(range(self._partitions), (record,)))
        self._send([(companion(self._topic), 0, key, b"")])
        return True

    def _send(self, records: Sequence[tuple[str, int, bytes | None, bytes]]) -> list[int]:
        self._check_open()
        self._check_identity()
        return self._sender.send(records, minute_ms=60_000 * int(self._clock() // 60))

    def _announced(self) -> set[bytes]:
        self._check_open()
        name = companion(self._topic)
        begin, end = _ends(self._asker, name, 0)
        if begin == end:
            return set()
        reader = _Reader(self._bootstrap, name, 0)
        try:
            return {message.key() or b"" for message in reader.messages(OFFSET_BEGINNING, end - begin, 2**31)}
        finally:
            reader.close()

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Up to `limit` records, and no more than about MAX_READ_BYTES, from `offset` on; see Log.read.

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
                reader = self._readers[partition] = _Reader(self._bootstrap, self._topic, partition)
        count = min(limit, self.end(partition) - offset)
        found = reader.messages(offset, count, MAX_READ_BYTES)
        return [(_offset(message), message.value() or b"") for message in found]

    def end(self, partition: int) -> int:
        """The offset after the last record that all copies in sync have."""
        self._check_partition(partition)
        self._check_open()
        self._check_identity()
        return _ends(self._asker, self._topic, partition)[1]

    def close(self) -> None:
        """Waits for appends under way, then closes every connection; closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            readers, self._readers = list(self._readers.values()), {}
        self._sender.close()
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
        """Asks now and then whether the topic is still the one that this log was opened on."""
        if time.monotonic() - self._identified < self._identity_s:
            return
        found = describe_topic(self._bootstrap, self._topic)
        if (found.identity, found.partitions) != (self._identity, self._partitions):
            raise LogError(
                f"topic {self._topic} must be {self._identity} with {self._partitions} partitions, got "
                f"{found.identity} with {found.partitions}"
            )
        self._identified = time.monotonic()

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"log {self._topic} must be open, got a closed one")


class _Sent:
    """Records on their way, and where they came to lie."""

    def __init__(self, count: int) -> None:
        self.offsets = [-1] * count
        self.error: KafkaError | None = None
        self.done = threading.Event()
        self._left = count

    def settle(self, place: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.error = error
        else:
            self.offsets[place] = _offset(message)
        self._left -= 1
        if not self._left:
            self.done.set()


class _Sender:
    """An idempotent producer: what it retries by itself is stored once, in order.

    Its delivery reports come in a thread of its own, one for every record, at the latest at the delivery
    timeout: then the record is given up and never tried again.
    """

    def __init__(self, bootstrap: str, delivery_timeout_s: float) -> None:
        self._config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "enable.idempotence": True,
            "acks": "all",
            "reconnect.backoff.max.ms": _RECONNECT_MS,
            # The gateway has lingered already.
            "linger.ms": 0,
            "message.max.bytes": MAX_RECORD_BYTES,
            "message.timeout.ms": int(1000 * delivery_timeout_s),
            # What waits here is bounded: batches are appended one by one, so this is never reached.
            "queue.buffering.max.kbytes": 65_536,
        }
        self._lock = threading.Lock()
        self._producer = Producer(self._config)
        self._stop = threading.Event()
        self._fatal = False
        self._thread = threading.Thread(target=self._serve, name="hubbub-kafka", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(_POLL_S)

    def send(self, records: Sequence[tuple[str, int, bytes | None, bytes]], *, minute_ms: int) -> list[int]:
        """Stores (topic, partition, key, body) records, in this order within a partition; their offsets.

        Raises:
            LogError: If one of them is not known to be stored.
        """
        if not records:
            return []
        sent = _Sent(len(records))
        refused: Exception | None = None
        with self._lock:
            if self._fatal:
                # A producer that lost its place among its own records can only be replaced.
                self._producer, self._fatal = Producer(self._config), False
            for place, (topic, partition, key, body) in enumerate(records):
                try:
                    self._producer.produce(
                        topic,
                        value=body,
                        key=key,
                        partition=partition,
                        timestamp=minute_ms,
                        on_delivery=_report_to(sent, place),
                    )
                except (KafkaException, BufferError) as error:
                    refused = error
                    break
        if refused is not None:
            raise LogError(f"a record could not be produced: {refused}") from refused
        sent.done.wait()
        if sent.error is not None:
            self._fatal |= sent.error.fatal()
            raise LogError(f"records are not known to be stored: {sent.error}")
        return sent.offsets

    def close(self) -> None:
        self._producer.flush(_ASK_TIMEOUT_S)
        self._stop.set()
        self._thread.join()


def _report_to(sent: _Sent, place: int) -> Callable[[KafkaError | None, Message], None]:
    return lambda error, message: sent.settle(place, error, message)


class _Reader:
    """One partition's consumer, which reads on where it stopped without asking anew."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._lock = threading.Lock()
        self._consumer = _consumer(bootstrap)
        self._next: int | None = None

    def messages(self, offset: int, count: int, max_bytes: int) -> list[Message]:
        """Exactly `count` messages, which the topic is known to have, or fewer past `max_bytes`.

        Raises:
            LogError: If they cannot be had.
        """
        found: list[Message] = []
        size = 0
        deadline = time.monotonic() + _ASK_TIMEOUT_S
        with self._lock, _as_log_error(self._topic):
            try:
                if count > 0 and offset != self._next:
                    self._consumer.assign([TopicPartition(self._topic, self._partition, offset)])
                while len(found) < count and size < max_bytes:
                    chunk = self._consumer.consume(min(_CHUNK, count - len(found)), _POLL_S)
                    for message in chunk:
                        error = message.error()
                        if error is not None:
                            raise KafkaException(error)
                        size += len(message.value() or b"")
                    found += chunk
                    if not chunk and time.monotonic() > deadline:
                        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            except BaseException:
                self._next = None
                raise
            if found:
                self._next = _offset(found[-1]) + 1
        return found

    def close(self) -> None:
        self._consumer.close()


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "reconnect.backoff.max.ms": _RECONNECT_MS,
            # Asked for by the library, used by nobody: partitions are assigned by hand.
            "group.id": "hubbub-reader",
            "enable.auto.commit": False,
            # An offset that is no longer there is an error, never silently another one.
            "auto.offset.reset": "error",
            "queued.max.messages.kbytes": 16_384,
            "fetch.message.max.bytes": MAX_RECORD_BYTES,
            # A reader that jumps waits for the question under way; half a second of it would be felt.
            "fetch.wait.max.ms": 100,
        }
    )


def _ends(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """The first offset that is kept, and the next that will be written; a change of leader is waited for."""
    deadline = time.monotonic() + _ASK_TIMEOUT_S
    while True:
        try:
            found = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=_ASK_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                raise LogError(f"topic {topic}, partition {partition}: {error}") from error
            time.sleep(_POLL_S)
        except RuntimeError as error:  # the consumer was closed meanwhile
            raise LogError(f"topic {topic}: {error}") from error
        else:
            if found is None:
                raise LogError(f"topic {topic}: no broker said where partition {partition} ends")
            return found


def _offset(message: Message) -> int:
    offset = message.offset()
    if offset is None:
        raise LogError("a stored record must have an offset, got none")
    return offset


@contextlib.contextmanager
def _as_log_error(topic: str) -> Iterator[None]:
    try:
        yield
    except (KafkaException, RuntimeError) as error:
        raise LogError(f"topic {topic}: {error}") from error
