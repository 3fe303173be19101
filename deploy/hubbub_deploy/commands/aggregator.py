"""`hubbub aggregator`: a worker that counts from Kafka into Redis."""

from __future__ import annotations

import argparse

from hubbub_deploy.commands.arguments import add_log, add_settings, add_skip, load_settings, port


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    aggregator = commands.add_parser("aggregator", help="a worker that counts from Kafka into Redis")
    add_settings(aggregator)
    aggregator.add_argument(
        "--instance", help="a name that this worker has again after a restart: no rebalance then"
    )
    aggregator.add_argument("--host", default="127.0.0.1", help="address of health and metrics")
    aggregator.add_argument(
        "--port", type=port, help="port of /healthz, /readyz and /metrics; without it there are none"
    )
    add_skip(aggregator)
    add_log(aggregator)
    aggregator.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster  # noqa: PLC0415 - others need no server library

    return cluster.aggregate(
        load_settings(options.settings),
        instance=options.instance,
        skip=options.skip,
        address=None if options.port is None else (options.host, options.port),
    )
