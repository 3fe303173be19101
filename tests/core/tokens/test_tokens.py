"""Tokens against the RFC's vectors, and that issuer and collector together cannot link one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from hubbub.errors import ParameterError, WireError
from hubbub.numeric import SYSTEM
from hubbub.testing import SeededSource
from hubbub.tokens import (
    PublicKey,
    Token,
    blind,
    blind_sign,
    challenge,
    challenge_digest,
    decode_requests,
    decode_token,
    encode_request,
    finalize,
    public_of,
    report_id_of,
    token_input,
)
from hubbub.tokens.blind_rsa import EXPONENT

VECTORS = Path(__file__).parents[2] / "golden" / "tokens.json"
CASES = json.loads(VECTORS.read_text())["cases"]
ISSUER = "issuer.example"
SURVEY = bytes(range(16))


class Scripted:
    """A source that gives the bytes it was given, in order."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = iter(parts)

    def token_bytes(self, n: int, /) -> bytes:
        part = next(self._parts)
        assert len(part) == n
        return part


@pytest.fixture(scope="module")
def secret() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=EXPONENT, key_size=2048)


@pytest.mark.parametrize("case", CASES, ids=["with-context", "without-context"])
def test_the_rfcs_vectors_are_made_again(case: dict[str, str]) -> None:
    want = {name: bytes.fromhex(text) for name, text in case.items()}
    key = PublicKey.from_spki(want["pkS"])
    assert key.spki == want["pkS"]
    message = token_input(want["nonce"], hashlib.sha256(want["token_challenge"]).digest(), key.id)
    made = blind(key, message, Scripted(want["salt"], want["blind"]))
    assert encode_request(key, made.message) == want["token_request"]
    assert decode_requests(want["token_request"] * 2, key) == [made.message] * 2
    signature = want["token_response"]
    # The issuer's part, by the public exponent alone: the signature is that of the blinded message.
    opened = pow(int.from_bytes(signature, "big"), EXPONENT, key.modulus)
    assert opened.to_bytes(256, "big") == made.message
    token = Token(want["nonce"], message[34:66], key.id, finalize(key, message, signature, made.inverse))
    assert token.encoded == want["token"]
    assert decode_token(want["token"]) == token
    assert token.is_signed_by(key)


def test_the_challenge_has_the_rfcs_layout() -> None:
    # 9577, section 2.1: type, issuer's name, a redemption context of 32 bytes, no origin.
    data = challenge(ISSUER, SURVEY, 7)
    assert data[:2] == b"\x00\x02"
    assert data[2:4] == b"\x00\x0e"
    assert data[4:18] == ISSUER.encode()
    assert data[18] == 32
    assert data[19:51] == hashlib.sha256(b"hubbub token\0" + SURVEY + b"\0\0\0\x07").digest()
    assert data[51:] == b"\0\0"


def issued(secret: rsa.RSAPrivateKey, round_number: int) -> tuple[bytes, bytes, Token]:
    """Return what the issuer sees of a token, what it says, and the token."""
    key = public_of(secret)
    nonce, bound = SYSTEM.token_bytes(32), challenge_digest(ISSUER, SURVEY, round_number)
    message = token_input(nonce, bound, key.id)
    hidden = blind(key, message, SYSTEM)
    signature = blind_sign(secret, hidden.message, SYSTEM)
    return (
        hidden.message,
        signature,
        Token(nonce, bound, key.id, finalize(key, message, signature, hidden.inverse)),
    )


def test_every_issuance_may_be_that_of_every_token(secret: rsa.RSAPrivateKey) -> None:
    # Issuer and collector see the blinded messages with their signatures, and the tokens. For each pair of an
    # issuance and a token there is exactly one factor r that makes them belong together, and every r is drawn
    # with the same probability: all matchings are equally likely, whatever the number of tokens.
    key = public_of(secret)
    n = key.modulus
    seen = [issued(secret, number) for number in range(4)]
    for blinded, signature, _ in seen:
        for _, _, token in seen:
            authenticator = int.from_bytes(token.authenticator, "big")
            r = int.from_bytes(signature, "big") * pow(authenticator, -1, n) % n
            padded = pow(authenticator, EXPONENT, n)
            assert padded * pow(r, EXPONENT, n) % n == int.from_bytes(blinded, "big")


