"""The device's requests: bounded, not redirected, and alike for every device."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tls_observer import TlsObserver, server_context

import hubbub_client
from hubbub_client import Agent, TransportError
from hubbub_client.upload import transport
from hubbub_client.upload.transport import LARGEST_STEP, HttpTransport, Response, failure_words, padding


class Server(ThreadingHTTPServer):
    daemon_threads = True
    status, headers, body = 200, {}, b"body"
    short = 0
    """How many bytes fewer than announced are sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server
    timeout = 10

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        length = str(len(self.server.body) + self.server.short)
        for name, value in {**self.server.headers, "Content-Length": length}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.server.body)
        self.close_connection = bool(self.server.short)

    do_POST = do_GET  # noqa: N815 - the name that http.server calls

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def http(server: Server) -> Iterator[HttpTransport]:
    made = HttpTransport(f"http://127.0.0.1:{server.server_address[1]}/prefix/", timeout_s=10)
    yield made
    made.close()


def test_a_request_carries_nothing_that_tells_devices_apart(server: Server, http: HttpTransport) -> None:
    assert http.post("/v1/reports", b"reports") == Response(200, b"body", None)
    assert http.get("/v1/surveys").body == b"body"
    (post, get) = server.seen
    assert (post[0], post[1], post[3]) == ("POST", "/prefix/v1/reports", b"reports")
    assert (get[0], get[1]) == ("GET", "/prefix/v1/surveys")
    assert {name.lower() for name in post[2]} == {
        "host",
        "accept-encoding",
        "content-length",
        "user-agent",
        "content-type",
        "padding",
    }
    assert post[2]["User-Agent"] == "hubbub"


def test_an_encrypted_post_is_one_record_whose_length_tells_its_step_alone(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, trusted = server_context(tmp_path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    observer = TlsObserver(server.server_address[1])
    http = HttpTransport(f"https://127.0.0.1:{observer.port}", timeout_s=60)
    http.post("/v1/reports", b"")  # the handshake comes with it
    lengths: dict[int, set[int]] = {}
    for size in (1, 9, 10, 42, 99, 100, 340, 1021, 1022, 1500, 2044, 2045, 4092, 4093, 8188, 8189):
        before = len(observer.application("up"))
        assert http.post("/v1/reports", bytes(size)).status == 200
        (record,) = observer.application("up")[before:]
        step = next(s for s in (1024, 2048, 4096, 8192, 12288) if size + len(str(size)) <= s)
        lengths.setdefault(record.length - step, set()).add(step)
    http.close()
    observer.close()
    assert list(lengths.values()) == [{1024, 2048, 4096, 8192, 12288}], "the rest of a request never varies"
    assert max(len(padding(bytes(size))) for size in range(10_000)) < LARGEST_STEP


@pytest.mark.parametrize("status", [400, 404, 413, 429, 500, 503])
def test_every_status_comes_back_as_it_is_after_one_attempt(
    server: Server, http: HttpTransport, status: int
) -> None:
    server.status, server.headers = status, {"Retry-After": "7"}
    assert http.post("/v1/reports", b"") == Response(status, b"body", "7")
    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server: Server, http: HttpTransport, status: int) -> None:
    server.status, server.headers = status, {"Location": "/elsewhere", "Set-Cookie": "device=1"}
    assert http.post("/v1/reports", b"reports").status == status
    http.get("/v1/surveys")
    assert [seen[1] for seen in server.seen] == ["/prefix/v1/reports", "/prefix/v1/surveys"]
    assert "Cookie" not in server.seen[1][2]


def test_an_answer_that_is_too_large_is_refused(server: Server, http: HttpTransport) -> None:
    server.body = bytes(transport.MAX_OUTCOMES_BYTES)
    assert len(http.post("/v1/reports", b"").body) == transport.MAX_OUTCOMES_BYTES
    server.body += b"\0"
    with pytest.raises(TransportError, match="at most"):
        http.post("/v1/reports", b"")
    assert len(http.get("/v1/surveys").body) == len(server.body)


def test_an_answer_that_is_cut_short_is_no_answer(server: Server, http: HttpTransport) -> None:
    server.short = 5
    with pytest.raises(TransportError, match="cannot be reached: the connection broke"):
        http.post("/v1/reports", b"")


def test_an_answer_that_is_cut_in_its_head_is_no_empty_list(tmp_path: Path) -> None:
    """To HTTP the end of a connection is the end of its head, too: a status and nothing more."""

    def cut(listener: socket.socket) -> None:
        taken, _ = listener.accept()
        with taken:
            taken.recv(65_536)
            taken.sendall(b"HTTP/1.1 200 OK\r\nDate: Sat\r\nContent-Le")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=cut, args=(listener,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Agent(tmp_path / "l.db", url, budget=1.0) as agent, pytest.raises(TransportError) as error:
            agent.fetch_surveys()
        thread.join()
    assert type(error.value) is TransportError  # and no ListRefusedError, which says who lies


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:1", "connection refused"),
        ("https://127.0.0.1:{port}", "TLS failed: "),
        ("https://nowhere.invalid", "its name is not known"),
    ],
)
def test_a_collector_that_is_not_there_is_told_in_words(server: Server, url: str, why: str) -> None:
    nobody = HttpTransport(url.format(port=server.server_address[1]), timeout_s=5)
    with pytest.raises(TransportError, match=f"^collector cannot be reached: {why}"):
        nobody.get("/v1/surveys")
    nobody.close()


def test_a_collector_that_never_answers_is_told_in_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        waiting = HttpTransport(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)
        with pytest.raises(TransportError, match=r"^collector cannot be reached: no answer in time$"):
            waiting.get("/v1/surveys")
        waiting.close()


def test_no_failure_of_a_library_is_told_by_its_own_words() -> None:
    """A message may quote what was sent, so of an unknown kind its name alone is told."""
    assert failure_words(RuntimeError("visits=3")) == "RuntimeError"
    assert failure_words(OSError("visits=3")) == "OSError"
    aborted = ConnectionAbortedError(errno.ECONNABORTED, "visits=3")
    assert failure_words(aborted) == os.strerror(errno.ECONNABORTED).lower()


def test_the_public_names_of_the_client_are_these() -> None:
    assert hubbub_client.__all__ == [
        "Account",
        "Agent",
        "Answer",
        "AnswerCheck",
        "Asked",
        "AsyncAgent",
        "Attribute",
        "AttributeRefusedError",
        "BudgetFixedError",
        "ClientError",
        "Correction",
        "Counter",
        "Enrolment",
        "EnrolmentStatus",
        "LedgerCorruptError",
        "LedgerError",
        "LedgerForeignError",
        "LedgerLockedError",
        "LedgerMissingError",
        "LedgerTooNewError",
        "Limits",
        "ListRefusedError",
        "OwnerPage",
        "Part",
        "Policy",
        "Refused",
        "SentReport",
        "Status",
        "TokenIssuer",
        "Tokens",
        "TransportError",
        "UploadOutcome",
    ]
    assert all(hasattr(hubbub_client, name) for name in hubbub_client.__all__)
