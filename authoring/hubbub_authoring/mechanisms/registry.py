"""The mechanisms, one registration each: a module is text, and loaded when something asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.mechanism import Mechanism, Subject


@dataclass(frozen=True)
class Registration:
    """One mechanism, by name.

    Attributes:
        name: In survey files.
        module: Where its entry is, in the tuple `ENTRIES`.
    """

    name: str
    module: str


REGISTERED: Final = (
    Registration("grr", "hubbub_authoring.mechanisms.oracles"),
    Registration("pbgrr", "hubbub_authoring.mechanisms.pbgrr"),
    Registration("subset", "hubbub_authoring.mechanisms.oracles"),
    Registration("unary", "hubbub_authoring.mechanisms.oracles"),
    Registration("local_hashing", "hubbub_authoring.mechanisms.oracles"),
    Registration("levels", "hubbub_authoring.mechanisms.levels"),
    Registration("orbits", "hubbub_authoring.mechanisms.orbits"),
    Registration("neighbourhood", "hubbub_authoring.mechanisms.neighbourhood"),
    Registration("boosted", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("r2dp", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("square_wave", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("piecewise", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("hybrid", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("duchi", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("optimal", "hubbub_authoring.mechanisms.optimal"),
    Registration("brdp", "hubbub_authoring.mechanisms.boosted.entries"),
    Registration("tree", "hubbub_authoring.mechanisms.levels"),
)
"""Every mechanism, in the order in which messages and documents list them."""


def mechanisms() -> Mapping[str, Mechanism]:
    """Return the entry of every mechanism by its name, in the order of registration; loads all of them."""
    return {each.name: _entry(each) for each in REGISTERED}


def mechanisms_for(subject: Subject) -> Mapping[str, Mechanism]:
    """Return the entries of the mechanisms that can be asked about a subject."""
    return {name: entry for name, entry in mechanisms().items() if subject in entry.takes}


def _entry(registration: Registration) -> Mechanism:
    entries: tuple[Mechanism, ...] = import_module(registration.module).ENTRIES
    return next(entry for entry in entries if entry.name == registration.name)
