"""What a design promises is what the closed forms say, and the comparison picks the least of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib import import_module
from itertools import pairwise, product

import numpy as np
import pytest
import surveys

from hubbub import Survey
from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator, estimator_for
from hubbub_authoring import mechanisms as m
from hubbub_authoring.design import (
    Objective,
    Workload,
    accuracy,
    boost_curve,
    choose,
    compare,
    expected_error,
)
from hubbub_deploy.cli import main
from hubbub_deploy.commands.survey.design import SurveyDesign

DEVICES = 10_000


def asked(sizes, epsilon=2.0, objective="value", prior=None, points=None):
    """A question about labels in categories of these sizes, missing added."""
    category_of = np.repeat(np.arange(len(sizes) + 1), [*sizes, 1])
    if prior is None:
        prior = np.append(np.full(sum(sizes), 1 / sum(sizes)), 0.0)
    return Workload(
        kind="labels",
        epsilon=epsilon,
        category_of=category_of,
        devices=DEVICES,
        prior=prior,
        points=points,
        objective=Objective(objective),
    )


def brute_force(channel, question):
    """Standard errors from B [diag(pi) - sum_x F_x m_x m_x^T] B^T with the pseudo-inverse: no shared code."""
    rows = channel.weights() / channel.total
    shares = question.prior
    pi = shares @ rows
    mean_row = rows.mean(axis=0)
    root = np.sqrt(mean_row)
    b = np.linalg.pinv((rows / root).T, rcond=1e-12) / root
    inner = np.diag(pi) - (rows.T * shares) @ rows
    covariance = b @ inner @ b.T / question.devices
    indicator = np.eye(len(question.sizes))[question.category_of].T
    values = np.sqrt(np.diag(covariance)[:-1])
    categories = np.sqrt(np.diag(indicator @ covariance @ indicator.T)[:-1])
    return covariance, math.sqrt(np.mean(values**2)), math.sqrt(np.mean(categories**2)), b


CHANNELS = {
    "grr": lambda sizes: m.grr(sum(sizes), epsilon=2.0),
    "pbgrr": lambda sizes: m.pbgrr(sizes, epsilon=2.0, boost_epsilon=1.2),
    "dense": lambda sizes: m.boosted(sum(sizes) - 1, epsilon=2.0, kernel="uniform", missing="input"),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_errors_are_those_of_the_whole_covariance(name):
    sizes = [4, 2, 5, 1]
    points = np.append(np.arange(12.0), np.nan)
    prior = np.append(np.random.default_rng(1).dirichlet(np.ones(12)), 0.0)
    question = asked(sizes, objective="cdf", prior=prior, points=points)
    channel = CHANNELS[name]([*sizes, 1])
    known, weighed = expected_error(channel, question), accuracy(channel, question)
    assert weighed.errors == known
    covariance, value, category, b = brute_force(channel, question)
    assert known.value == pytest.approx(value, rel=1e-6)
    assert known.category == pytest.approx(category, rel=1e-6)
    assert weighed.leverage == pytest.approx(np.abs(b).max(), rel=1e-6)
    sums = np.tril(np.ones((13, 13)))[:11]
    assert known.cdf == pytest.approx(math.sqrt(np.mean(np.diag(sums @ covariance @ sums.T))), rel=1e-6)
    centred = np.append(points[:-1] - prior[:-1] @ points[:-1], 0.0)
    assert known.mean == pytest.approx(math.sqrt(centred @ covariance @ centred), rel=1e-6)


def test_value_error_of_grr_is_the_textbook_formula():
    """Var n F_x over the randomisation: [F p(1-p) + (1-F) q(1-q)] / (p - q)^2."""
    question = asked([10], epsilon=1.0)
    e, k = math.e, 11
    p, q = e / (e + k - 1), 1 / (e + k - 1)
    variance = (0.1 * p * (1 - p) + 0.9 * q * (1 - q)) / (p - q) ** 2 / DEVICES
    found = expected_error(m.grr(11, epsilon=1.0), question).value
    assert found == pytest.approx(math.sqrt(variance), rel=1e-5)


@pytest.mark.statistical
def test_foreseen_errors_are_those_of_simulated_crowds():
    """400 crowds of 2,000 devices by PB-GRR on 7 inputs, seed 6.

    The sum of squared deviations of a cell over its foreseen variance is close to a chi-square with 400
    degrees of freedom (the estimate is a sum of 2,000 bounded terms): its ratio to 400 has a standard
    deviation of 0.071. A bound of 0.42 is 5.9 of them; for 7 cells a false alarm has probability below 3e-8.
    Control: variances 1.6 times as large, about what 25 % more epsilon would bring, are rejected.
    """
    sizes, n = [2, 4], 2000
    channel = m.pbgrr([*sizes, 1], epsilon=1.5, boost_epsilon=1.0)
    rng = np.random.default_rng(6)
    shares = np.array([0.4, 0.1, 0.2, 0.1, 0.1, 0.05, 0.05])
    foreseen = InverseEstimator(channel).expected_estimate(shares, n)
    rows = channel.weights() / channel.total
    held = np.rint(shares * n).astype(int)
    estimator = InverseEstimator(channel)
    squares = np.zeros(7)
    for _ in range(400):
        counts = sum(rng.multinomial(h, row / row.sum()) for h, row in zip(held, rows, strict=True))
        squares += (estimator(counts, n).values - shares) ** 2
    ratio = squares / 400 / foreseen.value_errors**2
    assert np.abs(ratio - 1).max() < 0.42
    assert np.abs(1.6 * ratio - 1).max() > 0.42


def test_foreseen_shares_are_the_given_ones():
    shares = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(
        InverseEstimator(m.grr(3, epsilon=1.0)).expected_estimate(shares, 10).values, shares
    )


@pytest.mark.parametrize(
    ("shares", "n"), [([0.5, 0.5], 10), ([0.5, 0.3, 0.3], 10), ([1.2, -0.2, 0.0], 10), ([0.5, 0.5, 0.0], 0)]
)
def test_shares_that_are_no_crowd_are_refused(shares, n):
    with pytest.raises(ParameterError):
        InverseEstimator(m.grr(3, epsilon=1.0)).expected_estimate(np.array(shares), n)


@pytest.mark.parametrize("objective", ["value", "category", "both", "cdf", "mean"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_no_listed_mechanism_and_no_boost_beats_the_chosen_one(objective, epsilon):
    points = np.append(np.arange(30.0), np.nan)
    question = asked([10, 10, 10], epsilon, objective, points=points)
    found = compare(question)
    curve = boost_curve(question, np.linspace(0.02 * epsilon, epsilon, 40).tolist())
    assert found[0].cost <= 1.001 * min(other.cost for other in [*found, *curve])
    assert found[0].channel.epsilon <= epsilon


def test_what_is_chosen_is_the_first_compared():
    question = asked([10, 10, 10], objective="both")
    assert choose(question).label == compare(question)[0].label


SETS = {
    "subset": lambda: m.subset_selection(5, epsilon=0.5),
    "unary": lambda: m.unary(5, epsilon=0.5),
    "levels of sets": lambda: m.levels([2, 2, 1], epsilon=0.5, shares=[0.4, 0.6]),
    "levels of numbers": lambda: m.levels([2, 2, 1], epsilon=1.5, shares=[0.3, 0.7], oracles="grr"),
}


@pytest.mark.parametrize("name", SETS)
def test_leverage_of_a_set_is_what_the_worst_of_all_sets_adds(name):
    """Every set that can be sent, as one report about its level, through the estimator's own sums."""
    channel = SETS[name]()
    question = asked([2, 2] if "levels" in name else [4])
    tree = estimator_for(channel, category_of=question.category_of).tree
    worst = 0.0
    for k, level in enumerate(tree.levels):
        if level.share == 0:
            continue
        p, q = level.support.p, level.support.q
        for bits in product([0, 1], repeat=level.bins):
            if name != "unary" and sum(bits) != round(p + (level.bins - 1) * q):
                continue
            direct = [np.zeros(other.bins) for other in tree.levels]
            direct[k] = np.array([float((bit - q) / (p - q) / level.share) for bit in bits])
            worst = max(worst, np.abs(tree.join(direct)[-1]).max())
    assert accuracy(channel, question).leverage == pytest.approx(worst, rel=1e-9)


