"""The server of node and dashboard: it serves while its thread works, and ends when that fails."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import re
import signal
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import uvicorn

from hubbub_aggregator import ArchiveError, UnappliableError
from hubbub_aggregator.release import METHOD
from hubbub_aggregator.stores import RecountFolder
from hubbub_aggregator.web import LiveView
from hubbub_collector import GatewaySettings
from hubbub_deploy import cluster, http_server, node
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.http_server import PageServer, listen
from hubbub_topic import LogError
from hubbub_topic.sqlite import SqliteLog

HOST = "127.0.0.1"


@pytest.fixture
def announced() -> Iterator[list[str]]:
    yield []


@pytest.mark.parametrize(
    ("error", "words", "is_traced"),
    [
        (ArithmeticError("three is not four"), "ArithmeticError: three is not four", True),
        (UnappliableError("offset 4"), "UnappliableError: offset 4", True),
        (
            ArchiveError("start with the folder\nthat has it"),
            "ArchiveError: start with the folder that has it",
            False,
        ),
        (LogError("topic x must grant this user"), "LogError: topic x must grant this user", False),
        (DeployError("topic x is out of reach"), "topic x is out of reach", False),
    ],
)
def test_thread_that_fails_ends_the_server_and_says_in_its_last_line_why_and_what_is_kept(
    error: Exception,
    words: str,
    is_traced: bool,
    announced: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(_: threading.Event) -> None:
        raise error

    server = PageServer(name="node", view=LiveView(), work=work, kept="the log and the store")
    said = f"the node stopped: {words}; the log and the store are as they were"
    with listen(HOST, 0) as listener, pytest.raises(DeployError, match=f"^{re.escape(said)}$"):
        server.serve(listener, host=HOST, announce=announced.append)
    # A traceback is for a bug; what an operator can mend is one line.
    assert ("Traceback" in capsys.readouterr().err) == is_traced
    assert "hubbub-node" not in {thread.name for thread in threading.enumerate()}


def test_application_that_does_not_start_starts_no_thread(announced: list[str]) -> None:
    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        raise OSError("no space left")
        yield

    began: list[object] = []
    server = PageServer(
        name="dashboard", view=LiveView(), work=began.append, kept="the archive", running=running
    )
    with listen(HOST, 0) as listener, pytest.raises(DeployError, match="the dashboard did not start"):
        server.serve(listener, host=HOST, announce=announced.append)
    assert (began, announced) == ([], [])


def test_signal_ends_the_server_first_and_its_thread_before_it_returns() -> None:
    happened: list[str] = []

    def work(stop: threading.Event) -> None:
        stop.wait()
        happened.append("thread ended")

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        yield
        happened.append("gateway ended")

    def ask(url: str) -> None:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server
            happened.append(str(answer.status))
        os.kill(os.getpid(), signal.SIGTERM)

    def announce(url: str) -> None:
        threading.Thread(target=ask, args=(url,)).start()

    before = signal.getsignal(signal.SIGTERM)
    server = PageServer(name="node", view=LiveView(), work=work, kept="the log", running=running)
    with listen(HOST, 0) as listener:
        server.serve(listener, host=HOST, announce=announce)
    assert happened == ["200", "gateway ended", "thread ended"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_every_server_looks_for_cycles_rarely() -> None:
    """A node looked at the objects of all its connections again and again, up to half of its time."""

    def announce(_: str) -> None:
        found.append(gc.get_threshold()[0])
        os.kill(os.getpid(), signal.SIGTERM)

    found: list[int] = []
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    server = PageServer(name="node", view=LiveView(), work=threading.Event.wait, kept="the log")
    try:
        with listen(HOST, 0) as listener:
            server.serve(listener, host=HOST, announce=announce)
        assert found[0] >= 7000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_a_collector_bounds_its_connections_by_the_cluster_s_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ClusterSettings.from_mapping({"kafka": "a:9092", "redis": "redis://c:6379/0", "grace_s": 12.0})
    served: list[uvicorn.Server] = []
    monkeypatch.setattr(SqliteLog, "published_surveys", lambda _: (), raising=False)  # as Kafka's log has it
    with SqliteLog(tmp_path / "log") as log:
        monkeypatch.setattr(cluster, "opened", lambda _: contextlib.nullcontext(log))
        monkeypatch.setattr(cluster, "run", lambda server, *_, **__: served.append(server))
        cluster.collect(settings, (), host=HOST, port=0)
    protocol = served[0].config.http
    assert isinstance(protocol, functools.partial)
    assert protocol.args[0] == settings.gateway != GatewaySettings()


def test_node_and_dashboard_are_the_same_server() -> None:
    assert node.PageServer is cluster.PageServer is PageServer


def test_what_is_put_beside_the_archive_is_shown_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "RECOUNTS_S", 0.02)
    view, folder = LiveView(), RecountFolder(tmp_path)
    digest = "0123456789abcdef" * 2
    recount = {
        "survey": {"digest": digest},
        "method": METHOD,
        "round": 1,
        "sealed": True,
        "recount": {"without_issuers": ["leaky.example.org"]},
    }
    seen = []

    def work(stop: threading.Event) -> None:
        view.publish({"surveys": [{"digest": digest}]})
        seen.append(view.snapshot())
        folder.put(recount)
        while "recounts" not in view.snapshot()["surveys"][0]:
            assert not stop.wait(0.01)
        view.publish({"surveys": [{"digest": digest}], "unknown": 7})  # who counts knows of no recounts
        seen.append(view.snapshot())
        raise ValueError("enough")

    server = PageServer(name="node", view=view, work=work, kept="the log", recounts=RecountFolder(tmp_path))
    with listen("127.0.0.1", 0) as listener, pytest.raises(DeployError):
        server.serve(listener, host="127.0.0.1", announce=lambda url: None)
    assert seen == [
        {"surveys": [{"digest": digest}]},
        {"surveys": [{"digest": digest, "recounts": [recount]}], "unknown": 7},
    ]
