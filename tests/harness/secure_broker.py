"""A real broker that takes nobody without a name: TLS, SCRAM, certificates and access lists."""

from __future__ import annotations

import datetime
import importlib.util
import sys
import threading
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kafka_harness import SCRIPT

PASSWORD = "a-password-of-the-tests"  # noqa: S105 - of a broker that lives as long as a test

_BEGINNING = ResourcePatternType.PREFIXED


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("broker_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["broker_script"] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Pem:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """An authority of its own; its certificates end with the day."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        certificate = self._signed(self._name, self._key.public_key(), is_authority=True)
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
            )
        )
        return made.sign(self._key, hashes.SHA256())

    def sign(self, name: str) -> Pem:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key.public_key(), is_authority=False)
        found = Pem(*(self._folder / f"{name}.{end}.pem" for end in ("certificate", "key", "both")))
        found.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        found.both.write_bytes(found.key.read_bytes() + found.certificate.read_bytes())
        return found


class SecureBroker:
    """One node with three doors: an operator's, open; one by password over TLS; one by certificate."""

    def __init__(self, folder: Path) -> None:
        script = _script()
        self._script = script
        self.authority = Authority(folder, "authority")
        server = self.authority.sign("broker")
        (port,) = script.configure(folder, [folder / "node-1"], 0)
        path = folder / "node-1" / "server.properties"
        secure, mutual = script.free_ports(2)
        lines = path.read_text()
        listeners = next(line for line in lines.splitlines() if line.startswith("listeners="))
        protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL"
        settings = {
            "listeners": f"{listeners.removeprefix('listeners=')},SECURE://127.0.0.1:{secure}"
            f",MUTUAL://127.0.0.1:{mutual}",
            "listener.security.protocol.map": protocols,
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.secure.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": server.both,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority.file,
            "listener.name.mutual.ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        path.write_text(lines + "".join(f"{key}={value}\n" for key, value in settings.items()))
        self.open, self.secure, self.mutual = (f"127.0.0.1:{number}" for number in (port, secure, mutual))
        self._node = script.start(f"{script.jars()}/*", folder / "node-1", (folder / "cluster").read_text())
        waiting = threading.Event()
        for _ in range(900):
            if script.answers(port):
                break
            assert self._node.poll() is None, (folder / "node-1" / "log.txt").read_text()[-3000:]
            waiting.wait(0.1)
        self._admin = AdminClient({"bootstrap.servers": self.open})

    def user(self, name: str) -> None:
        """Make a user with the tests' password."""
        asked = UserScramCredentialUpsertion(
            name, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), PASSWORD.encode()
        )
        for done in self._admin.alter_user_scram_credentials([asked]).values():
            done.result(30)

    def allow(self, name: str, *rights: tuple[ResourceType, str, AclOperation]) -> None:
        """Let a user do something to what begins with a name."""
        bindings = [
            AclBinding(kind, what, _BEGINNING, f"User:{name}", "*", operation, AclPermissionType.ALLOW)
            for kind, what, operation in rights
        ]
        for done in self._admin.create_acls(bindings).values():
            done.result(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._script.stop([self._node])
