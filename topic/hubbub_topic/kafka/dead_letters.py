"""The topic of dead letters, `<topic>.dead`: keyed records of what could not be counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Self

from hubbub_topic.kafka.consumer import Reader, consumer, end_offsets
from hubbub_topic.kafka.producer import DELIVERY_TIMEOUT_S, RecordProducer
from hubbub_topic.kafka.topic import dead_topic, describe_topic


class KafkaDeadTopic:
    """A dead-letter topic in Kafka that keeps the last value of each key; any process may write.

    Repeats of a key lie beside each other until retention ends them; readers take the last.

    Args:
        bootstrap: Brokers, as host:port,host:port.
        topic: The topic of reports, whose name this one's begins with.
        clock: Seconds since 1970; records bear its minute.

    Raises:
        LogError: If there is no such topic: `hubbub topic` makes it.
    """

    def __init__(self, bootstrap: str, topic: str, *, clock: Callable[[], float] = time.time) -> None:
        self._bootstrap, self._topic, self._clock = bootstrap, dead_topic(topic), clock
        describe_topic(bootstrap, self._topic)
        self._sender = RecordProducer(bootstrap, DELIVERY_TIMEOUT_S)

    def put(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep (key, value) pairs, durable on return.

        Raises:
            LogError: If one of them is not known to be stored.
        """
        placed = [(self._topic, 0, key, value) for key, value in records]
        self._sender.send(placed, minute_ms=60_000 * int(self._clock() // 60))

    def records(self) -> dict[bytes, bytes]:
        """Return every key and its last value.

        Raises:
            LogError: If they cannot be read.
        """
        asker = consumer(self._bootstrap)
        try:
            begin, end = end_offsets(asker, self._topic, 0)
        finally:
            asker.close()
        reader, found = Reader(self._bootstrap, self._topic, 0), {}
        try:
            while begin < end:
                messages = reader.messages(begin, end - begin, 2**24)
                found.update({message.key() or b"": message.value() or b"" for message in messages})
                begin += len(messages)
        finally:
            reader.close()
        return found

    def close(self) -> None:
        """Wait for what is under way, and close the connection."""
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
