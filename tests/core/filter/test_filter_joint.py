import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from exponentials import exp_bounds
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.channels import UNITS_PER_NAT
from hubbub.channels.finite import DenseChannel
from hubbub.errors import BudgetError, ParameterError
from hubbub.filter import MAX_CELLS, BayesianFilter, Joint, Query, component
from hubbub_authoring import mechanisms as m

SLACK = Fraction(4, UNITS_PER_NAT)
SIZES = {"a": 3, "b": 2, "c": 2}
RECORDS = [dict(zip(SIZES, values, strict=True)) for values in itertools.product(*map(range, SIZES.values()))]


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-6)


def frozen(values: object) -> np.ndarray:
    array = np.array(values)
    array.setflags(write=False)
    return array


class WholeRecord:
    """Every record of SIZES beside every other, in rational numbers: no components, no quanta."""

    def __init__(self) -> None:
        self.queries: dict[int, tuple[Query, int | None]] = {}

    def row(self, query: Query, record: dict) -> list[int]:
        cell = tuple(record[key] for key in query.keys)
        inputs = query.mapping
        return query.channel.row(cell[0] if inputs is None else int(inputs[cell])).tolist()

    def ratio(self, *, pending: bool) -> Fraction:
        chosen = [pair for pair in self.queries.values() if pending or pair[1] is not None]
        rows = [[self.row(query, record) for record in RECORDS] for query, _ in chosen]
        worst = Fraction(1)
        for x, other in itertools.permutations(range(len(RECORDS)), 2):
            ratio = Fraction(1)
            for (_, symbol), table in zip(chosen, rows, strict=True):
                pairs = list(zip(table[x], table[other], strict=True))
                ratio *= max(Fraction(*pair) for pair in (pairs if symbol is None else [pairs[symbol]]))
            worst = max(worst, ratio)
        return worst


# What joining means.


def test_a_joint_query_merges_with_what_was_said_of_its_parts():
    # One bit each, then their exclusive or. The recorded loss, 1.0, is between (1, 1) and (0, 0), which agree
    # in the exclusive or; between (1, 1) and (0, 1) it is 0.5 and the query may add 0.5. So it is free.
    bit = m.grr(2, epsilon=0.5)
    either = frozen([[0, 1], [1, 0]])
    accountant = BayesianFilter(1.5)
    for key in "ab":
        accountant.record(accountant.reserve(key, bit), 1)
    assert accountant.loss == near(1.0)
    ticket = accountant.reserve(Joint("a", "b"), bit, mapping=either)
    assert accountant.committed == near(1.0)
    accountant.record(ticket, 1)
    assert accountant.loss == near(1.0)
    again = accountant.reserve("a", bit)
    accountant.record(again, 0)
    assert accountant.loss == accountant.committed == near(1.0)


def test_losses_of_components_add_and_a_joint_query_joins_them():
    channel = m.grr(2, epsilon=0.25)
    sums = frozen([[0, 0, 1], [0, 1, 1]])
    accountant = BayesianFilter(1.0)
    tickets = accountant.reserve_all(
        [Query("a", channel), Query("b", channel, frozen([0, 0, 1])), Query(Joint("a", "b"), channel, sums)]
    )
    assert tickets == (0, 1, 2)
    assert accountant.committed == near(0.75)
    assert accountant.reserve("c", m.grr(2, epsilon=0.3)) is None
    assert accountant.reserve("c", m.grr(2, epsilon=0.2)) == 3


def test_the_order_of_coordinates_is_that_of_the_mappings_axes():
    channel = m.grr(2, epsilon=0.5)
    table = frozen([[0, 1, 1], [0, 0, 1]])
    one, two = BayesianFilter(2.0), BayesianFilter(2.0)
    one.record(one.reserve("a", channel), 0)
    two.record(two.reserve("a", channel), 0)
    one.record(one.reserve(Joint("a", "b"), channel, mapping=table), 1)
    two.record(two.reserve(Joint("b", "a"), channel, mapping=frozen(table.T)), 1)
    assert one.loss == two.loss == near(1.0)
    with pytest.raises(ParameterError, match="keep its 3 values, got 2"):
        one.reserve(Joint("b", "a"), channel, mapping=table)


def test_coordinates_that_are_too_many_to_join_are_counted_apart():
    channel = m.grr(2, epsilon=0.25)
    side = 600
    assert side**2 > MAX_CELLS
    big = frozen(np.arange(side) % 2)
    pair = frozen([[0, 1], [1, 0]])
    accountant = BayesianFilter(2.0)
    accountant.reserve("a", channel, mapping=big)
    for other in ("b", "c"):
        accountant.reserve(other, channel, mapping=big)
    before = accountant.committed
    with pytest.raises(ParameterError, match=f"at most {MAX_CELLS} entries, got 360000"):
        accountant.reserve(Joint("a", "b"), channel, mapping=frozen(np.zeros((side, side), dtype=int)))
    assert accountant.committed == before
    accountant.reserve(Joint("x", "y"), channel, mapping=pair)
    accountant.reserve(Joint("a", "x"), channel, mapping=frozen(np.arange(2 * side).reshape(side, 2) % 2))
    ticket = accountant.reserve(Joint("y", "b"), channel, mapping=frozen(np.ones((2, side), dtype=int)))
    assert accountant.committed <= 6 * 0.25  # the last one, if joined, would have 600 * 600 * 4 cells
    accountant.record(ticket, 0)
    assert accountant.committed <= 5 * 0.25 + 1e-9


