"""The (epsilon, delta) filter against every adaptive adversary of a small game, exactly.

One bit is asked by randomised response of two strengths. The record 1 and the record 0 are compared; what an
adversary gains is E[max(0, 1 - e^(epsilon - loss))] under record 1, the least delta that its transcripts
allow. The best adversary is found by going backwards through all positions, each of which is a real filter.
"""

import copy
import math

import numpy as np
import pytest

from hubbub.errors import BudgetError, ParameterError
from hubbub.filter import BayesianFilter, Query
from hubbub_authoring import mechanisms as m
from hubbub_lab.filters import ApproximateFilter, Odometer, SimplifiedFilter
from hubbub_lab.filters.approximate import Ended, Recorded, Reserved

MENU = {"weak": m.grr(2, epsilon=0.15), "strong": m.grr(2, epsilon=0.6)}
EPSILON, DELTA = 3.0, 0.05


class Game:
    """Positions are reached by answers; the same counts of them are the same position."""

    def __init__(self, account: object) -> None:
        self.account, self.values, self.stopped = account, {}, 0

    def best(self, account: object, counts: tuple[int, int, int, int]) -> float:
        known = self.values.get((*counts, self.phase(account)))
        if known is not None:
            return known
        loss = 0.15 * (counts[1] - counts[0]) + 0.6 * (counts[3] - counts[2])
        value = max(0.0, 1.0 - math.exp(EPSILON - loss))  # what stopping here gains
        if self.phase(account) == "advanced":
            for index, (_, channel) in enumerate(MENU.items()):
                trial = copy.deepcopy(account)
                ticket = trial.reserve("bit", channel)
                if ticket is None:
                    assert self.phase(trial) != "advanced"
                    value = max(value, self.after_refusal(trial, counts))
                    continue
                p = channel.t / channel.total
                gain = 0.0
                for symbol in (0, 1):
                    answered = copy.deepcopy(trial)
                    answered.record(ticket, symbol)
                    after = list(counts)
                    after[2 * index + symbol] += 1
                    gain += (p if symbol == 1 else 1 - p) * self.best(answered, tuple(after))
                value = max(value, gain)
        self.values[*counts, self.phase(account)] = value
        return value

    def phase(self, account: object) -> str:
        return account.phase

    def after_refusal(self, account: ApproximateFilter, counts: tuple[int, ...]) -> float:
        """In the second phase nothing more is to be gained: what it accepts keeps within epsilon."""
        loss = 0.15 * (counts[1] - counts[0]) + 0.6 * (counts[3] - counts[2])
        if account.phase == "stopped":
            self.stopped += 1
            assert abs(loss) > EPSILON - 1e-6
            assert all(account.reserve("bit", channel) is None for channel in MENU.values())
            return max(0.0, 1.0 - math.exp(EPSILON - loss))
        assert account.phase == "pure"
        assert abs(loss) <= EPSILON
        for name, channel in MENU.items():
            accepted = copy.deepcopy(account).reserve("bit", channel) is not None
            assert accepted == (abs(loss) + {"weak": 0.15, "strong": 0.6}[name] <= EPSILON + 1e-9)
        return 0.0


class Either(ApproximateFilter):
    """Negative control: accepts whenever one of the two phases would, and absorbs nothing."""

    def reserve_all(self, queries):
        squares = self._squares + sum(query.channel.blocks().largest ** 2 for query in queries)
        trial = copy.deepcopy(self._account)
        tickets = trial.reserve_all(queries)
        if squares <= self._room:
            self._squares = squares
        elif trial.committed > self.epsilon:
            return None
        self._account = trial
        return tickets


def test_no_adaptive_adversary_gains_more_than_delta():
    """About 45 weak answers, or 2 strong ones, or a mixture, then the pure phase: over 10,000 positions."""
    game = Game(ApproximateFilter(EPSILON, delta=DELTA))
    gained = game.best(game.account, (0, 0, 0, 0))
    assert len(game.values) > 1_000
    assert game.stopped > 10
    assert 1e-3 < gained <= DELTA


def test_the_first_phase_takes_more_small_queries_than_adding_would():
    accountant = ApproximateFilter(1.0, delta=1e-5)
    channel = m.grr(2, epsilon=0.01)
    tickets = [accountant.reserve("bit", channel) for _ in range(500)]
    count = sum(ticket is not None for ticket in tickets)
    bound = math.sqrt(2 * math.log(1e5) * count * 1e-4) + count * 1e-4 / 2
    more = math.sqrt(2 * math.log(1e5) * (count + 1) * 1e-4) + (count + 1) * 1e-4 / 2
    assert bound <= 1.0 < more
    assert count == 416  # adding epsilons: 100


