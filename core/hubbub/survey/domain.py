"""The attributes of a device: their domains, and whether their values are expected to change.

Attributes are registered on the device by its host application, never by a survey.
"""

from __future__ import annotations

import hashlib
import math
import numbers
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_HASHED
from hubbub.errors import ParameterError, WireError
from hubbub.wire import packing

Kind: TypeAlias = Literal["static", "evolving"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

# One input of every channel is "missing", so a domain holds one value less than a channel has inputs.
MAX_SIZE: Final = MAX_HASHED - 1
MAX_LABEL_CHARACTERS: Final = 200
# Ends of an integer domain: every JSON reader keeps them exact.
MAX_INTEGER: Final = 2**53 - 1
ABSENT_VALUE: Final = "absent"
"""The value of a device that is known not to have a number: minutes of a feature that it lacks."""
IDENTIFIER: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
IDENTIFIER_RULE: Final = (
    "must be 1 to 64 of a-z, 0-9, dot, dash, underscore, and begin with a letter or digit"
)


@dataclass(frozen=True, slots=True)
class IntegerDomain:
    """The whole numbers low..high, ends included; behind them the value "absent", where there is one."""

    low: int
    high: int
    absent: bool = False

    def __post_init__(self) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            if type(end) is not int or abs(end) > MAX_INTEGER:
                raise ParameterError(f"{name} must be an integer of at most 53 bits, got {end!r}")
        if self.low >= self.high:
            raise ParameterError(f"high must be above low {self.low}, got {self.high}")
        if (size := self.high - self.low + 1 + self.absent) > MAX_SIZE:
            raise ParameterError(f"an integer domain must hold at most {MAX_SIZE} values, got {size}")


@dataclass(frozen=True, eq=False)
class LabelDomain:
    """Some named choices, in their order.

    One text has several spellings in Unicode, an e with an accent as one sign or as two. Labels and values
    that are one in form C are the same; a domain keeps its own spelling, as its survey's bytes have it.
    """

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.labels) <= MAX_SIZE:
            raise ParameterError(f"labels must be 2 to {MAX_SIZE}, got {len(self.labels)}")
        for label in self.labels:
            if not isinstance(label, str) or not 1 <= len(label) <= MAX_LABEL_CHARACTERS:
                raise ParameterError(
                    f"a label must be text of 1 to {MAX_LABEL_CHARACTERS} characters, got {label!r:.80}"
                )
        if len(self.index) != len(self.labels):
            twice = next(label for i, label in enumerate(self.labels) if self.index[label] != i)
            raise ParameterError(f"labels must differ, got {twice!r} twice")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LabelDomain) and self._composed == other._composed

    def __hash__(self) -> int:
        return hash(self._composed)

    @cached_property
    def _composed(self) -> tuple[str, ...]:
        return tuple(unicodedata.normalize("NFC", label) for label in self.labels)

    @cached_property
    def index(self) -> dict[str, int]:
        """The index of each label."""
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def _composed_index(self) -> dict[str, int]:
        return {label: i for i, label in reversed(list(enumerate(self._composed)))}

    def index_of(self, text: str) -> int | None:
        """Return the index of the label that a text is, in whatever spelling; None where it is none."""
        found = self.index.get(text)
        return self._composed_index.get(unicodedata.normalize("NFC", text)) if found is None else found


@dataclass(frozen=True, slots=True)
class NumberDomain:
    """The real numbers low..high, ends included, and "absent", where there is that value.

    A survey lays its own grid over them.
    """

    low: float
    high: float
    absent: bool = False

    def __post_init__(self) -> None:
        for name, end in (("low", self.low), ("high", self.high)):
            if type(end) is not float or not math.isfinite(end):
                raise ParameterError(f"{name} must be a finite number, got {end!r}")
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ParameterError(f"high must be above low {self.low!r}, got {self.high!r}")

    def grid(self, points: int) -> NDArray[np.float64]:
        """Return the equally spaced numbers from low to high, shape (points,), rising.

        Raises:
            ParameterError: If floats are too coarse there for so many different numbers.
        """
        numbers = np.linspace(self.low, self.high, points)
        if not (np.diff(numbers) > 0.0).all():
            raise ParameterError(
                f"a grid must have points that differ, got {points} from {self.low!r} to {self.high!r}"
            )
        return numbers


