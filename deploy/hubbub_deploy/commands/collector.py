"""`hubbub collector`: a gateway that writes into Kafka."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy.commands.arguments import add_address, add_log, add_rows, add_settings, load_settings
from hubbub_deploy.commands.issuer import add_permits, permits
from hubbub_deploy.files import load_survey
from hubbub_deploy.settings import GATEWAY

COLLECTOR_PORT = 8780


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    collector = commands.add_parser("collector", help="a gateway that writes into Kafka")
    add_settings(collector)
    collector.add_argument(
        "surveys", nargs="+", type=Path, metavar="SURVEY", help="survey files (TOML), - for stdin"
    )
    collector.add_argument(
        "--list", type=Path, help="signed list of surveys to serve, from `hubbub survey sign`"
    )
    add_permits(collector)
    add_address(collector, COLLECTOR_PORT)
    collector.add_argument(
        "--reuse-port", action="store_true", help="share the port with other collectors that have this option"
    )
    add_rows(collector, "limits", GATEWAY)
    add_log(collector)
    collector.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster  # noqa: PLC0415 - others need no server library

    surveys = tuple(load_survey(path) for path in options.surveys)
    return cluster.collect(
        load_settings(options.settings, options),
        surveys,
        survey_list=options.list,
        permits=permits(options),
        host=options.host,
        port=options.port,
        sharing="shared" if options.reuse_port else "alone",
    )
