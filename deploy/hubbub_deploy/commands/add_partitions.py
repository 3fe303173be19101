"""`hubbub add-partitions`: a Kafka topic with more partitions, for rounds to come."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from hubbub_deploy.commands.arguments import add_settings, load_settings, positive


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    grow = commands.add_parser(
        "add-partitions", help="add a Kafka topic with more partitions, for rounds to come"
    )
    add_settings(grow)
    grow.add_argument("--partitions", type=positive, required=True, help="of the new topic")
    grow.add_argument("--replication", type=positive, default=1, help="copies of each (default: %(default)s)")
    grow.add_argument(
        "--at",
        type=_moment,
        help="for rounds that start then or later, as 2026-01-31T00:00:00Z (default: as soon as may be)",
    )
    grow.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster_topics  # noqa: PLC0415 - others need no server library

    partition_map = cluster_topics.add_partitions(
        load_settings(options.settings),
        partitions=options.partitions,
        replication=options.replication,
        at=options.at,
    )
    period = partition_map.periods[-1]
    moment = datetime.fromtimestamp(period.from_s, UTC).isoformat()
    print(f"rounds that start at {moment} or later: topic {period.topic}, {period.partitions} partitions")
    return 0


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be as 2026-01-31T00:00:00Z, got {text!r}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
