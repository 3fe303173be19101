"""Shuffled reports: brute force over all inputs of the others, laws from all rows, a formula that fails."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
import surveys
from workloads import labels, numbers, table_of

from hubbub import Survey
from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms import grr, subset_selection
from hubbub.shuffling.blanket import blanket_laws
from hubbub.shuffling.epsilon import chernoff_delta, epsilon_after_shuffling, shuffled_delta
from hubbub_authoring.design import compare
from hubbub_authoring.mechanisms import pbgrr
from hubbub_deploy.cli import main


def multisets(rows) -> dict[tuple[int, ...], object]:
    """The law of how often each report comes, one report from each row."""
    law = {(0,) * len(rows[0]): 1}
    for row in rows:
        after: dict[tuple[int, ...], object] = {}
        for counts, mass in law.items():
            for y, p in enumerate(row):
                more = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                after[more] = after.get(more, 0) + mass * p
        law = after
    return law


def hockey_stick(one, other, factor):
    """The largest excess of one law's events over `factor` times the other's."""
    return sum(max(mass - factor * other.get(counts, 0), 0) for counts, mass in one.items())


def worst_delta(table, n: int, epsilon: float) -> float:
    """The delta of n shuffled reports over all ordered pairs and all inputs of the others."""
    worst, inputs = 0.0, range(len(table))
    for others in combinations_with_replacement(inputs, n - 1):
        laws = [multisets([table[x], *(table[z] for z in others)]) for x in inputs]
        for x, other in permutations(inputs, 2):
            worst = max(worst, float(hockey_stick(laws[x], laws[other], math.exp(epsilon))))
    return worst


SMALL = {
    "grr": (grr(3, epsilon=math.log(3.0)), (2, 3, 4, 5)),
    "subset selection": (subset_selection(4, epsilon=1.0, size=2), (2, 3)),
    "pbgrr": (pbgrr([2, 1], epsilon=1.5, boost_epsilon=0.8), (2, 4)),
    "table": (DenseChannel(np.array([[5, 3, 2, 2], [2, 6, 3, 1], [4, 2, 2, 4]])), (2, 3)),
}


@pytest.mark.parametrize("name", SMALL)
def test_bound_is_never_below_the_worst_of_all_inputs_of_the_others(name):
    channel, sizes = SMALL[name]
    table, laws = table_of(channel).tolist(), blanket_laws(channel)
    for n in sizes:
        for epsilon in (0.02, 0.2, 0.5 * channel.epsilon, 0.9 * channel.epsilon):
            true = worst_delta(table, n, epsilon)
            bound = max(shuffled_delta(law, n, epsilon) for law in laws)
            assert bound >= true
            assert max(chernoff_delta(law, n, epsilon) for law in laws) >= true
        delta = max(1e-3, worst_delta(table, n, 0.3))
        found = epsilon_after_shuffling(channel, n, delta)
        assert found <= channel.epsilon
        assert worst_delta(table, n, found) <= delta


def test_bound_is_near_the_truth_where_all_others_hold_a_third_value():
    """GRR over 91 values, 10,000 reports: delta is a sum over two counts; the bound is 0.7 % above it."""
    channel, n, epsilon = grr(91, epsilon=1.0), 10_000, 0.00756
    p, q = channel.t / channel.total, channel.u / channel.total
    law = np.zeros((260, 260))  # nobody else's report is one of the two more often, but for e^-90
    counts = np.arange(260)
    log_factorial = np.array([math.lgamma(c + 1.0) for c in range(n)])
    rest = n - 1 - counts[:, None] - counts
    logs = log_factorial[n - 1] - log_factorial[counts][:, None] - log_factorial[counts] - log_factorial[rest]
    law = np.exp(logs + (counts[:, None] + counts) * math.log(q) + rest * math.log(1.0 - 2.0 * q))
    assert law.sum() == pytest.approx(1.0, abs=1e-9)

    def with_own(one: float, other: float) -> np.ndarray:
        found = law * (1.0 - one - other)
        found[1:] += law[:-1] * one
        found[:, 1:] += law[:, :-1] * other
        return found

    true = np.maximum(with_own(p, q) - math.exp(epsilon) * with_own(q, p), 0.0).sum()
    bound = max(shuffled_delta(one, n, epsilon) for one in blanket_laws(channel))
    assert true <= bound <= 1.02 * true
    assert epsilon_after_shuffling(channel, n, true) == pytest.approx(epsilon, rel=0.005)


def test_variation_ratio_with_a_third_outcome_is_below_the_truth():
    """The control: others who hold 0, 2, 2 make delta 33/625, and the pair of that formula has 27/625."""
    a = 3
    rows = [[Fraction(a if x == y else 1, a + 2) for y in range(3)] for x in range(3)]
    others = [rows[0], rows[2], rows[2]]
    true = hockey_stick(multisets([rows[0], *others]), multisets([rows[1], *others]), 2)
    assert true == Fraction(33, 625)
    high, low = Fraction(3, 5), Fraction(1, 5)
    rest = [[low, low, 1 - 2 * low]] * 3
    pair = [multisets([[*own, 1 - sum(own)], *rest]) for own in ((high, low), (low, high))]
    claimed = hockey_stick(*pair, 2)
    assert claimed == Fraction(27, 625) < true
    assert shuffled_delta(blanket_laws(grr(3, epsilon=math.log(3.0)))[0], 4, math.log(2.0)) >= float(true)


def key(masses, own, other) -> Counter[tuple[float, float]]:
    """A law as masses by place, rounded to what 2^-30 tells apart."""
    found: Counter[tuple[float, float]] = Counter()
    for mass, one, two in zip(masses, own, other, strict=True):
        found[round(math.log(one), 6), round(math.log(two), 6)] += mass
    return found


@pytest.mark.parametrize(
    "workload",
    [labels([3, 2, 2]), labels([2, 3], participation=0.5), labels([2, 2, 3], "category"), numbers(6, "cdf")],
    ids=["labels", "labels with a coin", "categories", "numbers"],
)
def test_law_of_every_mechanism_is_that_of_all_pairs_of_its_rows(workload):
    for candidate in compare(workload):
        if candidate.refusal:
            continue
        table = table_of(candidate.channel)
        omega = table.min(axis=0)
        kept = omega > 0
        ratios = table[:, kept] / omega[kept]
        by_rows = [
            key(omega[kept], ratios[x], ratios[other]) for x, other in permutations(range(len(table)), 2)
        ]
        for law in (laws := [key(one.masses, one.own, one.other) for one in blanket_laws(candidate.channel)]):
            assert any(near(law, truth) for truth in by_rows), candidate.label
        for truth in by_rows:
            assert any(near(law, truth) for law in laws), candidate.label


def near(one: Counter[tuple[float, float]], other: Counter[tuple[float, float]]) -> bool:
    """Return True if two laws are one, but for rounding."""
    places = np.array([place for place, mass in one.items() if mass > 1e-9])
    if len(places) != sum(mass > 1e-9 for mass in other.values()):
        return False
    found = np.array([place for place, mass in other.items() if mass > 1e-9])
    for place in places:
        at = np.abs(found - place).max(axis=1).argmin()
        if np.abs(found[at] - place).max() > 1e-5:
            return False
        if abs(one[tuple(place)] - other[tuple(found[at])]) > 1e-7:
            return False
    return True


def test_epsilon_falls_with_reports_and_is_never_above_the_channel_s():
    channel = subset_selection(91, epsilon=2.0)
    found = [epsilon_after_shuffling(channel, n, 1e-6) for n in (2, 100, 1000, 10_000, 1_000_000)]
    assert found[0] == channel.epsilon
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.01
    assert epsilon_after_shuffling(channel, 1000, 1e-9) > found[2]


@pytest.mark.parametrize(("n", "delta", "rule"), [(1, 1e-6, "n must"), (9, 0.0, "delta"), (9, 1.0, "delta")])
def test_bad_arguments_are_refused_by_rule(n, delta, rule):
    with pytest.raises(ParameterError, match=rule):
        epsilon_after_shuffling(grr(3, epsilon=1.0), n, delta)


def test_designer_says_it_with_its_assumption(tmp_path, capsys):
    file = tmp_path / "visits.toml"
    file.write_text(surveys.VISITS)
    words = ["survey", "design", str(file), "--shuffled", "5000", "--delta", "1e-7"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    channel = Survey.load(file).channel
    own = found["shuffled"]
    assert own["epsilon"] == epsilon_after_shuffling(channel, 5000, 1e-7)
    assert all(0.0 < other["shuffled"]["epsilon"] < 3.0 for other in found["alternatives"])
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert (
        "with delta 1e-07, for readers who see how often each report came among 5,000 honest ones" in printed
    )
    assert "not for the collector" in printed
    assert main([*words[:-1], "2"]) == 1
    assert "--delta must lie strictly between 0 and 1, got 2" in capsys.readouterr().err
    assert main([*words[:3], "--json"]) == 0
    assert "shuffled" not in json.loads(capsys.readouterr().out)
