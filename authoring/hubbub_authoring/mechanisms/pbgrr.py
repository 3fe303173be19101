"""The entry of PB-GRR: its weights, its keys, and the designer's search for its boost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from hubbub import mechanisms
from hubbub.channels import MAX_INPUTS, Channel
from hubbub.errors import ABSENT, ParameterError
from hubbub.mechanisms import PBGRR, CategoryGRR, symmetric_weights
from hubbub.numeric import HEADROOM, MIN_EPSILON, checked_epsilon, exp_below
from hubbub_authoring.mechanisms.boosted.search import least
from hubbub_authoring.mechanisms.mechanism import Judge, Mechanism, RealKey, Request, Trial, grouped

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload

LEAST_SHARE: Final = 1 / 64
"""The smallest share of epsilon tried as boost_epsilon: less is nothing."""

BOOST: Final = RealKey(
    "boost_epsilon",
    "`boost_epsilon`, from 0 (values hidden within their category) to epsilon (plain GRR): how well values "
    "of one category may be told apart",
    required="must be given",
)


def _of_request(request: Request) -> Channel:
    if not request.categories:
        request.rules.refuse("category", "must be given for pbgrr", ABSENT)
    boost = BOOST.read(request) or 0.0
    if not 0 <= boost <= request.epsilon:
        request.rules.refuse(BOOST.place, f"must be from 0 to epsilon {request.epsilon:g}", boost)
    return pbgrr(request.sizes, epsilon=request.epsilon, boost_epsilon=boost)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    if not grouped(workload) or workload.objective.quantity == "category":  # hiding values is the best boost
        return
    epsilon = workload.epsilon

    def build(boost: float) -> Channel:
        return pbgrr(workload.sizes, epsilon=epsilon, boost_epsilon=boost)

    boost = least(lambda boost: judge(lambda: build(boost)), epsilon * LEAST_SHARE, epsilon)
    yield Trial({"boost_epsilon": boost}, lambda: build(boost), 2)


def pbgrr(sizes: Sequence[int], *, epsilon: float, boost_epsilon: float) -> PBGRR:
    """Return privacy-boosted randomised response for categories of any sizes (privacy-boosting, section 4.4).

    Between values of different categories a report costs at most `epsilon`, between values of one category at
    most `boost_epsilon`. With boost_epsilon = epsilon it is GRR over the values; with boost_epsilon = 0 the
    category alone is sent, and the channel has one symbol per category.

    Args:
        sizes: Values per category; inputs are numbered category by category.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        boost_epsilon: ε₀, 0 to epsilon.

    Raises:
        ParameterError: If a parameter is out of range, there are fewer than two categories, or no total below
            2^63 can express the weights.

    >>> pbgrr([10] * 9 + [1], epsilon=5.0, boost_epsilon=2.0).epsilon <= 5.0
    True
    """
    counts = _checked_sizes(sizes)
    epsilon = checked_epsilon(epsilon)
    boost = checked_epsilon(boost_epsilon, subject="boost_epsilon", minimum=0.0)
    if boost > epsilon:
        raise ParameterError(f"boost_epsilon must be at most epsilon = {epsilon!r}, got {boost!r}")
    if 0.0 < boost < MIN_EPSILON:
        raise ParameterError(f"boost_epsilon must be 0 or at least {MIN_EPSILON:g}, got {boost!r}")
    ceiling = exp_below(epsilon - HEADROOM)
    if boost == 0.0:
        return CategoryGRR(counts, *symmetric_weights(len(counts), ceiling))
    if boost == epsilon:
        true, other = symmetric_weights(sum(counts), ceiling)
        return PBGRR(counts, [true] * len(counts), [other] * len(counts), [other] * len(counts))
    by_size = mechanisms.category_weights(Counter(counts), ceiling, exp_below(epsilon - boost))
    t, u, o = zip(*(by_size[size] for size in counts), strict=True)
    return PBGRR(counts, t, u, o)


def _checked_sizes(sizes: Sequence[int]) -> list[int]:
    counts = []
    for size in np.asarray(sizes).tolist() if isinstance(sizes, np.ndarray) else sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ParameterError(f"a category's size must be an integer of at least 1, got {size!r}")
        counts.append(int(size))
    if len(counts) < 2:
        raise ParameterError(f"pbgrr must have at least 2 categories, got {len(counts)}")
    if sum(counts) > MAX_INPUTS:
        raise ParameterError(
            f"the sizes of all categories must sum to at most {MAX_INPUTS}, got {sum(counts)}"
        )
    return counts


ENTRIES: Final = (
    Mechanism(
        name="pbgrr",
        purpose="many values in categories",
        keys=(BOOST,),
        takes=frozenset({"labels"}),
        build=_of_request,
        trials=_trials,
    ),
)
