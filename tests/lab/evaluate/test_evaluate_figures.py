"""Figures of an evaluation are those of an independent computation, and every fault is visible in its own.

Estimates are sums of thousands of bounded scores, hence taken as normal here. For s = sum of l_i (Z_i^2 - 1),
Laurent and Massart (2000) have P(s >= 2 |l|_2 sqrt(x) + 2 max(l) x) and P(s <= -2 |l|_2 sqrt(x)) at most
exp(-x); x is such that each is at most 5e-7. Other bounds are 6 standard errors, and 10 of a count.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hubbub.testing import seeded
from hubbub_lab.evaluate.count import SampledPopulation, count_round, spending
from hubbub_lab.evaluate.data import DataSet, DataSpec, data_set, drafted
from hubbub_lab.evaluate.faults import FaultMix
from hubbub_lab.evaluate.figures import RepeatedErrors
from hubbub_lab.evaluate.run import EvaluationPlan, MeasuredCase, evaluate
from hubbub_lab.evaluate.surveys import SurveyMaker, mechanism_name
from hubbub_lab.evaluation.tables import PLAIN

DEVICES, VALUES = 20_000, 6
X = math.log(2e6)


def plan(
    data: str = f"zipf:{VALUES}",
    *,
    mechanisms: tuple[str, ...] = ("grr",),
    epsilon: float = 3.0,
    faults: tuple[str, ...] = ("none",),
    categories: int | None = None,
    repeats: int = 4,
    devices: int = DEVICES,
) -> EvaluationPlan:
    spec = DataSpec.parse(data)
    maker = SurveyMaker.of_attribute(
        drafted(spec, categories, spelling=PLAIN, say=print), data, devices=devices
    )
    found = data_set(spec, maker.attributes, spelling=PLAIN, say=print)
    mixes = tuple(map(FaultMix.parse, faults))
    return EvaluationPlan(((found, maker, (devices,)),), mechanisms, (epsilon,), mixes, repeats, 20261123)


def measured(**asked: object) -> dict[str, MeasuredCase]:
    """Return the cases of a plan by their faults."""
    return {case.key.faults.label: case for case in evaluate(plan(**asked))}  # type: ignore[arg-type]


def test_figures_are_those_of_the_closed_form_and_of_counts_inverted_by_hand() -> None:
    asked = plan()
    ((data, maker, _),) = asked.questions
    survey = maker.survey("grr", 3.0)
    chance, source = np.random.default_rng(1), seeded(1)
    population = SampledPopulation.of(data, DEVICES, chance)
    truth = population.truth(survey)
    assert truth.values.tolist() == [*(population.counts / DEVICES), 0.0]
    errors, estimator = RepeatedErrors(survey, truth, truth), survey.estimator()
    inputs = VALUES + 1
    p, q = (weight / (math.exp(3.0) + inputs - 1) for weight in (math.exp(3.0), 1.0))
    off, hits, projected = [], 0, []
    for _ in range(3):
        counted = count_round(survey, population, FaultMix(), source=source, chance=chance)
        tally = counted.release.tally
        assert tally.n == DEVICES == counted.verdicts["attempts"] == counted.verdicts["accepted"]
        estimate = estimator(tally.counts, tally.n)
        errors.add(estimate)
        by_hand = (tally.counts / DEVICES - q) / (p - q)
        off.append((by_hand - truth.values)[:VALUES])
        whole = (tally.counts / DEVICES - q) / (p - q)
        # The nearest distribution: one shift for all, found by halving.
        low, high = -1.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(whole - middle, 0).sum() > 1 else (low, middle)
        projected.append((np.maximum(whole - low, 0) - truth.values)[:VALUES])
        spans = counted.release.document()["values"][:VALUES]  # as a server releases them
        hits += sum(
            span["low"] <= share <= span["high"] for span, share in zip(spans, truth.values[:-1], strict=True)
        )
    found = errors.figures(estimator)["value"]
    assert found.error == pytest.approx(math.sqrt(np.mean(np.square(off))), rel=1e-5)
    assert found.consistent == pytest.approx(math.sqrt(np.mean(np.square(projected))), rel=1e-5)
    assert found.as_json()["consistent"] == found.consistent
    rounds = np.mean(np.square(off), axis=1)  # d sqrt(x) = dx / (2 sqrt(x))
    assert found.error_se == pytest.approx(
        np.std(rounds, ddof=1) / math.sqrt(3) / (2 * found.error), rel=1e-5
    )
    shares = truth.values[:VALUES]
    variances = (shares * p * (1 - p) + (1 - shares) * q * (1 - q)) / (DEVICES * (p - q) ** 2)
    assert found.exact == pytest.approx(math.sqrt(variances.mean()), rel=1e-6)
    means = np.mean(off, axis=0)
    scaled = means / np.sqrt(variances / 3)
    assert found.bias == pytest.approx(math.sqrt(np.mean(scaled**2)), rel=1e-5)
    place = int(np.argmax(np.abs(scaled)))
    assert (found.shifted, found.shift) == (str(place), pytest.approx(means[place], rel=1e-4))
    assert (found.hits, found.intervals, found.cells) == (hits, 3 * VALUES, VALUES)
    alike = np.full(VALUES, 1 / VALUES)
    uniform = (alike * p * (1 - p) + (1 - alike) * q * (1 - q)) / (DEVICES * (p - q) ** 2)
    assert found.uniform == pytest.approx(math.sqrt(uniform.mean()), rel=1e-6)
    # At this epsilon randomised response is not optimal; the floor of docs/frontier.md lies below it.
    assert found.floor is not None and 0.5 * found.uniform < found.floor <= found.uniform


def spread(covariance: np.ndarray, repeats: int) -> tuple[float, float]:
    """Return how far a sum of squares of normal errors may be from its mean, below and above, as shares."""
    lambdas = np.tile(np.linalg.eigvalsh(covariance), repeats)
    norm, mean = float(np.linalg.norm(lambdas)), float(lambdas.sum())
    return 1 - 2 * norm * math.sqrt(X) / mean, 1 + 2 * (norm * math.sqrt(X) + float(lambdas.max()) * X) / mean


def test_without_faults_nothing_biases_and_errors_are_the_exact_ones() -> None:
    asked = plan(mechanisms=("subset",), repeats=20, devices=5_000)
    ((data, maker, _),) = asked.questions
    (case,) = evaluate(asked)
    found, survey = case.figures["value"], maker.survey("subset", 3.0)
    shares = np.append(data.weights / data.weights.sum(), 0.0)
    covariance = survey.estimator().expected_estimate(shares, 5_000).covariance()[:VALUES, :VALUES]
    low, high = spread(covariance, case.repeats)
    assert 0.2 < low < found.ratio**2 < high < 2.4
    scales = np.sqrt(covariance.diagonal())
    assert found.bias**2 < spread(covariance / np.outer(scales, scales), 1)[1] < 12
    assert case.figures["mean"].intervals == case.repeats
    # The filter rounds up in units of 2^-40.
    assert case.spent is not None
    assert 0.0 < case.spent.mean <= case.spent.most <= case.certified + 2**-38


def test_every_fault_is_visible_in_the_figure_that_it_biases() -> None:
    faults = (
        "none",
        "loss=0.3",
        "duplicates=0.2",
        "skew=0.25",
        "fakes=0.2",
        "drift=0.3",
        "loss=0.5+fakes=0.5",
    )
    cases = measured(faults=faults)
    assert set(cases) == set(faults)
    sound = cases["none"]
    reports = sound.repeats * DEVICES

    def off(case: MeasuredCase, expected: float) -> float:
        """Return how many standard errors the shift is from what it must be."""
        found = case.figures["value"]
        return abs(found.shift - expected) / (found.exact * 2 / math.sqrt(case.repeats))

    first = 1.0 / sum(1.0 / rank for rank in range(1, VALUES + 1))
    lost = cases["loss=0.3"]
    assert abs(lost.verdicts["attempts"] - 0.7 * reports) < 5 * math.sqrt(reports)
    assert lost.figures["value"].exact == pytest.approx(
        sound.figures["value"].exact / math.sqrt(0.7), rel=0.01
    )
    twice = cases["duplicates=0.2"]
    assert twice.verdicts["accepted"] == reports
    assert abs(twice.verdicts["duplicate"] - 0.2 * reports) < 5 * math.sqrt(reports)
    ahead = cases["skew=0.25"]
    assert ahead.verdicts["early"] + ahead.verdicts["accepted"] == reports == ahead.verdicts["attempts"]
    assert abs(ahead.verdicts["early"] - 0.25 * reports) < 5 * math.sqrt(reports)
    fakes = cases["fakes=0.2"]
    assert fakes.verdicts["accepted"] == reports + sound.repeats * DEVICES // 5
    assert fakes.figures["value"].shifted == "0" and off(fakes, (1 - first) / 6) < 6
    both = cases["loss=0.5+fakes=0.5"]
    assert both.figures["value"].shifted == "0" and off(both, (1 - first) / 2) < 6
    drifted = cases["drift=0.3"].figures["mean"]
    # Everybody who is not at the last value moves up by one with probability 0.3.
    last = 1.0 / VALUES * first
    assert drifted.shift == pytest.approx(-0.3 * (1 - last), abs=6 * drifted.exact)
    for name, quantity in (("fakes=0.2", "value"), ("drift=0.3", "mean"), ("loss=0.5+fakes=0.5", "value")):
        biased = cases[name].figures[quantity]  # type: ignore[index]
        assert biased.bias > 10 and biased.coverage < 0.9
    for name in ("none", "duplicates=0.2"):
        assert cases[name].figures["value"].bias < 4


def test_categories_have_the_errors_of_sums_of_their_values() -> None:
    asked = plan("uniform:4", mechanisms=("pbgrr",), categories=2, epsilon=1.0, repeats=1, devices=400)
    ((_, maker, _),) = asked.questions
    (case,) = evaluate(replace(asked, questions=((as_rows(asked), maker, (400,)),)))
    assert set(case.figures) == {"value", "category", "mean"} and case.figures["category"].cells == 2
    survey = maker.survey("pbgrr", 1.0)
    shares = np.array([0.25, 0.25, 0.25, 0.25, 0.0])
    covariance = survey.estimator().expected_estimate(shares, 400).covariance()
    sums = [covariance[:2, :2].sum(), covariance[2:4, 2:4].sum()]
    assert case.figures["category"].exact == pytest.approx(math.sqrt(np.mean(sums)), rel=1e-9)
    assert case.figures["value"].exact == pytest.approx(math.sqrt(np.trace(covariance[:4, :4]) / 4), rel=1e-9)
    assert mechanism_name("pb-grr") == "pbgrr" and mechanism_name("local-hashing") == "local_hashing"


def as_rows(asked: EvaluationPlan) -> DataSet:
    """Return a law's data set as that of a file of 400 rows, of which every value has as many."""
    ((data, *_),) = asked.questions
    return replace(data, weights=np.full(4, 100.0), rows=400)


