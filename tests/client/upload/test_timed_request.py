"""A request ends in time, however the server draws it out: real sockets that send a byte now and then."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from devices import FAST, HEALTH, HEALTH_SURVEY, SETUP, VISIT_COUNT, Clock, Collector
from surveys import START_S

from hubbub.wire import report as wire
from hubbub_client import Agent, LedgerError, Limits, TransportError
from hubbub_client.upload.timed_request import TimedRequests
from hubbub_client.upload.transport import HttpTransport

LONG_S = 20.0
"""How long the server keeps it up: a client that waits for it gets a whole answer, and the test fails."""
SHORT_S = 0.25


class Dribbler:
    """Sends `before`, then `drip` again and again, then `after`; says when its client has gone.

    With `answers`, that comes first, to a request of its own: a byte before the next request is asked for
    would tell the client that the connection is no good, and it would take another one.
    """

    def __init__(self, before: bytes, drip: bytes, after: bytes = b"", answers: bytes = b"") -> None:
        self.before, self.drip, self.after, self.answers = before, drip, after, answers
        self.gone = threading.Event()
        self.asked = threading.Event()
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                connection, _ = self._listener.accept()
                if self._stop.is_set():
                    connection.close()
                    return
                with connection:
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.settimeout(5.0)
        try:
            connection.recv(65536)
            if self.answers:
                connection.sendall(self.answers)
                connection.recv(65536)
            self.asked.set()
            ends = time.monotonic() + LONG_S
            connection.sendall(self.before)
            while time.monotonic() < ends and not self._stop.wait(0.02):
                connection.sendall(self.drip)
            connection.sendall(self.after)
        except OSError:  # a client in a hurry may have left before it was heard
            self.gone.set()

    def close(self) -> None:
        self._stop.set()
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()


@pytest.fixture
def dribble() -> Iterator[Callable[..., Dribbler]]:
    made: list[Dribbler] = []

    def make(*parts: bytes, answers: bytes = b"") -> Dribbler:
        made.append(Dribbler(*parts, answers=answers))
        return made[-1]

    yield make
    for server in made:
        server.close()


OK = b"HTTP/1.1 200 OK\r\n"
WAYS = {
    "status line": (b"HTTP/1.1 200 ", b"O", b"K\r\nContent-Length: 1\r\n\r\nx"),
    "header": (OK + b"Slow: ", b"x", b"\r\nContent-Length: 1\r\n\r\nx"),
    "headers": (OK, b"A: b\r\n", b"Content-Length: 1\r\n\r\nx"),
    "body": (OK + b"Content-Length: 60000\r\n\r\n", b"x"),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", b"0\r\n\r\n"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", OK + b"Content-Length: 1\r\n\r\nx"),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_drawn_out_byte_by_byte_is_given_up(dribble, way: str) -> None:
    server = dribble(*WAYS[way])
    http = HttpTransport(server.url, timeout_s=SHORT_S)
    with pytest.raises(TransportError, match="cannot be reached"):
        http.post("/v1/reports", b"reports")
    assert server.gone.wait(10)  # and nothing of the exchange goes on behind the caller's back
    http.close()


def test_a_kept_connection_is_cut_as_well(dribble) -> None:
    server = dribble(b"H", b"H", answers=OK + b"Content-Length: 1\r\n\r\nx")
    http = HttpTransport(server.url, timeout_s=SHORT_S)
    assert http.post("/v1/reports", b"").body == b"x"
    with pytest.raises(TransportError):
        http.post("/v1/reports", b"")
    assert server.gone.wait(10)
    http.close()


def test_a_handshake_drawn_out_is_given_up(dribble) -> None:
    """A TLS record of handshake bytes, announced as long and sent one by one."""
    server = dribble(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb", b"\0")
    http = HttpTransport(server.url.replace("http", "https"), timeout_s=SHORT_S)
    with pytest.raises(TransportError):
        http.get("/v1/surveys")
    assert server.gone.wait(10)
    http.close()


def test_a_name_that_is_looked_up_for_ever_is_given_up(monkeypatch) -> None:
    released, ended = threading.Event(), threading.Event()

    def look_up(*_: object) -> list[object]:
        released.wait(LONG_S)
        ended.set()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    http = HttpTransport("https://collect.example.org", timeout_s=SHORT_S)
    with pytest.raises(TransportError):
        http.post("/v1/reports", b"")
    assert not ended.is_set()
    released.set()
    http.close()


def test_what_was_given_up_before_it_was_connected_sends_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        exchanges = TimedRequests()
        given_up, ended = threading.Event(), threading.Event()

        def late(pool: urllib3.PoolManager) -> None:
            given_up.wait(10)
            try:
                pool.request("POST", f"http://127.0.0.1:{listener.getsockname()[1]}/", body=b"late")
            finally:
                ended.set()

        with pytest.raises(OSError):
            exchanges.run(late, SHORT_S)
        given_up.set()
        assert ended.wait(10)
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(10)
            assert connection.recv(1) == b""
        exchanges.close()


def test_closing_ends_a_request_under_way(dribble) -> None:
    server = dribble(*WAYS["body"])
    http = HttpTransport(server.url)  # the real bounds, longer than this test may take
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            http.post("/v1/reports", b"")
        except BaseException as error:
            errors.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert server.asked.wait(10)
    http.close()
    asking.join(10)
    assert [type(error) for error in errors] == [TransportError]
    with pytest.raises(TransportError):
        http.post("/v1/reports", b"")


def agent_on(path: Path, http: object, **settings: object) -> Agent:
    agent = Agent(path, "", budget=9.0, http=http, **{**SETUP, "clock": Clock(START_S), **settings})
    agent.register(HEALTH)
    agent.enrol(HEALTH_SURVEY)
    return agent


def test_neither_a_foreground_nor_a_background_upload_is_held_by_a_dribbling_collector(
    dribble, tmp_path
) -> None:
    server = dribble(*WAYS["body"])
    agent = agent_on(tmp_path / "l.db", HttpTransport(server.url, timeout_s=SHORT_S))
    agent.answer()
    outcome = agent.upload()
    assert (outcome.failure, outcome.waiting) == ("unreachable", 1)
    agent.close()
    assert server.gone.wait(10)
    server.gone.clear()
    clock = Clock(START_S + 86_400)
    again = agent_on(tmp_path / "l.db", HttpTransport(server.url, timeout_s=SHORT_S), clock=clock)
    again.run_background(poll_s=3600.0)
    assert server.gone.wait(10)
    again.close()
    assert not any(t.name == "hubbub-agent" for t in threading.enumerate())


def test_an_upload_begins_no_request_after_its_time(tmp_path) -> None:
    """A collector that answers every single report, slowly: a call ends, and the next goes on from there."""
    collector, clock = Collector(), Clock(START_S)
    agent = agent_on(
        tmp_path / "l.db", collector, clock=clock, limits=Limits(gap_s=0.0, max_reports=1, upload_s=15.0)
    )
    for _ in range(3):
        agent.answer()
        clock.now_s += 86_400
    elapsed = [0.0]
    agent._sender._elapsed = lambda: elapsed[0]
    accept = collector.reply

    def slow(reports: list[wire.Report]):
        elapsed[0] += 14.0
        return accept(reports)

    collector.reply = slow
    first = agent.upload()
    assert (len(first.settled), first.waiting, first.wait_s, first.failure) == (2, 1, 0.0, None)
    assert (len(agent.upload().settled), agent.status().waiting) == (1, 0)
    agent.close()


def test_an_upload_beside_another_ends_at_once(tmp_path) -> None:
    collector = Collector()
    agent = agent_on(tmp_path / "l.db", collector, limits=FAST)
    agent.answer()
    accept, seen = collector.reply, []

    def nested(reports: list[wire.Report]):
        beside = threading.Thread(target=lambda: seen.append(agent.upload()))
        beside.start()
        beside.join(10)
        return accept(reports)

    collector.reply = nested
    assert len(agent.upload().settled) == 1
    assert [(outcome.failure, outcome.waiting) for outcome in seen] == [("another upload is under way", 1)]
    assert len(collector.bodies) == 1
    agent.close()


VERBS: dict[str, Callable[[Agent], object]] = {
    "register": lambda agent: agent.register(VISIT_COUNT),
    "set": lambda agent: agent.set("health", "good"),
    "correct": lambda agent: agent.register(VISIT_COUNT) or agent.correct("visits", 3),
    "read_surveys": lambda agent: agent.read_surveys(wire.encode_surveys([HEALTH_SURVEY.canonical])),
    "opt_in": lambda agent: agent.opt_in("health"),
    "opt_out": lambda agent: agent.opt_out("health"),
    "enrol": lambda agent: agent.enrol(HEALTH_SURVEY),
    "answer": lambda agent: agent.answer(),
    "upload": lambda agent: agent.upload(),
    "checks": lambda agent: agent.checks(),
    "pause": lambda agent: agent.pause(),
    "resume": lambda agent: agent.resume(),
    "forget": lambda agent: agent.forget(),
    "status": lambda agent: agent.status(),
    "account": lambda agent: agent.account(),
    "surveys": lambda agent: agent.surveys(),
    "sent": lambda agent: agent.sent(),
    "serve_page": lambda agent: agent.serve_page(),
    "run_background": lambda agent: agent.run_background(poll_s=3600.0),
    "close": lambda agent: agent.close(),
}


def test_no_call_of_the_agent_lacks_a_bound() -> None:
    names = {name for name in dir(Agent) if not name.startswith("_")}
    # The network, bounded as every request above.
    assert names == {*VERBS, "fetch_surveys", "fetch_tokens", "check"}
    page = (Path(__file__).parents[3] / "docs" / "device.md").read_text()
    assert all(f"`{name}`" in page for name in names)


@pytest.mark.parametrize("verb", VERBS)
def test_no_call_waits_for_the_network_that_another_thread_waits_for(verb: str, tmp_path) -> None:
    """The collector answers when the call has returned, and not before."""
    collector = Collector()
    agent = agent_on(tmp_path / "l.db", collector)
    agent.answer()
    accept, asked, let_go = collector.reply, threading.Event(), threading.Event()
    in_time: list[bool] = []

    def waits(reports: list[wire.Report]):
        asked.set()
        in_time.append(let_go.wait(LONG_S))
        return accept(reports)

    def upload() -> None:
        with contextlib.suppress(LedgerError):  # closed meanwhile
            agent.upload()

    collector.reply = waits
    uploading = threading.Thread(target=upload)
    uploading.start()
    assert asked.wait(10)
    VERBS[verb](agent)
    let_go.set()
    uploading.join(10)
    assert in_time == [True]
    agent.close()
