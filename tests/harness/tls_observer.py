"""An observer on the way to a server: the times and lengths of TLS records, which is all that it can read."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
import time
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

APPLICATION = 23
_HEAD_BYTES = 5


class Record(NamedTuple):
    """A TLS record: seconds of a monotonic clock, its way, its type, and its encrypted bytes."""

    at_s: float
    way: Literal["up", "down"]
    kind: int
    length: int


class TlsObserver:
    """A port that leads to another one, and notes every TLS record that passes.

    Attributes:
        port: Where it listens.
        records: What passed, in the order of its end.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.records: list[Record] = []
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End every connection."""
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def application(self, way: Literal["up", "down"]) -> list[Record]:
        """Return the records of one way that say nothing of a handshake in the open."""
        return [record for record in self.records if record.way == way and record.kind == APPLICATION]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._sockets += [client, server]
                for one, other, way in ((client, server, "up"), (server, client, "down")):
                    threading.Thread(target=self._pass, args=(one, other, way), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, way: Literal["up", "down"]) -> None:
        unread = b""
        with contextlib.suppress(OSError):
            while data := one.recv(2**16):
                unread += data
                while len(unread) >= _HEAD_BYTES:
                    length = int.from_bytes(unread[3:_HEAD_BYTES], "big")
                    if len(unread) < _HEAD_BYTES + length:
                        break
                    self.records.append(Record(time.monotonic(), way, unread[0], length))
                    unread = unread[_HEAD_BYTES + length :]
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)


def server_context(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a server's TLS for 127.0.0.1, without session tickets, and the certificate to trust."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a collector of the tests")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, secret = folder / "observed.pem", folder / "observed.key"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, secret)
    context.num_tickets = 0
    return context, file
