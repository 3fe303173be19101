"""The log in Kafka: producer, consumer, topic, growth and dead letters."""

from hubbub.lazy import attach

attach(__name__)
