import math

import numpy as np
import pytest

from hubbub import filter as accounting
from hubbub.channels import UNIT, BlockDivergence
from hubbub.channels.finite import DenseChannel
from hubbub.errors import BudgetError, ParameterError
from hubbub.filter import MAX_BUDGET, BayesianFilter, Joint, Query
from hubbub_authoring import mechanisms as m


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-6)


def state(accountant: BayesianFilter) -> tuple:
    return accountant.loss, accountant.committed, accountant.headroom, accountant.pending


# What is reserved.


def test_a_second_query_is_refused_while_the_first_could_still_be_at_its_worst():
    accountant = BayesianFilter(1.0)
    channel = m.grr(4, epsilon=0.6)
    assert accountant.reserve("age", channel) == 0
    assert accountant.committed == near(0.6)
    assert accountant.loss == 0.0
    assert accountant.reserve("age", channel) is None
    assert accountant.reserve("another value of the same record", channel) is None


def test_what_an_answer_did_not_realise_comes_back():
    # Two opposite answers to one GRR cancel: afterwards nobody knows more than before.
    accountant = BayesianFilter(1.0)
    channel = m.grr(2, epsilon=0.5)
    first, second = accountant.reserve("age", channel), accountant.reserve("age", channel)
    assert accountant.committed == near(1.0)
    assert accountant.reserve("age", channel) is None
    accountant.record(first, 0)
    assert accountant.committed == near(1.0)
    accountant.record(second, 1)
    assert accountant.committed == accountant.loss == near(0.0)
    assert accountant.reserve("age", m.grr(2, epsilon=0.99)) == 2


def test_three_queries_of_three_tenths_lose_nine_tenths_and_no_more_of_one():
    # A budget is not always used up: the fourth could reach 1.2.
    accountant = BayesianFilter(1.0)
    channel = m.grr(5, epsilon=0.3)
    for _ in range(3):
        accountant.record(accountant.reserve("age", channel), 2)
    assert accountant.loss == near(0.9)
    assert accountant.reserve("age", channel) is None


def test_losses_of_different_values_add():
    accountant = BayesianFilter(1.0)
    channel = m.grr(3, epsilon=0.4)
    accountant.record(accountant.reserve("age", channel), 0)
    accountant.record(accountant.reserve("height", channel), 1)
    assert accountant.loss == near(0.8)
    assert accountant.reserve("height", channel) is None


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7, 10, 100])
@pytest.mark.parametrize("spread", ["one value", "many values"])
def test_declared_epsilons_that_add_up_to_the_budget_fit_it(parts, spread):
    accountant = BayesianFilter(1.0)
    channel = m.pbgrr([1, 3, 2], epsilon=1 / parts, boost_epsilon=0.5 / parts)
    queries = [Query(0 if spread == "one value" else i, channel) for i in range(parts)]
    assert accountant.reserve_all(queries) == tuple(range(parts))
    assert 1.0 - 1e-5 < accountant.committed <= 1.0


def test_dense_and_boosted_channels_fit_their_declared_epsilon_exactly():
    for channel in (
        m.boosted(9, epsilon=0.5, boost=0.3, region=m.Absolute(1)),
        m.integerise(np.array([[0.6, 0.4], [0.4, 0.6]]), epsilon=0.5),
    ):
        assert BayesianFilter(1.0).reserve_all([Query("a", channel)] * 2) == (0, 1)
        assert BayesianFilter(0.5).reserve("a", channel) == 0


def test_a_schedule_is_reserved_whole_or_not_at_all():
    accountant = BayesianFilter(1.0)
    channel = m.grr(3, epsilon=0.3)
    assert accountant.reserve_all([Query(day, channel) for day in range(4)]) is None
    assert state(accountant) == (0.0, 0.0, 1.0, ())
    assert accountant.reserve_all([Query(day, channel) for day in range(3)]) == (0, 1, 2)
    assert accountant.pending == (0, 1, 2)
    assert accountant.reserve_all([]) == ()


def test_a_refusal_leaves_no_trace():
    accountant = BayesianFilter(1.0)
    assert accountant.reserve("age", m.grr(3, epsilon=1.5)) is None
    assert accountant.reserve("age", m.grr(8, epsilon=0.5)) == 0  # no domain was fixed, no ticket spent


