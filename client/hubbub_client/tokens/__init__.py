"""One-time tokens of a device: asked for blindly, a fixed number per period, spent one with each report."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_client.tokens.fetcher import REQUEST_PATH, REQUEST_TYPE, Tokens
    from hubbub_client.tokens.issuer import TokenIssuer
    from hubbub_client.tokens.wallet import Wallet

__all__ = ["REQUEST_PATH", "REQUEST_TYPE", "TokenIssuer", "Tokens", "Wallet"]

attach(
    __name__,
    {
        "hubbub_client.tokens.fetcher": ("REQUEST_PATH", "REQUEST_TYPE", "Tokens"),
        "hubbub_client.tokens.issuer": ("TokenIssuer",),
        "hubbub_client.tokens.wallet": ("Wallet",),
    },
)
