"""Over random parameters: boosted noise never exceeds its epsilon, or says which parameter cannot be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from exponentials import exp_bounds
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mechanism_contract import certifies, exact_ratio

from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator
from hubbub.numeric.exact import HEADROOM
from hubbub_authoring.mechanisms import Absolute, Fixed, boosted

regions = st.one_of(
    st.builds(Absolute, st.one_of(st.none(), st.floats(0.0, 12.0))),
    st.tuples(st.floats(-8.0, 20.0), st.floats(0.0, 15.0)).map(lambda ends: Fixed(ends[0], sum(ends))),
)
parameters = st.fixed_dictionaries(
    {
        "inputs": st.integers(2, 12),
        "epsilon": st.floats(0.05, 9.0),
        "kernel": st.sampled_from(["laplace", "uniform"]),
        "region": regions,
        "missing": st.sampled_from(["none", "input"]),
    },
    optional={
        "kernel_epsilon": st.floats(0.0, 6.0),
        "boost": st.floats(0.0, 0.99),
        "margin": st.integers(0, 10),
    },
)


@settings(max_examples=150, deadline=None)
@given(parameters)
def test_boosted_noise_keeps_its_epsilon_or_is_refused_by_name(arguments):
    if arguments["kernel"] == "uniform":
        # What a uniform kernel refuses whatever else is given would crowd out the rest.
        assume(isinstance(arguments["region"], Absolute))
        arguments = {**arguments, "kernel_epsilon": 0.0}
    try:
        channel = boosted(**arguments)
    except ParameterError as refusal:
        names = ("kernel", "boost", "region", "half_width", "design")
        assert any(name in str(refusal) for name in names)
        return
    epsilon, weights = arguments["epsilon"], channel.weights()
    ratio = exact_ratio(weights)
    assert ratio <= exp_bounds(Fraction(epsilon) - Fraction(HEADROOM))[0]
    assert certifies(channel.epsilon, ratio)
    assert {sum(row) for row in weights.tolist()} == {channel.total}
    assert 0.0 <= channel.design.boost < 1.0
    assert 0.0 <= channel.design.confidence <= 1.0
    # Counts in exact proportion to a row are estimated as that input alone, or the cell is said to be hidden.
    truth = np.zeros(channel.inputs)
    truth[0] = 1.0
    estimate = InverseEstimator(channel)(channel.row(0), channel.total)
    hidden = np.isnan(estimate.values)
    assert (np.isinf(estimate.value_errors) == hidden).all()
    np.testing.assert_allclose(estimate.values[~hidden], truth[~hidden], atol=1e-5)
