"""The topics of a cluster: made, opened, and more of them where it grows."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from hubbub import Survey
from hubbub.errors import HubbubError
from hubbub.wire import PartitionMap, SurveyRecord, decode_record
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.release import AgreedClock
from hubbub_aggregator.stores import as_store_error, clocks, connected
from hubbub_collector import CollectorError
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.errors import DeployError
from hubbub_topic import LogError
from hubbub_topic.kafka import (
    DEFAULT_RETENTION_S,
    GrowingLog,
    KafkaLog,
    Topic,
    check_topic,
    create_topic,
    describe_topic,
    least_start,
)


def make_topic(
    settings: ClusterSettings,
    *,
    partitions: int,
    replication: int,
    retention_s: int = DEFAULT_RETENTION_S,
) -> Topic:
    """Make the topics of a new cluster, and note the number of partitions for good.

    Raises:
        DeployError: If the brokers refuse, or the topic is there.
    """
    try:
        made = create_topic(
            settings.brokers,
            settings.topic,
            partitions=partitions,
            replication=replication,
            retention_s=max(retention_s, settings.rebuild_s),
        )
        GrowingLog(settings.brokers, settings.topic, rebuild_s=settings.rebuild_s).close()
        return made
    except (CollectorError, LogError) as error:
        raise DeployError(str(error)) from error


def ensure_topic(
    settings: ClusterSettings, *, partitions: int, replication: int, retention_s: int = DEFAULT_RETENTION_S
) -> Topic:
    """Make the topics of a cluster unless they are there already, as they must be.

    Raises:
        DeployError: If the brokers refuse, or the topic is there with other partitions or bad settings.
    """
    try:
        return make_topic(settings, partitions=partitions, replication=replication, retention_s=retention_s)
    except DeployError as refused:
        try:
            found = describe_topic(settings.brokers, settings.topic)
        except (CollectorError, LogError):
            raise refused from None
    try:
        check_topic(settings.brokers, settings.topic, rebuild_s=settings.rebuild_s)
        with GrowingLog(settings.brokers, settings.topic, rebuild_s=settings.rebuild_s) as log:
            used = log.partition_map.periods[0].partitions
    except (CollectorError, LogError) as error:
        raise DeployError(str(error)) from error
    if used != partitions:
        raise DeployError(
            f"topic {settings.topic} must have {partitions} partitions, got {used}; they never"
            " change: `hubbub add-partitions` adds a topic with more"
        )
    return replace(found, partitions=used)


def add_partitions(
    settings: ClusterSettings, *, partitions: int, replication: int, at: datetime | None = None
) -> PartitionMap:
    """Add a topic, in force for rounds that start at or after a moment which every process can know before.

    Args:
        settings: The cluster.
        partitions: Of the new topic.
        replication: Copies of each.
        at: The moment; None for the earliest possible one.

    Raises:
        DeployError: If the moment is too early, or brokers refuse.
    """
    with opened(settings) as log:
        try:
            surveys = published_surveys(log)
            earliest = least_start(
                lambda: _latest(settings), max((survey.skew_s for survey in surveys), default=0)
            )
            from_s = earliest if at is None else int(at.timestamp())
            if from_s < earliest:
                moment = datetime.fromtimestamp(earliest, UTC).isoformat()
                raise DeployError(
                    f"--at must be {moment} or later, so that every process has learnt of it, got {at}"
                )
            name = f"{settings.topic}.{len(log.partition_map.periods) + 1}"
            create_topic(
                settings.brokers,
                name,
                partitions=partitions,
                replication=replication,
                retention_s=max(DEFAULT_RETENTION_S, settings.rebuild_s),
            )
            with KafkaLog(settings.brokers, name, partitions, rebuild_s=settings.rebuild_s) as new:
                return log.grow(new, from_s=from_s)
        except (CollectorError, LogError, HubbubError) as error:
            raise DeployError(str(error)) from error


def _latest(settings: ClusterSettings) -> float:
    """Return the later of this machine's clock and Redis', seconds since 1970.

    A moment that is early by a clock that is behind would have come before every process knew of it; one that
    is years ahead could not be taken back.

    Raises:
        DeployError: If Redis cannot be asked, or the clocks differ.
    """
    try:
        with as_store_error(), contextlib.closing(connected(settings.redis)) as client:
            return AgreedClock(time.time, lambda: clocks(client), believed="latest")()
    except AggregatorError as error:
        raise DeployError(str(error)) from error


def published_surveys(log: GrowingLog) -> list[Survey]:
    """Return all surveys that were ever put into the log, whatever retention took."""
    records = [decode_record(record) for record in log.published_surveys()]
    return [Survey.from_canonical(record.canonical) for record in records if isinstance(record, SurveyRecord)]


@contextlib.contextmanager
def opened(settings: ClusterSettings) -> Iterator[GrowingLog]:
    """Return the cluster's log, checked.

    Raises:
        DeployError: If brokers cannot be reached, or a topic is not as it must be.
    """
    try:
        log = GrowingLog(settings.brokers, settings.topic, rebuild_s=settings.rebuild_s)
    except (CollectorError, LogError) as error:
        raise DeployError(str(error)) from error
    with log:
        yield log
