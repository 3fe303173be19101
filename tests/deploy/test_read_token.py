"""The token of readers: the file or the variable that it comes from, and the doors that it closes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
import urllib3
from command import hubbub, node
from node_fixture import wait_until
from surveys import LABELS

from hubbub_deploy.commands import arguments
from hubbub_deploy.errors import DeployError
from hubbub_lab.errors import LabError
from hubbub_lab.evaluation import truth_of
from hubbub_lab.simulation import SentRound, fetch_surveys, released

TOKEN = "0123456789abcdef"  # noqa: S105 - of this test


def asked(path: Path | None) -> str | None:
    return arguments.read_token(argparse.Namespace(read_token_file=path))


def test_the_file_comes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(arguments.READER_VARIABLE, raising=False)
    assert asked(None) is None
    monkeypatch.setenv(arguments.READER_VARIABLE, "from-the-environment")
    assert asked(None) == "from-the-environment"
    (tmp_path / "token").write_text(TOKEN + "\n", encoding="utf-8")
    assert asked(tmp_path / "token") == TOKEN


@pytest.mark.parametrize("text", ["", "short", "with a space in the middle", "x" * 513, "é" * 20])
def test_a_bad_token_is_refused_without_being_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text, encoding="utf-8")
    with pytest.raises(DeployError, match="must be 16 to 512 visible ASCII") as raised:
        asked(tmp_path / "token")
    assert not text or text not in str(raised.value)


def test_a_file_that_is_not_there_ends_the_node_in_one_line(tmp_path: Path) -> None:
    survey = tmp_path / "labels.toml"
    survey.write_text(LABELS, encoding="utf-8")
    done = hubbub("node", survey, "--data", tmp_path / "data", "--read-token-file", tmp_path / "none")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "cannot be read" in done.stderr


@pytest.mark.integration
def test_a_node_with_a_token_serves_devices_without_it_and_readers_with_it(tmp_path: Path) -> None:
    survey, token = tmp_path / "labels.toml", tmp_path / "token"
    survey.write_text(LABELS, encoding="utf-8")
    token.write_text(TOKEN, encoding="utf-8")
    with node(tmp_path / "data", survey, options=("--read-token-file", token)) as (_, port):
        base, path = f"http://127.0.0.1:{port}", "/api/v1/surveys"
        assert urllib3.request("GET", base + "/v1/surveys").status == 200
        assert urllib3.request("GET", base + path).status == 401
        reader = {"Authorization": f"Bearer {TOKEN}"}

        def listed() -> list[str]:
            return [
                each["id"] for each in urllib3.request("GET", base + path, headers=reader).json()["surveys"]
            ]

        served = fetch_surveys(base, patience_s=0.0, say=print)
        truth = truth_of(served[0], [served[0].input_labels[0]])
        sent = SentRound(served[0], 0, 1, 0, 0, truth, 1, truth)
        for shown, said in ((None, "got none"), ("x" * 16, "got another one")):
            with pytest.raises(LabError, match=f"--read-token-file must hold it, {said}$"):
                released(base, sent, token=shown, clock=lambda: 2e9, wait=print)

        wait_until(lambda: listed() != [])  # a node serves devices before it has counted its own announcement
        assert listed() == ["self-rated-health"]
