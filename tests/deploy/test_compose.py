"""The compose files: sound by the schema, and in step with the commands, the page and the broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hubbub import Survey
from hubbub_deploy.cli import _parser
from hubbub_deploy.cluster_settings import ADDRESSES, ClusterSettings
from hubbub_deploy.commands.arguments import READER_VARIABLE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
FILES = [FOLDER / "compose.yaml", FOLDER / "compose.three.yaml"]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::-([^}]*))?\}")


def _services(path: Path) -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text())["services"]
    return services


def _lint(path: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_file_follows_the_compose_specification(path: Path) -> None:
    checked = _lint(path)
    assert checked.returncode == 0, checked.stdout


def test_the_linter_refuses_a_misspelt_key(tmp_path: Path) -> None:
    broken = tmp_path / "compose.yaml"
    broken.write_text(FILES[0].read_text().replace("stop_grace_period: 30s", "stop_grace: 30s"))
    assert _lint(broken).returncode == 1


def test_every_variable_is_documented_with_its_default() -> None:
    rows = re.findall(r"^\| `(HUBBUB_[A-Z_]+)` \| ([^|]+) \|", PAGE, flags=re.MULTILINE)
    documented = {name: default.strip("`") for name, default in rows}
    used = {name: default for path in FILES for name, default in _VARIABLE.findall(path.read_text())}
    passed_on = {
        name
        for path in FILES
        for service in _services(path).values()
        for name, value in (service.get("environment") or {}).items()
        if value is None
    }
    assert passed_on == {READER_VARIABLE}
    assert used.keys() | set(ADDRESSES.values()) | passed_on == documented.keys()
    assert {name: documented[name] for name in used} == used


def test_commands_are_those_of_the_command_line() -> None:
    parser = _parser()
    seen = set()
    for name, service in _services(FILES[0]).items():
        if "hubbub" not in str(service.get("image")):
            continue
        words = [_VARIABLE.sub(lambda found: found[2], str(word)) for word in service["command"]]
        options = parser.parse_args(words)  # ends the process on a word that it does not know
        assert str(options.settings) == "/etc/hubbub/cluster.toml"
        seen.add(name)
    assert seen == {"topic", "collector", "aggregator", "dashboard"}


_AS_IN_THE_IMAGE = """
import re, sys
from importlib.metadata import packages_distributions
from pathlib import Path

plain = lambda name: re.sub("[-_.]+", "-", name).lower()
locked = {plain(name) for name in re.findall(r"^([\\w.-]+)==", Path(sys.argv[1]).read_text(), re.M)}
installed = packages_distributions()


class Absent:
    def find_spec(self, name, path=None, target=None):
        owners = {plain(owner) for owner in installed.get(name.split(".")[0], ())} - {"hubbub"}
        if owners and not owners & locked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from hubbub_deploy import cli, cluster, cluster_topics, node
from hubbub_deploy.commands.topic import migrate_log as moving

sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay", "."], "log.sqlite"),
        (["issuer", "serve", "none.pem", "--credentials", "c", "--data", "g"], "none.pem"),
        (["replay", "people.csv", "--survey", "x.toml"], "x.toml: must be a readable file"),
    ],
)
def test_image_holds_what_the_commands_of_an_operator_import(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    line = [sys.executable, "-c", _AS_IN_THE_IMAGE, str(FOLDER / "requirements.lock"), *arguments]
    ended = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1), ended.stderr
    assert said in ended.stderr


def test_redis_answers_other_containers_and_nobody_else() -> None:
    redis = _services(FILES[0])["redis"]
    assert redis["command"][-2:] == ["--protected-mode", "no"]
    assert "ports" not in redis


def test_mounted_files_are_there_and_sound() -> None:
    for service in _services(FILES[0]).values():
        for volume in service.get("volumes", []):
            source = _VARIABLE.sub(lambda found: found[2], volume).split(":")[0]
            if source.startswith("."):
                assert (FOLDER / source).exists(), source
    Survey.load(FOLDER / ".." / "hubbub_deploy" / "surveys" / "visits.toml")


def test_one_settings_file_serves_both_ways() -> None:
    alone = ClusterSettings.load(FOLDER / "cluster.toml", {})
    assert alone.kafka == "127.0.0.1:9092"
    for path, brokers in zip(FILES, ("kafka-1:9092", "kafka-1:9092,kafka-2:9092,kafka-3:9092"), strict=True):
        for name in ("topic", "collector", "aggregator", "dashboard"):
            environment = _services(path)[name]["environment"]
            contained = ClusterSettings.load(
                FOLDER / "cluster.toml", _services(FILES[0])[name]["environment"] | environment
            )
            assert contained.kafka == brokers
            assert contained.redis == "redis://redis:6379/0"


def test_containers_run_the_brokers_that_the_script_runs() -> None:
    version = re.search(r"<kafka\.version>([^<]*)<", (ROOT / "deploy/kafka/pom.xml").read_text())
    assert version is not None
    for path in FILES:
        assert f"apache/kafka:{version[1]}}}" in path.read_text()


def test_three_brokers_agree_on_each_other() -> None:
    services = _services(FILES[1])
    brokers = {name: services[name]["environment"] for name in ("kafka-1", "kafka-2", "kafka-3")}
    voters = ",".join(f"{at['KAFKA_NODE_ID']}@{name}:9093" for name, at in brokers.items())
    for name, at in brokers.items():
        assert at["KAFKA_CONTROLLER_QUORUM_VOTERS"] == voters
        assert at["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://{name}:9092"
        assert at["KAFKA_MIN_INSYNC_REPLICAS"] == 2


def test_three_brokers_never_start_on_the_files_of_one() -> None:
    """A majority without records would elect a leader, and the one that has some would drop them."""
    one = _services(FILES[0])["kafka-1"]["volumes"]
    three = [_services(FILES[1])[f"kafka-{number}"]["volumes"] for number in (1, 2, 3)]
    mounted = [volume for volumes in (one, *three) for volume in volumes]
    assert len({volume.split(":")[0] for volume in mounted}) == 4
    assert {volume.split(":")[1] for volume in mounted} == {"/var/lib/kafka/data"}


def test_looking_whether_a_broker_is_ready_costs_no_jvm() -> None:
    """One of Kafka's tools took two seconds of a core, and every broker is looked at every five."""
    for path in FILES:
        for name, service in _services(path).items():
            if name.startswith("kafka") and "image" in service:
                assert service["healthcheck"]["test"][:3] == ["CMD", "bash", "-c"]
                assert "/opt/kafka" not in str(service["healthcheck"])
