"""MessagePack of a known shape, read header by header, so that only what is asked for is built.

A list of surveys comes from anybody, and its signature is inside it. Its arrays and binaries are therefore
found by their headers alone; an element of another type is refused at its first byte, whatever it holds.

Every method raises WireError where what it reads breaks the rule that it states.
"""

from __future__ import annotations

from typing import Final, NoReturn

from hubbub.errors import WireError

_SHORT: Final = 15
# First byte to how many bytes of length, or of number, follow it.
_ARRAYS: Final = {0xDC: 2, 0xDD: 4}
_BINARIES: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_TEXTS: Final = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_MAPS: Final = {0xDE: 2, 0xDF: 4}
_UNSIGNED: Final = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_SIGNED: Final = {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_FLOATS: Final = {0xCA: 4, 0xCB: 8}
_EMPTY: Final = (0xC0, 0xC2, 0xC3)


class Frame:
    """A cursor over untrusted bytes; every read moves it past what it read.

    Args:
        data: The bytes; a memoryview is not copied.
        subject: What errors call them.
    """

    def __init__(self, data: bytes | memoryview, subject: str) -> None:
        self._data, self._subject, self._at = memoryview(data), subject, 0

    def array(self, subject: str, limit: int) -> int:
        """Return the length of the array that begins here, at most `limit`; its elements come next."""
        first = self._first()
        length = (
            first - 0x90
            if 0x90 <= first <= 0x90 + _SHORT
            else self._number(first, _ARRAYS, subject, "an array")
        )
        if length > limit:
            raise WireError(f"{subject} must have at most {limit} elements, got {length}")
        return length

    def binary(self, subject: str, limit: int, length: int | None = None) -> memoryview:
        """Return the binary that begins here, at most `limit` bytes or exactly `length`; not copied."""
        return self._content(
            self._number(self._first(), _BINARIES, subject, "binary"), subject, limit, length
        )

    def text(self, subject: str, limit: int) -> str:
        """Return the text that begins here, of at most `limit` bytes."""
        first = self._first()
        size = first - 0xA0 if 0xA0 <= first < 0xC0 else self._number(first, _TEXTS, subject, "text")
        try:
            return str(self._content(size, subject, limit), "utf-8")
        except UnicodeDecodeError:
            raise WireError(f"{subject} must be UTF-8 text") from None

    def integer(self, subject: str, low: int, high: int) -> int:
        """Return the integer that begins here, in [low, high], low being at least 0."""
        first = self._first()
        if first < 0x80:
            value = first
        elif first in _SIGNED:
            raw = self._take(_SIGNED[first])
            value = int.from_bytes(raw, "big", signed=True)
        else:
            value = self._number(first, _UNSIGNED, subject, "an integer of at least 0")
        if not low <= value <= high:
            raise WireError(f"{subject} must be in [{low}, {high}], got {value}")
        return value

    def finish(self) -> None:
        """Refuse bytes after the end of what was announced."""
        if self._at != len(self._data):
            raise WireError(f"{self._subject} must end where its array ends, got bytes after it")

    def _take(self, size: int) -> memoryview:
        end = self._at + size
        if end > len(self._data):
            raise WireError(f"{self._subject} must be whole, got it cut short")
        found = self._data[self._at : end]
        self._at = end
        return found

    def _first(self) -> int:
        return self._take(1)[0]

    def _number(self, first: int, forms: dict[int, int], subject: str, rule: str) -> int:
        if first not in forms:
            _refuse(subject, rule, first)
        return int.from_bytes(self._take(forms[first]), "big")

    def _content(self, size: int, subject: str, limit: int, length: int | None = None) -> memoryview:
        if length is not None and size != length:
            raise WireError(f"{subject} must have {length} bytes, got {size}")
        if size > limit:
            raise WireError(f"{subject} must have at most {limit} bytes, got {size}")
        return self._take(size)


def _refuse(subject: str, rule: str, first: int) -> NoReturn:
    raise WireError(f"{subject} must be {rule}, got an element that begins with byte {first:#04x}")


def _shape(first: int) -> tuple[int, int, int] | None:
    """Return the bytes of length after a first byte, and the bytes and elements for each unit of it.

    A length of no bytes is part of the first one.
    """
    families = ((_ARRAYS, 0, 1), (_MAPS, 0, 2), (_BINARIES, 1, 0), (_TEXTS, 1, 0))
    for forms, contents, elements in families:
        if first in forms:
            return forms[first], contents, elements
    for forms in (_UNSIGNED, _SIGNED, _FLOATS):
        if first in forms:
            return 0, forms[first], 0
    return (0, 0, 0) if first in _EMPTY or first < 0x80 or first >= 0xE0 else None


_SHAPES: Final = tuple(map(_shape, range(256)))


def check_elements(data: bytes, subject: str, limit: int) -> None:
    """Refuse bytes that are not exactly one value of at most `limit` elements, nested ones included.

    An element of one byte may take 64 bytes once it is built. The walk builds nothing, and ends at the header
    that announces too much.

    Raises:
        WireError: The bytes are cut short, go on after the value, hold an extension, or announce too much.
    """
    at, left, announced = 0, 1, 1
    while left and at < len(data):
        first = data[at]
        at += 1
        left -= 1
        if first < 0x80 or first >= 0xE0:
            continue
        if first <= 0xBF:  # a map, an array or a text whose length is part of the first byte
            contents, elements = _short(first)
        else:
            shape = _SHAPES[first]
            if shape is None:
                _refuse(subject, "MessagePack of plain values", first)
            width, contents, elements = shape
            if width:
                length = int.from_bytes(data[at : at + width], "big")
                contents, elements = width + contents * length, elements * length
        at += contents
        left += elements
        announced += elements
        if announced > limit:
            raise WireError(f"{subject} must have at most {limit} elements, got more")
    if left or at != len(data):
        raise WireError(f"{subject} must be exactly one whole MessagePack value, got another length")


def _short(first: int) -> tuple[int, int]:
    """Return the bytes and elements that follow a map, an array or a text of at most 31."""
    if first >= 0xA0:
        return first - 0xA0, 0
    return (0, 2 * (first - 0x80)) if first <= 0x8F else (0, first - 0x90)