def test_a_schedule_of_absurd_length_on_one_value_is_refused_without_overflow():
    channel = DenseChannel(np.array([[1, 2**62], [2**62, 1]]))  # 43 nats: 2^17 of them would wrap int64
    accountant = BayesianFilter(MAX_BUDGET)
    assert accountant.reserve_all([Query("age", channel)] * 400_000) is None
    assert accountant.committed == 0.0


# What the structure of a channel saves.


def test_grr_is_accepted_exactly_while_loss_plus_epsilon_fits():
    # For channels that are equally far apart everywhere the test is the paper's simplified one (eq. 29).
    rng = np.random.default_rng(5)
    decisions = []
    for _ in range(30):
        accountant, loss = BayesianFilter(2.0), np.zeros(4)
        for _ in range(12):
            epsilon = float(rng.uniform(0.1, 1.2))
            expected = loss.max() - loss.min() + epsilon <= 2.0
            channel = m.grr(4, epsilon=epsilon)
            ticket = accountant.reserve("age", channel)
            assert (ticket is not None) == expected
            decisions.append(expected)
            if ticket is not None:
                symbol = int(rng.integers(4))
                accountant.record(ticket, symbol)
                loss[symbol] += epsilon
                assert accountant.loss == near(loss.max() - loss.min())
    assert 50 < sum(decisions) < len(decisions) - 50


def test_pbgrr_is_accepted_where_the_sum_of_epsilons_would_refuse_it():
    # GRR said "value 0", the category channel "the other category". The recorded loss, 1.0, is between
    # 0 and 1 of one category, where the new query adds only 0.4; across, half is taken back.
    accountant = BayesianFilter(1.5)
    accountant.record(accountant.reserve("age", m.grr(4, epsilon=1.0)), 0)
    accountant.record(accountant.reserve("age", m.pbgrr([2, 2], epsilon=0.5, boost_epsilon=0.0)), 1)
    assert accountant.loss == near(1.0)
    assert accountant.reserve("age", m.grr(4, epsilon=0.6)) is None
    assert accountant.reserve("age", m.pbgrr([2, 2], epsilon=1.0, boost_epsilon=0.4)) == 2
    assert accountant.committed == near(1.5)


def test_queries_that_no_pair_feels_together_do_not_add():
    # One tells the two low values apart, by ln 3, the other the two high ones. Between a low and a high value
    # it is ln 1.5 by the one and ln 2 by the other: ln 3 as well, so two queries cost what one does.
    channel = DenseChannel(np.array([[30, 10, 20], [10, 30, 20], [20, 20, 20]]))
    accountant = BayesianFilter(1.1)
    assert accountant.reserve("age", channel, mapping=np.array([0, 1, 2, 2])) == 0
    assert accountant.reserve("age", channel, mapping=np.array([2, 2, 0, 1])) == 1
    assert accountant.committed == near(math.log(3))
    assert accountant.reserve("age", channel, mapping=np.array([0, 1, 2, 2])) is None


def test_mean_and_variance_of_one_number_reach_the_papers_losses():
    # Pan, appendix A: x and x^2 of a number in [-1, 1] by the binary channel of eq. 8 at epsilon 1 each. The
    # worst of the four answers loses 1.691376, the answers (1, 1) lose 1.413790; adding epsilons says 2.
    grid = np.linspace(-1.0, 1.0, 801)
    total = 2**40

    def binary(score: np.ndarray) -> DenseChannel:
        probability = ((math.e - 1) * score + math.e + 1) / (2 * (math.e + 1))
        ones = np.rint(probability * total).astype(np.int64)
        return DenseChannel(np.stack([total - ones, ones], axis=1))

    accountant = BayesianFilter(1.7)
    mean, variance = accountant.reserve_all([Query("x", binary(grid)), Query("x", binary(2 * grid**2 - 1))])
    assert accountant.committed == pytest.approx(1.691376, abs=2e-6)
    accountant.record(mean, 1)
    accountant.record(variance, 1)
    assert accountant.loss == pytest.approx(1.413790, abs=2e-6)


