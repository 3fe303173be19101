"""The steps from a host's value to an encoded value, and from that to the input of a survey's channel.

An encoded value is what a device keeps of a value, whatever survey asks: its index in a discrete domain (the
domain's size for missing), a float (None for missing, infinity for absent), or the items of a set, a bit each
(None for missing). Nothing here raises on a value: what a device sends
must not depend on an error, and an error must not carry it.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub import wire
from hubbub.errors import WireError
from hubbub.numeric import SYSTEM, Source
from hubbub.survey import (
    ABSENT_VALUE,
    Attribute,
    IntegerDomain,
    NumberDomain,
    SetDomain,
    Survey,
)
from hubbub_client.errors import ClientError, LedgerCorruptError

EncodedValue: TypeAlias = int | float | bytes | None
EncodedValues: TypeAlias = NDArray[np.int64] | NDArray[np.float64]
"""Encoded values of many devices, shape (n,): indices, or floats, nan for missing and inf for absent."""


def encode(attribute: Attribute, value: object) -> EncodedValue:
    """Return the encoded value of a value; anything outside the attribute's domain is missing."""
    domain = attribute.domain
    if isinstance(domain, SetDomain):
        members = domain.members(value)
        width = (len(domain.items.labels) + 7) // 8
        return None if members is None else sum(1 << each for each in members).to_bytes(width, "little")
    if not isinstance(domain, NumberDomain):
        return attribute.index_of(value)
    if domain.absent and isinstance(value, str) and value == ABSENT_VALUE:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    number += 0.0  # one zero: the ledger compares packed values
    return number if math.isfinite(number) and domain.low <= number <= domain.high else None


def encode_many(attribute: Attribute, values: Sequence[object] | NDArray[Any]) -> EncodedValues:
    """Return the encoded values of many devices' values, each as `encode` has it.

    Raises:
        ClientError: If the values are sets.
        ParameterError: If they are texts of a dictionary that is not at hand.
    """
    if isinstance(attribute.domain, SetDomain):
        raise ClientError(f"attribute {attribute.id!r} must not be of sets to be simulated")
    items = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(attribute.domain, NumberDomain):
        read_numbers = [encode(attribute, value) for value in items]
        return np.array([math.nan if number is None else number for number in read_numbers], dtype=np.float64)
    return np.fromiter((attribute.index_of(value) for value in items), dtype=np.int64, count=len(items))


def pack_encoded(encoded: EncodedValue) -> bytes:
    """Return the bytes of an encoded value as the ledger keeps it."""
    return wire.pack(encoded)


def unpack_encoded(attribute: Attribute, data: bytes) -> EncodedValue:
    """Return the encoded value that the ledger kept.

    Raises:
        LedgerCorruptError: If it is not one of the attribute's.
    """
    try:
        found = wire.unpack(data, "pinned value")
    except WireError:
        raise LedgerCorruptError("a pinned value in the ledger cannot be read") from None
    if isinstance(attribute.domain, NumberDomain):
        held = ABSENT_VALUE if found == math.inf else found
        if found is None or (type(found) is float and encode(attribute, held) == found):
            return found
    elif isinstance(attribute.domain, SetDomain):
        held = _held(attribute.domain, found) if type(found) is bytes else None
        if found == encode(attribute, held):
            return found
    elif type(found) is int and 0 <= found <= attribute.size:
        return found
    raise LedgerCorruptError("a pinned value in the ledger is not of its attribute")


def channel_input(survey: Survey, encoded: Sequence[EncodedValue], *, source: Source = SYSTEM) -> int:
    """Return the channel's input for one encoded value per attribute.

    A number is rounded to the survey's grid, and a score to an end of its output, by a fresh exact draw.
    """
    if survey.mapping is None:
        return survey.form.input_of(list(map(_number, survey.attributes, encoded)), source)
    return int(survey.mapping[tuple(encoded)])  # type: ignore[arg-type]  # indices: its domains are discrete


def _held(domain: SetDomain, encoded: bytes) -> list[str]:
    """Return the items of an encoded set."""
    bits = int.from_bytes(encoded, "little")
    return [label for place, label in enumerate(domain.items.labels) if bits >> place & 1]


def _number(attribute: Attribute, encoded: EncodedValue) -> float | list[str] | str | None:
    """Return the number, "absent", or the items, that an encoded value stands for; None for missing."""
    domain = attribute.domain
    if isinstance(domain, SetDomain) and isinstance(encoded, bytes):
        return _held(domain, encoded)
    assert not isinstance(encoded, bytes)  # noqa: S101 - `unpack_encoded` refuses that
    if isinstance(domain, IntegerDomain) and encoded is not None:
        encoded = domain.low + encoded if encoded < attribute.size else None
        return ABSENT_VALUE if encoded is not None and encoded > domain.high else encoded
    return ABSENT_VALUE if encoded == math.inf else encoded


def _numbers(attribute: Attribute, encoded: EncodedValues) -> NDArray[np.float64]:
    """Return the numbers that encoded values stand for, shape (n,), nan for missing, inf for absent."""
    domain = attribute.domain
    if isinstance(domain, IntegerDomain):
        found = np.where(encoded < attribute.size, domain.low + encoded.astype(np.float64), np.nan)
        return np.where(found > domain.high, np.inf, found)
    return encoded.astype(np.float64)


def channel_inputs(
    survey: Survey, columns: Sequence[EncodedValues], *, source: Source = SYSTEM
) -> NDArray[np.intp]:
    """Return the channel's inputs for a column of encoded values per attribute, for simulation.

    Each has the law of `channel_input`; for numbers that holds within 2^-50, because they are drawn in
    floats.
    """
    if survey.mapping is None:
        return survey.form.inputs_of(list(map(_numbers, survey.attributes, columns)), source)
    found: NDArray[np.intp] = survey.mapping[tuple(column.astype(np.intp) for column in columns)]
    return found
