"""What a device knows of its issuer is checked, and no message holds the credential."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from hubbub.tokens import public_of
from hubbub_client import ClientError, TokenIssuer

KEY = base64.urlsafe_b64encode(
    public_of(rsa.generate_private_key(public_exponent=65537, key_size=2048)).spki
).decode()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"url": "ftp://x"}, r"issuer URL must be http\(s\)://host\[:port\], got 'ftp://x'"),
        ({"url": "http://t.example"}, "issuer URL must be https://, or http:// to this machine"),
        ({"name": ""}, "issuer name must be 1 to 255 printable ASCII characters"),
        ({"key": "abcd"}, "issuer key must be an RSASSA-PSS key of 2048 bits in DER"),
        ({"credential": ""}, "credential must be printable ASCII characters"),
        ({"credential": "a\nb"}, "credential must be printable ASCII characters"),
        ({"quantity": 0}, r"quantity must be an integer in \[1, 128\], got 0"),
        ({"quantity": 2.0}, r"quantity must be an integer in \[1, 128\], got 2.0"),
        ({"period_s": 5}, "period_s must be whole seconds, at least 60, got 5"),
    ],
)
def test_each_field_has_its_rule(change: dict[str, object], text: str) -> None:
    given = {"url": "https://t.example", "name": "t.example", "key": KEY, "credential": "se/cret"}
    assert "se/cret" not in repr(TokenIssuer(**given))  # type: ignore[arg-type]
    with pytest.raises(ClientError, match=text) as caught:
        TokenIssuer(**given | change)  # type: ignore[arg-type]
    assert "se/cret" not in str(caught.value)
