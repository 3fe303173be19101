"""Forged reports against a real node: the alert is in the API, on the page's document and in the metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from node_fixture import World, in_round, wait_until
from surveys import LABELS

from hubbub import Survey
from hubbub_lab.simulation import Session, Traffic, fetch_surveys

pytestmark = pytest.mark.integration

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
HEALTH = Survey.parse(LABELS.replace("epsilon = 1.0", "epsilon = 4.0"))
LABEL = HEALTH.input_labels[0]
PEOPLE = 3_000


class Time:
    """The world's clock, which the session turns on."""

    def __init__(self, world: World) -> None:
        self.world, self.now_s = world, in_round(0)
        world.turn(self.now_s)

    def clock(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.world.turn(self.now_s)


def answered(world: World, time: Time, traffic: Traffic, seed: int) -> None:
    """One round of seeded devices, all of whom hold the last label, and of liars who claim the first."""
    session = Session(
        world.url,
        list(fetch_surveys(world.url)),
        {"health": np.full(PEOPLE, "poor", dtype=object)},
        traffic=traffic,
        budget=HEALTH.epsilon * HEALTH.rounds,
        seed=seed,
        clock=time.clock,
        wait=time.wait,
    )
    session.enrol()
    ((_, counts),) = list(session.rounds(1))
    assert not counts.given_up


def test_one_liar_in_twenty_raises_an_alert_everywhere_and_honest_rounds_none(tmp_path: Path) -> None:
    """False alarms of the honest rounds: 1e-3 each as stated, and the devices are seeded.

    Liars have honest devices: they move the first share by 5 points, at a threshold below 4: the noise of
    both rounds, and of who is counted in each.
    """
    with World(tmp_path, (HEALTH,)) as world, world.living():
        time = Time(world)
        for number, fakes in enumerate((0.0, 0.0, 0.05)):
            time.now_s = in_round(number)
            world.turn(time.now_s)
            answered(world, time, Traffic(fakes=fakes), seed=number)
        world.turn(in_round(3))
        wait_until(lambda: world.sealed_rounds() == 3)
        found = json.loads(world.get("/api/v1/surveys/self-rated-health/alerts"))
        assert found["rate"] == 0.001
        kinds = [
            [(a["kind"], a["label"]) for a in line["alerts"] if a["kind"] != "margin"]
            for line in found["rounds"]
        ]
        assert kinds[:2] == [[], []] and ("jump", LABEL) in kinds[2]
        up = next(alert for alert in found["rounds"][2]["alerts"] if alert["label"] == LABEL)
        assert 0.0 < up["threshold"] < 0.04 < up["statistic"] < 0.07
        (live,) = json.loads(world.get("/api/live"))["surveys"]
        assert up in live["alerts"]["rounds"][-1]["alerts"]
        metrics = world.get("/metrics").decode()
        name = 'survey="self-rated-health",version="1"'
        jumps = re.search(rf'^hubbub_alerts{{kind="jump",{name}}} (\S+)$', metrics, re.MULTILINE)
        assert kinds[2][-1] == ("joint", None)
        assert jumps is not None and float(jumps[1]) == len(kinds[2]) - 1
        rules = yaml.safe_load(
            (ROOT / "deploy" / "prometheus" / "hubbub.rules.yml").read_text(encoding="utf-8")
        )
        asked = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
        kinds = [re.fullmatch(r'(\w+)\{kind="(\w+)"\} > 0', expression).groups() for expression in asked]
        assert len(asked) == 5 and ("hubbub_alerts", "issuer") in kinds
        for metric, kind in kinds:  # every series that a rule asks for is there; no token is asked for here
            assert f'{metric}{{kind="{kind}",{name}}}' in metrics
