"""docs/log.md, command by command: node, two witnesses, a reader, a monitor and a device, as processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import environment
from redis_harness import free_port
from surveys import VISITS

from hubbub.transparency import Entry
from hubbub_aggregator.stores import TransparencyLog

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
PORTS = ("8780", "8791", "8792")


class Page:
    """The commands of the page, each as it stands but for the ports."""

    def __init__(self, folder: Path) -> None:
        written = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")
        lines = "".join(re.findall(r"^```sh\n(.*?)^```", written, re.MULTILINE | re.DOTALL))
        # The lies say some commands again.
        text = "\n".join(dict.fromkeys(lines.splitlines()))
        for port in PORTS:
            text = text.replace(port, str(free_port()))
        self.lines, self.folder = text.splitlines(), folder
        bin_ = folder / "bin"
        bin_.mkdir()
        (bin_ / "hubbub").write_text(f'#!/bin/sh\nexec {sys.executable} -m hubbub_deploy.cli "$@"\n')
        (bin_ / "hubbub").chmod(0o755)
        self.environment = {**environment(), "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
        self.servers: dict[str, subprocess.Popen[str]] = {}

    def line(self, *words: str) -> str:
        (found,) = [line for line in self.lines if all(word in line for word in words)]
        return found

    def serve(self, *words: str) -> None:
        line = self.line(*words)
        assert line.endswith(" &")
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {line[:-2]}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.servers[line] = process
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Hubbub ")

    def run(self, *words: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        line = self.line(*words)
        before = f"{self.line('pins=')}; " if "$pins" in line else ""
        return subprocess.run(
            ["/bin/sh", "-c", before + line],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def stop(self, *words: str) -> None:
        process = self.servers.pop(self.line(*words))
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0

    def until(self, *words: str, code: int) -> str:
        """Run a command again until it ends as it should: a release needs a moment."""
        for _ in range(40):
            done = self.run(*words)
            if done.returncode == code:
                break
            time.sleep(0.5)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    page = Page(tmp_path)
    try:
        yield page
    finally:
        for process in page.servers.values():
            process.kill()
            process.communicate()


def test_the_page_runs_and_lies_are_named(page: Page) -> None:
    folder = page.folder
    today = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(time.time() - 3_600))
    text = VISITS.replace("2026-01-01T00:00:00Z", today).replace("outpatient-visits", "asked-now")
    (folder / "visits.toml").write_text(text)
    (folder / "data").mkdir()
    # Rounds that are over: the log of the golden formats, 12 surveys that nobody logged in time.
    shutil.copy(ROOT / "tests" / "golden" / "formats" / "log.db", folder / "data" / "log.sqlite")
    page.lines = [
        line.replace("--data data ", "--data data --partitions 2 ")
        if line.startswith("hubbub node")
        else line.replace("--join visits", "--join asked-now")
        for line in page.lines
    ]
    for words in (("log keygen",), ("witness keygen", "one"), ("witness keygen", "two"), ("survey keygen",)):
        done = page.run(*words)
        assert done.returncode == 0, done.stderr
    page.serve("witness serve", "one")
    page.serve("witness serve", "two")
    assert page.run("survey sign", "list.bin").returncode == 0
    page.serve("hubbub node")
    done = page.run("log add", "list.bin")
    assert done.returncode == 0, done.stderr
    assert "list.bin: logged; its proof is list.bin.tlog-proof" in done.stdout
    proof = (folder / "list.bin.tlog-proof").read_bytes()
    assert len(proof) <= 1_500 and proof.count(b"\n\xe2\x80\x94 ") == 3

    said = page.until("verify http", code=0)
    for _ in range(40):  # which answers count is logged after their releases
        if "devices cannot look" not in said:
            break
        time.sleep(0.5)
        said = page.run("verify http").stdout
    assert said.count("seen by one.example.net, two.example.com") == 17 and "devices cannot look" not in said
    page.lines.append(
        "hubbub verify data $pins"
    )  # the archive's own bytes, beside those that the server gave
    assert page.until("verify data", code=0).count("seen by one.example.net, two.example.com") == 17
    lines = page.until("hubbub monitor", code=1).splitlines()
    assert lines.pop().endswith("seen by one.example.net, two.example.com; 10 wrong")
    # Nobody answered these rounds of the golden log, which no stranger can tell from holding back.
    assert [line for line in lines if "no release: held back, or nobody answered" not in line] == []
    answered = page.run("agent answer")
    assert answered.returncode == 0, answered.stderr
    assert "1 sent, 0 waiting" in answered.stdout

    # A witness is away: the log goes on by no checkpoint, and what was published stays.
    page.stop("witness serve", "one")
    state = json.loads((folder / "seen.json").read_bytes())
    with contextlib.closing(TransparencyLog(folder / "data" / "transparency.sqlite")) as log:
        log.append([Entry("erased", (b"x" * 16,))])
    time.sleep(2)
    page.until("hubbub monitor", code=1)
    assert json.loads((folder / "seen.json").read_bytes())["size"] == state["size"]
    page.serve("witness serve", "one")
    for _ in range(40):
        page.until("hubbub monitor", code=1)
        if json.loads((folder / "seen.json").read_bytes())["size"] == state["size"] + 1:
            break
        time.sleep(1)
    else:
        raise AssertionError("the witness came back, and nothing was published")

    # Three lies, each told on the page: another number, another list of a number, another past.
    page.stop("hubbub node")
    assert page.run("replay data").returncode == 0
    assert page.run("verify out").stdout.count("in the log at ") == 17
    assert page.run("sed -i").returncode == 0
    named = page.run("verify out")
    assert named.returncode == 1
    assert named.stdout.count("another release than that of the log") == 17
    assert page.run("--days 9").returncode == 0
    refused = page.run("log add", "other.bin")
    assert refused.returncode == 1 and "another list of that name is in the log; it stays" in refused.stderr
    assert page.run("rm data").returncode == 0
    with contextlib.closing(sqlite3.connect(folder / "data" / "archive.sqlite")) as archive:
        assert archive.execute("SELECT count(*) FROM release").fetchone() == (17,)
    page.serve("hubbub node")
    time.sleep(2)
    assert page.run("verify http").returncode == 2  # there is no checkpoint: witnesses saw another log
