"""An issuer as a process: health, metrics and JSON logs, with its files taken away and given back."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import resource
from pathlib import Path

import pytest
import urllib3
from command import hubbub, running
from prometheus_client.parser import text_string_to_metric_families

from hubbub.numeric import SYSTEM
from hubbub.tokens import PublicKey, blind, encode_request, token_input

pytestmark = pytest.mark.integration

CREDENTIALS = ["a device's credential", "another device's"]
QUANTITY = 2


def requests(key: PublicKey) -> bytes:
    hidden = [blind(key, token_input(bytes(32), bytes(32), key.id), SYSTEM) for _ in range(QUANTITY)]
    return b"".join(encode_request(key, each.message) for each in hidden)


def metrics(url: str) -> dict[str, float]:
    text = urllib3.request("GET", f"{url}/metrics").data.decode()
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_an_issuer_says_how_it_is_and_what_it_gave(tmp_path: Path) -> None:
    made = hubbub("issuer", "keygen", tmp_path / "key.pem").stdout.strip()
    key = PublicKey.from_spki(base64.urlsafe_b64decode(made + "=="))
    known = tmp_path / "credentials"
    known.write_text("\n".join(hashlib.sha256(word.encode()).hexdigest() for word in CREDENTIALS))
    words = ["issuer", "serve", tmp_path / "key.pem", "--credentials", known, "--log", "json"]
    words += ["--data", tmp_path / "grants.sqlite", "--quantity", QUANTITY, "--port", 0]
    with running(*words) as process:
        assert process.stdout is not None and process.stderr is not None
        (url,) = re.findall(r"http://\S+", process.stdout.readline())

        def asked(device: int, body: bytes) -> int:
            headers = {"Authorization": f"Bearer {CREDENTIALS[device]}"}
            answer = urllib3.request("POST", f"{url}/v1/tokens", body=body, headers=headers, retries=False)
            return answer.status

        def health(path: str) -> tuple[int, dict[str, str]]:
            answer = urllib3.request("GET", url + path, retries=False)
            return answer.status, answer.json()

        assert health("/healthz") == health("/readyz") == (200, {"status": "ok"})
        first = requests(key)
        assert [asked(0, first), asked(0, first), asked(0, requests(key))] == [200, 200, 429]
        found = metrics(url)
        assert {name: found[f"hubbub_issuer_grants_total{name}"] for name in ("new", "again", "used")} == {
            "new": 1.0,
            "again": 1.0,
            "used": 1.0,
        }
        assert (found["hubbub_issuer_tokens_total"], found["hubbub_issuer_credentials"]) == (4.0, 2.0)
        assert (found["hubbub_issuer_requests_total200"], found["hubbub_issuer_healthy"]) == (2.0, 1.0)

        # No file of the process may grow: what a full disk does.
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        assert asked(1, first) == 503
        status, said = health("/readyz")
        assert status == 503 and said == {"status": "tokens are refused", "grants": "OperationalError"}
        assert metrics(url)["hubbub_issuer_healthy"] == 0.0
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
        assert health("/readyz") == (200, {"status": "ok"}) and asked(1, first) == 200

        known.write_text("no digits")
        assert health("/healthz") == (503, {"status": "credentials are old", "credentials": "ValueError"})
        assert asked(0, first) == 200  # what was read before stays in force
        known.write_text(hashlib.sha256(CREDENTIALS[0].encode()).hexdigest())
        assert health("/healthz")[0] == 200 and asked(1, first) == 401
        process.terminate()
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert [(line["level"], line["logger"]) for line in lines] == [
        ("ERROR", "hubbub.issuer"),
        ("WARNING", "hubbub.issuer"),
    ]
    text = json.dumps(lines)
    assert not any(word in text for word in CREDENTIALS)
    assert lines[0]["message"] == "grants cannot be written: OperationalError"
