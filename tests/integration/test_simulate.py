"""Simulated devices against a real node over HTTP: all of them counted, and the page beside the truth."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import hubbub, node, one_line
from node_fixture import DAY_S, HEALTH, LATENESS_S, World, in_round

from hubbub import Survey
from hubbub_lab.errors import LabError
from hubbub_lab.simulation import Session, Traffic, fetch_surveys, released

pytestmark = pytest.mark.integration

PEOPLE = 1_200
LABELS = [label for label in HEALTH.input_labels if label != "missing"]


class Time:
    """The world's clock, which every wait turns on."""

    def __init__(self, world: World) -> None:
        self.world, self.now_s = world, in_round(0)

    def clock(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.world.turn(self.now_s)
        time.sleep(0.02)  # the node looks at its clock again; nothing is asserted of how long that takes


def test_a_node_that_is_still_starting_is_waited_for(tmp_path: Path) -> None:
    with World(tmp_path) as world, contextlib.ExitStack() as life:
        said: list[str] = []
        now_s = 0.0

        def wait(seconds: float) -> None:
            nonlocal now_s
            now_s += seconds
            if now_s == 3 * seconds:
                life.enter_context(world.living())

        def ask(patience_s: float) -> tuple[Survey, ...]:
            return fetch_surveys(
                world.url, patience_s=patience_s, clock=lambda: now_s, wait=wait, say=said.append
            )

        with pytest.raises(LabError, match=f"^{world.url}: collector cannot be reached"):
            ask(0.0)
        assert (now_s, said) == (0.0, [])
        assert HEALTH.digest in {survey.digest for survey in ask(30.0)}
        assert len(said) == 1 and said[0].startswith(f"{world.url}: collector cannot be reached")


def people() -> dict[str, np.ndarray]:
    """Unequal shares, so that a confused label would show."""
    held = np.array(
        [LABELS[min(i * 10 // PEOPLE // 3, len(LABELS) - 1)] for i in range(PEOPLE)], dtype=object
    )
    return {HEALTH.attribute.id: held}


def session(
    world: World,
    moments: Time,
    traffic: Traffic,
    seed: int = 5,
    wait: Callable[[float], None] | None = None,
) -> Session:
    (survey,) = [each for each in fetch_surveys(world.url) if each.digest == HEALTH.digest]
    return Session(
        world.url,
        [survey],
        people(),
        traffic=traffic,
        budget=HEALTH.epsilon * HEALTH.rounds,
        seed=seed,
        clock=moments.clock,
        wait=wait or moments.wait,
    )


def test_all_that_is_sent_is_counted_once_and_the_page_lies_about_the_truth(tmp_path: Path) -> None:
    """Every estimate within 6 of its standard errors: seeded; with a fresh seed 2e-9 each would miss."""
    with World(tmp_path) as world, world.living():
        moments = Time(world)
        devices = session(world, moments, Traffic(loss=0.1, duplicates=0.2))
        assert devices.enrol()[HEALTH.digest].accepted.all()
        ((sent,), counts), *later = list(devices.rounds(1))
        assert later == [] and not counts.given_up
        assert sent.honest + sent.lost == PEOPLE and sent.lost > PEOPLE // 20
        found = released(world.url, sent, clock=moments.clock, wait=moments.wait)
        accounting = found.release["accounting"]
        assert accounting["accepted"] == found.release["devices"] == sent.honest
        everyone = Counter(people()[HEALTH.attribute.id].tolist())
        of_all = [everyone[label] / PEOPLE for label in HEALTH.input_labels]
        beside = [
            truth
            for row, truth in zip(found.rows, found.truths_of_everyone, strict=True)
            if row.kind == "value"
        ]
        assert beside == pytest.approx(of_all)
        assert [row.truth for row in found.rows if row.kind == "value"] != pytest.approx(of_all)
        assert accounting["duplicate"] == counts.reports - sent.honest > PEOPLE // 10
        assert found.rows and all(abs(row.estimate - row.truth) <= 6 * row.error for row in found.rows)


def test_reports_that_come_late_are_said_and_are_no_part_of_the_truth(tmp_path: Path) -> None:
    with World(tmp_path) as world, world.living():
        moments, begun_s = Time(world), in_round(0)

        def turn_once(seconds: float) -> None:  # the node's clock runs past the round's end when half is sent
            before_s, moments.now_s = moments.now_s, moments.now_s + seconds
            if before_s < begun_s + PEOPLE / 2 <= moments.now_s:
                time.sleep(0.5)  # what is on its way is mostly written; nothing is asserted of how much
                world.turn(begun_s + 2 * (DAY_S + LATENESS_S))

        devices = session(world, moments, Traffic(duplicates=0.1, rate=1.0), wait=turn_once)
        devices.enrol()
        (((sent,), counts),) = list(devices.rounds(1))
        assert moments.now_s > begun_s + PEOPLE and not counts.given_up
        assert sent.honest > PEOPLE // 4 and sent.refused > PEOPLE // 4
        assert sent.honest + sent.refused == PEOPLE
        found = released(world.url, sent, clock=moments.clock, wait=moments.wait)
        assert found.release["devices"] == sent.honest


def test_liars_move_the_shares_that_they_claim(tmp_path: Path) -> None:
    """As many liars as devices: the first share must miss its truth by more than 6 standard errors."""
    with World(tmp_path) as world, world.living():
        moments = Time(world)
        devices = session(world, moments, Traffic(fakes=1.0))
        devices.enrol()
        (((sent,), counts),) = list(devices.rounds(1))
        assert (sent.forged, counts.reports) == (PEOPLE, 2 * PEOPLE)
        found = released(world.url, sent, clock=moments.clock, wait=moments.wait)
        first = next(row for row in found.rows if row.kind == "value" and row.label == HEALTH.input_labels[0])
        assert first.estimate - first.truth > 6 * first.error and not first.covers_truth


def test_rounds_are_answered_as_they_come(tmp_path: Path) -> None:
    with World(tmp_path) as world, world.living():
        moments = Time(world)
        devices = session(world, moments, Traffic(drift=1.0))
        devices.enrol()
        sent = [each for these, _ in devices.rounds(2) for each in these]
        assert [each.round for each in sent] == [0, 1]
        assert HEALTH.round_at(moments.now_s) == 1
        first, second = (each.truth.values for each in sent)
        assert first.sum() == pytest.approx(1.0) == second.sum()
        assert not np.array_equal(first, second)  # everybody holds another's value in the second round


def test_a_release_that_does_not_come_is_said(tmp_path: Path) -> None:
    with World(tmp_path) as world, world.living():
        moments = Time(world)
        devices = session(world, moments, Traffic())
        devices.enrol()
        ((sent,), _), *_ = list(devices.rounds(1))
        seen: Counter[str] = Counter()

        def stand(seconds: float) -> None:  # its clock goes on, and the node's does not
            moments.now_s += max(seconds, 10.0)
            seen["waits"] += 1

        with pytest.raises(LabError, match="round 1 must be sealed by now"):
            released(world.url, sent, clock=moments.clock, wait=stand)
        assert seen["waits"] and moments.now_s > HEALTH.start_s + DAY_S + LATENESS_S


def test_the_command_sends_a_table_to_a_node_of_its_own(tmp_path: Path) -> None:
    new = ["--epsilon", "2", "--labels", "tea,coffee", "--start", "now", "--out", tmp_path / "drink.toml"]
    assert hubbub("survey", "new", "--id", "drink", *new).returncode == 0
    (tmp_path / "people.csv").write_text("cup\n" + "tea\n" * 200 + "coffee\n" * 90 + "beer\n" * 10 + "?\n")
    texts = tmp_path / "texts"
    texts.write_text("tea\ncoffee\nmate\n")
    keys = hubbub("survey", "dictionary", texts, "--out", tmp_path / "texts.bin").stdout
    asked = (tmp_path / "drink.toml").read_text().replace('"drink"', '"text"')
    asked = re.sub(r'type = "label"\nlabels = .*\n', keys, asked)
    (tmp_path / "text.toml").write_text(asked)
    with node(tmp_path / "data", tmp_path / "drink.toml", tmp_path / "text.toml") as (_, port):
        url = f"http://127.0.0.1:{port}"
        words = [tmp_path / "people.csv", "--collector", url, "--column", "drink=cup", "--json"]
        words += ["--survey", "drink"]
        found = hubbub("simulate", *words)
        assert found.returncode == 0, found.stderr
        result = json.loads(found.stdout)
        assert [(each["survey"], each["round"], each["sent"]) for each in result["rounds"]] == [
            ("drink", 1, 301)
        ]
        assert "1 of 301 are missing (?), 10 are outside the domain (such as 'beer')" in found.stderr
        assert "301 of 301 devices take part" in found.stderr
        hashed = ["--survey", "text", "--column", "text=cup", "--dictionary", tmp_path / "texts.bin"]
        found = hubbub("simulate", tmp_path / "people.csv", "--collector", url, "--json", *hashed)
        assert [each["sent"] for each in json.loads(found.stdout)["rounds"]] == [301], found.stderr
        assert "1 of 301 are missing (?), 10 are outside the domain (such as 'beer')" in found.stderr
        wrong = hubbub("simulate", tmp_path / "people.csv", "--collector", url, "--survey", "drink")
        assert (wrong.returncode, one_line(wrong.stderr)) == (1, True)
        assert "must include 'drink', got cup (--column ATTRIBUTE=COLUMN takes another)" in wrong.stderr
    gone = hubbub("simulate", *words, "--patience", 0)
    assert (gone.returncode, one_line(gone.stderr)) == (1, True)
    assert url in gone.stderr
