"""Questions about few inputs with their floors, to hold beside `general_solver`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.tree.shares import middle
from hubbub_authoring.floor import Weights, cumulative_floor, mean_floor, pattern_floor, shares_floor
from hubbub_authoring.floor.linear import linear_floor
from hubbub_authoring.floor.spectral import cumulative_questions

Floats = NDArray[np.float64]

Kind = Literal["labels", "numbers", "random"]

WEIGHTS = (Weights(0.0, 1.0), Weights(0.5, 0.5))
"""Categories, and both; values alone have one floor for all groupings."""


class FloorCase(NamedTuple):
    """A question, what it asks in words, and its floor."""

    words: str
    questions: Floats
    prior: Floats
    epsilon: float
    floor: float


def label_questions(sizes: list[int], weights: Weights, *, missing: bool) -> tuple[Floats, Floats]:
    """Return the questions and the uniform prior of values in categories."""
    labels, k, m = np.repeat(np.arange(len(sizes)), sizes), sum(sizes), len(sizes)
    values = math.sqrt(weights.value / k) * np.eye(k)
    categories = math.sqrt(weights.category / m) * (labels == np.arange(m)[:, None])
    return _with_missing(np.concatenate([values, categories]), np.full(k, 1 / k), missing=missing)


def floor_cases(kind: Kind, inputs: int, epsilon: float, *, missing: bool) -> Iterator[FloorCase]:
    """Yield cases of K inputs, missing beside them where there is one.

    Labels: values, and of every grouping categories and both. Numbers: the mean, cumulative shares, and those
    that quantiles need. Random: three sets of questions of any rank and three single ones, each with a prior
    of its own, which gives an input nothing if there is a missing one; seeded by K.
    """
    if kind == "labels":
        for sizes in groupings(inputs):
            for weights in (Weights(1.0, 0.0), *WEIGHTS) if len(sizes) == 1 else WEIGHTS:
                if weights.value == 0.0 and len(sizes) == 1:
                    continue
                known = shares_floor(sizes, epsilon=epsilon, weights=weights, missing=missing)
                asked = label_questions(sizes, weights, missing=missing)
                yield FloorCase(f"{sizes}, {weights}", *asked, epsilon, known.error)
    elif kind == "numbers":
        points, prior = np.linspace(-1.0, 1.0, inputs), np.full(inputs, 1 / inputs)
        known = mean_floor(points, epsilon=epsilon, missing=missing)
        yield FloorCase("mean", *_with_missing(points[None], prior, missing=missing), epsilon, known.error)
        for words, ends in (("cdf", (1, inputs - 1)), ("quantiles", middle(inputs))):
            known = cumulative_floor(inputs, epsilon=epsilon, missing=missing, middle=words == "quantiles")
            if known.proof != "patterns":  # beyond nine inputs it is a bound and no optimum
                continue
            asked = _with_missing(cumulative_questions(inputs, *ends), prior, missing=missing)
            yield FloorCase(words, *asked, epsilon, known.error)
    else:
        rng = np.random.default_rng(inputs)
        for number in range(3):
            prior = rng.dirichlet(np.full(inputs, 3.0))
            asked = _with_missing(rng.normal(size=(number + 1, inputs)), prior, missing=missing)
            yield FloorCase(
                f"{number + 1} questions", *asked, epsilon, pattern_floor(*asked, epsilon=epsilon).floor
            )
            one = _with_missing(rng.normal(size=(1, inputs)), prior, missing=missing)
            known_one = linear_floor(one[0][0], one[1], epsilon=epsilon, gap=1e-7)
            yield FloorCase("one question", *one, epsilon, known_one.floor)


def groupings(inputs: int, largest: int | None = None) -> Iterator[list[int]]:
    """Yield all sizes of categories, falling, that have so many inputs together."""
    if inputs == 0:
        yield []
    for size in range(min(inputs, largest or inputs), 0, -1):
        for rest in groupings(inputs - size, size):
            yield [size, *rest]


def _with_missing(questions: Floats, prior: Floats, *, missing: bool) -> tuple[Floats, Floats]:
    """Return questions and prior with an input that nobody holds and nothing asks for."""
    if missing:
        return np.pad(questions, ((0, 0), (0, 1))), np.append(prior, 0.0)
    return questions, prior
