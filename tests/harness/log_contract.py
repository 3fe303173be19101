"""What every Log must keep; a test class of a log inherits it and gives `reopen`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from hubbub_topic.errors import LogError
from hubbub_topic.log import Log


class ClosableLog(Log, Protocol):
    def close(self) -> None: ...


# name, partitions -> an open log; the same name is the same log
Opener = Callable[[str, int], ClosableLog]


class LogContract:
    """Inherit as `class TestXLog(LogContract)` and define the fixture `opener`."""

    @pytest.fixture
    def opener(self) -> Opener:
        raise NotImplementedError

    @pytest.fixture
    def log(self, opener: Opener) -> Iterator[ClosableLog]:
        log = opener("log", 4)
        yield log
        log.close()

    def test_a_new_log_is_empty_in_every_partition(self, log: ClosableLog) -> None:
        assert log.partitions == 4
        assert [log.end(p) for p in range(4)] == [0, 0, 0, 0]
        assert [log.read(p, 0, 10) for p in range(4)] == [[], [], [], []]

    def test_offsets_begin_at_zero_and_have_no_gaps(self, log: ClosableLog) -> None:
        assert log.append({1: [b"a", b"b"], 3: [b"c"]}) == {1: 0, 3: 0}
        assert log.append({1: [b"d"], 0: []}) == {1: 2}
        assert log.read(1, 0, 10) == [(0, b"a"), (1, b"b"), (2, b"d")]
        assert log.read(3, 0, 10) == [(0, b"c")]
        assert [log.end(p) for p in range(4)] == [0, 3, 0, 1]

    def test_reading_in_chunks_gives_every_record_once_and_in_order(self, log: ClosableLog) -> None:
        records = [bytes([i]) * (i + 1) for i in range(100)]
        for start in range(0, 100, 7):
            log.append({2: records[start : start + 7]})
        found: list[tuple[int, bytes]] = []
        while chunk := log.read(2, len(found), 9):
            assert len(chunk) <= 9
            found += chunk
        assert found == list(enumerate(records))

    def test_reading_at_or_past_the_end_gives_nothing(self, log: ClosableLog) -> None:
        log.append({0: [b"a"]})
        assert log.read(0, 1, 1) == []
        assert log.read(0, 50, 1) == []

    def test_a_partition_does_not_read_into_the_next_one(self, log: ClosableLog) -> None:
        log.append({0: [b"zero"], 1: [b"one"]})
        assert log.read(0, 0, 100) == [(0, b"zero")]

    def test_bytes_come_back_as_they_were(self, log: ClosableLog) -> None:
        records = [b"", b"\x00", bytes(range(256)) * 4096]
        log.append({0: records})
        found: list[bytes] = []
        while chunk := log.read(0, len(found), 10):
            found += [body for _, body in chunk]
        assert found == records

    def test_an_append_that_fails_leaves_nothing_in_any_partition(self, log: ClosableLog) -> None:
        for partition in (4, -1):
            with pytest.raises(LogError, match="partition"):
                log.append({0: [b"a"], partition: [b"b"]})
        with pytest.raises(LogError):
            log.append({0: [b"a"], 1: [b"b", "no bytes"]})  # type: ignore[list-item]  # that is the test
        assert [log.end(p) for p in range(4)] == [0, 0, 0, 0]
        assert log.append({0: [b"c"]}) == {0: 0}
        assert log.read(0, 0, 10) == [(0, b"c")]

    @pytest.mark.parametrize(
        ("partition", "offset", "limit"), [(4, 0, 1), (-1, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, -1)]
    )
    def test_a_senseless_read_is_refused(
        self, log: ClosableLog, partition: int, offset: int, limit: int
    ) -> None:
        with pytest.raises(LogError):
            log.read(partition, offset, limit)

    def test_records_offsets_and_identity_survive_reopening(self, opener: Opener) -> None:
        log = opener("kept", 2)
        log.append({0: [b"a"], 1: [b"b", b"c"]})
        identity = log.identity
        log.close()
        log = opener("kept", 2)
        assert log.identity == identity
        assert log.append({1: [b"d"]}) == {1: 2}
        assert log.read(1, 0, 10) == [(0, b"b"), (1, b"c"), (2, b"d")]
        assert log.end(0) == 1
        log.close()

    def test_two_logs_have_two_identities(self, opener: Opener) -> None:
        one, other = opener("one", 1), opener("other", 1)
        assert one.identity
        assert one.identity != other.identity
        one.close()
        other.close()

    def test_an_announcement_is_appended_to_every_partition_once(self, opener: Opener) -> None:
        log = opener("announced", 3)
        assert log.publish_survey(b"key", b"hear ye") is True
        assert log.publish_survey(b"key", b"hear ye") is False
        log.append({0: [b"a"]})
        log.close()
        log = opener("announced", 3)
        assert log.publish_survey(b"key", b"hear ye") is False
        assert log.publish_survey(b"another key", b"news") is True
        assert [log.end(p) for p in range(3)] == [3, 2, 2]
        assert log.read(0, 0, 10) == [(0, b"hear ye"), (1, b"a"), (2, b"news")]
        log.close()

    def test_concurrent_appends_and_reads_keep_offsets_gapless(self, log: ClosableLog) -> None:
        failures: list[BaseException] = []

        def append(writer: int) -> None:
            try:
                for i in range(20):
                    log.append({i % 4: [b"%d-%d" % (writer, i)], (i + 1) % 4: [b"%d+%d" % (writer, i)]})
                    assert all(offset == k for k, (offset, _) in enumerate(log.read(i % 4, 0, 1000)))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=append, args=(w,)) for w in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        found = [log.read(p, 0, 1000) for p in range(4)]
        assert [[offset for offset, _ in records] for records in found] == [list(range(40))] * 4
        assert len({body for records in found for _, body in records}) == 160
