"""The deletion of everything that a cluster keeps: its topics, its keys in Redis, the dashboard's archive.

A topic is never rewritten, so one survey cannot go alone. The topics go first: what is left of a deletion
that was cut off counts nothing, and the next one finishes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hubbub_aggregator import AggregatorError
from hubbub_aggregator.stores import RecountFolder, connected, delete_keys, enter_erased, namespace_keys
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_topic import LogError
from hubbub_topic.kafka import delete_topics, readers_of, topics_of


@dataclass(frozen=True, slots=True)
class ClusterTraces:
    """The places that hold data of one cluster.

    Attributes:
        topics: Topics of reports, and those beside them.
        keys: Keys of the namespace in Redis.
        files: Files of the archive of releases, and of recounts beside it.
    """

    topics: list[str]
    keys: int
    files: list[Path]


def cluster_traces(settings: ClusterSettings, folder: Path) -> ClusterTraces:
    """Return what a cluster keeps, by its settings and the folder of its dashboard.

    Raises:
        DeployError: If Kafka or Redis cannot be reached.
    """
    with _redis(settings) as client:
        keys = namespace_keys(client, settings.namespace)
        return ClusterTraces(topics_of(settings.brokers, settings.topic), len(keys), _files(folder))


def delete_cluster(settings: ClusterSettings, folder: Path) -> None:
    """Delete everything that a cluster keeps, for good.

    Raises:
        DeployError: If an aggregator or a dashboard is at work, or something cannot be deleted; say it again
            once it can.
    """
    with _redis(settings) as client:
        keys = namespace_keys(client, settings.namespace)
        if any(key.endswith(b":lease") for key in keys):
            raise DeployError("stop all processes of the cluster first, got a dashboard at work")
        if readers := readers_of(settings.brokers, settings.group):
            raise DeployError(f"stop all processes of the cluster first, got {readers} aggregators at work")
        delete_topics(settings.brokers, topics_of(settings.brokers, settings.topic))
        delete_keys(client, keys)
        for path in _files(folder):
            path.unlink()
        enter_erased(folder)
        with contextlib.suppress(OSError):  # there is none, or somebody keeps files of their own in it
            RecountFolder(folder).path.rmdir()


def _files(folder: Path) -> list[Path]:
    archive = [path for end in ("", "-wal", "-shm") if (path := folder / f"{ARCHIVE_FILE}{end}").exists()]
    return [*archive, *RecountFolder(folder).files()]


@contextlib.contextmanager
def _redis(settings: ClusterSettings) -> Iterator[Any]:
    try:
        with contextlib.closing(connected(settings.redis)) as client:
            yield client
    except (AggregatorError, LogError) as error:
        raise DeployError(str(error)) from error
    except OSError as error:
        raise DeployError(f"{error.filename} must be a file to delete, got {error.strerror!r}") from error
