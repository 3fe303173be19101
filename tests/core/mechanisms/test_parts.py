"""The channel of a bundle keeps every channel's promises: its law is written down from the definition."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import msgpack
import numpy as np
import pytest
from mechanism_contract import certifies, chi_square_rejects, digest_of
from set_contract import Law, latin_members, latin_sets, packed, subset_members

from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms import LatinSelection, SampledPart, SampledParts, subset_selection, told_by
from hubbub.mechanisms.bundle import channel as bundle_channel
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.testing import seeded

WORD = 2**32


def parts_of(readings, tables, shares, *, epsilon=1.0, sizes=None, classes=None) -> SampledParts:
    made = []
    for place, (members, share) in enumerate(zip(tables, shares, strict=True)):
        cells = math.prod(readings[member] for member in members)
        oracle = subset_selection(cells, epsilon=epsilon, size=None if sizes is None else sizes[place])
        own = 1 if classes is None else classes[place]
        made.append(SampledPart(tuple(members), share, oracle.size, oracle.p_draws, own))
    return SampledParts(readings, made)


CASES = {
    "pairs": lambda: parts_of((2, 3, 2), [(0, 1), (0, 2), (1, 2)], [2**30, 2**30, 2**31]),
    "unequal orders": lambda: parts_of(
        (2, 3, 2), [(0,), (0, 1, 2), (1, 2)], [2**31, 2**30, 2**30], sizes=[1, 4, 2]
    ),
    "singles": lambda: parts_of((3, 2), [(0,), (1,)], [3 * 2**30, 2**30], epsilon=2.0),
    "interactions": lambda: parts_of(
        (2, 4, 2),
        [(0, 1), (0, 1), (2,), (0, 2), (1, 2)],
        [2**30, 2**30, 2**29, 2**29, 2**30],
        sizes=[2, 4, 1, 2, 4],
        classes=[1, 2, 1, 2, 2],
    ),
    "latin squares": lambda: parts_of(
        (3, 3), [(0,), (1,), (0, 1)], [2**30, 2**30, 2**31], sizes=[1, 1, 6], classes=[1, 1, 3], epsilon=0.5
    ),
}
EPSILONS = {
    "pairs": 1.0,
    "unequal orders": 1.0,
    "singles": 2.0,
    "interactions": 1.0,
    "latin squares": 0.5,
}
DIGESTS = {
    "pairs": "539c1d4235a00a9bd14d73d804a074fc889ff5b748aa208b5da100e6d6e4e648",
    "unequal orders": "535f63e655c56d6bd428432f922b5cb08c65c43d62a750a9cdb97291e5a67a8d",
    "singles": "e592550d3e586636f986b2764c6ef1d18606ec90a1b2cabc4afd00941ae3ad50",
    "interactions": "70b55adc4fcb6fbc7ec905b9065d066bef2d96b0431c1287d7c87f5e343ae2d4",
    "latin squares": "fff4c2f2c2f3ba4fdd9483a12d4a849bdfeed048bea5d428fe4be6673f7f961a",
}


def law_of(channel: SampledParts, x: int) -> Law:
    """Of the definition: a part by its share, then its cell in with probability p and others at random."""
    law = {}
    readings = np.unravel_index(x, channel.readings)
    for number, part in enumerate(channel.parts):
        shape = [channel.readings[member] for member in part.members]
        own = int(np.ravel_multi_index([int(readings[member]) for member in part.members], shape))
        members_of = (
            subset_members(math.prod(shape), part.size, part.p_draws, own)
            if part.classes == 1
            else latin_members(shape, part.classes, part.size, part.p_draws, own)
        )
        for members, probability in members_of:
            symbol = bytes([number]) + packed(math.prod(shape), members)
            law[symbol.ljust(channel.width, b"\0")] = Fraction(part.share, WORD) * probability
    return law


def bits_of(channel: SampledParts, symbol: bytes) -> list[int]:
    """The counts that a symbol adds to: one per part, then one per cell of every part."""
    bits = [int(number == symbol[0]) for number in range(len(channel.parts))]
    for number, part in enumerate(channel.parts):
        cells = math.prod(channel.readings[member] for member in part.members)
        own = int.from_bytes(symbol[1:], "little") if number == symbol[0] else 0
        bits += [own >> cell & 1 for cell in range(cells)]
    return bits


class TestParts:
    @pytest.fixture(params=CASES)
    def name(self, request: pytest.FixtureRequest) -> str:
        return request.param

    @pytest.fixture
    def channel(self, name: str) -> SampledParts:
        return CASES[name]()

    @pytest.fixture
    def laws(self, channel: SampledParts) -> list[Law]:
        return [law_of(channel, x) for x in range(channel.inputs)]

    def test_certified_epsilon_is_that_of_the_law_in_rationals(self, name, channel, laws):
        assert all(sum(law.values()) == 1 for law in laws)
        ratio = max(max(law[s] for law in laws) / min(law[s] for law in laws) for s in laws[0])
        assert certifies(channel.epsilon, ratio)
        assert Decimal(channel.epsilon) <= Decimal(EPSILONS[name]) - Decimal(2) ** -36
        assert channel.epsilon >= EPSILONS[name] * (1 - 1e-6)

    def test_columns_are_those_of_the_law(self, channel, laws):
        for symbol in laws[0]:
            column, truth = channel.column(symbol).tolist(), [law[symbol] for law in laws]
            assert all(Fraction(w, column[0]) == t / truth[0] for w, t in zip(column, truth, strict=True))
            logs = channel.log_likelihood(symbol)
            np.testing.assert_allclose(logs, [math.log(t) for t in truth], rtol=1e-9)

    def test_divergences_are_not_below_those_of_the_law(self, channel, laws):
        blocks, nats = channel.blocks().matrix(), channel.divergence()
        for x, law in enumerate(laws):
            for other, against in enumerate(laws):
                truth = float(max(law[symbol] / against[symbol] for symbol in law))
                assert nats[x, other] == pytest.approx(math.log(truth), abs=1e-12)
                assert blocks[x, other] >= math.floor(math.log(truth) * 2**40 - 1e-3)

    def test_its_bound_is_as_far_apart_as_any_two_records(self, channel, laws):
        units = channel.bound.blocks().largest
        worst = max(math.log(float(law[s] / other[s])) for law in laws for other in laws for s in law)
        assert 0 <= units - worst * 2**40 + 0.05 < 2.1
        for symbol in laws[0]:
            high, low = channel.bound.column(symbol).tolist()
            every = [law[symbol] for law in laws]
            assert Fraction(high, low) == max(every) / min(every)

    def test_symbols_that_it_cannot_send_are_refused(self, channel, laws):
        width = channel.width
        every = [n.to_bytes(width, "little") for n in range(min(256**width, 2**18))]
        sent = [symbol for symbol in every if symbol in laws[0]]
        assert sent
        column = np.frombuffer(b"".join(every), dtype=np.uint8).reshape(-1, width)
        assert [s for s, known in zip(every, channel.contains(column), strict=True) if known] == sent
        assert [s for s in every[:4096] if channel.admits(s)] == [s for s in every[:4096] if s in laws[0]]
        for stranger in (sent[0][:-1], sent[0] + b"\0", 0, None, b"\xff" * width):
            assert not channel.admits(stranger)
            with pytest.raises(ParameterError):
                channel.part_of(stranger)

    @pytest.mark.statistical
    def test_sampled_symbols_follow_the_law(self, channel, laws):
        """n = 10^5 draws for two inputs in turn, chi-square against the law at 1e-7 each, seed 20.

        Control: the law of another input is rejected.
        """
        symbols = list(laws[0])
        index = {symbol: i for i, symbol in enumerate(symbols)}
        ends = (0, channel.inputs - 1)
        every = channel.perturb(np.tile(ends, 100_000), source=seeded(20))
        for i, x in enumerate(ends):
            kinds, times = np.unique(every[i::2], axis=0, return_counts=True)
            counts = np.zeros(len(symbols))
            counts[[index[kind.tobytes()] for kind in kinds]] = times
            assert not chi_square_rejects(counts, np.array([float(laws[x][s]) for s in symbols]))
            assert chi_square_rejects(counts, np.array([float(laws[ends[1 - i]][s]) for s in symbols]))

    @pytest.mark.statistical
    def test_an_answer_about_a_part_follows_its_law(self, channel, laws):
        """6,000 single draws about the last part, chi-square at 1e-7, seed 3; control: another input's."""
        part = len(channel.parts) - 1
        x = channel.inputs - 1
        readings = [int(each) for each in np.unravel_index(x, channel.readings)]
        cell, source = channel.cell_of(part, readings), seeded(3)
        symbols = [symbol for symbol in laws[0] if symbol[0] == part]
        index = {symbol: i for i, symbol in enumerate(symbols)}
        drawn = [index[channel.answer(part, cell, source=source)] for _ in range(6_000)]
        counts = np.bincount(drawn, minlength=len(symbols)).astype(float)
        for law, differs in ((laws[x], False), (laws[0], True)):
            chances = np.array([float(law[symbol]) for symbol in symbols])
            assert chi_square_rejects(counts, chances / chances.sum()) == differs

    def test_counts_are_reports_of_parts_and_then_of_cells(self, channel):
        drawn = channel.perturb(np.arange(600) % channel.inputs, source=seeded(5))
        cells = np.array([bits_of(channel, row.tobytes()) for row in drawn])
        for n in (0, 1, 600):
            counts = channel.tally(drawn[:n])
            assert counts.tolist() == cells[:n].sum(axis=0).tolist()
            assert channel.agrees(counts, n)
        wrong = counts.copy()
        wrong[len(channel.parts)] += 1
        assert not channel.agrees(wrong, 600)
        assert not channel.agrees(counts, 601)

    def test_expected_counts_are_the_crowd_s_mixture_of_laws(self, channel, laws):
        shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
        mixed = np.zeros(channel.bins)
        for share, law in zip(shares, laws, strict=True):
            for symbol, probability in law.items():
                mixed += share * float(probability) * np.array(bits_of(channel, symbol))
        np.testing.assert_allclose(channel.expected(shares), mixed, rtol=1e-12)

    def test_tosses_pick_parts_by_their_shares(self, channel):
        ends = np.cumsum([0, *(part.share for part in channel.parts)]).tolist()
        for part, (first, after) in enumerate(itertools.pairwise(ends)):
            assert channel.part_at(first) == channel.part_at(after - 1) == part

    def test_its_description_is_what_it_was(self, name, channel):
        assert digest_of(channel) == DIGESTS[name]

    def test_description_survives_the_wire_and_nothing_else_does(self, channel):
        spec = channel.to_spec()
        assert channel_from_spec(msgpack.unpackb(msgpack.packb(spec))) == channel
        for key in spec:
            for value in (None, 0.5, True, -1, 0, "x", [], [0.5], [*([1] * 40)]):
                with pytest.raises((WireError, ParameterError)):
                    channel_from_spec({**spec, key: value})


