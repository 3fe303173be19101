"""The mechanisms, one registration each: modules are named as text, and loaded when something asks for them.

A device loads the module of a channel's kind when a survey of that kind comes; entries, which survey files
and the designer read, are loaded on authors' machines only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from hubbub.channels.channel import Channel
from hubbub.errors import WireError

if TYPE_CHECKING:
    from hubbub.mechanisms.mechanism import Mechanism, Subject


@dataclass(frozen=True)
class Registration:
    """One mechanism, by name.

    Attributes:
        name: In survey files.
        module: Where its entry is, in the tuple `ENTRIES`.
        kinds: Kinds on the wire of the channels that it defines; () where it compiles to a dense one.
        channels: The module of those channels, where it is another.
    """

    name: str
    module: str
    kinds: tuple[str, ...] = ()
    channels: str = ""


REGISTERED: Final = (
    Registration("grr", "hubbub.mechanisms.grr", ("grr",)),
    Registration(
        "pbgrr", "hubbub.mechanisms.pbgrr_entry", ("category_grr", "pbgrr"), "hubbub.mechanisms.category_grr"
    ),
    Registration("subset", "hubbub.mechanisms.subset", ("subset",)),
    Registration("unary", "hubbub.mechanisms.unary", ("unary",)),
    Registration("local_hashing", "hubbub.mechanisms.hashing.local_hashing", ("local_hashing",)),
    Registration(
        "levels",
        "hubbub.mechanisms.levels.entry",
        ("levels", "set_levels"),
        "hubbub.mechanisms.levels.levels",
    ),
    Registration(
        "orbits",
        "hubbub.design.floor.orbit_entry",
        ("orbits", "short_orbits"),
        "hubbub.mechanisms.orbits.short",
    ),
    Registration("neighbourhood", "hubbub.mechanisms.neighbourhood"),
    Registration("boosted", "hubbub.mechanisms.boosted.entries"),
    Registration("r2dp", "hubbub.mechanisms.boosted.entries"),
    Registration("square_wave", "hubbub.mechanisms.boosted.entries"),
    Registration("piecewise", "hubbub.mechanisms.boosted.entries"),
    Registration("hybrid", "hubbub.mechanisms.boosted.entries"),
    Registration("duchi", "hubbub.mechanisms.boosted.entries"),
    Registration(
        "optimal", "hubbub.design.floor.optimal_entry", ("curve", "weighted"), "hubbub.channels.designed"
    ),
    Registration("brdp", "hubbub.mechanisms.boosted.entries"),
    Registration(
        "tree", "hubbub.mechanisms.tree.entry", ("tree", "tree_node"), "hubbub.mechanisms.tree.channel"
    ),
)
"""Every mechanism, in the order in which messages and documents list them."""

KINDS: Final[Mapping[str, str]] = {
    "dense": "hubbub.channels.finite",
    **{kind: each.channels or each.module for each in REGISTERED for kind in each.kinds},
}
"""Kind on the wire -> the module that defines it."""


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


def mechanisms() -> Mapping[str, Mechanism]:
    """Return the entry of every mechanism by its name, in the order of registration; loads all of them."""
    return {each.name: _entry(each) for each in REGISTERED}


def mechanisms_for(subject: Subject) -> Mapping[str, Mechanism]:
    """Return the entries of the mechanisms that can be asked about a subject."""
    return {name: entry for name, entry in mechanisms().items() if subject in entry.takes}


def _entry(registration: Registration) -> Mechanism:
    entries: tuple[Mechanism, ...] = import_module(registration.module).ENTRIES
    return next(entry for entry in entries if entry.name == registration.name)
