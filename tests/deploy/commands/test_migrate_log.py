"""A node's log on its way into a topic, when the brokers fail or somebody else writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.commands.topic import migrate_log
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import LOG_FILE
from hubbub_topic import Cut
from hubbub_topic.errors import LogError
from hubbub_topic.sqlite import SqliteLog

SETTINGS = ClusterSettings(kafka="kafka:9092", redis="redis://redis")


class Topic:
    """Takes so many appends, and gives them offsets from `first` on."""

    def __init__(self, appends: int, first: int) -> None:
        self.left, self.next = appends, first

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        if not self.left:
            raise LogError("records are not known to be stored")
        self.left -= 1
        ((partition, bodies),) = batches.items()
        self.next += len(bodies)
        return {partition: self.next - len(bodies)}

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    ("topic", "why"),
    [(Topic(1, 0), "not known to be stored"), (Topic(9, 1), "somebody else writes into the topic")],
)
def test_copy_that_fails_half_way_says_what_to_do(
    topic: Topic, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteLog(tmp_path / LOG_FILE, partitions=1) as log:
        log.append({0: [b"record"] * 40})
    monkeypatch.setattr(migrate_log, "make_topic", lambda *_, **__: None)
    monkeypatch.setattr(migrate_log, "KafkaLog", lambda *_, **__: topic)
    with pytest.raises(DeployError, match=f"name another topic or delete it, and copy again; .*{why}"):
        migrate_log.migrate(tmp_path, SETTINGS, replication=1)


def test_a_log_whose_first_records_are_gone_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteLog(tmp_path / LOG_FILE, partitions=1) as log:
        log.append({0: [b"record"] * 40})
        log.trim({0: Cut(30)}, [])
    monkeypatch.setattr(migrate_log, "make_topic", lambda *_, **__: None)
    monkeypatch.setattr(migrate_log, "KafkaLog", lambda *_, **__: Topic(9, 0))
    with pytest.raises(DeployError, match="partition 0: the log must begin at 0, got 30"):
        migrate_log.migrate(tmp_path, SETTINGS, replication=1)


def test_whole_copy_says_how_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteLog(tmp_path / LOG_FILE, partitions=1) as log:
        log.append({0: [b"record"] * 40})
    monkeypatch.setattr(migrate_log, "make_topic", lambda *_, **__: None)
    monkeypatch.setattr(migrate_log, "KafkaLog", lambda *_, **__: Topic(9, 0))
    assert migrate_log.migrate(tmp_path, SETTINGS, replication=1) == 40