@dataclass(frozen=True)
class SetDomain:
    """Any number of some named items."""

    items: LabelDomain

    def members(self, value: object) -> list[int] | None:
        """Return the indices of the items that a value holds, rising; None where it is no collection.

        What it holds beside items is left out: a device may have more than a survey asks about.
        """
        if isinstance(value, str | bytes) or not isinstance(value, Collection):
            return None
        try:
            found = {self.items.index_of(each) for each in value if isinstance(each, str)}
        except TypeError:  # it says that it can be gone through, and cannot
            return None
        return sorted(place for place in found if place is not None)


@dataclass(frozen=True)
class DictionaryDomain:
    """A domain of many texts, named by the digest of their dictionary, a file outside of every list.

    A dictionary has the hashes of its texts, rising, 8 bytes each: of every text in form C and UTF-8 the
    first 8 bytes of SHA-256. The place of its hash is a text's index.

    Attributes:
        size: How many texts there are.
        digest: SHA-256 of the dictionary, 32 bytes.
        hashes: The dictionary, shape (size,); None where it is not at hand, and no text can be looked up.
    """

    size: int
    digest: bytes
    hashes: NDArray[np.uint64] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 2 <= self.size <= MAX_SIZE:
            raise ParameterError(f"a dictionary must have 2 to {MAX_SIZE} texts, got {self.size}")

    @classmethod
    def of(cls, dictionary: bytes) -> DictionaryDomain:
        """Return the domain of a dictionary.

        Raises:
            ParameterError: If it is none: cut short, out of order, or with a hash that is there twice.
        """
        if len(dictionary) % _HASH_BYTES:
            raise ParameterError(f"a dictionary must have 8 bytes for each text, got {len(dictionary)}")
        hashes = np.frombuffer(dictionary, dtype=">u8")
        if not (hashes[1:] > hashes[:-1]).all():
            raise ParameterError("a dictionary must have its hashes rising, got some out of order")
        return cls(len(hashes), hashlib.sha256(dictionary).digest(), hashes.astype(np.uint64))

    def take(self, other: DictionaryDomain) -> None:
        """Look texts up in the dictionary of another domain from now on, which is at hand there.

        Raises:
            ParameterError: If it is another dictionary.
        """
        if other != self:
            raise ParameterError(
                f"a dictionary must have {self.size} texts and digest {self.digest.hex()}, "
                f"got {other.size} and {other.digest.hex()}"
            )
        object.__setattr__(self, "hashes", other.hashes)

    def index_of(self, text: str) -> int | None:
        """Return the index of a text, in whatever spelling; None where it has none.

        Raises:
            ParameterError: If the dictionary is not at hand.
        """
        if self.hashes is None:
            raise ParameterError("a text must be looked up in its dictionary, which is not at hand")
        wanted = np.uint64(int.from_bytes(_hash_of(text), "big"))
        place = int(np.searchsorted(self.hashes, wanted))
        return place if place < self.size and self.hashes[place] == wanted else None


_HASH_BYTES: Final = 8


def dictionary_of(texts: Iterable[str]) -> tuple[bytes, list[str]]:
    """Return the dictionary of some texts, and the texts in its order.

    Raises:
        ParameterError: If two of them are one in form C, or have one hash.
    """
    by_hash: dict[bytes, str] = {}
    for text in texts:
        place = _hash_of(text)
        if place in by_hash:
            other = by_hash[place]
            raise ParameterError(f"texts of a dictionary must differ, got {other!r:.80} and {text!r:.80}")
        by_hash[place] = text
    order = sorted(by_hash)
    return b"".join(order), [by_hash[each] for each in order]


def _hash_of(text: str) -> bytes:
    spelt = unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
    return hashlib.sha256(spelt).digest()[:_HASH_BYTES]


def number_names(numbers: Sequence[float]) -> tuple[str, ...]:
    """Return a name for each of some different numbers, with six digits or as many as tell them apart."""
    for digits in range(6, 17):
        names = tuple(f"{number:.{digits}g}" for number in numbers)
        if len(set(names)) == len(numbers):
            return names
    return tuple(f"{number:.17g}" for number in numbers)


