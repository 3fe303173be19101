"""An issuer of tokens as a device knows it: where it is, its key, and how many tokens it gives."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hubbub.errors import ParameterError, WireError
from hubbub.tokens import PublicKey, challenge_digest
from hubbub_client.errors import ClientError
from hubbub_client.upload.transport import PlainHttp, checked_url

MAX_QUANTITY: Final = 128
_LEAST_PERIOD_S: Final = 60


@dataclass(frozen=True)
class TokenIssuer:
    """An issuer, the same on every device of an app: what differs would tell devices apart.

    Attributes:
        url: Where it is, for example "https://tokens.example.org".
        name: Its name, as the tokens' challenges have it and the collector knows it.
        key: Its public key, as `hubbub issuer keygen` prints it: pinned by the app, since an issuer that gave
            each device another key could link tokens to devices.
        credential: What the issuer knows this device by; the collector never sees it.
        quantity: Tokens asked for in a period, always all of them, 1 to 128: at least as many as the reports
            that a device may send in one.
        period_s: Length of a period, whole seconds, at least 60.
        plain_http: Where `url` may be http, which shows the credential to everybody on the way: "local", to
            this machine alone, or "anywhere".

    Raises:
        ClientError: If a field breaks its rule.
    """

    url: str
    name: str
    key: str
    credential: str = field(repr=False)
    quantity: int = 4
    period_s: int = 86_400
    plain_http: PlainHttp = "local"

    def __post_init__(self) -> None:
        checked_url(self.url, "issuer", plain_http=self.plain_http)
        if type(self.quantity) is not int or not 1 <= self.quantity <= MAX_QUANTITY:
            raise ClientError(f"quantity must be an integer in [1, {MAX_QUANTITY}], got {self.quantity!r}")
        if type(self.period_s) is not int or self.period_s < _LEAST_PERIOD_S:
            raise ClientError(
                f"period_s must be whole seconds, at least {_LEAST_PERIOD_S}, got {self.period_s!r}"
            )
        if not (self.credential.isascii() and self.credential.isprintable() and self.credential):
            raise ClientError("credential must be printable ASCII characters, at least one")
        try:
            challenge_digest(self.name, bytes(16), 0)
            _ = self.public_key
        except (binascii.Error, UnicodeEncodeError):
            raise ClientError(f"issuer: the key must be in base64, got {self.key!r:.80}") from None
        except (ParameterError, WireError, ValueError) as error:
            raise ClientError(f"issuer: {error}") from None

    @cached_property
    def public_key(self) -> PublicKey:
        """The key, decoded."""
        text = self.key.strip()
        return PublicKey.from_spki(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
