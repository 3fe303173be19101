"""Intervals of everybody who could have been asked: their law, coverage and edges, for every mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from hubbub.errors import ParameterError
from hubbub.estimation import estimator_for
from hubbub.estimation.intervals.crowd import CrowdLaw, crowd_laws
from hubbub.estimation.intervals.laws import MixedLaw, ScoreLaws
from hubbub.estimation.intervals.skew_score import score_interval
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import grr, levels, pbgrr, subset_selection, unary

SHARES = np.array([0.5, 0.3, 0.2])
MADE = {
    "grr": grr(3, epsilon=3.0),
    "grr, 6": grr(3, epsilon=6.0),
    "subset": subset_selection(3, epsilon=3.0),
    "unary": unary(3, epsilon=3.0),
    "pbgrr": pbgrr([2, 1], epsilon=3.0, boost_epsilon=2.0),
    "levels": levels([2, 1], epsilon=3.0),
}
CASES = [
    *(("grr", 1600), ("grr, 6", None), ("subset", None), ("unary", 1600), ("pbgrr", None)),
    *(("levels", None), ("levels", 1600)),
]
ROUNDS, N = 200, 800


@dataclass
class Covered:
    """Cell-rounds in which an interval held the crowd's share."""

    crowd: int = 0
    devices: int = 0
    total: int = 0


def covered(channel, *, asked=None, numbers=None):
    """Count over honest rounds of N devices, a random part of `asked`, or of an endless crowd."""
    estimator = estimator_for(channel) if numbers is None else estimator_for(channel, points=numbers)
    chance, source, found = np.random.default_rng(3), seeded(4), Covered()
    for _ in range(ROUNDS):
        if asked is None:
            held = chance.multinomial(N, SHARES)
        else:
            held = chance.multivariate_hypergeometric(np.round(asked * SHARES).astype(int), N)
        reports = channel.perturb(np.repeat(np.arange(3), held), source=source)
        estimate = estimator(channel.tally(reports), N)
        of_crowd = estimate.of_crowd(asked=asked)
        if numbers is None:
            for name, each in (("crowd", of_crowd), ("devices", estimate)):
                low, high = score_interval(each.values, each.laws.values, n=N, z=1.959964)
                setattr(found, name, getattr(found, name) + int(((low <= SHARES) & (high >= SHARES)).sum()))
            found.total += 3
        else:
            mean = float(SHARES @ numbers)
            for name, each in (("crowd", of_crowd), ("devices", estimate)):
                low, high = each.laws.mean.interval(1.959964)
                setattr(found, name, getattr(found, name) + (low <= mean <= high))
            found.total += 1
    return found


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "asked"), CASES)
def test_intervals_of_the_crowd_hold_its_share(name, asked):
    """200 rounds of 800 devices, three cells each: covered .94 of cell-rounds, but for their own scatter.

    The cells of a round are correlated, so the count is taken as if rounds alone were independent: fewer than
    binomial(200, .94) at 1e-7 of rounds' worth of cells would be seen with that probability, in each of seven
    cases; `make evidence NAME=crowd-coverage` has 5,000 rounds of more. The control is the interval of the
    devices counted, at large epsilon: under .6 of the cells.
    """
    found = covered(MADE[name], asked=asked)
    assert found.crowd / found.total >= binom.ppf(1e-7, ROUNDS, 0.94) / ROUNDS
    if name == "grr, 6":
        assert found.devices / found.total < 0.6


@pytest.mark.statistical
def test_a_mean_of_the_crowd_is_held_too():
    """The mean of -1, 0 and 4 in 200 rounds at epsilon 6: as above; that of the devices counted is not."""
    found = covered(MADE["grr, 6"], numbers=np.array([-1.0, 0.0, 4.0]))
    assert found.crowd >= binom.ppf(1e-7, ROUNDS, 0.94)
    assert found.devices < binom.ppf(1e-7, ROUNDS, 0.94)


