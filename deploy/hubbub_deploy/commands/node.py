"""`hubbub node`: collector, aggregator and dashboard in one process."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy import release_options
from hubbub_deploy.commands.arguments import (
    add_log,
    add_read_token,
    add_skip,
    add_streams,
    port,
    positive,
    read_token,
    seconds,
    stream_caps,
)
from hubbub_deploy.commands.issuer import add_permits, permits
from hubbub_deploy.errors import DeployError

DEFAULT_PORT = 8780


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    node = commands.add_parser("node", help="collector, aggregator and dashboard in one process on SQLite")
    node.add_argument("surveys", nargs="+", type=Path, metavar="SURVEY", help="survey files (TOML)")
    node.add_argument("--list", type=Path, help="signed list of surveys to serve, from `hubbub survey sign`")
    node.add_argument("--data", type=Path, required=True, help="folder of the log, the store and the archive")
    release_options.add_fleet(node)
    release_options.add_alerts(node)
    add_read_token(node)
    add_streams(node)
    add_permits(node)
    node.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    node.add_argument("--port", type=port, default=DEFAULT_PORT, help="default: %(default)s; 0 for any")
    node.add_argument("--partitions", type=positive, default=4, help="of a new log (default: %(default)s)")
    node.add_argument(
        "--grace",
        type=seconds,
        default=5.0,
        help="seconds from a round's last moment to its seal (default: %(default)s)",
    )
    node.add_argument(
        "--dead-letter-payload",
        choices=("none", "whole"),
        default="none",
        help="whether dead letters hold the bytes of their records (default: %(default)s)",
    )
    add_skip(node)
    add_log(node)
    node.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub import Survey  # noqa: PLC0415
    from hubbub_deploy.node import NodeSettings, serve  # noqa: PLC0415

    surveys = tuple(Survey.load(path) for path in options.surveys)
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
            host=options.host,
            port=options.port,
            partitions=options.partitions,
            grace_s=options.grace,
            skip=options.skip,
            read_token=read_token(options),
            streams=stream_caps(options),
            permits=permits(options),
            dead_letter_payload=options.dead_letter_payload,
        )
    )
