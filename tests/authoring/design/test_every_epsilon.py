"""Every mechanism at every epsilon that a survey file may declare: it is built, or refused by a rule."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import surveys
from workloads import labels, numbers

from hubbub import Survey
from hubbub.errors import SurveyError
from hubbub_authoring.design import Floors, compare
from hubbub_authoring.mechanisms.registry import mechanisms

EPSILONS = (1e-6, 1e-4, 0.01, 0.1, 1.0, 4.0, 8.0, 14.0, 16.0, 18.0, 20.0, 22.0, 26.0, 30.0, 33.0, 36.0, 40.0)
NUMBER = surveys.DISEASES.split("[mechanism]")[0]
CATEGORIES = surveys.VISITS[surveys.VISITS.index("[[category]]") :]
VISITS = surveys.VISITS.split("[mechanism]")[0]
GRID = "points = 9\n"
FILES = {
    "grr": [(VISITS, ""), (NUMBER, GRID)],
    "pbgrr": [(VISITS, "boost_epsilon = {epsilon}\n" + CATEGORIES)],
    "subset": [(VISITS, ""), (NUMBER, GRID)],
    "unary": [(VISITS, ""), (NUMBER, GRID)],
    "local_hashing": [(VISITS, ""), (NUMBER, GRID)],
    "levels": [(VISITS, CATEGORIES)],
    "orbits": [(VISITS, ""), (VISITS, CATEGORIES)],
    "neighbourhood": [(VISITS, "boost_epsilon = {epsilon}\nwindow = 1\n")],
    "boosted": [
        (NUMBER, GRID + 'kernel = "uniform"\nhalf_width = 1\n'),
        (NUMBER, GRID + 'kernel = "laplace"\nkernel_epsilon = {epsilon}\n'),
    ],
    "r2dp": [(NUMBER, GRID + 'law = {{ name = "gamma", shape = 3.0 }}\n')],
    "square_wave": [(NUMBER, GRID)],
    "piecewise": [(NUMBER, GRID)],
    "hybrid": [(NUMBER, GRID)],
    "duchi": [(NUMBER, GRID)],
    "optimal": [
        *((NUMBER, f'{GRID}tuned_for = "{quantity}"\n') for quantity in ("mean", "cdf", "quantiles")),
        (VISITS, ""),
        (VISITS, 'reading = "category"\n' + CATEGORIES),
    ],
    "brdp": [(NUMBER, GRID + 'kernel = "laplace"\nhalf_width = 1\n')],
    "tree": [(VISITS, ""), (NUMBER, GRID)],
}
"""The text and the keys of every mechanism's files, beside its name."""


@pytest.mark.parametrize("name", mechanisms())
def test_every_mechanism_is_built_at_every_epsilon_or_refused_by_a_rule(name: str) -> None:
    built = dict.fromkeys(range(len(FILES[name])), 0)
    for epsilon in EPSILONS:
        for file, (subject, keys) in enumerate(FILES[name]):
            declared = re.sub(r"epsilon = [0-9.]+", f"epsilon = {epsilon}", subject, count=1)
            text = f'{declared}[mechanism]\nname = "{name}"\n{keys.format(epsilon=epsilon)}'
            try:
                survey = Survey.parse(text)
            except SurveyError as error:
                assert name != "optimal", (epsilon, str(error))
                assert re.search("must|no coin|no total", str(error))
                assert not 0.1 <= epsilon <= 14.0, (epsilon, str(error))
            else:
                assert 0.0 < survey.channel.epsilon <= epsilon
                built[file] += 1
    assert min(built.values()) >= 6


@pytest.mark.parametrize(
    "quantity", ["value", "category", "mean", pytest.param("cdf", marks=pytest.mark.only_long), "quantiles"]
)
def test_auto_takes_a_mechanism_at_every_epsilon(quantity: str) -> None:
    """A trial that cannot be built is left out; costs fall with epsilon, above floors that are positive."""
    last = math.inf
    for epsilon in EPSILONS:
        of_numbers = quantity in ("mean", "cdf", "quantiles")
        question = numbers(9, quantity) if of_numbers else labels([2, 1, 5], quantity)
        asked = replace(question, epsilon=epsilon)
        found = compare(asked)
        floor = Floors(asked).objective
        assert found[0].cost <= last * (1.0 + 1e-3)
        assert not found[0].refusal and math.isfinite(found[0].cost)
        assert floor is None or 0.0 < floor.error <= found[0].cost * asked.devices * (1.0 + 1e-6)
        last = found[0].cost