@pytest.mark.parametrize(
    ("coordinates", "rule"),
    [((), "two or more different"), (("a",), "two or more"), (("a", "a"), "different")],
)
def test_a_joint_query_reads_different_coordinates(coordinates, rule):
    with pytest.raises(ParameterError, match=rule):
        Joint(*coordinates)


def test_a_joint_query_needs_a_mapping_with_one_axis_per_coordinate():
    channel = m.grr(4, epsilon=0.5)
    accountant = BayesianFilter(1.0)
    with pytest.raises(ParameterError, match="must have a mapping"):
        accountant.reserve(Joint("a", "b"), channel)
    with pytest.raises(ParameterError, match="one axis per coordinate, 2, got shape"):
        accountant.reserve(Joint("a", "b"), channel, mapping=np.arange(4))
    with pytest.raises(ParameterError, match="one axis per coordinate, 1, got shape"):
        accountant.reserve("a", channel, mapping=np.arange(4).reshape(2, 2))
    assert accountant.committed == 0.0


# Closing.


def test_closing_changes_neither_loss_nor_what_is_committed():
    channel = m.grr(2, epsilon=0.4)
    accountant = BayesianFilter(2.0)
    accountant.record(accountant.reserve("round 1", channel), 0)
    accountant.record(accountant.reserve(Joint("a", "round 1"), channel, mapping=frozen([[0, 1], [1, 0]])), 1)
    accountant.reserve("a", channel)
    accountant.record(accountant.reserve("lone", channel), 0)
    before = accountant.loss, accountant.committed
    accountant.close("round 1")
    assert (accountant.loss, accountant.committed) == before
    accountant.close("lone")
    assert (accountant.loss, accountant.committed) == before
    for key in ("round 1", "lone"):
        with pytest.raises(ParameterError, match="must be open"):
            accountant.reserve(key, channel)
        with pytest.raises(ParameterError, match="in use"):
            accountant.close(key)
    accountant.record(accountant.pending[0], 0)
    assert accountant.committed == accountant.loss < before[1]


def test_a_round_closed_unanswered_stays_at_its_worst_for_good():
    channel = m.grr(2, epsilon=0.4)
    accountant = BayesianFilter(1.0)
    ticket = accountant.reserve("round 1", channel)
    accountant.close("round 1")
    assert accountant.committed == near(0.4)
    assert accountant.pending == ()
    with pytest.raises(BudgetError):
        accountant.record(ticket, 0)
    assert accountant.reserve("round 2", m.grr(2, epsilon=0.7)) is None


def test_a_joined_coordinate_with_pending_queries_is_not_closed():
    channel = m.grr(2, epsilon=0.4)
    accountant = BayesianFilter(1.0)
    ticket = accountant.reserve(Joint("a", "b"), channel, mapping=frozen([[0, 1], [1, 0]]))
    with pytest.raises(BudgetError, match="nothing pending to close, got 1"):
        accountant.close("a")
    accountant.record(ticket, 1)
    accountant.close("a")
    accountant.close("b")
    assert accountant.loss == accountant.committed == near(0.4)


def test_a_year_of_joined_rounds_keeps_to_the_cells_of_what_is_open():
    channel = m.grr(2, epsilon=0.001)
    pair = frozen(np.add.outer(np.arange(50), np.arange(10)) % 2)
    accountant = BayesianFilter(2.0)
    for round_ in range(365):
        accountant.record(accountant.reserve(Joint("static", round_), channel, mapping=pair), round_ % 2)
        accountant.close(round_)
    assert len(accountant._components) == 1
    (left,) = accountant._components.values()
    assert left.shape == (50,)
    # The round's own value is unknown: any of the two answers fits any static value.
    assert accountant.loss == near(0.365)


# Whole games against brute force over all pairs of records.

KEYS = st.sampled_from(["a", "b", "c"])


