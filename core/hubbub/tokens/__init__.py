"""One-time tokens that admit one report each and that nobody can trace: blind RSA, Privacy Pass."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub.tokens.blind_rsa import (
        MODULUS_BYTES,
        Blinded,
        PublicKey,
        blind,
        blind_sign,
        finalize,
        public_of,
    )
    from hubbub.tokens.token import (
        NONCE_BYTES,
        REQUEST_BYTES,
        TOKEN_BYTES,
        Token,
        challenge,
        challenge_digest,
        decode_requests,
        decode_token,
        encode_request,
        report_id_of,
        token_input,
    )

__all__ = [
    "MODULUS_BYTES",
    "NONCE_BYTES",
    "REQUEST_BYTES",
    "TOKEN_BYTES",
    "Blinded",
    "PublicKey",
    "Token",
    "blind",
    "blind_sign",
    "challenge",
    "challenge_digest",
    "decode_requests",
    "decode_token",
    "encode_request",
    "finalize",
    "public_of",
    "report_id_of",
    "token_input",
]

attach(
    __name__,
    {
        "hubbub.tokens.blind_rsa": (
            "Blinded",
            "MODULUS_BYTES",
            "PublicKey",
            "blind",
            "blind_sign",
            "finalize",
            "public_of",
        ),
        "hubbub.tokens.token": (
            "NONCE_BYTES",
            "REQUEST_BYTES",
            "TOKEN_BYTES",
            "Token",
            "challenge",
            "challenge_digest",
            "decode_requests",
            "decode_token",
            "encode_request",
            "report_id_of",
            "token_input",
        ),
    },
)