def test_values_that_a_survey_reads_as_one_are_not_told_apart_by_it():
    accountant = BayesianFilter(1.0)
    by_tens = np.array([0, 0, 0, 1, 1, 1])
    accountant.record(accountant.reserve("age", m.grr(2, epsilon=0.9), mapping=by_tens), 1)
    # Between values of one ten nothing is known, but between tens 0.9 is: 0.5 more would be 1.4.
    assert accountant.reserve("age", m.grr(6, epsilon=0.5)) is None
    accountant = BayesianFilter(1.0)
    channel = DenseChannel(np.array([[2, 2, 4], [4, 2, 2], [2, 4, 2]]))
    accountant.record(accountant.reserve("age", channel, mapping=np.array([2, 2, 2])), 0)
    assert accountant.loss == UNIT  # a domain that maps to one input has nothing to lose but the rounding


# Tickets.


def test_an_answer_is_recorded_once():
    accountant = BayesianFilter(2.0)
    ticket = accountant.reserve("age", m.grr(3, epsilon=0.5))
    accountant.record(ticket, 1)
    before = state(accountant)
    with pytest.raises(BudgetError, match="reserved and not yet recorded, got 0"):
        accountant.record(ticket, 1)
    assert state(accountant) == before


@pytest.mark.parametrize("ticket", [-1, 1, 99])
def test_a_ticket_that_was_never_issued_is_refused(ticket):
    accountant = BayesianFilter(2.0)
    accountant.reserve("age", m.grr(3, epsilon=0.5))
    with pytest.raises(BudgetError):
        accountant.record(ticket, 1)


@pytest.mark.parametrize("symbol", [-1, 3, 1000])
def test_an_unknown_symbol_consumes_nothing(symbol):
    accountant = BayesianFilter(2.0)
    ticket = accountant.reserve("age", m.grr(3, epsilon=0.5))
    with pytest.raises(ParameterError, match="symbol"):
        accountant.record(ticket, symbol)
    accountant.record(ticket, 2)


def test_a_channel_that_understates_its_divergence_cannot_record():
    class Lying(DenseChannel):
        def blocks(self) -> BlockDivergence:
            return BlockDivergence.constant(self.inputs, 3)

    accountant = BayesianFilter(1.0)
    ticket = accountant.reserve("age", Lying(np.array([[9, 1], [1, 9]])))
    before = state(accountant)
    with pytest.raises(ParameterError, match="must bound its likelihood"):
        accountant.record(ticket, 0)
    assert state(accountant) == before


# Domains and mappings.


def test_a_coordinate_keeps_its_domain():
    accountant = BayesianFilter(5.0)
    accountant.reserve("age", m.grr(3, epsilon=0.5))
    with pytest.raises(ParameterError, match="keep its 3 values, got 4"):
        accountant.reserve("age", m.grr(4, epsilon=0.5))
    with pytest.raises(ParameterError, match="keep its 5 values, got 4"):
        accountant.reserve_all(
            [Query("height", m.grr(5, epsilon=0.1)), Query("height", m.grr(4, epsilon=0.1))]
        )
    assert accountant.reserve("height", m.grr(4, epsilon=0.5)) == 1
    assert accountant.reserve("age", m.grr(4, epsilon=0.5), mapping=np.array([3, 0, 1])) == 2


@pytest.mark.parametrize("mapping", [[0, 3], [-1, 0], [], [[0, 1]], [0.0, 1.0]])
def test_a_mapping_outside_the_inputs_changes_nothing(mapping):
    accountant = BayesianFilter(5.0)
    channel = m.grr(3, epsilon=0.5)
    with pytest.raises(ParameterError, match="a mapping must"):
        accountant.reserve_all([Query("a", channel), Query("b", channel, np.array(mapping))])
    assert state(accountant) == (0.0, 0.0, 5.0, ())


def test_changing_a_mapping_afterwards_changes_no_account():
    mapping = np.array([0, 1])
    accountant = BayesianFilter(5.0)
    channel = m.grr(2, epsilon=0.5)
    ticket = accountant.reserve("age", channel, mapping=mapping)
    mapping[:] = 0
    accountant.record(ticket, 1)
    assert accountant.loss == near(0.5)
    assert accountant.reserve("age", channel, mapping=mapping) == 1
    assert accountant.committed == near(0.5)  # this one reads both values as 0


