"""Files of the commit before the packages were divided into rooms: they open, count and release the same.

tests/golden/before-house/README.md says how they were made. Nothing here writes them.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from counting_logs import counted
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import AGREED, DAY_S, FAST, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector
from redis_harness import needs_redis, running
from surveys import ACTIVITY, AGE_BY_SEX, START_S

from hubbub import Survey
from hubbub.survey import SurveyList, open_signed, public_key, public_text
from hubbub_aggregator.release import METHOD, Method
from hubbub_aggregator.runners.embedded import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.stores.store import Store
from hubbub_aggregator.web.view import LiveView
from hubbub_client import Agent, ListRefused
from hubbub_client.upload.transport import Response
from hubbub_deploy.cluster import ARCHIVE_FILE
from hubbub_deploy.commands.replay import log_count, log_replay
from hubbub_deploy.commands.replay.log_replay import LogReplaySettings
from hubbub_deploy.node import LOG_FILE
from hubbub_topic import SqliteLog

THEN = Path(__file__).parents[1] / "golden" / "before-house"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SURVEYS = (HEALTH_SURVEY, VISITS_SURVEY, Survey.parse(AGE_BY_SEX), Survey.parse(ACTIVITY))
MIDWAY_S = START_S + DAY_S + DAY_S // 2
"""Round 0 is released, round 1 is open."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with copies, since even a reader may write beside a database."""
    for path in THEN.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture
def log(folder: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(folder / "log.db", None)
    yield log
    log.close()


def releases(name: str) -> dict[str, str]:
    return json.loads((THEN / "releases.json").read_text())[name]


def run(log: SqliteLog, store: Store, path: Path, now_s: float, method: Method = 1) -> dict[str, str]:
    """Count, seal and release all that is due; return the archive's bytes by round."""
    archive = SqliteArchive(path)
    worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: now_s, method=method)
    while worker.step() or not worker.is_caught_up:
        pass
    found = {f"{key[0].hex()}-{key[1]}": archive.get(key).decode() for key in archive.rounds()}
    archive.close()
    return found


def sqlite_store(path: Path, log: SqliteLog) -> SqliteStore:
    return SqliteStore(path, log_identity=log.identity, partitions=2)


def test_what_was_released_then_is_served_and_what_follows_has_the_same_bytes(folder, log):
    store = sqlite_store(folder / "store.db", log)
    assert run(log, store, folder / "archive.db", MIDWAY_S) == releases("then")
    later = run(log, store, folder / "archive.db", START_S + 3 * DAY_S)
    store.close()
    assert later == releases("later")
    assert len(later) == 8 == 2 * len(releases("then"))  # four surveys of every form


def test_rounds_released_later_have_the_present_method_and_all_are_recomputed_by_their_own(
    folder, log, capsys
):
    store = sqlite_store(folder / "store.db", log)
    later = run(log, store, folder / "archive.db", START_S + 3 * DAY_S, method=METHOD)
    store.close()
    then = releases("then")
    assert {name: later[name] for name in then} == then
    assert [json.loads(later[name]).get("method") for name in sorted(later)] == [None, METHOD] * 4
    log.close()  # so that the file holds everything
    shutil.copy(folder / "log.db", folder / LOG_FILE)
    shutil.copy(folder / "archive.db", folder / ARCHIVE_FILE)
    assert log_replay.run(LogReplaySettings(source=str(folder))) == 0
    assert capsys.readouterr().out.count("the same bytes") == 8
    # Control: by one method alone, half of them are others.
    states, layout = log_count.counted(str(folder))
    found = log_replay.releases(states, {survey.digest: survey for survey in SURVEYS}, layout)
    assert sum(data.decode() in later.values() for data in found.values()) == 4


def test_the_log_counted_anew_gives_the_same_state_and_the_same_releases(folder, log):
    kept, anew = sqlite_store(folder / "store.db", log), sqlite_store(folder / "new.db", log)
    run(log, anew, folder / "new-archive.db", MIDWAY_S)
    for partition in range(2):
        then, now = kept.load(partition), anew.load(partition)
        assert (then.offset, then.unknown, then.dead) == (now.offset, now.unknown, now.dead)
        assert then.dead == partition
        assert counted(then).keys() == counted(now).keys()
        assert counted(then) == counted(now)
    assert run(log, anew, folder / "new-archive.db", START_S + 3 * DAY_S) == releases("later")
    kept.close()
    anew.close()


