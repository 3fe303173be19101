"""The lengths and times that an observer of a device's encrypted traffic reads, upload by upload.

    python bench/capture.py            a device, TLS, an observer on the way, and a gateway

Uploads differ in what they hold; the table has the lengths of the TLS records of each way.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "harness"))

from surveys import LABELS  # noqa: E402
from tls_observer import TlsObserver, server_context  # noqa: E402

from hubbub import Survey  # noqa: E402
from hubbub.wire import Report, encode_report, encode_token_upload, encode_upload  # noqa: E402
from hubbub_client.upload.transport import HttpTransport  # noqa: E402


def report(digest: bytes, symbol: int | bytes = 1, round_: int = 0) -> bytes:
    return encode_report(Report(digest, round_, os.urandom(16), symbol))


def terminate(context: ssl.SSLContext, port: int) -> int:
    """End TLS before a gateway that speaks plain HTTP; return the port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            client = context.wrap_socket(listener.accept()[0], server_side=True)
            server = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=relay, args=(client, server), daemon=True).start()
            threading.Thread(target=relay, args=(server, client), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def relay(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(2**16):
            other.sendall(data)
        other.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def uploads(digest: bytes) -> dict[str, bytes]:
    """Return what is told apart: a name, and the body of its upload."""
    many = {f"{n} report{'s' * (n > 1)}": encode_upload([report(digest)] * n) for n in (1, 2, 3, 5, 8)}
    token = b"\0\2" + os.urandom(352)
    return {
        **many,
        "1, an unknown survey": encode_upload([report(bytes(16))]),
        "1, symbol 70,000": encode_upload([report(digest, 70_000)]),
        "1, a set of 100 cells": encode_upload([report(digest, bytes(13))]),
        "1, a set of 8,000 cells": encode_upload([report(digest, bytes(1000))]),
        "1 with a token": encode_token_upload([(report(digest), token)]),
        "8 with tokens": encode_token_upload([(report(digest), token)] * 8),
    }


def measure(post: Callable[[bytes], object], observer: TlsObserver, bodies: dict[str, bytes]) -> None:
    print("| upload | body, bytes | records up | records down |\n|---|---|---|---|")
    for name, body in bodies.items():
        up, down = len(observer.application("up")), len(observer.application("down"))
        post(body)
        time.sleep(0.05)
        heard = (
            " + ".join(str(record.length) for record in observer.application(way)[begin:])
            for way, begin in (("up", up), ("down", down))
        )
        print(f"| {name} | {len(body)} | {' | '.join(heard)} |")


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        survey = Survey.parse(LABELS)
        (folder / "survey").write_bytes(survey.canonical)
        command = [sys.executable, str(TESTS / "harness" / "gateway_process.py")]
        with subprocess.Popen(
            [*command, str(folder / "log.db"), str(folder / "survey")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as gateway:
            assert gateway.stdout is not None
            context, trusted = server_context(folder)
            os.environ["SSL_CERT_FILE"] = str(trusted)
            observer = TlsObserver(terminate(context, int(gateway.stdout.readline())))
            http = HttpTransport(f"https://127.0.0.1:{observer.port}", timeout_s=60)
            http.get("/healthz")
            measure(lambda body: http.post("/v1/reports", body), observer, uploads(survey.digest))
            http.close()
            observer.close()
            gateway.communicate()


if __name__ == "__main__":
    main()
