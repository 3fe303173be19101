"""A round counted again without an issuer: exact, said in name and content, beside the sealed release."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_deploy.cli import main
from hubbub_deploy.node import LOG_FILE
from hubbub_topic.sqlite import SqliteLog

# So few that the forger's reports keep others out.
HEALTH = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 400"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A node's folder, of one round: 150 honest reports, 200 of a forger's, 150 honest ones."""
    symbols = np.random.default_rng(3).integers(0, HEALTH.channel.outputs, 500)
    honest, forged = Voucher("tokens.example.org"), Voucher("leaky.example.org")
    parts = [(honest, range(150)), (forged, range(150, 350)), (honest, range(350, 500))]
    with SqliteLog(tmp_path / LOG_FILE, 1) as log:
        log.append({0: [announcement(HEALTH)]})
        for voucher, numbers in parts:
            pairs = [(report_id(i), 2 if voucher == forged else int(symbols[i])) for i in numbers]
            log.append({0: [batch(segment(HEALTH, 0, pairs, voucher))]})
        log.append({0: [encode_record(SealRecord(HEALTH.digest, 0))]})
    return tmp_path


def released(folder: Path, *options: object) -> tuple[str, dict[str, object]]:
    out = folder / f"out-{len(list(folder.iterdir()))}"
    assert main(["replay", str(folder), "--out", str(out), *map(str, options)]) == 0
    (path,) = out.iterdir()
    return path.name, json.loads(path.read_bytes())


def test_a_recount_leaves_an_issuer_out_and_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / LOG_FILE).read_bytes()
    name, whole = released(folder)
    assert "recount" not in whole
    assert (name, whole["round"]) == (f"{HEALTH.id}-v1-round-1-of-{HEALTH.rounds}.json", 0)
    assert whole["accounting"]["over_quota"] == 100  # type: ignore[index]
    label, without = released(folder, "--without-issuer", "leaky.example.org")
    assert label == name.replace(".json", "-without-leaky.example.org.json")
    assert without["recount"] == {"without_issuers": ["leaky.example.org"]}
    # Not the difference of two histograms: the reports that found no room now do.
    assert (without["devices"], without["accounting"]["over_quota"]) == (300, 0)  # type: ignore[index]
    assert [line["issuer"] for line in without["issuers"]] == ["tokens.example.org"]  # type: ignore[attr-defined]
    assert (folder / LOG_FILE).read_bytes() == before
    capsys.readouterr()
    assert main(["replay", str(folder), "--without-issuer", "misspelt"]) != 0
    assert "no report of issuer misspelt" in capsys.readouterr().err
