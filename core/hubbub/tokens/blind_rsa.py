"""Blind RSA signatures: an issuer signs what it cannot see, and anybody can verify it.

Source: RFC 9474, variant RSABSSA-SHA384-PSS-Deterministic; its functions have the names of section 4 there.
The finished signature is an ordinary RSASSA-PSS one (RFC 8017) with SHA-384 and a salt of 48 bytes.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from hubbub.errors import ParameterError, WireError
from hubbub.numeric import Source

MODULUS_BITS: Final = 2048
MODULUS_BYTES: Final = MODULUS_BITS // 8
EXPONENT: Final = 65537
SALT_BYTES: Final = 48
_HASH_BYTES: Final = 48
# A random multiple of p - 1 of this length is added to the secret exponent, so that no two signatures take
# the same steps.
_EXPONENT_BLIND_BYTES: Final = 8

# SubjectPublicKeyInfo of an RSASSA-PSS key with SHA-384, MGF1-SHA-384 and a salt of 48 bytes (RFC 4055), up
# to the modulus, and from it to the end. Only one length is taken, so only one encoding is.
_SPKI_HEAD: Final = bytes.fromhex(
    "30820152303d06092a864886f70d01010a3030a00d300b0609608648016503040202a11a301806092a864886f70d010108"
    "300b0609608648016503040202a2030201300382010f003082010a0282010100"
)
_SPKI_TAIL: Final = bytes.fromhex("0203010001")


@dataclass(frozen=True)
class PublicKey:
    """The public key of an issuer: a modulus of 2,048 bits, exponent 65537.

    Attributes:
        modulus: A product of two primes; that it is one cannot be seen from it.

    Raises:
        ParameterError: If the modulus is even or not of 2,048 bits.
    """

    modulus: int

    def __post_init__(self) -> None:
        if (
            type(self.modulus) is not int
            or self.modulus.bit_length() != MODULUS_BITS
            or self.modulus % 2 == 0
        ):
            raise ParameterError(f"issuer key must have an odd modulus of {MODULUS_BITS} bits")

    @classmethod
    def from_spki(cls, data: bytes) -> PublicKey:
        """Return the key of a SubjectPublicKeyInfo as RFC 9578, section 6.5, has it.

        Raises:
            WireError: If the bytes are not its one encoding.
        """
        modulus = data[len(_SPKI_HEAD) : -len(_SPKI_TAIL)]
        if data != _SPKI_HEAD + modulus + _SPKI_TAIL or len(modulus) != MODULUS_BYTES:
            raise WireError(f"issuer key must be an RSASSA-PSS key of {MODULUS_BITS} bits in DER")
        try:
            return cls(int.from_bytes(modulus, "big"))
        except ParameterError as error:
            raise WireError(str(error)) from None

    @cached_property
    def spki(self) -> bytes:
        """The key as SubjectPublicKeyInfo in DER."""
        return _SPKI_HEAD + self.modulus.to_bytes(MODULUS_BYTES, "big") + _SPKI_TAIL

    @cached_property
    def id(self) -> bytes:
        """SHA-256 of `spki`, 32 bytes: RFC 9578's token_key_id."""
        return hashlib.sha256(self.spki).digest()

    @cached_property
    def _verifier(self) -> rsa.RSAPublicKey:
        return rsa.RSAPublicNumbers(EXPONENT, self.modulus).public_key()

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """Return whether the signature of a message is good."""
        try:
            self._verifier.verify(signature, message, _PSS, _SHA384)
        except InvalidSignature:
            return False
        return True


_SHA384: Final = hashes.SHA384()
_PSS: Final = padding.PSS(padding.MGF1(_SHA384), SALT_BYTES)


@dataclass(frozen=True, slots=True)
class Blinded:
    """A blinded message, and what takes the blinding off its signature.

    Attributes:
        message: What the issuer sees, 256 bytes, uniform whatever was blinded.
        inverse: The secret factor, kept by who blinded.
    """

    message: bytes
    inverse: int


def blind(key: PublicKey, message: bytes, source: Source) -> Blinded:
    """Return a message, padded with a fresh salt and hidden by a uniform secret (RFC 9474, section 4.2)."""
    padded = int.from_bytes(_emsa_pss(message, source.token_bytes(SALT_BYTES)), "big")
    factor = _uniform_unit(key.modulus, source)
    return blinded_with(key, padded, factor)


