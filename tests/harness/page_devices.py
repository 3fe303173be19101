"""Devices in pages of a real browser: their server, which keeps what they send, and browsers to kill."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from browser import CHROMIUM

from hubbub.survey.survey import Survey
from hubbub.wire import report as wire

FOLDER = Path(__file__).parents[2] / "client" / "web"
PAGE = b'<!doctype html><title>device</title><script type="module" src="/test/page-device.js"></script>'


class Site(http.server.ThreadingHTTPServer):
    """The page's own server: its modules, a list of surveys, the reports that came, and what devices told."""

    daemon_threads = True

    def __init__(self, surveys: list[Survey]) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(_Handler, directory=str(FOLDER)))
        self.listed = wire.encode_surveys([survey.canonical for survey in surveys])
        self.lists: list[bytes] = []
        self.files: dict[str, bytes] = {}
        self.bodies: list[bytes] = []
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def reports(self) -> list[wire.Report]:
        """Every report that came, copies too."""
        found = [each for body in [*self.bodies] for each in wire.decode_upload(body, max_reports=64)]
        assert all(isinstance(each, wire.Report) for each in found)
        return found  # type: ignore[return-value]  # as asserted

    def handle_error(self, *where: Any) -> None:
        """Be silent where a browser was killed in the middle of a request."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(*where)


class _Handler(http.server.SimpleHTTPRequestHandler):
    server: Site

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in {"/", "/v1/surveys"}:
            listed = path == "/v1/surveys"
            self._say(self.server.listed if listed else PAGE, "text/html")
        elif path in self.server.files:
            self._say(self.server.files[path], "application/octet-stream")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/told":
            words = json.loads(body)
            if "list" in words:
                self.server.listed = self.server.lists[words["list"]]
            else:
                self.server.told.put(words)
            return self._say(b"", "text/plain")
        self.server.bodies.append(body)
        outcomes = ["accepted"] * len(wire.decode_upload(body, max_reports=64))
        return self._say(wire.encode_response(outcomes), "application/msgpack")

    def _say(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def site(surveys: list[Survey]) -> Iterator[Site]:
    """A site that serves until the block ends."""
    with Site(surveys) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def browsing(profile: Path, url: str, **words: object) -> Iterator[subprocess.Popen[bytes]]:
    """A browser at a page, killed with all its processes at the end of the block."""
    command = [
        *(str(CHROMIUM), "--headless=new", "--disable-gpu", "--no-first-run", "--no-proxy-server"),
        *("--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={profile}"),
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        f"{url}/?{urlencode(words)}",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
