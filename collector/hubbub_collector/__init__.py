"""The gateway: admit reports, strip the sender, append to a log."""

from hubbub_collector.errors import (
    CollectorError,
    LogError,
    LogLocked,
    LogVersionError,
    NotDurable,
    SettingsError,
)
from hubbub_collector.gateway import create_app
from hubbub_collector.log import Log
from hubbub_collector.server import create_server
from hubbub_collector.settings import GatewaySettings
from hubbub_collector.sqlite_log import SqliteLog

__all__ = [
    "CollectorError",
    "GatewaySettings",
    "Log",
    "LogError",
    "LogLocked",
    "LogVersionError",
    "NotDurable",
    "SettingsError",
    "SqliteLog",
    "create_app",
    "create_server",
]