def test_large_reports_are_listed_with_a_reason_and_not_measured():
    found = {candidate.label: candidate for candidate in compare(asked([20_000]))}
    assert found["unary (variant optimised)"].refusal == "a report must have at most 1024 bytes, got 2540"
    assert math.isinf(found["unary (variant optimised)"].cost)
    assert found["grr"].refusal == ""


def test_very_many_values_are_hashed_in_a_report_of_a_few_bytes():
    """At K = 20,000 a set takes 2,500 bytes, and randomised response has over a thousand times the error."""
    asked = Workload.uniform(
        kind="labels",
        epsilon=1.0,
        category_of=np.append(np.zeros(20_000, dtype=np.intp), 1),
        devices=10**6,
        points=None,
        objective=Objective("value"),
    )
    first, second = compare(asked)[:2]
    assert (first.mechanism, first.parameters) == ("local_hashing", {"buckets": 4})
    assert first.accuracy.bytes_per_report <= 42
    assert second.mechanism == "grr"
    assert second.cost > 1000 * first.cost


def test_hashing_of_very_many_categories_is_left_out_with_a_word_and_not_measured(monkeypatch):
    """Every category is summed over every cell: 1,000 of 131,000 values did not end in 300 s."""
    many = asked([7] * 40, epsilon=1.0)
    cells = 40 * m.local_hashing(281, epsilon=1.0).outputs
    module = import_module("hubbub_authoring.mechanisms.oracles")
    monkeypatch.setattr(module, "MAX_COMPARED", cells)
    hashed = [candidate for candidate in compare(many) if candidate.mechanism == "local_hashing"]
    assert [candidate.refusal for candidate in hashed] == ["", ""]
    monkeypatch.setattr(module, "MAX_COMPARED", cells - 1)
    measured, left_out = [c for c in compare(many) if c.mechanism == "local_hashing"]
    assert (measured.parameters["reading"], measured.refusal) == ("category", "")
    assert left_out.refusal == (
        f"local hashing must have at most {cells - 1} cells of categories to be compared, got {cells}"
    )
    assert (left_out.channel, left_out.cost) == (None, math.inf)


