"""The canonical bytes of a survey: one MessagePack array in a fixed order, one encoding per survey.

docs/wire-survey.md gives the layout for readers in other languages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np
from numpy.typing import NDArray

from hubbub import mechanisms
from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.errors import WireError
from hubbub.survey.domain import MAX_SIZE, Attribute, attribute_from_spec
from hubbub.survey.forms import form_from_spec
from hubbub.survey.rules import (
    DEFAULT_LEDGERS,
    MAX_CANONICAL_BYTES,
    MAX_NAME_CHARACTERS,
    MAX_TITLE_CHARACTERS,
)
from hubbub.survey.single import Single
from hubbub.wire import packing
from hubbub.wire.frames import check_elements

if TYPE_CHECKING:
    from hubbub.survey.form import Form
    from hubbub.survey.survey import Survey

# The first element keeps these bytes, and hence their digest, apart from anything else that is ever signed.
MAGIC: Final = "hubbub-survey"
SINGLE_LAYOUT: Final = 1
"""The layout of a survey that asks for one attribute."""

FORM_LAYOUT: Final = 2
"""The layout of any other survey: its form is a field, in the place of mapping and categories."""

_OF_LEDGERS: Final = 2
"""Added to the layout of a survey that says which ledgers may answer: they are one field more, the last."""

MAX_ELEMENTS: Final = 10 * MAX_INPUTS
"""The most elements of one survey, nested ones included: with room to spare for a label for every input, its
place, its category with name and size, and four weights. Built, they take 64 bytes each, 80 MiB in all."""

_SMALL: Final = 2**16
"""Bytes that are built without a look at them first: 4 MiB at worst."""

_FIELDS: Final = {SINGLE_LAYOUT: 16, FORM_LAYOUT: 15}
_FIELDS_OF_ALL: Final = _FIELDS | {layout + _OF_LEDGERS: n + 1 for layout, n in _FIELDS.items()}
_LARGEST: Final = 2**63 - 1

# A file with as many labels as a domain may hold, and room for comments.
MAX_FILE_BYTES: Final = 2**24

_HEAD_BYTES: Final = 20
# An array of MessagePack, short or long, whose first element is the name of the layout.
_COMPILED: Final = re.compile(rb"(?:[\x90-\x9f]|\xdc..|\xdd....)\xadhubbub-survey", re.DOTALL)
_EVERY_ROUND: Final = 3
"""Elements of a schedule without a rotation; with one there is one more, which older devices do not read."""


class Parts(TypedDict):
    """The parts of a Survey, by the names of its fields."""

    id: str
    version: int
    title: str
    form: Form
    epsilon: float
    channel: Channel
    start_s: int
    round_s: int
    rounds: int
    rotation: int
    lateness_s: int
    skew_s: int
    minimum_cohort: int
    planned_devices: int
    quota: int | None
    ledgers: tuple[str, ...]


def encode(survey: Survey) -> bytes:
    """Return the canonical bytes of a survey whose parts have been checked."""
    form = survey.form
    attributes: object = [each.to_spec() for each in form.attributes]
    spec = form.to_spec()
    layout, asked = FORM_LAYOUT, list[object]([spec])
    if not isinstance(spec[0], str):
        # The older layout has no name: the attribute by itself, then mapping and categories as own fields.
        layout, attributes, asked = SINGLE_LAYOUT, form.attributes[0].to_spec(), spec
    schedule = [survey.start_s, survey.round_s, survey.rounds, survey.rotation]
    ledgers: list[object] = []
    if survey.ledgers != DEFAULT_LEDGERS:
        layout, ledgers = layout + _OF_LEDGERS, [list(survey.ledgers)]
    return packing.pack(
        [
            MAGIC,
            layout,
            survey.id,
            survey.version,
            survey.title,
            attributes,
            float(survey.epsilon),
            dict(sorted(survey.channel.to_spec().items())),
            *asked,
            schedule if survey.rotation > 1 else schedule[:_EVERY_ROUND],
            survey.lateness_s,
            survey.skew_s,
            survey.minimum_cohort,
            survey.planned_devices,
            survey.quota,
            *ledgers,
        ]
    )


def decode(data: bytes) -> Parts:
    """Return the parts that canonical bytes describe, of the right types; `Survey` checks what they mean.

    Raises:
        WireError: If the bytes are not of this layout.
        ParameterError: If the channel or the attribute breaks a rule of its own.
    """
    if len(data) > MAX_CANONICAL_BYTES:
        raise WireError(f"a survey must have at most {MAX_CANONICAL_BYTES} bytes, got {len(data)}")
    if len(data) > _SMALL:
        check_elements(data, "survey", MAX_ELEMENTS)
    fields = packing.array(packing.unpack(data, "survey"), "survey")
    if len(fields) < 2 or fields[0] != MAGIC:
        raise WireError(f"a survey must be an array that begins with {MAGIC!r} and its version")
    layout = packing.version(fields[1], "survey", tuple(_FIELDS_OF_ALL))
    packing.array(fields, "survey", _FIELDS_OF_ALL[layout])
    ledgers: tuple[str, ...] = DEFAULT_LEDGERS
    if layout not in _FIELDS:
        layout, listed = layout - _OF_LEDGERS, packing.array(fields.pop(), "ledgers")
        ledgers = tuple(packing.text(each, "ledger", MAX_NAME_CHARACTERS) for each in listed)
    if not isinstance(fields[7], dict):
        raise WireError(f"a survey's channel must be a map, got {type(fields[7]).__name__}")
    channel = mechanisms.channel_from_spec(fields[7])
    form: Form
    if layout == SINGLE_LAYOUT:
        attribute = attribute_from_spec(fields[5])
        names, sizes = _categories(fields[9], channel.inputs)
        form = Single(attribute, channel.inputs, _places(fields[8], attribute, channel), names, tuple(sizes))
    else:
        attributes = tuple(map(attribute_from_spec, packing.array(fields[5], "attributes")))
        form = form_from_spec(
            attributes, packing.array(fields[8], "form"), packing.real(fields[6], "epsilon")
        )
    schedule, *terms = fields[-6:]
    start_s, round_s, rounds, rotation = _schedule(schedule)
    lateness_s, skew_s, cohort, devices = _numbers(terms[:4], "survey terms")
    return Parts(
        id=packing.text(fields[2], "survey id", MAX_NAME_CHARACTERS),
        version=_numbers([fields[3]], "survey version")[0],
        title=packing.text(fields[4], "survey title", MAX_TITLE_CHARACTERS),
        form=form,
        epsilon=packing.real(fields[6], "epsilon"),
        channel=channel,
        start_s=start_s,
        round_s=round_s,
        rounds=rounds,
        rotation=rotation,
        lateness_s=lateness_s,
        skew_s=skew_s,
        minimum_cohort=cohort,
        planned_devices=devices,
        quota=None if terms[4] is None else _numbers([terms[4]], "quota")[0],
        ledgers=ledgers,
    )


def require_same(data: bytes, canonical: bytes) -> None:
    """Refuse bytes that say the same as `canonical` in another encoding.

    One survey must have one digest: with two, the reports of half the population would be of an unknown
    survey.

    Raises:
        WireError: If they differ.
    """
    if data != canonical:
        raise WireError("a survey must be in its canonical encoding, got another one of the same content")


def _numbers(values: list[object], subject: str) -> list[int]:
    return [packing.integer(value, subject, 0, _LARGEST) for value in values]


def _schedule(value: object) -> list[int]:
    """Return start, seconds of a round, rounds and rotation, which is left out where every round is asked."""
    found = packing.array(value, "schedule")
    if len(found) == _EVERY_ROUND:
        found = [*found, 1]
    return _numbers(packing.array(found, "schedule", _EVERY_ROUND + 1), "schedule")


def _categories(value: object, inputs: int) -> tuple[tuple[str, ...], list[int]]:
    pairs = [packing.array(item, "category", 2) for item in packing.array(value, "categories")]
    names = tuple(packing.text(pair[0], "category name", MAX_NAME_CHARACTERS) for pair in pairs)
    sizes = [packing.integer(pair[1], "category size", 1, inputs) for pair in pairs]
    # Summed before anything of that size is built.
    if sum(sizes) != inputs:
        raise WireError(f"category sizes must sum to the channel's {inputs} inputs, got {sum(sizes)}")
    return names, sizes


def _places(value: object, attribute: Attribute, channel: Channel) -> NDArray[np.intp] | None:
    if value is None:
        return None
    if attribute.to_spec()[2] == "number":
        raise WireError("a survey of numbers must have no mapping, got one")
    mapping = packing.integers(value, "mapping", 0, min(MAX_SIZE, channel.inputs - 1))
    return np.array(mapping, dtype=np.intp)


def read_compiled(path: str | Path) -> bytes | None:
    """Return the bytes of a file that `hubbub survey compile` wrote, or None for any other file."""
    try:
        with Path(path).open("rb") as stream:
            if _COMPILED.match(stream.read(_HEAD_BYTES)) is None:
                return None
            stream.seek(0)
            return stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError):  # `read` says why
        return None
