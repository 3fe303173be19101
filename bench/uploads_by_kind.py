"""Uploads of several kinds beside the empty handler, two collectors on one port, and the price of TLS.

Sections of bench/collector.py, which says how each is run.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from closed_loop import Took, ask, cpu_s, post_all
from collector import CONNECTIONS, HEAD, ISSUER, ROUNDS, UPLOADS, body, print_beside, server, surveys
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from harness import line
from servers import folder

import hubbub
from hubbub.numeric import SYSTEM
from hubbub.tokens import Token, blind, blind_sign, challenge_digest, finalize, public_of, token_input
from hubbub.wire.report import Report, encode_report
from hubbub.wire.token_upload import encode_token_upload
from hubbub_topic.kafka.topic import create_topic


def forms(bootstrap: str) -> None:
    """Print uploads per second of several kinds, each beside the empty handler with the same bytes."""
    rng, asked = np.random.default_rng(3), surveys()
    with folder() as data, contextlib.ExitStack() as stack:
        topic = str(data / f"bench-{time.time_ns()}")
        create_topic(bootstrap, Path(topic).name, partitions=4)
        tokens = _tokens(topic, asked["grr"])
        empty = stack.enter_context(server("empty", bootstrap, topic))
        plain = stack.enter_context(server("gateway", bootstrap, Path(topic).name))
        guarded = stack.enter_context(server("tokens", bootstrap, topic))
        kinds: dict[str, tuple[tuple[int, int], int, Callable[[], bytes]]] = {
            "2 numbers": (plain, 20_000, lambda: body(asked["grr"], rng, 2)),
            "2 sets": (plain, 20_000, lambda: body(asked["subset"], rng, 2)),
            "100 numbers": (plain, 5_000, lambda: body(asked["grr"], rng, 100)),
            "100 sets": (plain, 5_000, lambda: body(asked["subset"], rng, 100)),
            "2 numbers with tokens": (guarded, 5_000, lambda: next(tokens)),
        }
        print(f"uploads on {CONNECTIONS} keep-alive connections, load average {os.getloadavg()[0]:.1f}:")
        for name, (ours, count, make) in kinds.items():
            found: dict[int, list[Took]] = {empty[1]: [], ours[1]: []}
            for _ in range(3):
                requests = [HEAD % len(one) + one for one in (make() for _ in range(count))]
                for port, pid in (empty, ours):
                    found[pid].append(ask(port, pid, requests, CONNECTIONS))
            print_beside(name, count, found[empty[1]], found[ours[1]])


def _tokens(topic: str, survey: hubbub.Survey) -> Iterator[bytes]:
    """Return uploads of two reports with a token each, repeated: a collector does not know them again."""
    secret = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = public_of(secret)
    Path(topic + ".pem").write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    number = survey.round_at(time.time())
    assert number is not None
    bound = challenge_digest(ISSUER, survey.digest, number)

    def pair() -> tuple[bytes, bytes]:
        nonce = os.urandom(32)
        message = token_input(nonce, bound, key.id)
        hidden = blind(key, message, SYSTEM)
        signature = finalize(key, message, blind_sign(secret, hidden.message, SYSTEM), hidden.inverse)
        token = Token(nonce, bound, key.id, signature)
        return encode_report(Report(survey.digest, number, token.report_id, 3)), token.encoded

    return itertools.cycle([encode_token_upload([pair(), pair()]) for _ in range(64)])


def processes(bootstrap: str) -> None:
    """Print uploads per second of one collector and of two on one port, beside the load on the same cores."""
    rng, survey = np.random.default_rng(3), surveys()["grr"]
    topic = f"bench-{time.time_ns()}"
    create_topic(bootstrap, topic, partitions=4)
    print(f"uploads of two reports, no process on a core of its own, load average {os.getloadavg()[0]:.1f}:")
    requests = [HEAD % len(one) + one for one in (body(survey, rng, 2) for _ in range(UPLOADS))]
    with server("shared", bootstrap, topic) as (port, first):
        for several in (False, True):
            with contextlib.ExitStack() as stack:
                pids = [first]
                if several:
                    pids.append(stack.enter_context(server("shared", bootstrap, topic, port))[1])
                best = math.inf
                for _ in range(ROUNDS):
                    spent, load, wall = [cpu_s(pid) for pid in pids], time.process_time(), time.perf_counter()
                    post_all(port, requests, CONNECTIONS)
                    took = time.perf_counter() - wall
                    if took < best:
                        shares = [(cpu_s(pid) - old) / took for pid, old in zip(pids, spent, strict=True)]
                        best, loading = took, (time.process_time() - load) / took
                busy = " + ".join(f"{share:.2f}" for share in shares)
                line(
                    f"{len(pids)} on the port", f"{UPLOADS / best / 1e3:.1f} k/s", f"cores {busy}",
                    f"load's {loading:.2f}",
                )  # fmt: skip


def tls() -> None:
    """Print the time that TLS 1.3 takes of the side that serves: a handshake, an upload and its answer."""
    with folder() as data:
        make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost"
        subprocess.run(
            [*make.split(), "-keyout", "key.pem", "-out", "cert.pem"],
            cwd=data,
            check=True,
            capture_output=True,
        )
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(data / "cert.pem", data / "key.pem")
        asking = ssl.create_default_context(cafile=str(data / "cert.pem"))
    spent = [0.0]

    def shaken() -> tuple[ssl.SSLObject, ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = serving.wrap_bio(to_server, to_client, server_side=True)
        theirs = asking.wrap_bio(to_client, to_server, server_hostname="localhost")
        for _ in range(2):
            with contextlib.suppress(ssl.SSLWantReadError):
                theirs.do_handshake()
            began = time.perf_counter()
            with contextlib.suppress(ssl.SSLWantReadError):
                ours.do_handshake()
            spent[0] += time.perf_counter() - began
        return ours, theirs, to_server, to_client

    handshakes, uploads = [], []
    survey, rng = surveys()["grr"], np.random.default_rng(3)
    found = body(survey, rng, 2)
    request, answer = HEAD % len(found) + found, bytes(384)
    for _ in range(200):
        spent[0] = 0.0
        ours, theirs, _, to_client = shaken()
        handshakes.append(spent[0])
        to_client.read()
        for _ in range(20):
            theirs.write(request)
            began = time.perf_counter()
            assert len(ours.read(65_536)) == len(request)
            ours.write(answer)
            uploads.append(time.perf_counter() - began)
            to_client.read()
    print(f"TLS 1.3 with a P-256 key, the serving side, load average {os.getloadavg()[0]:.1f}:")
    line("a handshake", f"{1e6 * float(np.median(handshakes)):.0f} us")
    line("an upload and its answer", f"{1e6 * float(np.median(uploads)):.1f} us")