def test_a_blinded_message_is_fresh_each_time(secret: rsa.RSAPrivateKey) -> None:
    key = public_of(secret)
    message = token_input(bytes(32), bytes(32), key.id)
    assert len({blind(key, message, SYSTEM).message for _ in range(16)}) == 16


def test_a_token_is_good_for_one_survey_round_and_key(secret: rsa.RSAPrivateKey) -> None:
    token = issued(secret, 3)[2]
    assert token.is_signed_by(public_of(secret))
    other = public_of(rsa.generate_private_key(public_exponent=EXPONENT, key_size=2048))
    assert not token.is_signed_by(other)
    assert not Token(token.nonce, token.challenge_digest, other.id, token.authenticator).is_signed_by(other)
    digests = {challenge_digest(ISSUER, SURVEY, number) for number in range(5)}
    digests |= {challenge_digest(ISSUER, bytes(16), 3), challenge_digest("another.example", SURVEY, 3)}
    assert len(digests) == 7
    assert token.challenge_digest == challenge_digest(ISSUER, SURVEY, 3)


def flips(token: Token) -> Iterator[Token]:
    for place in range(2, len(token.encoded)):
        changed = bytearray(token.encoded)
        changed[place] ^= 1 << (place % 8)
        yield decode_token(bytes(changed))


def test_a_token_with_any_byte_changed_is_refused(secret: rsa.RSAPrivateKey) -> None:
    key = public_of(secret)
    assert [other for other in flips(issued(secret, 0)[2]) if other.is_signed_by(key)] == []


def test_the_report_id_follows_from_nonce_and_challenge_alone(secret: rsa.RSAPrivateKey) -> None:
    token = issued(secret, 0)[2]
    signed_again = Token(token.nonce, token.challenge_digest, bytes(32), bytes(256))
    assert token.report_id == signed_again.report_id == report_id_of(token.nonce, token.challenge_digest)
    assert len(token.report_id) == 16
    assert token.report_id != report_id_of(bytes(32), token.challenge_digest)
    assert token.report_id != report_id_of(token.nonce, bytes(32))


def test_a_signature_of_something_else_makes_no_token(secret: rsa.RSAPrivateKey) -> None:
    key = public_of(secret)
    message = token_input(bytes(32), bytes(32), key.id)
    hidden = blind(key, message, SYSTEM)
    with pytest.raises(WireError, match="must be good for the issuer's key"):
        finalize(key, message, hidden.message, hidden.inverse)
    with pytest.raises(WireError, match="must have 256 bytes, got 3"):
        finalize(key, message, b"abc", hidden.inverse)


def test_bad_input_is_named(secret: rsa.RSAPrivateKey) -> None:
    key = public_of(secret)
    with pytest.raises(WireError, match="token must have 354 bytes, got 2"):
        decode_token(b"ab")
    with pytest.raises(WireError, match="token must be of type 2, got 1"):
        decode_token(b"\0\x01" + bytes(352))
    with pytest.raises(WireError, match="of 259 bytes each, got 0 in all"):
        decode_requests(b"", key)
    with pytest.raises(WireError, match="for the issuer's key"):
        decode_requests(bytes([0, 2, key.id[-1] ^ 1]) + bytes(256), key)
    with pytest.raises(WireError, match="below the issuer key's modulus"):
        blind_sign(secret, b"\xff" * 256, SYSTEM)
    with pytest.raises(WireError, match="RSASSA-PSS key"):
        PublicKey.from_spki(b"no key")
    with pytest.raises(ParameterError, match="odd modulus of 2048 bits"):
        PublicKey(2**2047)
    with pytest.raises(ParameterError, match="nonce must have 32 bytes, got 1"):
        token_input(b"a", bytes(32), bytes(32))
    for name in ("", "naïve.example", "a\n", "a" * 256):
        with pytest.raises(ParameterError, match="issuer name"):
            challenge(name, SURVEY, 0)
    with pytest.raises(ParameterError, match="2048 bits"):
        public_of(rsa.generate_private_key(public_exponent=EXPONENT, key_size=1024))  # noqa: S505 - to be refused


def test_signing_twice_takes_other_steps_to_the_same_signature(secret: rsa.RSAPrivateKey) -> None:
    hidden = blind(public_of(secret), bytes(98), SeededSource(3)).message
    assert blind_sign(secret, hidden, SeededSource(1)) == blind_sign(secret, hidden, SeededSource(2))
