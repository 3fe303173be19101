"""The list of surveys that a server hands to devices, plain or signed by a key that lies on no server.

A signed list says which surveys may be asked, which are cancelled for good, when it was issued and when it
expires. Its number grows with every list, so that a device which saw a newer one refuses an older. Whoever
serves it can hold it back, and cannot change it.

Signatures are Ed25519 over bytes that begin with `DOMAIN`, so that none is ever valid for anything else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from hubbub.channels.channel import MAX_INPUTS
from hubbub.errors import ListError, ParameterError, WireError
from hubbub.survey.domain import DictionaryDomain
from hubbub.survey.forms import FORMS
from hubbub.survey.rules import DEFAULT_LEDGERS, MAX_CANONICAL_BYTES, MORE
from hubbub.wire import packing
from hubbub.wire.frames import Frame
from hubbub.wire.report import DIGEST_BYTES, MAX_SURVEYS, decode_surveys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from hubbub.survey.survey import Survey


P: Final = 2**255 - 19
D: Final = -121665 * pow(121666, -1, P) % P
_ROOT_OF_MINUS_1: Final = pow(2, (P - 1) // 4, P)

Point = tuple[int, int]


def is_key(data: bytes) -> bool:
    """Return whether 32 bytes are a point of the curve, in its one encoding, of large order.

    Source: RFC 8032, sections 5.1 and 5.1.3. A signature (R, S) is good if [S]B = R + [k]A: with A of order 8
    or less, S = 0 and a fitting R of small order sign one message in eight at least.

    Args:
        data: A public key, 32 bytes. It is public: nothing here takes the same time for every key.
    """
    point = _decoded(data)
    for _ in range(3):
        if point is None:
            return False
        point = _doubled(point)
    return point is not None and point != (0, 1)


def _decoded(data: bytes) -> Point | None:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * _ROOT_OF_MINUS_1 % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return (x if x & 1 == sign else P - x), y


def _doubled(point: Point) -> Point:
    """Return twice a point (RFC 8032, 5.1: the law is complete, so no denominator is 0)."""
    x, y = point
    product = D * x * x * y * y % P
    return (
        2 * x * y * pow(1 + product, -1, P) % P,
        (y * y + x * x) * pow(1 - product, -1, P) % P,
    )


DOMAIN: Final = b"hubbub survey list\x00"
"""The bytes before the payload in what is signed."""

MAGIC: Final = "hubbub-survey-list"
LIST_VERSION: Final = 1
KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

MAX_SEQUENCE: Final = 2**53 - 1
MAX_LIFE_S: Final = 366 * 86_400
"""The most seconds from issue to expiry: for so long newer lists, and cancellations, can be held back."""

MAX_LIST_BYTES: Final = 32 * 2**20
"""Bytes of a list that a device takes; one survey is at most 16 MiB, and almost every one a few kB."""

MAX_TIME_S: Final = 2**40
"""Some 35,000 years after 1970; every time and number in a list is exact in a float64 as well."""


@dataclass(frozen=True, slots=True)
class SurveyList:
    """The contents of a signed list.

    Attributes:
        sequence: Its number, 1 to MAX_SEQUENCE: higher than that of every list issued before.
        issued_s: When it was issued, seconds since 1970.
        expires_s: From when on it is refused, seconds since 1970; after `issued_s`, by MAX_LIFE_S at
            most.
        surveys: Canonical bytes of each survey that may be asked, none twice.
        cancelled: Digests of surveys that are cancelled for good, each 16 bytes, none twice, none of a survey
            of this list.

    Raises:
        ParameterError: If a field breaks its rule.
    """

    sequence: int
    issued_s: int
    expires_s: int
    surveys: tuple[bytes, ...]
    cancelled: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        bounds = {
            "sequence": (self.sequence, 1, MAX_SEQUENCE),
            "issued_s": (self.issued_s, 0, MAX_TIME_S),
            "expires_s": (self.expires_s, self.issued_s + 1, min(self.issued_s + MAX_LIFE_S, MAX_TIME_S)),
        }
        for name, (value, low, high) in bounds.items():
            if type(value) is not int or not low <= value <= high:
                raise ParameterError(f"list {name} must be an integer in [{low}, {high}], got {value!r}")
        for name, group in (("surveys", self.surveys), ("cancelled", self.cancelled)):
            if len(group) > MAX_SURVEYS:
                raise ParameterError(f"list {name} must be at most {MAX_SURVEYS}, got {len(group)}")
        if not all(len(canonical) <= MAX_CANONICAL_BYTES for canonical in self.surveys):
            raise ParameterError(f"list surveys must have at most {MAX_CANONICAL_BYTES} bytes each")
        if not all(len(digest) == DIGEST_BYTES for digest in self.cancelled):
            raise ParameterError(f"list cancelled must be digests of {DIGEST_BYTES} bytes")
        digests = [*map(digest_of, self.surveys), *self.cancelled]
        if len(set(digests)) < len(digests):
            raise ParameterError("list must name every survey once, asked or cancelled, got one twice")

    @property
    def payload(self) -> bytes:
        """Its one encoding: array [1, sequence, issued, expires, [survey, ...], [cancelled digest, ...]]."""
        terms = [self.sequence, self.issued_s, self.expires_s]
        return packing.pack([LIST_VERSION, *terms, list(self.surveys), list(self.cancelled)])

    def signed(self, key: Ed25519PrivateKey) -> bytes:
        """Return the list as it is served: array ["hubbub-survey-list", payload, signature]."""
        payload = self.payload
        return packing.pack([MAGIC, payload, key.sign(DOMAIN + payload)])


@dataclass(frozen=True, slots=True)
class Opened:
    """A list whose signature holds.

    Attributes:
        listed: What it says.
        key: The public key that signed it, 32 bytes.
        digest: SHA-256 of its payload: two lists are the same if and only if this is.
    """

    listed: SurveyList
    key: bytes
    digest: bytes


def open_signed(data: bytes, keys: Iterable[bytes]) -> Opened:
    """Return the list that `data` holds, if one of the keys signed it.

    Expiry and number are the reader's to judge: only it has a clock and a memory.

    Args:
        data: Bytes that anybody may have made.
        keys: Public keys, 32 bytes each.

    Raises:
        ListError: Its `reason`: "unsigned", a plain list; "wrong_signature", none of the keys signed it;
            "unreadable", anything else that is no list.
    """
    payload, signature = _envelope(data)
    message = b"".join((DOMAIN, payload))
    for key in keys:
        if _holds(key, message, signature):
            return Opened(_decode(payload), key, hashlib.sha256(payload).digest())
    raise ListError("wrong_signature", "list of surveys must be signed by a pinned key")


def read_unverified(data: bytes) -> tuple[SurveyList | None, tuple[bytes, ...]]:
    """Return a list and its surveys' canonical bytes without a look at the signature; a plain one is None.

    Raises:
        ListError: Its `reason` is "unreadable".
    """
    try:
        payload, _ = _envelope(data)
    except ListError as error:
        if error.reason != "unsigned":
            raise
    else:
        listed = _decode(payload)
        return listed, listed.surveys
    try:
        return None, tuple(decode_surveys(data))
    except WireError as error:
        raise ListError("unreadable", str(error)) from None


def in_list_order(surveys: Iterable[Survey]) -> list[Survey]:
    """Return surveys in the order for a list: what older devices cannot read stands last.

    A device reads a list only so far, and what it cannot read counts as much as a large survey
    (`hubbub_client.surveys.schedule`).

    Args:
        surveys: In the order that is kept among those of one age.
    """
    ages = {each.name: age for age, each in enumerate(FORMS, start=1)}

    def age(survey: Survey) -> tuple[int, ...]:
        name, *rest = survey.form.to_spec()  # no name but the map of the form that is older than all
        return (
            survey.form.samples_parts and "classes" in survey.channel.to_spec(),
            rest[-1:] == [MORE],
            any(isinstance(each.domain, DictionaryDomain) for each in survey.attributes),
            survey.channel.inputs > MAX_INPUTS,
            any(each.tells_absent for each in survey.attributes),
            survey.ledgers != DEFAULT_LEDGERS,
            ages.get(name, 0) if isinstance(name, str) else 0,
            survey.rotation > 1,
        )

    return sorted(surveys, key=age)


def digest_of(canonical: bytes) -> bytes:
    """Return the digest of canonical bytes, as it travels in reports."""
    return hashlib.sha256(canonical).digest()[:DIGEST_BYTES]


def _envelope(data: bytes) -> tuple[memoryview, memoryview]:
    """Return payload and signature, found by headers: nothing is decoded before a key vouches for it."""
    try:
        frame = Frame(data, "list of surveys")
        # Decided by the outermost array alone, so that a broken signed list is not called unsigned.
        if (length := frame.array("list of surveys", 3)) == 2:
            raise ListError("unsigned", "list of surveys must be signed, got a plain one")
        if length != 3 or frame.text("list of surveys", len(MAGIC)) != MAGIC:
            raise WireError(f"list of surveys must be an array of three that begins with {MAGIC!r}")
        payload = frame.binary("list payload", len(data))
        signature = frame.binary("list signature", SIGNATURE_BYTES, SIGNATURE_BYTES)
        frame.finish()
    except ListError:
        raise
    except WireError as error:
        raise ListError("unreadable", str(error)) from None
    return payload, signature


def _holds(key: bytes, message: bytes, signature: memoryview) -> bool:
    # Anybody can sign for a point of small order.
    return is_key(key) and signature_holds(key, message, bytes(signature))


def signature_holds(key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether a signature of Ed25519 is good.

    Args:
        key: A public key that `is_key`.
        message: What was signed.
        signature: Of any bytes.
    """
    # 8 MB that a device without a pinned key never needs.
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _decode(payload: memoryview) -> SurveyList:
    try:
        frame = Frame(payload, "list payload")
        if (length := frame.array("list payload", 6)) != 6:
            raise WireError(f"list payload must have 6 elements, got {length}")
        frame.integer("list version", LIST_VERSION, LIST_VERSION)
        listed = SurveyList(
            frame.integer("list sequence", 1, MAX_SEQUENCE),
            frame.integer("list issued", 0, MAX_TIME_S),
            frame.integer("list expires", 0, MAX_TIME_S),
            _binaries(frame, "list surveys", MAX_CANONICAL_BYTES),
            _binaries(frame, "list cancelled", DIGEST_BYTES),
        )
        frame.finish()
        if listed.payload != payload:
            raise WireError("list payload must be in its one encoding")
    except (WireError, ParameterError) as error:
        raise ListError("unreadable", str(error)) from None
    return listed


def _binaries(frame: Frame, subject: str, limit: int) -> tuple[bytes, ...]:
    return tuple(
        bytes(frame.binary(f"{subject} {i}", limit)) for i in range(frame.array(subject, MAX_SURVEYS))
    )


def public_key(text: str) -> bytes:
    """Return a public key from its text, 64 hexadecimal digits.

    Raises:
        ParameterError: It is no such text, or the point that it names is no key.
    """
    try:
        key = bytes.fromhex(text)
    except (ValueError, TypeError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ParameterError("a survey key must be the 64 hexadecimal digits of an Ed25519 public key")
    if not is_key(key):
        raise ParameterError(
            f"a survey key must be a point of large order on Ed25519's curve, got {key.hex()}: nobody, or "
            "everybody, could sign for it"
        )
    return key


def public_text(key: Ed25519PrivateKey) -> str:
    """Return the public key of a private one, as text."""
    return key.public_key().public_bytes_raw().hex()
