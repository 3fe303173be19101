"""A constant law: an answer costs its worst, whatever it says, and is refused if it cannot be one."""

from __future__ import annotations

import math

import pytest

from hubbub import mechanisms as m
from hubbub.errors import ParameterError
from hubbub.filter import BayesianFilter, ConstantLaw, Query, constant_law


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0, 9.0])
def test_an_answer_costs_the_certified_epsilon_pending_and_recorded(epsilon):
    channel = m.local_hashing(1000, epsilon=epsilon)
    account = BayesianFilter(100.0)
    law = ConstantLaw(channel, channel.odds)
    ticket = account.reserve(("wide", "word", 0, b"d"), law)
    assert channel.epsilon <= account.committed <= channel.epsilon + 4 * 2.0**-40
    account.record(ticket, 3)
    assert channel.epsilon - 4 * 2.0**-40 <= account.loss <= channel.epsilon + 4 * 2.0**-40
    assert account.loss <= account.committed


def test_two_answers_on_one_coordinate_add():
    channel = m.local_hashing(1000, epsilon=1.0)
    account = BayesianFilter(100.0)
    for symbol in (0, 700):
        account.record(account.reserve("here", constant_law(channel, channel.odds)), symbol)
    assert math.isclose(account.loss, 2 * channel.epsilon, abs_tol=2.0**-36)


def test_what_the_channel_cannot_send_is_refused():
    channel = m.local_hashing(1000, epsilon=1.0)
    with pytest.raises(ParameterError, match="can send"):
        ConstantLaw(channel, channel.odds).column(channel.outputs)


def test_answers_of_one_channel_have_one_law():
    one, other = (m.local_hashing(50, epsilon=1.0) for _ in range(2))
    assert constant_law(one, one.odds) is constant_law(other, other.odds)
    assert Query("x", constant_law(one, one.odds)).channel.inputs == 2
