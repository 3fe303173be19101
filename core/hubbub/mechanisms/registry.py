"""The kinds of channels that travel, each with the module that brings it: loaded when a survey has it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from hubbub.channels.channel import Channel
from hubbub.errors import WireError

KINDS: Final[Mapping[str, str]] = {
    "dense": "hubbub.channels.finite",
    "grr": "hubbub.mechanisms.grr",
    "category_grr": "hubbub.mechanisms.category_grr",
    "pbgrr": "hubbub.mechanisms.category_grr",
    "set": "hubbub.mechanisms.set_selection",
    "subset": "hubbub.mechanisms.subset",
    "unary": "hubbub.mechanisms.unary",
    "local_hashing": "hubbub.mechanisms.hashing.local_hashing",
    "levels": "hubbub.mechanisms.levels.levels",
    "set_levels": "hubbub.mechanisms.levels.levels",
    "nested_levels": "hubbub.mechanisms.tree.nested",
    "orbits": "hubbub.mechanisms.orbits.short",
    "short_orbits": "hubbub.mechanisms.orbits.short",
    "curve": "hubbub.channels.designed",
    "weighted": "hubbub.channels.designed",
    "tree": "hubbub.mechanisms.tree.channel",
    "tree_node": "hubbub.mechanisms.tree.channel",
    "parts": "hubbub.mechanisms.bundle.channel",
}
"""Kind on the wire -> the module that defines it, or imports the one that does."""


def channel_from_spec(spec: Mapping[str, object]) -> Channel:
    """Return the channel of a description; the inverse of `Channel.to_spec`.

    Args:
        spec: As `to_spec` gave it, after any trip through msgpack. It is not trusted.

    Raises:
        WireError: If it is not a description of a known kind, with exactly that kind's keys and types.
        ParameterError: If its integers break a rule of channels.
    """
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise WireError(f"a channel must be one of {', '.join(sorted(KINDS))}, got {kind!r}")
    import_module(KINDS[kind])
    return Channel.kinds()[kind].from_spec(spec)
