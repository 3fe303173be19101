"""The move from one machine to a cluster: a node's log is copied, record by record, into a Kafka topic.

Records keep their partitions and offsets, so that the topic gives the same counts, and
every round that the node has sealed is released again with the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hubbub_collector import CollectorError
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.cluster_topics import make_topic
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import LOG_FILE
from hubbub_topic import LogError, SqliteLog
from hubbub_topic.kafka import KafkaLog

# With the largest records, 64 MiB wait for the brokers.
_RECORDS: Final = 32


def migrate(folder: Path, settings: ClusterSettings, *, replication: int) -> int:
    """Make the settings' topic with the partitions of a node's log, and copy the log into it.

    The node must be stopped. If this fails half-way, the topic is of no use: delete it and start again.

    Returns:
        How many records were copied.

    Raises:
        DeployError: If the log or the brokers cannot be used, or somebody else writes into the topic.
    """
    try:
        with SqliteLog(folder / LOG_FILE, partitions=None) as log:
            make_topic(settings, partitions=log.partitions, replication=replication)
            return _fill(settings, log)
    except (CollectorError, LogError) as error:
        raise DeployError(f"{folder}: {error}") from error


def _fill(settings: ClusterSettings, log: SqliteLog) -> int:
    try:
        with KafkaLog(settings.brokers, settings.topic, rebuild_s=settings.rebuild_s) as topic:
            return sum(_copy(log, topic, partition) for partition in range(log.partitions))
    except (CollectorError, LogError, DeployError) as error:
        raise DeployError(
            f"topic {settings.topic} must hold the whole log, and holds a part of it: name another topic or"
            f" delete it, and copy again; {error}"
        ) from error


def _copy(log: SqliteLog, topic: KafkaLog, partition: int) -> int:
    if first := log.begin(partition):
        raise DeployError(
            f"partition {partition}: the log must begin at 0, got {first}: retention took the rest"
        )
    offset = 0
    while records := log.read(partition, offset, _RECORDS):
        stored = topic.append({partition: [body for _, body in records]})
        if stored[partition] != offset:
            raise DeployError(
                f"partition {partition}: record {offset} must keep its offset, got {stored[partition]}; "
                "somebody else writes into the topic"
            )
        offset = records[-1][0] + 1
    return offset