def test_reports_of_the_log_are_those_that_the_seed_says(folder, log):
    """The numbers that the writer sent, known without the log: all of each round are accepted once."""
    for name, text in releases("later").items():
        document = json.loads(text)
        place = [survey.digest.hex() for survey in SURVEYS].index(name.split("-")[0])
        verdicts = document["accounting"]
        assert verdicts["accepted"] == document["devices"] == 240 + 20 * place + document["round"]
        assert (verdicts["late"], verdicts["invalid"]) == (4, 2)
        assert verdicts["duplicate"] > 0


@pytest.mark.integration
@needs_redis
def test_counts_that_were_kept_in_redis_go_on_to_the_same_releases(folder, log, tmp_path_factory):
    with running(tmp_path_factory.mktemp("redis")) as server:
        with redis.Redis.from_url(server.url) as db:
            for line in (THEN / "redis.txt").read_text().splitlines():
                db.execute_command(*(base64.b64decode(word) for word in line.split()))
        store = RedisStore.connect(server.url, log_identity=log.identity, partitions=2, namespace="before")
        kept = sqlite_store(folder / "store.db", log)
        for partition in range(2):
            there, here = store.load(partition), kept.load(partition)
            assert there.offset == here.offset
            assert {key: value[:4] for key, value in counted(there).items()} == {
                key: value[:4] for key, value in counted(here).items()
            }
        kept.close()
        assert run(log, store, folder / "archive.db", START_S + 3 * DAY_S) == releases("later")
        store.close()


def agent(folder: Path, now_s: float, collector: Collector) -> Agent:
    return Agent(
        folder / "ledger.db",
        "http://collector.invalid",
        budget=20.0,
        clock=Clock(now_s),
        http=collector,
        limits=FAST,
        jitter=lambda: 0.5,
        policy=AGREED,
        survey_key=public_text(KEY),
    )


def test_a_ledger_states_the_same_and_sends_the_bytes_that_waited(folder):
    said, collector = json.loads((THEN / "ledger.json").read_text()), Collector()
    with agent(folder, START_S + DAY_S + 20, collector) as device:
        status = device.status()
        assert {e.survey_id: e.state for e in status.enrolments} == said["states"]
        assert said["states"]["activity"] == "cancelled"
        assert (status.budget, status.loss, status.committed) == (
            said["budget"],
            pytest.approx(said["loss"], abs=1e-9),
            pytest.approx(said["committed"], abs=1e-9),
        )
        rows = device._ledger.transcript()
        assert [repr((r.kind, r.ticket, r.slot, r.symbol)) for r in rows] == said["transcript"]
        assert device.answer() == ()  # the round is answered: nothing is drawn again
        device.upload()
    assert [body.hex() for body in collector.bodies] == said["sent_after"]
    with agent(folder, START_S + 2 * DAY_S + 20, collector) as device:
        device.answer()
        assert sum(row.kind == "record" for row in device._ledger.transcript()) == said["drawn_after"]


def test_signed_lists_open_and_are_signed_to_the_same_bytes(folder):
    pinned = public_key(public_text(KEY))
    wanted = [(1, SURVEYS, ()), (2, SURVEYS[:3], (SURVEYS[3].digest,))]
    for number, kept, gone in wanted:
        data = (THEN / f"list-{number}.bin").read_bytes()
        canonicals = tuple(survey.canonical for survey in kept)
        listed = SurveyList(number, START_S, START_S + 30 * DAY_S, canonicals, gone)
        assert open_signed(data, [pinned]).listed == listed
        assert listed.signed(KEY) == data
    collector = Collector()
    collector.surveys = Response(200, (THEN / "list-1.bin").read_bytes())
    with agent(folder, START_S + DAY_S + 20, collector) as device:
        with pytest.raises(ListRefused):  # the ledger has seen the second
            device.fetch_surveys()
        collector.surveys = Response(200, (THEN / "list-2.bin").read_bytes())
        assert [survey.digest for survey in device.fetch_surveys()] == [s.digest for s in SURVEYS[:3]]
