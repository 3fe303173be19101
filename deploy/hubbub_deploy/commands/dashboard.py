"""`hubbub dashboard`: seals, releases and the page of a cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy import release_options
from hubbub_deploy.commands.arguments import (
    add_address,
    add_log,
    add_read_token,
    add_settings,
    add_streams,
    load_settings,
    read_token,
    stream_caps,
)
from hubbub_deploy.commands.log import add_keeping, keeping

DASHBOARD_PORT = 8781


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    dashboard = commands.add_parser("dashboard", help="seals, releases and the page; another one stands by")
    add_settings(dashboard)
    dashboard.add_argument("--data", type=Path, required=True, help="folder of the archive")
    release_options.add_fleet(dashboard)
    release_options.add_alerts(dashboard)
    add_read_token(dashboard)
    add_keeping(dashboard)
    add_streams(dashboard)
    add_address(dashboard, DASHBOARD_PORT)
    add_log(dashboard)
    dashboard.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster  # noqa: PLC0415 - others need no server library

    return cluster.dashboard(
        load_settings(options.settings),
        data_dir=options.data,
        fleet=release_options.fleet_statement(options),
        alerts=release_options.alert_rules(options),
        read_token=read_token(options),
        transparency=keeping(options),
        streams=stream_caps(options),
        host=options.host,
        port=options.port,
    )
