"""The extras carry what they name, and an error names the one that is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from command import environment
from surveys import LABELS

from hubbub_deploy.extras import extra_of, missing

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

# Runs a command as if only what some extras require were installed: their closure, by metadata.
_WITH_EXTRAS = """
import re, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from packaging.requirements import Requirement

plain = lambda name: re.sub("[-_.]+", "-", name).lower()
there, wanted = set(), [Requirement("hubbub" + (f"[{sys.argv[1]}]" if sys.argv[1] else ""))]
while wanted:
    requirement = wanted.pop()
    key = (plain(requirement.name), tuple(sorted(requirement.extras)))
    if key in there:
        continue
    there.add(key)
    try:
        lines = requires(requirement.name) or []
    except PackageNotFoundError:
        continue
    for line in lines:
        found = Requirement(line)
        if any(not found.marker or found.marker.evaluate({"extra": e}) for e in (requirement.extras or {""})):
            wanted.append(found)
names, installed = {name for name, _ in there}, packages_distributions()


class Absent:
    def find_spec(self, name, path=None, target=None):
        owners = {plain(owner) for owner in installed.get(name.split(".")[0], ())}
        if owners and not owners & names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from hubbub_deploy import cli

sys.exit(cli.main(sys.argv[2:]))
"""


def run_with(extras: str, folder: Path, *arguments: str, path: str | None = None):
    """Runs a command without what the extras do not bring."""
    env = environment() | ({"PYTHONPATH": path} if path else {})
    line = [sys.executable, "-c", _WITH_EXTRAS, extras, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60, cwd=folder, env=env)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("starlette.routing", "node"),
        ("uvicorn", "node"),
        ("httptools", "node"),
        ("prometheus_client", "node"),
        ("rich.console", "node"),
        ("faust", "cluster"),
        ("aiokafka", "cluster"),
        ("confluent_kafka", "cluster"),
        ("redis", "cluster"),
        ("matplotlib", "design"),
        ("dp_accounting", "bench"),
        ("statsmodels", "demo"),
        ("duckdb", "export"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_brings_it(module: str, extra: str) -> None:
    assert extra_of(module) == extra
    name = module.partition(".")[0]
    assert missing(module) == f"the package {name} must be installed: pip install 'hubbub[{extra}]'"


def test_a_package_that_no_extra_brings_is_named_alone() -> None:
    assert extra_of("no_such_package.part") is None
    assert missing("no_such_package.part").endswith("pip install 'no_such_package'")


def test_one_machine_needs_neither_broker_nor_drawing() -> None:
    named = {re.match(r"[\w-]+", line)[0] for line in EXTRAS["node"]}
    assert not named & {"faust-streaming", "aiokafka", "confluent-kafka", "redis", "matplotlib", "scipy"}


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["node", "labels.toml", "--data", "d"], "node"),
        (["replay", "people.csv", "--survey", "labels.toml"], "node"),
        (["demo"], "demo|node"),
        (["topic", "cluster.toml", "--partitions", "1"], "cluster|node"),
    ],
)
def test_a_device_alone_says_which_extra_a_server_command_needs(
    tmp_path: Path, arguments: list[str], extra: str
) -> None:
    (tmp_path / "labels.toml").write_text(LABELS, encoding="utf-8")
    (tmp_path / "people.csv").write_text("drinks\ntea\n", encoding="utf-8")
    (tmp_path / "cluster.toml").write_text('kafka = "a:1"\nredis = "redis://a:1/0"\ntopic = "t"\n')
    ended = run_with("", tmp_path, *arguments)
    assert (ended.returncode, ended.stdout) == (1, ""), ended.stderr
    assert re.fullmatch(
        rf"hubbub: the package \w+ must be installed: pip install 'hubbub\[({extra})\]'\n", ended.stderr
    )


def test_a_device_alone_writes_and_checks_surveys(tmp_path: Path) -> None:
    (tmp_path / "labels.toml").write_text(LABELS, encoding="utf-8")
    ended = run_with("", tmp_path, "survey", "check", "labels.toml", "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["inputs"] == 5


def test_replay_without_a_drawing_library_writes_the_rest_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "labels.toml").write_text(LABELS, encoding="utf-8")
    column = re.search(r'^\[attribute\]\nid = "(.+)"', LABELS, re.MULTILINE)[1]
    (tmp_path / "people.csv").write_text(column + "\n" + "x\n" * 300, encoding="utf-8")
    ended = run_with(
        "node", tmp_path, "replay", "people.csv", "--survey", "labels.toml", "--out", "out", "--json"
    )
    assert ended.returncode == 0, ended.stderr
    assert "pip install 'hubbub[design]'" in ended.stderr
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".json", ".counts", ".survey"}


@pytest.mark.integration
def test_the_wheel_holds_all_that_a_node_serves(tmp_path: Path) -> None:
    """The page's files, the demo's surveys and the types are in it, and its own code runs."""
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "wheel"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    for folder in (
        "core",
        "client",
        "topic",
        "collector",
        "aggregator",
        "deploy",
        "results",
        "authoring",
        "lab",
    ):
        for path in (ROOT / folder).glob("hubbub*/**/*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert (unpacked / path.relative_to(ROOT / folder)).is_file(), path
    shown = run_with("node", tmp_path, "--version", path=os.fspath(unpacked))
    assert (shown.returncode, shown.stdout.split()[0]) == (0, "hubbub"), shown.stderr


@pytest.mark.parametrize("module", ["hubbub", "hubbub_deploy"])
def test_the_package_runs_as_a_module(module: str) -> None:
    line = [sys.executable, "-m", module, "--version"]
    found = subprocess.run(line, capture_output=True, text=True, check=False, env=environment())
    assert (found.returncode, found.stderr) == (0, "")
    assert re.fullmatch(r"hubbub \d+\.\d+\.\d+\S*\n", found.stdout)
