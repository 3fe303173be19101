"""Files of today's formats open, count, release and send the same: see tests/golden/formats/README.md.

Nothing here writes them. What the writer knows of them (surveys, numbers of devices) is read from its source.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import redis
from counting_logs import counted
from devices import DAY_S, Clock, Collector
from redis_harness import needs_redis, running
from surveys import START_S

from hubbub import Survey
from hubbub.survey import SurveyList, open_signed, public_key, public_text
from hubbub_aggregator.release import verify
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SURVEY_ROW, SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.stores.store import Store
from hubbub_aggregator.web.view import LiveView
from hubbub_client import ListRefusedError
from hubbub_client.upload.transport import Response
from hubbub_topic import SqliteLog

FORMATS = Path(__file__).parents[1] / "golden" / "formats"
ROUNDS = 3 + 2 + 2 + 2 + 8
"""Of labels, an integer, a table, a score, and the first round of eight more."""


def _writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_formats", FORMATS / "write.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


write = _writer()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with copies, since even a reader may write beside a database."""
    for path in FORMATS.glob("*.*"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture
def log(folder: Path) -> Iterator[SqliteLog]:
    log = SqliteLog(folder / "log.db", None)
    yield log
    log.close()


def releases(name: str) -> dict[str, str]:
    return json.loads((FORMATS / "releases.json").read_text())[name]


def assert_same(found: object, golden: object) -> None:
    """Holds facts to the golden ones, and numbers but for last digits, which differ between processors."""
    if isinstance(golden, dict) and isinstance(found, dict):
        assert found.keys() == golden.keys()
        for key in golden:
            assert_same(found[key], golden[key])
    elif isinstance(golden, list) and isinstance(found, list):
        assert len(found) == len(golden)
        for one, other in zip(found, golden, strict=True):
            assert_same(one, other)
    elif isinstance(golden, float):
        assert found == pytest.approx(golden, rel=1e-11, abs=1e-11)
    elif isinstance(golden, str) and golden.startswith("{"):
        assert isinstance(found, str)
        assert found == json.dumps(
            json.loads(found), sort_keys=True, ensure_ascii=False, separators=(",", ":")
        )
        assert_same(json.loads(found), json.loads(golden))
    else:
        assert (type(found), found) == (type(golden), golden)


def run(log: SqliteLog, store: Store, path: Path, now_s: float) -> dict[str, str]:
    """Count, seal and release all that is due; return the archive's bytes by round."""
    archive = SqliteArchive(path)
    worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: now_s)
    while worker.step() or not worker.is_caught_up:
        pass
    found = {f"{key[0].hex()}-{key[1]}": archive.get(key).decode() for key in archive.rounds()}
    archive.close()
    return found


def sqlite_store(path: Path, log: SqliteLog) -> SqliteStore:
    return SqliteStore(path, log_identity=log.identity, partitions=2)


def test_what_is_released_is_served_and_what_follows_has_the_same_bytes(folder, log):
    store = sqlite_store(folder / "store.db", log)
    assert_same(run(log, store, folder / "archive.db", write.MIDWAY_S), releases("then"))
    later = run(log, store, folder / "archive.db", write.END_S)
    store.close()
    assert_same(later, releases("later"))
    assert len(later) == ROUNDS and len(releases("then")) == len(write.SURVEYS) == 12


def test_the_log_counted_anew_gives_the_same_state_and_the_same_releases(folder, log):
    kept, anew = sqlite_store(folder / "store.db", log), sqlite_store(folder / "new.db", log)
    run(log, anew, folder / "new-archive.db", write.MIDWAY_S)
    for partition in range(2):
        then, now = kept.load(partition), anew.load(partition)
        assert (then.offset, then.unknown, then.dead) == (now.offset, now.unknown, now.dead)
        assert then.dead == partition
        assert counted(then) == counted(now) != {}
    assert_same(run(log, anew, folder / "new-archive.db", write.END_S), releases("later"))
    kept.close()
    anew.close()