@pytest.mark.parametrize(
    ("shape", "classes", "band", "epsilon", "variance"),
    [
        ((2, 2), 2, 1, 1.0, 1.170674),
        ((3, 3), 3, 1, 1.0, 6.702340),
        ((4, 4), 4, 1, 1.0, 18.689002),
        ((3, 6), 3, 1, 2.0, 5.998849),
    ],
)
def test_an_interaction_tells_what_was_derived(shape, classes, band, epsilon, variance):
    """The summed variance of a report's component, by all latin sets; stated to six digits."""
    cells = math.prod(shape)
    oracle = subset_selection(cells, epsilon=epsilon, size=band * cells // classes)
    latin = LatinSelection(shape, classes, oracle.size, oracle.p_draws)
    held = np.array([[z in each for z in range(cells)] for each in latin_sets(shape, classes, band)])
    free, p = math.prod(r - 1 for r in shape), oracle.p_draws / WORD
    scores = (held - band / classes) * (free / cells) / (p - band / classes)
    assert len(held) * cells * variance == pytest.approx(cells * (scores**2).sum(), rel=1e-6)
    assert free / (told_by(latin) * cells) == pytest.approx(variance, rel=1e-6)


LATIN = [((2, 2), 2, 1), ((3, 3), 3, 2), ((2, 4), 2, 1), ((4, 4), 4, 2), ((4, 4), 4, 3), ((5, 5), 5, 2)]


@pytest.mark.parametrize(("shape", "classes", "band"), LATIN)
def test_an_interaction_is_estimated_without_bias_and_nothing_else_is_told_in_rationals(shape, classes, band):
    """Of every true cell: the mean of (held - t)(D / R)/(P - t) is the cell's own interaction, exactly."""
    cells, t = math.prod(shape), Fraction(band, classes)
    size = band * cells // classes
    p_draws = subset_selection(cells, epsilon=1.0, size=size).p_draws
    latin = LatinSelection(shape, classes, size, p_draws)
    scale = Fraction(math.prod(r - 1 for r in shape), cells) / (Fraction(p_draws, WORD) - t)
    support = latin.levels[0].support
    assert (support.q, 1 / (support.p - support.q)) == (t, scale)
    places = list(itertools.product(*map(range, shape)))
    sets = latin_sets(shape, classes, band)
    for x, (u, v) in enumerate(places[: shape[1] + 2]):
        inside = sum(x in members for members in sets)
        odds = [Fraction(p_draws, WORD) / inside, (1 - Fraction(p_draws, WORD)) / (len(sets) - inside)]
        held = [sum(odds[x not in members] for members in sets if z in members) for z in range(cells)]
        due = [
            (int(u == i) - Fraction(1, shape[0])) * (int(v == j) - Fraction(1, shape[1])) for i, j in places
        ]
        assert [(chance - t) * scale for chance in held] == due
        ratio = odds[0] / odds[1]
        assert certifies(latin.epsilon, ratio) and Fraction(*latin.odds) == ratio
        logs = latin.log_likelihood(packed(cells, sets[0]))
        assert logs[x] == pytest.approx(math.log(odds[x not in sets[0]]), rel=1e-12)


@pytest.mark.parametrize(("shape", "classes", "band"), LATIN)
def test_every_attempt_that_is_kept_draws_every_set_equally_often(shape, classes, band):
    """All remainders of an attempt's words, below its limits: each set in, or out, comes up equally often."""
    cells = math.prod(shape)
    size = band * cells // classes
    p_draws = subset_selection(cells, epsilon=1.0, size=size).p_draws
    latin = LatinSelection(shape, classes, size, p_draws)
    ranges = [many for r in shape for many in range(r, 1, -1)] + [band * (classes - band)]
    assert latin.limits.tolist() == [WORD, *(WORD // many * many for many in ranges)]
    rest = np.array(list(itertools.product(*map(range, ranges))), dtype=np.uint32)
    rest += np.array([WORD // many * many - many for many in ranges], dtype=np.uint32)
    sets = latin_sets(shape, classes, band)
    x = cells - 2
    for coin, inside in ((p_draws - 1, True), (p_draws, False)):
        words = np.concatenate([np.full((len(rest), 1), coin, dtype=np.uint32), rest], axis=1)
        drawn = np.zeros((len(rest), cells), dtype=np.bool_)
        latin.fill(np.full(len(rest), x), words, drawn)
        found, times = np.unique(drawn, axis=0, return_counts=True)
        assert sorted(tuple(np.flatnonzero(each).tolist()) for each in found) == [
            members for members in sets if (x in members) == inside
        ]
        assert len(set(times.tolist())) == 1


@pytest.mark.parametrize(("shape", "classes", "band"), [((4, 4), 2, 1), ((5, 5), 5, 2), ((2, 4), 2, 1)])
def test_every_row_and_column_of_a_drawn_set_has_its_share_and_a_forged_one_without_is_refused(
    shape, classes, band
):
    cells = math.prod(shape)
    oracle = subset_selection(cells, epsilon=1.0, size=band * cells // classes)
    latin = LatinSelection(shape, classes, oracle.size, oracle.p_draws)
    drawn = latin.perturb(np.arange(600) % cells, source=seeded(1))
    tables = np.unpackbits(drawn, axis=1, count=cells, bitorder="little").reshape(-1, *shape)
    assert (tables.sum(axis=2) * classes == shape[1] * band).all()
    assert (tables.sum(axis=1) * classes == shape[0] * band).all()
    known = {packed(cells, members) for members in latin_sets(shape, classes, band)}
    assert {row.tobytes() for row in drawn} <= known
    forged = tables[0].copy()
    forged[0, [forged[0].argmax(), forged[0].argmin()]] = 0, 1  # of its size, and its rows as they must be
    assert latin.admits(drawn[0].tobytes())
    assert not latin.admits(np.packbits(forged, bitorder="little").tobytes())
    assert latin.tally(drawn).sum() == 600 * oracle.size and latin.agrees(latin.tally(drawn), 600)
    moved = latin.tally(drawn)
    moved[[0, 1]] += 1, -1
    assert not latin.agrees(moved, 600)


@pytest.mark.parametrize(
    ("readings", "parts"),
    [
        ((2,), [SampledPart((0,), WORD, 1, 3 * 2**30)]),
        ((2, 2), [SampledPart((0,), WORD, 1, 3 * 2**30)]),
        ((2, 2), [SampledPart((1, 0), WORD, 1, 3 * 2**30)]),
        ((2, 2), [SampledPart((0, 2), WORD, 1, 3 * 2**30)]),
        ((2, 2), [SampledPart((0, 1), WORD - 1, 1, 3 * 2**30)]),
        ((2, 2), [SampledPart((0, 1), WORD, 1, 3 * 2**30), SampledPart((0,), 0, 1, 3 * 2**30)]),
        ((2, 2), [SampledPart((0, 1), 2**31, 1, 3 * 2**30), SampledPart((0, 1), 2**31, 1, 3 * 2**30)]),
        ((4, 4), [SampledPart((0, 1), 2**31, 4, 2**31, 4), SampledPart((0, 1), 2**31, 8, 3 * 2**30, 2)]),
        ((4, 6), [SampledPart((0, 1), WORD, 8, 3 * 2**30, 3)]),
        ((4, 4), [SampledPart((0, 1), WORD, 6, 3 * 2**30, 4)]),
        ((2, 2, 2), [SampledPart((0, 1, 2), WORD, 4, 3 * 2**30, 2)]),
    ],
)
def test_parts_that_do_not_make_a_channel_are_refused(readings, parts):
    with pytest.raises(ParameterError):
        SampledParts(readings, parts)


def test_a_product_of_any_size_is_taken_and_only_its_whole_is_refused():
    readings = (10, 8, 17, 8, 15, 6, 3, 6, 3, 3)
    pairs = [(i, j) for i in range(10) for j in range(i + 1, 10)]
    shares = [WORD // 45] * 44
    channel = parts_of(readings, pairs, [*shares, WORD - sum(shares)])
    assert channel.inputs == math.prod(readings) > 10**8
    assert channel.bins == 45 + sum(readings[i] * readings[j] for i, j in pairs)
    drawn = channel.perturb(np.array([0, channel.inputs - 1]), source=seeded(1))
    assert channel.contains(drawn).all()
    with pytest.raises(ParameterError, match="entries"):
        channel.blocks()
    with pytest.raises(ParameterError):
        channel.cell_of(0, [10] * 10)


def test_cells_of_all_parts_are_bounded_before_any_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A description of a hundred large parts is a few kilobytes."""
    monkeypatch.setattr(bundle_channel, "SubsetSelection", None)
    parts = [
        SampledPart(members, 2**32 // 5, 19**4 - 1, 2**32 - 1)
        for members in itertools.combinations(range(5), 4)
    ]
    parts[0] = replace(parts[0], share=2**32 - 4 * (2**32 // 5))
    with pytest.raises(ParameterError, match="cells together"):
        SampledParts([19] * 5, parts)
