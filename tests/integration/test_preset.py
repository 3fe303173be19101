"""The surveys and the code of `hubbub survey new --preset telemetry`, against a real node as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import environment, hubbub, node
from node_fixture import wait_until

from hubbub_client import Agent

pytestmark = pytest.mark.integration

CALL = """
from answers import LABELS, answer
import sys
answer({name: labels[0] for name, labels in LABELS.items()}, set(sys.argv[3:]), sys.argv[1], sys.argv[2])
"""


def test_the_code_answers_what_its_owner_agreed_to_once_and_spends_what_was_said(tmp_path: Path) -> None:
    folder = tmp_path / "telemetry"
    made = hubbub("survey", "new", "--preset", "telemetry", "--out", folder, "--start", "now")
    assert made.returncode == 0, made.stderr
    surveys = sorted(folder.glob("*.toml"))
    assert [path.stem for path in surveys] == ["app-version", "library-size", "new-search", "system"]
    assert made.stdout.count("points of 10,000 devices") == 4
    assert "an epsilon of 4 at most" in made.stdout
    with node(tmp_path / "data", *surveys) as (_, port):
        for agreed, sent in ((["system"], 1), ([path.stem for path in surveys], 4)):
            for _ in range(2):  # the second time there is nothing to answer
                words = [sys.executable, "-c", CALL, str(tmp_path / "ledger.db"), f"http://127.0.0.1:{port}"]
                done = subprocess.run(
                    [*words, *agreed],
                    cwd=folder,
                    env=environment(),
                    capture_output=True,
                    text=True,
                    timeout=120,
                    check=False,
                )
                assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
            with Agent(tmp_path / "ledger.db", f"http://127.0.0.1:{port}", budget=4.0) as agent:
                # What waits for its moment is sent by a later call.
                wait_until(lambda agent=agent: not agent.upload().waiting)
                assert len(agent.sent()) == sent
                assert agent.account().loss <= sent


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text("mine")
    made = hubbub("survey", "new", "--preset", "telemetry", "--out", tmp_path)
    assert made.returncode == 1
    assert "answers.py: must not be there yet" in made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["answers.py"]


def test_a_preset_with_a_question_of_ones_own_is_misuse(tmp_path: Path) -> None:
    for words in (["--id", "x"], ["--labels", "a,b"], ["--epsilon", "1"], ["--integer", "0", "3"]):
        made = hubbub("survey", "new", "--preset", "telemetry", "--out", tmp_path, *words)
        assert made.returncode == 2, words
        assert "--preset states its own questions" in made.stderr