def test_a_read_only_view_of_a_changing_array_is_copied_too():
    base = np.array([0, 1])
    view = base.view()
    view.setflags(write=False)
    accountant = BayesianFilter(5.0)
    ticket = accountant.reserve("age", m.grr(2, epsilon=0.5), mapping=view)
    base[:] = 0
    accountant.record(ticket, 1)
    assert accountant.loss == near(0.5)


def test_what_is_cancelled_is_free_again_and_its_ticket_void():
    accountant, channel = BayesianFilter(1.0), m.grr(3, epsilon=0.4)
    first, second = accountant.reserve_all([Query("x", channel), Query("x", channel)])
    accountant.record(first, 1)
    accountant.cancel(second)
    assert accountant.pending == ()
    assert accountant.committed == pytest.approx(0.4, abs=1e-9)
    assert accountant.reserve("x", channel) is not None
    for ticket in (first, second, 99):
        with pytest.raises(BudgetError, match="must be reserved and not yet recorded"):
            accountant.cancel(ticket)
    with pytest.raises(BudgetError, match="must be reserved"):
        accountant.record(second, 1)


def test_a_cancelled_joint_query_leaves_what_was_said_of_its_parts():
    accountant, channel = BayesianFilter(2.0), m.grr(2, epsilon=0.5)
    accountant.record(accountant.reserve("a", channel), 1)
    before = accountant.committed
    same = np.array([[0, 1], [1, 0]])
    accountant.cancel(accountant.reserve(Joint("a", "b"), channel, mapping=same))
    assert accountant.committed == pytest.approx(before, abs=1e-9)


def test_a_finished_coordinate_still_counts_when_it_is_asked_again():
    # The only answer of a coordinate is kept as it came; a later query must find it.
    mapping = np.array([2, 0, 1])
    mapping.setflags(write=False)
    accountant = BayesianFilter(1.0)
    channel = m.grr(3, epsilon=0.5)
    for symbol, loss in ((0, 0.5), (0, 1.0)):
        accountant.record(accountant.reserve("age", channel, mapping=mapping), symbol)
        assert accountant.loss == accountant.committed == near(loss)
    assert accountant.reserve("age", m.grr(3, epsilon=0.01)) is None


# The budget.


@pytest.mark.parametrize("budget", [0, 0.0, -1.0, math.nan, math.inf, MAX_BUDGET * 1.01, "1", None])
def test_a_budget_that_is_not_a_positive_number_is_refused(budget):
    with pytest.raises(ParameterError, match="budget must be above 0"):
        BayesianFilter(budget)


def test_headroom_is_what_the_next_query_may_declare():
    accountant = BayesianFilter(1.0)
    accountant.record(accountant.reserve("age", m.grr(3, epsilon=0.25)), 1)
    assert accountant.headroom == near(0.75)
    assert accountant.budget == 1.0
    assert accountant.reserve("age", m.grr(3, epsilon=accountant.headroom)) == 1
    assert accountant.headroom >= 0.0


def test_the_budget_is_kept_to_the_last_quantum():
    channel = m.grr(3, epsilon=0.25)
    cost = channel.blocks().largest + 1
    for queries in (1, 2, 3):
        schedule = [Query("age", channel)] * queries
        assert BayesianFilter(queries * cost * UNIT).reserve_all(schedule) is not None
        assert BayesianFilter((queries * cost - 1) * UNIT).reserve_all(schedule) is None
        exact = BayesianFilter(queries * cost * UNIT)
        for _ in schedule:  # one after the other it is the same, if every answer is the same
            exact.record(exact.reserve("age", channel), 0)
        assert exact.loss > exact.budget - 2 * queries * UNIT
        short = BayesianFilter(exact.loss - UNIT)
        for _ in schedule[1:]:
            short.record(short.reserve("age", channel), 0)
        assert short.reserve("age", channel) is None


def test_public_names_of_the_filter_are_these():
    assert set(accounting.__all__) == {
        "MAX_BUDGET",
        "MAX_CELLS",
        "MAX_NUMBERS",
        "TOTAL",
        "BayesianFilter",
        "Box",
        "ConstantLaw",
        "Joint",
        "Likelihood",
        "Query",
        "Regression",
        "constant_law",
    }
    assert all(hasattr(accounting, name) for name in accounting.__all__)