def test_releases_tell_of_the_devices_that_the_writer_sent():
    """Known without the log: every device of a round is accepted once, and half of them send again."""
    places = {survey.digest.hex(): place for place, survey in enumerate(write.SURVEYS)}
    few = 0
    for name, text in releases("later").items():
        document, place = json.loads(text), places[name.split("-")[0]]
        index = int(name.split("-")[1])
        assert (document["method"], document["round"]) == (10, index + 1)
        verdicts, sent = document["accounting"], write.devices(place, index)
        assert verdicts["accepted"] == document["devices"] == sent
        assert (verdicts["late"], verdicts["invalid"]) == (4, 2)
        assert verdicts["duplicate"] >= sent // 2
        if sent == write.TOO_FEW:
            few += 1
            assert document["values"] == [] and document["mean"] is None
        else:
            assert document["values"] or document["mean"] is not None
        assert [each["issuer"] for each in document.get("issuers", ())] == (
            [write.ISSUER.issuer] if place == 2 else []
        )
    assert few == 1
    forms = {type(write.SURVEYS[places[name.split("-")[0]]].form) for name in releases("later")}
    assert len(forms) == 3  # of one attribute, a table, a score: newer ones are in test_form_releases


@pytest.mark.integration
@needs_redis
def test_counts_that_are_kept_in_redis_go_on_to_the_same_releases(folder, log, tmp_path_factory):
    with running(tmp_path_factory.mktemp("redis")) as server:
        with redis.Redis.from_url(server.url) as db:
            for line in (FORMATS / "redis.txt").read_text().splitlines():
                db.execute_command(*(base64.b64decode(word) for word in line.split()))
        store = RedisStore.connect(server.url, log_identity=log.identity, partitions=2, namespace="golden")
        kept = sqlite_store(folder / "store.db", log)
        for partition in range(2):
            there, here = store.load(partition), kept.load(partition)
            assert there.offset == here.offset > 0
            assert {key: value[:4] for key, value in counted(there).items()} == {
                key: value[:4] for key, value in counted(here).items()
            }
        kept.close()
        assert_same(run(log, store, folder / "archive.db", write.END_S), releases("later"))
        store.close()


def test_a_ledger_states_the_same_and_sends_the_bytes_that_waited(folder):
    then = json.loads((FORMATS / "ledger.json").read_text())
    assert then["states"]["activity"] == "cancelled" and len(then["sent_after"]) > 0
    # One a cycle; that of the first may be over.
    assert then["coming"] and {each // 5 for each in then["coming"]} >= set(range(1, 6))
    with write.agent(folder, Clock(START_S + DAY_S + 20), Collector()) as device:
        rows = write.transcript(device)
        assert rows == then["transcript"]
        assert device.answer() == ()  # the round is answered: nothing is drawn again
        assert write.transcript(device) == rows
    now = write.said_of(folder)
    for name in ("loss", "committed"):
        assert now.pop(name) == pytest.approx(then.pop(name), abs=1e-9)
    assert now == then


def test_signed_lists_open_and_are_signed_to_the_same_bytes(folder):
    pinned = public_key(public_text(write.KEY))
    surveys = write.ON_DEVICE
    stored = [(FORMATS / f"list-{number}.bin").read_bytes() for number in (1, 2)]
    assert write.lists() == stored
    for number, kept, gone in ((1, surveys, ()), (2, surveys[:3], (surveys[3].digest,))):
        canonicals = tuple(survey.canonical for survey in kept)
        listed = SurveyList(number, START_S, START_S + 30 * DAY_S, canonicals, gone)
        assert open_signed(stored[number - 1], [pinned]).listed == listed
    collector = Collector()
    with write.agent(folder, Clock(START_S + DAY_S + 20), collector) as device:
        collector.surveys = Response(200, stored[0])
        with pytest.raises(ListRefusedError):  # the ledger has seen the second
            device.fetch_surveys()
        collector.surveys = Response(200, stored[1])
        assert [survey.digest for survey in device.fetch_surveys()] == [s.digest for s in surveys[:3]]


def test_every_release_is_what_its_counts_in_the_archive_say(folder, log):
    store = sqlite_store(folder / "store.db", log)
    run(log, store, folder / "archive.db", write.END_S)
    store.close()
    archive, checked = SqliteArchive(folder / "archive.db"), 0
    for key in archive.rounds():
        document, counts = json.loads(archive.get(key)), archive.counts(key)
        assert (counts is None) == document["suppressed"] == (document["counts"] is None)
        if counts is not None:
            survey = Survey.from_canonical(archive.counts((key[0], SURVEY_ROW)))
            assert verify(survey, document, counts).differences == []
            checked += 1
    archive.close()
    assert checked == ROUNDS - 1
