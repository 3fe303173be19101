"""`hubbub skip-lost`: go on counting where records are gone for good."""

from __future__ import annotations

import argparse

from hubbub_deploy.commands.arguments import add_settings, load_settings, whole


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("skip-lost", help="go on counting where records are gone for good")
    add_settings(parser)
    parser.add_argument("--partition", type=whole, required=True)
    parser.add_argument(
        "--from",
        type=whole,
        required=True,
        dest="offset",
        help="the first offset to count; all before it is lost",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster  # noqa: PLC0415 - others need no server library

    print(cluster.skip_lost(load_settings(options.settings), options.partition, options.offset))
    return 0
