"""The limit on one permit's reports over real HTTP: 429, seconds that are enough, and a metric."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric import rsa
from devices import HEALTH_SURVEY, Clock
from surveys import START_S

from hubbub.numeric import SYSTEM
from hubbub.tokens import Token, blind, challenge_digest, finalize, public_of, token_input
from hubbub.wire import Report, encode_report, encode_upload
from hubbub.wire.token_upload import encode_token_upload
from hubbub_collector import GatewaySettings, Issuer, Permits, create_app, create_server
from hubbub_topic import SqliteLog

pytestmark = pytest.mark.integration

PASSWORD = "a password of the fleet"  # noqa: S105 - this test's own
Post = Callable[..., urllib3.BaseHTTPResponse]


@contextlib.contextmanager
def served(folder: Path, boot: Clock, permits: Permits, rate: float) -> Iterator[tuple[str, SqliteLog]]:
    settings = GatewaySettings(permit_rate=rate, linger_s=0)
    with SqliteLog(folder / "log.sqlite", 1) as log:
        app = create_app(
            log,
            [HEALTH_SURVEY],
            settings=settings,
            clock=lambda: START_S + 100.0,
            boot_clock=boot,
            permits=permits,
        )
        server = create_server(app, port=0, settings=settings)
        thread = threading.Thread(target=server.run)
        thread.start()
        waiting = threading.Event()
        while not server.started:
            assert thread.is_alive()
            waiting.wait(0.005)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", log
        finally:
            server.should_exit = True
            thread.join()


def reports(count: int) -> list[Report]:
    return [Report(HEALTH_SURVEY.digest, 0, secrets.token_bytes(16), 0) for _ in range(count)]


def posted(url: str, body: bytes) -> urllib3.BaseHTTPResponse:
    headers = {"Authorization": f"Bearer {PASSWORD}"}
    return urllib3.request("POST", f"{url}/v1/reports", body=body, headers=headers, retries=False)


def test_a_password_lets_in_so_many_reports_a_second(tmp_path: Path) -> None:
    boot = Clock(5000.0)
    with served(tmp_path, boot, Permits(password=PASSWORD), 2.0) as (url, log):
        body = encode_upload([encode_report(report) for report in reports(24)])
        assert posted(url, body).status == 200  # twenty may come at once, and an upload is taken whole
        end = log.end(0)
        refused = posted(url, encode_upload([encode_report(report) for report in reports(1)]))
        assert (refused.status, refused.headers["Retry-After"]) == (429, "3")
        assert refused.json()["detail"] == "uploads must keep to 2 reports a second; try again"
        assert log.end(0) == end
        wrong = urllib3.request(
            "POST", f"{url}/v1/reports", body=body, headers={"Authorization": "Bearer x"}, retries=False
        )
        assert wrong.status == 401
        boot.now_s += 3.0
        assert posted(url, encode_upload([encode_report(report) for report in reports(1)])).status == 200
        # Uploads of a few reports are read another way, and count as many.
        boot.now_s += 100.0
        few = encode_upload([encode_report(report) for report in reports(4)])
        assert [posted(url, few).status for _ in range(6)] == [200] * 5 + [429]
        line = 'hubbub_gateway_rate_limited_uploads_total{permit="password"} 2.0\n'
        assert line in urllib3.request("GET", f"{url}/metrics").data.decode()


def test_an_issuer_that_signs_too_much_leaves_others_their_rate(tmp_path: Path) -> None:
    keys = {name: rsa.generate_private_key(public_exponent=65537, key_size=2048) for name in ("a", "b")}

    def upload(name: str) -> bytes:
        key = public_of(keys[name])
        nonce, bound = secrets.token_bytes(32), challenge_digest(name, HEALTH_SURVEY.digest, 0)
        message = token_input(nonce, bound, key.id)
        hidden = blind(key, message, SYSTEM)
        signed = pow(int.from_bytes(hidden.message, "big"), keys[name].private_numbers().d, key.modulus)
        token = Token(
            nonce, bound, key.id, finalize(key, message, signed.to_bytes(256, "big"), hidden.inverse)
        )
        report = Report(HEALTH_SURVEY.digest, 0, token.report_id, 0)
        return encode_token_upload([(encode_report(report), token.encoded)])

    permits = Permits(issuers=tuple(Issuer(name, public_of(key)) for name, key in keys.items()))
    with served(tmp_path, Clock(5000.0), permits, 0.2) as (url, _):
        assert [posted(url, upload("a")).status for _ in range(3)] == [200, 200, 429]
        assert posted(url, upload("b")).status == 200
        line = 'hubbub_gateway_rate_limited_uploads_total{permit="issuer a"} 1.0\n'
        assert line in urllib3.request("GET", f"{url}/metrics").data.decode()
