"""What every mechanism that sends sets must keep, as one test class.

Subclass it with a name that starts with `Test` and a dictionary of cases. `law` gives the whole distribution
of a small channel, written down from the mechanism's definition and not from its code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import ClassVar

import msgpack
import numpy as np
import pytest
from mechanism_contract import (
    QUANTA_PER_NAT,
    built,
    certifies,
    chi_square_rejects,
    digest_of,
    expanded,
    one_of_each_kind,
    spans_kinds,
)

from hubbub.channels.sets import AttemptChannel, SetChannel
from hubbub.errors import ParameterError, WireError
from hubbub.estimation import estimator_for
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.testing import RecordedSource, seeded

Law = dict[bytes, Fraction]
DRAWS = 200_000


@dataclass(frozen=True)
class SetCase:
    """One channel under test.

    Attributes:
        build: Compiles it.
        epsilon: What was declared.
        digest: SHA-256 of the msgpack of its description; see `mechanism_contract.Case`.
        law: The probability of every set it can send, by input; None for a channel too large for that.
    """

    build: Callable[[], SetChannel]
    epsilon: float
    digest: str
    law: Callable[[SetChannel, int], Law] | None = None


def packed(cells, members) -> bytes:
    bits = np.zeros(cells, dtype=np.uint8)
    bits[list(members)] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def subset_law(channel, x) -> Law:
    """Of the definition: in with probability p, and then any d - 1 of the others; else any d of them."""
    return {
        packed(channel.inputs, members): probability
        for members, probability in subset_members(channel.inputs, channel.size, channel.p_draws, x)
    }


def subset_members(inputs, size, held, x):
    p = Fraction(held, 2**32)
    for members in combinations(range(inputs), size):
        if x in members:
            yield members, p / math.comb(inputs - 1, size - 1)
        else:
            yield members, (1 - p) / math.comb(inputs - 1, size)


def latin_sets(shape, classes, band):
    """Of the definition: all sets of cells whose row and column are in classes of so small a sum."""
    placed = [set(permutations([i % classes for i in range(many)])) for many in shape]
    return sorted(
        {
            tuple(i for i, sums in enumerate(product(rows, columns)) if sum(sums) % classes < band)
            for rows, columns in product(*placed)
        }
    )


def latin_members(shape, classes, size, held, x):
    """Of the definition: with probability p any latin set that holds x, else any that does not."""
    sets, p = latin_sets(shape, classes, size * classes // math.prod(shape)), Fraction(held, 2**32)
    inside = sum(x in members for members in sets)
    for members in sets:
        yield members, p / inside if x in members else (1 - p) / (len(sets) - inside)


def unary_law(channel, x) -> Law:
    """Of the definition: every bit on its own."""
    p, q = Fraction(channel.p_draws, 2**31), Fraction(channel.q_draws, 2**31)
    law = {}
    for size in range(channel.inputs + 1):
        for members in combinations(range(channel.inputs), size):
            probability = Fraction(1)
            for y in range(channel.inputs):
                one = p if y == x else q
                probability *= one if y in members else 1 - one
            law[packed(channel.inputs, members)] = probability
    return law


def levels_law(channel, x) -> Law:
    """Of the definition: a level by its share, and subset selection over its cells."""
    counts, law = channel.hierarchy.bins, {}
    for level, (share, labels) in enumerate(zip(channel.shares, channel.hierarchy.labels, strict=True)):
        start = len(counts) + sum(counts[:level])
        oracle = channel.oracles[level]
        for members, probability in subset_members(counts[level], oracle.size, oracle.p_draws, labels[x]):
            cells = [level, *(start + member for member in members)]
            law[packed(channel.bins, cells)] = Fraction(share, 2**32) * probability
    return law


def probe(case) -> tuple[SetChannel, list[Law]]:
    assert case.law is not None
    channel = built(case.build)
    return channel, [case.law(channel, x) for x in range(channel.inputs)]


def tree_law(channel, x) -> Law:
    """Of the definition: a level by its share, and subset selection over its nodes, missing the last."""
    law = {}
    for level, (share, many) in enumerate(zip(channel.shares, channel.cells, strict=True)):
        starts = [i * channel.points // many for i in range(many)]
        node = many if x == channel.points else max(i for i in range(many) if starts[i] <= x)
        oracle = channel.oracles[level]
        for members, probability in subset_members(many + 1, oracle.size, oracle.p_draws, node):
            symbol = bytes([level]) + packed(many + 1, members)
            law[symbol.ljust(channel.width, b"\0")] = Fraction(share, 2**32) * probability
    return law


def tree_bits(channel, symbol) -> list[int]:
    """The counts that a symbol adds to: one per level, then one per node of every level."""
    bits = [int(level == symbol[0]) for level in range(len(channel.cells))]
    for level, many in enumerate(channel.cells):
        own = int.from_bytes(symbol[1:], "little") if level == symbol[0] else 0
        bits += [own >> node & 1 for node in range(many + 1)]
    return bits


def picked_law(channel, x) -> Law:
    """Of the definition: a level by its share, and subset selection over its cells alone."""
    law = {}
    for level, (share, labels) in enumerate(zip(channel.shares, channel.hierarchy.labels, strict=True)):
        oracle, many = channel.oracles[level], len(set(labels.tolist()))
        for members, probability in subset_members(many, oracle.size, oracle.p_draws, labels[x]):
            symbol = bytes([level]) + packed(many, members)
            law[symbol.ljust(channel.width, b"\0")] = Fraction(share, 2**32) * probability
    return law


def picked_bits(channel, symbol) -> list[int]:
    """The counts that a symbol adds to: one per level, then one per cell of every level."""
    bits = [int(level == symbol[0]) for level in range(len(channel.shares))]
    for level, many in enumerate(channel.hierarchy.bins):
        own = int.from_bytes(symbol[1:], "little") if level == symbol[0] else 0
        bits += [own >> cell & 1 for cell in range(many)]
    return bits


def bits_of(channel, symbol) -> list[int]:
    if channel.kind == "nested_levels":
        return picked_bits(channel, symbol)
    if channel.kind == "tree":
        return tree_bits(channel, symbol)
    array = np.frombuffer(symbol, dtype=np.uint8)
    return np.unpackbits(array, count=channel.bins, bitorder="little").tolist()


def support_in(law, channel, members) -> Fraction:
    """The probability that a set holds all of the given cells."""
    return sum(
        (w for symbol, w in law.items() if all(bits_of(channel, symbol)[c] for c in members)), Fraction(0)
    )


class SetContract:
    """Promises of every channel that sends sets; see the module."""

    cases: ClassVar[dict[str, SetCase]]

    def pytest_generate_tests(self, metafunc):
        for name in {"case", "small"} & set(metafunc.fixturenames):
            chosen = {key: case for key, case in self.cases.items() if name == "case" or case.law is not None}
            if hasattr(metafunc.function, "spans_kinds"):
                chosen = one_of_each_kind(chosen)
            metafunc.parametrize(name, list(chosen.values()), ids=list(chosen))

    @pytest.fixture
    def channel(self, case):
        return built(case.build)

    def test_certified_epsilon_equals_exact_rational_arithmetic_on_the_law(self, small):
        channel, laws = probe(small)
        assert all(sum(law.values()) == 1 for law in laws)
        ratio = max(max(law[s] for law in laws) / min(law[s] for law in laws) for s in laws[0])
        assert certifies(channel.epsilon, ratio)
        assert not certifies(channel.epsilon, ratio * Fraction(10**12 + 1, 10**12))

    def test_certified_epsilon_leaves_headroom_and_wastes_next_to_nothing(self, case, channel):
        assert Decimal(channel.epsilon) <= Decimal(case.epsilon) - Decimal(2) ** -36
        assert channel.epsilon >= case.epsilon * (1 - 1e-6)

    def test_column_and_log_likelihood_are_those_of_the_law(self, small):
        channel, laws = probe(small)
        for symbol in laws[0]:
            column, truth = channel.column(symbol).tolist(), [law[symbol] for law in laws]
            assert min(column) >= 1
            assert all(Fraction(w, column[0]) == t / truth[0] for w, t in zip(column, truth, strict=True))
            logs = channel.log_likelihood(symbol)
            np.testing.assert_allclose(logs, [math.log(t) for t in truth], rtol=1e-9)

    def test_support_gives_the_exact_moments_of_the_law(self, small):
        channel, laws = probe(small)
        start = channel.bins - sum(level.bins for level in channel.levels)
        for level in channel.levels:
            x = channel.inputs // 2
            own = int(level.labels[x])
            others = [c for c in range(level.bins) if c != own]
            support, share = level.support, level.share
            assert support_in(laws[x], channel, [start + own]) == share * support.p
            assert all(support_in(laws[x], channel, [start + c]) == share * support.q for c in others)
            assert all(
                support_in(laws[x], channel, [start + own, start + c]) == share * support.p_pair
                for c in others
            )
            assert all(
                support_in(laws[x], channel, [start + a, start + b]) == share * support.q_pair
                for a, b in combinations(others, 2)
            )
            start += level.bins

    def test_divergence_and_blocks_are_the_largest_log_ratio_of_two_laws(self, small):
        channel, laws = probe(small)
        quanta, nats = expanded(channel), channel.divergence()
        for x, law in enumerate(laws):
            for other, against in enumerate(laws):
                ratio = max(law[symbol] / against[symbol] for symbol in law)
                truth = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
                assert nats[x, other] == pytest.approx(float(truth), abs=1e-12)
                assert Decimal(int(quanta[x, other])) - truth * QUANTA_PER_NAT + Decimal("1e-9") >= 0
                assert Decimal(int(quanta[x, other])) - truth * QUANTA_PER_NAT < 2

    def test_blocks_reach_the_certified_epsilon(self, channel):
        assert channel.blocks().inputs == channel.inputs
        assert channel.blocks().blocks <= channel.most_blocks
        quanta = channel.blocks().largest
        assert quanta - channel.epsilon * QUANTA_PER_NAT + 0.05 >= 0
        assert quanta - channel.epsilon * QUANTA_PER_NAT < 2.05

    @spans_kinds
    def test_single_draws_are_what_their_words_make_of_them(self, channel):
        """Of kinds drawn by attempts: `fill` is the law, and a word at its limit drops an attempt."""
        assert isinstance(channel, AttemptChannel)
        values = np.random.default_rng(3).integers(channel.inputs, size=60)
        size = 4 * channel.words
        attempts = [seeded(4).token_bytes(size * 60)[i * size : (i + 1) * size] for i in range(60)]
        words = np.frombuffer(b"".join(attempts), dtype="<u4").reshape(60, channel.words)
        kept = (words < channel.limits).all(axis=1)
        assert kept.all()
        if (channel.limits < 2**32).any():
            attempts = [part for attempt in attempts for part in (b"\xff" * size, attempt)]
        source = RecordedSource(b"".join(attempts))
        cells = channel._cell_count
        out = np.zeros((60, cells), dtype=np.bool_)
        channel.fill(values, words, out)
        due = np.packbits(out, axis=1, bitorder="little")
        assert [channel.perturb(int(x), source=source) for x in values] == [row.tobytes() for row in due]
        assert not source.left
        assert channel.limits.shape == (channel.words,)
        assert channel.limits.max() <= 2**32
        assert channel.limits.min() > 2**32 - 2**17  # under half a draw in a thousand is dropped per word

    @pytest.mark.statistical
    def test_sampled_sets_follow_the_law(self, small):
        """n = 2 10^5 draws for two inputs in turn, Pearson's chi-square against the law, seed 20.

        Each at 1e-7: a correct sampler fails with probability below 3e-7. Control: the law of another input
        is rejected, and so is the law at twice its log-ratios.
        """
        channel, laws = probe(small)
        symbols = list(laws[0])
        index = {symbol: i for i, symbol in enumerate(symbols)}
        ends = (0, channel.inputs - 1)
        every = channel.perturb(np.tile(ends, DRAWS), source=seeded(20))
        assert every.dtype == np.uint8
        for i, x in enumerate(ends):
            drawn = every[i::2]
            kinds, times = np.unique(drawn, axis=0, return_counts=True)
            counts = np.zeros(len(symbols))
            counts[[index[kind.tobytes()] for kind in kinds]] = times
            row = np.array([float(laws[x][symbol]) for symbol in symbols])
            other = np.array([float(laws[x - 1][symbol]) for symbol in symbols])
            assert not chi_square_rejects(counts, row)
            assert chi_square_rejects(counts, other)
            assert chi_square_rejects(counts, (row / row.max()) ** 2)

    @pytest.mark.statistical
    def test_single_draws_follow_the_law(self, small):
        """n = 6,000 draws one at a time, chi-square of every set against the law, at 1e-7; seed 23.

        Control: the law at twice its log-ratios is rejected.
        """
        channel, laws = probe(small)
        symbols = list(laws[0])
        index = {symbol: i for i, symbol in enumerate(symbols)}
        source, x = seeded(23), channel.inputs // 2
        drawn = [index[channel.perturb(x, source=source)] for _ in range(6_000)]
        counts = np.bincount(drawn, minlength=len(symbols)).astype(float)
        row = np.array([float(laws[x][symbol]) for symbol in symbols])
        assert not chi_square_rejects(counts, row)
        assert chi_square_rejects(counts, (row / row.max()) ** 2)

    @pytest.mark.statistical
    def test_supports_of_many_reports_have_their_expected_means(self, channel):
        """n = 2 10^4 draws of a skewed crowd, every cell's count against its binomial mean, seed 21.

        A count of independent 0/1 reports has a variance of at most n/4; by Hoeffding it is n t off its mean
        with probability at most 2 exp(-2 n t^2): 1e-6 over all cells at the t used. Control: a crowd that
        holds one input alone is as far off.
        """
        n, cells = 20_000, channel.bins
        shares = np.random.default_rng(1).dirichlet(np.full(channel.inputs, 0.3))
        crowd = np.repeat(np.arange(channel.inputs), np.round(shares * n).astype(int))
        shares = np.bincount(crowd, minlength=channel.inputs) / crowd.size
        drawn = channel.perturb(crowd, source=seeded(21))
        bound = math.sqrt(math.log(2 * cells / 1e-6) / (2 * crowd.size))
        gap = channel.tally(drawn) / crowd.size - channel.expected(shares)
        assert np.abs(gap).max() < bound
        alone = channel.perturb(np.full(crowd.size, int(shares.argmin())), source=seeded(22))
        if case_is_telling(channel, bound):
            assert np.abs(channel.tally(alone) / crowd.size - channel.expected(shares)).max() > bound

    def test_expected_counts_are_the_crowd_s_mixture_of_laws(self, small):
        channel, laws = probe(small)
        shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
        mixed = np.zeros(channel.bins)
        for share, law in zip(shares, laws, strict=True):
            for symbol, probability in law.items():
                mixed += share * float(probability) * np.array(bits_of(channel, symbol))
        np.testing.assert_allclose(channel.expected(shares), mixed, rtol=1e-12)

    def test_estimates_of_expected_counts_are_the_truth(self, channel):
        shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
        estimate = estimator_for(channel).expected_estimate(shares, 1000)
        np.testing.assert_allclose(estimate.values, shares, atol=1e-9)

    @spans_kinds
    def test_tally_counts_every_cell_of_every_set(self, channel):
        drawn = channel.perturb(np.arange(1000) % channel.inputs, source=seeded(5))
        cells = np.array([bits_of(channel, row.tobytes()) for row in drawn])
        for n in (0, 1, 254, 255, 256, 1000):
            assert channel.tally(drawn[:n]).tolist() == cells[:n].sum(axis=0).tolist()

    @spans_kinds
    def test_operating_system_draws_are_symbols_and_differ_between_calls(self, channel):
        values = np.arange(500) % channel.inputs
        first, second = channel.perturb(values), channel.perturb(values)
        assert channel.contains(first).all()
        assert not np.array_equal(first, second)

    def test_sets_that_the_channel_cannot_send_are_refused(self, small):
        channel, laws = probe(small)
        width = channel.width
        every = [n.to_bytes(width, "little") for n in range(min(256**width, 2**16))]
        known = channel.contains(np.frombuffer(b"".join(every), dtype=np.uint8).reshape(-1, width))
        assert [s for s, sent in zip(every, known, strict=True) if sent] == [s for s in every if s in laws[0]]
        assert [s for s in every if channel.admits(s)] == [s for s in every if s in laws[0]]
        strangers = [symbol for symbol, sent in zip(every, known, strict=True) if not sent]
        for symbol in strangers[:20]:
            for read in (channel.column, channel.log_likelihood):
                with pytest.raises(ParameterError):
                    read(symbol)

    @spans_kinds
    def test_symbols_of_another_width_or_type_are_refused(self, channel):
        good = channel.perturb(0)
        assert channel.column(np.frombuffer(good, dtype=np.uint8)).tolist() == channel.column(good).tolist()
        for wrong in (good + b"\0", good[:-1], 0, None, good.hex()):
            for read in (channel.column, channel.log_likelihood):
                with pytest.raises(ParameterError):
                    read(wrong)

    def test_description_survives_the_wire(self, channel):
        copy = channel_from_spec(msgpack.unpackb(msgpack.packb(channel.to_spec())))
        assert copy == channel
        assert hash(copy) == hash(channel)
        assert copy.epsilon == channel.epsilon
        values = np.arange(20) % channel.inputs
        drawn = [c.perturb(values, source=seeded(2)).tolist() for c in (copy, channel)]
        assert drawn[0] == drawn[1]

    @spans_kinds
    def test_description_with_anything_missing_added_or_mistyped_is_refused(self, channel):
        spec = channel.to_spec()
        for broken in [
            {**spec, "extra": 1},
            {**spec, "kind": "no such kind"},
            *({k: v for k, v in spec.items() if k != key} for key in spec),
            *(
                {**spec, key: value}
                for key in spec
                for value in (None, 0.5, True, -1, 0, "x", [], [0.5], b"")
            ),
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
    def test_only_inputs_of_the_channel_are_taken(self, channel):
        assert len(channel.perturb(channel.inputs - 1)) == channel.width
        assert len(channel.perturb(np.int64(0))) == channel.width
        assert channel.perturb([]).shape == (0, channel.width)
        for values in (channel.inputs, [channel.inputs], True, 0.0, [0.5], "0", [[0]], [[0], [0, 1]]):
            with pytest.raises(ParameterError):
                channel.perturb(values)


def case_is_telling(channel, bound) -> bool:
    """Whether an input's own cell stands out from the rest by more than chance hides."""
    finest = channel.levels[-1]
    return float(finest.share * (finest.support.p - finest.support.q)) > 3 * bound
