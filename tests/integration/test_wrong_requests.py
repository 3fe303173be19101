"""Wrong requests at a real node's doors, devices' and readers': each is refused with subject, rule and value.

The other doors have tables of their own: `test_wrong_options` (options of commands), `test_survey_errors`
(survey files), `test_people` (CSV and Parquet), `test_cluster_settings`.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Final

import msgpack
import pytest
from node_fixture import HEALTH, World

pytestmark = pytest.mark.integration

SURVEYS: Final = "/api/v1/surveys"
ONE: Final = f"{SURVEYS}/{HEALTH.id}"
NOBODY: Final = "0" * 32
COUNT: Final = "must be a whole number of at most 18 digits"
WHERE: Final = "must be the digest (32 hexadecimal digits) or the id of a survey listed"
BROWSER: Final = "an upload must come from a device, not from a page in a browser, got header "
NO_UPLOAD: Final = "upload must be well-formed MessagePack of its kind, got "
PATH: Final = "must be one that this server knows"
VIEW: Final = "must be one of raw, consistent, empirical_bayes, all"

# path, status, subject, beginning of the rule, value
READS: Final = [
    *((f"{SURVEYS}?limit={text}", 400, "limit", "must be from 1 to 1000", text) for text in ("0", "1001")),
    *(
        (f"{door}?{name}={text}", 400, name, COUNT, text)
        for door, name in ((SURVEYS, "limit"), (f"{ONE}/rounds", "limit"), (f"{ONE}/rounds", "after"))
        for text in ("-1", "1.5", "x", "1e3", "", "9" * 20)
    ),
    (f"{SURVEYS}?limit=1&limit=2", 400, "limit", "must be given once", "limit=1&limit=2"),
    (f"{SURVEYS}?after=zz", 400, "after", "must be a digest", "zz"),
    (f"{SURVEYS}?after={NOBODY}", 404, "after", "must be the digest of a listed survey", NOBODY),
    (f"{SURVEYS}?limt=3", 400, "query parameter", "must be one of limit, after", "limt"),
    (f"{ONE}?x=1", 400, "query parameter", "must not be given here", "x"),
    *(
        (f"{SURVEYS}/{name}{rest}", 404, "survey", WHERE, name)
        for name in ("none", NOBODY, "visits%20")
        for rest in ("", "/rounds", "/history", "/releases.csv", "/rounds/latest")
    ),
    *(
        (f"{ONE}/rounds/{number}", 404, f"round of survey {HEALTH.digest.hex()}", "must be", number)
        for number in ("x", "0", "-1", "1.5", "99999", "9" * 30, "0.xls", "latest.x")
    ),
    *(
        (f"{ONE}/rounds?sealed={text}", 400, "sealed", "must be one of true, false", text)
        for text in ("maybe", "1", "")
    ),
    *(
        (f"{ONE}/{table}?view={text}", 400, "view", VIEW, text)
        for table in ("releases.csv", "releases.ndjson", "releases.parquet")
        for text in ("RAW", "odd", "")
    ),
    (f"{ONE}/releases.csv?stage=none", 400, "stage", "must be one of sealed, all", "none"),
    (f"{ONE}/releases.csv?views=raw", 400, "query parameter", "must be one of view, stage", "views"),
    (f"{ONE}/change", 400, "before", "must be the number of a round", ""),
    (f"{ONE}/change?before=x&after=1", 400, "before", COUNT, "x"),
    (f"{ONE}/change?before=1&after=2", 404, "before", "must be the number of a sealed round", "1"),
    (f"{ONE}/history?limit=1", 400, "query parameter", "must be one of kind, label", "limit"),
    *(
        (path, 404, "path", PATH, path)
        for path in (
            "/api/v1",
            "/api/v2/surveys",
            "/nothing",
            "/v1",
            "/v1/report",
            "/page/../x",
            *(f"{known}/" for known in (SURVEYS, "/api/live", "/healthz", "/metrics", "/page/page.js")),
            f"{ONE}/releases.xml",
        )
    ),
    (f"/api/surveys/{NOBODY}", 404, "survey", "must be the digest", NOBODY),
]
METHODS: Final = [
    (method, path, allowed)
    for method in ("PUT", "DELETE", "PATCH", "TRACE")
    for path, allowed in (
        (SURVEYS, "GET or HEAD"),
        ("/v1/surveys", "GET or HEAD"),
        ("/v1/reports", "POST"),
        ("/healthz", "GET or HEAD"),
        ("/metrics", "GET or HEAD"),
    )
]
# body, headers, status, sentence
UPLOADS: Final = [
    *(
        (body, {}, 400, NO_UPLOAD + "other bytes")
        for body in (b"\xff", b"{}", b"\xc0", b"\x01", b"\xa1x", b"\x80", b"text", b"\xc4\xff")
    ),
    *((body, {}, 400, NO_UPLOAD + "bytes that end too early") for body in (b"", b"\xdc", b"\xdc\x00")),
    *((b"\x90" + b"\x01" * n, {}, 400, "upload must be [version, list], got 0 elements") for n in (0, 3)),
    (b"\x91\x01", {}, 400, "upload must be [version, list], got 1 elements"),
    (b"\x91" * 5_000, {}, 400, "upload must be [version, list], got 1 elements"),
    (msgpack.packb([b"x"] * 300), {}, 400, "upload must have at most 2 elements, got 300"),
    (b"\xdd\xff\xff\xff\xff", {}, 400, "upload must have at most 2 elements, got 4294967295"),
    (b"a" * 70_000, {}, 413, "an upload must have at most 65536 bytes, got 70000"),
    (b"\x90", {"Origin": "http://page"}, 403, BROWSER + "origin"),
    (b"\x90", {"Sec-Fetch-Site": "none"}, 403, BROWSER + "sec-fetch-site"),
]
UNREADABLE: Final = [
    b"BREW / HTTP/1.1",
    b"GET",
    b"GET / HTTP/9.9",
    b"GET / HTTP/1.1\r\nContent-Length: x",
    b"\x16\x03\x01",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with World(tmp_path_factory.mktemp("node")) as world, world.living():
        yield world


def ask(
    world: World, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, str | None, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", world.port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type"), answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("case", READS, ids=lambda case: case[0])
def test_a_wrong_read_names_subject_rule_and_value(
    world: World, case: tuple[str, int, str, str, str]
) -> None:
    path, status, subject, rule, value = case
    found, kind, body = ask(world, "GET", path)
    problem = json.loads(body)
    assert (found, kind, problem["subject"]) == (status, "application/problem+json", subject)
    assert problem["rule"].startswith(rule)
    assert problem["value"] == value.replace("%20", " ")
    assert problem["detail"].startswith(f"{subject} {rule}")


@pytest.mark.parametrize(("method", "path", "allowed"), METHODS)
def test_a_wrong_method_names_the_right_one(world, method: str, path: str, allowed: str) -> None:
    status, _, body = ask(world, method, path)
    assert (status, json.loads(body)["detail"]) == (405, f"method must be {allowed}, got {method}")


@pytest.mark.parametrize(("body", "headers", "status", "said"), UPLOADS)
def test_a_wrong_upload_is_told_what_an_upload_is(world, body, headers, status, said) -> None:
    found, kind, answer = ask(world, "POST", "/v1/reports", body, headers)
    assert (found, kind) == (status, "application/problem+json")
    assert json.loads(answer)["detail"] == said


@pytest.mark.parametrize("head", UNREADABLE)
def test_what_is_no_http_is_answered_or_closed_and_the_node_goes_on(world: World, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", world.port), timeout=60) as raw:
        raw.sendall(head + b"\r\n\r\n")
        raw.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: raw.recv(65_536), b""))
    assert b"Traceback" not in answer
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert ask(world, "GET", "/healthz")[0] == 200


def test_enough_requests_are_tried() -> None:
    assert len(READS) + len(METHODS) + len(UPLOADS) + len(UNREADABLE) >= 100
