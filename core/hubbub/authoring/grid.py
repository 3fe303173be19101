"""The channel of a survey of numbers: its mechanism's keys in the attribute's units, made grid steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hubbub.authoring.scale_law import scale_law
from hubbub.authoring.unordered import UNORDERED, unordered_channel
from hubbub.channels.channel import MAX_INPUTS, MAX_WEIGHTS, Channel
from hubbub.mechanisms.boosted.boosted import Absolute, Fixed, Relative, boosted, brdp
from hubbub.mechanisms.boosted.kernels import KernelName
from hubbub.mechanisms.boosted.r2dp import METRICS, Metric, r2dp
from hubbub.mechanisms.boosted.scalar import duchi, hybrid, piecewise, square_wave
from hubbub.survey.domain import NumberDomain
from hubbub.survey.rules import Rules

GRID_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "boosted": (
        "points",
        "kernel",
        "law",
        "region",
        "half_width",
        "share",
        "low",
        "high",
        "kernel_epsilon",
        "boost",
    ),
    "r2dp": ("points", "within", "metric", "law"),
    "square_wave": ("points",),
    "piecewise": ("points",),
    "hybrid": ("points",),
    "duchi": ("points",),
    "brdp": ("points", "kernel", "half_width", "kernel_epsilon", "recycling"),
}
"""The mechanisms that numbers may have beside those of `UNORDERED` and auto, and their keys in a survey
file."""

DEFAULT_POINTS: Final = 33
"""Of a grid that nobody asked for: rounding to it adds under 1 % of the variance at epsilon <= 4."""

_REGION_KEYS: Final = {
    "absolute": ("half_width",),
    "relative": ("share", "half_width"),
    "fixed": ("low", "high"),
}
_KERNELS: Final[tuple[KernelName, ...]] = ("laplace", "uniform", "gaussian", "staircase", "r2dp")

# A width of so many steps is meant to be whole: the division that found it has rounded.
_WHOLE: Final = 1e-9


def grid_channel(
    rules: Rules, domain: NumberDomain, name: str, keys: Mapping[str, object], epsilon: float
) -> Channel:
    """Return the channel of a survey of numbers, missing last.

    Raises:
        SurveyError: If a key breaks its rule.
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    points = grid_points(rules, keys)
    domain.grid(points)  # refuses points that no float tells apart
    step = (domain.high - domain.low) / (points - 1)
    if name in UNORDERED:
        return unordered_channel(rules, name, keys, points + 1, epsilon)
    if name == "brdp":
        if "half_width" not in keys:
            rules.refuse("mechanism.half_width", "must be given for brdp", "nothing")
        noise = rules.choice("mechanism.kernel", keys.get("kernel", "laplace"), _KERNELS[:-1])
        return brdp(
            points,
            epsilon=epsilon,
            half_width=_steps(
                rules.real("mechanism.half_width", keys["half_width"], 0.0, domain.high - domain.low), step
            ),
            kernel=next(kernel for kernel in _KERNELS if kernel == noise),
            kernel_epsilon=_optional(rules, keys, "kernel_epsilon", epsilon),
            recycling=_optional(rules, keys, "recycling", 1.0),
            missing="input",
        )
    if name == "r2dp":
        return _random_scale(rules, domain, keys, points, epsilon)
    published = {"square_wave": square_wave, "piecewise": piecewise, "hybrid": hybrid, "duchi": duchi}
    if name in published:
        return published[name](points, epsilon=epsilon, missing="input")
    chosen = rules.choice("mechanism.kernel", keys.get("kernel", "uniform"), _KERNELS)
    law = scale_law(rules, keys)
    if (law is None) == (chosen == "r2dp"):
        rules.refuse(
            "mechanism.law", "must be given for the kernel r2dp, and only there", keys.get("law", "nothing")
        )
    return boosted(
        points,
        epsilon=epsilon,
        kernel=next(kernel for kernel in _KERNELS if kernel == chosen),
        law=law,
        region=_region(rules, keys, domain, step),
        kernel_epsilon=_optional(rules, keys, "kernel_epsilon", epsilon),
        boost=_optional(rules, keys, "boost", 1.0),
        missing="input",
    )


