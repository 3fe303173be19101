"""The spectral floor: known numbers, an optimum over all sets by another programme, channels that lie."""

from __future__ import annotations

import math
import time
from itertools import product

import numpy as np
import pytest
from general_solver import error_of, every_set
from scipy.optimize import linprog

from hubbub_authoring.floor import (
    Weights,
    spectral_floor,
    spectral_shares,
    spectral_tables,
    spectral_tree,
    table_floor,
)
from hubbub_authoring.floor.spectral import range_questions


def even(inputs: int) -> np.ndarray:
    return np.full(inputs, 1.0 / inputs)


def curve(points: int) -> np.ndarray:
    return np.tril(np.ones((points - 1, points)))


def best_of_channels(questions: np.ndarray, prior: np.ndarray, epsilon: float) -> tuple[float, float]:
    """The optimum between two numbers: the error of a channel, and less by the gap of its linear programme.

    A design over whole channels, vertices of the polytope of all: the information of a mixture is the mixture
    of theirs. Multiplicative steps weigh those found; a linear programme over all sets finds the one that the
    error falls fastest towards. Nothing of the code under test, nor its coordinates, is used.
    """
    q = 1.0 + (math.exp(epsilon) - 1.0) * every_set(len(prior)).astype(float)
    share, w = q @ prior, questions.T @ questions
    offset = float(np.trace(w @ np.diag(prior)))
    rng = np.random.default_rng(0)
    found = [linprog(rng.random(len(q)), A_eq=q.T, b_eq=np.ones(len(prior))).x for _ in range(8)]
    weights = np.full(len(found), 1.0 / len(found))
    low = -math.inf
    for _ in range(150):
        each = np.array([(q * (theta / share)[:, None]).T @ q for theta in found])
        for _ in range(30):
            inverse = np.linalg.inv(np.tensordot(weights, each, 1))
            pull = np.einsum("jab,ba->j", each, inverse @ w @ inverse)
            weights *= np.sqrt(pull)
            weights /= weights.sum()
        inverse = np.linalg.inv(np.tensordot(weights, each, 1))
        error = float(np.trace(w @ inverse))
        slope = ((q @ (inverse @ w @ inverse)) * q).sum(axis=1) / share
        new = linprog(-slope, A_eq=q.T, b_eq=np.ones(len(prior)))
        low = max(low, error - (-float(new.fun) - error))
        if low > error * 0.99:
            break
        keep = weights > 1e-9
        found = [theta for theta, kept in zip(found, keep, strict=True) if kept] + [new.x]
        weights = np.append(weights[keep] * 0.9, 0.1)
        weights /= weights.sum()
    return error - offset, low - offset


@pytest.mark.parametrize(
    ("questions", "epsilon", "known"),
    [
        (np.eye(8), 0.5, 95.9864 - 0.875),
        (np.eye(8), 1.0, 22.6114 - 0.875),
        (np.eye(8), 2.0, 4.4381 - 0.875),
        (curve(10), 0.5, 145.65498),
        (curve(10), 1.0, 33.09173),
        (curve(64), 1.0, 578.1137),
    ],
    ids=lambda given: str(np.shape(given) or given),
)
def test_known_errors_at_a_uniform_crowd(questions, epsilon, known):
    found = spectral_floor(questions, even(questions.shape[1]), epsilon=epsilon)
    refined = 1e-4 if questions.shape[1] == 64 else 1e-5  # at 64 the known number is of the plain constant
    assert found == pytest.approx(known, rel=refined)


@pytest.mark.parametrize(
    ("questions", "epsilon", "total"),
    [
        (np.eye(8), 0.5, 95.9836),
        (np.eye(8), 1.0, 22.5565),
        (np.eye(8), 2.0, 4.4349),
        (curve(10), 0.5, 146.9764),
        (curve(10), 1.0, 34.5400),
    ],
    ids=lambda given: str(np.shape(given) or given),
)
def test_the_plain_constant_is_that_of_crowds_that_are_not_quite_uniform(questions, epsilon, total):
    inputs = questions.shape[1]
    nearly = even(inputs) + 1e-9 * (np.arange(inputs) - (inputs - 1) / 2)
    sampling = float((questions**2).sum() / inputs - ((questions @ even(inputs)) ** 2).sum())
    assert spectral_floor(questions, nearly, epsilon=epsilon) == pytest.approx(total - sampling, abs=6e-5)


def test_no_floor_is_above_the_optimum_over_all_sets():
    """Twenty random questions and skewed crowds of 3 to 10 inputs, some of which nobody has."""
    rng, ratios = np.random.default_rng(32), []
    for case in range(20):
        inputs = 3 + case % 8
        prior = rng.dirichlet(np.full(inputs, (0.5, 2.0)[case % 2]))
        questions = rng.normal(size=(rng.integers(1, inputs + 1), inputs))
        epsilon = float(rng.choice([0.5, 1.0, 2.0]))
        reached, least = best_of_channels(questions, prior, epsilon)
        found = spectral_floor(questions, prior, epsilon=epsilon)
        assert 0.0 <= found <= reached
        assert least >= reached * 0.98  # so that the comparison is with the optimum, and not with any channel
        ratios.append(found / reached)
    assert max(ratios) > 0.6  # a floor of 0 would pass the test


