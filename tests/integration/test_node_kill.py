"""A node killed again and again while a crowd uploads, and while it seals and releases."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from node_fixture import PARTITIONS, SURVEYS, VERDICTS, World, in_round, wait_until
from node_load import LIMITS, Crowd, Meddler, Watcher

from hubbub.wire.report import decode_response, encode_upload
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.node import ARCHIVE_FILE, LOG_FILE, STORE_FILE
from hubbub_lab.simulation.device_simulator import Column, DeviceSimulator
from hubbub_topic.sqlite import SqliteLog

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="a life must end with the process that forked it"),
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.end()


def truth(columns: list[Column]) -> dict[tuple[bytes, int], np.ndarray]:
    """Reports sent per (digest, round) and symbol."""
    found: dict[tuple[bytes, int], np.ndarray] = {}
    for column in columns:
        counts = np.bincount(column.symbols, minlength=column.survey.channel.outputs)
        key = (column.survey.digest, column.round)
        found[key] = found.get(key, 0) + counts
    return found


def check(data: Path, columns: list[Column], sealed: int) -> dict[str, int]:
    """Holds a stopped node's files against what was sent; gives the accounting over all rounds.

    Args:
        data: The node's folder.
        columns: Everything that was acknowledged.
        sealed: How many rounds must be released.

    Raises:
        AssertionError: If any of the promises is broken.
    """
    expected, total = truth(columns), dict.fromkeys(("attempts", *VERDICTS), 0)
    with SqliteLog(data / LOG_FILE, partitions=PARTITIONS) as log, contextlib.ExitStack() as files:
        archive = files.enter_context(contextlib.closing(SqliteArchive(data / ARCHIVE_FILE)))
        kept = SqliteStore(data / STORE_FILE, log_identity=log.identity, partitions=PARTITIONS)
        files.enter_context(contextlib.closing(kept))
        states = [kept.load(partition) for partition in range(PARTITIONS)]
        assert [state.offset for state in states] == [log.end(p) for p in range(PARTITIONS)]
        assert sum(state.dead for state in states) == 0
        counted: dict[tuple[bytes, int], np.ndarray] = {}
        for state in states:
            for key, known in state.rounds.items():
                for name, value in (known.verdicts + known.after_seal).as_dict().items():
                    total[name] += value
                if len(known.counts):
                    counted[key] = counted.get(key, 0) + known.counts
        assert total["accepted"] == sum(len(column.devices) for column in columns), "accepted is not answers"
        assert counted.keys() == expected.keys()
        for key, counts in expected.items():
            assert counted[key].tolist() == counts.tolist(), "a symbol was lost, repeated or changed"

        assert len(archive.rounds()) == sealed
        for read_records in (1, 1000):
            again = recount(log, data.parent / f"again-{secrets.token_hex(4)}", read_records)
            files.enter_context(contextlib.closing(again))
            assert again.rounds() == archive.rounds()
            for key in archive.rounds():
                assert again.get(key) == archive.get(key), "a release depends on how it was counted"
        for key in archive.rounds():
            release = json.loads(archive.get(key))
            assert release["accounting"]["attempts"] == sum(release["accounting"][v] for v in VERDICTS)
            assert release["devices"] == release["accounting"]["accepted"]
            assert release["devices"] == (expected[key].sum() if key in expected else 0)
            assert release["cut"].keys() == {str(p) for p in range(PARTITIONS)}
    return total


def recount(log: SqliteLog, folder: Path, read_records: int) -> SqliteArchive:
    """The archive of a fresh store and worker on the same log, which seal nothing themselves."""
    folder.mkdir()
    archive = SqliteArchive(folder / ARCHIVE_FILE)
    store = SqliteStore(folder / STORE_FILE, log_identity=log.identity, partitions=log.partitions)
    worker = Worker(
        log, store, archive=archive, view=LiveView(), clock=lambda: 0.0, read_records=read_records
    )
    while worker.step():
        pass
    store.close()
    return archive


def fleet_of(devices: int) -> tuple[DeviceSimulator, list[Column]]:
    """Devices that have yet to send their answers of every survey's first round, and those answers."""
    fleet = DeviceSimulator(devices, budget=10.0)
    for survey in SURVEYS:
        fleet.register(survey.attribute)
        fleet.enrol(survey, now_s=in_round(0))
    return fleet, list(fleet.answer(now_s=in_round(0)))


