"""The entries of the mechanisms of numbers: their keys in the attribute's units, made grid steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast, get_args

from hubbub.channels import MAX_INPUTS, Channel
from hubbub.errors import ABSENT
from hubbub_authoring.mechanisms.boosted.boosted import Absolute, Boosted, Fixed, Relative, boosted, brdp
from hubbub_authoring.mechanisms.boosted.kernels import KernelName
from hubbub_authoring.mechanisms.boosted.r2dp import METRICS, Metric, r2dp
from hubbub_authoring.mechanisms.boosted.scalar import duchi, hybrid, piecewise, square_wave
from hubbub_authoring.mechanisms.boosted.scale_laws import (
    Gamma,
    ScaleLaw,
    TruncatedGaussian,
    TwoPoint,
    UniformScale,
)
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    ChoiceKey,
    Judge,
    Key,
    Mechanism,
    Parameters,
    RealKey,
    Request,
    Subject,
    Trial,
)

if TYPE_CHECKING:
    from hubbub.survey import Rules
    from hubbub_authoring.mechanisms.workload import Workload


MIN_RATE: Final = 1e-9
"""The least rate or shape that is not 0."""

MAX_RATE: Final = 1e9
"""The largest rate or shape: no grid tells laws apart whose rates differ by more."""

_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "two_point": ("slow", "fast", "share"),
    "gamma": ("shape",),
    "uniform": ("slow", "fast"),
    "truncated_gaussian": ("mean", "sigma", "slow", "fast"),
}
_OPTIONAL: Final = {("truncated_gaussian", "fast")}


def scale_law(rules: Rules, keys: Mapping[str, object]) -> ScaleLaw | None:
    """Return the law that `mechanism.law` describes; None where there is none.

    Raises:
        SurveyError: If a key is missing, unknown, or breaks its rule.
    """
    if "law" not in keys:
        return None
    table = keys["law"]
    if not isinstance(table, dict):
        rules.refuse("mechanism.law", 'must be a table such as { name = "gamma", shape = 3.0 }', table)
    name = rules.choice("mechanism.law.name", table.get("name"), tuple(_KEYS))
    known = _KEYS[name]
    for key in table:
        if key not in ("name", *known):
            rules.refuse(f"mechanism.law.{key}", f"must be one of {', '.join(known)} for {name}", table[key])
    for key in known:
        if key not in table and (name, key) not in _OPTIONAL:
            rules.refuse(f"mechanism.law.{key}", f"must be given for {name}", ABSENT)

    def number(key: str, low: float, high: float) -> float:
        return rules.real(f"mechanism.law.{key}", table[key], low, high)

    if name == "gamma":
        return Gamma(number("shape", MIN_RATE, MAX_RATE), 1.0)
    slow = number("slow", MIN_RATE if name == "two_point" else 0.0, MAX_RATE)
    fast = number("fast", slow, MAX_RATE) if "fast" in table else None
    if fast == slow and name != "two_point":
        rules.refuse("mechanism.law.fast", f"must be above mechanism.law.slow {slow:g}", fast)
    if name == "truncated_gaussian":
        spread, mean = number("sigma", MIN_RATE, MAX_RATE), number("mean", -MAX_RATE, MAX_RATE)
        return TruncatedGaussian(mean, spread, slow, *(() if fast is None else (fast,)))
    assert fast is not None  # noqa: S101 - both laws left are refused without it
    return UniformScale(slow, fast) if name == "uniform" else TwoPoint(fast, slow, number("share", 0.0, 1.0))


GRID_KERNELS: Final[tuple[KernelName, ...]] = ("uniform", "laplace", "gaussian", "staircase")
"""The kernels that the designer tries."""

_REGION_KEYS: Final = {
    "absolute": ("half_width",),
    "relative": ("share", "half_width"),
    "fixed": ("low", "high"),
}
_NUMBERS: Final[frozenset[Subject]] = frozenset({"numbers"})

# A width of so many steps is meant to be whole: the division that found it has rounded.
_WHOLE: Final = 1e-9

_KERNEL: Final = ChoiceKey(
    "kernel",
    'optional `kernel` ("uniform", "laplace", "gaussian", "staircase", or "r2dp" with its `law`)',
    choices=("laplace", "uniform", "gaussian", "staircase", "r2dp"),
    default="uniform",
)
_LAW: Final = Key(
    "law",
    '`law` of a random scale: `{ name = "two_point", slow = 1, fast = 3, share = 0.2 }`, `{ name = "gamma", '
    'shape = 3 }`, `{ name = "uniform", slow = 1, fast = 3 }` or `{ name = "truncated_gaussian", mean = 2, '
    "sigma = 1, slow = 0, fast = 9 }`; only ratios of these inverse scales count, epsilon sets the rest",
)
_REGION: Final = ChoiceKey(
    "region",
    '`region` ("absolute" with `half_width`; "relative" with `share` and `half_width`, so that the width is '
    'share·\\|x\\| + half_width; or "fixed" with `low` and `high`; all in the attribute\'s units)',
    choices=tuple(_REGION_KEYS),
)
_HALF_WIDTH: Final = RealKey("half_width", "`half_width` of the region", low=0.0)
_SHARE: Final = RealKey("share", "`share` of a relative region", low=0.0, high=float(MAX_INPUTS))
_LOW: Final = RealKey("low", "`low` end of a fixed region")
_HIGH: Final = RealKey("high", "`high` end of a fixed region")
_KERNEL_EPSILON: Final = RealKey("kernel_epsilon", "`kernel_epsilon`", low=0.0)
_BOOST: Final = RealKey(
    "boost",
    "or `boost`; what is left out is searched for the least variance of the mean",
    low=0.0,
    high=1.0,
)
_RECYCLED: Final = RealKey("half_width", "`half_width`", required="must be given for brdp", low=0.0)
_NOISE: Final = ChoiceKey(
    "kernel",
    'optional `kernel` ("laplace" if left out)',
    choices=("laplace", "uniform", "gaussian", "staircase"),
)
_RECYCLING: Final = RealKey(
    "recycling", "`recycling` (the share of unwanted outputs that are drawn anew)", low=0.0, high=1.0
)
_WITHIN: Final = RealKey("within", "the distance `within`", low=0.0)
_METRIC: Final = ChoiceKey(
    "metric", '`metric`: "usefulness" (the default), "l1", "l2" or "entropy"', choices=METRICS
)


def _span(request: Request) -> tuple[float, float, float]:
    """Return the two ends of a number, and a step of its grid."""
    assert request.span is not None  # noqa: S101 - these mechanisms take numbers only
    low, high = request.span
    return low, high, (high - low) / (request.points - 1)


def _boosted(request: Request) -> Boosted:
    chosen = _KERNEL.read(request)
    law = scale_law(request.rules, request.keys)
    if (law is None) == (chosen == "r2dp"):
        _LAW.refuse(request, "must be given for the kernel r2dp, and only there")
    return boosted(
        request.points,
        epsilon=request.epsilon,
        kernel=_kernel(chosen),
        law=law,
        region=_region(request),
        kernel_epsilon=_KERNEL_EPSILON.read(request, request.epsilon),
        boost=_BOOST.read(request),
        missing="input",
    )


def _kernel(chosen: str) -> KernelName:
    kernels: tuple[KernelName, ...] = get_args(KernelName)
    return next(kernel for kernel in kernels if kernel == chosen)


def _brdp(request: Request) -> Boosted:
    _RECYCLED.given(request)
    chosen = _NOISE.read(request)
    low, high, step = _span(request)
    return brdp(
        request.points,
        epsilon=request.epsilon,
        half_width=_steps(_RECYCLED.read(request, high - low) or 0.0, step),
        kernel=_kernel(chosen),
        kernel_epsilon=_KERNEL_EPSILON.read(request, request.epsilon),
        recycling=_RECYCLING.read(request),
        missing="input",
    )


def _random_scale(request: Request) -> Boosted:
    law = scale_law(request.rules, request.keys)
    if _METRIC.given(request) and law is not None:
        _METRIC.refuse(request, "must be absent where a law is given")
    chosen = _METRIC.read(request)
    metric: Metric = next(name for name in METRICS if name == chosen)
    if not _WITHIN.given(request) and law is None and metric == "usefulness":
        _WITHIN.refuse(request, "must be given for the metric usefulness")
    if _WITHIN.given(request) and (law is not None or metric != "usefulness"):
        _WITHIN.refuse(request, "must be absent unless a law is searched for it")
    low, high, step = _span(request)
    within = _WITHIN.read(request, high - low)
    return r2dp(
        request.points,
        epsilon=request.epsilon,
        law=law,
        within=None if within is None else _steps(within, step),
        metric=metric,
        missing="input",
    )


def _region(request: Request) -> Absolute | Relative | Fixed:
    shape = _REGION.read(request)
    for key in (_HALF_WIDTH, _SHARE, _LOW, _HIGH):
        mine = key.name in _REGION_KEYS[shape]
        if not mine and key.given(request):
            key.refuse(request, f"must be absent for a region that is {shape}")
        if mine and shape != "absolute" and not key.given(request):
            key.refuse(request, f"must be given for a region that is {shape}")
    first, last, step = _span(request)
    half_width = _HALF_WIDTH.read(request, last - first)
    if shape == "absolute":
        return Absolute(None if half_width is None else _steps(half_width, step))
    if shape == "relative":
        return Relative(_SHARE.read(request) or 0.0, _steps(half_width or 0.0, step), -first / step)
    low, high = (key.read(request) or 0.0 for key in (_LOW, _HIGH))
    if low > high:
        request.rules.refuse(_LOW.place, f"must be at most mechanism.high, {high:g}", low)
    if low > last:
        request.rules.refuse(_LOW.place, f"must be at most the attribute's high, {last:g}", low)
    if high < first:
        request.rules.refuse(_HIGH.place, f"must be at least the attribute's low, {first:g}", high)
    return Fixed(_steps(low - first, step), _steps(high - first, step))


def _steps(distance: float, step: float) -> float:
    steps = distance / step
    return float(round(steps)) if abs(steps - round(steps)) < _WHOLE * max(1.0, abs(steps)) else steps


def _boosted_trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    within = workload.objective.within
    for kernel in GRID_KERNELS:
        if within is None:
            yield _least_noise(workload, judge, kernel)
        else:
            yield _nearest_noise(workload, kernel, within)


def _step_of(workload: Workload) -> float:
    assert workload.points is not None  # noqa: S101 - a workload on a grid has numbers
    points = workload.inputs - 1
    return float(workload.points[points - 1] - workload.points[0]) / (points - 1)


def _least_noise(workload: Workload, judge: Judge, kernel: KernelName) -> Trial:
    """Return boosted noise with its split searched for the mean, its half width for the objective."""
    points, epsilon = workload.inputs - 1, workload.epsilon

    def build(width: float | None) -> Boosted:
        return boosted(points, epsilon=epsilon, kernel=kernel, region=Absolute(width), missing="input")

    width: float | None = None
    if workload.objective.quantity != "mean":
        costs: dict[int, float] = {}

        def cost(steps: int) -> float:
            if steps not in costs:
                costs[steps] = judge(lambda: build(float(steps)))
            return costs[steps]

        stride = max(1, (points - 1) // 8)
        best = min(range(0, points, stride), key=cost)
        while stride > 1:
            stride = (stride + 1) // 2
            best = min((w for w in (best - stride, best, best + stride) if 0 <= w < points), key=cost)
        width = float(best)
    parameters: Parameters = {"kernel": kernel, "points": points}

    def told(channel: Channel) -> Parameters:
        found = cast(Absolute, cast(Boosted, channel).design.region)
        if workload.points is None:
            return parameters
        return parameters | {"half_width": float(found.width * _step_of(workload))}

    return Trial(parameters, lambda: build(width), 0, told=told)


def _nearest_noise(workload: Workload, kernel: KernelName, within: float) -> Trial:
    """Return boosted noise with its split searched for reports near their value."""
    points, epsilon, step = workload.inputs - 1, workload.epsilon, _step_of(workload)
    width = float(math.floor(within / step * (1.0 + 1e-9)))
    region = Absolute(width)

    def build() -> Boosted:
        found = boosted(
            points, epsilon=epsilon, kernel=kernel, region=region, missing="input", objective="hits"
        )
        if kernel == "uniform":  # its boost is whatever epsilon allows
            return found
        boost = found.design.boost
        return boosted(points, epsilon=epsilon, kernel=kernel, region=region, missing="input", boost=boost)

    def told(channel: Channel) -> Parameters:
        known: Parameters = {"kernel": kernel, "points": points, "half_width": width * step}
        return known if kernel == "uniform" else known | {"boost": cast(Boosted, channel).design.boost}

    return Trial({"kernel": kernel, "points": points}, build, 0, told=told)


def _random_scale_trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    points, epsilon, within = workload.inputs - 1, workload.epsilon, workload.objective.within
    if within is None or workload.points is None:
        return
    steps = within / _step_of(workload)
    yield Trial(
        {"points": points, "within": within},
        lambda: r2dp(points, epsilon=epsilon, within=steps, missing="input"),
        7,
    )


def _published(name: str, mechanism: Callable[..., Channel], simplicity: int) -> Mechanism:
    """Return the entry of a mechanism of one number as its authors give it, without keys of its own."""

    def trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
        del judge
        points, epsilon = workload.inputs - 1, workload.epsilon
        yield Trial(
            {"points": points}, lambda: mechanism(points, epsilon=epsilon, missing="input"), simplicity
        )

    def build(request: Request) -> Channel:
        return mechanism(request.points, epsilon=request.epsilon, missing="input")

    return Mechanism(name, "numbers, to compare with", (POINTS,), _NUMBERS, build, trials)


ENTRIES: Final = (
    Mechanism(
        name="boosted",
        purpose="numbers, for their mean and rough shape",
        keys=(
            POINTS,
            _KERNEL,
            _LAW,
            _REGION,
            _HALF_WIDTH,
            _SHARE,
            _LOW,
            _HIGH,
            _KERNEL_EPSILON,
            _BOOST,
        ),
        takes=_NUMBERS,
        build=_boosted,
        trials=_boosted_trials,
    ),
    Mechanism(
        name="r2dp",
        purpose="numbers, by Laplace noise of a random scale",
        keys=(POINTS, _WITHIN, _METRIC, _LAW),
        takes=_NUMBERS,
        build=_random_scale,
        trials=_random_scale_trials,
    ),
    _published("square_wave", square_wave, 1),
    _published("hybrid", hybrid, 2),
    _published("piecewise", piecewise, 3),
    _published("duchi", duchi, 4),
    Mechanism(
        name="brdp",
        purpose="numbers, by budget recycling",
        keys=(POINTS, _NOISE, _RECYCLED, _KERNEL_EPSILON, _RECYCLING),
        takes=_NUMBERS,
        build=_brdp,
    ),
)
