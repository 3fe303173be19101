"""The entry of PB-GRR: its keys, and the designer's search for its boost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hubbub.channels.channel import Channel
from hubbub.mechanisms.boosted.search import least
from hubbub.mechanisms.mechanism import Judge, Mechanism, RealKey, Request, Trial, grouped
from hubbub.mechanisms.pbgrr import pbgrr

if TYPE_CHECKING:
    from hubbub.design.workload import Workload

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
        request.rules.refuse("category", "must be given for pbgrr", "nothing")
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
