"""Every mechanism that a survey file can name compiles, travels, and estimates without bias."""

from __future__ import annotations

import numpy as np
import pytest
import surveys

from hubbub import Survey
from hubbub_authoring import mechanisms as m
from hubbub_authoring.mechanisms.boosted.kernels import GridKernel

NUMBER = surveys.DISEASES.split("[mechanism]")[0]
NUMBERS = {
    "grr": "points = 9",
    "subset": "points = 9",
    "unary": 'points = 9\nvariant = "symmetric"',
    "local_hashing": "points = 9\nbuckets = 3",
    "square_wave": "points = 9",
    "piecewise": "points = 9",
    "hybrid": "points = 9",
    "duchi": "points = 9",
    "brdp": "points = 9\nhalf_width = 15.0\nrecycling = 0.4",
    "r2dp": "points = 9\nwithin = 10.0",
}
BOOSTED = {
    "gaussian": 'kernel = "gaussian"',
    "staircase": 'kernel = "staircase"\nhalf_width = 12.0',
    "laplace, relative": 'kernel = "laplace"\nregion = "relative"\nshare = 0.25\nhalf_width = 5.0',
    "r2dp": 'kernel = "r2dp"\nhalf_width = 10.0\nlaw = { name = "gamma", shape = 3.0 }',
    "gaussian, fixed": 'kernel = "gaussian"\nregion = "fixed"\nlow = 20.0\nhigh = 40.0\nboost = 0.3',
}
LAWS = {
    "two points": ('{ name = "two_point", slow = 1, fast = 3.0, share = 0.2 }', m.TwoPoint(3.0, 1.0, 0.2)),
    "gamma": ('{ name = "gamma", shape = 3 }', m.Gamma(3.0, 1.0)),
    "uniform": ('{ name = "uniform", slow = 0, fast = 2 }', m.UniformScale(0.0, 2.0)),
    "truncated gaussian": (
        '{ name = "truncated_gaussian", mean = 2, sigma = 1, slow = 0.5, fast = 9 }',
        m.TruncatedGaussian(2.0, 1.0, 0.5, 9.0),
    ),
    "truncated gaussian below": (
        '{ name = "truncated_gaussian", mean = -2, sigma = 1, slow = 0.5 }',
        m.TruncatedGaussian(-2.0, 1.0, 0.5),
    ),
}
WINDOW = surveys.VISITS.replace(
    'name = "pbgrr"\nboost_epsilon = 2.0', 'name = "neighbourhood"\nboost_epsilon = 2.0\nwindow = 2'
)
PAIRS = surveys.LABELS.replace(
    'name = "grr"',
    'name = "neighbourhood"\nboost_epsilon = 0.8\npairs = [["excellent", "good"], ["good", "fair"]]',
)
TEXTS = {
    **{name: f'{NUMBER}[mechanism]\nname = "{name}"\n{keys}\n' for name, keys in NUMBERS.items()},
    **{
        name: f'{NUMBER}[mechanism]\nname = "boosted"\npoints = 13\n{keys}\n'
        for name, keys in BOOSTED.items()
    },
    **{
        f"r2dp, {name}": f'{NUMBER}[mechanism]\nname = "r2dp"\npoints = 9\nlaw = {law}\n'
        for name, (law, _) in LAWS.items()
    },
    **{
        f"r2dp, {metric}": f'{NUMBER}[mechanism]\nname = "r2dp"\npoints = 9\nmetric = "{metric}"\n'
        for metric in ("l1", "l2", "entropy")
    },
    "neighbourhood, window": WINDOW,
    "neighbourhood, pairs": PAIRS,
}


@pytest.mark.parametrize("name", TEXTS)
def test_survey_compiles_travels_and_estimates_its_mean_without_bias(name):
    survey = Survey.parse(TEXTS[name])
    assert survey.channel.epsilon <= survey.epsilon
    assert survey.channel.epsilon == pytest.approx(survey.epsilon, rel=3e-6)
    assert Survey.from_canonical(survey.canonical) == survey
    shares = np.random.default_rng(4).dirichlet(np.ones(survey.channel.inputs))
    found = survey.estimator().expected_estimate(shares, survey.planned_devices)
    seen = ~np.isnan(found.values)
    np.testing.assert_allclose(found.values[seen], shares[seen], atol=1e-6)
    if survey.points is not None:
        truth = survey.points[:-1] @ shares[:-1] / shares[:-1].sum()
        assert found.mean == pytest.approx(truth, abs=1e-4)


def test_budget_recycling_is_the_boosted_law_of_an_absolute_region():
    survey = Survey.parse(TEXTS["brdp"])
    same = m.boosted(9, epsilon=survey.epsilon, region=m.Absolute(2.0), boost=0.4, missing="input")
    assert survey.channel == same


@pytest.mark.parametrize("name", LAWS)
def test_law_of_a_random_scale_is_the_one_described(name):
    survey = Survey.parse(TEXTS[f"r2dp, {name}"])
    assert survey.channel.design.kernel == GridKernel("r2dp", LAWS[name][1])
    assert survey.channel == m.r2dp(9, epsilon=survey.epsilon, law=LAWS[name][1], missing="input")


def test_window_is_one_of_values_whatever_the_order_of_inputs():
    text = WINDOW.replace('name = "none"\nvalues = [0]', 'name = "none"\nvalues = [0, 20]').replace(
        "range = [3, 20]", "range = [3, 19]"
    )
    survey = Survey.parse(text)
    for one in range(21):
        for other in range(21):
            x, y = int(survey.mapping[one]), int(survey.mapping[other])
            near = survey.channel.weight(y, y) / survey.channel.weight(x, y)
            wanted = 0.0 if one == other else 2.0 if abs(one - other) <= 2 else 3.0
            assert np.log(near) == pytest.approx(wanted, abs=1e-5)


def test_relative_region_is_counted_from_the_attributes_zero():
    text = (
        TEXTS["laplace, relative"].replace("low = 0.0", "low = -30.0").replace("high = 60.0", "high = 30.0")
    )
    survey = Survey.parse(text)
    region = survey.channel.design.region
    assert region == m.Relative(0.25, 1.0, 6.0)


def test_a_survey_of_auto_says_what_was_chosen_among_what_and_why():
    text = f'{NUMBER}[mechanism]\nname = "auto"\npoints = 9\n'
    survey = Survey.parse(text)
    choice = survey.choice
    assert choice.objective == "mean"
    assert choice.devices == survey.planned_devices
    assert {"boosted", "hybrid", "duchi", "grr", "unary"} <= {one.mechanism for one in choice.compared}
    assert all(choice.compared[0].cost <= 1.001 * one.cost for one in choice.compared)
    assert choice.why.startswith("least exact error for the objective mean with")
    ratio = choice.compared[1].cost / choice.compared[0].cost
    assert f"next is {choice.compared[1].label} at {ratio:.4g} times its cost" in choice.why
    keys = "".join(f"{key} = {value!r}\n" for key, value in choice.parameters.items())
    named = Survey.parse(f'{NUMBER}[mechanism]\nname = "{choice.mechanism}"\n{keys}')
    assert named.choice is None
    assert named.canonical == survey.canonical
    assert Survey.from_canonical(survey.canonical).choice is None


def test_numbers_without_points_get_a_default_grid_by_auto():
    survey = Survey.parse(f'{NUMBER}[mechanism]\nname = "auto"\n')
    assert survey.grid_points == 33
