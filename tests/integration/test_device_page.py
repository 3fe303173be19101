"""The app of docs/device.md, copied out of the page into an empty folder, does there what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import environment, hubbub, node
from redis_harness import free_port

from hubbub_client import Agent

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[2] / "docs" / "device.md").read_text(encoding="utf-8")
LOOP = (Path(__file__).parents[2] / "docs" / "examples" / "loop.py").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```\w+\n# ([\w.]+)\n(.*?)```", PAGE, re.DOTALL)) | {"loop.py": LOOP}
PRINTED = re.search(r"each prints, the\nfirst time:\n\n```\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_page_shows_a_survey_and_an_app_of_each_kind() -> None:
    assert list(FILES) == ["commute.toml", "app.py", "test_app.py", "loop.py"]
    assert (PAGE + LOOP).count(":8780") == 2 and "--port 8780" in PAGE


def test_the_apps_of_the_page_run_as_they_stand(tmp_path: Path) -> None:
    """Nothing is changed but the port, which may be taken here."""
    survey = tmp_path / "commute.toml"
    survey.write_text(FILES["commute.toml"])
    checked = hubbub("survey", "check", survey)
    assert checked.returncode == 0, checked.stderr
    with node(tmp_path / "data", survey) as (_, port):
        for app in ("app.py", "loop.py"):
            (tmp_path / app).write_text(FILES[app].replace(":8780", f":{port}"))
            done = subprocess.run(
                [sys.executable, app],
                cwd=tmp_path,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert (done.stdout, done.stderr) == (PRINTED, "")
            assert done.returncode == 0
            again = hubbub("agent", "status", "--ledger", tmp_path / app.replace(".py", ".db"))
            assert "1.000 spent, 0.000 reserved, 3.000 left" in again.stdout
            assert "1 sent in 1000 rounds" in again.stdout


@pytest.mark.parametrize("app", ["app.py", "loop.py"])
def test_the_apps_of_the_page_go_on_without_a_network(tmp_path: Path, app: str) -> None:
    """Offline is a phone's ordinary state: no traceback, and nothing is lost."""
    (tmp_path / app).write_text(FILES[app].replace(":8780", f":{free_port()}"))
    words = [sys.executable, app]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "no new surveys: collector cannot be reached: connection refused",
        "0 wait, 0 sent",
        "spent 0.000 of 4, 4.000 left",
    ]


def test_the_page_names_every_call_that_raises_offline() -> None:
    """The calls whose `Raises:` has TransportError, but opening, which the address alone can fail."""
    offline = [name for name, found in vars(Agent).items() if "TransportError: " in (found.__doc__ or "")]
    said = " and ".join(f"`{name}`" for name in sorted(offline))
    assert f"raises `TransportError` in {said} alone" in " ".join(PAGE.split())


def test_the_tests_of_the_page_pass_and_its_rehearsal_writes_a_page(tmp_path: Path) -> None:
    for name in ("commute.toml", "test_app.py"):
        (tmp_path / name).write_text(FILES[name])
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py"]
    own = {name: value for name, value in environment().items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(
        words, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=300, check=False
    )
    assert "2 passed" in done.stdout, done.stdout
    line = re.search(r"```sh\nhubbub (survey rehearse .*?)\n```", PAGE)[1]
    words = [str(tmp_path / word) if word.endswith((".toml", ".html")) else word for word in line.split()]
    shown = hubbub(*words)
    assert shown.returncode == 0, shown.stderr
    assert "Way to work" in (tmp_path / "page.html").read_text()