Domain: TypeAlias = IntegerDomain | LabelDomain | NumberDomain | SetDomain | DictionaryDomain


@dataclass(frozen=True)
class Attribute:
    """One thing that a host application knows about the owner of its device.

    Attributes:
        id: Its name, the same on every device.
        kind: "static" if one value is to be protected for good (birth year), "evolving" if every round has
            its own (screen time today).
        domain: The values it can have; anything else counts as missing.

    Raises:
        ParameterError: If id, kind or domain breaks a rule.

    >>> Attribute.integer("visits", 0, 77, kind="evolving").index_of(3)
    3
    >>> Attribute.integer("visits", 0, 77, kind="evolving").index_of(None)
    78
    """

    id: str
    kind: Kind
    domain: Domain

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not IDENTIFIER.fullmatch(self.id):
            raise ParameterError(f"attribute id {IDENTIFIER_RULE}, got {self.id!r:.80}")
        if self.kind not in KINDS:
            raise ParameterError(f"attribute kind must be one of {', '.join(KINDS)}, got {self.kind!r:.80}")
        if not isinstance(self.domain, Domain):
            raise ParameterError(f"attribute domain must be a domain, got {type(self.domain).__name__}")

    @classmethod
    def integer(
        cls, attribute_id: str, low: int, high: int, *, kind: Kind, absent: bool = False
    ) -> Attribute:
        """Return an attribute whose values are the whole numbers low..high, and "absent" if it is one."""
        return cls(attribute_id, kind, IntegerDomain(low, high, absent))

    @classmethod
    def labels(cls, attribute_id: str, labels: Sequence[str], *, kind: Kind) -> Attribute:
        """Return an attribute whose values are the given labels.

        Raises:
            ParameterError: If a text stands for the labels: its letters are hardly meant.
        """
        if isinstance(labels, str):
            raise ParameterError(f"labels must be a sequence of texts, got one text {labels!r:.80}")
        return cls(attribute_id, kind, LabelDomain(tuple(labels)))

    @classmethod
    def number(
        cls, attribute_id: str, low: float, high: float, *, kind: Kind, absent: bool = False
    ) -> Attribute:
        """Return an attribute whose values are the real numbers low..high, and "absent" if it is one."""
        # Adding zero turns -0.0 into 0.0: equal domains have equal bytes.
        return cls(attribute_id, kind, NumberDomain(float(low) + 0.0, float(high) + 0.0, absent))

    @classmethod
    def items(cls, attribute_id: str, items: Sequence[str], *, kind: Kind) -> Attribute:
        """Return an attribute whose values are sets of the given items.

        Raises:
            ParameterError: If a text stands for the items: its letters are hardly meant.
        """
        if isinstance(items, str):
            raise ParameterError(f"items must be a sequence of texts, got one text {items!r:.80}")
        return cls(attribute_id, kind, SetDomain(LabelDomain(tuple(items))))

    @classmethod
    def dictionary(cls, attribute_id: str, dictionary: bytes, *, kind: Kind) -> Attribute:
        """Return an attribute whose values are the texts of a dictionary, as `dictionary_of` made it."""
        return cls(attribute_id, kind, DictionaryDomain.of(dictionary))

    @property
    def tells_absent(self) -> bool:
        """True if "absent" is one of its values, which is not missing: the device is known to have none."""
        return isinstance(self.domain, IntegerDomain | NumberDomain) and self.domain.absent

    @property
    def size(self) -> int:
        """The number of values of its domain, absent counted and missing not.

        Raises:
            ParameterError: If the domain is not discrete.
        """
        domain = self.domain
        if isinstance(domain, IntegerDomain):
            return domain.high - domain.low + 1 + domain.absent
        if isinstance(domain, LabelDomain):
            return len(domain.labels)
        if isinstance(domain, DictionaryDomain):
            return domain.size
        raise ParameterError(
            f"attribute {self.id} must have a discrete domain to have a size, got {self.to_spec()[2]}s"
        )

    def label_of(self, index: int) -> str:
        """Return the name of the value at `index` of a discrete domain."""
        if isinstance(self.domain, IntegerDomain):
            number = self.domain.low + index
            return str(number) if number <= self.domain.high else ABSENT_VALUE
        if isinstance(self.domain, LabelDomain):
            return self.domain.labels[index]
        if isinstance(self.domain, DictionaryDomain):
            return f"#{index + 1}"
        raise ParameterError(f"attribute {self.id} must have a discrete domain to have labels, got numbers")

    def index_of(self, value: object) -> int:
        """Return the index of a value in a discrete domain: 0..size-1, or `size` for anything else.

        It never raises on a value, so that what a device sends does not depend on an error either. Whole
        floats count as integers; a bool is neither an integer nor a label.

        Raises:
            ParameterError: If the domain is not discrete, or is a dictionary that is not at hand.
        """
        size = self.size
        domain = self.domain
        if isinstance(domain, IntegerDomain):
            if domain.absent and isinstance(value, str) and value == ABSENT_VALUE:
                return size - 1
            whole = _whole(value)
            return whole - domain.low if whole is not None and domain.low <= whole <= domain.high else size
        assert isinstance(domain, LabelDomain | DictionaryDomain)  # noqa: S101 - `size` refuses any other
        place = domain.index_of(value) if isinstance(value, str) else None
        return size if place is None else place

    def to_spec(self) -> list[object]:
        """Return the attribute as plain values that msgpack carries; `attribute_from_spec` reads them."""
        domain = self.domain
        if isinstance(domain, LabelDomain):
            return [self.id, self.kind, "label", list(domain.labels)]
        if isinstance(domain, SetDomain):
            return [self.id, self.kind, "set", list(domain.items.labels)]
        if isinstance(domain, DictionaryDomain):
            return [self.id, self.kind, "dictionary", [domain.size, domain.digest]]
        name = "integer" if isinstance(domain, IntegerDomain) else "number"
        return [
            self.id,
            self.kind,
            name,
            [domain.low, domain.high, *([ABSENT_VALUE] if domain.absent else [])],
        ]