@pytest.mark.parametrize("f", [0.01, 0.3, 0.5, 0.97])
def test_moments_are_those_of_the_whole_law(f):
    """Of a cell of GRR: the binomial of reports of an endless crowd, and the mixture over a finite one."""
    n, channel = 40, MADE["grr"]
    p, q = channel.probabilities()[0, :2]
    law = MixedLaw.of_two_values(n, np.array([(1 - q) / (p - q)]), np.array([-q / (p - q)]))
    share, gap = np.array([f]), p - q
    r = q + f * gap
    _, variance, skew = binom.stats(n, r, moments="mvs")
    found = [float(each[0]) for each in CrowdLaw(law, n, 1.0).moments(share)]
    assert found == pytest.approx([variance / gap**2, skew * variance**1.5 / gap**3])
    people = 1000
    counts = np.arange(n + 1)
    chances = np.zeros(n + 1)
    for inside in range(n + 1):
        odds = hypergeom.pmf(inside, people, round(people * f), n)
        both = np.convolve(
            binom.pmf(counts[: inside + 1], inside, p), binom.pmf(counts[: n - inside + 1], n - inside, q)
        )
        chances += odds * both
    off = (counts - counts @ chances) / gap
    found = [float(each[0]) for each in CrowdLaw(law, n, 1.0 - n / people).moments(share)]
    exact = [float(chances @ off**power) for power in (2, 3)]
    assert found[0] == pytest.approx(exact[0], rel=2e-3)  # N - 1 is read as N
    assert found[1] == pytest.approx(exact[1], rel=1e-2, abs=2e-3 * exact[0] ** 1.5)
    kinds = CrowdLaw(law, n, 0.5).kinds(share)
    assert [float(each.sum()) for each in kinds] == pytest.approx(
        [float(each[0]) for each in CrowdLaw(law, n, 0.5).moments(share)]
    )


@pytest.mark.parametrize("name", MADE)
def test_where_all_who_were_asked_answered_both_are_about_the_same_devices(name):
    """With asked = n nothing is left to chance; more are wider, and a number too small is not believed."""
    channel = MADE[name]
    estimator = estimator_for(channel)
    estimate = estimator(channel.tally(channel.perturb(np.arange(N) % 3, source=seeded(1))), N)
    errors = [estimate.of_crowd(asked=asked).printed_errors[0] for asked in (N, 2 * N, 100 * N, None, N - 1)]
    np.testing.assert_allclose(errors[0], estimate.printed_errors[0])
    for nearer, wider in pairwise(errors[:4]):
        assert (nearer < wider).all()
    np.testing.assert_array_equal(errors[3], errors[4])
    with pytest.raises(ParameterError, match=r"drawn must be within 0 to 1, got 1\.5"):
        crowd_laws(estimate.laws, N, drawn=1.5)


def test_a_kind_of_devices_without_skew_is_of_no_sign_whatever_rounding_left() -> None:
    """Optimised unary bits have p = 1/2: their own devices' third moment is 0 but for rounding."""
    n, share = 5000, np.array([0.06])
    ends = []
    for rounding in (-1e-16, 0.0, 1e-16):
        own, far = np.array([[1.7], [rounding]]), np.array([[0.8], [1.3]])
        law = MixedLaw(float(n), own, far, np.array([2.6]))
        crowd = crowd_laws(ScoreLaws(law, law), n, drawn=1.0)
        ends.append([float(end[0]) for end in score_interval(share, crowd.values, n=n, z=1.96)])
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize(("inputs", "epsilon"), [(4, 1.0), (6, 3.0), (12, 4.0)])
def test_counts_are_whole_and_no_share_is_held_in_less_than_promised(inputs, epsilon):
    """Every count of 2,000 reports with its probability: what exceeds .95 is half a report at each end.

    With s the standard deviation of the count, half a report at both ends holds 2 (1/2) phi(1.96) / s more,
    and whole counts come up to so much off that. Shares are two standard errors or more from 0.
    """
    channel, n = grr(inputs, epsilon=epsilon), 2000
    p, q = channel.t / channel.total, channel.u / channel.total
    estimator, counts = estimator_for(channel), np.arange(n + 1)
    law = estimator(np.append(n, np.zeros(inputs - 1, dtype=int)), n).of_crowd().laws.values
    noise = MixedLaw(
        n,
        *(np.repeat(each[:, :1], n + 1, axis=1) for each in (law.noise.own, law.noise.far)),
        np.full(n + 1, 1.0 / (p - q)),
    )
    low, high = score_interval((counts / n - q) / (p - q), CrowdLaw(noise, n, 1.0), n=n, z=1.959964)
    for share in (0.5, 0.2, 0.1, 0.04):
        r = q + share * (p - q)
        spread = np.sqrt(n * r * (1.0 - r))
        if share < 2.0 * spread / (n * (p - q)):
            continue
        held = binom.pmf(counts, n, r)[(low <= share) & (share <= high)]
        assert 0.95 < held.sum() < 0.95 + 2.0 * 0.0585 / spread
        assert held[1:-1].sum() < 0.95
