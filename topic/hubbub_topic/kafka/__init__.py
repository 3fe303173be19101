"""The log in Kafka: producer, consumer, topic, growth and dead letters."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_topic.kafka.brokers import (
        MECHANISMS,
        Brokers,
        BrokerSecurity,
        Mechanism,
        aiokafka_options,
        security_of,
    )
    from hubbub_topic.kafka.dead_letters import KafkaDeadTopic
    from hubbub_topic.kafka.group_reader import GroupReader
    from hubbub_topic.kafka.growing_log import GrowingLog, least_start
    from hubbub_topic.kafka.log import DEFAULT_REBUILD_S, KafkaLog
    from hubbub_topic.kafka.removal import delete_topics, readers_of, topics_of
    from hubbub_topic.kafka.topic import DEFAULT_RETENTION_S, Topic, check_topic, create_topic, describe_topic

__all__ = [
    "DEFAULT_REBUILD_S",
    "DEFAULT_RETENTION_S",
    "MECHANISMS",
    "BrokerSecurity",
    "Brokers",
    "GroupReader",
    "GrowingLog",
    "KafkaDeadTopic",
    "KafkaLog",
    "Mechanism",
    "Topic",
    "aiokafka_options",
    "check_topic",
    "create_topic",
    "delete_topics",
    "describe_topic",
    "least_start",
    "readers_of",
    "security_of",
    "topics_of",
]

attach(
    __name__,
    {
        "hubbub_topic.kafka.brokers": (
            "BrokerSecurity",
            "Brokers",
            "MECHANISMS",
            "Mechanism",
            "aiokafka_options",
            "security_of",
        ),
        "hubbub_topic.kafka.dead_letters": ("KafkaDeadTopic",),
        "hubbub_topic.kafka.group_reader": ("GroupReader",),
        "hubbub_topic.kafka.growing_log": (
            "GrowingLog",
            "least_start",
        ),
        "hubbub_topic.kafka.log": (
            "DEFAULT_REBUILD_S",
            "KafkaLog",
        ),
        "hubbub_topic.kafka.removal": (
            "delete_topics",
            "readers_of",
            "topics_of",
        ),
        "hubbub_topic.kafka.topic": (
            "DEFAULT_RETENTION_S",
            "Topic",
            "check_topic",
            "create_topic",
            "describe_topic",
        ),
    },
)
