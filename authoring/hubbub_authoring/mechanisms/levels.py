"""The entry of level reports: their keys, and the designer's search for the share of each level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from hubbub import mechanisms
from hubbub.channels import Channel
from hubbub_authoring.mechanisms.boosted.search import least
from hubbub_authoring.mechanisms.mechanism import (
    ChoiceKey,
    Judge,
    Mechanism,
    Parameters,
    RealKey,
    Request,
    Trial,
    grouped,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload

LEAST_SHARE: Final = 1e-3
"""The smallest share of reports that a level can have: one that hardly anyone reports about says nothing."""

LEAST_TRIED: Final = 1 / 64
"""The smallest share that the designer tries."""

_SHARE: Final = RealKey(
    "category_share",
    "`category_share`, the share of category reports (0.5)",
    low=LEAST_SHARE,
    high=1.0 - LEAST_SHARE,
)
_ORACLES: Final = ChoiceKey(
    "oracles",
    '`oracles = "grr"` keeps reports to one or two bytes where sets would be more exact',
    choices=("best", "grr"),
)


def _of_request(request: Request) -> Channel:
    sizes = request.sizes
    if len(sizes) < 3 or max(sizes) == 1:
        rule = "must be two or more for levels, one of them of several values"
        request.rules.refuse("category", rule, request.categories)
    share = _SHARE.read(request)
    return _compiled(sizes, request.epsilon, 0.5 if share is None else share, _ORACLES.read(request))


def _compiled(sizes: list[int], epsilon: float, share: float, oracles: str) -> Channel:
    chosen: Literal["best", "grr"] = "grr" if oracles == "grr" else "best"
    return mechanisms.levels(sizes, epsilon=epsilon, shares=[share, 1.0 - share], oracles=chosen)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    if not grouped(workload) or workload.objective.quantity == "category":
        return
    for oracles in ("grr", "best"):
        yield _trial(workload, judge, oracles)


def _trial(workload: Workload, judge: Judge, oracles: str) -> Trial:
    def build(share: float) -> Channel:
        return _compiled(workload.sizes, workload.epsilon, share, oracles)

    share = least(lambda share: judge(lambda: build(share)), LEAST_TRIED, 1.0 - LEAST_TRIED)
    parameters: Parameters = {"category_share": share, "oracles": oracles}
    return Trial(parameters, lambda: build(share), 2)


ENTRIES: Final = (
    Mechanism(
        name="levels",
        purpose="values and categories both: a public coin picks whether a device tells its category or its "
        "value, each at the full epsilon",
        keys=(_SHARE, _ORACLES),
        takes=frozenset({"labels"}),
        build=_of_request,
        trials=_trials,
    ),
)
