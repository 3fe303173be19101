"""The mechanisms that know neither categories nor an order of their inputs, as a survey file names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hubbub.channels.channel import Channel
from hubbub.mechanisms.grr import grr
from hubbub.mechanisms.hashing.hash_pool import MAX_SYMBOLS
from hubbub.mechanisms.hashing.local_hashing import local_hashing
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.unary import unary
from hubbub.survey.rules import Rules

UNORDERED: Final = ("grr", "subset", "unary", "local_hashing")
"""Their names."""


def unordered_channel(
    rules: Rules, name: str, keys: Mapping[str, object], inputs: int, epsilon: float
) -> Channel:
    """Return the channel of one of them.

    Raises:
        SurveyError: If a key breaks its rule.
        ParameterError: If no integers keep the declared epsilon.
    """
    if name == "subset":
        return subset_selection(inputs, epsilon=epsilon)
    if name == "unary":
        chosen = keys.get("variant", "optimised")
        variant = rules.choice("mechanism.variant", chosen, ("optimised", "symmetric"))
        return unary(inputs, epsilon=epsilon, variant="symmetric" if variant == "symmetric" else "optimised")
    if name == "local_hashing":
        buckets = keys.get("buckets")
        if buckets is not None:
            buckets = rules.integer("mechanism.buckets", buckets, 2, MAX_SYMBOLS)
        return local_hashing(inputs, epsilon=epsilon, buckets=buckets)
    return grr(inputs, epsilon=epsilon)
