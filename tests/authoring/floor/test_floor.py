"""The least error of any mechanism: a solver of another kind, random channels, and channels that lie."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from general_solver import error_of, every_set, random_channel

from hubbub.errors import ParameterError
from hubbub.mechanisms.orbits.short import compiled
from hubbub.mechanisms.tree.shares import middle as middle_points
from hubbub_authoring.floor import (
    Weights,
    cumulative_floor,
    mean_floor,
    orbit_floor,
    pattern_floor,
    shares_floor,
)
from hubbub_authoring.floor.linear import greatest_height, linear_floor
from hubbub_authoring.floor.orbits import Classes, listed
from hubbub_authoring.floor.spectral import cumulative_questions, spectral_floor
from hubbub_authoring.mechanisms import orbits

# Mean of the errors of values and categories with the missing input, K by m by epsilon, to the digits known.
TABLE = {
    (12, 3): (16.94, 3.881, 0.689, 0.2158, 0.0775, 0.02664, 0.00951),
    (90, 3): (21.63, 4.993, 0.9166, 0.304, 0.1310, 0.0636, 0.0322),
    (90, 9): (25.24, 5.890, 1.114, 0.3047, 0.1066, 0.0454, 0.0207),
    (1000, 10): (28.02, 6.551, 1.251, 0.3498, 0.1217, 0.0535, 0.0268),
}
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
BOTH = Weights(0.5, 0.5)


def rows_of(bits: np.ndarray, a: float) -> np.ndarray:
    return 1.0 + (a - 1.0) * bits


def best_by_barrier(questions: np.ndarray, prior: np.ndarray, epsilon: float) -> tuple[float, np.ndarray]:
    """The optimum over mixtures of all sets, by Newton's method on the log barrier of the *primal*.

    Works on weights theta of the columns themselves, with the K rows as equations and the full K x K
    information: none of the coordinates of the code under test. What it gives is the error of an actual
        channel.
    """
    q = rows_of(every_set(len(prior)), math.exp(epsilon)).astype(float)
    n, k = q.shape
    share, w = q @ prior, questions.T @ questions
    theta = np.full(n, k / q.sum())  # every input has the same row total by symmetry of all sets
    assert np.allclose(theta @ q, 1.0)
    t = 1.0
    while t > 1e-11:
        for _ in range(30):
            inverse = np.linalg.inv((q * (theta / share)[:, None]).T @ q)
            middle = inverse @ w @ inverse
            gradient = -((q @ middle) * q).sum(axis=1) / share / t - 1.0 / theta
            hessian = 2.0 * (q @ middle @ q.T) * (q @ inverse @ q.T) / np.outer(share, share) / t
            scaled = hessian * np.outer(theta, theta) + np.eye(n)
            e = q * theta[:, None]
            solved = np.linalg.solve(scaled, np.column_stack([e, -gradient * theta]))
            free = (
                solved[:, -1]
                - solved[:, :-1] @ np.linalg.lstsq(e.T @ solved[:, :-1], e.T @ solved[:, -1], rcond=None)[0]
            )
            decrement = float(free @ scaled @ free)
            theta = theta * (1.0 + min(1.0, 0.9 / max(np.abs(free).max(), 1e-300)) * free)
            if decrement < 1e-8:
                break
        t *= 0.1
    matrix = q.T * theta
    matrix /= matrix.sum(axis=1, keepdims=True)
    return error_of(matrix, questions, prior), matrix


def both_questions(sizes: list[int], missing: bool) -> tuple[np.ndarray, np.ndarray]:
    labels, k, m = np.repeat(np.arange(len(sizes)), sizes), sum(sizes), len(sizes)
    questions = np.concatenate(
        [np.eye(k) / math.sqrt(2 * k), (labels == np.arange(m)[:, None]) / math.sqrt(2 * m)]
    )
    prior = np.full(k, 1 / k)
    if missing:
        return np.pad(questions, ((0, 0), (0, 1))), np.append(prior, 0.0)
    return questions, prior


@pytest.mark.parametrize(("shape", "row"), TABLE.items(), ids=str)
def test_floors_are_those_of_the_published_table(shape, row):
    inputs, many = shape
    for epsilon, known in zip(EPSILONS, row, strict=True):
        found = shares_floor([inputs // many] * many, epsilon=epsilon, weights=BOTH)
        assert found.proof == "orbits"
        digits = len(repr(known).split(".")[1])
        assert abs(found.error - known) <= 0.5 * 10.0**-digits * 1.02


@pytest.mark.parametrize("inputs", range(2, 9))
def test_floor_of_random_priors_agrees_with_a_primal_solver_over_all_sets(inputs):
    """To 1e-6 from below: the primal is a channel that exists, the floor a dual point. They meet."""
    rng = np.random.default_rng(inputs)
    prior = rng.dirichlet(np.full(inputs, 3.0))
    questions = rng.normal(size=(inputs, inputs))
    for epsilon in (0.5, 3.0):
        reached, _ = best_by_barrier(questions, prior, epsilon)
        floor = pattern_floor(questions, prior, epsilon=epsilon).floor
        assert floor <= reached * (1 + 1e-12)
        assert floor >= reached * (1 - 1e-6)


@pytest.mark.parametrize(
    "sizes", [[2, 2], [1, 2], [3, 3], [2, 2, 2], [1, 2, 3], [4, 2], [2, 2, 2, 1]], ids=str
)
def test_orbits_agree_with_all_sets(sizes):
    for missing in (False, True):
        for epsilon in (1.0, 3.0):
            questions, prior = both_questions(sizes, missing)
            by_sets = pattern_floor(questions, prior, epsilon=epsilon).floor
            by_orbits = orbit_floor(sizes, epsilon=epsilon, weights=BOTH, missing=missing).floor
            assert by_orbits == pytest.approx(by_sets, rel=1e-7)


# Optima by full enumeration of types, from an independent computation.
@pytest.mark.parametrize(
    ("sizes", "epsilon", "known"),
    [
        ([1, 2, 3], 1.0, 2.857476),
        ([1, 3, 5, 2], 1.0, 3.598963),
        ([2, 5, 7], 1.0, 3.882304),
        ([3, 4, 6], 0.5, 17.060570),
        ([6, 2, 4, 1, 3], 2.0, 0.724290),
        ([8, 2, 5], 3.0, 0.220573),
        ([1, 1, 4, 6], 2.0, 0.630946),
        ([10, 20, 5], 2.0, 0.826652),
    ],
    ids=str,
)
def test_floors_of_unequal_categories_are_the_enumerated_optima(sizes, epsilon, known):
    assert orbit_floor(sizes, epsilon=epsilon, weights=BOTH, missing=True).floor == pytest.approx(
        known, abs=2e-6
    )


def test_search_that_starts_with_columns_on_one_side_goes_on_to_the_optimum():
    """The first restricted programme has no channel: its value is no sign that the search has ended."""
    found = orbit_floor([1, 2, 3, 5, 8], epsilon=4.0, weights=BOTH, missing=True)
    assert found.reached == pytest.approx(found.floor, rel=1e-8)
    assert found.solution.off <= 1e-9  # what is reached is the error of a channel
    assert found.floor == pytest.approx(0.0771044, rel=1e-5)


def test_no_random_channel_is_below_its_floor():
    """200 channels of any shape, four settings, errors from the explicit information matrix."""
    rng = np.random.default_rng(7)
    tried = 0
    for sizes, missing, epsilon in (
        ([2, 2, 2], False, 1.0),
        ([3, 2], True, 2.0),
        ([1, 2, 3], True, 0.5),
        ([4, 4], False, 3.0),
    ):
        questions, prior = both_questions(sizes, missing)
        floor = shares_floor(sizes, epsilon=epsilon, weights=BOTH, missing=missing).error
        told = 0
        while told < 50:
            matrix = random_channel(rng, len(prior), epsilon)
            if np.linalg.cond(matrix @ matrix.T) > 1e10:
                continue  # it does not tell all inputs apart: its error is infinite
            told += 1
            assert np.log(matrix.max(axis=0) / matrix.min(axis=0)).max() <= epsilon * (1 + 1e-12)
            assert np.allclose(matrix.sum(axis=1), 1.0)
            assert error_of(matrix, questions, prior) >= floor
            tried += 1
    assert tried == 200


@pytest.mark.parametrize("middle", [False, True], ids=["cdf", "quantiles"])
def test_no_random_channel_is_below_the_floors_of_numbers(middle):
    """200 channels of any shape in five settings: the mean, and cumulative shares by every proof there is."""
    rng = np.random.default_rng(8)
    tried, proofs = 0, set()
    for points, missing, epsilon in (
        (4, False, 1.0),
        (6, True, 2.0),
        (7, True, 0.5),
        (12, True, 3.0),
        (11, False, 5.0),
    ):
        low, high = middle_points(points) if middle else (1, points - 1)
        mean = np.linspace(-1.0, 1.0, points)[None]
        curve, prior = cumulative_questions(points, low, high), np.full(points, 1 / points)
        if missing:
            mean, curve = np.pad(mean, ((0, 0), (0, 1))), np.pad(curve, ((0, 0), (0, 1)))
            prior = np.append(prior, 0.0)
        least = mean_floor(mean[0, :points], epsilon=epsilon, missing=missing).error
        known = cumulative_floor(points, epsilon=epsilon, missing=missing, middle=middle)
        proofs.add(known.proof)
        told = 0
        while told < 40:
            matrix = random_channel(rng, len(prior), epsilon)
            if np.linalg.cond(matrix @ matrix.T) > 1e10:
                continue
            told += 1
            assert error_of(matrix, mean, prior) >= least > 0.0
            assert error_of(matrix, curve, prior) >= known.error > 0.0
            tried += 1
    assert tried == 200
    assert proofs in ({"patterns", "pooled"}, {"patterns", "pooled", "spectral"})


def test_pooled_points_give_a_floor_where_the_trace_gives_none():
    """At 11 points and epsilon 4 the trace says nothing, and a channel found by search is near the bound."""
    for missing in (False, True):
        found = cumulative_floor(11, epsilon=4.0, missing=missing)
        assert found.proof == "pooled"
        assert spectral_floor(cumulative_questions(11), np.full(11, 1 / 11), epsilon=4.0) < 0.5 * found.error
    prior, questions = np.full(9, 1 / 9), cumulative_questions(9)
    optimum = pattern_floor(questions, prior, epsilon=4.0).floor
    assert 0.4 * optimum < cumulative_floor(9, epsilon=4.0).error  # with the missing input: ten, so pooled
    reached, _ = best_by_barrier(cumulative_questions(8), np.full(8, 1 / 8), 4.0)
    assert cumulative_floor(8, epsilon=4.0, missing=False).error == pytest.approx(reached, rel=1e-6)


def test_a_channel_of_more_epsilon_is_below_the_floors_of_numbers():
    """The control of the test above."""
    prior = np.full(6, 1 / 6)
    for questions, floor in (
        (np.linspace(-1.0, 1.0, 6)[None], mean_floor(np.linspace(-1, 1, 6), epsilon=1.0, missing=False)),
        (cumulative_questions(6), cumulative_floor(6, epsilon=1.0, missing=False)),
    ):
        liar, _ = best_by_barrier(questions, prior, 1.01)
        assert liar < floor.error


def test_channel_that_claims_to_be_below_its_floor_is_caught():
    """The best channel of a slightly larger epsilon, declared as the smaller one."""
    questions, prior = both_questions([2, 2, 2], False)
    floor = shares_floor([2, 2, 2], epsilon=1.0, weights=BOTH, missing=False).error
    honest, _ = best_by_barrier(questions, prior, 1.0)
    liar, _ = best_by_barrier(questions, prior, 1.001)
    assert liar < floor <= honest


def test_floor_of_values_is_that_of_subset_selection_without_missing():
    """Ye and Barg 2017: subset selection of the best size is optimal; error from its probabilities."""
    for inputs, epsilon in ((10, 1.0), (90, 2.0), (91, 0.5)):
        a = math.exp(epsilon)
        errors = []
        for d in range(1, inputs):
            p = d * a / (d * a + inputs - d)
            q = (p * (d - 1) + (1 - p) * d) / (inputs - 1)
            errors.append((p * (1 - p) + (inputs - 1) * q * (1 - q)) / (p - q) ** 2 / inputs)
        found = shares_floor([inputs], epsilon=epsilon, weights=Weights(1.0, 0.0), missing=False).error
        assert found <= min(errors)
        assert found >= min(errors) * (1 - 1e-7)


def test_worst_set_of_a_functional_is_the_worst_of_all_sets():
    rng = np.random.default_rng(3)
    for _ in range(60):
        k, a = int(rng.integers(2, 11)), math.exp(rng.uniform(0.1, 5.0))
        prior = rng.dirichlet(np.ones(k))
        if rng.random() < 0.5 and k > 2:
            prior[0] = 0.0
            prior /= prior.sum()
        y, nu = rng.normal(size=k), rng.normal(size=k) * rng.uniform(0.0, 3.0)
        q = rows_of((np.arange(2**k)[:, None] >> np.arange(k)) & 1, a)
        r = q / (q @ prior)[:, None] - 1.0
        truth = float(((r @ y) ** 2 - r @ nu).max())
        bound, sets = greatest_height(y, nu, prior, a)
        assert truth <= bound <= truth + 1e-6 * (1.0 + abs(truth)) * a
        assert len(sets) >= 1


def test_floor_of_the_mean_is_the_optimum_over_all_sets():
    for k, epsilon in ((4, 1.0), (6, 2.0), (7, 0.5)):
        points = np.linspace(-1.0, 1.0, k)
        prior = np.full(k, 1 / k)
        by_pricing = linear_floor(points, prior, epsilon=epsilon, gap=1e-8).floor
        by_sets = pattern_floor(points[None], prior, epsilon=epsilon).floor
        assert by_pricing == pytest.approx(by_sets, rel=1e-6)
        assert mean_floor(points, epsilon=epsilon, missing=False).error <= by_sets * (1 + 1e-9)


def test_spectral_bound_is_below_the_optimum_of_cumulative_shares_and_near_it():
    for k, epsilon in ((5, 1.0), (7, 2.0)):
        questions = cumulative_questions(k)
        optimum = pattern_floor(questions, np.full(k, 1 / k), epsilon=epsilon).floor
        bound = spectral_floor(questions, np.full(k, 1 / k), epsilon=epsilon)
        assert 0.73 * optimum < bound <= optimum
    assert cumulative_floor(64, epsilon=1.0).proof == "spectral"
    assert cumulative_floor(5, epsilon=1.0).proof == "patterns"


def test_spectral_bound_is_the_optimum_for_values():
    for k, epsilon in ((8, 1.0), (90, 2.0)):
        bound = spectral_floor(np.eye(k) / math.sqrt(k), np.full(k, 1 / k), epsilon=epsilon)
        assert bound == pytest.approx(
            shares_floor([k], epsilon=epsilon, weights=Weights(1.0, 0.0), missing=False).error, rel=1e-7
        )


def test_many_different_sizes_get_a_lower_bound():
    """Eight sizes up to 80 have 10^9 orbits; both bounds are below the error of a known channel."""
    sizes = [80, 60, 30, 15, 8, 4, 2, 1]
    found = shares_floor(sizes, epsilon=3.0, weights=BOTH)
    assert found.proof == "spectral"
    assert 0.1 < found.error <= 0.291079
    assert shares_floor(sizes, epsilon=8.0, weights=BOTH).proof == "split"


@pytest.mark.parametrize(("sizes", "epsilon"), [([12, 5], 1.0), ([7, 6, 6], 0.5)], ids=str)
def test_mixture_closes_its_rows_where_the_highest_orbits_alone_cannot(sizes, epsilon, monkeypatch):
    """As at 334, 333, 333 and epsilon 1, whose 400 highest orbits lie on one side of the equations."""
    floor = orbit_floor(sizes, epsilon=epsilon, weights=BOTH, missing=True).floor
    monkeypatch.setattr(orbits, "_MOST", 1)
    found = orbits.best_mixture(sizes, epsilon=epsilon, weights=BOTH, missing=True)
    channel = compiled(sizes, found, epsilon=epsilon, missing=True)
    known = channel.own_estimator().expected_estimate(np.append(np.full(sum(sizes), 1 / sum(sizes)), 0.0), 1)
    error = np.mean(known.value_errors[:-1] ** 2) / 2 + np.mean(known.category_errors[:-1] ** 2) / 2
    assert floor <= error <= floor * (1 + 1e-3)


def test_bad_questions_are_refused_by_rule():
    with pytest.raises(ParameterError, match="sizes"):
        shares_floor([], epsilon=1.0, weights=BOTH)
    with pytest.raises(ParameterError, match="weights"):
        shares_floor([2, 2], epsilon=1.0, weights=Weights(0.0, 0.0))
    with pytest.raises(ParameterError, match="epsilon"):
        shares_floor([2, 2], epsilon=math.nan, weights=BOTH)
    with pytest.raises(ParameterError, match="points"):
        mean_floor([1.0], epsilon=1.0)
    with pytest.raises(ParameterError, match="points"):
        cumulative_floor(1, epsilon=1.0)


def test_orbits_are_listed_once_in_their_order() -> None:
    for classes in (Classes((6, 1), (2, 3), True), Classes((5,), (1,), False), Classes((3,), (4,), True)):
        found = listed(classes)
        each = []
        for size, many in zip(classes.sizes, classes.many, strict=True):
            counts = itertools.product(range(size + 1), repeat=many)
            squares: dict[int, list[int]] = {}
            for one in counts:
                squares.setdefault(sum(one), []).append(sum(n * n for n in one))
            each.append(sorted({(k, end(q)) for k, q in squares.items() for end in (min, max)}))
        wanted = [
            (*(k for k, _ in row), *(q for _, q in row), held)
            for held in range(1 + classes.missing)
            for row in itertools.product(*each)
            if 0 < sum(k for k, _ in row) + held < classes.values + classes.missing
        ]
        assert np.column_stack([found.counts, found.squares, found.missing]).tolist() == list(
            map(list, wanted)
        )


def test_a_start_that_looks_at_few_columns_ends_at_the_same_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = Weights(0.5, 0.5)
    whole = orbit_floor([50] * 4, epsilon=1.0, weights=weights, missing=True)
    monkeypatch.setattr("hubbub_authoring.floor.columns._LOOKED", 20)
    few = orbit_floor([50] * 4, epsilon=1.0, weights=weights, missing=True)
    assert few.floor == pytest.approx(whole.floor, rel=1e-8)
