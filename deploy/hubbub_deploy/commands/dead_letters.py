"""`hubbub dead-letters`: what could not be counted, as JSON lines."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from hubbub_deploy.commands.arguments import load_settings


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    dead = commands.add_parser(
        "dead-letters", help="what could not be counted: positions and reasons, as JSON lines"
    )
    dead.add_argument(
        "source", type=Path, metavar="SETTINGS|FOLDER", help="a cluster's settings, or a node's folder"
    )
    dead.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run it, and return its exit code."""
    from hubbub_deploy import cluster, node  # noqa: PLC0415 - others need no server library

    source: Path = options.source
    letters = node.dead_letters(source) if source.is_dir() else cluster.dead_letters(load_settings(source))
    for letter in letters:
        print(json.dumps(letter))
    print(f"{len(letters)} dead letters", file=sys.stderr)
    return 0
