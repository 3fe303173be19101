"""Over random parameters: no channel of sets or levels exceeds its declared epsilon, by integers alone."""

from fractions import Fraction

import numpy as np
from exponentials import exp_bounds
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_contract import certifies, exact_ratio

from hubbub.mechanisms import Levels, SetLevels, levels, subset_selection, unary
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.numeric.exact import HEADROOM
from hubbub.testing import seeded

epsilons = st.one_of(st.floats(1e-3, 12.0), st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0]))
trees = st.recursive(
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    lambda below: st.lists(below | st.integers(1, 6), min_size=2, max_size=3),
    max_leaves=12,
).filter(lambda sizes: sum(_leaves(sizes)) > _cells(sizes))
unhurried = settings(deadline=None)  # the machine may be busy


def _leaves(sizes):
    return [n for part in sizes for n in (_leaves(part) if isinstance(part, list) else [part])]


def _cells(sizes):
    return len(_leaves(sizes))


def ratio_of(channel, symbols) -> Fraction:
    """The largest ratio within the columns of some sets, by integers alone."""
    columns = [channel.column(row.tobytes()).tolist() for row in symbols]
    return max(Fraction(max(column), min(column)) for column in columns)


def assert_within(channel, ratio, epsilon):
    assert ratio <= exp_bounds(Fraction(epsilon) - Fraction(HEADROOM))[0]
    assert certifies(channel.epsilon, ratio)
    assert channel.epsilon >= epsilon * (1 - 1e-2)


@unhurried
@given(inputs=st.integers(2, 200), epsilon=epsilons, variant=st.sampled_from(["optimised", "symmetric"]))
def test_unary_never_exceeds_its_declared_epsilon(inputs, epsilon, variant):
    channel = unary(inputs, epsilon=epsilon, variant=variant)
    p, q = channel.levels[0].support.p, channel.levels[0].support.q
    assert_within(channel, p * (1 - q) / ((1 - p) * q), epsilon)
    assert channel_from_spec(channel.to_spec()) == channel


@unhurried
@given(inputs=st.integers(2, 200), epsilon=epsilons, data=st.data())
def test_subset_selection_never_exceeds_its_declared_epsilon(inputs, epsilon, data):
    size = data.draw(st.none() | st.integers(1, inputs - 1))
    channel = subset_selection(inputs, epsilon=epsilon, size=size)
    drawn = channel.perturb(np.arange(inputs), source=seeded(1))
    assert channel.contains(drawn).all()
    assert_within(channel, ratio_of(channel, drawn), epsilon)
    assert channel_from_spec(channel.to_spec()) == channel


@unhurried
@given(sizes=trees, epsilon=epsilons, oracles=st.sampled_from(["best", "grr"]), data=st.data())
def test_levels_never_exceed_their_declared_epsilon(sizes, epsilon, oracles, data):
    depth = len(levels(sizes, epsilon=1.0, oracles="grr").levels)
    weights = data.draw(st.lists(st.integers(1, 9), min_size=depth, max_size=depth))
    channel = levels(sizes, epsilon=epsilon, oracles=oracles, shares=[w / sum(weights) for w in weights])
    if isinstance(channel, Levels):
        ratio = exact_ratio(channel.weights())
    else:
        assert isinstance(channel, SetLevels)
        drawn = channel.perturb(np.repeat(np.arange(channel.inputs), 40), source=seeded(1))
        assert channel.contains(drawn).all()
        ratio = max(Fraction(*oracle.odds) for oracle in channel.oracles)
        assert ratio_of(channel, drawn) <= ratio
    assert_within(channel, ratio, epsilon)
    assert channel_from_spec(channel.to_spec()) == channel
    assert sum(level.share for level in channel.levels) == 1
