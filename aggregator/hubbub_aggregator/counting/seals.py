"""The rule by which a seal is the sealer's: a signature, so that no other writer of the log ends a round.

A signature is Ed25519 over a domain, the survey's digest and the round. It does not name the log: use a key
for one log alone. A copy of a good seal does no harm, since the sealer writes a seal into all partitions of a
round at once, and when the round is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.survey import Survey
from hubbub.wire import SealRecord

_DOMAIN: Final = b"hubbub seal\x00"

SignSeal: TypeAlias = Callable[[bytes, int], bytes]
"""Return the signature of a seal of a digest and a round."""


@dataclass(frozen=True, slots=True)
class SealRules:
    """The keys that seals must be signed with.

    Attributes:
        keys: Public keys of Ed25519, 32 bytes each; any of them will do.
        since_s: Rounds that end at or before this time, seconds since 1970, may have seals without a
            signature: those that a log has from before there was a key. Such rounds are over.
    """

    keys: tuple[bytes, ...]
    since_s: int = 0

    def admits(self, seal: SealRecord, survey: Survey | None) -> bool:
        """Return whether a seal ends its round; `survey` is None where nobody has announced it."""
        if not seal.signature:
            return survey is not None and survey.round_end_s(seal.round) <= self.since_s
        message = _message(seal.digest, seal.round)
        return any(_is_signed(key, seal.signature, message) for key in self.keys)


def seal_signer(key: Ed25519PrivateKey) -> SignSeal:
    """Return the function that signs seals with a key."""
    return lambda digest, number: key.sign(_message(digest, number))


def _message(digest: bytes, number: int) -> bytes:
    return _DOMAIN + digest + number.to_bytes(4, "big")


def _is_signed(key: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True
