"""`hubbub topic`: make the Kafka topic of a new cluster."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy.commands.arguments import add_settings, load_settings, positive
from hubbub_deploy.errors import DeployError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    topic = commands.add_parser("topic", help="make the Kafka topic of a new cluster")
    add_settings(topic)
    size = topic.add_mutually_exclusive_group(required=True)
    size.add_argument("--partitions", type=positive, help="how many; they never change")
    size.add_argument("--from", type=Path, dest="node", help="a stopped node's folder: copy its log as it is")
    topic.add_argument(
        "--replication", type=positive, default=1, help="copies of each (default: %(default)s)"
    )
    topic.add_argument("--if-absent", action="store_true", help="be content with the topic if it is there")
    topic.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster_topics  # noqa: PLC0415 - others need no server library
    from hubbub_deploy.commands.topic import migrate_log  # noqa: PLC0415 - others need no server library

    if options.node is not None and options.if_absent:
        raise DeployError("--if-absent must come with --partitions, got --from: a log is moved once")
    if options.node is not None:
        copied = migrate_log.migrate(
            options.node, load_settings(options.settings), replication=options.replication
        )
        print(f"{copied} records copied")
        return 0
    make = cluster_topics.ensure_topic if options.if_absent else cluster_topics.make_topic
    made = make(
        load_settings(options.settings), partitions=options.partitions, replication=options.replication
    )
    print(f"{made.partitions} partitions, identity {made.identity}")
    return 0
