"""Plain uploads that go without ASGI get byte by byte what they would get by it, and count alike."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from held_collector import (
    GONE,
    LIMIT,
    REPORTS,
    SETS,
    SURVEY,
    Said,
    answers,
    collecting,
    conversation,
    dateless,
    lines,
    one_after_another,
    received,
    senders,
)
from prometheus_client import generate_latest
from surveys import LABELS

from hubbub.channels import SetChannel
from hubbub.numeric import SYSTEM
from hubbub.survey import Survey
from hubbub.wire import Report, encode_report, encode_upload
from hubbub_collector import Permits
from hubbub_collector.http import Exchange
from hubbub_collector.intake import Intake
from hubbub_collector.server import DoorConnection

pytestmark = pytest.mark.integration

UNKNOWN = Survey.parse(LABELS.replace('"self-rated-health"', '"unknown"'))
PASSWORD = "sixteen letters!"  # noqa: S105 - of a test


def one(symbol: int | bytes = 1, number: int = 0, survey: Survey = SURVEY) -> bytes:
    return encode_report(Report(survey.digest, number, secrets.token_bytes(16), symbol))


def head(body: bytes, *more: bytes, line: bytes = b"POST /v1/reports HTTP/1.1") -> bytes:
    lines = [line, b"Host: h", b"Content-Length: %d" % len(body), *more]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def posted(body: bytes, *more: bytes, line: bytes = b"POST /v1/reports HTTP/1.1") -> bytes:
    return head(body, *more, line=line) + body


def chunked(body: bytes, *more: bytes) -> bytes:
    lines = [b"POST /v1/reports HTTP/1.1", b"Host: h", b"Transfer-Encoding: chunked", *more]
    return b"\r\n".join(lines) + b"\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def uploaded(*reports: bytes) -> bytes:
    return posted(encode_upload(reports))


TWO = uploaded(one(), one(2))
SAME = one()
assert isinstance(SETS.channel, SetChannel)
SETS_OF_TWO = [one(drawn.tobytes(), survey=SETS) for drawn in SETS.channel.draw_many(np.arange(2), SYSTEM)]
# What is sent on a connection of its own, and END behind it; a tuple is sent without a wait for an answer.
REQUESTS: dict[str, list[bytes | tuple[bytes]]] = {
    "good": [TWO, uploaded(one()), TWO],
    "a duplicate in it": [uploaded(SAME, SAME), uploaded(SAME)],
    "sets": [uploaded(*SETS_OF_TWO)],
    "sets and numbers": [uploaded(one(), SETS_OF_TWO[0])],
    "large numbers": [uploaded(one(2000), one(1, 200))],
    "too early and good": [uploaded(one(number=2), one())],
    "out of range": [uploaded(one(4), one(127))],
    "of an unknown survey": [uploaded(one(survey=UNKNOWN), one())],
    "of a withdrawn survey": [uploaded(one(survey=GONE))],
    "no report in it": [uploaded(one(), b"\x93\x01\x02\x03"), uploaded(one(), b"\xc0")],
    "nothing": [posted(b""), posted(b"\x90"), TWO],
    "no upload": [posted(b"hello"), TWO],
    "too many": [uploaded(*[one()] * (REPORTS + 1))],
    "as long as it may be": [uploaded(*[one()] * REPORTS)],
    "too long": [posted(bytes(LIMIT + 1)), TWO],
    "too long in chunks": [chunked(encode_upload([one(2000, 200)] * REPORTS))],
    "a good one in chunks": [chunked(encode_upload([one()])), TWO],
    "in chunks with a length": [chunked(encode_upload([one()]), b"Content-Length: 5"), TWO],
    "without a length": [b"POST /v1/reports HTTP/1.1\r\nHost: h\r\n\r\n", TWO],
    "a length that is none": [head(b"").replace(b": 0", b": +0")],
    "two lengths": [posted(encode_upload([one()]), b"Content-Length: 39")],
    "the last": [posted(encode_upload([one()]), b"Connection: close"), TWO],
    "kept alive": [posted(encode_upload([one()]), b"Connection: keep-alive"), TWO],
    "the version before": [posted(encode_upload([one()]), line=b"POST /v1/reports HTTP/1.0"), TWO],
    "kept alive in the version before": [
        posted(encode_upload([one()]), b"Connection: keep-alive", line=b"POST /v1/reports HTTP/1.0")
    ],
    "asked to go on": [posted(encode_upload([one()]), b"Expect: 100-continue"), TWO],
    "another protocol": [posted(encode_upload([one()]), b"Connection: upgrade", b"Upgrade: h2c"), TWO],
    "another method": [posted(encode_upload([one()]), line=b"PUT /v1/reports HTTP/1.1"), TWO],
    "reading": [(b"HEAD /v1/reports HTTP/1.1\r\nHost: h\r\n\r\n",), TWO],
    "another path": [posted(encode_upload([one()]), line=b"POST /v1/report HTTP/1.1"), TWO],
    "with a query": [posted(encode_upload([one()]), line=b"POST /v1/reports?a=b HTTP/1.1"), TWO],
    "with an escape": [posted(encode_upload([one()]), line=b"POST /v1/report%73 HTTP/1.1"), TWO],
    "as a whole address": [posted(encode_upload([one()]), line=b"POST http://h/v1/reports HTTP/1.1"), TWO],
    "out of a browser": [posted(encode_upload([one()]), b"Origin: http://h"), TWO],
    "many headers": [posted(encode_upload([one()]), *[b"a%d: b" % i for i in range(126)]), TWO],
    "too many headers": [posted(encode_upload([one()]), *[b"a%d: b" % i for i in range(127)]), TWO],
    "in two pieces": [(TWO[:-9],), TWO[-9:], (TWO[:30],), TWO[30:]],
    "byte by byte": [(TWO[place : place + 1],) for place in range(len(TWO))],
    "two at once": [TWO + uploaded(one()), TWO],
    "four at once": [TWO + uploaded(one()) + b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n" + TWO],
    "six at once": [TWO * 6],
    "one and a half": [TWO + TWO[:-20], TWO[-20:]],
    "half of one": [TWO, (TWO[:-20],)],
    "behind a page": [b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n" + TWO, TWO],
    "noise behind it": [TWO + b"noise\r\n\r\n"],
    "noise before it": [b"noise\r\n\r\n" + TWO],
    "an end behind it": [TWO + posted(encode_upload([one()]), b"Connection: close") + TWO],
}


def every_request(folder: Path) -> Said:
    with collecting(folder) as (collector, said):
        for name, parts in REQUESTS.items():
            said[name] = conversation(collector, parts), collector.counts()
    return said


def while_the_log_is_held_up(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        first, goes, resets, *stay = senders(collector, stack, TWO, TWO, TWO, TWO + TWO, TWO)
        said["held"] = collector.counts()
        goes.close()
        resets.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        resets.close()
        collector.wait(lambda: len(collector.server.server_state.connections) == 3)
        said["still held"] = collector.counts()
        collector.log.gate.set()
        said["answers"] = answers([first, *stay], 1, 2, 1)
        said["counts"] = collector.counts()
    return said


def gone_while_it_is_written(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        for failing in (False, True):
            collector.log.failing = failing
            senders(collector, stack, TWO)[0].close()
            collector.wait(lambda: not collector.server.server_state.connections)
            collector.log.gate.set()
            collector.wait_for_tasks(0)
            said[f"failing: {failing}"] = collector.counts()
    return said


def not_stored(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        collector.log.failing = True
        found = senders(collector, stack, TWO, TWO + TWO, uploaded(SETS_OF_TWO[0]))
        collector.log.gate.set()
        said["failed"] = answers(found, 1, 2, 1)
        collector.log.failing = False
        said["again"] = one_after_another(collector, [TWO])
        said["counts"] = collector.counts()
    return said


def stored_too_late(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        found = senders(collector, stack, TWO, TWO)
        collector.boot_s += 100.0
        collector.log.gate.set()
        said["answers"] = answers(found)
        said["counts"] = collector.counts()
    return said


def waited_too_long(folder: Path) -> Said:
    with collecting(folder, max_batch_reports=2) as (collector, said), contextlib.ExitStack() as stack:
        found = senders(collector, stack, TWO, TWO, TWO)
        found[2].close()
        collector.wait(lambda: len(collector.server.server_state.connections) == 2)
        collector.boot_s += 5.0
        collector.log.gate.set()
        said["answers"] = answers(found[:2])
        collector.wait_for_tasks(0)
        said["counts"] = collector.counts()
    return said


def no_room(folder: Path) -> Said:
    most = uploaded(*[one(2000, 200)] * 43)
    with (
        collecting(folder, max_pending_bytes=LIMIT) as (collector, said),
        contextlib.ExitStack() as stack,
    ):
        found = senders(collector, stack, most)
        said["full"] = one_after_another(collector, [TWO, uploaded(*[one()] * 3), TWO])
        collector.log.gate.set()
        said["answers"] = answers(found) + one_after_another(collector, [TWO])
        said["counts"] = collector.counts()
    return said


def too_many_a_second(folder: Path) -> Said:
    with collecting(folder, permit_rate=1.0) as (collector, said):
        said["answers"] = one_after_another(collector, [TWO] * 7)
        collector.boot_s += 3.0
        said["later"] = one_after_another(collector, [TWO] * 3)
        said["counts"] = collector.counts()
    return said


def a_password(folder: Path) -> Said:
    body = encode_upload([one()])
    words = [b"Bearer " + PASSWORD.encode(), b"Bearer another", PASSWORD.encode()]
    with collecting(folder, permits=Permits(password=PASSWORD), permit_rate=1.0) as (collector, said):
        said["none"] = conversation(collector, [TWO])
        for word in words * 5:
            shown = conversation(collector, [posted(body, b"Authorization: " + word)] * 3)
            said.setdefault(word, []).append(shown)
        said["counts"] = collector.counts()
    return said


PAGE = b"Origin: https://page.example"
# Headers that browsers send; the first four are of a page that is listed, if any is.
OF_PAGES: tuple[tuple[bytes, ...], ...] = (
    (PAGE,),
    (PAGE, b"Sec-Fetch-Site: cross-site"),
    (b"Sec-Fetch-Site: same-site", PAGE, b"Sec-Fetch-Mode: cors"),
    (PAGE, b"Content-Type: application/msgpack", b"Padding: 000"),
    (b"Sec-Fetch-Site: same-origin",),
    (b"Origin: https://page.example.org",),
    (b"Origin: https://page.example:443",),
    (b"Origin: null",),
    (b"Origin:",),
    (PAGE, b"Origin: https://other.example"),
    (PAGE, PAGE),
)


def pages(folder: Path, listed: str = "https://page.example,http://localhost:8000") -> Said:
    body = encode_upload([one()])
    with collecting(folder, allowed_origins=listed) as (collector, said):
        for words in OF_PAGES:
            lines_of = b"HTTP/1.1\r\nHost: h\r\n" + b"\r\n".join(words) + b"\r\n"
            asked = b"OPTIONS /v1/reports " + lines_of + b"Access-Control-Request-Method: POST\r\n\r\n"
            parts = [posted(body, *words), asked, b"GET /v1/surveys " + lines_of + b"\r\n"]
            if words == (PAGE,):
                parts += [posted(b"no upload", *words), posted(bytes(LIMIT + 1), *words)]
            for place, part in enumerate(parts):
                said[f"{words} {place}"] = conversation(collector, [part])
        said["counts"] = collector.counts()
    return said


def pages_while_the_log_fails(folder: Path) -> Said:
    uploads = [posted(encode_upload([one()]), PAGE), posted(encode_upload([one(1, 200)]), PAGE)]
    with (
        collecting(folder, allowed_origins="https://page.example") as (collector, said),
        contextlib.ExitStack() as stack,
    ):
        collector.log.failing = True
        found = senders(collector, stack, *uploads, TWO)
        collector.log.gate.set()
        said["failed"] = answers(found)
        said["counts"] = collector.counts()
    return said


def a_bug(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        found = senders(collector, stack, TWO, TWO, TWO + TWO)
        collector.app.state.gateway._admission.judge_rows = None
        collector.log.gate.set()
        said["answers"] = answers(found, 1, 1, 2)
        said["after it"] = one_after_another(collector, [TWO, TWO])
        said["counts"] = collector.counts()
    return said


def a_bug_before_the_batch(folder: Path) -> Said:
    with collecting(folder) as (collector, said):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hubbub_collector.intake.side_by_side", None)
            said["answers"] = one_after_another(collector, [TWO])
        said["after it"] = one_after_another(collector, [TWO])
        said["counts"] = collector.counts()
    return said


def at_the_end(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        idle = stack.enter_context(collector.connect())
        found = senders(collector, stack, TWO, TWO, TWO + TWO, TWO[:-4])
        collector.server.should_exit = True
        collector.wait(lambda: not collector.server.servers[0].is_serving())
        found[3].sendall(TWO[-4:])
        collector.log.gate.set()
        said["answers"] = [dateless(b"".join(iter(partial(received, sock), b""))) for sock in (idle, *found)]
        collector.stop()
        said["counts"] = lines(generate_latest(collector.app.state.gateway._registry).decode())
    return said


def past_the_end(folder: Path) -> Said:
    with collecting(folder, shutdown_s=1) as (collector, said), contextlib.ExitStack() as stack:
        found = senders(collector, stack, TWO, TWO)
        collector.server.should_exit = True
        said["answers"] = [dateless(b"".join(iter(partial(received, sock), b""))) for sock in found]
        collector.log.gate.set()
        collector.stop()
        said["counts"] = lines(generate_latest(collector.app.state.gateway._registry).decode())
    return said


def who_reads_nothing(folder: Path) -> Said:
    with collecting(folder) as (collector, said), contextlib.ExitStack() as stack:
        (sock,) = senders(collector, stack, TWO)
        (connection,) = collector.server.server_state.connections
        flow, ask = connection.flow, connection.loop.call_soon_threadsafe
        for number in (
            1,
            2,
        ):  # one that waits for its batch when nothing more is read, and one that comes later
            ask(connection.pause_writing)
            collector.wait(lambda: flow.write_paused)
            collector.log.gate.set()
            if number == 2:
                sock.sendall(TWO)
            collector.wait_for_accepted(2 * number)
            said[f"silent {number}"] = not select.select([sock], [], [], 0.05)[0]
            ask(connection.resume_writing)
            said[f"answer {number}"] = answers([sock])
            collector.wait_for_tasks(0)
        said["counts"] = collector.counts()
        collector.hold()
        sock.sendall(TWO)
        collector.wait_for_tasks(1)
        ask(connection.pause_writing)
        collector.wait(lambda: flow.write_paused)
        collector.log.gate.set()
        collector.wait_for_accepted(6)
        sock.close()
        collector.wait_for_tasks(0)
        said["lost"] = collector.counts()
    return said


def time_to_live(folder: Path) -> Said:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hubbub_collector.http.connection.KEEP_ALIVE_S", 0.2)
        with (
            collecting(folder, body_timeout_s=0.2) as (collector, said),
            contextlib.ExitStack() as stack,
        ):
            waiting = senders(collector, stack, TWO, TWO)
            said["held up"] = not select.select(waiting, [], [], 0.5)[0]
            collector.log.gate.set()
            said["answers"] = answers(waiting)
            said["then"] = [received(sock) for sock in waiting]
    return said


WAYS = ("door", "declined", "asgi")
# How many uploads go through the door in each.
SCENES: dict[Callable[[Path], Said], int] = {
    every_request: 36,
    while_the_log_is_held_up: 5,
    gone_while_it_is_written: 2,
    not_stored: 4,
    stored_too_late: 2,
    waited_too_long: 3,
    no_room: 2,
    too_many_a_second: 7,
    a_password: 10,
    pages: 4,
    pages_while_the_log_fails: 3,
    a_bug: 3,
    a_bug_before_the_batch: 1,
    at_the_end: 3,
    past_the_end: 2,
    who_reads_nothing: 2,
    time_to_live: 2,
}


def by_every_way(scene: Callable[[Path], Said], folder: Path) -> tuple[dict[str, Said], dict[str, int]]:
    """What a scene saw by each way, and how many uploads went through the door."""
    take = Intake.take
    taken = dict.fromkeys(WAYS, 0)

    def by(way: str) -> Said:
        def noted(intake: Intake, headers: Any, body: bytes, exchange: Exchange) -> bool:
            is_taken = way == "door" and take(intake, headers, body, exchange)
            taken[way] += is_taken
            return is_taken

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Intake, "take", noted)
            if way == "asgi":
                patch.setattr("hubbub_collector.server._door_of", lambda app: None)
            return scene(folder)

    return {way: by(way) for way in WAYS}, taken


@pytest.mark.parametrize("scene", list(SCENES), ids=lambda scene: scene.__name__)
def test_an_upload_gets_the_same_answer_by_every_way(scene: Callable[[Path], Said], tmp_path: Path) -> None:
    found, taken = by_every_way(scene, tmp_path)
    for name, said in found["asgi"].items():
        assert found["door"][name] == said, name
        assert found["declined"][name] == said, name
    assert found["door"].keys() == found["asgi"].keys()
    assert taken == {"door": SCENES[scene], "declined": 0, "asgi": 0}


def header(said: bytes, name: bytes) -> list[bytes]:
    first = said.split(b"\r\n\r\n")[0]
    return [line.partition(b": ")[2] for line in first.split(b"\r\n") if line.lower().startswith(name)]


def test_a_page_is_a_device_where_its_origin_is_listed_and_only_there(tmp_path: Path) -> None:
    found = {listed: pages(tmp_path, listed) for listed in ("", "https://page.example")}
    for listed, said in found.items():
        for number, words in enumerate(OF_PAGES):
            is_listed = bool(listed) and number < 4
            upload, asked, read, *faults = (said[k] for k in said if k.startswith(f"{words} "))
            statuses = [each[9:12] for each in (upload, asked, read, *faults)]
            wanted = [b"200", b"204"] if is_listed else [b"403", b"403" if listed else b"405"]
            if words == (PAGE,):
                assert statuses[3:] == ([b"400", b"413"] if listed else [b"403", b"403"])
            assert statuses[:3] == [*wanted, b"200"], words
            for each in (upload, asked, read, *faults):
                allowed = [b"https://page.example"] if is_listed else []
                assert header(each, b"access-control-allow-origin") == allowed, words
                assert b"access-control-allow-credentials" not in each.lower()
            assert header(read, b"vary") == ([b"Origin"] if listed else [])
            assert is_listed == (header(asked, b"access-control-allow-headers") == [b"content-type, padding"])
        assert b"page.example" not in str(said["counts"]).encode()


def test_an_answer_that_fails_harms_no_other_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    send_answer = DoorConnection.send_answer
    failures = [ValueError("no good")]

    def failing(connection: DoorConnection, answer: bytes, *, is_last: bool) -> None:
        if failures:
            raise failures.pop()
        send_answer(connection, answer, is_last=is_last)

    monkeypatch.setattr(DoorConnection, "send_answer", failing)
    with collecting(tmp_path) as (collector, _), contextlib.ExitStack() as stack:
        found = senders(collector, stack, TWO, TWO, TWO)
        collector.log.gate.set()
        assert [answer[:15] for answer in answers(found)] == [b"", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK"]
        assert one_after_another(collector, [TWO])[0].startswith(b"HTTP/1.1 200 OK")
        assert "hubbub_gateway_pending_bytes 0.0" in collector.counts()
    assert "an answer failed" in caplog.text
