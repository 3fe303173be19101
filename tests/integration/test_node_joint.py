"""A node and devices, over HTTP, with two surveys of several attributes: a cross table and a score."""

from __future__ import annotations

import csv
import io
import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node_fixture import World, in_round, wait_until
from surveys import ACTIVITY, AGE_BY_SEX

from hubbub import Survey
from hubbub.testing import seeded
from hubbub.wire.report import decode_surveys
from hubbub_client import Agent, Policy
from hubbub_lab.evaluation.evaluation import rows_of, truth_of
from hubbub_lab.simulation.device_simulator import DeviceSimulator

pytestmark = pytest.mark.integration

DEVICES = 1500


def get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as reply:
        data: bytes = reply.read()
    return data


def shown(port: int) -> dict[str, Any]:
    document = json.loads(get(port, "/api/live"))
    return {survey["id"]: survey for survey in document["surveys"]}


def test_a_table_and_a_score_go_from_devices_to_a_sealed_release(tmp_path: Path) -> None:
    """Seeded devices: no interval is off by more than 5.5 standard errors (false alarm below 1e-6)."""
    asked = [Survey.parse(text) for text in (AGE_BY_SEX, ACTIVITY)]
    with World(tmp_path, asked) as world, world.living():
        port, now_s = world.port, in_round(0)
        surveys = [Survey.from_canonical(data) for data in decode_surveys(get(port, "/v1/surveys"))]
        chance = np.random.default_rng(4)
        values: dict[str, list[object]] = {
            "age": [None if age < 10 else age for age in chance.integers(8, 20, DEVICES).tolist()],
            "sex": chance.choice(["f", "m", "x"], DEVICES).tolist(),
            "weight": chance.uniform(20, 120, DEVICES).tolist(),
        }
        fleet = DeviceSimulator(DEVICES, budget=3.0, source=seeded(11))
        for survey in surveys:
            for attribute in survey.attributes:
                fleet.register(attribute)
        for attribute_id, held in values.items():
            fleet.set(attribute_id, held)
        for survey in surveys:
            assert fleet.enrol(survey, now_s=now_s).accepted.all()
        fleet.answer(now_s=now_s)
        assert fleet.upload(f"http://127.0.0.1:{port}").outcomes == {"accepted": 2 * DEVICES}

        # One more device, of the kind that a host embeds.
        url = f"http://127.0.0.1:{port}"
        ledger, policy = tmp_path / "ledger.db", Policy(require_opt_in="no")
        with Agent(ledger, url, budget=3.0, policy=policy, clock=lambda: now_s) as agent:
            for survey in agent.fetch_surveys():
                for attribute in survey.attributes:
                    agent.register(attribute)
                agent.set("age", 12)
                assert agent.enrol(survey).accepted
            assert len(agent.answer()) == 2
            assert set(agent.upload().settled.values()) == {"accepted"}

        world.turn(in_round(1))
        wait_until(lambda: world.sealed_rounds() == len(surveys))
        live = shown(port)
        for values_of in values.values():
            values_of.append(None)
        values["age"][-1] = 12
        for survey in surveys:
            release = live[survey.id]["shown"]
            assert release["devices"] == DEVICES + 1 and not release["suppressed"]
            held = zip(*(values[attribute.id] for attribute in survey.attributes), strict=True)
            rows = rows_of(release, truth_of(survey, list(held)))
            assert len(rows) == {"age-by-sex": 9 + 6, "activity": 1}[survey.id]
            for row in rows:
                assert abs(row.estimate - row.truth) < 5.5 * row.error, row.label
            assert [each["id"] for each in live[survey.id]["attributes"]] == [a.id for a in survey.attributes]
            lines = list(
                csv.DictReader(io.StringIO(get(port, "/" + live[survey.id]["rounds"][0]["csv"]).decode()))
            )
            assert len(lines) == len(rows)
        assert live["activity"]["shown"]["values"] == live["activity"]["shown"]["categories"] == []
        assert 0.0 < live["activity"]["shown"]["mean"]["estimate"] < 1.0
        assert "sex: missing" in [category["label"] for category in live["age-by-sex"]["shown"]["categories"]]