def _random_scale(
    rules: Rules, domain: NumberDomain, keys: Mapping[str, object], points: int, epsilon: float
) -> Channel:
    law = scale_law(rules, keys)
    metric: Metric = "usefulness"
    if "metric" in keys:
        if law is not None:
            rules.refuse("mechanism.metric", "must be absent where a law is given", keys["metric"])
        chosen = rules.choice("mechanism.metric", keys["metric"], METRICS)
        metric = next(name for name in METRICS if name == chosen)
    if "within" not in keys and law is None and metric == "usefulness":
        rules.refuse("mechanism.within", "must be given for the metric usefulness", "nothing")
    if "within" in keys and (law is not None or metric != "usefulness"):
        rules.refuse("mechanism.within", "must be absent unless a law is searched for it", keys["within"])
    within = _optional(rules, keys, "within", domain.high - domain.low)
    if within is not None:
        within = _steps(within, (domain.high - domain.low) / (points - 1))
    return r2dp(points, epsilon=epsilon, law=law, within=within, metric=metric, missing="input")


def grid_points(rules: Rules, keys: Mapping[str, object], default: int | None = None) -> int:
    """Return the number of points of the grid; the key is required where there is no default."""
    if "points" not in keys and default is not None:
        return default
    if "points" not in keys:
        rules.refuse("mechanism.points", "must be given", "nothing")
    points = rules.integer("mechanism.points", keys["points"], 2, MAX_INPUTS - 1)
    if (points + 1) ** 2 > MAX_WEIGHTS:
        rules.refuse("mechanism.points", f"must leave a matrix of at most {MAX_WEIGHTS} weights", points)
    return points


def _optional(rules: Rules, keys: Mapping[str, object], name: str, high: float) -> float | None:
    return rules.real(f"mechanism.{name}", keys[name], 0.0, high) if name in keys else None


def _region(
    rules: Rules, keys: Mapping[str, object], domain: NumberDomain, step: float
) -> Absolute | Relative | Fixed:
    shape = rules.choice("mechanism.region", keys.get("region", "absolute"), tuple(_REGION_KEYS))
    for name in ("half_width", "share", "low", "high"):
        mine = name in _REGION_KEYS[shape]
        if not mine and name in keys:
            rules.refuse(f"mechanism.{name}", f"must be absent for a region that is {shape}", keys[name])
        if mine and shape != "absolute" and name not in keys:
            rules.refuse(f"mechanism.{name}", f"must be given for a region that is {shape}", "nothing")
    half_width = _optional(rules, keys, "half_width", domain.high - domain.low)
    if shape == "absolute":
        return Absolute(None if half_width is None else _steps(half_width, step))
    if shape == "relative":
        share = rules.real("mechanism.share", keys["share"], 0.0, float(MAX_INPUTS))
        return Relative(share, _steps(half_width or 0.0, step), -domain.low / step)
    low, high = (rules.real(f"mechanism.{name}", keys[name]) for name in ("low", "high"))
    if low > high:
        rules.refuse("mechanism.low", f"must be at most mechanism.high, {high:g}", low)
    if low > domain.high:
        rules.refuse("mechanism.low", f"must be at most the attribute's high, {domain.high:g}", low)
    if high < domain.low:
        rules.refuse("mechanism.high", f"must be at least the attribute's low, {domain.low:g}", high)
    return Fixed(_steps(low - domain.low, step), _steps(high - domain.low, step))


def _steps(distance: float, step: float) -> float:
    steps = distance / step
    return float(round(steps)) if abs(steps - round(steps)) < _WHOLE * max(1.0, abs(steps)) else steps