def test_what_is_pending_counts_in_the_first_phase():
    accountant = ApproximateFilter(EPSILON, delta=DELTA)
    accepted = 0
    while accountant.reserve("bit", MENU["weak"]) is not None:
        accepted += 1
    again = ApproximateFilter(EPSILON, delta=DELTA)
    for _ in range(accepted):
        again.record(again.reserve("bit", MENU["weak"]), 1)
    assert again.reserve("bit", MENU["weak"]) is None


def test_the_second_phase_waits_for_what_is_pending_and_the_first_never_returns():
    accountant = ApproximateFilter(EPSILON, delta=DELTA)
    first = accountant.reserve("bit", MENU["weak"])
    assert accountant.reserve("bit", m.grr(2, epsilon=2.0)) is None
    assert accountant.phase == "waiting"
    assert accountant.reserve("bit", MENU["weak"]) is None
    accountant.record(first, 1)
    assert accountant.phase == "pure"
    assert accountant.reserve("bit", m.grr(2, epsilon=2.0)) == 1
    assert accountant.reserve("bit", m.grr(2, epsilon=0.86)) is None
    assert accountant.pending == (1,)
    assert accountant.phase == "pure"


def test_a_loss_above_epsilon_stops_for_good():
    accountant = ApproximateFilter(EPSILON, delta=DELTA)
    while (ticket := accountant.reserve("bit", MENU["weak"])) is not None:
        accountant.record(ticket, 1)
    assert accountant.loss > EPSILON
    assert accountant.phase == "stopped"
    assert accountant.reserve_all([Query("other", m.grr(2, epsilon=1e-3))]) is None
    assert (accountant.epsilon, accountant.delta) == (EPSILON, DELTA)


def test_a_schedule_that_cannot_be_asked_ends_no_phase():
    accountant = ApproximateFilter(1.0, delta=1e-5)
    with pytest.raises(ParameterError):
        accountant.reserve("bit", m.grr(2, epsilon=5.0), mapping=np.array([0, 7]))
    assert accountant.phase == "advanced"


def test_cancelled_queries_do_not_hold_up_the_second_phase_and_stay_counted_in_the_first():
    accountant = ApproximateFilter(1.0, delta=1e-5)
    channel = m.grr(2, epsilon=0.01)
    for _ in range(416):
        accountant.cancel(accountant.reserve("bit", channel))
    assert accountant.pending == ()
    waiting = ApproximateFilter(1.0, delta=1e-5)
    ticket = waiting.reserve("bit", m.grr(2, epsilon=0.1))
    assert waiting.reserve("bit", m.grr(2, epsilon=0.95)) is None
    assert waiting.phase == "waiting"
    waiting.cancel(ticket)
    assert waiting.phase == "pure"
    assert waiting.reserve("bit", m.grr(2, epsilon=0.95)) is not None
    assert accountant.reserve("bit", channel) is not None  # the first phase was full: this is the second
    assert accountant.phase == "pure"


def test_forfeited_answers_do_not_hold_up_the_second_phase():
    accountant = ApproximateFilter(1.0, delta=1e-5)
    accountant.reserve("round 1", m.grr(2, epsilon=0.1))
    assert accountant.reserve("round 2", m.grr(2, epsilon=0.9)) is None
    accountant.close("round 1")
    assert accountant.phase == "pure"
    assert accountant.reserve("round 2", m.grr(2, epsilon=0.9)) is not None
    assert accountant.reserve("round 3", m.grr(2, epsilon=0.01)) is None


@pytest.mark.parametrize("delta", [0, 0.0, 1.0, -0.1, math.nan, True, "1"])
def test_delta_is_a_probability(delta):
    with pytest.raises(ParameterError, match="delta must be"):
        ApproximateFilter(1.0, delta=delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(EPSILON, DELTA), (1.0, 1e-5)])
