"""Over random parameters: no compiled channel exceeds its declared epsilon, by integers alone."""

from fractions import Fraction

import pytest
from exponentials import exp_bounds
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mechanism_contract import certifies, exact_ratio

from hubbub.errors import ParameterError
from hubbub.mechanisms import grr
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.numeric.exact import HEADROOM, log_above
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import pbgrr

epsilons = st.one_of(st.floats(1e-3, 12.0), st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0]))
sizes = st.lists(st.integers(1, 12), min_size=2, max_size=10)
shares = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-3, 1.0))

unhurried = settings(deadline=None)  # the machine may be busy


def assert_within(ratio: Fraction, epsilon: float, headroom: float = HEADROOM) -> None:
    """ratio <= e^(epsilon - headroom), compared with a lower bound of that exponential."""
    assert ratio <= exp_bounds(Fraction(epsilon) - Fraction(headroom))[0]


@unhurried
@given(inputs=st.integers(2, 200), epsilon=epsilons)
def test_grr_never_exceeds_its_declared_epsilon(inputs, epsilon):
    channel = grr(inputs, epsilon=epsilon)
    ratio = exact_ratio(channel.weights())
    assert_within(ratio, epsilon)
    assert certifies(channel.epsilon, ratio)
    assert channel.epsilon >= (epsilon - HEADROOM) * (1 - 1e-6)


@unhurried
@given(sizes=sizes, epsilon=epsilons, share=shares)
def test_pbgrr_never_exceeds_its_declared_epsilons(sizes, epsilon, share):
    boost = min(share * epsilon, epsilon)
    channel = pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost)
    weights = channel.weights()
    ratio = exact_ratio(weights)
    assert_within(ratio, epsilon)
    assert certifies(channel.epsilon, ratio)
    assert channel.epsilon >= (epsilon - HEADROOM) * (1 - 1e-6)
    assert {sum(row) for row in weights.tolist()} == {channel.total}
    assert weights.min() >= 1
    for category, size in enumerate(sizes):
        start = int(channel.starts[category])
        inside = exact_ratio(weights[start : start + size])
        if boost == 0.0:
            assert inside == 1
        elif size > 1:
            assert inside > 1
            assert_within(inside, boost, HEADROOM / 2)  # ε - ε₀ is itself a rounded float


def layout(channel, x):
    """What the draws 0, 1, ... mean for input x, as (how many, symbol): what any other device must do too."""
    category = channel.category_of[x]
    start, size = int(channel.starts[category]), int(channel.sizes[category])
    t, u, o = (int(weights[category]) for weights in (channel.t, channel.u, channel.o))
    yield from ((int(channel.o[c]), y) for y, c in enumerate(channel.category_of))
    yield from ((u - o, y) for y in range(start, start + size))
    yield t - u, x


@unhurried
@given(sizes=sizes, epsilon=epsilons, share=shares, data=st.data())
def test_pbgrr_selects_every_symbol_by_its_weight_of_draws(sizes, epsilon, share, data):
    assume(share * epsilon > 1e-6)
    channel = pbgrr(sizes, epsilon=epsilon, boost_epsilon=min(share * epsilon, epsilon))
    x = data.draw(st.integers(0, channel.inputs - 1))
    first, counts = 0, [0] * channel.outputs
    for length, symbol in layout(channel, x):
        if length:
            assert channel.select(x, first) == symbol
            assert channel.select(x, first + length - 1) == symbol
        first, counts[symbol] = first + length, counts[symbol] + length
    assert first == channel.total
    assert counts == channel.row(x).tolist()
    assert channel.perturb([x], source=seeded(1)).tolist() == [channel.perturb(x, source=seeded(1))]


@unhurried
@given(sizes=sizes, epsilon=epsilons, share=shares)
def test_pbgrr_description_rebuilds_the_channel(sizes, epsilon, share):
    channel = pbgrr(sizes, epsilon=epsilon, boost_epsilon=min(share * epsilon, epsilon))
    assert channel_from_spec(channel.to_spec()) == channel


@unhurried
@given(sizes=sizes, epsilon=epsilons, excess=st.floats(1e-6, 5.0))
def test_pbgrr_never_takes_a_boost_beyond_its_epsilon(sizes, epsilon, excess):
    boost = epsilon + excess
    assume(boost > epsilon)
    with pytest.raises(ParameterError, match="boost_epsilon must be"):
        pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost)


@unhurried
@given(
    values=st.lists(st.integers(1, 9), min_size=2, max_size=12),
    bump=st.integers(0, 11),
)
def test_certificate_of_other_weights_is_not_accepted(values, bump):
    # Control of the certificate itself: raising one weight of a column above its maximum changes epsilon.
    column = [10**9 * value for value in values]
    ratio = Fraction(max(column), min(column))
    column[bump % len(column)] = max(column) + 1000
    wrong = Fraction(max(column), min(column))
    epsilon = log_above(wrong.numerator, wrong.denominator)
    assert certifies(epsilon, wrong)
    assert not certifies(epsilon, ratio)
