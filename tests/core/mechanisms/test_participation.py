"""A participation coin is a channel, p M + (1 - p) C: sampled, certified, reserved, estimated as such."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from devices import AGREED, VISIT_COUNT, Clock, Collector, opener
from set_contract import Law, levels_law, subset_law, unary_law
from surveys import LABELS, START_S, VISITS

from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError, SurveyError
from hubbub.estimation import estimator_for
from hubbub.filter import BayesianFilter
from hubbub.mechanisms.participation import with_dummy_reports
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_authoring import mechanisms as m
from hubbub_client import Agent

PLAIN = {
    "grr": m.grr(5, epsilon=1.0),
    "pbgrr": m.pbgrr([3, 4, 1], epsilon=2.0, boost_epsilon=1.0),
    "category": m.pbgrr([3, 4, 1], epsilon=2.0, boost_epsilon=0.0),
    "local hashing": m.local_hashing(8, epsilon=1.0, buckets=3),
    "levels": m.levels([3, 4, 1], epsilon=1.0, oracles="grr"),
    "boosted": m.boosted(6, epsilon=2.0, kernel="uniform"),
}


def even_subsets(channel: m.SubsetSelection) -> Law:
    """Each of C(K, d) sets as likely."""
    law = subset_law(channel, 0)
    return {symbol: Fraction(1, len(law)) for symbol in law}


def bits_at_the_other_rate(channel: m.Unary) -> Law:
    """Unary encoding of a value that is none of the K."""
    other = Fraction(channel.q_draws, 2**31)
    return {
        symbol: other ** int.from_bytes(symbol, "little").bit_count()
        * (1 - other) ** (channel.inputs - int.from_bytes(symbol, "little").bit_count())
        for symbol in unary_law(channel, 0)
    }


def even_subsets_of_levels(channel: m.SetLevels) -> Law:
    """The level as ever, its sets all as likely."""
    law, depth = levels_law(channel, 0), len(channel.shares)
    named = [int.from_bytes(symbol, "little") % 2**depth for symbol in law]
    return {
        symbol: Fraction(channel.shares[level.bit_length() - 1], 2**32) / named.count(level)
        for symbol, level in zip(law, named, strict=True)
    }


SETS = {
    "subset": (m.subset_selection(6, epsilon=1.0, size=2), subset_law, even_subsets),
    "unary": (m.unary(5, epsilon=1.0), unary_law, bits_at_the_other_rate),
    "levels": (m.levels([3, 4, 1], epsilon=0.5), levels_law, even_subsets_of_levels),
}
SHARES = [Fraction(1, 1000), Fraction(1, 4), Fraction(4, 5), Fraction(999, 1000)]


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_every_entry_is_the_mixture_to_the_last_integer(name: str, share: Fraction) -> None:
    plain = PLAIN[name]
    mixed = with_dummy_reports(plain, participation=share)
    for x in range(plain.inputs):
        for y in range(plain.outputs):
            expected = share * Fraction(plain.weight(x, y), plain.total) + (1 - share) / plain.outputs
            assert Fraction(mixed.weight(x, y), mixed.total) == expected
    assert mixed.epsilon < plain.epsilon


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "boosted"])
def test_a_structured_channel_keeps_its_structure(name: str) -> None:
    mixed = with_dummy_reports(PLAIN[name], participation=Fraction(1, 2))
    assert type(mixed) is type(PLAIN[name])
    assert channel_from_spec(mixed.to_spec()) == mixed


def test_all_draws_of_a_small_channel_give_the_mixture() -> None:
    """3 inputs, weights 3 and 1 of 5; at p = 1/2 they are 7 and 4 of 15, counted over all fifteen draws."""
    mixed = with_dummy_reports(m.GRR(3, 3, 1), participation=Fraction(1, 2))
    assert mixed.total == 15
    for value in range(3):
        counts = Counter(mixed.select(value, draw) for draw in range(15))
        assert counts == {symbol: 7 if symbol == value else 4 for symbol in range(3)}


@pytest.mark.parametrize("name", PLAIN)
def test_the_filter_reserves_and_records_what_is_seen(name: str) -> None:
    plain = PLAIN[name]
    mixed = with_dummy_reports(plain, participation=Fraction(1, 2))
    budget = BayesianFilter(10.0)
    ticket = budget.reserve("a", mixed)
    assert ticket is not None
    assert budget.committed == pytest.approx(mixed.epsilon, abs=1e-9)
    assert budget.committed < plain.epsilon
    budget.record(ticket, 0)
    column = mixed.log_likelihood(0)
    assert budget.loss == pytest.approx(column.max() - column.min(), abs=1e-9)


@pytest.mark.parametrize("name", PLAIN)
def test_estimates_are_of_the_people_not_of_the_coin(name: str) -> None:
    """Fed with exact expectations, the estimator returns the exact shares, whatever the coin's."""
    mixed = with_dummy_reports(PLAIN[name], participation=Fraction(3, 4))
    sizes = [3, 4, 1] if mixed.inputs == 8 else [mixed.inputs - 1, 1]
    category_of = np.repeat(np.arange(len(sizes)), sizes)
    shares = np.arange(1.0, mixed.inputs + 1)
    shares /= shares.sum()
    estimator = estimator_for(mixed, category_of=category_of, points=None, missing=mixed.inputs - 1)
    counts = np.rint(mixed.expected(shares) * 10**12).astype(np.int64)
    estimate = estimator(counts, int(counts.sum()))
    expected = np.bincount(category_of, weights=shares)
    assert np.asarray(estimate.categories) == pytest.approx(expected, abs=1e-6)