def test_accepting_by_either_phase_would_not_keep_delta(epsilon, delta):
    """Negative control: one strong answer by the pure filter, then all that the squares allow.

    The gain is exact: the strong answer is 1 with probability p, the number of ones among the weak ones is
    binomial. The filter itself refuses those, because its first phase was over with the strong one.
    """
    strong, weak = m.grr(2, epsilon=0.97 * epsilon), m.grr(2, epsilon=0.05 * epsilon)
    either = Either(epsilon, delta=delta)
    either.record(either.reserve("bit", strong), 1)
    left = 0
    while (ticket := either.reserve("bit", weak)) is not None:
        either.record(ticket, 1 - left % 2)
        left += 1
    p, q = strong.t / strong.total, weak.t / weak.total
    gained = p * sum(
        math.comb(left, ones)
        * q**ones
        * (1 - q) ** (left - ones)
        * max(0.0, 1.0 - math.exp(epsilon - (strong.epsilon + weak.epsilon * (2 * ones - left))))
        for ones in range(left + 1)
    )
    assert gained > max(4 * delta, 0.03)

    accountant = ApproximateFilter(epsilon, delta=delta)
    accountant.record(accountant.reserve("bit", strong), 1)
    assert accountant.reserve("bit", weak) is None


# Both phases with pending queries, played by one engine against the filter and against the naive one.

TWO = {"weak": m.grr(2, epsilon=0.15), "strong": m.grr(2, epsilon=1.15)}


class Play:
    """All games of at most `moves` queries, answered at once or later, at most two of them pending.

    A position is the filter, how often each answer was seen, and what is pending. Positions that differ in
    nothing that the filter or the adversary looks at are one, so that each is played on from once.
    """

    def __init__(self, moves: int, epsilon: float) -> None:
        self.moves, self.epsilon = moves, epsilon
        self.known, self.phases, self.ended_with_pending = {}, set(), 0

    def best(self, account: ApproximateFilter, seen: tuple, pending: tuple[tuple[int, str], ...]) -> float:
        waiting = tuple(sorted(name for _, name in pending))
        key = seen, waiting, account.phase, account._squares
        if key not in self.known:
            self.phases.add(account.phase)
            self.known[key] = self.value(account, seen, pending)
        return self.known[key]

    def value(self, account: ApproximateFilter, seen: tuple, pending: tuple[tuple[int, str], ...]) -> float:
        loss = sum(
            channel.epsilon * (seen[2 * i + 1] - seen[2 * i]) for i, channel in enumerate(TWO.values())
        )
        value = max(0.0, 1.0 - math.exp(self.epsilon - loss))
        if account.phase == "pure":
            assert abs(loss) <= self.epsilon
        for ticket, name in pending:
            index, p = list(TWO).index(name), TWO[name].t / TWO[name].total
            left = tuple(each for each in pending if each[0] != ticket)
            gain = 0.0
            for symbol, chance in ((0, 1 - p), (1, p)):
                answered = copy.deepcopy(account)
                answered.record(ticket, symbol)
                after = list(seen)
                after[2 * index + symbol] += 1
                gain += chance * self.best(answered, tuple(after), left)
            value = max(value, gain)
        if len(pending) < 2 and sum(seen) + len(pending) < self.moves:
            for name, channel in TWO.items():
                trial = copy.deepcopy(account)
                ticket = trial.reserve("bit", channel)
                if ticket is not None:
                    value = max(value, self.best(trial, seen, (*pending, (ticket, name))))
                elif trial.phase != account.phase:
                    self.ended_with_pending += bool(pending)
                    value = max(value, self.best(trial, seen, pending))
        return value


def test_pending_queries_in_both_phases_gain_no_more_than_delta_and_the_naive_filter_is_caught():
    """Every order of asking and answering, through the end of the first phase and on in the second."""
    epsilon, delta = 1.2, 0.1
    game = Play(11, epsilon)
    gained = game.best(ApproximateFilter(epsilon, delta=delta), (0, 0, 0, 0), ())
    assert game.phases == {"advanced", "waiting", "pure", "stopped"}
    assert game.ended_with_pending > 20
    assert 0.0 < gained <= delta

    naive = Play(12, epsilon)
    assert naive.best(Either(epsilon, delta=delta), (0, 0, 0, 0), ()) > 1.3 * delta


# The journal.


def reading(account: ApproximateFilter) -> tuple:
    return account.phase, account.loss, account._account.committed, account.pending, account._squares


