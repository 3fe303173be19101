"""A fleet in a rotating survey: the agents' slots, decisions and ledgers, as columns."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from devices import AGREED, Clock, Collector
from surveys import LABELS, START_S, VISITS

from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_client import Agent
from hubbub_client.surveys.rotation import SEED_BYTES, slot_in_cycle
from hubbub_lab.simulation import DeviceSimulator

DAY_S = 86_400
NOW_S = START_S + 10.0


def rotating(rounds: int, rotation: int, text: str = LABELS) -> Survey:
    return Survey.parse(text.replace("rounds = 3", f"rounds = {rounds}\nrotation = {rotation}"))


def fleet_of(devices: int, survey: Survey, *, budget: float, now_s: float = NOW_S) -> DeviceSimulator:
    fleet = DeviceSimulator(devices, budget=budget, source=seeded(3))
    for attribute in survey.attributes:
        fleet.register(attribute)
    fleet.enrol(survey, now_s=now_s)
    return fleet


def test_every_device_answers_once_a_cycle_in_the_round_of_its_own_seed() -> None:
    survey = rotating(26, 12)
    fleet = fleet_of(600, survey, budget=3.0)
    seeds = seeded(3).token_bytes(600 * SEED_BYTES)
    answered = np.zeros((600, 26), dtype=int)
    for number in range(26):
        for column in fleet.answer(now_s=NOW_S + number * DAY_S):
            answered[column.devices, column.round] += 1
        assert fleet.answer(now_s=NOW_S + number * DAY_S) == ()
    for device in range(600):
        own = seeds[device * SEED_BYTES : (device + 1) * SEED_BYTES]
        drawn = [12 * cycle + slot_in_cycle(own, cycle, 12) for cycle in range(3)]
        assert np.flatnonzero(answered[device]).tolist() == [n for n in drawn if n < 26]
    # The last cycle has two rounds: a sixth of the devices answers three times.
    np.testing.assert_allclose(fleet.loss, answered.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(fleet.committed, fleet.loss, atol=1e-5)


def test_a_fleet_has_the_ledgers_of_agents_with_its_seeds(tmp_path, monkeypatch) -> None:
    """PB-GRR, whose answers cost less than they could: committed falls as agents' does, to the unit."""
    text = VISITS.replace('"static"', '"evolving"').replace("rounds = 2", "rounds = 14\nrotation = 6")
    survey = Survey.parse(text)
    joins_s = NOW_S + 3 * DAY_S
    fleet = fleet_of(4, survey, budget=9.0, now_s=joins_s)
    seeds = seeded(3).token_bytes(4 * SEED_BYTES)
    reserved = fleet.committed
    fleet.set("visits", [0, 3, 20, None])
    symbols: list[dict[int, int]] = [{} for _ in range(4)]
    for number in range(3, 14):
        for column in fleet.answer(now_s=NOW_S + number * DAY_S):
            for device, symbol in zip(column.devices.tolist(), column.symbols.tolist(), strict=True):
                symbols[device][column.round] = symbol
    for device in range(4):
        clock = Clock(joins_s)
        own = seeds[device * SEED_BYTES : (device + 1) * SEED_BYTES]
        folder = tmp_path / str(device)
        folder.mkdir()
        agent = Agent(
            folder / "ledger.db",
            "http://collector.invalid",
            budget=9.0,
            clock=clock,
            http=Collector(),
            policy=AGREED,
        )
        agent.register(survey.attribute)
        with monkeypatch.context() as patch:
            drawn = SimpleNamespace(urandom=lambda _, own=own: own)
            patch.setattr("hubbub_client.agent.enrolments.os", drawn)
            assert agent.enrol(survey).status == "enrolled"
        assert agent.status().committed == reserved[device]
        monkeypatch.setattr(
            type(agent._answerer),
            "_perturb",
            lambda self, asked, _, device=device, clock=clock: symbols[device][asked.round_at(clock.now_s)],
        )
        for number in range(3, 14):
            clock.now_s = NOW_S + number * DAY_S
            assert [answer.round for answer in agent.answer()] == [number] * (number in symbols[device])
        status = agent.status()
        assert (status.loss, status.committed) == (fleet.loss[device], fleet.committed[device])
        agent.close()


@pytest.mark.parametrize(("budget", "accepted"), [(1.99, False), (2.0, True)])
def test_a_fleet_is_decided_on_for_the_worst_slots(budget: float, accepted: bool) -> None:
    """From round 4 of 11 in cycles of 6: both cycles may ask; some devices are drawn for none."""
    fleet = fleet_of(200, rotating(11, 6), budget=budget, now_s=NOW_S + 4 * DAY_S)
    assert bool(fleet.committed.any()) == accepted
    counts = np.bincount(np.round(fleet.committed).astype(int), minlength=3)
    assert (counts > 0).all() if accepted else counts.tolist() == [200, 0, 0]


def test_each_device_decides_by_its_own_account() -> None:
    """Three rounds in turns of two cost 1 or 2, as drawn: of 3 in all, only the former have 2 left."""
    fleet = fleet_of(400, rotating(3, 2), budget=3.0)
    before = np.round(fleet.committed)
    assert sorted(set(before.tolist())) == [1.0, 2.0]
    found = fleet.enrol(rotating(12, 6, LABELS.replace("version = 1", "version = 2")), now_s=NOW_S)
    assert found.accepted.tolist() == (before == 1.0).tolist() and found.reason == "over_budget"
    assert fleet.committed[found.accepted] == pytest.approx(3.0, abs=1e-5)
    assert fleet.committed[~found.accepted] == pytest.approx(2.0, abs=1e-5)
