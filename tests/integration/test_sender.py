"""The short way of an upload through the server: byte by byte the answers that ASGI's messages give."""

from __future__ import annotations

import re
import secrets
import socket
import threading
from pathlib import Path

import pytest
from devices import HEALTH_SURVEY
from surveys import START_S

from hubbub.wire import Report, encode_report, encode_upload
from hubbub_collector import GatewaySettings, create_app, create_server
from hubbub_collector.http import Sender
from hubbub_collector.intake import Intake
from hubbub_topic import SqliteLog

pytestmark = pytest.mark.integration

HEAD = b"POST /v1/reports HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"


def body(reports: int) -> bytes:
    fresh = [Report(HEALTH_SURVEY.digest, 0, secrets.token_bytes(16), i % 9) for i in range(reports)]
    return encode_upload([encode_report(report) for report in fresh])


def request(reports: int, head: bytes = HEAD) -> bytes:
    found = body(reports)
    return head % len(found) + found


def chunked(data: bytes) -> bytes:
    head = b"POST /v1/reports HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


END = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
# What is sent, part by part, and then END: after every part but the last, the sender waits for an answer.
SCENES = {
    "one": [request(2)],
    "many reports": [request(200)],
    "one after the other": [request(2), request(3)],
    "in one write": [request(1) + request(2) + request(30)],
    "in pieces": [request(2)[:40], request(2)[40:]],
    "the last": [request(2, HEAD.replace(b"Host: h", b"Host: h\r\nConnection: close"))],
    "the version before": [request(2, HEAD.replace(b"HTTP/1.1", b"HTTP/1.0"))],
    "asked to go on": [request(2, HEAD.replace(b"Host: h", b"Host: h\r\nExpect: 100-continue"))],
    "chunks": [chunked(body(2)), request(2)],
    "too many chunks": [chunked(bytes(3000)), request(2)],
    "empty": [HEAD % 0 + request(2)],
    "no upload": [HEAD % 5 + b"hello" + request(2)],
}


def answers(folder: Path, parts: list[bytes]) -> bytes:
    """Everything that the server says to one connection until it ends it, or has said all."""
    settings = GatewaySettings(linger_s=0.01, max_upload_bytes=16_384 if len(parts[0]) > 4000 else 2048)
    with SqliteLog(folder / f"{secrets.token_hex(4)}.sqlite", 1) as log:
        app = create_app(log, [HEALTH_SURVEY], settings=settings, clock=lambda: START_S + 100.0)
        server = create_server(app, port=0, settings=settings)
        thread = threading.Thread(target=server.run)
        thread.start()
        pause = threading.Event()
        while not server.started:
            assert thread.is_alive()
            pause.wait(0.005)
        try:
            address = server.servers[0].sockets[0].getsockname()
            found = b""
            with socket.create_connection(address, timeout=20) as connection:
                for part in parts[:-1]:
                    connection.sendall(part)
                    # An answer, or no more than a moment for half a request.
                    found += connection.recv(65_536) if b"\r\n\r\n" in part else b""
                    pause.wait(0.05)
                connection.sendall(parts[-1] + END)
                while more := connection.recv(65_536):
                    found += more
            return found
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize("scene", list(SCENES))
def test_an_answer_is_the_same_by_the_short_way_and_by_messages(
    scene: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Intake, "take", lambda *_: False)  # tests/integration/test_door.py has that way
    taken = []
    answer = Sender.answer

    def noted(sender: Sender, scope: object, head: bytes, body: bytes) -> bool:
        taken.append(answer(sender, scope, head, body))
        return taken[-1]

    monkeypatch.setattr(Sender, "answer", noted)
    short = answers(tmp_path, SCENES[scene])
    # Who ends the connection is answered by messages.
    assert (True in taken) == (scene not in ("the last", "the version before", "too many chunks"))
    monkeypatch.setattr(Sender, "answer", lambda *_: False)
    monkeypatch.setattr(Sender, "whole_body", lambda *_: None)
    long = answers(tmp_path, SCENES[scene])
    assert short.startswith(b"HTTP/1.1 ")
    date = re.compile(rb"date: [^\r]*")
    assert date.sub(b"date", short) == date.sub(b"date", long)
