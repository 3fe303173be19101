"""The brokers of a cluster, and what they ask of who connects: TLS, a certificate, a name and a password.

One value serves the three clients that are in use: librdkafka (collector, reader, admin), aiokafka and,
through it, Faust.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from hubbub_topic.errors import LogError

Mechanism: TypeAlias = Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]
MECHANISMS: Final[tuple[Mechanism, ...]] = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSecurity:
    """The way to brokers that do not let everyone in.

    Attributes:
        ca: File of the authorities (PEM) that sign the brokers' certificates; None for no TLS.
        certificate: File of this client's certificate (PEM), for mutual TLS; None for none.
        key: File of its secret key (PEM), with `certificate`.
        user: Name for SASL; None for none.
        password: With `user`; it is in no message and no representation.
        mechanism: How the password is proved; PLAIN sends it as it is, and needs TLS.

    Raises:
        LogError: If parts that belong together are not given together, or a file is not there.
    """

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    mechanism: Mechanism = "SCRAM-SHA-512"

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise LogError("Kafka certificate and key must be given together")
        if (self.user is None) != (self.password is None):
            raise LogError("Kafka user and password must be given together")
        if self.certificate is not None and self.ca is None:
            raise LogError("Kafka certificate must come with the authorities that sign the brokers' (ca)")
        if self.mechanism not in MECHANISMS:
            raise LogError(f"Kafka mechanism must be one of {', '.join(MECHANISMS)}, got {self.mechanism!r}")
        if self.mechanism == "PLAIN" and self.user is not None and self.ca is None:
            raise LogError("Kafka mechanism PLAIN must come with TLS (ca): it sends the password as it is")
        for path in (self.ca, self.certificate, self.key):
            if path is not None and not path.is_file():
                raise LogError(f"{path}: must be a file in PEM, got none")

    @property
    def protocol(self) -> str:
        """Kafka's name for what is asked: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
        if self.user is None:
            return "PLAINTEXT" if self.ca is None else "SSL"
        return "SASL_PLAINTEXT" if self.ca is None else "SASL_SSL"

    @property
    def context(self) -> ssl.SSLContext | None:
        """The TLS context of Python's own clients, None without TLS."""
        if self.ca is None:
            return None
        try:
            context = ssl.create_default_context(cafile=str(self.ca))
            if self.certificate is not None and self.key is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (ssl.SSLError, OSError) as error:
            raise LogError(f"Kafka's files for TLS must be in PEM: {type(error).__name__}") from None
        return context


class Brokers(str):
    """The addresses of brokers, host:port,host:port, with what they ask for.

    It is a text like any address, so that whoever only passes it on need not know more.

    Args:
        servers: The addresses.
        security: What they ask for; None for nothing.
    """

    __slots__ = ("security",)
    security: BrokerSecurity

    def __new__(cls, servers: str, security: BrokerSecurity | None = None) -> Brokers:
        """Return the addresses with what they ask for."""
        made = super().__new__(cls, servers)
        made.security = security or BrokerSecurity()
        return made


def security_of(bootstrap: str) -> BrokerSecurity:
    """Return what the brokers ask for: nothing, if they are only addresses."""
    return bootstrap.security if isinstance(bootstrap, Brokers) else BrokerSecurity()


def librdkafka_options(bootstrap: str) -> dict[str, Any]:
    """Return the settings by which librdkafka connects to the brokers."""
    asked = security_of(bootstrap)
    found: dict[str, Any] = {"bootstrap.servers": str(bootstrap), "security.protocol": asked.protocol}
    if asked.ca is not None:
        found["ssl.ca.location"] = str(asked.ca)
    if asked.certificate is not None:
        found |= {"ssl.certificate.location": str(asked.certificate), "ssl.key.location": str(asked.key)}
    if asked.user is not None:
        found |= {
            "sasl.mechanism": asked.mechanism,
            "sasl.username": asked.user,
            "sasl.password": asked.password,
        }
    return found


def aiokafka_options(bootstrap: str) -> dict[str, Any]:
    """Return the settings by which aiokafka connects to the brokers."""
    asked = security_of(bootstrap)
    found: dict[str, Any] = {
        "bootstrap_servers": bootstrap.split(","),
        "security_protocol": asked.protocol,
        "ssl_context": asked.context,
    }
    if asked.user is not None:
        found |= {
            "sasl_mechanism": asked.mechanism,
            "sasl_plain_username": asked.user,
            "sasl_plain_password": asked.password,
        }
    return found
