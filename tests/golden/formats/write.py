"""Write the files of this folder into another one: every stored format, by the code that this runs with.

    PYTHONPATH=tests/harness .venv/bin/python tests/golden/formats/write.py FOLDER [releases]

With `releases` only those, and their archive, of the log that lies there. No test writes here. All of it
needs a Redis server on the path, as the tests do.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import redis
from counting_logs import announcement, batch, report_id
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import AGREED, DAY_S, FAST, HEALTH, HEALTH_SURVEY, VISIT_COUNT, VISITS_SURVEY, Clock, Collector
from redis_harness import running
from surveys import ACTIVITY, AGE_BY_SEX, LABELS, START_S

from hubbub import Survey
from hubbub.survey import Attribute, SurveyList, public_text
from hubbub.testing import seeded
from hubbub.wire import Segment, Voucher
from hubbub_aggregator.counting import apply_many
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_client import Agent
from hubbub_client.upload.transport import Response
from hubbub_topic import SqliteLog

GOLDEN = Path(__file__).parents[1]
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
ON_DEVICE = (HEALTH_SURVEY, VISITS_SURVEY, Survey.parse(AGE_BY_SEX), Survey.parse(ACTIVITY))
"""Labels, an integer, a table, a score: a device answers them, and so do the devices of the log."""
ROTATING = Survey.parse(LABELS.replace("rounds = 3", "rounds = 30\nrotation = 5").replace("self-", "often-"))
"""A device alone answers it, in the rounds that the ledger's own seed draws."""
OTHERS = ("curve", "diseases", "hashing", "levels", "number-tree", "subset", "tree", "unary")
"""Golden surveys that only the log knows: dense channels, sets, trees, hashes, a mean of its own."""
SURVEYS = (*ON_DEVICE, *(Survey.load(GOLDEN / f"survey-{name}.bin") for name in OTHERS))
MIDWAY_S = START_S + DAY_S + DAY_S // 2
"""Round 0 is released, round 1 is open."""
END_S = START_S + 4 * DAY_S
"""Every round is released."""
ISSUER = Voucher("tokens.example.org", 1_000)
TOO_FEW = 40
"""The devices of the third round of labels: fewer than its cohort."""


def lists() -> list[bytes]:
    """Return a signed list of what a device answers, and one in which the score is cancelled."""
    made = ((1, ON_DEVICE, ()), (2, ON_DEVICE[:3], (ON_DEVICE[3].digest,)))
    return [
        SurveyList(number, START_S, START_S + 30 * DAY_S, tuple(s.canonical for s in kept), gone).signed(KEY)
        for number, kept, gone in made
    ]


def agent(folder: Path, clock: Clock, collector: Collector) -> Agent:
    """Return an agent on the ledger of a folder."""
    return Agent(
        folder / "ledger.db",
        "http://collector.invalid",
        budget=20.0,
        clock=clock,
        http=collector,
        limits=FAST,
        jitter=lambda: 0.5,
        policy=AGREED,
        survey_key=public_text(KEY),
    )


def write_ledger(out: Path) -> None:
    """Write a ledger: round 0 answered and uploaded, a correction, round 1 in the outbox, one cancelled."""
    first, second = lists()
    clock, collector = Clock(START_S + 20), Collector()
    with agent(out, clock, collector) as device:
        for attribute in (
            HEALTH,
            VISIT_COUNT,
            Attribute.integer("age", 10, 19, kind="static"),
            Attribute.labels("sex", ["f", "m"], kind="static"),
            Attribute.number("weight", 20.0, 120.0, kind="static"),
        ):
            device.register(attribute)
        collector.surveys = Response(200, first)
        for survey in device.fetch_surveys():
            device.enrol(survey)
        device.enrol(ROTATING)
        for name, value in {"health": "good", "visits": 3, "age": 12, "sex": "f", "weight": 61.5}.items():
            device.set(name, value)
        device.answer()
        device.upload()
        device.correct("visits", 4)
        collector.surveys = Response(200, second)
        device.fetch_surveys()
        clock.now_s = START_S + DAY_S + 20
        device.answer()
    with tempfile.TemporaryDirectory() as folder:
        for path in out.glob("ledger.db*"):
            shutil.copy(path, folder)
        (out / "ledger.json").write_text(json.dumps(said_of(Path(folder)), indent=1) + "\n")


def said_of(folder: Path) -> dict[str, Any]:
    """Return what the code says of a ledger in its second round, and what it sends and draws after."""
    clock, sender = Clock(START_S + DAY_S + 20), Collector()
    with agent(folder, clock, sender) as device:
        status = device.status()
        said: dict[str, Any] = {
            "budget": status.budget,
            "loss": status.loss,
            "committed": status.committed,
            "states": {each.survey_id: each.state for each in status.enrolments},
            "transcript": transcript(device),
            "coming": [number for digest, number in coming(device) if digest == ROTATING.digest],
        }
        device.upload()
        said["sent_after"] = [body.hex() for body in sender.bodies]
        clock.now_s = START_S + 2 * DAY_S + 20
        device.answer()
        said["drawn_after"] = sum("'record'" in row for row in transcript(device))
    return said


def coming(device: Agent) -> list[tuple[bytes, int]]:
    """Return the rounds that a device may still answer."""
    return device._state.coming_rounds(START_S + DAY_S + 20, 30 * DAY_S)


