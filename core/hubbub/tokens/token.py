"""One-time tokens of Privacy Pass: each admits one report of one survey and round, and cannot be traced.

Source: RFC 9577 (challenge, token) and RFC 9578 (type 2, publicly verifiable, blind RSA). The redemption
context binds the survey's digest and the round: a token is good for these alone, and the issuer, who signs it
blinded, sees neither. The report's id follows from the token, so that whoever counts drops a second use of it
as a duplicate of the first.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Final

from hubbub.errors import ParameterError, WireError
from hubbub.tokens.blind_rsa import MODULUS_BYTES, PublicKey

TOKEN_TYPE: Final = 2
"""Blind RSA of 2,048 bits, in the registry of RFC 9578."""

NONCE_BYTES: Final = 32
KEY_ID_BYTES: Final = 32
_DIGEST_BYTES: Final = 32
_INPUT_BYTES: Final = 2 + NONCE_BYTES + _DIGEST_BYTES + KEY_ID_BYTES
TOKEN_BYTES: Final = _INPUT_BYTES + MODULUS_BYTES
REQUEST_BYTES: Final = 2 + 1 + MODULUS_BYTES
REPORT_ID_BYTES: Final = 16
MAX_ISSUER_NAME: Final = 255

_CONTEXT: Final = b"hubbub token\x00"
_REPORT_ID: Final = b"hubbub report id\x00"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it travels.

    Attributes:
        nonce: 32 bytes that its owner drew.
        challenge_digest: What it is good for: `challenge_digest` of a survey and a round.
        key_id: Which key of an issuer signed it, `PublicKey.id`.
        authenticator: The signature of the rest, 256 bytes.
    """

    nonce: bytes
    challenge_digest: bytes
    key_id: bytes
    authenticator: bytes

    @property
    def encoded(self) -> bytes:
        """The token's 354 bytes."""
        return token_input(self.nonce, self.challenge_digest, self.key_id) + self.authenticator

    @property
    def report_id(self) -> bytes:
        """The id of the one report that it admits, 16 bytes."""
        return report_id_of(self.nonce, self.challenge_digest)

    def is_signed_by(self, key: PublicKey) -> bool:
        """Return whether `key` is the one that it names and has signed it."""
        signed = token_input(self.nonce, self.challenge_digest, self.key_id)
        return self.key_id == key.id and key.verifies(signed, self.authenticator)


def decode_token(data: bytes) -> Token:
    """Return the token that `data` holds; who signed it is not looked at.

    Raises:
        WireError: If it has another length or type.
    """
    if len(data) != TOKEN_BYTES:
        raise WireError(f"token must have {TOKEN_BYTES} bytes, got {len(data)}")
    (kind,) = struct.unpack_from(">H", data)
    if kind != TOKEN_TYPE:
        raise WireError(f"token must be of type {TOKEN_TYPE}, got {kind}")
    fields = (data[2:34], data[34:66], data[66:98], data[98:])
    return Token(*fields)


def token_input(nonce: bytes, challenge_digest: bytes, key_id: bytes) -> bytes:
    """Return the 98 bytes that an issuer signs without seeing them (RFC 9578, section 6.1).

    Raises:
        ParameterError: If a part is not of 32 bytes.
    """
    for name, part in (("nonce", nonce), ("challenge digest", challenge_digest), ("key id", key_id)):
        if len(part) != 32:
            raise ParameterError(f"token {name} must have 32 bytes, got {len(part)}")
    return struct.pack(">H", TOKEN_TYPE) + nonce + challenge_digest + key_id


def challenge(issuer: str, digest: bytes, round_number: int) -> bytes:
    """Return the TokenChallenge of a survey and a round (RFC 9577, section 2.1), without an origin.

    Args:
        issuer: The issuer's name, 1 to 255 printable ASCII characters.
        digest: The survey's digest, 16 bytes.
        round_number: The round, 0 and up.

    Raises:
        ParameterError: If the name breaks its rule.
    """
    if not (issuer.isascii() and issuer.isprintable() and 1 <= len(issuer) <= MAX_ISSUER_NAME):
        raise ParameterError(
            f"issuer name must be 1 to {MAX_ISSUER_NAME} printable ASCII characters, got {issuer!r:.80}"
        )
    context = hashlib.sha256(_CONTEXT + digest + round_number.to_bytes(4, "big")).digest()
    name = issuer.encode("ascii")
    return struct.pack(">HH", TOKEN_TYPE, len(name)) + name + bytes([len(context)]) + context + bytes(2)


def challenge_digest(issuer: str, digest: bytes, round_number: int) -> bytes:
    """Return SHA-256 of the survey's and round's `challenge`, 32 bytes."""
    return hashlib.sha256(challenge(issuer, digest, round_number)).digest()


def report_id_of(nonce: bytes, challenge_digest: bytes) -> bytes:
    """Return the id of the report that a token of this nonce and challenge admits, 16 bytes.

    It does not depend on key or signature, so that a report can have its id before its token is signed.
    """
    return hashlib.sha256(_REPORT_ID + nonce + challenge_digest).digest()[:REPORT_ID_BYTES]


def encode_request(key: PublicKey, blinded: bytes) -> bytes:
    """Return the TokenRequest of a blinded message, 259 bytes (RFC 9578, section 6.1)."""
    return struct.pack(">HB", TOKEN_TYPE, key.id[-1]) + blinded


def decode_requests(data: bytes, key: PublicKey) -> list[bytes]:
    """Return the blinded messages of TokenRequests side by side; one alone is RFC 9578's own request.

    Raises:
        WireError: If they are not whole requests of this type and for this key.
    """
    if not data or len(data) % REQUEST_BYTES:
        raise WireError(f"token requests must be of {REQUEST_BYTES} bytes each, got {len(data)} in all")
    found = [data[begin : begin + REQUEST_BYTES] for begin in range(0, len(data), REQUEST_BYTES)]
    head = struct.pack(">HB", TOKEN_TYPE, key.id[-1])
    if any(request[:3] != head for request in found):
        raise WireError(f"token requests must be of type {TOKEN_TYPE} and for the issuer's key")
    return [request[3:] for request in found]
