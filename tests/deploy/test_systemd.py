"""The units of systemd: their commands are the command line's, and each has every bound that one has."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from hubbub_deploy.cli import _parser

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))


class _Unit(configparser.RawConfigParser):
    """A unit file; a key that stands there twice has both values."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def service(path: Path) -> dict[str, str]:
    unit = _Unit(strict=False, delimiters=("=",))
    unit.read_string(path.read_text(encoding="utf-8"))
    return dict(unit["Service"])


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_the_command_is_one_that_hubbub_knows(path: Path) -> None:
    program, *words = service(path)["ExecStart"].replace("%i", "1").split()
    assert program == "/opt/hubbub/bin/hubbub"
    options = _parser().parse_args(words)  # ends the process on a word that it does not know
    assert callable(options.run)


def test_units_are_hardened_alike() -> None:
    own = {"ExecStart", "StateDirectory", "StateDirectoryMode"}
    hardened = [{key: value for key, value in service(path).items() if key not in own} for path in UNITS]
    assert len(UNITS) == 5 and all(each == hardened[0] for each in hardened)
    assert hardened[0]["NoNewPrivileges"] == "yes" and hardened[0]["ProtectSystem"] == "strict"
    assert hardened[0]["User"] == "hubbub"


def verified(unit: Path) -> str:
    line = ["systemd-analyze", "verify", str(unit)]
    return subprocess.run(line, capture_output=True, text=True, check=False).stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_knows_every_key(path: Path, tmp_path: Path) -> None:
    unit = tmp_path / path.name
    unit.write_text(path.read_text(encoding="utf-8").replace("/opt/hubbub/bin/hubbub", "/bin/true"))
    said = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert path.name not in said.stderr, said.stderr
    unit.write_text(unit.read_text(encoding="utf-8").replace("ProtectHome", "ProtectHouse"))
    assert "ProtectHouse" in verified(unit)
