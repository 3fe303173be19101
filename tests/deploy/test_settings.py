"""One table of settings: a file, the environment and the command line say the same, and the docs list it."""

from __future__ import annotations

import json
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from hubbub_collector import GatewaySettings
from hubbub_deploy.cli import _parser, main
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.errors import DeployError
from hubbub_deploy.settings import GATEWAY, NODE, NodeOptions, Setting, markdown, node_settings

DOCS = Path(__file__).parents[2] / "docs"
ROWS = (*NODE, *GATEWAY)
NOBODY = dict.fromkeys((row.key for row in ROWS), None)
KAFKA = 'kafka = "a:1"\nredis = "redis://me:s3cret@b:1/0"\n'


def other(row: Setting) -> int | float | str:
    """A value that is not the default and within every rule."""
    if row.key == "allowed_origins":
        return "https://a.example,http://[::1]:8000"
    if isinstance(row.default, str):
        return next((word for word in row.words if word != row.default), "::1")
    return row.default + 1 if row.key != "linger_s" else 0.5


def test_every_field_has_a_row_and_a_sentence() -> None:
    assert [row.key for row in NODE] == [field.name for field in fields(NodeOptions)]
    assert [row.key for row in GATEWAY] == [field.name for field in fields(GatewaySettings)]
    assert all(len(row.text) > 7 and row.kind in ("int", "float", "str") for row in ROWS)
    assert len({row.key for row in ROWS}) == len(ROWS)


def test_the_site_has_the_tables_and_operations_leads_to_them() -> None:
    page = runpy.run_path(str(DOCS / "_site" / "reference.py"))["settings"]()
    assert markdown(NODE) in page and markdown(GATEWAY) in page
    assert all(f"| `{row.key}` | `{row.variable}` | `{row.flag}` |" in page for row in ROWS)
    assert "(reference/settings.md)" in (DOCS / "operations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_file_environment_and_command_line_give_the_same_value(row: Setting, tmp_path: Path) -> None:
    value, path = other(row), tmp_path / "node.toml"
    path.write_text(f"{row.key} = {json.dumps(value)}\n")
    words = ["node", "a.toml", "--data", "d", row.flag, str(value)]
    flags = vars(_parser().parse_args(words))
    for chosen_path, environment, given, origin in (
        (path, {}, NOBODY, str(path)),
        (None, {row.variable: str(value)}, NOBODY, row.variable),
        (None, {}, flags, row.flag),
    ):
        own, gateway, found = node_settings(chosen_path, environment=environment, flags=given)
        assert getattr(own if row in NODE else gateway, row.key) == value
        assert found.origins == {row.key: origin}


def test_the_command_line_comes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text("max_wait_s = 3\n")
    environment = {"HUBBUB_MAX_WAIT_S": "4", "HUBBUB_LINGER_S": ""}
    flags = NOBODY | {"max_wait_s": 5.0}
    for chosen, given, value in (({}, NOBODY, 3), (environment, NOBODY, 4.0), (environment, flags, 5.0)):
        _, gateway, _ = node_settings(path, environment=chosen, flags=given)
        assert (gateway.max_wait_s, gateway.linger_s) == (value, 0.02)


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        ("lingre_s = 1", {}, "node.toml: settings of a node must be among host, .*, got lingre_s"),
        ("kafka = 'a:1'", {}, "settings of a node must be among .*, got kafka"),
        ("max_reports = 1.5", {}, "node.toml: max_reports must be an integer, got 1.5"),
        ("max_wait_s = 0", {}, "node.toml: max_wait_s must be at least 0.001 and finite, got 0"),
        (
            "partitions = 0",
            {},
            "node.toml: partitions must be an integer of at least 1 and at most 1024, got 0",
        ),
        ("grace_s = nan", {}, "node.toml: grace_s must be a number of at least 1, got nan"),
        ("host = ''", {}, "host must be a text that is not empty, got ''"),
        ("", {"HUBBUB_LINGRE_S": "1"}, "that begin with HUBBUB_ must be known .*got HUBBUB_LINGRE_S"),
        ("", {"HUBBUB_MAX_REPORTS": "many"}, "HUBBUB_MAX_REPORTS must be an integer .* got 'many'"),
        ("", {"HUBBUB_GRACE_S": "inf"}, "HUBBUB_GRACE_S must be a finite number of at least 1, got 'inf'"),
        ("", {"HUBBUB_DEAD_LETTER_PAYLOAD": "half"}, "must be none or whole, got 'half'"),
        ("linger_s = 3", {"HUBBUB_SHUTDOWN_S": "4"}, "linger_s must be at most half of shutdown_s, got 3"),
    ],
)
def test_what_is_wrong_is_refused_by_name(
    text: str, environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "node.toml"
    path.write_text(text + "\n")
    with pytest.raises(DeployError, match=said):
        node_settings(path, environment=environment, flags=NOBODY)


def test_a_clusters_file_holds_its_collectors_limits(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(KAFKA + "max_wait_s = 3\nlinger_s = 0.1\ndelivery_s = 60\n")
    settings = ClusterSettings.load(path, {"HUBBUB_LINGER_S": "0.2"}, {"max_reports": 9})
    found = settings.gateway
    assert (found.max_wait_s, found.linger_s, found.max_reports) == (3, 0.2, 9)
    assert found.delivery_s == settings.grace_s / 2
    path.write_text(KAFKA + "max_wait_s = 'long'\n")
    with pytest.raises(DeployError, match=r"cluster\.toml: max_wait_s must be a number, got 'long'"):
        ClusterSettings.load(path, {})
    with pytest.raises(DeployError, match="got HUBBUB_TOPIC"):
        ClusterSettings.load(path, {"HUBBUB_TOPIC": "other"})


def test_config_check_says_value_and_origin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(KAFKA + "linger_s = 0.1\n")
    monkeypatch.setenv("HUBBUB_MAX_WAIT_S", "3")
    monkeypatch.setenv("HUBBUB_KAFKA_PASSWORD", "s3cret")
    assert main(["config", "check", str(path), "--max-reports", "7", "--json"]) == 0
    out = capsys.readouterr().out
    found = {key: (line["value"], line["from"]) for key, line in json.loads(out).items()}
    assert found["kafka"] == ("a:1", str(path)) and found["topic"] == ("reports", "default")
    assert found["redis"] == ("redis://me:***@b:1/0", str(path)) and "s3cret" not in out
    assert found["linger_s"] == (0.1, str(path)) and found["max_wait_s"] == (3.0, "HUBBUB_MAX_WAIT_S")
    assert found["max_reports"] == (7, "--max-reports")
    assert main(["config", "check"]) == 0
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == [row.key for row in ROWS]
    assert ["delivery_s", "5.0", "default, bounded by grace_s"] in lines
    assert ["max_wait_s", "3.0", "HUBBUB_MAX_WAIT_S"] in lines
    path.write_text(KAFKA + "topic = 7\n")
    assert main(["config", "check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err == f"hubbub: {path}: topic must be a text that is not empty, got 7\n"
    assert main(["config", "check", "--of", "cluster"]) == 1