@st.composite
def queries(draw: st.DrawFn) -> Query:
    keys = draw(st.lists(KEYS, min_size=1, max_size=3, unique=True))
    kind = draw(st.sampled_from(["grr", "pbgrr", "dense"]))
    if kind == "grr":
        channel = m.grr(draw(st.integers(2, 4)), epsilon=draw(st.sampled_from([0.2, 0.5, 1.0])))
    elif kind == "pbgrr":
        channel = m.pbgrr([1, 2, 2], epsilon=0.8, boost_epsilon=draw(st.sampled_from([0.0, 0.3])))
    else:
        channel = DenseChannel(np.array([[5, 3, 2], [3, 3, 4], [2, 5, 3]]))
    shape = tuple(SIZES[key] for key in keys)
    size = math.prod(shape)
    cells = draw(st.lists(st.integers(0, channel.inputs - 1), min_size=size, max_size=size))
    return Query(keys[0] if len(keys) == 1 else Joint(*keys), channel, frozen(np.reshape(cells, shape)))


@settings(max_examples=120, deadline=None)
@given(
    st.lists(queries(), min_size=2, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(["ask", "answer", "close"]), st.integers(0, 9), st.integers(0, 9)),
        max_size=10,
    ),
    st.sampled_from([0.8, 1.5, 3.0]),
)
def test_joined_games_are_exact_against_all_pairs_of_records(menu, moves, budget):
    accountant, exact, again = BayesianFilter(budget), WholeRecord(), BayesianFilter(budget)
    closed: set[str] = set()
    for kind, one, two in moves:
        before = accountant.committed
        if kind == "ask":
            query = menu[one % len(menu)]
            if closed & set(query.keys):
                continue
            tickets = accountant.reserve_all([query])
            if tickets is None:
                exact.queries[-1] = query, None
                assert (
                    exact.ratio(pending=True) > exp_bounds(Fraction(budget) - len(exact.queries) * SLACK)[0]
                )
                del exact.queries[-1]
            else:
                exact.queries[tickets[0]] = query, None
                assert again.reserve_all([query]) == tickets
        elif kind == "answer" and accountant.pending:
            ticket = accountant.pending[one % len(accountant.pending)]
            query = exact.queries[ticket][0]
            symbol = two % query.channel.outputs
            accountant.record(ticket, symbol)
            again.record(ticket, symbol)
            exact.queries[ticket] = query, symbol
            assert accountant.committed <= before
        elif kind == "close":
            key = "abc"[one % 3]
            waiting = any(key in query.keys and symbol is None for query, symbol in exact.queries.values())
            if key in accountant._components and not waiting:
                numbers = accountant.loss, accountant.committed
                accountant.close(key)
                again.close(key)
                closed.add(key)
                assert (accountant.loss, accountant.committed) == numbers
        spare = len(exact.queries) * SLACK
        for pending, said in ((True, accountant.committed), (False, accountant.loss)):
            truth = exact.ratio(pending=pending)
            assert truth <= exp_bounds(Fraction(said))[0]
            assert truth >= exp_bounds(Fraction(said) - spare)[0]
        assert (again.loss, again.committed) == (accountant.loss, accountant.committed)
    assert accountant.committed <= budget


def test_a_lifetime_of_answers_after_a_closed_round_understates_nothing(monkeypatch):
    """Scores are shifted down long before int64 ends: the best and the worst of a closed value alike.

    The threshold is lowered from 2^60 quanta, some 40,000 answers away, to two answers.
    """
    both = DenseChannel(np.array([[10, 30], [20, 20], [30, 10], [15, 25]]))
    one = DenseChannel(np.array([[2**40, 2**40 + 2**20], [2**40 + 2**20, 2**40]]))

    def lived():
        accountant = BayesianFilter(50.0)
        query = Query(Joint("birth year", "round 0"), both, np.arange(4).reshape(2, 2))
        (ticket,) = accountant.reserve_all([query])
        accountant.record(ticket, 0)
        accountant.close("round 0")
        for answer in range(7):
            accountant.record(accountant.reserve("birth year", one), answer % 2)
        return accountant.loss, accountant.committed

    loss, committed = lived()
    assert loss >= math.log(3)  # of the closed round alone: row 2 against row 0
    monkeypatch.setattr(component, "TOP", 60 * UNITS_PER_NAT)
    assert lived() == (loss, committed)


def test_waiting_queries_hold_no_array_of_the_cells_of_a_later_table():
    # A hundred questions about a, then one about a and b: 65,536 cells, half a MiB an array.
    accountant, generator = BayesianFilter(100.0), np.random.default_rng(10)
    waiting = [
        accountant.reserve("a", m.grr(8, epsilon=0.1), mapping=frozen(generator.integers(0, 8, 256)))
        for _ in range(100)
    ]
    table = np.zeros((256, 256), dtype=np.int8)
    table[:128] = 1
    tracemalloc.start()
    try:
        assert accountant.reserve(Joint("a", "b"), m.grr(2, epsilon=1.0), mapping=frozen(table)) == 100
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 24 << 20
    assert 10.5 < accountant.committed < 11.0  # no two values differ for all questions
    for ticket in waiting[:50]:
        accountant.record(ticket, 3)
    for ticket in waiting[50:]:
        accountant.cancel(ticket)
    assert accountant.committed == near(accountant.loss + 1.0)
