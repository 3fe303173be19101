"""What refusals by the filter itself do to a later survey, and whether the published bound covers it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from surveys import LABELS

from hubbub import Survey
from hubbub import mechanisms as m
from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError
from hubbub.estimation.poison import selection_bound
from hubbub.filter import BayesianFilter, Query
from hubbub.testing import seeded
from hubbub_aggregator.release.enrolment import FleetStatement

BUDGET = 3.0
# Its rare answer says much about who has the trait, and costs 2; the other costs next to nothing.
FIRST = DenseChannel(np.array([[973, 27], [800, 200]]))
SECOND = m.grr(2, epsilon=1.5)
ASKED = Survey.parse(LABELS)
"""A survey whose devices have no turns: of it no more is read."""


def refusals() -> np.ndarray:
    """Whether the filter refuses the second survey, by the answer to the first."""
    found = []
    for answer in range(2):
        accountant = BayesianFilter(BUDGET)
        accountant.record(accountant.reserve("trait", FIRST), answer)
        found.append(accountant.reserve_all([Query("another value", SECOND)]) is None)
    return np.array(found)


def expected(share: float) -> tuple[float, float]:
    """(d, g): the share of devices refused, and the frequency among those that are not."""
    refused = (FIRST.weights() / 1000) @ refusals()
    absent = float((1 - share) * refused[0] + share * refused[1])
    return absent, float(share * (1 - refused[1]) / (1 - absent))


def bound(g: float, absent: float, epsilon: float) -> float:
    return float(selection_bound([g], [g], absent=absent, epsilon=epsilon)[0])


def test_the_filter_refuses_by_what_was_answered() -> None:
    assert refusals().tolist() == [False, True]


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.2, 0.5, 0.9, 0.999])
def test_the_bias_of_refusals_is_within_the_bound_of_the_worst_loss(share: float) -> None:
    """In expectation, exactly: with the budget, and with 2 nats (less than 1/300 above ln 200/27)."""
    absent, g = expected(share)
    for epsilon in (BUDGET, math.log(200 / 27)):
        assert abs(share - g) <= bound(g, absent, epsilon)


def test_the_mean_realised_loss_gives_no_bound() -> None:
    """Control: what devices have lost on average is less than what those refused have lost."""
    absent, g = expected(0.2)
    losses = [math.log(973 / 800), math.log(200 / 27)]
    mean = (1 - absent) * losses[0] + absent * losses[1]
    assert mean < 0.4
    assert abs(0.2 - g) > 1.5 * bound(g, absent, mean)


def test_the_estimate_in_the_place_of_the_truth_gives_no_bound() -> None:
    """Control: d/(1-d) f (e^s - 1) holds for the frequency f of all, not with that of the counted for f."""
    absent, g = expected(0.01)
    epsilon = math.log(200 / 27)
    written = absent / (1 - absent) * g * math.expm1(epsilon)
    assert abs(0.01 - g) > written
    assert abs(0.01 - g) <= bound(g, absent, epsilon) < 1.2 * abs(0.01 - g)


@pytest.mark.statistical
def test_a_released_bias_bound_covers_a_simulated_fleet() -> None:
    """200,000 devices, a tenth with the trait; the filter decides for each who answers the second survey.

    The estimate of the share differs from that of all devices asked by at most the released bound plus the
    noise: the estimate's own standard error and that of who is refused, at most sqrt(d/n) together with it.
    Six of them: false alarm below 2e-9. Without the bound the difference is beyond six of them: the bias is
    real.
    """
    n, share = 200_000, 0.1
    values = (np.arange(n) < share * n).astype(np.int64)
    first = FIRST.perturb(values, source=seeded(11))
    counted = ~refusals()[first]
    symbols = SECOND.perturb(values[counted], source=seeded(12))
    counts = np.bincount(symbols, minlength=2)
    q = SECOND.weights()[0] / SECOND.weights()[0].sum()
    estimate = float((counts[1] / counted.sum() - q[1]) / (q[0] - q[1]))
    error = math.sqrt(0.25 / counted.sum()) / float(q[0] - q[1])

    accepted = int(counted.sum())
    enrolment = FleetStatement({"": n}, BUDGET).of(ASKED, counted=accepted, enrolled=accepted)
    cell = {"low": estimate - 1.96 * error, "high": estimate + 1.96 * error}
    released = enrolment.document([cell], [])
    assert released["absent"] == pytest.approx(expected(share)[0], abs=0.003)
    noise = 6 * (error + math.sqrt(released["absent"] / n))
    assert abs(estimate - share) <= released["bias"]["values"][0] + noise
    assert abs(estimate - share) > noise


# What the bound is made of.


def test_any_absence_is_within_the_bound_without_a_loss() -> None:
    """Every two-cell crowd of 40: whoever is missing, |f - g| <= d max(g, 1 - g), and it is reached."""
    reached = 0.0
    for inside in range(21):
        for outside in range(21):
            g, f = inside / 20, (inside + outside) / 40
            limit = bound(g, 0.5, 50.0)
            assert abs(f - g) <= limit + 1e-12
            reached = max(reached, abs(f - g) / limit)
    assert reached == pytest.approx(1.0)


def test_bounds_are_within_reason_at_the_ends() -> None:
    assert bound(0.3, 0.0, 4.0) == 0.0
    assert bound(0.3, 0.2, 0.0) == 0.0
    assert bound(0.3, 1.0, 0.0) == pytest.approx(0.7)
    assert selection_bound([math.nan], [math.nan], absent=0.1, epsilon=1.0)[0] == pytest.approx(0.1)
    assert selection_bound([-0.2], [1.3], absent=0.1, epsilon=1.0)[0] == pytest.approx(0.1)
    for wrong in ({"absent": 1.1, "epsilon": 1.0}, {"absent": math.nan, "epsilon": 1.0}):
        with pytest.raises(ParameterError, match="share"):
            selection_bound([0.1], [0.2], **wrong)
    with pytest.raises(ParameterError, match="epsilon"):
        selection_bound([0.1], [0.2], absent=0.1, epsilon=-1.0)