def test_certain_participation_changes_nothing() -> None:
    assert with_dummy_reports(PLAIN["grr"], participation=Fraction(1)) is PLAIN["grr"]


@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1, 2), Fraction(3, 2), Fraction(1, 3)])
def test_a_share_that_is_none_is_refused(share: Fraction) -> None:
    with pytest.raises(ParameterError, match="participation must be thousandths"):
        with_dummy_reports(PLAIN["grr"], participation=share)


def test_a_total_with_no_room_is_refused() -> None:
    wide = DenseChannel(np.array([[2**61, 2**60], [2**60, 2**61]]))
    with pytest.raises(ParameterError, match="below 2\\^63"):
        with_dummy_reports(wide, participation=Fraction(1, 2))


def survey(share: object, text: str = VISITS) -> Survey:
    return Survey.parse(text.replace("[mechanism]", f"[mechanism]\nparticipation = {share}"))


def test_a_survey_with_a_coin_is_a_plain_survey_with_another_channel() -> None:
    plain, coined = Survey.parse(VISITS), survey(0.5)
    assert coined.channel == with_dummy_reports(plain.channel, participation=Fraction(1, 2))
    assert coined.epsilon == plain.epsilon > coined.channel.epsilon
    assert Survey.from_canonical(coined.canonical) == coined
    assert survey(1) == plain and survey(1).digest == plain.digest


@pytest.mark.parametrize("share", [0, -0.5, 1.5, 0.0001, '"half"', "nan", "true"])
def test_a_survey_whose_share_is_none_is_refused(share: object) -> None:
    with pytest.raises(SurveyError, match=r"mechanism\.participation"):
        survey(share)


@pytest.mark.parametrize("mechanism", ["subset", "unary", "local_hashing"])
def test_a_survey_of_any_mechanism_may_have_a_coin(mechanism: str) -> None:
    plain, coined = (survey(share, LABELS.replace('"grr"', f'"{mechanism}"')) for share in (1, 0.5))
    assert type(coined.channel) is type(plain.channel)
    assert coined.channel == with_dummy_reports(plain.channel, participation=Fraction(1, 2))
    assert Survey.from_canonical(coined.canonical) == coined


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize("name", SETS)
def test_a_set_is_an_answer_or_cover_and_answers_come_as_often_as_declared(
    name: str, share: Fraction
) -> None:
    """The whole law of the mixture is q M + (1 - q) C for one q, below p by less than a step of the coin."""
    plain, law_of, cover_of = SETS[name]
    mixed = with_dummy_reports(plain, participation=share)
    assert type(mixed) is type(plain)
    assert channel_from_spec(mixed.to_spec()) == mixed
    assert mixed.epsilon < plain.epsilon
    cover, shares = cover_of(plain), set()
    for x in range(plain.inputs):
        alone, seen = law_of(plain, x), law_of(mixed, x)
        assert set(seen) == set(alone) == set(cover)
        for symbol, chance in seen.items():
            if alone[symbol] != cover[symbol]:
                shares.add((chance - cover[symbol]) / (alone[symbol] - cover[symbol]))
            else:
                assert chance == cover[symbol]
    assert all(0 <= share - answered < Fraction(1, 2**28) for answered in shares)
    assert len(shares) <= (len(plain.levels) if name == "levels" else 1)