def _whole(value: object) -> int | None:
    """Return `value` as an int if it is a whole number (a NumPy scalar included), else None."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    try:
        number = float(value)
    except OverflowError:  # a fraction beyond every float is beyond every domain
        return None
    return int(number) if number.is_integer() else None


def exact_number(value: object) -> Fraction | None:
    """Return `value` as the exact number that it is, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    number = float(value)
    return Fraction(number) if math.isfinite(number) else None


def attribute_from_spec(spec: object) -> Attribute:
    """Return the attribute that `Attribute.to_spec` described; the description is not trusted.

    Raises:
        WireError: If it has another shape or other types.
        ParameterError: If its values break a rule of attributes.
    """
    fields = packing.array(spec, "attribute", 4)
    identifier, kind, name = (packing.text(field, "attribute", 64) for field in fields[:3])
    if kind not in KINDS:
        raise WireError(f"attribute kind must be one of {', '.join(KINDS)}, got {kind!r}")
    items = packing.array(fields[3], "attribute domain")
    if name in ("label", "set"):
        labels = LabelDomain(tuple(packing.text(item, "label", MAX_LABEL_CHARACTERS) for item in items))
        return Attribute(identifier, kind, labels if name == "label" else SetDomain(labels))
    if name == "dictionary":
        size, digest = packing.array(items, "attribute domain", 2)
        held = DictionaryDomain(
            packing.integer(size, "dictionary", 2, MAX_SIZE), packing.binary(digest, "dictionary", 32)
        )
        return Attribute(identifier, kind, held)
    absent = items[2:] == [ABSENT_VALUE]
    ends = packing.array(items[:2] if absent else items, "attribute domain", 2)
    if name == "integer":
        low, high = (packing.integer(end, "attribute domain", -MAX_INTEGER, MAX_INTEGER) for end in ends)
        return Attribute(identifier, kind, IntegerDomain(low, high, absent))
    if name == "number":
        low_f, high_f = (packing.real(end, "attribute domain") for end in ends)
        return Attribute(identifier, kind, NumberDomain(low_f, high_f, absent))
    raise WireError(f"attribute type must be integer, label, number, set or dictionary, got {name!r}")
