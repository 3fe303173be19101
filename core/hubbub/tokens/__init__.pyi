from hubbub.tokens.blind_rsa import (
    Blinded as Blinded,
    MODULUS_BYTES as MODULUS_BYTES,
    PublicKey as PublicKey,
    blind as blind,
    blind_sign as blind_sign,
    finalize as finalize,
    public_of as public_of,
)
from hubbub.tokens.token import (
    NONCE_BYTES as NONCE_BYTES,
    REQUEST_BYTES as REQUEST_BYTES,
    TOKEN_BYTES as TOKEN_BYTES,
    Token as Token,
    challenge as challenge,
    challenge_digest as challenge_digest,
    decode_requests as decode_requests,
    decode_token as decode_token,
    encode_request as encode_request,
    report_id_of as report_id_of,
    token_input as token_input,
)
