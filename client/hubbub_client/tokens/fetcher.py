"""The tokens of a device: fetched once per period, always the same number, whatever the device will send.

An issuer that counted what a device asks for would learn how many reports it sends. So a device asks for the
fixed quantity in every period, pads what it needs with tokens for nothing, and throws those away.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from hubbub.errors import WireError
from hubbub.numeric import SYSTEM
from hubbub.tokens import MODULUS_BYTES, NONCE_BYTES, Token, blind, encode_request, finalize, token_input
from hubbub_client.errors import TransportError
from hubbub_client.tokens.issuer import TokenIssuer
from hubbub_client.tokens.wallet import PendingToken, Wallet
from hubbub_client.upload.transport import HttpTransport, Transport

REQUEST_PATH = "/v1/tokens"
REQUEST_TYPE = "application/private-token-request"


class Tokens:
    """The tokens of one device, from one issuer, in one wallet file.

    Args:
        path: The wallet file.
        issuer: Who issues them.
        http: Another transport, for hosts with an HTTP stack of their own: it must send the credential as
            `Authorization: Bearer`.

    Raises:
        ClientError: If the wallet cannot be used.
    """

    def __init__(
        self, path: str | os.PathLike[str], issuer: TokenIssuer, *, http: Transport | None = None
    ) -> None:
        self._issuer, self._key = issuer, issuer.public_key
        self._fetching = threading.Lock()
        self.wallet = Wallet(path, issuer.name)
        self._http = http or HttpTransport(
            issuer.url,
            bearer=issuer.credential,
            content_type=REQUEST_TYPE,
            plain_http=issuer.plain_http,
        )

    @property
    def period_s(self) -> int:
        """The length of a period, seconds."""
        return self._issuer.period_s

    def fetch(self, rounds: Iterable[tuple[bytes, int]], *, now_s: float) -> bool:
        """Ask for this period's tokens, and return whether they came; False where they came before.

        A request whose answer was lost is sent again as it was, in its period.

        Args:
            rounds: (digest, round) pairs that the device will answer soon.
            now_s: Epoch seconds.

        Raises:
            TransportError: If the issuer cannot be reached, refuses, or signs with another key.
        """
        with self._fetching:
            return self._fetch(rounds, int(now_s // self._issuer.period_s))

    def _fetch(self, rounds: Iterable[tuple[bytes, int]], period: int) -> bool:
        if self.wallet.is_done(period):
            return False
        asked = self.wallet.asked(period)
        if not asked:
            asked = self._blinded(self.wallet.unsigned(rounds, self._issuer.quantity))
            self.wallet.ask(period, asked)
        response = self._http.post(REQUEST_PATH, b"".join(one.request for one in asked))
        if response.status != 200:
            raise TransportError(f"issuer must answer {REQUEST_PATH} with 200, got {response.status}")
        if len(response.body) != MODULUS_BYTES * len(asked):
            raise TransportError(
                f"issuer must answer with {MODULUS_BYTES * len(asked)} bytes, got {len(response.body)}"
            )
        parts = [response.body[at : at + MODULUS_BYTES] for at in range(0, len(response.body), MODULUS_BYTES)]
        try:
            tokens = [self._token(one, part) for one, part in zip(asked, parts, strict=True)]
        except WireError as error:
            raise TransportError(f"issuer's answer is refused: {error}") from None
        self.wallet.take(period, tokens)
        return True

    def _blinded(self, wanted: list[tuple[bytes, bytes]]) -> list[PendingToken]:
        """Return as many requests as always, those for nothing in random places among the others."""
        spare = self._issuer.quantity - len(wanted)
        pairs = [*wanted, *((os.urandom(NONCE_BYTES), os.urandom(32)) for _ in range(spare))]
        # Blinded messages are uniform: their order says nothing, and is mixed all the same.
        pairs.sort(key=lambda _: os.urandom(8))
        asked = []
        for nonce, bound in pairs:
            hidden = blind(self._key, token_input(nonce, bound, self._key.id), SYSTEM)
            asked.append(
                PendingToken(encode_request(self._key, hidden.message), nonce, bound, hidden.inverse)
            )
        return asked

    def _token(self, asked: PendingToken, signature: bytes) -> Token:
        message = token_input(asked.nonce, asked.challenge_digest, self._key.id)
        authenticator = finalize(self._key, message, signature, asked.inverse)
        return Token(asked.nonce, asked.challenge_digest, self._key.id, authenticator)

    def close(self) -> None:
        """Close the wallet and kept connections."""
        self._http.close()
        self.wallet.close()
