"""Manifests, rules and containers of a cluster: sound by their schemas, and in step with the code."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from hubbub_deploy.cli import _parser
from hubbub_deploy.cluster_settings import ClusterSettings

ROOT = Path(__file__).parents[2]
MANIFESTS: list[dict[str, Any]] = [
    manifest
    for path in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]
RULES = yaml.safe_load((ROOT / "deploy" / "prometheus" / "processes.rules.yml").read_text(encoding="utf-8"))
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
VERSION = "1.31"
PODS = [each for each in MANIFESTS if "template" in each.get("spec", {})]


def named(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


@pytest.mark.parametrize("manifest", MANIFESTS, ids=named)
def test_a_manifest_follows_the_schema_and_knows_every_key(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, VERSION, strict=True)


def test_the_schema_refuses_a_misspelt_key() -> None:
    broken = copy.deepcopy(PODS[0])
    broken["spec"]["template"]["spec"]["restartPolice"] = "Always"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSION, strict=True)


@pytest.mark.parametrize("manifest", PODS, ids=named)
def test_a_pod_runs_a_command_of_hubbub_without_privileges(manifest: dict[str, Any]) -> None:
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert callable(_parser().parse_args(container["args"]).run)
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    if "selector" in manifest["spec"]:
        labels = manifest["spec"]["template"]["metadata"]["labels"]
        assert manifest["spec"]["selector"]["matchLabels"] == labels
        assert "livenessProbe" in container
        assert str(container["ports"][0]["containerPort"]) in container["args"]


def test_every_process_that_serves_has_a_pod() -> None:
    run = {each["spec"]["template"]["spec"]["containers"][0]["args"][0] for each in PODS}
    assert run == {"topic", "collector", "aggregator", "dashboard", "issuer"}


def test_services_and_settings_fit(tmp_path: Path) -> None:
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in PODS]
    services = [each["spec"] for each in MANIFESTS if each["kind"] == "Service"]
    assert services and all(each["selector"] in labels for each in services)
    (settings,) = [each for each in MANIFESTS if each["kind"] == "ConfigMap"]
    (tmp_path / "cluster.toml").write_text(settings["data"]["cluster.toml"])
    assert ClusterSettings.load(tmp_path / "cluster.toml", {}).session_s == 30


@pytest.mark.parametrize("name", ["topic", "collector", "aggregator", "dashboard", "redis"])
def test_a_container_has_no_privileges(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["cap_drop"] == ["ALL"] and service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service.get("cap_add", ())) <= {"CHOWN", "SETGID", "SETUID"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_names_metrics_that_there_are_and_a_page_that_says_what_to_do(alert: dict[str, Any]) -> None:
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (
            ROOT / "collector/hubbub_collector/metrics.py",
            ROOT / "aggregator/hubbub_aggregator/web/metrics.py",
            ROOT / "aggregator/hubbub_aggregator/web/worker_http.py",
        )
    )
    metrics = re.findall(r"hubbub_\w+", alert["expr"])
    assert metrics or alert["alert"] == "HubbubDown"
    for metric in metrics:
        stem = metric.removesuffix("_total").removeprefix("hubbub_")
        assert re.search(rf'"(hubbub_)?(gateway_)?{stem}"', sources) or re.search(
            rf'"{stem.removeprefix("gateway_")}"', sources
        ), metric
    assert alert["labels"]["severity"] in {"page", "ticket"}
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (\w+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert anchor in {heading.lower() for heading in headings} and anchor == alert["alert"].lower()
