"""The price of one-time tokens: what gateway, device and issuer spend on one, in processor time.

    python bench/tokens.py

The gateway's work is everything from the body of an upload of eight reports to the verdicts on its tokens,
beside the decoding of the same upload without tokens; the rest of an upload is the same with both.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric import rsa

from hubbub.numeric import SYSTEM
from hubbub.tokens import (
    TOKEN_BYTES,
    Token,
    blind,
    blind_sign,
    challenge_digest,
    finalize,
    public_of,
    token_input,
)
from hubbub.wire import (
    Report,
    decode_token_upload,
    decode_upload,
    encode_report,
    encode_token_upload,
    encode_upload,
)
from hubbub_collector.permits import Issuer, TokenGate

REPORTS = 8
NAME = "tokens.example"


def spent_us(work: Callable[[], object], times: int) -> float:
    """Return the least processor time of one call out of five series, microseconds."""

    def once() -> float:
        began = time.process_time()
        for _ in range(times):
            work()
        return (time.process_time() - began) / times

    return 1e6 * min(once() for _ in range(5))


def main(words: list[str]) -> int:
    """Print a row for each part, and return the exit status."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(words)
    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key, digest = public_of(secret), bytes(16)
    bound = challenge_digest(NAME, digest, 0)

    def token() -> Token:
        nonce = secrets.token_bytes(32)
        message = token_input(nonce, bound, key.id)
        hidden = blind(key, message, SYSTEM)
        signature = blind_sign(secret, hidden.message, SYSTEM)
        return Token(nonce, bound, key.id, finalize(key, message, signature, hidden.inverse))

    tokens = [token() for _ in range(REPORTS)]
    reports = [encode_report(Report(digest, 0, one.report_id, 3)) for one in tokens]
    plain = encode_upload(reports)
    pairs = [(report, one.encoded) for report, one in zip(reports, tokens, strict=True)]
    guarded = encode_token_upload(pairs)
    gate = TokenGate([Issuer(NAME, key)])
    assert all(isinstance(found, Issuer) for found in gate.judge(decode_token_upload(guarded, max_reports=8)))

    message = token_input(bytes(32), bound, key.id)
    hidden = blind(key, message, SYSTEM)
    signature = blind_sign(secret, hidden.message, SYSTEM)
    verifying = spent_us(lambda: tokens[0].is_signed_by(key), 2000)
    with_tokens = spent_us(lambda: gate.judge(decode_token_upload(guarded, max_reports=8)), 200) / REPORTS
    without = spent_us(lambda: decode_upload(plain, max_reports=8), 2000) / REPORTS
    rows = {
        "gateway, a report with its token": with_tokens,
        "of it, verifying the signature": verifying,
        "gateway, a report without": without,
        "device, blinding": spent_us(lambda: blind(key, message, SYSTEM), 50),
        "device, finishing": spent_us(lambda: finalize(key, message, signature, hidden.inverse), 200),
        "issuer, signing": spent_us(lambda: blind_sign(secret, hidden.message, SYSTEM), 20),
    }
    print("| part | processor time, us | a second and core |\n|---|---|---|")
    for name, found_us in rows.items():
        print(f"| {name} | {found_us:.3g} | {1e6 / found_us:,.0f} |")
    print(f"\nA token takes {TOKEN_BYTES} bytes; an upload of 8 reports {len(guarded)}, not {len(plain)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