def blinded_with(key: PublicKey, padded: int, factor: int) -> Blinded:
    """Return a padded message multiplied by `factor` to the public exponent.

    Raises:
        ParameterError: If either shares a factor with the modulus: then the key is no key any more.
    """
    if math.gcd(padded, key.modulus) != 1 or math.gcd(factor, key.modulus) != 1:
        raise ParameterError("blinding must be by a unit modulo the issuer key, got a factor of the key")
    hidden = padded * pow(factor, EXPONENT, key.modulus) % key.modulus
    return Blinded(hidden.to_bytes(MODULUS_BYTES, "big"), pow(factor, -1, key.modulus))


def finalize(key: PublicKey, message: bytes, signature: bytes, inverse: int) -> bytes:
    """Return the message's own signature, 256 bytes, from that of its blinded form (RFC 9474, section 4.4).

    Raises:
        WireError: If it is not good: the issuer signed with another key, or something else.
    """
    if len(signature) != MODULUS_BYTES:
        raise WireError(f"blind signature must have {MODULUS_BYTES} bytes, got {len(signature)}")
    plain = int.from_bytes(signature, "big") * inverse % key.modulus
    authenticator = plain.to_bytes(MODULUS_BYTES, "big")
    if not key.verifies(message, authenticator):
        raise WireError("blind signature must be good for the issuer's key, got one that is not")
    return authenticator


def blind_sign(key: rsa.RSAPrivateKey, blinded: bytes, source: Source) -> bytes:
    """Return the signature of a blinded message, 256 bytes (RFC 9474, section 4.3).

    Python's powers take a time that depends on their operands. So the base is multiplied by a fresh secret
    and each secret exponent moved by a fresh multiple of its period: times say nothing of the message, and
    of the key only what random multiples leave. A result that does not verify is never given out: from one
    wrong by a fault of the machine anybody could factor the key.

    Raises:
        ParameterError: If the key is not of 2,048 bits with exponent 65537.
        WireError: If the message is no number below the modulus.
    """
    public = public_of(key)
    modulus, value = public.modulus, int.from_bytes(blinded, "big")
    if len(blinded) != MODULUS_BYTES or value >= modulus:
        raise WireError("blinded message must be 256 bytes below the issuer key's modulus")
    numbers = key.private_numbers()
    factor = _uniform_unit(modulus, source)
    base = value * pow(factor, EXPONENT, modulus) % modulus

    def power(prime: int, exponent: int) -> int:
        moved = exponent + int.from_bytes(source.token_bytes(_EXPONENT_BLIND_BYTES), "big") * (prime - 1)
        return pow(base % prime, moved, prime)

    low, high = power(numbers.q, numbers.dmq1), power(numbers.p, numbers.dmp1)
    joined = low + (high - low) * numbers.iqmp % numbers.p * numbers.q
    signed = joined * pow(factor, -1, modulus) % modulus
    if pow(signed, EXPONENT, modulus) != value:
        raise ParameterError("blind signature must verify before it leaves, got one that does not")
    return signed.to_bytes(MODULUS_BYTES, "big")


def public_of(key: rsa.RSAPrivateKey) -> PublicKey:
    """Return the public half.

    Raises:
        ParameterError: If it is not of 2,048 bits with exponent 65537.
    """
    numbers = key.public_key().public_numbers()
    if numbers.e != EXPONENT:
        raise ParameterError(f"issuer key must have exponent {EXPONENT}, got {numbers.e}")
    return PublicKey(numbers.n)


def _uniform_unit(modulus: int, source: Source) -> int:
    """Return a uniform number of 1 to modulus - 1 that has an inverse."""
    while True:
        drawn = int.from_bytes(source.token_bytes(MODULUS_BYTES), "big")
        if 0 < drawn < modulus and math.gcd(drawn, modulus) == 1:
            return drawn


def _emsa_pss(message: bytes, salt: bytes) -> bytes:
    """Return EMSA-PSS-ENCODE(message) of 2,047 bits with a given salt (RFC 8017, section 9.1.1)."""
    hashed = hashlib.sha384(message).digest()
    tag = hashlib.sha384(bytes(8) + hashed + salt).digest()
    block = bytes(MODULUS_BYTES - len(salt) - _HASH_BYTES - 2) + b"\x01" + salt
    mask = _mgf1(tag, len(block))
    masked = bytearray(a ^ b for a, b in zip(block, mask, strict=True))
    masked[0] &= 0x7F  # one bit shorter than the modulus
    return bytes(masked) + tag + b"\xbc"


def _mgf1(seed: bytes, length: int) -> bytes:
    """Return MGF1 with SHA-384 (RFC 8017, appendix B.2.1)."""
    blocks = (
        hashlib.sha384(seed + counter.to_bytes(4, "big")).digest()
        for counter in range(math.ceil(length / _HASH_BYTES))
    )
    return b"".join(blocks)[:length]
