"""How many randomised responses the filter accepts: exactly, and in simulation.

Identical binary responses of epsilon = budget/k walk the log-ratio up and down in steps of epsilon until it
reaches the budget; with m values there is a walk of every value. The expected number of steps is Pan's eq. 69
for m = 2, and the solution of a linear system (an absorbing Markov chain) for any m.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

from hubbub import mechanisms as m
from hubbub.accounting import BayesianFilter
from hubbub.testing import seeded

pytestmark = pytest.mark.statistical


def equation_69(budget: float, k: int) -> float:
    """Its own terms, as printed."""
    top = -k * math.exp(-2 * budget) + 2 * k * math.exp(-budget) - k
    odds = (math.exp(budget / k) - 1) / (math.exp(budget / k) + 1)
    return top / (odds * (math.exp(-2 * budget) - 1))


def chain(values: int, k: int, epsilon: float) -> tuple[float, float]:
    """Mean and variance of the number of responses accepted, value 0 being true, by first-step equations.

    A state is how often each value was answered, less the least of them; it ends when one is k ahead.
    """
    start = (0,) * values
    true = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    chances = [true] + [(1 - true) / (values - 1)] * (values - 1)
    index, queue = {start: 0}, [start]
    rows: list[dict[int, float]] = []
    while queue:
        state = queue.pop()
        row: dict[int, float] = {}
        for value, chance in enumerate(chances):
            after = list(state)
            after[value] += 1
            least = min(after)
            reached = tuple(each - least for each in after)
            if max(reached) >= k:
                continue
            if reached not in index:
                index[reached] = len(index)
                queue.append(reached)
            row[index[reached]] = row.get(index[reached], 0.0) + chance
        rows.append(row | {-1: float(index[state])})
    matrix = np.zeros((len(index), len(index)))
    for row in rows:
        own = int(row.pop(-1))
        for other, chance in row.items():
            matrix[own, other] = chance
    away = np.eye(len(index)) - matrix
    mean = np.linalg.solve(away, np.ones(len(index)))
    square = np.linalg.solve(away, 2.0 * mean - 1.0)
    return float(mean[0]), float(square[0] - mean[0] ** 2)


def simulated(values: int, budget: float, epsilon: float, runs: int, seed: int) -> np.ndarray:
    """Accepted counts of `runs` filters, all about value 0, drawn from the channel itself."""
    channel, source = m.grr(values, epsilon=epsilon), seeded(seed)
    counts = []
    for _ in range(runs):
        accountant, count = BayesianFilter(budget), 0
        while (ticket := accountant.reserve("x", channel)) is not None:
            accountant.record(ticket, channel.perturb(0, source=source))
            count += 1
        counts.append(count)
    return np.array(counts)


def deviation(counts: np.ndarray, mean: float, variance: float) -> float:
    """Standard deviations, of the true law, between the mean count and what it should be."""
    return abs(counts.mean() - mean) / math.sqrt(variance / len(counts))


def test_equation_69_has_its_closed_form_and_reference_values():
    for (budget, k), expected in {(1.0, 2): 3.773638, (1.0, 10): 92.500438}.items():
        closed = k * math.tanh(budget / 2) / math.tanh(budget / (2 * k))
        assert equation_69(budget, k) == pytest.approx(closed, rel=1e-12)
        assert closed == pytest.approx(expected, abs=1e-6)
        assert chain(2, k, budget / k)[0] == pytest.approx(closed, rel=1e-9)


def test_more_values_do_not_always_mean_more_queries():
    """Pan's conjecture D.2 fails: three values stop sooner than two for k = 2, 3 and 4."""
    for k in (2, 3, 4):
        assert chain(3, k, 1.0)[0] < chain(2, k, 1.0)[0]
    growth = [chain(2, k, 1.0)[0] / k for k in range(2, 9)]
    assert all(later > earlier for earlier, later in pairwise(growth))


@pytest.mark.parametrize(("budget", "k"), [(0.5, 3), (1.0, 2), (1.0, 5), (2.0, 4), (4.0, 6)])
def test_binary_responses_are_accepted_as_often_as_equation_69_says(budget, k):
    """n = 1,500 filters; the mean count is within 6 of its standard errors.

    The saddlepoint approximation of a sum of 1,500 such counts (Lugannani and Rice, from the chain's own
    generating function) passes 6 deviations with probability 4.8e-9 to 5.8e-9 above and less than 4e-10
    below: 3e-8 for all five; Chernoff's bound, which is no approximation, 4.2e-7. Negative control: eq. 69
    for k + 1 is more than 6 away.
    """
    mean, variance = chain(2, k, budget / k)
    assert mean == pytest.approx(equation_69(budget, k), rel=1e-9)
    counts = simulated(2, budget, budget / k, 1_500, seed=100 * k + int(10 * budget))
    assert deviation(counts, mean, variance) < 6.0
    assert deviation(counts, equation_69(budget, k + 1), variance) > 6.0


@pytest.mark.parametrize("values", [2, 3, 4])
def test_responses_of_several_values_are_accepted_as_the_markov_chain_says(values):
    """k = 2..8, epsilon = 1, n = 250 filters each: within 6.5 standard errors of the chain's mean.

    By the same approximation at most 6.5e-9 each and 7e-8 for all twenty-one. Negative control: the squared
    deviations from the chain of epsilon 1.3 with the same k add up to more than 100, where those from a true
    mean have an expectation of 7.
    """
    pooled = 0.0
    for k in range(2, 9):
        mean, variance = chain(values, k, 1.0)
        counts = simulated(values, float(k), 1.0, 250, seed=10 * values + k)
        assert deviation(counts, mean, variance) < 6.5
        wrong = chain(values, k, 1.3)[0]
        pooled += (counts.mean() - wrong) ** 2 / (variance / 250)
    assert pooled > 100.0
