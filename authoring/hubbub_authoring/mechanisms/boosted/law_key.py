"""The law of a random scale in a survey file, such as `law = { name = "gamma", shape = 3.0 }`.

Rates are inverse scales. Only their ratios count: epsilon sets the scale that is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from hubbub_authoring.mechanisms.boosted.scale_laws import (
    Gamma,
    ScaleLaw,
    TruncatedGaussian,
    TwoPoint,
    UniformScale,
)

if TYPE_CHECKING:
    from hubbub.survey import Rules


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
            rules.refuse(f"mechanism.law.{key}", f"must be given for {name}", "nothing")

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