def transcript(device: Agent) -> list[str]:
    """Return the rows of a ledger's transcript, as text."""
    return [repr((r.kind, r.ticket, r.slot, r.symbol)) for r in device._ledger.transcript()]


def devices(place: int, number: int) -> int:
    """Return how many devices of the log answer a round of the survey at a place."""
    if (place, number) == (0, 2):
        return TOO_FEW
    return 240 + 20 * place + number


def rounds(place: int) -> range:
    """Return the rounds of the survey at a place that devices of the log answer."""
    return range(min(3 if place == 0 else 2 if place < len(ON_DEVICE) else 1, SURVEYS[place].rounds))


def write_log(out: Path) -> None:
    """Write a log, and what is counted and released of it halfway and at the end."""
    source = seeded(11)
    log = SqliteLog(out / "log.db", 2)
    for survey in SURVEYS:
        log.append({p: [announcement(survey)] for p in range(2)})
    send(log, 0, source)
    log.append({1: [b"no record"]})
    run(out, log, MIDWAY_S)
    send(log, 1, source)
    run(out, log, MIDWAY_S)
    write_redis(out, log)
    log.close()
    write_releases(out)


def write_releases(out: Path) -> None:
    """Write the archive and the releases of the log there, counted anew: halfway and at the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(out / "log.db", folder)
        log = SqliteLog(folder / "log.db", None)
        then = run(folder, log, MIDWAY_S)
        shutil.copy(folder / "archive.db", out)
        later = run(folder, log, END_S)
        log.close()
    text = json.dumps({"then": then, "later": later}, indent=1, sort_keys=True)
    (out / "releases.json").write_text(text + "\n")


def send(log: SqliteLog, part: int, source: Any) -> None:
    """Append the reports of round 0, or of all that follow: with duplicates, refusals and an issuer."""
    for place, survey in enumerate(SURVEYS):
        for number in rounds(place):
            if (number > 0) != bool(part):
                continue
            count = devices(place, number)
            symbols = survey.channel.perturb(np.arange(count) % survey.channel.inputs, source=source)
            ids = [report_id(100_000 * place + 10_000 * number + index) for index in range(count)]
            minute = (START_S + number * DAY_S) // 60 + 30
            for p in range(2):
                mine = [index for index in range(count) if ids[index][15] % 2 == p]
                voucher = ISSUER if place == 2 else None

                def segment(some: list[int], **refused: int) -> Segment:
                    return Segment(
                        survey.digest,  # noqa: B023 - called within the loop
                        number,  # noqa: B023
                        b"".join(ids[index] for index in some),  # noqa: B023
                        symbols[some],  # noqa: B023
                        len(some) + sum(refused.values()),
                        refused,
                        voucher,  # noqa: B023
                    )

                records = [
                    batch(segment(mine[:90], late=2), minute=minute, unknown=1),
                    batch(segment(mine[len(mine) // 2 :], invalid=1), minute=minute),
                    batch(segment(mine[90:]), minute=minute),
                ]
                log.append({p: records})


def run(folder: Path, log: SqliteLog, now_s: float) -> dict[str, str]:
    """Count, seal and release what is due; return the archive's bytes by round."""
    store = SqliteStore(folder / "store.db", log_identity=log.identity, partitions=2)
    archive = SqliteArchive(folder / "archive.db")
    worker = Worker(log, store, archive=archive, view=LiveView(), clock=lambda: now_s)
    while worker.step() or not worker.is_caught_up:
        pass
    found = {f"{key[0].hex()}-{key[1]}": archive.get(key).decode() for key in archive.rounds()}
    store.close()
    archive.close()
    return found


def write_redis(out: Path, log: SqliteLog) -> None:
    """Write the commands that make a Redis hold the counts of the log so far."""
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as server:
        store = RedisStore.connect(server.url, log_identity=log.identity, partitions=2, namespace="golden")
        for p in range(2):
            state = store.load(p)
            state.place(log.partition_map, p)
            for offset in range(0, log.end(p), 5):
                change = apply_many(state, log.read(p, offset, 5))
                store.save(p, change)
                state.commit(change)
        store.close()
        with redis.Redis.from_url(server.url) as db:
            lines = [b" ".join(map(base64.b64encode, command(db, name))) for name in sorted(db.keys())]
    (out / "redis.txt").write_bytes(b"".join(line + b"\n" for line in lines))


def command(db: Any, name: bytes) -> list[bytes]:
    """Return the words of the command that writes a key as it is."""
    kind = db.type(name)
    if db.ttl(name) != -1:
        raise SystemExit(f"{name!r} must stay, and ends in {db.ttl(name)} s")
    if kind == b"string":
        return [b"SET", name, db.get(name)]
    if kind == b"hash":
        return [b"HSET", name, *(word for pair in sorted(db.hgetall(name).items()) for word in pair)]
    if kind == b"list":
        return [b"RPUSH", name, *db.lrange(name, 0, -1)]
    if kind == b"set":
        return [b"SADD", name, *sorted(db.smembers(name))]
    raise SystemExit(f"{name!r} is of an unknown kind, {kind!r}")


def main() -> None:
    """Write every file, or the releases alone."""
    out = Path(sys.argv[1])
    if sys.argv[2:] == ["releases"]:
        return write_releases(out)
    for number, data in enumerate(lists(), start=1):
        (out / f"list-{number}.bin").write_bytes(data)
    write_ledger(out)
    return write_log(out)


if __name__ == "__main__":
    main()
