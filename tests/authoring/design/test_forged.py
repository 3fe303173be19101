"""The risks of every mechanism: every report of small channels is forged, and guessed from, one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import surveys
from workloads import labels, numbers, symbols_of

from hubbub import Survey
from hubbub.errors import ParameterError, SurveyError
from hubbub.estimation import estimator_for
from hubbub_authoring.design import FORGED, answered, compare
from hubbub_deploy.cli import main

SHARE = 1e-6


WORKLOADS = {
    "labels": labels([3, 2, 2]),
    "labels with a coin": labels([2, 3], participation=0.5),
    "categories": labels([2, 2, 3], "category"),
    "mean": numbers(6, "mean"),
    "cumulative": numbers(6, "cdf"),
}


def moves(candidate, workload) -> float:
    """The farthest that a millionth of forged reports moves a cell, by the estimates themselves, times 10^6.

    Of n reports a share is all alike; the rest are what honest devices are expected to send. A tree's
    estimates are linear in such a share but for terms of its square.
    """
    channel, n = candidate.channel, 1e9
    by_category = channel.inputs < workload.inputs
    category_of = np.arange(channel.inputs) if by_category else workload.category_of
    prior = np.bincount(workload.category_of, weights=workload.prior) if by_category else workload.prior
    estimator = estimator_for(
        channel,
        category_of=category_of,
        points=None if by_category else workload.points,
        missing=channel.inputs - 1,
        rounding="none",
    )
    honest = n * channel.expected(prior)
    start, found = estimator._estimate(honest, n), 0.0
    for symbol in symbols_of(channel):
        column = symbol[None, :] if channel.width else symbol
        counts = (1.0 - SHARE) * honest + SHARE * n * channel.tally(column)
        after = estimator._estimate(counts, n)
        cells = after.values - start.values
        if np.isnan(cells).any():
            cells = after.categories - start.categories
        found = max(found, float(np.nanmax(np.abs(cells))) / SHARE)
    return found


def fractions_of(channel) -> list[list[Fraction]]:
    """P(y|x) of every report, from integers: a row per report with one entry per input."""
    if not channel.width:
        total = channel.total
        return [
            [Fraction(channel.weight(x, y), total) for x in range(channel.inputs)]
            for y in range(channel.bins)
        ]
    symbols = [symbol.tobytes() for symbol in symbols_of(channel)]
    return [[Fraction(float(p)) for p in np.exp(channel.log_likelihood(symbol))] for symbol in symbols]


@pytest.mark.parametrize("name", WORKLOADS)
def test_gain_and_guess_are_those_of_every_report_there_is(name):
    for candidate in compare(WORKLOADS[name]):
        if candidate.refusal:
            continue
        said, known = candidate.label, candidate.accuracy
        assert known.gain == pytest.approx(moves(candidate, WORKLOADS[name]), rel=2e-5), said
        table, inputs = fractions_of(candidate.channel), candidate.channel.inputs
        assert float(sum(sum(row) for row in table)) == pytest.approx(inputs, rel=1e-9), said
        average, worst = sum(map(max, table)) / inputs, max(max(row) / sum(row) for row in table)
        assert known.guess.average == pytest.approx(float(average), rel=1e-9), said
        assert known.guess.worst == pytest.approx(float(worst), rel=1e-9), said
        assert known.guess.blind == 1 / inputs


def test_every_mechanism_that_auto_compares_is_among_the_cases():
    every = {"labels": {"pbgrr", "levels", "orbits"}, "mean": {"boosted", "optimal", "duchi", "hybrid"}}
    every["cumulative"] = {"tree", "grr", "subset", "unary", "local_hashing", "square_wave", "piecewise"}
    for name, expected in every.items():
        assert expected <= {c.mechanism for c in compare(WORKLOADS[name]) if not c.refusal}


def test_leverage_of_a_tree_is_the_largest_over_all_its_values():
    """The first point of a tree is not the one that is moved farthest."""
    tree = next(c for c in compare(numbers(13, "cdf")) if c.mechanism == "tree")
    fitted, found = estimator_for(tree.channel).tree, 0.0
    for x in range(14):
        for level, h in zip(fitted.levels, fitted.coefficients(np.eye(14)[x]), strict=True):
            if level.share:
                q, gap = float(level.support.q), float(level.support.p - level.support.q)
                tops = [np.sort(way)[-level.support.size :].sum() - q * way.sum() for way in (h, -h)]
                found = max(found, max(tops) / gap / float(level.share))
    assert tree.accuracy.leverage == pytest.approx(found, rel=1e-9)


def test_a_limit_takes_the_best_mechanism_that_keeps_it():
    free = compare(labels([10, 10, 10]))
    order = {candidate.label: candidate.accuracy.gain for candidate in free}
    limit = 0.99 * free[0].accuracy.gain
    found = compare(labels([10, 10, 10], max_gain=limit))
    assert found[0].accuracy.gain <= limit
    assert found[0].cost == min(c.cost for c in free if c.accuracy and c.accuracy.gain <= limit)
    refused = {c.label for c in found if c.refusal.startswith("1 % of forged reports")}
    assert refused == {label for label, gain in order.items() if gain > limit}


def test_a_limit_that_nothing_keeps_names_the_least_there_is():
    asked = labels([10, 10, 10], max_gain=1.0)
    least = min((c for c in compare(replace(asked, max_gain=None))), key=lambda c: c.accuracy.gain)
    with pytest.raises(ParameterError, match=r"max_gain must be at least \S+ for this question") as raised:
        answered(asked, compare(asked))
    said = float(str(raised.value).split("at least ")[1].split()[0])
    assert least.label in str(raised.value)
    assert least.accuracy.gain <= said <= least.accuracy.gain * 1.001
    asked = replace(asked, max_gain=said)
    assert answered(asked, compare(asked))[0].mechanism == least.mechanism
    with pytest.raises(ParameterError, match=r"max_gain must be at least 1 and finite, got 0\.5"):
        labels([2, 2], max_gain=0.5)


AUTO = surveys.LABELS[: surveys.LABELS.index("[mechanism]")] + '[mechanism]\nname = "auto"\n'


def test_survey_key_constrains_auto_and_its_refusal_says_what_is_possible():
    free = Survey.parse(AUTO).choice
    with pytest.raises(SurveyError, match="max_gain must be at least"):
        Survey.parse(AUTO + "max_gain = 1.0\n")
    with pytest.raises(SurveyError, match=r"mechanism\.max_gain"):
        Survey.parse(AUTO + 'max_gain = "low"\n')
    assert Survey.parse(AUTO + "max_gain = 1000.0\n").choice.mechanism == free.mechanism


def test_design_prints_both_and_takes_a_limit(tmp_path, capsys):
    file = tmp_path / "visits.toml"
    file.write_text(surveys.VISITS)
    assert main(["survey", "design", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for one in (found, *found["alternatives"]):
        assert one["forged"]["share"] == FORGED
        assert one["forged"]["moves"] == pytest.approx(FORGED * one["forged"]["gain"])
        assert 0.0 < one["guess"]["blind"] < one["guess"]["average"] <= one["guess"]["worst"] < 1.0
    limit = 0.5 * found["forged"]["gain"]
    assert main(["survey", "design", str(file), "--max-gain", str(limit)]) == 0
    printed = capsys.readouterr().out
    assert "over its limit (1 % of forged reports must move a share by at most" in printed
    assert "If 1 % of the reports are forged, they move" in printed
    assert "guesses its" in printed
    assert "1 % moves  guess" in printed
