"""`hubbub replay`: a CSV through the same code offline, or a log counted again."""

from __future__ import annotations

import argparse
from pathlib import Path

from hubbub_deploy.commands.arguments import (
    add_dictionary,
    add_people,
    columns,
    load_settings,
    spelling,
    whole,
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    replay = commands.add_parser(
        "replay", help="the same code offline: a CSV against its truth, or a log counted again"
    )
    replay.add_argument(
        "source",
        metavar="CSV|FOLDER|TOPIC",
        help="one device per row, with a header (.csv, .gz, .parquet, - for stdin); a node's folder; or "
        "kafka://host:port/topic",
    )
    replay.add_argument(
        "--survey",
        type=Path,
        action="append",
        default=[],
        help="survey file (TOML); may be repeated; a log holds its surveys, a CSV needs one",
    )
    replay.add_argument("--archive", type=Path, help="compare a log's releases with those in this folder")
    add_people(replay)
    add_dictionary(replay)
    replay.add_argument("--seed", type=whole, help="make the run repeatable")
    replay.add_argument("--out", type=Path, help="write the plots and the releases into this folder")
    replay.add_argument("--all", action="store_true", help="print every value, not only the most frequent")
    replay.add_argument(
        "--without-issuer",
        action="append",
        default=[],
        metavar="NAME",
        help="count a log without the reports that an issuer vouched for; may be repeated",
    )
    replay.add_argument(
        "--publish",
        action="store_true",
        help="show these recounts beside the releases, for good, on page and API: of a folder its own, of a "
        "topic those of --archive",
    )
    replay.add_argument(
        "--settings", type=Path, help="the cluster's settings (TOML), where its brokers ask for a name"
    )
    replay.add_argument("--json", action="store_true", help="print the result as JSON")
    replay.set_defaults(run=run, misuse=replay.error)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy.commands.replay import log_count, log_replay  # noqa: PLC0415

    if options.dictionary and log_count.is_log(options.source):
        options.misuse("--dictionary is for the texts of a CSV, and a log has none")
    if options.publish and not options.without_issuer:
        options.misuse("--publish is about recounts, and needs --without-issuer")
    if log_count.is_log(options.source):
        if options.publish and log_count.is_topic(options.source) and options.archive is None:
            options.misuse("--publish of a topic's recounts needs --archive, the dashboard's folder")
        cluster = None if options.settings is None else load_settings(options.settings)
        return log_replay.run(
            log_replay.LogReplaySettings(
                source=options.source,
                surveys=tuple(options.survey),
                archive=options.archive,
                out=options.out,
                output="json" if options.json else "table",
                without=tuple(options.without_issuer),
                publish=options.publish,
                brokers=None if cluster is None else cluster.brokers,
                seal_rules=None if cluster is None else cluster.seal_rules,
            )
        )
    if options.without_issuer:
        options.misuse("--without-issuer is about a log's reports, and a CSV has no issuer")
    if not options.survey:
        options.misuse("the following arguments are required: --survey")
    if options.archive is not None:
        options.misuse("--archive is compared with a log's releases, and a CSV has none")
    from hubbub_deploy.commands.replay import csv_replay  # noqa: PLC0415 - it plots, and a server cannot

    return csv_replay.run(
        csv_replay.ReplaySettings(
            csv=Path(options.source),
            surveys=tuple(options.survey),
            columns=columns(options.column),
            dictionaries=tuple(options.dictionary),
            spelling=spelling(options),
            clip=options.clip,
            seed=options.seed,
            out=options.out,
            rows="all" if options.all else "most frequent",
            output="json" if options.json else "table",
        )
    )
