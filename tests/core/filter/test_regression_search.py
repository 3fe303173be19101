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


def test_bounds_do_not_depend_on_what_was_refused_in_between_or_on_who_was_asked_first():
    rng = np.random.default_rng(17)
    refused, *queries = (drawn(rng) for _ in range(3))
    one, other = crowd(3), crowd(3)
    other.answers.reverse()
    for numbers, asked in ((one, queries), (other, queries[::-1])):
        if numbers is other:
            numbers.worst_with([refused])
        numbers.reserve([0, 1], asked, numbers.worst_with(asked))
        assert numbers.worst_with([refused]) >= numbers.worst
    assert one.worst == other.worst
    for numbers, tickets in ((one, (0, 1)), (other, (1, 0))):
        for ticket, symbol in zip(tickets, (1, 0), strict=True):
            expected = numbers.bound_after(ticket, symbol)
            numbers.record(ticket, symbol)
            assert (numbers.loss, numbers.worst) == expected
    assert one.loss == other.loss


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
