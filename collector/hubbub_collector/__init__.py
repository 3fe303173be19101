"""The gateway: admit reports, strip the sender, append to a log."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_collector.boot_clock import boot_s
    from hubbub_collector.errors import CollectorError, NotDurable, SettingsError
    from hubbub_collector.gateway import create_app
    from hubbub_collector.permits import Issuer, Permits
    from hubbub_collector.server import create_server, look_for_cycles_rarely
    from hubbub_collector.settings import GatewaySettings
    from hubbub_collector.token_issuer import Grants, IssuerSettings, create_issuer_app

__all__ = [
    "CollectorError",
    "GatewaySettings",
    "Grants",
    "Issuer",
    "IssuerSettings",
    "NotDurable",
    "Permits",
    "SettingsError",
    "boot_s",
    "create_app",
    "create_issuer_app",
    "create_server",
    "look_for_cycles_rarely",
]

attach(
    __name__,
    {
        "hubbub_collector.boot_clock": ("boot_s",),
        "hubbub_collector.errors": (
            "CollectorError",
            "NotDurable",
            "SettingsError",
        ),
        "hubbub_collector.gateway": ("create_app",),
        "hubbub_collector.permits": (
            "Issuer",
            "Permits",
        ),
        "hubbub_collector.server": (
            "create_server",
            "look_for_cycles_rarely",
        ),
        "hubbub_collector.settings": ("GatewaySettings",),
        "hubbub_collector.token_issuer": (
            "Grants",
            "IssuerSettings",
            "create_issuer_app",
        ),
    },
)
