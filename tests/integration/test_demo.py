"""The demo as a stranger types it: real people's values in, estimates with their truth out."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from command import COMMAND, hubbub, hubbub_apart, one_line, running

from hubbub_deploy import cli
from hubbub_deploy.commands.demo.demonstration import typed_name
from hubbub_deploy.node import LOG_FILE

pytestmark = pytest.mark.integration

PEOPLE = 1500
LIMIT_S = 300.0  # a demo that hangs, on however busy a machine


def demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    return hubbub_apart("demo", "--people", PEOPLE, "--page", "close", *arguments, timeout_s=LIMIT_S)


def result(*arguments: object) -> dict[str, Any]:
    found = demo("--json", *arguments)
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout.count("\n") == 1
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def estimates(document: dict[str, Any]) -> list[tuple[str, str, str, float]]:
    return [
        (evaluation["survey"], row["kind"], row["label"], row["estimate"])
        for evaluation in document["evaluations"]
        for row in evaluation["rows"]
    ]


@pytest.fixture(scope="module")
def seeded() -> dict[str, Any]:
    return result("--seed", 7)


def test_demo_counts_every_answer_once_and_says_so(seeded: dict[str, Any]) -> None:
    assert seeded["sound"] is True
    assert seeded["devices"] == PEOPLE
    assert seeded["reports"] == 3 * PEOPLE == seeded["accounting"]["accepted"]
    tally = dict(seeded["accounting"])
    assert tally.pop("attempts") == sum(tally.values())
    assert seeded["seconds"] > 0
    assert len(seeded["evaluations"]) == 3
    for evaluation in seeded["evaluations"]:
        release = evaluation["release"]
        assert release["sealed"] is True
        assert release["devices"] == PEOPLE == release["accounting"]["accepted"]
        assert release["epsilon"]["certified"] <= release["epsilon"]["declared"]


def test_demo_estimates_lie_about_the_truth(seeded: dict[str, Any]) -> None:
    """Every estimate within 6 standard errors of its truth.

    Seeded, so that it holds or does not, always. For a fresh seed each of some 160 normal estimates misses
    with probability 2e-9; a broken pairing of labels and estimates misses by far more in the frequent ones.
    """
    rows = [row for evaluation in seeded["evaluations"] for row in evaluation["rows"]]
    assert len(rows) >= 100
    for row in rows:
        assert abs(row["estimate"] - row["truth"]) <= 6 * row["error"], row["label"]
        # A truth is a sum of many shares, and may be 1 but for a rounding.
        assert row["hit"] == (row["low"] - 1e-12 <= row["truth"] <= row["high"] + 1e-12)
    hits = sum(row["hit"] for row in rows)
    assert hits >= 0.85 * len(rows)
    # Frequent answers are told apart from rare ones: the estimates do follow the truth.
    assert any(row["truth"] > 0.2 and row["low"] > 0.05 for row in rows)


def test_demo_spends_no_more_than_each_device_has(seeded: dict[str, Any]) -> None:
    spent = seeded["epsilon"]
    assert 0 < spent["loss_least"] <= spent["loss_median"] <= spent["loss_most"] <= spent["committed_most"]
    declared = sum(evaluation["release"]["epsilon"]["declared"] for evaluation in seeded["evaluations"])
    assert spent["committed_most"] <= declared <= spent["budget"]


def test_demo_with_a_seed_repeats_itself(seeded: dict[str, Any]) -> None:
    assert estimates(result("--seed", 7)) == estimates(seeded)


def test_demo_without_a_seed_differs_every_time(seeded: dict[str, Any]) -> None:
    first, second = (estimates(result("--people", 600)) for _ in range(2))
    assert first != second
    assert [row[:3] for row in first] == [row[:3] for row in second] == [row[:3] for row in estimates(seeded)]


def test_demo_prints_its_tables_on_stdout_and_its_talk_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with commands, each one line of a narrow terminal's copy that begins as this one began."""
    monkeypatch.setenv("COLUMNS", "60")
    words = ("--seed", 7, "--people", PEOPLE, "--page", "close")
    found = subprocess.run(
        [*COMMAND, "demo", *map(str, words)], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    assert "Every answer was counted exactly once." in found.stdout
    assert re.search(r"\d+ of \d+ intervals hold the truth", found.stdout)
    for title in ("Visits to a doctor in a year", "Self-rated health", "Index of chronic diseases"):
        assert title in found.stdout
    assert "rarer" in found.stdout and "(--all)" in found.stdout
    assert "The page is live at http://127.0.0.1:" in found.stderr
    assert "The page is live" not in found.stdout
    page = re.search(r"The page is live at (\S+)", found.stderr)
    assert page is not None
    *_, where, first, second, third = found.stdout.splitlines()
    # It is gone by now, as this is no terminal: no dead address stands beside what to do next.
    assert where == "The page ends with the demo; --page hold keeps it. Try next:"
    for line, verb in ((first, "survey"), (second, "node"), (third, "simulate")):
        assert line.split()[:2] == ["hubbub", verb]
        assert cli._parser().parse_args(shlex.split(line)[1:])


@pytest.mark.parametrize(
    ("ran", "typed"),
    [
        (".venv/bin/hubbub", ".venv/bin/hubbub"),
        ("/somewhere/else/hubbub", "hubbub"),
        ("deploy/hubbub_deploy/cli.py", "hubbub"),
    ],
)
def test_demo_names_the_command_as_it_was_typed(ran: str, typed: str) -> None:
    assert typed_name(ran) == typed


def test_demo_on_a_taken_port_fails_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = hubbub("demo", "--people", 40, "--page", "close", "--port", taken.getsockname()[1])
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)
    assert "cannot be listened on" in found.stderr


def test_demo_below_the_cohort_releases_nothing_is_sound_and_keeps_its_files(tmp_path: Path) -> None:
    data = tmp_path / "data"
    document = result("--data", data, "--people", 40)
    assert document["sound"] is True
    for evaluation in document["evaluations"]:
        assert evaluation["rows"] == []
        assert evaluation["release"]["suppressed"] is True
        assert evaluation["release"]["values"] == evaluation["release"]["categories"] == []
    assert (data / LOG_FILE).exists()
    again = hubbub("demo", "--page", "close", "--data", data)
    assert (again.returncode, again.stdout) == (1, "")
    assert one_line(again.stderr)
    assert str(data) in again.stderr


def held_url(process: subprocess.Popen[str]) -> str:
    """The page's address, once the demo holds it open."""
    assert process.stderr is not None
    for line in process.stderr:
        if "until Ctrl-C" in line:
            return line.split()[4]
    raise AssertionError(process.communicate())


def answers(url: str) -> bool:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_held_page_ends_with_the_demo_however_that_ends(number: int, code: int, tmp_path: Path) -> None:
    with running("demo", "--people", 40, "--page", "hold", "--data", tmp_path / "data") as process:
        url = held_url(process)
        assert answers(url)
        os.kill(process.pid, number)
        assert process.wait(120) == code
        deadline = time.monotonic() + 120
        while answers(url):
            assert time.monotonic() < deadline, "the demo left its node behind"
            time.sleep(0.05)
        with contextlib.suppress(OSError):
            assert "Traceback" not in process.stderr.read()