def test_channels_are_above_it_and_one_of_more_epsilon_than_it_claims_is_below():
    questions, prior = np.eye(8), even(8)
    floor = spectral_floor(questions, prior, epsilon=1.0)
    pairs = every_set(8)[every_set(8).sum(axis=1) == 2].T
    honest, liar = (
        error_of(rows / rows.sum(axis=1, keepdims=True), questions, prior)
        for rows in (np.exp(epsilon * pairs) for epsilon in (1.0, 1.1))
    )
    assert floor <= honest < floor * 1.0001
    assert liar < floor * 0.95


def test_values_and_categories_in_closed_form_are_the_singular_values_of_their_questions():
    sizes, weights = [3, 3, 2, 5, 1], Weights(0.4, 0.6)
    inputs, many = sum(sizes), len(sizes)
    labels = np.repeat(np.arange(many + 1), [*sizes, 1])
    questions = np.concatenate(
        [
            np.eye(inputs, inputs + 1) * math.sqrt(weights.value / inputs),
            (labels == np.arange(many)[:, None]) * math.sqrt(weights.category / many),
        ]
    )
    for absent in (0.0, 0.2):
        prior = np.append(np.full(inputs, (1.0 - absent) / inputs), absent)
        found = spectral_shares(sizes, epsilon=1.3, weights=weights, absent=absent)
        assert found == pytest.approx(spectral_floor(questions, prior, epsilon=1.3), rel=1e-9)


def test_tables_in_closed_form_are_the_singular_values_of_their_cells():
    readings, tables = [2, 3, 4], [(0, 1), (1, 2), (0,)]
    at = np.array(list(product(*map(range, readings))))
    rows = [
        (at[:, list(table)] == cell).all(axis=1)
        for table in tables
        for cell in product(*(range(readings[j]) for j in table))
    ]
    found = spectral_tables(readings, tables, epsilon=2.0)
    assert found == pytest.approx(spectral_floor(np.array(rows, float), even(24), epsilon=2.0), rel=1e-9)


@pytest.mark.parametrize(
    ("readings", "order", "epsilon", "known"),
    [
        ((2, 2), 1, 1.0, 8.36539),
        ((2, 2), 1, 3.0, 0.46309),
        ((4, 4), 2, 0.5, 219.439),
        ((4, 4), 2, 2.0, 9.252),
    ],
)
def test_floors_of_tables_are_the_optima_known(readings, order, epsilon, known):
    tables = [(0, 1)] if order == 2 else [(0,), (1,)]
    assert table_floor(readings, tables, epsilon=epsilon).error == pytest.approx(known, rel=1e-4)


def test_ranges_are_every_range_once():
    points = 7
    x = np.arange(points)
    rows = np.array([(low <= x) & (x <= high) for low in x for high in x[low:]], float) / math.sqrt(28)
    prior = np.random.default_rng(1).dirichlet(np.ones(points))
    found = spectral_floor(range_questions(points), prior, epsilon=1.0)
    assert found == pytest.approx(spectral_floor(rows, prior, epsilon=1.0), rel=1e-9)


def test_inputs_that_nobody_has_drop_out_and_a_floor_is_never_negative():
    alone = np.array([1.0, 0.0, 0.0, 0.0])
    assert spectral_floor(np.eye(4), alone, epsilon=1.0) == 0.0
    half = np.array([0.5, 0.5, 0.0, 0.0])
    assert spectral_floor(np.eye(4), half, epsilon=1.0) == spectral_floor(np.eye(2), half[:2], epsilon=1.0)
    assert spectral_floor(np.linspace(-1.0, 1.0, 65)[None], even(65), epsilon=6.0) == 0.0


def test_a_thousand_inputs_take_less_than_a_second():
    started = time.process_time()
    spectral_floor(curve(1024), even(1024), epsilon=1.0)
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("seed", range(8))
def test_the_floor_of_a_tree_is_that_of_all_its_questions(seed: int) -> None:
    """By singular values of every level's rows, written out; branches end at any level."""
    chance = np.random.default_rng(seed)
    levels = [chance.integers(4, 14, 4).tolist()]
    for _ in range(seed % 3 + 1):
        below = []
        for size in levels[-1]:
            cut = int(chance.integers(1, size)) if size > 2 and chance.random() < 0.7 else size
            below += [cut, size - cut] if cut < size else [size]
        levels.append(below)
    points = sum(levels[0])
    rows = [
        (np.arange(len(level))[:, None] == np.repeat(np.arange(len(level)), level)) / math.sqrt(len(level))
        for level in (*levels, [1] * points)
    ]
    for epsilon in (0.5, 2.0):
        wanted = spectral_floor(np.concatenate(rows), even(points), epsilon=epsilon)
        assert spectral_tree(levels, epsilon=epsilon) == pytest.approx(wanted, rel=1e-7)


def test_the_floor_of_a_large_map_takes_no_time() -> None:
    levels = [[4**8 // many] * many for many in (4, 16, 64, 256, 1024, 4096, 16384)]
    start = time.perf_counter()
    assert spectral_tree(levels, epsilon=1.0) > 0.0
    assert time.perf_counter() - start < 2.0