def test_very_many_categories_are_hashed_where_a_set_of_them_does_not_fit_a_report(monkeypatch):
    """The limit of a report is set to what a hash takes, so that few categories stand for very many."""
    many = asked([2] * 60, epsilon=0.5, objective="category")
    hashed = {
        candidate.mechanism: candidate for candidate in compare(many) if "reading" in candidate.parameters
    }
    assert not hashed["local_hashing"].refusal
    size = hashed["local_hashing"].accuracy.bytes_per_report
    assert size < hashed["subset"].accuracy.bytes_per_report
    monkeypatch.setattr("hubbub_authoring.design.comparison.MAX_REPORT_BYTES", size)
    first = choose(many)
    assert (first.mechanism, first.parameters["reading"]) == ("local_hashing", "category")
    assert math.isinf(first.accuracy.errors.value)
    assert first.cost == pytest.approx(hashed["local_hashing"].cost, rel=1e-12)


def test_numbers_are_compared_with_what_knows_no_order_of_them():
    asked = Workload.uniform(
        kind="grid",
        epsilon=1.0,
        category_of=np.append(np.zeros(9, dtype=np.intp), 1),
        devices=1000,
        points=np.append(np.linspace(0.0, 1.0, 9), np.nan),
        objective=Objective("value"),
    )
    listed = {candidate.mechanism: candidate for candidate in compare(asked)}
    for name in ("subset", "unary", "local_hashing"):
        assert np.isfinite(listed[name].cost)
        assert listed[name].parameters["points"] == 9
        assert listed["boosted"].accuracy.errors.mean < listed[name].accuracy.errors.mean


