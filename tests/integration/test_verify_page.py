"""The page verify.html in a real chromium: opened from a disk, it tells honest releases and lies apart."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMEDRIVER, CHROMIUM, Browser, running_browser
from command import environment
from lies import printed, told
from node_fixture import wait_until
from redis_harness import free_port
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from surveys import VISITS, small

from hubbub import Survey
from hubbub_aggregator.stores import TransparencyLog

ROOT = Path(__file__).parents[2]
BUILDER = ROOT / "client" / "web" / "tools" / "inline.py"
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium is not at hand"),
]


def said(browser: Browser, page: Path, *files: Path) -> str:
    """The text of the page about some files."""
    browser.get(page.as_uri())
    browser.find_element(By.ID, "files").send_keys("\n".join(map(str, files)))
    results = browser.find_element(By.ID, "results")
    WebDriverWait(browser, 30).until(lambda _: results.get_attribute("data-done"))
    return results.text


def test_the_page_tells_an_honest_release_and_a_lie_apart(tmp_path: Path) -> None:
    page = tmp_path / "verify.html"
    subprocess.run([sys.executable, str(BUILDER), "verify", str(page)], check=True)
    survey = Survey.parse(small("one", 'type = "label"\nlabels = ["a", "b", "c"]'))
    document, counts = printed(survey, 500, np.random.default_rng(1))
    lied = told("an estimate", (document, counts), random.Random(1))  # noqa: S311 - a test case
    assert lied is not None
    files = {
        "one.survey": survey.canonical,
        "one.counts": counts,
        "honest.json": json.dumps(document).encode(),
        "lie.json": json.dumps(lied[0]).encode(),
        "other.txt": b"text",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    own, given, honest, lie, other = (tmp_path / name for name in files)
    with running_browser(tmp_path / "profile", "--host-resolver-rules=MAP * ~NOTFOUND") as browser:
        words = said(browser, page, own, given, honest, lie, other)
        assert "honest.json: What was checked is right" in words and ", 0 differ" in words
        assert "lie.json: It differs" in words
        place = next(
            place
            for place, cells in enumerate(zip(document["values"], lied[0]["values"], strict=True))
            if cells[0] != cells[1]
        )
        due, stated = (each["values"][place]["estimate"] for each in (document, lied[0]))
        found = re.search(rf"values\[{place}\].estimate is (\S+), should be (\S+)\n", words)
        assert found is not None
        assert [float(each) for each in found.groups()] == pytest.approx([stated, due], rel=1e-14)
        assert words.count("not checked: accounting.duplicate, ") == 2
        assert "other.txt: Not known" in words
        assert "its survey" in said(browser, page, given, honest)
        assert "its counts" in said(browser, page, own, honest)


def got(url: str) -> bytes:
    with urllib.request.urlopen(url) as reply:  # noqa: S310 - our own http
        return bytes(reply.read())


class Liar:
    """A server that gives what another one gives, but for some paths."""

    def __init__(self, honest: str) -> None:
        self.lies: dict[str, bytes] = {}
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                try:
                    data, status = liar.lies.get(self.path) or got(honest + self.path), 200
                except urllib.error.HTTPError as error:
                    data, status = b"", error.code
                self.send_response(status)
                self.send_header("access-control-allow-origin", "*")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def process(folder: Path, *words: str) -> Iterator[str]:
    """Run a command that serves, and give its address."""
    line = [sys.executable, "-m", "hubbub_deploy.cli", *words]
    server = subprocess.Popen(line, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+?:\d+", server.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        server.terminate()
        server.communicate(timeout=60)


def key(folder: Path, *words: str) -> str:
    line = [sys.executable, "-m", "hubbub_deploy.cli", *words]
    return subprocess.run(
        line, cwd=folder, env=environment(), check=True, capture_output=True, text=True
    ).stdout.strip()


def asked(browser: Browser, page: Path, server: str, log: str, witness: str) -> str:
    """The text of the page about a server."""
    browser.get(page.as_uri())
    for name, text in (("server", server), ("key", log), ("witnesses", witness)):
        browser.find_element(By.NAME, name).send_keys(text)
    browser.find_element(By.CSS_SELECTOR, "#ask button").click()
    results = browser.find_element(By.ID, "results")
    WebDriverWait(browser, 120).until(lambda _: results.get_attribute("data-done"))
    return results.text


def test_the_page_checks_a_server_by_its_address_and_its_log(tmp_path: Path) -> None:
    page, data = tmp_path / "verify.html", tmp_path / "data"
    subprocess.run([sys.executable, str(BUILDER), "verify", str(page)], check=True)
    (tmp_path / "visits.toml").write_text(VISITS)
    data.mkdir()
    shutil.copy(ROOT / "tests" / "golden" / "formats" / "log.db", data / "log.sqlite")
    log = key(tmp_path, "log", "keygen", "--name", "log.example", "--out", "log.pem")
    one, two = (
        key(tmp_path, "witness", "keygen", "--name", name, "--out", f"{name}.pem") for name in ("one", "two")
    )
    with ExitStack() as stack:
        port = str(free_port())
        watching = ("--name", "one", "--data", "one.db", "--of", log, "--port", port)
        witness = stack.enter_context(process(tmp_path, "witness", "serve", "one.pem", *watching))
        keeping = ("--log-key", "log.pem", "--log-name", "log.example", "--witness", f"{one}={witness}")
        node = ("node", "visits.toml", "--data", "data", "--partitions", "2", "--port", str(free_port()))
        url = stack.enter_context(process(tmp_path, *node, *keeping))
        entries = stack.enter_context(closing(TransparencyLog(data / "transparency.sqlite")))
        wait_until(lambda: [each.kind for each in entries.since(0)].count("counted") == 17)
        size = entries.size
        wait_until(lambda: f"log.example\n{size}\n" in str(entries.published()))
        browser = stack.enter_context(running_browser(tmp_path / "profile"))
        words = asked(browser, page, url, log, one)
        honest = words.count("What was checked is right")
        assert honest == words.count(", seen by one") == 17, words
        assert "differ\n" in words and " 0 differ" in words
        assert "must be seen by 1 witnesses, got 0" in asked(browser, page, url, log, two)
        assert "must be seen by 2 witnesses, got 1" in asked(browser, page, url, log, f"{one}\n{two}")
        assert "must be that of a log" in asked(browser, page, url, one, one)

        liar = stack.enter_context(closing(Liar(url)))
        entry = next(each for each in entries.since(0) if each.kind == "release")
        path = f"/api/v1/surveys/{entry.fields[0].hex()}/rounds/{entry.fields[1]}/sealed"
        told_so = json.loads(got(url + path))
        told_so["method_note"] = "?"  # nothing that a number would tell
        liar.lies[path] = json.dumps(told_so).encode()
        words = asked(browser, page, liar.url, log, one)
        assert (words.count("What was checked is right"), words.count("another release than that")) == (16, 1)
        bundle = f"/log/tile/entries/000.p/{size}"
        liar.lies[bundle] = entries.entries(0, size).replace(entry.data, entry.data[:-1] + b"?")
        words = asked(browser, page, liar.url, log, one)
        assert words.startswith("the log: It differs") and "must be those of its checkpoint" in words
