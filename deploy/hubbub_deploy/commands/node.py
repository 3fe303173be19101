"""`hubbub node`: collector, aggregator and dashboard in one process."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from hubbub_deploy import release_options
from hubbub_deploy.commands.arguments import add_log, add_read_token, add_rows, add_skip, read_token
from hubbub_deploy.commands.issuer import add_permits, permits
from hubbub_deploy.commands.log import add_keeping, keeping
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import load_survey
from hubbub_deploy.settings import GATEWAY, NODE, node_settings


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    node = commands.add_parser("node", help="collector, aggregator and dashboard in one process on SQLite")
    node.add_argument(
        "surveys", nargs="+", type=Path, metavar="SURVEY", help="survey files (TOML), - for stdin"
    )
    node.add_argument("--list", type=Path, help="signed list of surveys to serve, from `hubbub survey sign`")
    node.add_argument("--data", type=Path, required=True, help="folder of the log, the store and the archive")
    release_options.add_fleet(node)
    release_options.add_alerts(node)
    add_read_token(node)
    add_permits(node)
    add_skip(node)
    add_keeping(node)
    node.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings of the node and its limits (TOML)"
    )
    add_rows(node, "settings of the node", NODE)
    add_rows(node, "limits", GATEWAY)
    add_log(node)
    node.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy.node import NodeSettings, serve  # noqa: PLC0415

    chosen, gateway, _ = node_settings(options.settings, flags=vars(options))
    surveys = tuple(load_survey(path) for path in options.surveys)
    fleet = release_options.fleet_statement(options)
    known = {survey.id for survey in surveys}
    # a list may bring surveys that nobody knows yet
    if options.list is None and (strange := sorted(fleet.asked.keys() - known - {""})):
        raise DeployError(f"--asked must name one of {', '.join(sorted(known))}, got {', '.join(strange)}")
    return serve(
        NodeSettings(
            surveys=surveys,
            data_dir=options.data,
            survey_list=options.list,
            fleet=fleet,
            alerts=release_options.alert_rules(options),
            gateway=gateway,
            skip=options.skip,
            read_token=read_token(options),
            transparency=keeping(options),
            permits=permits(options),
            **asdict(chosen),
        )
    )