def test_category_is_best_known_when_the_value_is_hidden():
    chosen = choose(asked([10, 10], objective="category"))
    assert chosen.label == "orbits (reading category, category_weight 0)"
    assert math.isinf(chosen.accuracy.errors.value)
    assert chosen.accuracy.leverage < 2


def test_labels_without_categories_are_asked_by_randomised_response():
    listed = [c for c in compare(asked([4])) if c.mechanism != "orbits"]
    assert listed[0].label == "grr"
    # Orbits put the missing input into sets with values: a twentieth less variance.
    assert 0.9 < choose(asked([4])).cost / listed[0].cost < 0.97


def test_total_weighs_every_one_of_many_values():
    question = asked([10] * 9, epsilon=5.0)
    known = expected_error(m.pbgrr([*[10] * 9, 1], epsilon=5.0, boost_epsilon=3.0), question)
    means = known.cost(replace(question, objective=Objective("both", 0.25)))
    totals = known.cost(replace(question, objective=Objective("both", 0.25, "totals")))
    assert means == pytest.approx(0.75 * known.value**2 + 0.25 * known.category**2)
    assert totals == pytest.approx(0.75 * 90 * known.value**2 + 0.25 * 9 * known.category**2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quantity": "median"}, "objective must be one of value, category"),
        ({"quantity": "both", "category_weight": 1.0}, r"category_weight must be within \(0, 1\), got 1.0"),
        ({"quantity": "both", "of": "sums"}, "means or totals"),
    ],
)
def test_wrong_objectives_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        Objective(**arguments)


def test_mean_of_labels_is_refused():
    with pytest.raises(ParameterError, match="objective mean must be asked of numbers"):
        asked([4], objective="mean")


