"""The permit that a sender must show: none, a password that all devices share, or a token with each report.

A token admits one report of one survey and round (`hubbub.tokens`), and the report's id follows from it. So a
second use of a token is a copy of the report, which whoever counts drops.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from starlette.types import Scope

from hubbub.errors import ParameterError, WireError
from hubbub.tokens import PublicKey, challenge_digest, decode_token
from hubbub.wire import Malformed, Report, Voucher
from hubbub_collector.body import Headers, Refusal
from hubbub_collector.errors import SettingsError

TokenFault: TypeAlias = Literal["malformed", "unknown_key", "other_round", "other_id", "forged"]

MAX_ISSUER_QUOTA: Final = 2**31
_LEAST_PASSWORD: Final = 16
_AUTHENTICATE: Final[Headers] = ((b"www-authenticate", b"Bearer"), (b"connection", b"close"))


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer whose tokens are taken.

    Attributes:
        name: What its tokens' challenges call it.
        key: What it signs with. An issuer that changes its key is listed twice while both are used.
        quota: The most of its reports that a round of a survey takes; None for any number.
    """

    name: str
    key: PublicKey
    quota: int | None = None

    @property
    def voucher(self) -> Voucher:
        """The voucher that the log keeps beside its reports."""
        return Voucher(self.name, self.quota)


@dataclass(frozen=True, slots=True)
class Permits:
    """The permit that the gateway asks of senders.

    Attributes:
        password: What every upload must say as `Authorization: Bearer`, at least 16 printable ASCII
            characters; None where it need not.
        issuers: Whose tokens are taken. With any, every report needs one.

    Raises:
        SettingsError: If the password or an issuer's name or quota breaks its rule, a key is listed twice,
            or one issuer has two quotas.
    """

    password: str | None = field(default=None, repr=False)
    issuers: tuple[Issuer, ...] = ()

    def __post_init__(self) -> None:
        word = self.password
        if word is not None and not (word.isascii() and word.isprintable() and len(word) >= _LEAST_PASSWORD):
            raise SettingsError(
                f"upload password must be at least {_LEAST_PASSWORD} printable ASCII characters"
            )
        if len({issuer.key.id for issuer in self.issuers}) < len(self.issuers):
            raise SettingsError("issuers must have keys of their own, got one twice")
        quotas = {issuer.name: issuer.quota for issuer in self.issuers}
        for issuer in self.issuers:
            if issuer.quota is not None and not 0 <= issuer.quota <= MAX_ISSUER_QUOTA:
                raise SettingsError(
                    f"quota of issuer {issuer.name} must be in [0, {MAX_ISSUER_QUOTA}], got {issuer.quota}"
                )
            if issuer.quota != quotas[issuer.name]:
                raise SettingsError(f"issuer {issuer.name} must have one quota for all its keys")
            try:
                challenge_digest(issuer.name, bytes(16), 0)
            except ParameterError as error:
                raise SettingsError(str(error)) from None

    def check(self, scope: Scope) -> None:
        """Raise Refusal with status 401 unless the request shows the password, if one is asked for."""
        if self.password is None:
            return
        wanted = b"Bearer " + self.password.encode("ascii")
        for name, value in scope["headers"]:
            if name == b"authorization" and hmac.compare_digest(value, wanted):
                return
        raise Refusal(401, "an upload must carry the collector's upload password", _AUTHENTICATE)


class TokenGate:
    """The gate that lets reports in by their tokens.

    Args:
        issuers: Whose tokens are taken.
    """

    def __init__(self, issuers: Iterable[Issuer]) -> None:
        self._issuers = {issuer.key.id: issuer for issuer in issuers}

    def judge(self, pairs: Sequence[tuple[Report | Malformed, bytes]]) -> list[Issuer | TokenFault]:
        """Return for each report the issuer that vouches for it, or the fault of its token."""
        return [self._judged(report, token) for report, token in pairs]

    def _judged(self, report: Report | Malformed, data: bytes) -> Issuer | TokenFault:
        if isinstance(report, Malformed):
            return "malformed"
        try:
            token = decode_token(data)
        except WireError:
            return "malformed"
        issuer = self._issuers.get(token.key_id)
        if issuer is None:
            return "unknown_key"
        if token.challenge_digest != challenge_digest(issuer.name, report.digest, report.round):
            return "other_round"
        if token.report_id != report.id:
            return "other_id"
        # Last, as it takes ten times as long as all before it.
        return issuer if token.is_signed_by(issuer.key) else "forged"