def test_a_filter_made_of_the_journals_steps_is_the_same_at_every_step():
    """Random games through all phases: after each call, the rebuilt filter reads and decides alike."""
    rng = np.random.default_rng(5)
    channels = [m.grr(2, epsilon=each) for each in (0.15, 0.3, 0.9)]
    phases = set()
    for game in range(12):
        steps: list = []
        live = ApproximateFilter(1.2, delta=0.1, journal=steps.append)
        for _ in range(40):
            before = len(steps), reading(live)
            move, channel = rng.random(), channels[rng.choice(3, p=[0.9, 0.07, 0.03])]
            if move < 0.55 or not live.pending:
                coordinate = int(rng.integers(2 * game, 2 * game + 3))
                if coordinate not in live._account._grouping.closed:
                    live.reserve_all([Query(coordinate, channel)] * int(rng.integers(1, 3)))
            elif move < 0.6:
                live.cancel(int(rng.choice(live.pending)))
            elif move < 0.95:
                live.record(int(rng.choice(live.pending)), int(rng.random() < 0.9))
            else:
                live.close(next(iter(live._account._components)))
            again = ApproximateFilter.replayed(steps, 1.2, delta=0.1)
            assert reading(again) == reading(live)
            assert len(steps) > before[0] or reading(live) == before[1]  # no change is left out
            for probe in channels:
                pair = copy.deepcopy(live), copy.deepcopy(again)
                pair[0]._journal = pair[1]._journal  # a copy's steps are none of the original's
                answers = [each.reserve("probe", probe) for each in pair]
                assert answers[0] == answers[1]
                assert reading(pair[0]) == reading(pair[1])
            phases.add(live.phase)
    assert phases == {"advanced", "waiting", "pure", "stopped"}


def test_without_the_steps_that_only_refused_a_rebuilt_filter_would_be_another():
    steps: list = []
    live = ApproximateFilter(EPSILON, delta=DELTA, journal=steps.append)
    live.record(live.reserve("bit", MENU["weak"]), 1)
    live.reserve("bit", m.grr(2, epsilon=2.0))
    assert [type(step) for step in steps] == [Reserved, Recorded, Ended, Reserved]
    with pytest.raises(BudgetError, match="must follow"):
        ApproximateFilter.replayed([step for step in steps if step != Ended()], EPSILON, delta=DELTA)
    with pytest.raises(BudgetError, match="second end"):
        ApproximateFilter.replayed([*steps, Ended()], EPSILON, delta=DELTA)


def test_a_replayed_filter_journals_what_comes_after():
    steps: list = []
    first = ApproximateFilter(EPSILON, delta=DELTA, journal=steps.append)
    ticket = first.reserve("bit", MENU["weak"])
    later: list = []
    again = ApproximateFilter.replayed(steps, EPSILON, delta=DELTA, journal=later.append)
    again.record(ticket, 0)
    assert later == [Recorded(ticket, 0)]


# The simplified filter and the odometer.


def test_the_simplified_filter_refuses_what_the_full_one_does_and_no_less():
    rng = np.random.default_rng(3)
    channels = [
        m.pbgrr([2, 3], epsilon=0.6, boost_epsilon=0.2),
        m.pbgrr([2, 3], epsilon=0.5, boost_epsilon=0.0),
        m.grr(5, epsilon=0.4),
    ]
    for _ in range(40):
        full, simple = BayesianFilter(1.6), SimplifiedFilter(1.6)
        for _ in range(12):
            channel = channels[rng.integers(3)]
            pair = full.reserve("age", channel), simple.reserve("age", channel)
            expected = simple.loss + channel.epsilon <= 1.6
            assert (pair[1] is not None) == expected
            if pair[0] is None:
                assert pair[1] is None
                break
            if pair[1] is None:
                break
            symbol = int(rng.integers(channel.outputs))
            full.record(pair[0], symbol)
            simple.record(pair[1], symbol)
            assert full.loss == simple.loss
    full, simple = BayesianFilter(1.5), SimplifiedFilter(1.5)
    for accountant in (full, simple):  # the recorded loss is within a category, what may come is across
        accountant.record(accountant.reserve("age", m.grr(4, epsilon=1.0)), 0)
        accountant.record(accountant.reserve("age", m.pbgrr([2, 2], epsilon=0.5, boost_epsilon=0.0)), 1)
    last = m.pbgrr([2, 2], epsilon=1.0, boost_epsilon=0.4)
    assert full.reserve("age", last) is not None
    assert simple.reserve("age", last) is None


def test_an_odometer_reads_what_the_filter_does():
    rng = np.random.default_rng(8)
    odometer, accountant = Odometer(), BayesianFilter(50.0)
    channel = m.pbgrr([2, 3], epsilon=0.6, boost_epsilon=0.2)
    readings = []
    for symbol in rng.integers(0, 5, 30).tolist():
        odometer.observe("age", channel, symbol)
        accountant.record(accountant.reserve("age", channel), symbol)
        assert odometer.loss == accountant.loss
        readings.append(odometer.loss)
    assert (np.diff(readings) < 0).any()
    with pytest.raises(BudgetError, match="at most 4096"):
        for _ in range(200):
            odometer.observe("other", m.grr(2, epsilon=40.0), 1)