@pytest.mark.parametrize("name", SETS)
def test_sets_are_estimated_through_the_coin(name: str) -> None:
    plain = SETS[name][0]
    mixed = with_dummy_reports(plain, participation=Fraction(3, 4))
    shares = np.arange(1.0, mixed.inputs + 1) / sum(range(mixed.inputs + 1))
    found, sharper = (estimator_for(c).expected_estimate(shares, 1000) for c in (mixed, plain))
    np.testing.assert_allclose(found.values, shares, atol=1e-12)
    assert (found.value_errors > sharper.value_errors).all()


@pytest.mark.parametrize("name", SETS)
def test_the_filter_charges_for_the_set_that_was_seen(name: str) -> None:
    mixed = with_dummy_reports(SETS[name][0], participation=Fraction(1, 2))
    budget = BayesianFilter(10.0)
    ticket = budget.reserve("a", mixed)
    assert ticket is not None
    assert budget.committed == pytest.approx(mixed.epsilon, abs=1e-9)
    symbol = mixed.perturb(1, source=seeded(3))
    budget.record(ticket, symbol)
    column = mixed.log_likelihood(symbol)
    assert budget.loss == pytest.approx(column.max() - column.min(), abs=1e-9)


def test_a_coin_that_leaves_nothing_to_tell_is_refused() -> None:
    for channel in (m.SubsetSelection(10, 3, 1288490190), m.Unary(10, 1001, 1000)):
        with pytest.raises(ParameterError, match="participation must leave"):
            with_dummy_reports(channel, participation=Fraction(1, 1000))


def test_an_agent_memoises_the_coin_with_the_symbol_and_pays_for_what_is_seen(tmp_path) -> None:
    coined = survey(0.5, VISITS.replace("rounds = 2", "rounds = 9"))
    clock, collector = Clock(START_S + 10), Collector()
    with opener(tmp_path, clock, collector) as make:
        agent = make()
        agent.set("visits", 3)
        assert agent.enrol(coined).accepted
        assert agent.status().committed == pytest.approx(coined.channel.epsilon, abs=1e-9)
        for number in range(9):
            clock.now_s = coined.round_start_s(number)
            agent.answer()
            agent.upload()
        assert len({report.symbol for report in collector.received}) == 1
        assert len(collector.received) == 9
        # Whole quanta, rounded outwards: up to one for the answer and one for its ticket.
        assert agent.status().loss <= coined.channel.epsilon + 2.0**-39


@pytest.mark.parametrize("kind", ["static", "evolving"])
def test_a_coin_that_fell_is_not_thrown_again(tmp_path, kind: str) -> None:
    """Answer, fail to send, restart, send: the same bytes, whatever the coin said; and nothing says what."""
    coined = survey(0.05, VISITS.replace('kind = "static"', f'kind = "{kind}"'))
    attribute = replace(VISIT_COUNT, kind=kind)
    clock, collector = Clock(START_S + 10), Collector()
    for attempt in range(12):  # of a coin that says cover 19 times in 20
        folder = tmp_path / str(attempt)
        folder.mkdir()
        collector.bodies.clear()
        reply, collector.reply = collector.reply, lambda _: None
        with Agent(folder / "l.db", "", budget=9.0, policy=AGREED, clock=clock, http=collector) as agent:
            agent.register(attribute)
            agent.set("visits", 3)
            assert agent.enrol(coined).accepted
            reserved = (1 if kind == "static" else 2) * coined.channel.epsilon
            assert agent.status().committed == pytest.approx(reserved, abs=1e-9)
            agent.answer()
            agent.upload()
            loss = agent.status().loss
        collector.reply = reply
        clock.now_s += 3600
        with Agent(folder / "l.db", "", budget=9.0, policy=AGREED, clock=clock, http=collector) as agent:
            assert agent.answer() == ()
            agent.upload()
            assert agent.status().loss == loss <= coined.channel.epsilon + 1e-9
        clock.now_s -= 3600
        first, second = collector.bodies
        assert first == second