@pytest.mark.parametrize("name", surveys.ALL)
def test_design_prints_what_a_program_needs(name, tmp_path, capsys):
    file = tmp_path / "survey.toml"
    file.write_text(surveys.ALL[name])
    assert main(["survey", "design", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    survey = Survey.load(file)
    assert found["epsilon"] == survey.channel.epsilon <= found["declared_epsilon"] == survey.epsilon
    assert (found["inputs"], found["outputs"]) == (survey.channel.inputs, survey.channel.outputs)
    assert found["bytes_per_report"] == 37
    assert found["leverage"] > 1
    assert set(found["standard_error"]) == {"value", "category", "mean"}
    foreseen = survey.estimator().expected_estimate(Workload.of_survey(survey).prior, survey.planned_devices)
    assert found["standard_error"]["value"] == pytest.approx(
        math.sqrt(np.mean(foreseen.value_errors[:-1] ** 2))
    )
    for other in found["alternatives"]:
        assert {"mechanism", "epsilon", "standard_error", "leverage", "bytes_per_report"} <= set(other)
    # Best first, but for ties of less than 0.1 %; null: cannot be answered.
    costs = [math.inf if other["cost"] is None else other["cost"] for other in found["alternatives"]]
    assert all(one <= other * 1.001 for one, other in pairwise(costs))


def test_survey_read_by_category_is_compared_with_asking_for_values(tmp_path):
    file = tmp_path / "survey.toml"
    old = 'name = "pbgrr"\nboost_epsilon = 2.0'
    file.write_text(surveys.VISITS.replace(old, 'name = "grr"\nreading = "category"'))
    design = SurveyDesign.of(Survey.load(file), file.read_text(), None)
    assert design.workload.inputs == 22
    assert math.isinf(design.own.accuracy.errors.value)
    assert design.own.channel == design.survey.channel
    assert "a category's share is known to" in design.sentence()
    assert "cannot be answered as it stands" in design.advice()
    said = {other["mechanism"]: other["why"] for other in design.as_json()["alternatives"]}
    assert design.why(design.own).startswith("does not answer the objective")
    assert sum(why.startswith("fits: the least cost") for why in said.values()) >= 1
    assert any(why.startswith("fits: 1.") and "times the least cost" in why for why in said.values())
    advice = SurveyDesign.of(design.survey, file.read_text(), "category").advice()
    assert advice.startswith("optimal (reading category) would do better")


AUTO = surveys.VISITS.replace('name = "pbgrr"\nboost_epsilon = 2.0', 'name = "auto"')
AUTO_NUMBER = surveys.DISEASES.split("[mechanism]")[0] + '[mechanism]\nname = "auto"\n'


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (AUTO, ""),
        (AUTO, 'objective = "category"'),
        (AUTO, 'objective = "both"\ncategory_weight = 0.9\nof = "totals"'),
        (AUTO, 'objective = "mean"'),
        (AUTO, 'objective = "value"\nparticipation = 0.5'),
        (AUTO_NUMBER, "points = 17"),
        (AUTO_NUMBER, 'objective = "cdf"\npoints = 9'),
        (AUTO_NUMBER, 'objective = "shape"\npoints = 9'),
        (AUTO_NUMBER, 'objective = "hit"\nwithin = 6.0\npoints = 17'),
        (surveys.LABELS.replace('"grr"', '"auto"'), ""),
    ],
)
def test_auto_compiles_to_the_best_and_can_be_written_down(text, keys, tmp_path, capsys):
    file, out = tmp_path / "auto.toml", tmp_path / "fixed.toml"
    file.write_text(text.replace('name = "auto"', f'name = "auto"\n{keys}'))
    assert main(["survey", "design", str(file), "--write", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    survey = Survey.load(file)
    assert Survey.load(out).canonical == survey.canonical
    assert "# Chosen by exact variance for" in out.read_text()
    assert found["mechanism"] != "auto"
    assert found["epsilon"] == survey.channel.epsilon
    assert all(
        other["cost"] is None or found["cost"] <= 1.001 * other["cost"] for other in found["alternatives"]
    )
    assert found["advice"].startswith("No other mechanism")


def test_objective_asked_for_later_judges_what_auto_once_chose(tmp_path):
    file = tmp_path / "auto.toml"
    file.write_text(AUTO.replace('"auto"', '"auto"\nobjective = "value"'))
    design = SurveyDesign.of(Survey.load(file), file.read_text(), "category")
    assert design.own.channel == design.survey.channel
    assert design.own.mechanism == "orbits"
    assert "would do better" in design.advice()


def test_sentence_says_what_the_survey_buys(tmp_path, capsys):
    file = tmp_path / "survey.toml"
    file.write_text(surveys.VISITS)
    assert main(["survey", "design", str(file)]) == 0
    said = capsys.readouterr().out
    known = SurveyDesign.of(Survey.load(file), file.read_text(), None).own.accuracy.errors
    half = 1.96 * 100 * known.category
    assert f"With 20,000 devices, a category's share is known to ±{half:.2g} points" in said


@pytest.mark.parametrize(("name", "start"), [("d.png", b"\x89PNG"), ("d.html", b"<!doctype html>")])
def test_trade_offs_are_drawn(name, start, tmp_path, capsys):
    file = tmp_path / "survey.toml"
    file.write_text(surveys.VISITS)
    assert main(["survey", "design", str(file), "--plot", str(tmp_path / name)]) == 0
    drawn = (tmp_path / name).read_bytes()
    assert drawn.startswith(start)
    assert len(drawn) > 10_000


def test_what_cannot_be_designed_is_refused_in_one_line(tmp_path, capsys):
    file = tmp_path / "survey.toml"
    file.write_text(surveys.LABELS)
    for arguments in (["--objective", "mean"], ["--plot", str(tmp_path / "x.gif")]):
        assert main(["survey", "design", str(file), *arguments]) == 1
        assert capsys.readouterr().err.count("\n") == 1