def kill_at_random(world: World, chance: random.Random, kills: int) -> None:
    """Lives that end at times of their own; one in five is killed while it starts, one right after an act."""
    for life in range(kills):
        if life % 5 == 0:
            order = {"after": "fork", "delay_s": chance.uniform(0.0, 0.15)}
        elif life % 5 == 1:
            # Stored, but nobody was told; or counted, but the view was not.
            order = {"at": chance.choice(["appended", "saved"]), "times": chance.randrange(1, 15)}
        else:
            order = {"after": "ready", "delay_s": chance.uniform(0.0, 0.4)}
        assert world.live(**order) == -9


def test_a_node_killed_at_random_points_counts_every_answer_once(world: World) -> None:
    """18 lives over three days: every day's rounds seal while the next day's answers come in and kills go on.

    The times come from a fixed seed, what they hit does not: the promises must hold wherever it is. Every
    write of sealing and releasing is cut in the worlds of tests/simulation; here are real processes.
    """
    chance = random.Random(7)  # noqa: S311 - kill times
    watcher = Watcher(world)
    columns: list[Column] = []
    retries, refusals = 0, 0
    for number in range(3):
        world.turn(in_round(number))
        crowd = Crowd(world, in_round(number))
        meddler = Meddler(world, crowd, number)
        kill_at_random(world, chance, 6)
        with world.living():
            wait_until(lambda crowd=crowd: len(crowd.columns) >= 9, timeout_s=120.0)
            columns += crowd.finish()
            meddler.finish()
        retries += crowd.retries
        refusals += sum(meddler.answers.values())
    world.turn(in_round(3))
    with world.living():
        wait_until(lambda: world.sealed_rounds() == 6)
    watcher.finish()
    total = check(world.data, columns, sealed=6)
    # The run was what it is meant to be: cut answers, copies, refusals, and steps that somebody saw.
    assert {(column.survey.id, column.round) for column in columns} == {
        (survey.id, number) for survey in SURVEYS for number in range(survey.rounds)
    }
    assert len(columns) >= 27
    assert retries >= 18
    assert refusals >= 15
    assert min(total["duplicate"], total["early"], total["late"], total["invalid"]) > 0
    assert watcher.seen >= 15
    assert watcher.provisional > 0


def test_a_clock_that_jumps_spoils_no_count_and_no_release(world: World) -> None:
    """Forward past the seal, back into the sealed round, to 1970 and to 2100, while the node runs.

    What comes for a sealed round is late, whatever the gateway's clock says then; a release never changes.
    """
    with world.living():
        fleet, first = fleet_of(150)
        assert fleet.upload(world.url, limits=LIMITS).outcomes == {"accepted": 450}
        world.turn(in_round(1))
        wait_until(lambda: world.sealed_rounds() == 3)
        before = [survey["shown"] for survey in world.document()["surveys"]]
        world.turn(in_round(0))
        assert fleet_of(50)[0].upload(world.url, limits=LIMITS).outcomes == {"accepted": 150}
        for now_s, outcome in ((0.0, "early"), (4102444800.0, "late")):
            world.turn(now_s)
            assert fleet_of(50)[0].upload(world.url, limits=LIMITS).outcomes == {outcome: 150}
        wait_until(lambda: world.document()["accounting"]["attempts"] >= 900)
        assert [survey["shown"] for survey in world.document()["surveys"]] == before
        total = world.document()["accounting"]
        assert (total["accepted"], total["early"], total["late"]) == (450, 150, 300)
    check(world.data, first, sealed=3)


@pytest.mark.parametrize("way", ["plain", "by ASGI"])
def test_a_node_that_answers_before_it_writes_is_caught(world: World, way: str) -> None:
    """Negative control: a kill between answer and log, and the same check find the mistake.

    Its log is held from its start on, and it is killed when the answer is there: nothing is left to chance.
    """
    _, columns = fleet_of(1)
    body = encode_upload([column.report(0).data for column in columns])
    ends = {"plain": {}, "by ASGI": {"Connection": "close"}}
    with (
        world.living(broken="early answer", log="held", end="killed"),
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", world.port, timeout=60.0)) as node,
    ):
        node.request("POST", "/v1/reports", body, ends[way])
        answer = node.getresponse()
        assert (answer.status, decode_response(answer.read())) == (200, ["accepted"] * 3)
    with world.living():
        pass
    with pytest.raises(AssertionError, match="accepted is not answers"):
        check(world.data, columns, sealed=0)
