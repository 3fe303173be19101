"""A node says of every survey when it begins and ends, what it waits for, and where its page is."""

from __future__ import annotations

import json
import urllib.request

import pytest
from command import node
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub_deploy.node import announcement

HEALTH, VISITED = Survey.parse(LABELS), Survey.parse(VISITS)
URL = "http://127.0.0.1:8780"


def lines(now_s: float, counted: dict[int, int]) -> list[str]:
    rounds = [{"round": r, "accounting": {"accepted": n}} for r, n in counted.items()]
    snapshot = {"surveys": [{"digest": HEALTH.digest.hex(), "rounds": rounds}]}
    return announcement(URL, (HEALTH, VISITED), snapshot, now_s).splitlines()


@pytest.mark.parametrize(
    ("after_s", "counted", "said"),
    [
        (-7200, {}, "begins in 2 h"),
        (0, {}, "waiting for the first 200 devices"),
        (0, {1: 200}, "round 1 of"),
        (10_000 * 86_400, {}, "over, nobody answered"),
    ],
)
def test_every_survey_is_said_with_its_schedule_and_its_page(after_s, counted, said) -> None:
    found = lines(HEALTH.start_s + after_s, counted)
    assert found[0] == f"Hubbub node: {URL}"
    assert len(found) == 7
    assert found[1].startswith(f"  {HEALTH.id} version {HEALTH.version}: {said}")
    assert "2026-01-01 00:00 UTC to " in found[2]
    assert found[3] == f"    {URL}/?survey={HEALTH.digest.hex()}"
    assert found[4].startswith(f"  {VISITED.id} version {VISITED.version}: ")
    assert found[6].endswith(VISITED.digest.hex())


@pytest.mark.integration
def test_a_node_prints_it_and_its_page_is_there(tmp_path) -> None:
    path = tmp_path / "health.toml"
    path.write_text(LABELS, encoding="utf-8")
    with node(tmp_path / "data", path) as (process, port):
        found = [process.stdout.readline() for _ in range(3)]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/live", timeout=10) as reply:
            (survey,) = json.loads(reply.read())["surveys"]
    assert found[2].strip() == f"http://127.0.0.1:{port}/?survey={survey['digest']}"
