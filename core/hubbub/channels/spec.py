"""Checks of the description of a compiled channel, which came over the wire and is not trusted."""

from __future__ import annotations

from collections.abc import Mapping

from hubbub.errors import WireError
from hubbub.numeric.randomness import MAX_TOTAL

SpecValue = int | str | bytes | list[int]
"""The values that a description is made of."""


def check_spec_keys(spec: Mapping[str, object], *keys: str) -> None:
    """Refuse a description whose keys are not exactly "kind" and the given ones.

    Raises:
        WireError: If one is missing or unknown.
    """
    if set(spec) != {"kind", *keys}:
        raise WireError(
            f"a channel must have the keys {', '.join(('kind', *keys))}, got {sorted(map(str, spec))}"
        )


def spec_int(spec: Mapping[str, object], key: str) -> int:
    """Return an integer of a description.

    Raises:
        WireError: If it is not an integer from 1 to 2^63 - 1.
    """
    value = spec[key]
    if type(value) is not int or not 1 <= value < MAX_TOTAL:
        raise WireError(f"a channel's {key} must be an integer within 1 to 2^63 - 1, got {value!r}")
    return value


def spec_ints(spec: Mapping[str, object], key: str) -> list[int]:
    """Return a non-empty list of integers of a description.

    Raises:
        WireError: If it is not a list of integers from 1 to 2^63 - 1.
    """
    value = spec[key]
    if not isinstance(value, list | tuple) or not value:
        raise WireError(f"a channel's {key} must be a list of integers, got {type(value).__name__}")
    for entry in value:
        if type(entry) is not int or not 1 <= entry < MAX_TOTAL:
            raise WireError(f"a channel's {key} must be integers within 1 to 2^63 - 1, got {entry!r}")
    return list(value)
