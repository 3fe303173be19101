"""The parts of a cluster as commands, and its dead letters."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub_deploy import fleet_options
from hubbub_deploy.commands.arguments import add_skip, port, positive, whole
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    # Commands that need no server library must start without one.
    from hubbub_deploy.cluster_settings import ClusterSettings

COLLECTOR_PORT = 8780
DASHBOARD_PORT = 8781


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    topic = commands.add_parser("topic", help="make the Kafka topic of a new cluster")
    _settings(topic)
    size = topic.add_mutually_exclusive_group(required=True)
    size.add_argument("--partitions", type=positive, help="how many; they never change")
    size.add_argument("--from", type=Path, dest="node", help="a stopped node's folder: copy its log as it is")
    topic.add_argument(
        "--replication", type=positive, default=1, help="copies of each (default: %(default)s)"
    )
    topic.add_argument("--if-absent", action="store_true", help="be content with the topic if it is there")
    topic.set_defaults(run=_topic)

    grow = commands.add_parser(
        "add-partitions", help="add a Kafka topic with more partitions, for rounds to come"
    )
    _settings(grow)
    grow.add_argument("--partitions", type=positive, required=True, help="of the new topic")
    grow.add_argument("--replication", type=positive, default=1, help="copies of each (default: %(default)s)")
    grow.add_argument(
        "--at",
        type=_moment,
        help="for rounds that start then or later, as 2026-01-31T00:00:00Z (default: as soon as may be)",
    )
    grow.set_defaults(run=_grow)
    _alias(commands, "add-partitions", "grow")

    collector = commands.add_parser("collector", help="a gateway that writes into Kafka")
    _settings(collector)
    collector.add_argument("surveys", nargs="+", type=Path, metavar="SURVEY", help="survey files (TOML)")
    collector.add_argument(
        "--list", type=Path, help="signed list of surveys to serve, from `hubbub survey sign`"
    )
    _address(collector, COLLECTOR_PORT)
    collector.set_defaults(run=_collector)

    aggregator = commands.add_parser("aggregator", help="a worker that counts from Kafka into Redis")
    _settings(aggregator)
    aggregator.add_argument(
        "--instance", help="a name that this worker has again after a restart: no rebalance then"
    )
    add_skip(aggregator)
    aggregator.set_defaults(run=_aggregator)

    dashboard = commands.add_parser("dashboard", help="seals, releases and the page; another one stands by")
    _settings(dashboard)
    dashboard.add_argument("--data", type=Path, required=True, help="folder of the archive")
    fleet_options.add_to(dashboard)
    _address(dashboard, DASHBOARD_PORT)
    dashboard.set_defaults(run=_dashboard)

    dead = commands.add_parser(
        "dead-letters", help="what could not be counted: positions and reasons, as JSON lines"
    )
    dead.add_argument(
        "source", type=Path, metavar="SETTINGS|FOLDER", help="a cluster's settings, or a node's folder"
    )
    dead.set_defaults(run=_dead)
    _alias(commands, "dead-letters", "dead")

    adopt = commands.add_parser("skip-lost", help="go on counting where records are gone for good")
    _settings(adopt)
    adopt.add_argument("--partition", type=whole, required=True)
    adopt.add_argument(
        "--from",
        type=whole,
        required=True,
        dest="offset",
        help="the first offset to count; all before it is lost",
    )
    adopt.set_defaults(run=_adopt)
    _alias(commands, "skip-lost", "adopt")


def _alias(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, earlier: str) -> None:
    """Accept an earlier name of a command, which help does not list."""
    commands.choices[earlier] = commands.choices[name]


def _settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", type=Path, metavar="SETTINGS", help="the cluster's settings (TOML)")


def _address(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=port, default=default, help="default: %(default)s; 0 for any")


def _load(path: Path) -> ClusterSettings:
    from hubbub_deploy.cluster_settings import ClusterSettings  # noqa: PLC0415 - see above

    return ClusterSettings.load(path)


def _topic(options: argparse.Namespace) -> int:
    from hubbub_deploy import cluster_topics  # noqa: PLC0415 - see above
    from hubbub_deploy.commands import migrate_log  # noqa: PLC0415 - see above

    if options.node is not None:
        if options.if_absent:
            raise DeployError("--if-absent must come with --partitions, got --from: a log is moved once")
        copied = migrate_log.migrate(options.node, _load(options.settings), replication=options.replication)
        print(f"{copied} records copied")
        return 0
    make = cluster_topics.ensure_topic if options.if_absent else cluster_topics.make_topic
    made = make(_load(options.settings), partitions=options.partitions, replication=options.replication)
    print(f"{made.partitions} partitions, identity {made.identity}")
    return 0


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be as 2026-01-31T00:00:00Z, got {text!r}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _grow(options: argparse.Namespace) -> int:
    from hubbub_deploy import cluster_topics  # noqa: PLC0415 - see above

    partition_map = cluster_topics.add_partitions(
        _load(options.settings), partitions=options.partitions, replication=options.replication, at=options.at
    )
    period = partition_map.periods[-1]
    moment = datetime.fromtimestamp(period.from_s, UTC).isoformat()
    print(f"rounds that start at {moment} or later: topic {period.topic}, {period.partitions} partitions")
    return 0


def _collector(options: argparse.Namespace) -> int:
    from hubbub import Survey  # noqa: PLC0415 - see above
    from hubbub_deploy import cluster  # noqa: PLC0415 - see above

    surveys = tuple(Survey.load(path) for path in options.surveys)
    return cluster.collect(
        _load(options.settings), surveys, survey_list=options.list, host=options.host, port=options.port
    )


def _aggregator(options: argparse.Namespace) -> int:
    from hubbub_deploy import cluster  # noqa: PLC0415 - see above

    return cluster.aggregate(_load(options.settings), instance=options.instance, skip=options.skip)


def _dashboard(options: argparse.Namespace) -> int:
    from hubbub_deploy import cluster  # noqa: PLC0415 - see above

    return cluster.dashboard(
        _load(options.settings),
        data_dir=options.data,
        fleet=fleet_options.fleet_statement(options),
        host=options.host,
        port=options.port,
    )


def _adopt(options: argparse.Namespace) -> int:
    from hubbub_deploy import cluster  # noqa: PLC0415 - see above

    print(cluster.skip_lost(_load(options.settings), options.partition, options.offset))
    return 0


def _dead(options: argparse.Namespace) -> int:
    from hubbub_deploy import cluster, node  # noqa: PLC0415 - see above

    source: Path = options.source
    letters = node.dead_letters(source) if source.is_dir() else cluster.dead_letters(_load(source))
    for letter in letters:
        print(json.dumps(letter))
    print(f"{len(letters)} dead letters", file=sys.stderr)
    return 0
