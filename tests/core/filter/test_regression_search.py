"""The search behind the bounds of regressions: gone on with, not begun anew, and good wherever it stops."""

import numpy as np
import pytest

from hubbub.filter import Box, Regression
from hubbub.filter.regression import component
from hubbub.filter.regression.branching import BranchAndBound
from hubbub.filter.regression.component import RegressionComponent
from hubbub.filter.regression.regression import curves_of

NINE = Box((-1.0,) * 9, (1.0,) * 9)


def drawn(rng: np.random.Generator, kind: str = "logistic") -> Regression:
    return Regression(kind, NINE, tuple(rng.uniform(-10.0, 10.0, 9).tolist()), 0.0, 0.1)


def crowd(seed: int) -> RegressionComponent:
    rng = np.random.default_rng(seed)
    numbers = RegressionComponent(("x",), NINE)
    for _ in range(8):
        numbers.answers.append((drawn(rng), int(rng.integers(2))))
    numbers.loss = numbers.worst = 10 * 2**40
    return numbers


@pytest.mark.parametrize("symbol", [0, 1])
def test_what_a_decision_searched_is_not_searched_again_when_its_answer_is_recorded(monkeypatch, symbol):
    searches = []
    whole = BranchAndBound.__init__

    def counted(self, *args, **keys):
        searches.append(self)
        whole(self, *args, **keys)

    monkeypatch.setattr(BranchAndBound, "__init__", counted)
    query = drawn(np.random.default_rng(17))
    lived, fresh = crowd(3), crowd(3)
    worst = lived.worst_with([query], 3 * 2**40)
    lived.reserve([0], [query], worst)
    assert len(searches) == 4  # the largest and the least sum for either answer
    lived.record(0, symbol)
    assert len(searches) == 4
    fresh.reserve([0], [query], worst)
    fresh.record(0, symbol)
    assert len(searches) == 6
    assert lived.loss == fresh.loss


def test_searches_of_two_that_wait_serve_the_second_once_the_first_is_answered():
    rng = np.random.default_rng(5)
    queries = [drawn(rng), drawn(rng)]
    lived, fresh = crowd(4), crowd(4)
    for numbers in (lived, fresh):
        worst = numbers.worst_with(queries, 3 * 2**40)
        numbers.reserve([0, 1], queries, worst)
    fresh._known = {}
    assert len(lived._known) == 4
    for ticket, symbol in ((0, 1), (1, 0)):
        lived.record(ticket, symbol)
        fresh.record(ticket, symbol)
    assert lived.loss == fresh.loss
    assert lived._known == {}


def test_a_query_that_was_refused_is_forgotten_by_the_next_decision():
    rng = np.random.default_rng(6)
    numbers = crowd(5)
    refused, asked = drawn(rng), drawn(rng)
    assert numbers.worst_with([refused], 2**30) > 2**30
    numbers.worst_with([asked], 3 * 2**40)
    assert {query for tried in numbers._known for query, _ in tried} == {asked}


@pytest.mark.parametrize("kind", ["logistic", "truncated"])
def test_a_bound_holds_after_every_step_at_points_that_the_search_has_not_seen(kind):
    """Ten answers about nine numbers, 20,000 points and all corners; truncated ones have corners of theirs.

    Bounds of four searches are above all of them from the first box to the sixtieth, and close in.
    """
    rng = np.random.default_rng(11)
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 9), axis=-1).reshape(-1, 9)
    points = np.concatenate([corners, rng.uniform(-1.0, 1.0, (20_000, 9))])
    for _ in range(2):
        answers = [(drawn(rng, kind), int(rng.integers(2))) for _ in range(10)]
        curves = curves_of(answers)
        for each in (curves, curves.mirrored()):
            found = each.values(points @ each.slopes.T + each.offsets).sum(axis=1).max()
            search = BranchAndBound(each, np.array(NINE.low), np.array(NINE.high))
            first = search.gap
            while search.nodes < 60:
                assert search.bound >= found - 1e-12
                before = search.bound
                search.step()
                assert search.bound <= before + 1e-12
                if search.gap <= component._GAP:
                    break
            assert search.gap < max(0.6 * first, component._GAP)
            search.offer(points[0])
            assert search.bound >= search.best >= found - search.gap - 1e-12
