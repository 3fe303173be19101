"""What every mechanism must keep, as one test class.

Subclass it with a name that starts with `Test` and a dictionary of cases:

    class TestGRR(MechanismContract):
        cases: ClassVar = {"two inputs": Case(lambda: grr(2, epsilon=1.0), epsilon=1.0, digest="...")}

The tests use the channel's public face only, so that a mechanism may keep its integers in any form.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar

import msgpack
import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.channels.finite import FiniteChannel
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.testing import RecordedSource, seeded

QUANTA_PER_NAT = 2**40
DRAWS = 1_000_000
FALSE_ALARM = 1e-7  # for each of at most ten inputs tested: below 1e-6 together
ROWS_PROBED = 12


@dataclass(frozen=True)
class Case:
    """One channel under test.

    Attributes:
        build: Compiles it.
        epsilon: What was declared.
        digest: SHA-256 of the msgpack of its description, hexadecimal. A change means that every survey of
            this kind in the field changes: never adapt the digest without a reason that users can read.
    """

    build: Callable[[], FiniteChannel]
    epsilon: float
    digest: str


@cache
def built(build: Callable[[], FiniteChannel]) -> FiniteChannel:
    return build()


def spans_kinds(check: Callable[..., None]) -> Callable[..., None]:
    """Run a check of code that all channels of a class share once for each kind, not for each case."""
    check.spans_kinds = True
    return check


def one_of_each_kind(cases: dict[str, Any]) -> dict[str, Any]:
    """The first case of each kind: a class of channels, and draws of four bytes or of eight."""
    found: dict[tuple[type, bool], str] = {}
    for name, case in cases.items():
        channel = built(case.build)
        found.setdefault((type(channel), getattr(channel, "total", 0) > 2**32), name)
    return {name: cases[name] for name in found.values()}


def exact_ratio(weights: np.ndarray) -> Fraction:
    """The largest ratio within a column, by integers alone."""
    return max(Fraction(max(column), min(column)) for column in weights.T.tolist())


def certifies(epsilon: float, ratio: Fraction) -> bool:
    """Whether a float is at least ln(ratio) and no more than two steps of the float grid above it."""
    with localcontext() as context:
        context.prec = 100
        truth = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
        slack = Decimal(10) ** -90
        two_below = math.nextafter(math.nextafter(epsilon, 0.0), 0.0)
        return Decimal(epsilon) >= truth - slack and Decimal(two_below) < truth + slack


def digest_of(channel: FiniteChannel) -> str:
    return hashlib.sha256(msgpack.packb(channel.to_spec())).hexdigest()


def selected_counts(channel: FiniteChannel, x: int, probes: int = 2048) -> list[int]:
    """How many of the T draws select each symbol for input x, assuming constancy between equal probes.

    A region that the probes miss makes the counts wrong, so that comparing them with the row fails: the
    assumption cannot hide an error.
    """
    total, counts = channel.total, [0] * channel.outputs
    points = sorted({total * i // probes for i in range(probes)} | {total - 1})
    pending = list(pairwise(points))
    chosen = {point: channel.select(x, point) for point in points}
    counts[chosen[total - 1]] += 1
    while pending:
        low, high = pending.pop()
        if chosen[low] == chosen[high] or high - low == 1:
            counts[chosen[low]] += high - low
            continue
        middle = (low + high) // 2
        chosen[middle] = channel.select(x, middle)
        pending += [(low, middle), (middle, high)]
    return counts


def chi_square_rejects(counts: np.ndarray, row: np.ndarray) -> bool:
    """Whether Pearson's statistic of counts against a row is beyond its 1 - FALSE_ALARM quantile.

    Symbols are pooled from the rarest up until every cell expects at least 50, where the law of the
    statistic is the chi-square with cells - 1 degrees of freedom to well within the margin used.
    """
    expected = row / row.sum() * counts.sum()
    order = np.argsort(expected)
    cells = np.cumsum(expected[order]) // 50
    cells = np.unique(cells, return_inverse=True)[1]
    seen, hoped = np.bincount(cells, counts[order]), np.bincount(cells, expected[order])
    if hoped[-1] < 50:
        seen, hoped = np.append(seen[:-2], seen[-2:].sum()), np.append(hoped[:-2], hoped[-2:].sum())
    statistic = ((seen - hoped) ** 2 / hoped).sum()
    return bool(statistic > chi2.isf(FALSE_ALARM, len(hoped) - 1))


def expanded(channel: FiniteChannel) -> np.ndarray:
    blocks = channel.blocks()
    assert blocks.blocks <= channel.most_blocks  # what a device reckons with before it makes them
    matrix = blocks.across[np.ix_(blocks.labels, blocks.labels)].copy()
    np.fill_diagonal(matrix, 0)
    return matrix


class MechanismContract:
    """Promises of every compiled channel; see the module."""

    cases: ClassVar[dict[str, Case]]

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            cases = one_of_each_kind(self.cases) if hasattr(metafunc.function, "spans_kinds") else self.cases
            metafunc.parametrize("case", list(cases.values()), ids=list(cases))

    @pytest.fixture
    def channel(self, case: Case) -> FiniteChannel:
        return built(case.build)

    def test_certified_epsilon_equals_exact_rational_arithmetic_on_the_weights(self, channel):
        ratio = exact_ratio(channel.weights())
        assert certifies(channel.epsilon, ratio)
        assert not certifies(channel.epsilon, ratio * Fraction(10**12 + 1, 10**12))
        assert not certifies(channel.epsilon * (1 + 1e-14), ratio)

    def test_certified_epsilon_leaves_headroom_below_the_declared_one(self, case, channel):
        assert Decimal(channel.epsilon) <= Decimal(case.epsilon) - Decimal(2) ** -36

    def test_rows_sum_to_the_total_and_every_symbol_is_possible(self, channel):
        weights = channel.weights()
        assert weights.shape == (channel.inputs, channel.outputs)
        assert weights.dtype == np.int64
        assert weights.min() >= 1
        assert all(sum(row) == channel.total for row in weights.tolist())
        assert channel.total < 2**63

    def test_rows_columns_and_single_weights_are_those_of_the_matrix(self, channel):
        weights = channel.weights()
        assert all(np.array_equal(channel.row(x), weights[x]) for x in range(channel.inputs))
        assert all(np.array_equal(channel.column(y), weights[:, y]) for y in range(channel.outputs))
        cells = np.random.default_rng(5).integers((channel.inputs, channel.outputs), size=(200, 2)).tolist()
        assert all(channel.weight(x, y) == weights[x, y] for x, y in cells)

    def test_every_symbol_is_selected_by_exactly_its_weight_of_draws(self, channel):
        rows = sorted(set(np.linspace(0, channel.inputs - 1, ROWS_PROBED).astype(int).tolist()))
        for x in rows:
            assert selected_counts(channel, x) == channel.row(x).tolist()

    def test_many_selections_are_the_single_ones(self, channel):
        rng = np.random.default_rng(11)
        values = rng.integers(channel.inputs, size=400)
        last = channel.total - 1
        draws = np.r_[rng.integers(channel.total, size=396), 0, 1, last - 1, last]
        dtype = np.uint32 if channel.total <= 2**32 else np.uint64
        out = np.zeros(400, dtype=np.uint32)
        channel.select_many(values, draws.astype(dtype), out)
        singles = [channel.select(x, r) for x, r in zip(values.tolist(), draws.tolist(), strict=True)]
        assert out.tolist() == singles

    @spans_kinds
    def test_array_and_scalar_calls_draw_the_same_symbols_from_the_same_bytes(self, channel):
        values = np.random.default_rng(3).integers(channel.inputs, size=300)
        width = 4 if channel.total <= 2**32 else 8
        words = [seeded(4).token_bytes(width * 600)[i * width : (i + 1) * width] for i in range(600)]
        words[::3] = [b"\xff" * width] * 200  # beyond the last whole multiple of the total: dropped
        stream = b"".join(words)
        source = RecordedSource(stream)
        one_by_one = [channel.perturb(x, source=source) for x in values.tolist()]
        together = channel.perturb(values, source=RecordedSource(stream))
        assert all(type(symbol) is int for symbol in one_by_one)
        assert together.tolist() == one_by_one
        assert together.dtype == np.min_scalar_type(channel.outputs - 1)

    @spans_kinds
    @pytest.mark.statistical
    def test_sampled_symbols_follow_the_row(self, channel):
        """n = 10^6 draws per input, Pearson's chi-square against the row, seed 20.

        Up to four inputs at 1e-7 each: a correct sampler fails with probability below 4e-7. Control:
        the row at 1.25 times its log-ratios, what an epsilon off by a quarter would sample, is rejected.
        """
        source = seeded(20)
        for x in sorted({0, channel.inputs // 3, channel.inputs // 2, channel.inputs - 1}):
            symbols = channel.perturb(np.full(DRAWS, x), source=source)
            counts = np.bincount(symbols, minlength=channel.outputs)
            row = channel.row(x).astype(np.float64)
            assert not chi_square_rejects(counts, row)
            assert chi_square_rejects(counts, (row / row.max()) ** 1.25)

    @spans_kinds
    def test_operating_system_draws_are_symbols_and_differ_between_calls(self, channel):
        values = np.arange(2000) % channel.inputs
        first, second = channel.perturb(values), channel.perturb(values)
        assert first.max() < channel.outputs
        assert not np.array_equal(
            first, second
        )  # equal with probability below (e^epsilon/(e^epsilon + 1))^2000

    def test_expected_symbols_of_a_crowd_are_its_mixture_of_rows(self, channel):
        shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
        mixed = channel.expected(shares)
        np.testing.assert_allclose(mixed, shares @ (channel.weights() / channel.total), rtol=1e-12)
        assert mixed.sum() == pytest.approx(1.0)

    @spans_kinds
    def test_log_likelihood_is_the_log_of_the_column(self, channel):
        for symbol in (0, channel.outputs // 2, channel.outputs - 1):
            expected = [math.log(Fraction(w, channel.total)) for w in channel.weights()[:, symbol].tolist()]
            np.testing.assert_allclose(channel.log_likelihood(symbol), expected, rtol=1e-14)

    def test_divergence_is_the_largest_log_ratio_of_two_rows(self, channel):
        weights = channel.weights()
        logs = np.log(weights)
        expected = np.array([(row - logs).max(axis=1) for row in logs])
        np.testing.assert_allclose(channel.divergence(), expected, atol=1e-13)
        assert channel.divergence().max() == pytest.approx(channel.epsilon, abs=1e-13)

    def test_blocks_are_the_divergence_rounded_up(self, channel):
        quanta = expanded(channel)
        exact = channel.divergence() * QUANTA_PER_NAT
        excess = (quanta - exact)[~np.eye(channel.inputs, dtype=bool)]
        assert excess.min() > -0.05  # rounding of the floats compared with; the next test has none
        assert excess.max() < 2.05

    def test_blocks_never_understate_a_pair(self, channel):
        quanta, weights = expanded(channel), channel.weights().tolist()
        pairs = np.random.default_rng(8).integers(channel.inputs, size=(40, 2)).tolist()
        for x, other in pairs:
            ratio = max(Fraction(a, b) for a, b in zip(weights[x], weights[other], strict=True))
            with localcontext() as context:
                context.prec = 60
                truth = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln() * QUANTA_PER_NAT
                assert Decimal(int(quanta[x, other])) >= truth - Decimal(10) ** -30

    def test_description_survives_the_wire(self, channel):
        spec = msgpack.unpackb(msgpack.packb(channel.to_spec()))
        copy = channel_from_spec(spec)
        assert copy == channel
        assert hash(copy) == hash(channel)
        assert copy.epsilon == channel.epsilon
        assert np.array_equal(copy.weights(), channel.weights())

    @spans_kinds
    def test_description_with_anything_missing_added_or_mistyped_is_refused(self, channel):
        spec = channel.to_spec()
        for broken in [
            {**spec, "extra": 1},
            {**spec, "kind": "no such kind"},
            {**spec, "kind": 3},
            *({k: v for k, v in spec.items() if k != key} for key in spec),
            *({**spec, key: value} for key in spec for value in (None, 0.5, True, -1, "x", [], [0.5], b"")),
        ]:
            with pytest.raises((WireError, ParameterError)):
                channel_from_spec(broken)

    def test_description_is_the_golden_one(self, case, channel):
        assert digest_of(channel) == case.digest

    @spans_kinds
    def test_value_out_of_range_is_refused_without_being_repeated(self, channel):
        for value in (-987654321, 987654321):
            for values in (value, [0, value], np.array([0, value])):
                with pytest.raises(ParameterError) as refusal:
                    channel.perturb(values)
                assert "98765" not in str(refusal.value)

    @spans_kinds
    def test_first_value_beyond_the_last_input_is_refused(self, channel):
        assert channel.perturb(channel.inputs - 1) in range(channel.outputs)
        for values in (channel.inputs, np.array([channel.inputs]), np.int64(channel.inputs)):
            with pytest.raises(ParameterError):
                channel.perturb(values)

    @spans_kinds
    def test_symbol_out_of_range_is_refused(self, channel):
        for symbol in (-1, channel.outputs):
            for read in (channel.column, channel.log_likelihood):
                with pytest.raises(ParameterError):
                    read(symbol)
