"""The reading of a partition of a Kafka topic, record by record, and its first and last offsets."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from hubbub_topic.errors import LogError
from hubbub_topic.kafka.brokers import librdkafka_options
from hubbub_topic.kafka.errors import PATIENCE_S, POLL_S, TRANSIENT, code_of, in_words
from hubbub_topic.kafka.topic import MAX_RECORD_BYTES

RECONNECT_MS: Final = 1000  # a broker that is back should be found before devices give up on the gateway
_CHUNK: Final = 64
# Also while a partition is made, or a broker that has just started does not know its topics yet. Nobody reads
# before they are known to be made.
TRANSIENT_READS: Final = TRANSIENT | {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
}


class Reader:
    """One partition's consumer, which reads on where it stopped without asking anew."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        self._topic, self._partition = topic, partition
        self._lock = threading.Lock()
        self._consumer = consumer(bootstrap)
        self._next: int | None = None

    def messages(self, offset: int, count: int, max_bytes: int) -> list[Message]:
        """Return exactly `count` messages, which the topic is known to have, or fewer past `max_bytes`.

        Raises:
            LogError: If they cannot be had.
        """
        found: list[Message] = []
        size = 0
        deadline = time.monotonic() + PATIENCE_S
        with self._lock, _as_log_error(self._topic):
            try:
                if count > 0 and offset != self._next:
                    self._consumer.assign([TopicPartition(self._topic, self._partition, offset)])
                while len(found) < count and size < max_bytes:
                    chunk = self._consumer.consume(min(_CHUNK, count - len(found)), POLL_S)
                    errors = [error for message in chunk if (error := message.error()) is not None]
                    for error in errors:
                        if error.code() not in TRANSIENT_READS or time.monotonic() > deadline:
                            raise KafkaException(error)
                    fresh = [message for message in chunk if message.error() is None]
                    size += sum(len(message.value() or b"") for message in fresh)
                    found += fresh
                    if not fresh and time.monotonic() > deadline:
                        if found:  # the offsets after it are holes: who counts will say so
                            break
                        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
            except BaseException:
                self._next = None
                raise
            if found:
                self._next = offset_of(found[-1]) + 1
        return found

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def consumer(bootstrap: str, options: Mapping[str, object] = MappingProxyType({})) -> Consumer:
    """Return a consumer that is in no group, commits nothing and never moves to another offset by itself.

    Args:
        bootstrap: Brokers, as host:port,host:port.
        options: More settings of librdkafka.
    """
    return Consumer(
        {
            **librdkafka_options(bootstrap),
            "log_level": 0,
            "reconnect.backoff.max.ms": RECONNECT_MS,
            # Asked for by the library, used by nobody: partitions are assigned by hand.
            "group.id": "hubbub-reader",
            "enable.auto.commit": False,
            # Records that all copies have are read, as aggregators do. The default stops before the first
            # transaction that somebody leaves open: such a log would end before what is counted already.
            "isolation.level": "read_uncommitted",
            # An offset that is no longer there is an error, never silently another one.
            "auto.offset.reset": "error",
            "queued.max.messages.kbytes": 16_384,
            "fetch.message.max.bytes": MAX_RECORD_BYTES,
            # A reader that jumps waits for the question under way; half a second of it would be felt.
            "fetch.wait.max.ms": 100,
            # A full queue is looked at again so soon; by itself the library lets a second pass, in which a
            # quick reader has long had nothing to do.
            "fetch.queue.backoff.ms": 5,
            **options,
        }
    )


def end_offsets(asker: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Return the first kept offset and the next to be written; a change of leader is waited for."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            found = asker.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE_S)
        except KafkaException as error:
            if code_of(error) not in TRANSIENT_READS or time.monotonic() > deadline:
                words = in_words(error, topic=topic, right="Read")
                raise LogError(f"topic {topic}, partition {partition}: {words}") from error
            time.sleep(POLL_S)
        except RuntimeError as error:  # the consumer was closed meanwhile
            raise LogError(f"topic {topic}: {error}") from error
        else:
            if found is None:
                raise LogError(f"topic {topic}: no broker said where partition {partition} ends")
            return found


def offset_of(message: Message) -> int:
    """Return the offset of a message.

    Raises:
        LogError: If it does not say.
    """
    offset = message.offset()
    if offset is None:
        raise LogError("a stored record must have an offset, got none")
    return offset


@contextlib.contextmanager
def _as_log_error(topic: str) -> Iterator[None]:
    try:
        yield
    except (KafkaException, RuntimeError) as error:
        raise LogError(f"topic {topic}: {in_words(error, topic=topic, right='Read')}") from error
