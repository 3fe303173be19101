"""The simplified filter and the odometer beside the devices' filter."""

import numpy as np
import pytest

from hubbub.errors import BudgetError
from hubbub.filter import BayesianFilter
from hubbub_authoring import mechanisms as m
from hubbub_lab.filters import Odometer, SimplifiedFilter


def test_the_simplified_filter_refuses_what_the_full_one_does_and_no_less():
    rng = np.random.default_rng(3)
    channels = [
        m.pbgrr([2, 3], epsilon=0.6, boost_epsilon=0.2),
        m.pbgrr([2, 3], epsilon=0.5, boost_epsilon=0.0),
        m.grr(5, epsilon=0.4),
    ]
    for _ in range(40):
        full, simple = BayesianFilter(1.6), SimplifiedFilter(1.6)
        for _ in range(12):
            channel = channels[rng.integers(3)]
            pair = full.reserve("age", channel), simple.reserve("age", channel)
            expected = simple.loss + channel.epsilon <= 1.6
            assert (pair[1] is not None) == expected
            if pair[0] is None:
                assert pair[1] is None
                break
            if pair[1] is None:
                break
            symbol = int(rng.integers(channel.outputs))
            full.record(pair[0], symbol)
            simple.record(pair[1], symbol)
            assert full.loss == simple.loss
    full, simple = BayesianFilter(1.5), SimplifiedFilter(1.5)
    for accountant in (full, simple):  # the recorded loss is within a category, what may come is across
        accountant.record(accountant.reserve("age", m.grr(4, epsilon=1.0)), 0)
        accountant.record(accountant.reserve("age", m.pbgrr([2, 2], epsilon=0.5, boost_epsilon=0.0)), 1)
    last = m.pbgrr([2, 2], epsilon=1.0, boost_epsilon=0.4)
    assert full.reserve("age", last) is not None
    assert simple.reserve("age", last) is None


def test_an_odometer_reads_what_the_filter_does():
    rng = np.random.default_rng(8)
    odometer, accountant = Odometer(), BayesianFilter(50.0)
    channel = m.pbgrr([2, 3], epsilon=0.6, boost_epsilon=0.2)
    readings = []
    for symbol in rng.integers(0, 5, 30).tolist():
        odometer.observe("age", channel, symbol)
        accountant.record(accountant.reserve("age", channel), symbol)
        assert odometer.loss == accountant.loss
        readings.append(odometer.loss)
    assert (np.diff(readings) < 0).any()
    with pytest.raises(BudgetError, match="at most 4096"):
        for _ in range(200):
            odometer.observe("other", m.grr(2, epsilon=40.0), 1)
