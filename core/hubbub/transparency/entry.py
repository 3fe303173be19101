"""Entries of a log: hashes of what Hubbub published, one by one.

An entry is the MessagePack array ["hubbub-log", 1, kind, field, ...]. Its first fields are its key: an honest
log has one entry of each key. Witnesses do not read entries, so whoever watches looks for a second one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from hubbub.errors import ListError, WireError
from hubbub.survey import digest_of, read_unverified
from hubbub.transparency.tree import HASH_BYTES
from hubbub.wire import DIGEST_BYTES, pack, unpack

Field: TypeAlias = bytes | int

_NAME: Final = "hubbub-log"
_LAYOUT: Final = 1
_MOST: Final = 2**63 - 1
_SUBJECT: Final = "log entry"


class _Form(NamedTuple):
    """A kind's number, the bytes of each of its fields (0 for an integer) and how many are its key."""

    number: int
    fields: tuple[int, ...]
    key: int


_FORMS: Final = {
    "survey": _Form(1, (DIGEST_BYTES, HASH_BYTES, 0), 1),
    "list": _Form(2, (0, HASH_BYTES, 0, 0), 1),
    "layout": _Form(3, (HASH_BYTES, 0, HASH_BYTES, 0), 2),
    "release": _Form(4, (DIGEST_BYTES, 0, HASH_BYTES), 2),
    "recount": _Form(5, (DIGEST_BYTES, 0, HASH_BYTES, HASH_BYTES), 3),
    "counted": _Form(6, (DIGEST_BYTES, 0, 0, 0, HASH_BYTES, HASH_BYTES), 2),
    "erased": _Form(7, (DIGEST_BYTES,), 1),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was published.

    Attributes:
        kind: "survey": digest, SHA-256 and length of its canonical bytes. "list": sequence, SHA-256 of its
            payload, issued and expires, seconds since 1970. "layout": hash of the topic's identity, the
            second from which a topic period holds, hash of its own identity, partitions. "release": digest,
            round from 1, SHA-256 of its bytes, which state the hash of its public counts. "recount": the
            same, with the hash of the issuers left out after the round. "counted": digest, round from 1, how
            many reports count, of how many bits is a tile's number, the roots of `counted`. "erased": digest.
        fields: Those fields.

    Raises:
        WireError: If they are not those of its kind.
    """

    kind: str
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        form = _FORMS.get(self.kind)
        if form is None or len(form.fields) != len(self.fields):
            raise WireError(f"{_SUBJECT} must be a {', '.join(_FORMS)} with its fields, got {self.kind[:40]}")
        for due, field in zip(form.fields, self.fields, strict=True):
            if due and (type(field) is not bytes or len(field) != due):
                raise WireError(f"{_SUBJECT} of kind {self.kind} must have a hash of {due} bytes")
            if not due and (type(field) is not int or not 0 <= field <= _MOST):
                raise WireError(f"{_SUBJECT} of kind {self.kind} must have an integer within 0 to 2^63 - 1")

    @property
    def key(self) -> bytes:
        """The bytes by which two entries are about the same thing."""
        form = _FORMS[self.kind]
        return pack([form.number, *self.fields[: form.key]])

    @property
    def data(self) -> bytes:
        """Its one encoding."""
        return pack([_NAME, _LAYOUT, _FORMS[self.kind].number, *self.fields])

    @classmethod
    def decode(cls, data: bytes) -> Entry:
        """Return the entry of its bytes, which may come from anybody.

        Raises:
            WireError: If they are not the one encoding of an entry.
        """
        found = unpack(data, _SUBJECT)
        if not isinstance(found, list) or len(found) < 3 or found[:2] != [_NAME, _LAYOUT]:
            raise WireError(f"{_SUBJECT} must be an array that begins with {_NAME!r} and {_LAYOUT}")
        kind = next((name for name, form in _FORMS.items() if form.number == found[2]), "unknown")
        entry = cls(kind, tuple(found[3:]))
        if entry.data != data:
            raise WireError(f"{_SUBJECT} must be in its one encoding, got another")
        return entry


def hash_of(data: bytes) -> bytes:
    """Return the SHA-256 of data, 32 bytes."""
    return hashlib.sha256(data).digest()


def survey_entry(canonical: bytes) -> Entry:
    """Return the entry of a survey's canonical bytes."""
    return Entry("survey", (digest_of(canonical), hash_of(canonical), len(canonical)))


def list_entry(data: bytes) -> Entry:
    """Return the entry of a signed list, whoever signed it: devices look at that.

    Raises:
        ListError: If it is no signed list.
    """
    listed, _ = read_unverified(data)
    if listed is None:
        raise ListError("unsigned", "list of surveys must be signed, got a plain one")
    return Entry("list", (listed.sequence, hash_of(listed.payload), listed.issued_s, listed.expires_s))