def test_a_seed_repeats_every_figure() -> None:
    one, other = (measured(repeats=1, devices=500)["none"] for _ in range(2))
    assert one.figures == other.figures and one.spent == other.spent


def test_ledgers_of_randomised_response_lose_what_a_report_costs() -> None:
    """One answer of randomised response realises its whole epsilon, whatever it says."""
    asked = plan()
    ((data, maker, _),) = asked.questions
    survey = maker.survey("grr", 3.0)
    population = SampledPopulation.of(data, 50, np.random.default_rng(3))
    found = spending(survey, population, source=seeded(3))
    assert found is not None and found.devices == 50
    assert found.mean == pytest.approx(survey.channel.epsilon, abs=1e-9)


def test_the_error_of_a_measured_error_is_how_far_it_falls_from_the_exact_one() -> None:
    """Of 60 evaluations of 12 rounds the squares of (error - exact) / error_se are 1 on average.

    Of so many the average lies within .45 and 2.2 but for a part of 1e-6: a Student law of 11 degrees has
    variance 1.22 and kurtosis 3.9, so that the standard error is .27. An error twice as small fails.
    """
    squares = []
    for seed in range(60):
        ((case,),) = [list(evaluate(replace(plan(repeats=12, devices=500), seed=seed)))]
        found = case.figures["value"]
        assert found.error_se is not None
        squares.append(((found.error - found.exact) / found.error_se) ** 2)
    assert 0.45 < np.mean(squares) < 2.2 < 4.0 * np.mean(squares)


def test_one_round_has_no_error_of_its_measured_error() -> None:
    (case,) = evaluate(plan(repeats=1, devices=500))
    assert case.figures["value"].error_se is None
    assert case.figures["value"].as_json()["error_se"] is None
