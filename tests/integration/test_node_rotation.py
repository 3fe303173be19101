"""A rotating survey through a node over HTTP: who answers, how noisy rounds are, and what devices pay."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from independent_bound import Told, largest_log_ratio
from node_fixture import DAY_S, World, in_round, wait_until
from scipy.stats import binom, chi2
from surveys import LABELS

from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub.wire import report as wire
from hubbub_client import Agent, Limits, Policy
from hubbub_client.upload.transport import HttpTransport, Response
from hubbub_lab.simulation.device_simulator import DeviceSimulator

pytestmark = pytest.mark.integration

W, CYCLES, DEVICES = 12, 2, 2400
ROUNDS = W * CYCLES
SHARES = np.array([0.5, 0.3, 0.2])
WELL = Attribute.labels("health", ["yes", "no"], kind="evolving")
PANEL = Survey.parse(
    LABELS.split("[attribute]")[0].replace("rounds = 3", f"rounds = {ROUNDS}\nrotation = {W}")
    + '[attribute]\nid = "health"\nkind = "evolving"\ntype = "label"\nlabels = ["yes", "no"]\n'
    + '[mechanism]\nname = "grr"\n'
)
ALONE = 1e-7
"""Chance of a false alarm of each of a handful of checks."""


def round_of(world: World, number: int) -> dict[str, Any]:
    """Return what the read API says of a round, from 1."""
    found: dict[str, Any] = json.loads(world.get(f"/api/v1/surveys/{PANEL.id}/rounds/{number}"))
    return found


def test_rounds_of_a_panel_are_as_noisy_as_its_formula_says(tmp_path: Path) -> None:
    """2,400 devices hold the shares .5, .3, .2 for two cycles of 12 at epsilon 1, K 3, over HTTP.

    Of the two free shares the squared distance of every round from the crowd's, in units of the covariance
    (C + (diag f - f f') (1 - 1/w)) / n, adds up to chi-square on 48 degrees of freedom. C is of the channel's
    own rows: p = e/(e + 2), q = 1/(e + 2). Were all devices asked in all rounds for a twelfth of epsilon, the
    same sum would be some 13 times as large, which is the control.
    """
    held = np.repeat(np.array(["yes", "no", None], dtype=object), (DEVICES * SHARES).astype(int))
    fleet = DeviceSimulator(DEVICES, budget=float(CYCLES), source=seeded(7))
    with World(tmp_path, [PANEL]) as world, world.living():
        fleet.register(WELL)
        fleet.set("health", held)
        assert fleet.enrol(PANEL, now_s=in_round(0)).accepted.all()
        assert fleet.committed == pytest.approx(CYCLES, abs=1e-5)
        answers = np.zeros((CYCLES, DEVICES), dtype=int)
        for number in range(ROUNDS):
            world.turn(in_round(number))
            (column,) = fleet.answer(now_s=in_round(number))
            answers[number // W, column.devices] += 1
            assert fleet.upload(world.url).outcomes == {"accepted": len(column.devices)}
        assert (answers == 1).all()
        assert fleet.committed == pytest.approx(CYCLES, abs=1e-5)
        world.turn(in_round(ROUNDS))
        wait_until(lambda: world.sealed_rounds() == ROUNDS)
        rounds = [round_of(world, number) for number in range(1, ROUNDS + 1)]
    n = np.array([each["devices"] for each in rounds])
    assert n.reshape(CYCLES, W).sum(axis=1).tolist() == [DEVICES] * CYCLES
    ends = binom.ppf([ALONE / ROUNDS, 1.0 - ALONE / ROUNDS], DEVICES, 1.0 / W)
    assert ends[0] <= n.min() and n.max() <= ends[1]
    estimates = np.array([[cell["estimate"] for cell in each["values"]] for each in rounds])
    p, q = np.e / (np.e + 2.0), 1.0 / (np.e + 2.0)
    law = q + (p - q) * np.eye(3)
    noise = sum(f * (np.diag(row) - np.outer(row, row)) for f, row in zip(SHARES, law, strict=True))
    crowd = np.diag(SHARES) - np.outer(SHARES, SHARES)
    whole = (noise / (p - q) ** 2 + crowd * (1.0 - 1.0 / W))[:2, :2]
    off = (estimates - SHARES)[:, :2]
    squares = float((n * np.einsum("ri,ij,rj->r", off, np.linalg.inv(whole), off)).sum())
    low, high = chi2.ppf([ALONE / 2.0, 1.0 - ALONE / 2.0], 2 * ROUNDS)
    assert low < squares < high
    # Splitting: all 2,400 answer, each at epsilon 1/12, whose noise is 13.2 times the panel's of round.
    e = np.exp(1.0 / W)
    p, q = e / (e + 2.0), 1.0 / (e + 2.0)
    split = (0.5 * p * (1.0 - p) + 0.5 * q * (1.0 - q)) / (p - q) ** 2 / DEVICES
    panel = whole[0, 0] * W / DEVICES
    assert split / panel == pytest.approx(13.2, abs=0.05)
    assert high * panel / split < low


class Noting:
    """The agent's own transport, and the reports that went through it."""

    def __init__(self, url: str, reports: set[tuple[int, bytes, int]]) -> None:
        self._real, self.reports = HttpTransport(url), reports

    def get(self, path: str) -> Response:
        return self._real.get(path)

    def post(self, path: str, body: bytes) -> Response:
        for each in wire.decode_upload(body, max_reports=100):
            assert isinstance(each, wire.Report) and isinstance(each.symbol, int)
            self.reports.add((each.round, each.id, each.symbol))
        return self._real.post(path, body)

    def close(self) -> None:
        self._real.close()


class Life:
    """A device that is killed, leaves and joins again, and whose clock is set back."""

    def __init__(self, folder: Path, url: str, joins: int, seed: int) -> None:
        self.folder, self.url, self.chance = folder, url, np.random.default_rng(seed)
        folder.mkdir()
        self.sent: set[tuple[int, bytes, int]] = set()
        self.now_s = in_round(joins)
        self.agent = self.opened()
        assert self.agent.enrol(PANEL).status == "enrolled"
        self.reserved = self.agent.status().committed

    def opened(self) -> Agent:
        agent = Agent(
            self.folder / "ledger.db",
            self.url,
            budget=float(CYCLES),
            clock=lambda: self.now_s,
            http=Noting(self.url, self.sent),
            policy=Policy(require_opt_in="no"),
            limits=Limits(gap_s=0.0, base_s=0.001, cap_s=0.01),
        )
        agent.register(WELL)
        return agent

    def day(self, number: int) -> None:
        """Live through a day, in which the clock may be set back by a week at most."""
        copy = self.folder.with_name(self.folder.name + "-copy")
        backs = (0, int(self.chance.integers(1, 8)), 0) if self.chance.integers(3) == 0 else (0,)
        for back in backs:
            self.now_s = in_round(number) - back * DAY_S
            self.agent.set("health", ["yes", "no", None][self.chance.integers(3)])
            shutil.copytree(self.folder, copy)
            self.agent.answer()
            what = self.chance.integers(4)
            if what == 0:  # killed before anybody saw that answer
                self.agent.close()
                shutil.rmtree(self.folder)
                copy.rename(self.folder)
                self.agent = self.opened()
                self.agent.set("health", "yes")
                self.agent.answer()
            shutil.rmtree(copy, ignore_errors=True)
            self.agent.upload()
            if what == 1:
                self.agent.opt_out(PANEL)
                self.agent.opt_in(PANEL)
                assert self.agent.enrol(PANEL).status == "enrolled"


def test_agents_answer_a_node_once_a_cycle_and_pay_for_no_more(tmp_path: Path) -> None:
    """16 agents live for 24 days of two cycles, half of them from a later day on: all that the node counts.

    Who is there from the first day on has committed ceil(24/12) times epsilon from then to the end, and has
    answered twice. The largest log-ratio of what each sent is found from bytes
    alone, by code that knows nothing of the filter.
    """
    chance, lives = np.random.default_rng(3), dict[int, Life]()
    joins = [0 if i % 2 == 0 else int(chance.integers(1, ROUNDS)) for i in range(16)]
    with World(tmp_path, [PANEL]) as world, world.living():
        for number in range(ROUNDS):
            world.turn(in_round(number))
            for i, first in enumerate(joins):
                if first == number:
                    lives[i] = Life(tmp_path / f"device-{i}", world.url, first, i)
                if first <= number:
                    lives[i].day(number)
        world.turn(in_round(ROUNDS))
        counted = Counter(number for life in lives.values() for number, _, _ in life.sent)
        wait_until(lambda: world.sealed_rounds() == len(counted))  # nobody may have answered in a round
        accepted = {number: round_of(world, number + 1)["accounting"]["accepted"] for number in counted}
    assert accepted == dict(counted)
    for i, life in lives.items():
        rounds, status = [number for number, _, _ in life.sent], life.agent.status()
        life.agent.close()
        assert len({number // W for number in rounds}) == len(rounds) <= CYCLES
        if joins[i] == 0:
            assert len(rounds) == CYCLES
            assert life.reserved == status.committed == pytest.approx(CYCLES, abs=1e-5)
        assert status.committed <= life.reserved + 1e-9
        told = [Told(PANEL.digest, number, symbol) for number, _, symbol in life.sent]
        found = largest_log_ratio([PANEL.canonical], told) if told else 0.0
        assert found == pytest.approx(len(rounds), abs=1e-5)
        assert found <= status.loss + 1e-9 <= status.committed + 1e-9
