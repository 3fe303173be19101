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
from hubbub.filter import BayesianFilter
from hubbub.testing import seeded

pytestmark = pytest.mark.statistical


def equation_69(budget: float, k: int) -> float:
    """Its own terms, as printed."""
    top = -k * math.exp(-2 * budget) + 2 * k * math.exp(-budget) - k
    odds = (math.exp(budget / k) - 1) / (math.exp(budget / k) + 1)
    return top / (odds * (math.exp(-2 * budget) - 1))


def walk(values: int, k: int, epsilon: float) -> np.ndarray:
    """The chain of accepted responses, value 0 being true: chances to go on from one state to another.

    A state is how often each value was answered, less the least of them, the false ones in order: they are
    alike. The walk begins at state 0 and ends when one is k ahead, with what a row lacks of one.
    """
    start = (0,) * values
    true = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    chances = [true] + [(1 - true) / (values - 1)] * (values - 1)
    index, queue = {start: 0}, [start]
    steps: list[tuple[int, int, float]] = []
    while queue:
        state = queue.pop()
        for value, chance in enumerate(chances):
            after = list(state)
            after[value] += 1
            least = min(after)
            reached = (after[0] - least, *sorted(each - least for each in after[1:]))
            if max(reached) >= k:
                continue
            if reached not in index:
                index[reached] = len(index)
                queue.append(reached)
            steps.append((index[state], index[reached], chance))
    matrix = np.zeros((len(index), len(index)))
    for own, other, chance in steps:
        matrix[own, other] += chance
    return matrix


def moments(matrix: np.ndarray) -> tuple[float, float]:
    """Mean and variance of the number of responses accepted, by first-step equations."""
    away = np.eye(len(matrix)) - matrix
    mean = np.linalg.solve(away, np.ones(len(matrix)))
    square = np.linalg.solve(away, 2.0 * mean - 1.0)
    return float(mean[0]), float(square[0] - mean[0] ** 2)


def chain(values: int, k: int, epsilon: float) -> tuple[float, float]:
    """Mean and variance of the number of responses accepted."""
    return moments(walk(values, k, epsilon))


def false_alarm(values: int, k: int, epsilon: float, runs: int, limit: float) -> float:
    """At least the chance that the mean of `runs` counts is `limit` of its standard errors off: Chernoff's.

    For any z, Pr(mean >= a) <= (E[z^T] z^-a)^runs, and likewise below a with z < 1. E[z^T] solves x = z P x +
    z e, e the chances to end; where all of x is positive, z is within its radius of convergence (Perron).
    """
    matrix = walk(values, k, epsilon)
    (mean, variance), ends = moments(matrix), 1.0 - matrix.sum(axis=1)
    chance = 0.0
    for sign in (1.0, -1.0):
        at, found = mean + sign * limit * math.sqrt(variance / runs), 1.0
        for share in np.linspace(0.4, 1.2, 17):
            z = math.exp(sign * share * limit / math.sqrt(variance * runs))
            x = np.linalg.solve(np.eye(len(matrix)) - z * matrix, z * ends)
            if (x > 0).all():
                found = min(found, math.exp(runs * (math.log(x[0]) - at * math.log(z))))
        chance += found
    return chance


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


BINARY = [(0.5, 3), (1.0, 2), (1.0, 5), (2.0, 4), (4.0, 6)]
BINARY_RUNS, BINARY_LIMIT = 1_500, 6.0
SEVERAL_RUNS, SEVERAL_LIMIT = 300, 6.5


def test_false_alarms_are_as_rare_as_is_stated():
    """Chernoff's bounds added up: 4.2e-7 for the five pairs, 7.6e-7 for the twenty-one chains.

    1.2e-6 for all twenty-six. They are no approximation; the saddlepoint one has 3e-8 for the five.
    """
    five = [false_alarm(2, k, budget / k, BINARY_RUNS, BINARY_LIMIT) for budget, k in BINARY]
    chains = [(values, k) for values in (2, 3, 4) for k in range(2, 9)]
    many = [false_alarm(values, k, 1.0, SEVERAL_RUNS, SEVERAL_LIMIT) for values, k in chains]
    assert max(*five, *many) < 1e-7
    assert sum(five) < 4.2e-7
    assert sum(many) < 7.6e-7
    # Control: it is a bound of the very tail, so it grows with a nearer limit, and is 1 at none.
    assert false_alarm(2, 3, 1.0, SEVERAL_RUNS, 5.0) > 1e-6
    assert false_alarm(2, 3, 1.0, SEVERAL_RUNS, 0.0) >= 1.0


@pytest.mark.parametrize(("budget", "k"), BINARY)
def test_binary_responses_are_accepted_as_often_as_equation_69_says(budget, k):
    """n = 1,500 filters; the mean count is within 6 of its standard errors.

    If the code is right, it is not with probability below 1e-7, and below 4.2e-7 for all five, see above.
    Negative control: eq. 69 for k + 1 is more than 6 away.
    """
    mean, variance = chain(2, k, budget / k)
    assert mean == pytest.approx(equation_69(budget, k), rel=1e-9)
    counts = simulated(2, budget, budget / k, BINARY_RUNS, seed=100 * k + int(10 * budget))
    assert deviation(counts, mean, variance) < BINARY_LIMIT
    assert deviation(counts, equation_69(budget, k + 1), variance) > BINARY_LIMIT


@pytest.mark.parametrize("values", [2, 3, 4])
def test_responses_of_several_values_are_accepted_as_the_markov_chain_says(values):
    """k = 2..8, epsilon = 1, n = 300 filters each: within 6.5 standard errors of the chain's mean.

    If the code is right, one is not with probability below 1e-7, and below 7.6e-7 for all twenty-one, see
    above. Negative control: the squared deviations from the chain of epsilon 1.3 with the same k add up to
    more than 100, where those from a true mean have an expectation of 7.
    """
    pooled = 0.0
    for k in range(2, 9):
        mean, variance = chain(values, k, 1.0)
        counts = simulated(values, float(k), 1.0, SEVERAL_RUNS, seed=10 * values + k)
        assert deviation(counts, mean, variance) < SEVERAL_LIMIT
        wrong = chain(values, k, 1.3)[0]
        pooled += (counts.mean() - wrong) ** 2 / (variance / SEVERAL_RUNS)
    assert pooled > 100.0
