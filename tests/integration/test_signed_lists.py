"""From `hubbub survey sign` over a node to devices, and a cancellation all the way: real processes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import urllib3
from command import hubbub, node
from surveys import LABELS

from hubbub.wire import report as wire

pytestmark = pytest.mark.integration


def said(*arguments: object) -> dict[str, object]:
    done = hubbub(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_signed_list_is_served_taken_and_cancelled(tmp_path: Path) -> None:
    today = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(time.time() - 86_400))
    survey, other, key = tmp_path / "labels.toml", tmp_path / "other.toml", tmp_path / "survey.key"
    text = LABELS.replace("2026-01-01T00:00:00Z", today).replace("rounds = 3", "rounds = 30")
    survey.write_text(text, encoding="utf-8")
    other.write_text(text.replace("self-rated", "other"), encoding="utf-8")
    public = hubbub("survey", "keygen", "--out", key).stdout.strip()
    stranger = hubbub("survey", "keygen", "--out", tmp_path / "stranger.key").stdout.strip()
    listed = tmp_path / "list.bin"
    sign = ["survey", "sign", "--key", key, "--out", listed, "--json"]
    digest = hubbub("survey", "compile", survey, "--out", tmp_path / "s.bin").stdout.split()[-1]
    said(*sign, survey)

    with node(tmp_path / "data", survey, other, options=("--list", listed)) as (_, port):
        url = f"http://127.0.0.1:{port}"

        def answer(name: str, *options: str, pinned: str = public) -> list[object]:
            ledger = tmp_path / f"{name}.db"
            return [
                *("agent", "answer", "--ledger", ledger, "--budget", 40, "--collector", url, "--json"),
                *("--survey-key", pinned, "--set", "health=good", "--join", "self-rated-health", *options),
            ]

        first = said(*answer("early"))
        assert list(first["settled"].values()) == ["accepted"]
        assert [entry["id"] for entry in first["surveys"]] == ["self-rated-health"]  # not what is unlisted
        refused = hubbub(*answer("strange", pinned=stranger))
        assert refused.returncode == 1 and "signed by a pinned key" in refused.stderr
        assert urllib3.request("GET", f"{url}/v1/surveys").data == listed.read_bytes()

        late = said(*answer("late", "--survey-key", stranger))  # either of two keys will do
        assert late["surveys"][0]["status"] == "enrolled"
        said(*sign, other, "--cancel", digest)
        assert urllib3.request("GET", f"{url}/v1/surveys").data == listed.read_bytes()
        report = wire.encode_report(wire.Report(bytes.fromhex(digest), 0, bytes(16), 0))
        tried = urllib3.request("POST", f"{url}/v1/reports", body=wire.encode_upload([report]))
        assert wire.decode_response(tried.data) == ["unknown"]
        before = said("agent", "status", "--ledger", tmp_path / "early.db", "--json")
        assert before["reserved"] > 20
        done = hubbub(
            *("agent", "answer", "--ledger", tmp_path / "early.db", "--collector", url, "--json"),
            *("--survey-key", public),
        )
        assert done.returncode == 0, done.stderr
        after = said("agent", "status", "--ledger", tmp_path / "early.db", "--json")
        assert after["surveys"][0]["state"] == "cancelled"
        assert after["reserved"] < 1 and after["loss"] == pytest.approx(before["loss"])
