"""The producer of records: each is stored in Kafka once, in order, and its offset returned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from hubbub_topic.errors import LogError
from hubbub_topic.kafka.brokers import librdkafka_options
from hubbub_topic.kafka.consumer import RECONNECT_MS, offset_of
from hubbub_topic.kafka.errors import code_of, in_words, is_refused, is_turned_away
from hubbub_topic.kafka.topic import MAX_RECORD_BYTES

# A device waits this long for a broker before it hears 503. Below the sealer's grace of 30 s.
DELIVERY_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.1
# Beyond the delivery timeout, in which librdkafka should report: it checks once a second.
_MARGIN_S: Final = 3.0
_FLUSH_TIMEOUT_S: Final = 10.0


class _Sent:
    """A group of records on their way, and their offsets once delivered."""

    def __init__(self, count: int) -> None:
        self.offsets = [-1] * count
        self.error: KafkaError | None = None
        self.done = threading.Event()
        self._left = count

    def delivered(self, place: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            # That one record is refused must not hide that nothing is known of another.
            if self.error is None or is_turned_away(self.error):
                self.error = error
        else:
            self.offsets[place] = offset_of(message)
        self._left -= 1
        if not self._left:
            self.done.set()


class RecordProducer:
    """An idempotent producer: what it retries by itself is stored once, in order.

    Its delivery reports come in a thread of its own, one for every record, at the latest at the delivery
    timeout: then the record is given up and never tried again.
    """

    def __init__(self, bootstrap: str, delivery_timeout_s: float) -> None:
        self._config: dict[str, Any] = {
            **librdkafka_options(bootstrap),
            "log_level": 0,
            "enable.idempotence": True,
            "acks": "all",
            "reconnect.backoff.max.ms": RECONNECT_MS,
            # The gateway has lingered already.
            "linger.ms": 0,
            "message.max.bytes": MAX_RECORD_BYTES,
            "message.timeout.ms": int(1000 * delivery_timeout_s),
            # The queue here is bounded: batches are appended one by one, so this is never reached.
            "queue.buffering.max.kbytes": 65_536,
            "error_cb": self._hear,
        }
        self._patience_s = delivery_timeout_s + _MARGIN_S
        self._said: KafkaError | None = None
        self._lock = threading.Lock()
        self._producer = Producer(self._config)
        self._stop = threading.Event()
        self._fatal = False
        self._thread = threading.Thread(target=self._serve, name="hubbub-kafka", daemon=True)
        self._thread.start()

    def _hear(self, error: KafkaError) -> None:
        """Keep the last thing that the client said of its brokers."""
        self._said = error

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.poll(_POLL_S)
            except KafkaException as error:  # fatal, such as no right to write: the thread must outlive it
                self._hear(error.args[0])
                self._stop.wait(_POLL_S)

    def send(self, records: Sequence[tuple[str, int, bytes | None, bytes]], *, minute_ms: int) -> list[int]:
        """Store (topic, partition, key, body) records, in order within a partition; return their offsets.

        Raises:
            LogError: If one of them is refused, or not known to be stored.
        """
        if not records:
            return []
        sent = _Sent(len(records))
        refused: Exception | None = None
        with self._lock:
            if self._fatal:
                # A producer that lost its place among its own records can only be replaced.
                self._producer, self._fatal, self._said = Producer(self._config), False, None
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
                    self._fatal = isinstance(error, KafkaException) and code_of(error) == KafkaError._FATAL
                    break
        if refused is not None:
            if is_refused(self._said):
                raise self._failed(records, self._said) from refused
            topics = _topics(records)
            said = f" ({self._said})" if self._said else ""
            raise LogError(f"a record of {topics} could not be produced: {refused}{said}") from refused
        if not sent.done.wait(self._patience_s):
            # Nothing is waited for without end, whatever becomes of the client's reports.
            with self._lock:
                self._producer.purge()
                self._fatal = True
            said = f" ({self._said})" if self._said else ""
            raise LogError(f"records are not known to be stored: no answer in {self._patience_s:g} s{said}")
        if sent.error is not None:
            # Without the right to write anywhere, what waited is purged, and only the client says why.
            lacks = is_refused(self._said)
            self._fatal |= lacks or sent.error.fatal()
            raise self._failed(records, self._said if lacks else sent.error)
        return sent.offsets

    @staticmethod
    def _failed(
        records: Sequence[tuple[str, int, bytes | None, bytes]], error: KafkaError | None
    ) -> LogError:
        words = in_words(error, topic=_topics(records), right="Write")
        found = "records are refused" if is_turned_away(error) else "records are not known to be stored"
        return LogError(f"{found}: {words}")

    def close(self) -> None:
        """Wait for what is under way, and end the thread."""
        self._producer.flush(_FLUSH_TIMEOUT_S)
        self._stop.set()
        self._thread.join()


def _topics(records: Sequence[tuple[str, int, bytes | None, bytes]]) -> str:
    return ", ".join(sorted({record[0] for record in records}))


def _report_to(sent: _Sent, place: int) -> Callable[[KafkaError | None, Message], None]:
    return lambda error, message: sent.delivered(place, error, message)
