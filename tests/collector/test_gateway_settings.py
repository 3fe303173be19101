"""Settings refuse what makes no sense, and say which and why."""

from __future__ import annotations

import pytest

import hubbub_collector
from hubbub_collector.errors import SettingsError
from hubbub_collector.settings import GatewaySettings


def test_the_defaults_hold_their_own_rules() -> None:
    assert GatewaySettings.from_mapping({}) == GatewaySettings()
    assert GatewaySettings.from_mapping({"linger_s": 0, "max_reports": 9}).max_reports == 9


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"linger": 1}, "got linger"),
        ({"linger_s": -0.1}, "linger_s must be at least 0"),
        ({"linger_s": float("nan")}, "linger_s"),
        ({"linger_s": float("inf")}, "linger_s"),
        ({"linger_s": "1"}, "linger_s must be a number"),
        ({"retry_after_s": 0.5}, "retry_after_s must be an integer"),
        ({"retry_after_s": 0}, "retry_after_s must be at least 1"),
        ({"max_reports": True}, "max_reports must be an integer"),
        ({"linger_s": 6.0}, "linger_s must be at most half of shutdown_s"),
        ({"max_upload_bytes": 100, "max_pending_bytes": 99}, "max_pending_bytes must be at least"),
    ],
)
def test_a_senseless_setting_is_refused_by_name(values: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        GatewaySettings.from_mapping(values)


def test_the_public_names_are_these() -> None:
    assert hubbub_collector.__all__ == [
        "CollectorError",
        "GatewaySettings",
        "Grants",
        "Issuer",
        "IssuerSettings",
        "NotDurableError",
        "Permits",
        "SettingsError",
        "boot_s",
        "create_app",
        "create_issuer_app",
        "create_server",
        "look_for_cycles_rarely",
    ]
    assert all(hasattr(hubbub_collector, name) for name in hubbub_collector.__all__)