def test_a_ledger_has_no_place_for_a_coin(tmp_path) -> None:
    """Whoever reads the device's file learns the symbol, and not whether it is an answer or cover."""
    with opener(tmp_path, Clock(START_S + 10), Collector()) as make:
        coined, plain = survey(0.5), survey(1)
        agent = make()
        agent.set("visits", 3)
        rows = {}
        for each in (coined, plain):
            agent.enrol(each)
            agent.answer()
            rows[each] = [row for row in agent._ledger.transcript() if row.digest == each.digest]
        assert [row.kind for row in rows[coined]] == [row.kind for row in rows[plain]]
        assert all(row.symbol is None or type(row.symbol) is int for row in rows[coined])


def ordinary(seed: int, count: int) -> list[m.PBGRR]:
    """PB-GRR channels of 2 to 12 categories of 1 to 40 values, at epsilons of 0.5 to 6."""
    draw = np.random.default_rng(seed)
    found = []
    while len(found) < count:
        sizes = draw.integers(1, 41, size=draw.integers(2, 13)).tolist()
        epsilon = draw.uniform(0.5, 6.0)
        found.append(m.pbgrr(sizes, epsilon=epsilon, boost_epsilon=draw.uniform(0.1, epsilon)))
    return found


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(999, 1000), Fraction(1, 1000)], ids=str)
def test_ordinary_channels_take_a_coin_whatever_their_total(share: Fraction) -> None:
    """63 of 200 were refused: their totals near 2^63 left no room. The mixture is checked entry by entry."""
    for channel in ordinary(7, 200):
        mixed = with_dummy_reports(channel, participation=share)
        assert mixed.total < 2**63
        even = (1 - share) / channel.outputs
        for x in {0, channel.inputs // 2, channel.inputs - 1}:
            for y in {0, x, channel.outputs - 1}:
                before = Fraction(int(channel.column(y)[x]), channel.total)
                after = Fraction(int(mixed.column(y)[x]), mixed.total)
                # A total of 2^63/(1000 K) rounds weights of at least T/(K e^6): to 2^-20 of each.
                assert abs(after - (share * before + even)) <= Fraction(1, 2**20) * after
        for y in range(0, channel.outputs, max(1, channel.outputs // 5)):
            column, own = mixed.column(y), channel.column(y)
            odds = Fraction(int(column.max()), int(column.min()))
            assert odds < Fraction(int(own.max()), int(own.min()))
        assert mixed.epsilon < channel.epsilon


@pytest.mark.parametrize("name", ["grr", "category", "local hashing", "levels"])
def test_a_channel_of_any_kind_with_a_wide_total_takes_a_coin(name: str) -> None:
    plain = PLAIN[name]
    wide = channel_from_spec(
        {
            key: [w * (2**62 // plain.total) for w in value]
            if key in ("t", "u", "o") and isinstance(value, list)
            else value * (2**62 // plain.total)
            if key in ("t", "u", "o")
            else value
            for key, value in plain.to_spec().items()
        }
    )
    assert wide.total > 2**61
    mixed = with_dummy_reports(wide, participation=Fraction(1, 2))
    expected = with_dummy_reports(plain, participation=Fraction(1, 2))
    assert mixed.epsilon <= with_dummy_reports(plain, participation=Fraction(1, 2)).epsilon + 1e-9
    assert mixed.epsilon == pytest.approx(expected.epsilon, rel=1e-9)
