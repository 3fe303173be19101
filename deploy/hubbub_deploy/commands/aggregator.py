"""`hubbub aggregator`: a worker that counts from Kafka into Redis."""

from __future__ import annotations

import argparse

from hubbub_deploy.commands.arguments import add_settings, add_skip, load_settings


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    aggregator = commands.add_parser("aggregator", help="a worker that counts from Kafka into Redis")
    add_settings(aggregator)
    aggregator.add_argument(
        "--instance", help="a name that this worker has again after a restart: no rebalance then"
    )
    add_skip(aggregator)
    aggregator.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster  # noqa: PLC0415 - others need no server library

    return cluster.aggregate(load_settings(options.settings), instance=options.instance, skip=options.skip)
