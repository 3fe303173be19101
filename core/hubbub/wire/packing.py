"""Untrusted MessagePack: read in memory proportional to its length, then checked type by type.

A decoder that trusts announced lengths can be made to reserve gigabytes by a hundred bytes of nested
array headers. Here arrays of a few elements are built at once: no nesting of them reserves much. Where more
is announced, the bytes are first walked without building anything, and the value is built only when every
announced element is really there. So memory stays proportional to the bytes received (64 times them at worst,
for nothing but empty arrays).

Every function and method here but `pack` raises WireError where what it reads breaks the rule that it states.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # msgpack ships no annotations; this module is where Any stops
from msgpack import fallback

from hubbub.errors import WireError

# A valid message nests less than this; without a limit of ours the two implementations of msgpack differ.
_BROKEN: Final = (msgpack.UnpackException, ValueError, TypeError, OverflowError, RecursionError)
# Both implementations nest at most 1,024 deep: what such arrays announce and lack reserves 128 KiB at most.
_FEW: Final = 16
# An extension of 2^32 - 1 bytes: msgpack's C adds its type to them in 32 bits, and passes over nothing.
_WRAPS: Final = b"\xc9\xff\xff\xff\xff"


def pack(value: object) -> bytes:
    """Return the MessagePack bytes of ints, str, bytes, lists, tuples and dicts with text keys.

    The same value gives the same bytes always: shortest integer and length forms, dicts in their own order.
    """
    packed: bytes = msgpack.packb(value)
    return packed


def unpack(data: bytes, subject: str) -> object:
    """Return the one value that `data` holds; no timestamps or other extensions, no map keys but text.

    Raises:
        WireError: If `data` is cut short, holds more than one value, or is not MessagePack.
    """
    try:
        few: object = msgpack.unpackb(data, max_array_len=_FEW, max_map_len=0, max_ext_len=0)
    except _BROKEN:
        return _walked(data, subject)
    return few


def _walked(data: bytes, subject: str) -> object:
    """Return the value of any number of elements, or what is wrong with it."""
    if element_end(data, 0, subject) != len(data):
        raise WireError(f"{subject} must be exactly one MessagePack value, got bytes after it")
    try:
        value: object = msgpack.unpackb(data, max_ext_len=0)
    except _BROKEN as error:
        raise WireError(f"{subject} must be MessagePack of plain values, got {_came(error)}") from None
    return value


def _came(error: Exception) -> str:
    """Return a word for bytes that were refused, of which nothing is quoted."""
    is_cut = isinstance(error, msgpack.OutOfData) or "incomplete" in str(error)
    return "bytes that end too early" if is_cut else "other bytes"


class Cursor:
    """A cursor over a MessagePack array that does not build its elements.

    One bad element can then be refused without condemning its neighbours, and a frame that announces
    more than it holds costs nothing.
    """

    def __init__(self, data: bytes, subject: str) -> None:
        self._data, self._subject = data, subject
        self._unpacker: Any = msgpack.Unpacker(max_buffer_size=len(data) or 1)
        self._unpacker.feed(data)

    def _broken(self, error: Exception) -> WireError:
        return WireError(f"{self._subject} must be well-formed MessagePack of its kind, got {_came(error)}")

    def array(self, subject: str, limit: int) -> int:
        """Return the length of the array that begins here, at most `limit`; the cursor moves into it."""
        try:
            length: int = self._unpacker.read_array_header()
        except _BROKEN as error:
            raise self._broken(error) from None
        if length > limit:
            raise WireError(f"{subject} must have at most {limit} elements, got {length}")
        return length

    def element(self) -> bytes:
        """Return the bytes of the element that begins here; the cursor moves past it."""
        start: int = self._unpacker.tell()
        try:
            self._unpacker.skip()
            found = self._data[start : self._unpacker.tell()]
            if _WRAPS in found:
                again = fallback.Unpacker(max_buffer_size=len(found))
                again.feed(found)
                again.skip()
        except _BROKEN as error:
            raise self._broken(error) from None
        return found

    def finish(self) -> None:
        """Refuse bytes after the end of what was announced."""
        if self._unpacker.tell() != len(self._data):
            raise WireError(f"{self._subject} must end where its array ends, got bytes after it")


def element_end(data: bytes, start: int, subject: str) -> int:
    """Return the end of the first complete value in `data[start:]`, without building it."""
    cursor = Cursor(data[start:], subject)
    return start + len(cursor.element())


def array(value: object, subject: str, length: int | None = None) -> list[object]:
    """Return `value` as a list, of exactly `length` elements where that is given."""
    if not isinstance(value, list):
        raise WireError(f"{subject} must be an array, got {type(value).__name__}")
    if length is not None and len(value) != length:
        raise WireError(f"{subject} must have {length} elements, got {len(value)}")
    return value


def integer(value: object, subject: str, low: int, high: int) -> int:
    """Return `value` as an int in [low, high]; a bool is not an int here."""
    if type(value) is not int:
        raise WireError(f"{subject} must be an integer, got {type(value).__name__}")
    if not low <= value <= high:
        raise WireError(f"{subject} must be in [{low}, {high}], got {value}")
    return value


def integers(value: object, subject: str, low: int, high: int) -> list[int]:
    """Return `value` as a list of ints, each in [low, high]."""
    items = array(value, subject)
    for item in items:
        if type(item) is not int or not low <= item <= high:
            break
    else:
        return cast(list[int], items)
    return [integer(item, f"{subject}[{i}]", low, high) for i, item in enumerate(items)]


def binary(value: object, subject: str, length: int | None = None) -> bytes:
    """Return `value` as bytes, of exactly `length` where that is given."""
    if not isinstance(value, bytes):
        raise WireError(f"{subject} must be binary, got {type(value).__name__}")
    if length is not None and len(value) != length:
        raise WireError(f"{subject} must have {length} bytes, got {len(value)}")
    return value


def text(value: object, subject: str, max_characters: int) -> str:
    """Return `value` as text of at most `max_characters`."""
    if not isinstance(value, str):
        raise WireError(f"{subject} must be text, got {type(value).__name__}")
    if len(value) > max_characters:
        raise WireError(f"{subject} must have at most {max_characters} characters, got {len(value)}")
    return value


def real(value: object, subject: str) -> float:
    """Return `value` as a finite float; an integer is not one here, so that a number has one encoding."""
    if type(value) is not float or not math.isfinite(value):
        raise WireError(f"{subject} must be a finite float, got {type(value).__name__}")
    return value


def version(value: object, subject: str, supported: Sequence[int]) -> int:
    """Return `value` if it is one of the versions that this release reads."""
    if type(value) is not int or value not in supported:
        # The value is a stranger's: it may be long, so only a bounded piece of it is repeated.
        raise WireError(f"{subject} version must be one of {list(supported)}, got {repr(value)[:40]}")
    return value
