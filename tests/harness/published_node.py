"""A node with sealed rounds and an open one, for those who read results: two surveys, 800 seeded devices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from node_fixture import World, in_round, wait_until
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_lab.simulation.device_simulator import DeviceSimulator

DEVICES = 800
SURVEYS = (Survey.parse(VISITS), Survey.parse(LABELS))
ROUNDS = {"outpatient-visits": 2, "self-rated-health": 3}
SEALED = {"outpatient-visits": 2, "self-rated-health": 2}


@contextlib.contextmanager
def published_node(folder: Path) -> Iterator[World]:
    """A node whose visits are over (two releases) and whose third round of labels is open."""
    chance = np.random.default_rng(7)
    with World(folder, SURVEYS) as world, world.living():
        fleet = DeviceSimulator(DEVICES, budget=40.0, source=seeded(11))
        for survey in SURVEYS:
            fleet.register(survey.attribute)
        fleet.set("visits", np.minimum(chance.poisson(2.0, DEVICES), 20).tolist())
        for number in range(3):
            now_s = in_round(number)
            world.turn(now_s)
            fleet.set("health", chance.choice(["good", "fair", "poor"], DEVICES).tolist())
            for survey in SURVEYS:
                fleet.enrol(survey, now_s=now_s)
            fleet.answer(now_s=now_s)
            asked = sum(number < rounds for rounds in ROUNDS.values())
            assert fleet.upload(world.url).outcomes == {"accepted": asked * DEVICES}
        wait_until(lambda: world.sealed_rounds() == sum(SEALED.values()))
        yield world
